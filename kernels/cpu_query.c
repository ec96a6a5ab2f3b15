/* Queries and keys on their way to scores: rows are shared out to threads in rotate and skew, columns in project. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/threads.h"
#include "kernels/turn.h"
#include "kernels/vec.h"

/* Rows of a projection that are held as floats at one time. */
enum { MOST_WIDTH = 1024, BLOCK_ROWS = 96 };
/* Columns that a thread works on at one time, and rows of the weight: 256 x 32 of them in bf16 are 16 KiB. */
enum { CHUNK = 256, DEPTH = 32 };

struct rotate_job {
    const struct smg_rotate_args *a;
    const double *turns; /* [head_dim / 2] a position */
};

struct project_job {
    const struct smg_project_args *a;
    uint64_t first; /* row of the block */
    uint32_t rows;
    float *x; /* [rows][x_stride] */
    uint64_t x_stride;
};

struct skew_job {
    const struct smg_skew_args *a;
    float *basis;    /* [kv_heads][head_dim][stride], the chosen columns, then zeros */
    uint32_t stride; /* a multiple of 16 */
    uint64_t items;  /* of a KV head: three vectors each */
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_query_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_query_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

#define LOOP(name) (k->isa == SMG_ISA_AVX2 ? name##_avx2 : name##_base)

int smg_cpu_rotate(struct smg_kernels *k, const struct smg_rotate_args *a, struct smg_stream *stream)
{
    struct rotate_job job = {a, NULL};
    uint32_t half = a->head_dim / 2;
    double *turns;
    void *memory;
    int status = smg_stream_scratch(stream, half * sizeof *turns, &memory);

    if (status)
        return status;
    turns = memory;
    for (uint32_t j = 0; j < half; j++)
        turns[j] = a->theta != 0 ? pow((double)a->theta, -2.0 * j / a->head_dim) / 6.283185307179586476925 : 0;
    job.turns = turns;
    smg_threads_run(k->threads, a->rows, 1 + 256 / a->heads, LOOP(rotate_rows), &job);
    return SMG_OK;
}

int smg_cpu_project(struct smg_kernels *k, const struct smg_project_args *a, struct smg_stream *stream)
{
    struct project_job job = {.a = a, .x_stride = ((uint64_t)a->in + 7) & ~(uint64_t)7};
    uint32_t most = a->rows < BLOCK_ROWS ? a->rows : BLOCK_ROWS;
    void *memory;
    int status = smg_stream_scratch(stream, most * job.x_stride * sizeof(float) + 1, &memory);

    if (status)
        return status;
    job.x = memory;
    for (; job.first < a->rows; job.first += BLOCK_ROWS) {
        job.rows = a->rows - job.first < BLOCK_ROWS ? (uint32_t)(a->rows - job.first) : BLOCK_ROWS;
        smg_threads_run(k->threads, job.rows, 1, LOOP(widen_rows), &job);
        smg_threads_run(k->threads, ((uint64_t)a->out + CHUNK - 1) / CHUNK, 1, LOOP(project_columns), &job);
    }
    return SMG_OK;
}

/* The chosen columns side by side; a column that does not exist is 0. */
static void pack_basis(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct skew_job *job = arg;
    const struct smg_skew_args *a = job->a;
    uint32_t d = a->head_dim;

    (void)worker;
    for (uint64_t m = lo; m < hi; m++)
        for (uint64_t j = 0; j < d; j++) {
            float *to = job->basis + (m * d + j) * job->stride;
            const float *from = a->basis + (m * d + j) * d;
            memset(to, 0, job->stride * sizeof *to);
            for (uint64_t c = 0; c < a->width; c++) {
                uint64_t column = a->columns ? a->columns[m * a->width + c] : c;
                to[c] = column < d ? from[column] : 0;
            }
        }
}

int smg_cpu_skew(struct smg_kernels *k, const struct smg_skew_args *a, struct smg_stream *stream)
{
    struct skew_job job = {.a = a, .stride = (a->width + 15) & ~15u};
    void *memory;
    int status = smg_stream_scratch(stream, (size_t)a->kv_heads * a->head_dim * job.stride * sizeof(float), &memory);

    if (status)
        return status;
    job.basis = memory;
    job.items = ((uint64_t)a->rows * (a->heads / a->kv_heads) + 2) / 3;
    smg_threads_run(k->threads, a->kv_heads, 1, pack_basis, &job);
    smg_threads_run(k->threads, job.items * a->kv_heads, 16, LOOP(skew_vectors), &job);
    return SMG_OK;
}
