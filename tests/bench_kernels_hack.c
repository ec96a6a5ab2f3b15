/* Speed of HACK on the cpu backend, one thread: attention on the codes beside the unfused way (dequantise, then a plain attention
 * of fp32 vectors) and beside that attention over dense K and V; rates of quantising and restoring beside memcpy. Time of the
 * processor, not of the wall: cores may be shared. Rounds alternate, and the table has medians. Results are compared before
 * anything is timed. Numbers are for people, not for tests. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/vec.h"

#define TOKENS   8192u
#define KV_HEADS 8u
#define HEADS    5u /* query heads of a KV head */
#define Q_HEADS  (KV_HEADS * HEADS)
#define DIM      128u
#define ROUNDS   7

#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/vec_ops.inc"

/* out[q_head][d] over dense k, v [tokens][H][d], read once from front to back; p [tokens][Hq] is room. */
static void plain_attention(const float *q, const float *k, const float *v, float scale, float *p, float *out)
{
    float most[Q_HEADS], sum[Q_HEADS] = {0};

    for (uint32_t i = 0; i < Q_HEADS; i++)
        most[i] = -INFINITY;
    memset(out, 0, Q_HEADS * DIM * sizeof *out);
    for (uint32_t t = 0; t < TOKENS; t++)
        for (uint32_t i = 0; i < Q_HEADS; i++) {
            const float *row = k + ((size_t)t * KV_HEADS + i / HEADS) * DIM, *qi = q + (size_t)i * DIM;
            smg_v8f even = v8_set_avx2(0), odd = even;
            float logit;
            for (uint32_t c = 0; c < DIM; c += 16) {
                even = v8_fma_avx2(v8_load_f32_avx2(qi + c), v8_load_f32_avx2(row + c), even);
                odd = v8_fma_avx2(v8_load_f32_avx2(qi + c + 8), v8_load_f32_avx2(row + c + 8), odd);
            }
            logit = scale * v8_sum_avx2(even + odd);
            p[t * Q_HEADS + i] = logit;
            most[i] = logit > most[i] ? logit : most[i];
        }
    for (uint32_t t = 0; t < TOKENS; t++)
        for (uint32_t i = 0; i < Q_HEADS; i++) {
            const float *row = v + ((size_t)t * KV_HEADS + i / HEADS) * DIM, e = expf(p[t * Q_HEADS + i] - most[i]);
            float *to = out + (size_t)i * DIM;
            sum[i] += e;
            for (uint32_t c = 0; c < DIM; c += 8)
                v8_store_f32_avx2(to + c, v8_fma_avx2(v8_set_avx2(e), v8_load_f32_avx2(row + c), v8_load_f32_avx2(to + c)));
        }
    for (uint32_t i = 0; i < Q_HEADS * DIM; i++)
        out[i] /= sum[i / DIM];
}
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, ROUNDS, sizeof *x, by_value);
    return x[ROUNDS / 2];
}

static void need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_kernels_hack: %s\n", what);
        exit(1);
    }
}

static void *room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);

    need(p != NULL, "out of memory");
    memset(p, 0, bytes);
    return p;
}

static float uniform(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return (float)(*x >> 8) / 8388608.0f - 1.0f;
}

enum { QUANTIZE, STOCHASTIC, RESTORE, FUSED, EXACT, UNFUSED, DENSE, COPY, KINDS };

struct bench {
    struct smg_kernels *k;
    struct smg_hack_shape s;
    struct smg_hack_size z;
    float *keys, *values, *back_k, *back_v, *q, *p, *out, *expected;
    uint8_t *cache, *copy;
};

static void run(struct bench *b, int kind)
{
    const float scale = 1 / sqrtf(DIM);
    struct smg_hack_quantize_args quantize = {b->s, b->keys, b->values, kind == STOCHASTIC, 1, b->cache};
    struct smg_hack_dequantize_args restore = {b->s, b->cache, b->back_k, b->back_v};
    struct smg_hack_attention_args attention = {b->s, Q_HEADS, b->q, b->cache, scale, kind == EXACT, b->out, NULL};

    switch (kind) {
    case QUANTIZE:
    case STOCHASTIC:
        need(!smg_hack_quantize(b->k, &quantize, NULL), "hack_quantize");
        break;
    case RESTORE:
    case UNFUSED:
        need(!smg_hack_dequantize(b->k, &restore, NULL), "hack_dequantize");
        if (kind == UNFUSED)
            plain_attention(b->q, b->back_k, b->back_v, scale, b->p, b->out);
        break;
    case FUSED:
    case EXACT:
        need(!smg_hack_attention(b->k, &attention, NULL), "hack_attention");
        break;
    case DENSE:
        plain_attention(b->q, b->keys, b->values, scale, b->p, b->out);
        break;
    default:
        memcpy(b->copy, b->keys, (size_t)TOKENS * KV_HEADS * DIM * sizeof *b->keys);
    }
}

/* All ways over stored elements agree; 8 bits of q and P cost a little. */
static void compare(struct bench *b)
{
    const size_t n = (size_t)Q_HEADS * DIM;

    run(b, QUANTIZE);
    run(b, UNFUSED);
    memcpy(b->expected, b->out, n * sizeof *b->out);
    for (int kind = FUSED; kind <= EXACT; kind++) {
        run(b, kind);
        for (size_t i = 0; i < n; i++)
            need(fabsf(b->out[i] - b->expected[i]) < (kind == EXACT ? 1e-5f : 2e-3f), "attention differs from the unfused one");
    }
}

static void line(const char *what, double s, double bytes, double reference, const char *aim)
{
    printf("  %-46s %8.2f ms  %6.2f GB/s  %6.2f  %s\n", what, 1e3 * s, bytes / s / 1e9, reference / s, aim);
}

static void measure(struct bench *b, const char *layout)
{
    const double dense = 2.0 * TOKENS * KV_HEADS * DIM * sizeof(float), stored = (double)b->z.bytes;
    double seconds[KINDS][ROUNDS], m[KINDS];

    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            double start = now();
            run(b, kind);
            seconds[kind][round] = now() - start;
        }
    for (int kind = 0; kind < KINDS; kind++)
        m[kind] = median(seconds[kind]);
    printf("%s, %u bits, groups of %u: %.1f bytes a token and head\n", layout, b->s.bits, b->s.group, stored / TOKENS / KV_HEADS);
    line("attention on codes", m[FUSED], stored, m[UNFUSED], "of unfused: > 2");
    line("  the same, q and P unquantised", m[EXACT], stored, m[UNFUSED], "of unfused");
    line("unfused: dequantise, plain attention", m[UNFUSED], stored, 1 * m[UNFUSED], "");
    line("plain attention over dense fp32", m[DENSE], dense, m[UNFUSED], "of unfused");
    printf("  attention on codes takes %.2f of the time over dense fp32 (aim: < 1)\n", m[FUSED] / m[DENSE]);
    line("quantise fp32, bytes read", m[QUANTIZE], dense, m[COPY] * 2, "of memcpy of as much");
    line("  the same, stochastic", m[STOCHASTIC], dense, m[COPY] * 2, "of memcpy");
    line("dequantise, bytes written", m[RESTORE], dense, m[COPY] * 2, "of memcpy");
    line("memcpy, bytes read", m[COPY], dense / 2, m[COPY], "");
}

int main(void)
{
    static const struct smg_kernels_options one_thread = {1, 0, NULL};
    const size_t n = (size_t)TOKENS * KV_HEADS * DIM, n_q = (size_t)Q_HEADS * DIM;
    struct bench b = {0};
    struct smg_diag diag = {""};
    uint32_t seed = 1;

    need(!smg_kernels_open("cpu", &one_thread, &b.k, &diag), diag.text);
    if (b.k->isa != SMG_ISA_AVX2) {
        printf("skip: %s: the plain attention that HACK is held against needs AVX2\n", smg_kernels_where(b.k));
        smg_kernels_close(b.k);
        return 77;
    }
    b.keys = room(n * sizeof *b.keys);
    b.values = room(n * sizeof *b.values);
    b.back_k = room(n * sizeof *b.back_k);
    b.back_v = room(n * sizeof *b.back_v);
    b.copy = room(n * sizeof *b.keys);
    b.q = room(n_q * sizeof *b.q);
    b.out = room(n_q * sizeof *b.out);
    b.expected = room(n_q * sizeof *b.out);
    b.p = room((size_t)TOKENS * Q_HEADS * sizeof *b.p);
    b.cache = room(n * sizeof *b.keys);
    for (size_t i = 0; i < n; i++) {
        b.keys[i] = uniform(&seed);
        b.values[i] = uniform(&seed);
    }
    for (size_t i = 0; i < n_q; i++)
        b.q[i] = uniform(&seed);
    printf("%s; %u tokens, %u KV heads of %u query heads, d %u; ms, GB/s, and how many times as fast\n", smg_kernels_where(b.k),
           TOKENS, KV_HEADS, HEADS, DIM);
    for (uint32_t i = 0; i < 6; i++) {
        b.s = (struct smg_hack_shape){
            (enum smg_hack_layout_kind)(i % 2), TOKENS, KV_HEADS, DIM, 64, 2u << i / 2, i % 2 ? 4 : 0, SMG_F32};
        need(!smg_hack_size(&b.s, &b.z), "smg_hack_size");
        compare(&b);
        measure(&b, i % 2 ? "ATC26" : "V1");
    }
    smg_kernels_close(b.k);
    free(b.keys);
    free(b.values);
    free(b.back_k);
    free(b.back_v);
    free(b.copy);
    free(b.q);
    free(b.out);
    free(b.expected);
    free(b.p);
    free(b.cache);
    return 0;
}
