/* What the tests of HACK share: a cache on a backend, a reader of it written from the comments of smg_attend.h alone, and
 * attention in fp64. */
#ifndef TESTS_HACK_FIXTURE_H
#define TESTS_HACK_FIXTURE_H

#include "tests/kernel_fixture.h"

/* Where the .cu sources run on the CPU, a part of the cases is enough: each meets other sizes, and sanitizers are slow. */
#ifdef SMG_KERNEL_TEST_CUDA
enum { HF_STRIDE = 5 };
#else
enum { HF_STRIDE = 1 };
#endif

/* A prompt and its cache, on the host. */
struct hack_case {
    struct smg_hack_shape s;
    struct smg_hack_size z;
    void *k, *v;    /* [tokens][H][d] of s.type */
    uint8_t *cache; /* as the backend wrote it */
};

static inline size_t hf_elements(const struct smg_hack_shape *s)
{
    return (size_t)s->tokens * s->kv_heads * s->head_dim;
}

static inline size_t hf_bytes(const struct smg_hack_shape *s)
{
    return hf_elements(s) * smg_dtype_bytes(s->type);
}

/* Uniform K and V. */
static inline struct hack_case hf_open(const struct smg_hack_shape *s, uint32_t *seed)
{
    struct hack_case c = {.s = *s};

    assert_int_equal(smg_hack_size(s, &c.z), SMG_OK);
    c.k = kf_elements(seed, hf_elements(s), s->type);
    c.v = kf_elements(seed, hf_elements(s), s->type);
    c.cache = malloc(c.z.bytes + 1);
    assert_non_null(c.cache);
    return c;
}

static inline void hf_close(struct hack_case *c)
{
    free(c->k);
    free(c->v);
    free(c->cache);
}

/* Quantises on the backend; returns the backend's cache, with a copy in c->cache. */
static inline void *hf_quantize(struct kernel_fixture *f, struct hack_case *c, int stochastic, uint64_t seed)
{
    void *cache = kf_out(f, c->z.bytes);
    struct smg_hack_quantize_args a = {.shape = c->s,
                                       .k = kf_in(f, c->k, hf_bytes(&c->s)),
                                       .v = kf_in(f, c->v, hf_bytes(&c->s)),
                                       .stochastic = stochastic,
                                       .seed = seed,
                                       .cache = cache};

    kf_ok(f, smg_hack_quantize(f->k, &a, NULL));
    kf_get(f, c->cache, cache, c->z.bytes);
    return cache;
}

static inline void hf_dequantize(struct kernel_fixture *f, const struct hack_case *c, const void *cache, void *k, void *v)
{
    struct smg_hack_dequantize_args a = {
        .shape = c->s, .cache = cache, .k = kf_out(f, hf_bytes(&c->s)), .v = kf_out(f, hf_bytes(&c->s))};

    kf_ok(f, smg_hack_dequantize(f->k, &a, NULL));
    kf_get(f, k, a.k, hf_bytes(&c->s));
    kf_get(f, v, a.v, hf_bytes(&c->s));
}

/* out [q_heads][d], lse [q_heads]. */
static inline void hf_attention(struct kernel_fixture *f, const struct hack_case *c, const void *cache, uint32_t q_heads,
                                const void *q, float scale, int exact, float *out, float *lse)
{
    const size_t n = (size_t)q_heads * c->s.head_dim;
    struct smg_hack_attention_args a = {.shape = c->s,
                                        .q_heads = q_heads,
                                        .q = kf_in(f, q, n * smg_dtype_bytes(c->s.type)),
                                        .cache = cache,
                                        .scale = scale,
                                        .exact = exact,
                                        .out = kf_out(f, n * sizeof *out),
                                        .lse = kf_out(f, q_heads * sizeof *lse)};

    kf_ok(f, smg_hack_attention(f->k, &a, NULL));
    kf_get(f, out, a.out, n * sizeof *out);
    kf_get(f, lse, a.lse, q_heads * sizeof *lse);
}

/* ---- The reader ---- */

static inline const struct smg_hack_part *hf_part(const struct hack_case *c, int v)
{
    return v ? &c->z.v : &c->z.k;
}

static inline float hf_bf16(const struct hack_case *c, uint64_t at)
{
    return smg_float_of_bits((uint32_t)c->cache[at] << 16 | (uint32_t)c->cache[at + 1] << 24);
}

static inline int hf_is_coded(const struct hack_case *c, int v, uint32_t token)
{
    const struct smg_hack_part *p = hf_part(c, v);

    return token >= p->first && token - p->first < p->coded;
}

/* token of the prompt, a coded one. */
static inline uint32_t hf_code(const struct hack_case *c, int v, uint32_t token, uint32_t head, uint32_t channel)
{
    const struct smg_hack_part *p = hf_part(c, v);
    const uint64_t row = (uint64_t)(token - p->first) * c->s.kv_heads + head, bit = (uint64_t)channel * c->s.bits;

    return c->cache[p->codes + row * (c->s.head_dim * c->s.bits / 8) + bit / 8] >> bit % 8 & ((1u << c->s.bits) - 1);
}

static inline uint64_t hf_index(const struct hack_case *c, int along_tokens, uint32_t t, uint32_t head, uint32_t channel)
{
    const uint64_t H = c->s.kv_heads, d = c->s.head_dim, group = c->s.group;

    return along_tokens ? (t / group * H + head) * d + channel : (t * H + head) * (d / group) + channel / group;
}

static inline void hf_min_scale(const struct hack_case *c, int v, uint32_t token, uint32_t head, uint32_t channel, float *min,
                                float *scale)
{
    const struct smg_hack_part *p = hf_part(c, v);
    const uint64_t i = hf_index(c, (int)p->group_along_tokens, token - p->first, head, channel);

    *min = hf_bf16(c, p->min + 2 * i);
    *scale = hf_bf16(c, p->scale + 2 * i);
}

static inline uint32_t hf_sum(const struct hack_case *c, int v, uint32_t token, uint32_t head, uint32_t channel)
{
    const struct smg_hack_part *p = hf_part(c, v);
    const uint64_t at = p->sum + c->z.sum_bytes * hf_index(c, v, token - p->first, head, channel);

    return c->z.sum_bytes == 1 ? c->cache[at] : c->cache[at] + 256u * c->cache[at + 1];
}

/* An element as it comes back, not rounded to the type. */
static inline double hf_value(const struct hack_case *c, int v, uint32_t token, uint32_t head, uint32_t channel)
{
    const struct smg_hack_part *p = hf_part(c, v);
    const uint64_t at = (uint64_t)head * c->s.head_dim + channel, row = (uint64_t)c->s.kv_heads * c->s.head_dim;
    float min, scale;

    if (token < p->first)
        return smg_load(c->cache + p->sinks, token * row + at, c->s.type);
    if (!hf_is_coded(c, v, token))
        return smg_load(c->cache + p->tail, (token - p->first - p->coded) * row + at, c->s.type);
    hf_min_scale(c, v, token, head, channel, &min, &scale);
    return (double)min + (double)scale * hf_code(c, v, token, head, channel);
}

/* The element that went in. */
static inline double hf_given(const struct hack_case *c, int v, uint32_t token, uint32_t head, uint32_t channel)
{
    return smg_load(v ? c->v : c->k, ((uint64_t)token * c->s.kv_heads + head) * c->s.head_dim + channel, c->s.type);
}

/* Attention of one query head over the given (dense 1) or the stored elements, in fp64; returns the log-sum-exp. */
static inline double hf_expected(const struct hack_case *c, int dense, uint32_t head, const double *q, double scale, double *out)
{
    const uint32_t n = c->s.tokens, d = c->s.head_dim;
    double (*value)(const struct hack_case *, int, uint32_t, uint32_t, uint32_t) = dense ? hf_given : hf_value;
    double *p = calloc(n + 1, sizeof *p), most = -INFINITY, sum = 0;

    assert_non_null(p);
    memset(out, 0, d * sizeof *out);
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t i = 0; i < d; i++)
            p[t] += scale * q[i] * value(c, 0, t, head, i);
        most = p[t] > most ? p[t] : most;
    }
    for (uint32_t t = 0; t < n; t++) {
        p[t] = exp(p[t] - most);
        sum += p[t];
        for (uint32_t i = 0; i < d; i++)
            out[i] += p[t] * value(c, 1, t, head, i);
    }
    for (uint32_t i = 0; n && i < d; i++)
        out[i] /= sum;
    free(p);
    return n ? most + log(sum) : -INFINITY;
}

#endif
