/* Attention on HACK codes. A task is a KV head and a stretch of tiles at fixed places: it unpacks each tile's codes to bytes once
 * for all query heads of the KV head, multiplies them as integers, and leaves a greatest logit, a sum of P and a sum of P v per
 * query head; these are merged in order, so that threads do not show. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu_hack_attention.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

/* Tokens of a task at least, and tasks of a head at most. Tasks of one stretch and all KV heads follow each other, since their
 * codes lie side by side: few tokens, so that the caches keep them. */
enum { TASK_TOKENS = 256, MOST_TASKS = 1024 };

#define SMG_ISA_NAME(name) name##_base
#include "kernels/vec_ops.inc"

#include "kernels/cpu_hack_rows.inc"

#include "kernels/cpu_hack_dots.inc"

#include "kernels/cpu_hack_attention_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/vec_ops.inc"

#include "kernels/cpu_hack_rows.inc"

#include "kernels/cpu_hack_dots.inc"

#include "kernels/cpu_hack_attention_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

/* Takes bytes from a room, or only counts them: rooms is NULL then. */
static void *take(uint8_t *room, size_t *used, size_t bytes)
{
    void *p = room ? room + *used : NULL;

    *used += (bytes + 63) / 64 * 64;
    return p;
}

/* Carves a room; returns its bytes. */
static size_t furnish(const struct frame *f, uint8_t *memory, struct room *r)
{
    const size_t by_token = (size_t)f->groups * f->deep, side = (by_token > f->wide ? by_token : f->wide) * sizeof(float);
    const size_t pairs = (size_t)f->heads * f->groups * sizeof(float), most = f->deep > f->wide ? f->deep : f->wide;
    size_t used = 0;

    r->f = f;
    r->q = take(memory, &used, (size_t)f->heads * f->wide * sizeof *r->q);
    r->p = take(memory, &used, (size_t)f->heads * f->deep * sizeof *r->p);
    r->w = take(memory, &used, most * sizeof *r->w);
    r->row = take(memory, &used, f->wide * sizeof *r->row);
    r->dot = take(memory, &used, f->wide * sizeof *r->dot);
    r->b.min = take(memory, &used, side);
    r->b.scale = take(memory, &used, side);
    r->b.sum = take(memory, &used, side);
    r->a_min = take(memory, &used, pairs);
    r->a_scale = take(memory, &used, pairs);
    r->a_sum = take(memory, &used, pairs);
    r->a_code = take(memory, &used, (size_t)f->heads * f->wide);
    r->w_code = take(memory, &used, f->deep);
    r->code = take(memory, &used, (size_t)f->deep * f->wide);
    return used;
}

static void attend_tasks(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct frame *f = arg;
    struct room r;

    furnish(f, f->rooms + worker * f->room_bytes, &r);
    for (uint64_t i = lo; i < hi; i++) { /* [tasks_per_head][kv_heads] */
        const uint32_t first = (uint32_t)(i / f->a.shape.kv_heads) * f->tiles_per_task;
        const uint32_t end = f->tiles - first < f->tiles_per_task ? f->tiles : first + f->tiles_per_task;
        r.kv_head = (uint32_t)(i % f->a.shape.kv_heads);
        r.state = f->partial + i * f->heads * (2 + f->wide);
        if (f->isa == SMG_ISA_AVX2)
            work_avx2(&r, first, end);
        else
            work_base(&r, first, end);
    }
}

/* ---- Merging ---- */

static void merge_head(const struct frame *f, uint32_t q_head)
{
    const uint32_t d = f->a.shape.head_dim;
    const size_t stride = (size_t)f->a.q_heads * (2 + f->wide); /* from task to task */
    const float *part = f->partial + q_head * (size_t)(2 + f->wide);
    float greatest = -INFINITY, sum = 0, *out = f->a.out + (size_t)q_head * d;

    memset(out, 0, d * sizeof *out);
    for (uint32_t i = 0; i < f->tasks_per_head; i++)
        greatest = part[i * stride] > greatest ? part[i * stride] : greatest;
    for (uint32_t i = 0; i < f->tasks_per_head; i++) {
        const float share = expf(part[i * stride] - greatest);
        sum += share * part[i * stride + 1];
        for (uint32_t c = 0; c < d; c++)
            out[c] += share * part[i * stride + 2 + c];
    }
    for (uint32_t c = 0; f->tasks_per_head && c < d; c++)
        out[c] /= sum;
    if (f->a.lse)
        f->a.lse[q_head] = f->tasks_per_head ? greatest + logf(sum) : -INFINITY;
}

static void merge_heads(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    (void)worker;
    for (uint64_t i = lo; i < hi; i++)
        merge_head(arg, (uint32_t)i);
}

/* ---- The call ---- */

static int frame_of(struct smg_kernels *k, const struct smg_hack_attention_args *a, struct smg_stream *stream, struct frame *f)
{
    const struct smg_hack_shape *s = &a->shape;
    struct room r;
    size_t partial;
    void *memory;
    int status;

    *f = (struct frame){.a = *a, .isa = k->isa};
    if (smg_hack_size(s, &f->z))
        return SMG_ERR_INVALID;
    f->heads = a->q_heads / s->kv_heads;
    f->groups = s->head_dim / s->group;
    f->wide = (s->head_dim + 31) / 32 * 32;
    f->deep = (s->group + 7) / 8 * 8;
    f->tiles = smg_hack_tiles(s, &f->z);
    f->tiles_per_task = TASK_TOKENS / s->group + 1;
    if (f->tiles / MOST_TASKS >= f->tiles_per_task)
        f->tiles_per_task = f->tiles / MOST_TASKS + 1;
    f->tasks_per_head = f->tiles / f->tiles_per_task + (f->tiles % f->tiles_per_task != 0);
    f->room_bytes = furnish(f, NULL, &r);
    partial = (size_t)s->kv_heads * f->tasks_per_head * f->heads * (2 + f->wide) * sizeof *f->partial;
    status = smg_stream_scratch(stream, f->room_bytes * smg_threads_count(k->threads) + partial, &memory);
    if (status)
        return status;
    /* Padding of rows is read as zeros. */
    memset(memory, 0, f->room_bytes * smg_threads_count(k->threads));
    f->rooms = memory;
    f->partial = (float *)(void *)(f->rooms + f->room_bytes * smg_threads_count(k->threads));
    return SMG_OK;
}

int smg_cpu_hack_attention(struct smg_kernels *k, const struct smg_hack_attention_args *a, struct smg_stream *stream)
{
    struct frame f;
    int status = frame_of(k, a, stream, &f);

    if (status)
        return status;
    smg_threads_run(k->threads, (uint64_t)a->shape.kv_heads * f.tasks_per_head, 1, attend_tasks, &f);
    smg_threads_run(k->threads, a->q_heads, 32, merge_heads, &f);
    return SMG_OK;
}
