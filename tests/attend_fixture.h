/* What the tests of attention share: sequences of entries, dense attention in double to hold results against, and ways to give a
 * sequence to the kernel in runs. */
#ifndef TESTS_ATTEND_FIXTURE_H
#define TESTS_ATTEND_FIXTURE_H

#include "tests/kernel_fixture.h"

/* Rounding of scores (at most about 6 here) and of weights in fp32, 6e-8 each, and sums of some hundred of them leave about 1e-6
 * of the largest |v|, which is 1. Inputs are taken as they are in their type, so this holds for all types. Property (g) asks for
 * 1e-5. */
static const double TOLERANCE = 4e-6;

enum { MOST = 4 };

/* ---- Cases ---- */

/* A sequence of entries for each row, K and V [row][entries][d], and how it is given to the kernel. */
struct sequences {
    enum smg_dtype type;
    uint32_t requests, kv_heads, group, d, most; /* most: entries in memory of each row */
    uint32_t *length;                            /* [row], at most `most` */
    void *q, *k, *v;
    float scale;
};

static uint32_t rows_of(const struct sequences *s)
{
    return s->requests * s->kv_heads;
}

static size_t outputs_of(const struct sequences *s)
{
    return (size_t)rows_of(s) * s->group * s->d;
}

/* Elements uniform in [-1, 1); with scale 1 / sqrt(d) times 4 scores reach about +-4: neither one entry nor all of them decide.
 */
static struct sequences make(uint32_t *seed, enum smg_dtype type, uint32_t requests, uint32_t kv_heads, uint32_t group,
                             uint32_t d, uint32_t most)
{
    struct sequences s = {type, requests, kv_heads, group, d, most, NULL, NULL, NULL, NULL, 4 / sqrtf((float)d)};
    const size_t n = (size_t)rows_of(&s) * most * d;

    s.q = kf_elements(seed, outputs_of(&s), type);
    s.k = kf_elements(seed, n, type);
    s.v = kf_elements(seed, n, type);
    s.length = malloc(rows_of(&s) * sizeof *s.length + 1);
    assert_non_null(s.length);
    for (uint32_t r = 0; r < rows_of(&s); r++)
        s.length[r] = most;
    return s;
}

static void drop(struct sequences *s)
{
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->length);
}

/* Dense attention in double, written from the formula: its own loops over the rows in memory, no runs. */
static void dense(const struct sequences *s, float *out, float *lse)
{
    for (uint32_t query = 0; query < rows_of(s) * s->group; query++) {
        const uint32_t row = query / s->group, n = s->length[row];
        double *p = malloc((n + 1) * sizeof *p), most = -HUGE_VAL, sum = 0;
        assert_non_null(p);
        for (uint32_t j = 0; j < n; j++) {
            p[j] = 0;
            for (uint32_t c = 0; c < s->d; c++)
                p[j] += (double)s->scale * (double)smg_load(s->q, (uint64_t)query * s->d + c, s->type) *
                        (double)smg_load(s->k, ((uint64_t)row * s->most + j) * s->d + c, s->type);
            most = p[j] > most ? p[j] : most;
        }
        for (uint32_t j = 0; j < n; j++)
            sum += p[j] = exp(p[j] - most);
        for (uint32_t c = 0; c < s->d; c++) {
            double x = 0;
            for (uint32_t j = 0; j < n; j++)
                x += p[j] / sum * (double)smg_load(s->v, ((uint64_t)row * s->most + j) * s->d + c, s->type);
            out[(size_t)query * s->d + c] = (float)x;
        }
        lse[query] = n ? (float)(most + log(sum)) : -INFINITY;
        free(p);
    }
}

/* How one sequence is given: cut[i] entries of each row in the first i runs (more than a row has: all). */
struct cut {
    uint32_t runs, at[MOST + 1];
};

static const struct cut whole = {1, {0, UINT32_MAX}};

/* One run: its entries of each row, copied so that buffers end where the last row ends; order of heads and entries in memory as
 * `token_major` says. extra: max_length is larger than any row. */
static struct smg_attention_run run_of(struct kernel_fixture *f, const struct sequences *s, uint32_t from, uint32_t to,
                                       int token_major, uint32_t extra)
{
    const size_t bytes = s->d * smg_dtype_bytes(s->type);
    struct smg_attention_run run = {0};
    uint32_t length[64];
    size_t total;
    char *k, *v;

    assert_true(rows_of(s) <= 64);
    for (uint32_t r = 0; r < rows_of(s); r++) {
        uint32_t end = s->length[r] < to ? s->length[r] : to;
        length[r] = end > from ? end - from : 0;
        run.max_length = length[r] > run.max_length ? length[r] : run.max_length;
    }
    run.request_stride = (uint64_t)run.max_length * s->kv_heads * s->d;
    run.head_stride = token_major ? s->d : (uint64_t)run.max_length * s->d;
    run.entry_stride = token_major ? (uint64_t)s->kv_heads * s->d : s->d;
    total = (size_t)rows_of(s) * run.max_length * bytes;
    k = malloc(total + 1);
    v = malloc(total + 1);
    assert_true(k && v);
    memset(k, 0xff, total); /* NaN where no entry is */
    memset(v, 0xff, total);
    for (uint32_t r = 0; r < rows_of(s); r++)
        for (uint32_t j = 0; j < length[r]; j++) {
            size_t to_byte =
                (size_t)(r / s->kv_heads * run.request_stride + r % s->kv_heads * run.head_stride + j * run.entry_stride) *
                smg_dtype_bytes(s->type);
            memcpy(k + to_byte, (char *)s->k + ((size_t)r * s->most + from + j) * bytes, bytes);
            memcpy(v + to_byte, (char *)s->v + ((size_t)r * s->most + from + j) * bytes, bytes);
        }
    run.k = kf_in(f, k, total);
    run.v = kf_in(f, v, total);
    run.length = kf_in(f, length, rows_of(s) * sizeof *length);
    run.max_length += extra;
    free(k);
    free(v);
    return run;
}

/* Runs the kernel; out [query][d], lse [query]. */
static void attend(struct kernel_fixture *f, const struct sequences *s, const struct cut *cut, uint32_t splits, float *out,
                   float *lse)
{
    const size_t queries = (size_t)rows_of(s) * s->group;
    struct smg_attention_args a = {.requests = s->requests,
                                   .q_heads = s->kv_heads * s->group,
                                   .kv_heads = s->kv_heads,
                                   .head_dim = s->d,
                                   .type = s->type,
                                   .q = kf_in(f, s->q, outputs_of(s) * smg_dtype_bytes(s->type)),
                                   .n_runs = cut->runs,
                                   .scale = s->scale,
                                   .splits = splits,
                                   .out = kf_out(f, outputs_of(s) * sizeof *out),
                                   .lse = kf_out(f, queries * sizeof *lse)};

    for (uint32_t i = 0; i < cut->runs; i++)
        a.run[i] = run_of(f, s, cut->at[i], cut->at[i + 1], i % 2 == 1, i == 2 ? 100 : 0);
    kf_ok(f, smg_attention(f->k, &a, NULL));
    kf_get(f, out, a.out, outputs_of(s) * sizeof *out);
    kf_get(f, lse, a.lse, queries * sizeof *lse);
    kf_free_all(f);
}

struct result {
    float *out, *lse;
};

static struct result result_of(const struct sequences *s)
{
    struct result r = {malloc(outputs_of(s) * sizeof(float) + 1), malloc((size_t)rows_of(s) * s->group * sizeof(float) + 1)};

    assert_true(r.out && r.lse);
    return r;
}

static void drop_result(struct result *r)
{
    free(r->out);
    free(r->lse);
}

static void close_to(struct kernel_fixture *f, const struct sequences *s, const struct result *got, const struct result *expected)
{
    kf_close(f, got->out, expected->out, outputs_of(s), TOLERANCE, 0);
    kf_close(f, got->lse, expected->lse, (size_t)rows_of(s) * s->group, TOLERANCE, 1e-6);
}

#endif
