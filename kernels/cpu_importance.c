/* Block importance, Eq. 1. Counting shares the ids among threads, each with counters of its own; means share the blocks. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/blocks.h"
#include "kernels/threads.h"

enum { IDS = 16384 }; /* of a piece */

struct counting {
    const struct smg_importance_args *a;
    uint64_t scale;
    uint32_t *own; /* [threads - 1][blocks]; the caller counts into the result */
};

static void count_ids(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct counting *c = arg;
    const uint32_t *start = c->a->start, blocks = c->a->blocks, tokens = c->a->tokens, first = start[0];
    uint32_t *count = worker ? c->own + (worker - 1) * (uint64_t)blocks : c->a->count;

    for (uint64_t i = lo; i < hi; i++) {
        int32_t id = c->a->index[i];
        if (smg_id_kept(id, first, tokens))
            count[smg_block_of(start, blocks, c->scale, (uint32_t)id)]++;
    }
}

int smg_cpu_importance(struct smg_kernels *k, const struct smg_importance_args *a, struct smg_stream *stream)
{
    const uint64_t ids = (uint64_t)a->rows * a->k, others = ids > IDS ? smg_threads_count(k->threads) - 1 : 0;
    struct counting c = {a, smg_block_scale(a->tokens, a->blocks), NULL};

    if (others) {
        const size_t bytes = others * a->blocks * sizeof *c.own;
        void *own;
        int status = smg_stream_scratch(stream, bytes, &own);
        if (status)
            return status;
        c.own = memset(own, 0, bytes);
    }
    smg_threads_run(k->threads, ids, IDS, count_ids, &c);
    for (uint64_t t = 0; t < others; t++)
        for (uint32_t m = 0; m < a->blocks; m++)
            a->count[m] += c.own[t * a->blocks + m];
    return SMG_OK;
}

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
