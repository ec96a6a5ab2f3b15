/* Block importance, Eq. 1: blocks are shared among threads. */
#include "kernels/backend.h"
#include "kernels/threads.h"

static void mean_of_blocks(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct smg_importance_mean_args *a = arg;

    (void)worker;
    for (uint64_t m = lo; m < hi; m++) {
        float sum = 0;
        uint32_t n = 0;
        for (uint32_t r = 0; r < a->requests; r++) {
            uint64_t i = (uint64_t)r * a->blocks + m;
            if (!a->block_tokens[i] || !a->steps[r])
                continue;
            sum += (float)a->count[i] / ((float)a->steps[r] * (float)a->heads * (float)a->block_tokens[i]);
            n++;
        }
        a->importance[m] = n ? sum / (float)n : 0;
    }
}

int smg_cpu_importance_mean(struct smg_kernels *k, const struct smg_importance_mean_args *a, struct smg_stream *stream)
{
    struct smg_importance_mean_args copy = *a;

    (void)stream;
    smg_threads_run(k->threads, a->blocks, 4096, mean_of_blocks, &copy);
    return SMG_OK;
}
