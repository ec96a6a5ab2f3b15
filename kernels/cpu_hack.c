/* HACK, codes and back: a thread takes a block of `group` tokens of one head, K or V, which holds whole groups and sums in
 * either layout. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/hack.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

/* K or V of a request, and its part of the cache. */
struct plane {
    const struct smg_hack_shape *shape;
    const struct smg_hack_part *part;
    const void *x; /* [tokens][H][d] */
    uint8_t *cache;
    uint32_t number, sum_bytes; /* number 0: K, 1: V */
    int stochastic;
    uint64_t seed;
};

struct block {
    const struct plane *plane;
    uint32_t row, rows, head; /* rows [row, row + rows) of the coded tokens */
};

/* Of the first element of a block's row. */
static uint64_t element_at(const struct block *b, uint32_t i)
{
    const struct smg_hack_shape *s = b->plane->shape;

    return (((uint64_t)b->plane->part->first + b->row + i) * s->kv_heads + b->head) * s->head_dim;
}

static void set_group(const struct plane *p, uint64_t group, float least, float greatest, int bad, float *min, float *scale)
{
    uint16_t m = smg_float_to_bf16(least + 0.0f), f;
    float step = (greatest - smg_bf16_to_float(m)) / (float)((1u << p->shape->bits) - 1);

    f = smg_float_to_bf16(step);
    if (!(smg_bf16_to_float(f) > 0))
        f = smg_float_to_bf16(1);
    if (bad || !isfinite(step))
        m = f = SMG_HACK_NAN;
    ((uint16_t *)(void *)(p->cache + p->part->min))[group] = m;
    ((uint16_t *)(void *)(p->cache + p->part->scale))[group] = f;
    *min = smg_bf16_to_float(m);
    *scale = smg_bf16_to_float(f);
}

static void set_sums(const struct plane *p, uint64_t at, const uint16_t *sum, uint32_t n)
{
    uint8_t *sums = p->cache + p->part->sum;

    if (p->sum_bytes == 2) {
        memcpy(sums + at * 2, sum, n * sizeof *sum);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        sums[at + i] = (uint8_t)sum[i];
}

static int is_coded(const struct smg_hack_part *p, uint32_t token)
{
    return token >= p->first && token - p->first < p->coded;
}

#define SMG_ISA_NAME(name) name##_base
#include "kernels/vec_ops.inc"

#include "kernels/cpu_hack_rows.inc"

#include "kernels/cpu_hack_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/vec_ops.inc"

#include "kernels/cpu_hack_rows.inc"

#include "kernels/cpu_hack_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

/* ---- quantize ---- */

struct quantize_job {
    struct plane plane[2];
    uint64_t tasks[2]; /* blocks times heads */
    enum smg_isa isa;
};

static void quantize_tasks(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct quantize_job *job = arg;

    (void)worker;
    for (uint64_t i = lo; i < hi; i++) {
        const int v = i >= job->tasks[0];
        const struct plane *p = &job->plane[v];
        const uint64_t task = v ? i - job->tasks[0] : i; /* [block][H] */
        struct block b = {p, (uint32_t)(task / p->shape->kv_heads) * p->shape->group, 0, (uint32_t)(task % p->shape->kv_heads)};
        b.rows = p->part->coded - b.row < p->shape->group ? p->part->coded - b.row : p->shape->group;
        if (job->isa == SMG_ISA_AVX2)
            quantize_block_avx2(&b);
        else
            quantize_block_base(&b);
    }
}

static void copy_dense(const struct plane *p)
{
    const size_t token = (size_t)p->shape->kv_heads * p->shape->head_dim * smg_dtype_bytes(p->shape->type);
    const uint8_t *x = p->x;

    memcpy(p->cache + p->part->sinks, x, p->part->first * token);
    memcpy(p->cache + p->part->tail, x + ((size_t)p->part->first + p->part->coded) * token, p->part->dense_tail * token);
}

int smg_cpu_hack_quantize(struct smg_kernels *k, const struct smg_hack_quantize_args *a, struct smg_stream *stream)
{
    struct quantize_job job = {.isa = k->isa};
    struct smg_hack_gap gap[SMG_HACK_GAPS];
    struct smg_hack_size z;
    uint8_t *cache = a->cache;

    (void)stream;
    if (smg_hack_size(&a->shape, &z))
        return SMG_ERR_INVALID;
    for (uint32_t i = 0; i < 2; i++) {
        const struct smg_hack_part *part = i ? &z.v : &z.k;
        job.plane[i] = (struct plane){&a->shape, part, i ? a->v : a->k, cache, i, z.sum_bytes, a->stochastic, a->seed};
        job.tasks[i] = ((uint64_t)part->coded + a->shape.group - 1) / a->shape.group * a->shape.kv_heads;
        copy_dense(&job.plane[i]);
    }
    smg_hack_gaps(&a->shape, &z, gap);
    for (int i = 0; i < SMG_HACK_GAPS; i++)
        memset(cache + gap[i].at, 0, gap[i].bytes);
    smg_threads_run(k->threads, job.tasks[0] + job.tasks[1], 4, quantize_tasks, &job);
    return SMG_OK;
}

/* ---- dequantize ---- */

struct dequantize_job {
    struct smg_hack_dequantize_args a;
    struct smg_hack_size z;
    enum smg_isa isa;
};

static void dequantize_tasks(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct dequantize_job *job = arg;

    (void)worker;
    if (job->isa == SMG_ISA_AVX2)
        dequantize_rows_avx2(&job->a, &job->z, lo, hi);
    else
        dequantize_rows_base(&job->a, &job->z, lo, hi);
}

int smg_cpu_hack_dequantize(struct smg_kernels *k, const struct smg_hack_dequantize_args *a, struct smg_stream *stream)
{
    struct dequantize_job job = {.a = *a, .isa = k->isa};

    (void)stream;
    if (smg_hack_size(&a->shape, &job.z))
        return SMG_ERR_INVALID;
    smg_threads_run(k->threads, (uint64_t)a->shape.tokens * a->shape.kv_heads, 512, dequantize_tasks, &job);
    return SMG_OK;
}
