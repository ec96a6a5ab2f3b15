/* Subjects: decode attention of one layer, and HACK's codes back to elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/measure_priv.h"

/* ---- Attention: a batch's selected entries in rows on the device, as they lie after transfer ---- */

/* fp32 sums in another order, exp by another polynomial. */
#define ATTENTION_TOLERANCE 1e-3

static const char *attention_kernel(const struct smg_world *w)
{
    (void)w;
    return "attention";
}

static const char *attention_skip(const struct smg_world *w)
{
    return w->model.head_dim > 256 ? "kernels take a head_dim of at most 256" : NULL;
}

/* Requests of a call, and the share of the cap that their rows select, in quarters. */
static const struct {
    uint32_t requests, quarters;
} shapes[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {4, 4}, {8, 4}};

static uint32_t attention_sizes(const struct smg_bench *b)
{
    return b->quick ? 4 : 6;
}

static int run_attention(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_attention_args a = c->a.attention;

    a.run[0].k = (const char *)a.run[0].k + smg_bench_offset(c, turn);
    a.run[0].v = (const char *)a.run[0].v + smg_bench_offset(c, turn);
    return smg_attention(k, &a, NULL);
}

static int attention_prepare(struct smg_bench *b, uint32_t i, struct smg_bench_case *c)
{
    const struct smg_model *m = &b->world->model;
    uint32_t requests = shapes[i].requests, tokens = smg_bench_prompt(b->world),
             k = smg_bench_selected(b->world, tokens) * shapes[i].quarters / 4;
    size_t half = (size_t)requests * m->kv_heads * k * m->head_dim, n_q = (size_t)requests * m->q_heads * m->head_dim,
           size = smg_dtype_bytes(smg_bench_type(b->world));
    struct smg_attention_args a = {.requests = requests,
                                   .q_heads = m->q_heads,
                                   .kv_heads = m->kv_heads,
                                   .head_dim = m->head_dim,
                                   .type = smg_bench_type(b->world),
                                   .n_runs = 1,
                                   .scale = 1 / sqrtf((float)m->head_dim)};
    struct smg_attention_run run = {.request_stride = (uint64_t)m->kv_heads * k * m->head_dim,
                                    .head_stride = (uint64_t)k * m->head_dim,
                                    .entry_stride = m->head_dim,
                                    .max_length = k};
    int status = smg_bench_pool(b, 2 * half * size, a.type, c, &run.k);

    if (!status) {
        run.v = (const char *)run.k + half * size;
        a.run[0] = run;
        status = smg_bench_elements(b, n_q, a.type, &a.q);
    }
    if (!status)
        status = smg_bench_alloc(b, n_q * sizeof *a.out, &a.out);
    c->a.attention = a;
    c->run = run_attention;
    c->point = (struct smg_measure_point){.requests = requests,
                                          .tokens = tokens,
                                          .rows = requests * m->kv_heads,
                                          .k = k,
                                          .bytes = (double)requests * m->kv_heads * k * (double)smg_model_entry_bytes(m)};
    c->result = a.out;
    c->result_bytes = n_q * sizeof *a.out;
    c->result_type = SMG_F32;
    c->tolerance = ATTENTION_TOLERANCE;
    return status;
}

const struct smg_bench_subject smg_bench_attention = {SMG_MEASURE_ATTENTION, 0, attention_kernel, attention_skip, attention_sizes,
                                                      attention_prepare};

/* ---- HACK, unfused: codes to 16-bit elements. The elements are what is counted, and what fills the copies. ---- */

/* One unit in the last place of bf16, where a fused multiply-add rounds once less. */
#define UNPACK_TOLERANCE 0.0079

static const char *unpack_kernel(const struct smg_world *w)
{
    (void)w;
    return "hack_dequantize";
}

static uint32_t unpack_sizes(const struct smg_bench *b)
{
    return b->quick ? 3 : 5;
}

static struct smg_hack_shape shape_of(const struct smg_world *w, uint32_t tokens)
{
    int v1 = !strcmp(w->scenario.hack.layout, "v1");

    return (struct smg_hack_shape){.layout = v1 ? SMG_HACK_V1 : SMG_HACK_ATC26,
                                   .tokens = tokens,
                                   .kv_heads = w->model.kv_heads,
                                   .head_dim = w->model.head_dim,
                                   .group = w->scenario.hack.group,
                                   .bits = w->scenario.hack.bits,
                                   .sinks = v1 ? 0 : 4,
                                   .type = smg_bench_type(w)};
}

static const char *unpack_skip(const struct smg_world *w)
{
    struct smg_hack_shape shape = shape_of(w, 1024);
    struct smg_hack_size size;

    return smg_hack_size(&shape, &size) ? "kernels take hack.bits 2, 4, 8 and a hack.group that divides head_dim, 8 the group"
                                        : NULL;
}

static int run_unpack(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_hack_dequantize_args a = c->a.unpack;

    a.k = (char *)a.k + smg_bench_offset(c, turn);
    a.v = (char *)a.v + smg_bench_offset(c, turn);
    return smg_hack_dequantize(k, &a, NULL);
}

static int unpack_prepare(struct smg_bench *b, uint32_t i, struct smg_bench_case *c)
{
    uint32_t tokens = 512u << i;
    struct smg_hack_dequantize_args a = {.shape = shape_of(b->world, tokens)};
    struct smg_hack_quantize_args q = {.shape = a.shape};
    struct smg_hack_size size;
    size_t n = (size_t)tokens * a.shape.kv_heads * a.shape.head_dim, half = n * smg_dtype_bytes(a.shape.type);
    int status = smg_hack_size(&a.shape, &size);

    if (!status)
        status = smg_bench_pool(b, 2 * half, a.shape.type, c, &a.k);
    if (!status)
        status = smg_bench_alloc(b, size.bytes, &q.cache);
    if (!status)
        status = smg_bench_elements(b, n, a.shape.type, &q.k);
    if (status)
        return status;
    a.v = (char *)a.k + half;
    q.v = q.k;
    a.cache = q.cache;
    c->a.unpack = a;
    c->run = run_unpack;
    c->point = (struct smg_measure_point){.requests = 1, .tokens = tokens, .rows = a.shape.kv_heads, .bytes = 2.0 * (double)half};
    c->result = a.k;
    c->result_bytes = 2 * half;
    c->result_type = a.shape.type;
    c->tolerance = UNPACK_TOLERANCE;
    return smg_hack_quantize(b->k, &q, NULL);
}

const struct smg_bench_subject smg_bench_unpack = {SMG_MEASURE_UNPACK, 0, unpack_kernel, unpack_skip, unpack_sizes,
                                                   unpack_prepare};
