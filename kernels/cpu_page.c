/* Quest: pages are shared out to threads, rows in page_expand. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

struct page_scores_job {
    const struct smg_page_scores_args *a;
    float *q; /* [requests q_heads][q_stride] */
    uint64_t q_stride;
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_page_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_page_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

#define LOOP(name) (k->isa == SMG_ISA_AVX2 ? name##_avx2 : name##_base)

int smg_cpu_page_update(struct smg_kernels *k, const struct smg_page_update_args *a, struct smg_stream *stream)
{
    struct smg_page_update_args copy = *a;

    (void)stream;
    smg_threads_run(k->threads, (a->first + a->count - 1) / a->page - a->first / a->page + 1, 4, LOOP(update_pages), &copy);
    return SMG_OK;
}

int smg_cpu_page_scores(struct smg_kernels *k, const struct smg_page_scores_args *a, struct smg_stream *stream)
{
    struct page_scores_job job = {.a = a, .q_stride = (a->head_dim + 7) & ~7u};
    uint64_t rows = (uint64_t)a->requests * a->q_heads;
    void *memory;
    int status = smg_stream_scratch(stream, rows * job.q_stride * sizeof(float) + 1, &memory);

    if (status)
        return status;
    job.q = memory;
    smg_threads_run(k->threads, rows, 64, LOOP(widen_page_queries), &job);
    smg_threads_run(k->threads, (uint64_t)a->requests * a->max_pages, 16, LOOP(score_pages), &job);
    return SMG_OK;
}

static void expand_rows(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct smg_page_expand_args *a = arg;

    (void)worker;
    for (uint64_t r = lo; r < hi; r++) {
        int32_t *index = a->index + r * a->k;
        uint64_t tokens = a->tokens[r / a->row_group];
        uint32_t n = 0;
        for (uint64_t c = 0; c < a->n_pages && n < a->k; c++) {
            int64_t page = a->chosen[r * a->n_pages + c];
            uint64_t token = (uint64_t)page * a->page, end = token + a->page < tokens ? token + a->page : tokens;
            for (; page >= 0 && token < end && n < a->k; token++)
                index[n++] = (int32_t)token;
        }
        a->length[r] = n;
        for (; n < a->k; n++)
            index[n] = -1;
    }
}

int smg_cpu_page_expand(struct smg_kernels *k, const struct smg_page_expand_args *a, struct smg_stream *stream)
{
    struct smg_page_expand_args copy = *a;

    (void)stream;
    smg_threads_run(k->threads, a->rows, 8, expand_rows, &copy);
    return SMG_OK;
}
