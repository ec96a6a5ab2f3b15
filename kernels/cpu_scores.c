/* Scores of tokens. Tiles of tokens (all heads, since keys of one token lie together) are shared out to threads in `scores`, rows
 * in the others. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

/* Tokens of a tile: with 8 KV heads of 128 elements in bf16, 32 KiB. */
enum { TILE = 16 };

struct scores_job {
    const struct smg_scores_args *a;
    float *q; /* [requests q_heads][q_stride] as floats, then zeros */
    uint64_t q_stride, tiles;
    uint32_t group;
};

struct group_job {
    const struct smg_group_scores_args *a;
    float *weight; /* [threads][stride] */
    uint64_t stride;
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_scores_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_scores_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

#define LOOP(name) (k->isa == SMG_ISA_AVX2 ? name##_avx2 : name##_base)

int smg_cpu_scores(struct smg_kernels *k, const struct smg_scores_args *a, struct smg_stream *stream)
{
    struct scores_job job = {.a = a, .q_stride = (a->width + 7) & ~7u, .group = a->q_heads / a->kv_heads};
    uint64_t rows = (uint64_t)a->requests * a->q_heads;
    void *memory;
    int status = smg_stream_scratch(stream, rows * job.q_stride * sizeof(float) + 1, &memory);

    if (status)
        return status;
    job.q = memory;
    job.tiles = ((uint64_t)a->max_tokens + TILE - 1) / TILE;
    smg_threads_run(k->threads, rows, 64, LOOP(widen_queries), &job);
    smg_threads_run(k->threads, job.tiles * a->requests, 8, LOOP(score_tiles), &job);
    return SMG_OK;
}

int smg_cpu_threshold(struct smg_kernels *k, const struct smg_threshold_args *a, struct smg_stream *stream)
{
    struct smg_threshold_args copy = *a;

    (void)stream;
    smg_threads_run(k->threads, (uint64_t)a->requests * a->q_heads, 1, LOOP(count_rows), &copy);
    for (uint64_t b = 0; b < a->requests; b++) {
        uint32_t most = a->tokens[b] < a->max_tokens ? a->tokens[b] : a->max_tokens;
        uint64_t sum = 0;
        for (uint64_t h = 0; h < a->q_heads; h++)
            sum += a->count[b * a->q_heads + h];
        sum = sum >= a->q_heads ? sum / a->q_heads : 1;
        most = most < a->k_max[b] ? most : a->k_max[b];
        a->keep[b] = sum < most ? (uint32_t)sum : most;
    }
    return SMG_OK;
}

int smg_cpu_group_scores(struct smg_kernels *k, const struct smg_group_scores_args *a, struct smg_stream *stream)
{
    struct group_job job = {.a = a, .stride = ((uint64_t)a->max_tokens + 7) & ~(uint64_t)7};
    void *memory;
    int status = smg_stream_scratch(stream, smg_threads_count(k->threads) * job.stride * sizeof(float), &memory);

    if (status)
        return status;
    job.weight = memory;
    smg_threads_run(k->threads, (uint64_t)a->requests * a->kv_heads, 1, LOOP(group_rows), &job);
    return SMG_OK;
}
