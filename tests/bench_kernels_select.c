/* Selectors on the cpu backend, at the sizes of a decode step of Qwen3-14B with 48K tokens in one layer (8 KV heads, 40 query
 * heads, 128 elements). Bytes are those of the arrays that a call must read and write once; beside memcpy of 256 MiB by one
 * thread (its bytes counted twice), and, for fp32 scores of one head, cblas_sgemv. Median of 5 interleaved repetitions; one of
 * them is checked first. There is no aim: the step's cost is what matters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/offline_blas.h"

enum { N = 48 * 1024, H = 8, HQ = 40, D = 128, BITS = 256, PAGE = 16, PART = 38, REPEATS = 5 };

struct bench {
    const char *what;
    double bytes, flop;
    int (*run)(struct smg_kernels *k);
    double seconds[REPEATS];
};

/* Arrays of all benches, filled once. */
static uint16_t *key, *part_key, *q;
static float *key32, *q32, *score, *group, *weight, *basis, *norm, *kmin, *kmax, *y32, *bound;
static uint32_t *code, *q_code, tokens = N, pages = N / PAGE, count[HQ], keep, k_max = N / 5, length[H];
static uint8_t columns[H * PART];
static int32_t *chosen, *chosen_ids;
static void *from, *to;
enum { COPY = 256 << 20, ROWS = 4096, X = 1024 };
static uint16_t *w, *x, *y;

static void *room(size_t bytes)
{
    void *p = aligned_alloc(256, (bytes + 255) & ~(size_t)255);

    if (!p)
        exit((fprintf(stderr, "bench_kernels_select: out of memory\n"), 1));
    memset(p, 0, (bytes + 255) & ~(size_t)255);
    return p;
}

static uint32_t state = 1;

static float uniform(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (float)(state >> 8) / 8388608.0f - 1;
}

static float *floats(size_t n)
{
    float *p = room(n * sizeof *p);

    for (size_t i = 0; i < n; i++)
        p[i] = uniform();
    return p;
}

static uint16_t *halves(size_t n)
{
    uint16_t *p = room(n * sizeof *p);

    for (size_t i = 0; i < n; i++) {
        float f = uniform();
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        p[i] = (uint16_t)(bits >> 16);
    }
    return p;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- What is measured ---- */

static int run_copy(struct smg_kernels *k)
{
    (void)k;
    memcpy(to, from, COPY);
    return 0;
}

static int products(struct smg_kernels *k, uint32_t q_heads, uint32_t kv_heads, uint32_t width, enum smg_dtype type,
                    const void *queries, const void *keys)
{
    const struct smg_scores_args a = {.requests = 1,
                                      .q_heads = q_heads,
                                      .kv_heads = kv_heads,
                                      .width = width,
                                      .max_tokens = N,
                                      .type = type,
                                      .q = queries,
                                      .key = keys,
                                      .token_stride = (uint64_t)kv_heads * width,
                                      .head_stride = width,
                                      .tokens = &tokens,
                                      .scale = 0.0883883f,
                                      .score = score};

    return smg_scores(k, &a, NULL);
}

static int run_scores(struct smg_kernels *k)
{
    return products(k, HQ, H, D, SMG_BF16, q, key);
}

static int run_partial(struct smg_kernels *k)
{
    return products(k, HQ, H, PART, SMG_BF16, q, part_key);
}

static int run_one_head(struct smg_kernels *k)
{
    return products(k, 1, 1, D, SMG_F32, q32, key32);
}

static int run_sgemv(struct smg_kernels *k)
{
    (void)k;
    smg_gemv(0, N, D, key32, D, q32, y32);
    return 0;
}

static int run_threshold(struct smg_kernels *k)
{
    const struct smg_threshold_args a = {1, HQ, N, score, &tokens, &k_max, 1, count, &keep};

    return smg_threshold(k, &a, NULL);
}

static int run_group(struct smg_kernels *k)
{
    const struct smg_group_scores_args a = {1, HQ, H, N, SMG_GROUP_SOFTMAX_SUM, score, &tokens, group};

    return smg_group_scores(k, &a, NULL);
}

static int run_skew(struct smg_kernels *k)
{
    const struct smg_skew_args a = {N, H, H, D, PART, SMG_BF16, SMG_BF16, key, basis, columns, part_key};

    return smg_skew(k, &a, NULL);
}

static int run_project(struct smg_kernels *k)
{
    const struct smg_project_args a = {6, ROWS, ROWS, SMG_BF16, x, w, y};

    return smg_project(k, &a, NULL);
}

static int run_encode(struct smg_kernels *k)
{
    const struct smg_hash_encode_args a = {ROWS, H, H, D, BITS, H, SMG_BF16, key, weight, code, norm};

    return smg_hash_encode(k, &a, NULL);
}

static int run_hash(struct smg_kernels *k)
{
    const struct smg_hash_scores_args a = {1, HQ, H, BITS, N, q_code, code, norm, &tokens, 4, 0, group};

    return smg_hash_scores(k, &a, NULL);
}

static int run_update(struct smg_kernels *k)
{
    const struct smg_page_update_args a = {0, N, H, D, PAGE, SMG_BF16, key, kmin, kmax};

    return smg_page_update(k, &a, NULL);
}

static int run_pages(struct smg_kernels *k)
{
    const struct smg_page_scores_args a = {1, HQ, H, D, N / PAGE, SMG_BF16, q, kmin, kmax, &pages, bound};

    return smg_page_scores(k, &a, NULL);
}

static int run_expand(struct smg_kernels *k)
{
    const struct smg_page_expand_args a = {H, H, N / PAGE / 5, PAGE, N / 5, chosen, &tokens, chosen_ids, length};

    return smg_page_expand(k, &a, NULL);
}

static struct bench benches[] = {
    {"memcpy", 2.0 * COPY, 0, run_copy, {0}},
    {"scores, bf16, 40 queries on 8 x 128", 2.0 * N *H *D + 4.0 * N *HQ, 2.0 * N *HQ *D, run_scores, {0}},
    {"scores, bf16, 38 columns", 2.0 * N *H *PART + 4.0 * N *HQ, 2.0 * N *HQ *PART, run_partial, {0}},
    {"scores, fp32, one query, one head", 4.0 * N *D + 4.0 * N, 2.0 * N *D, run_one_head, {0}},
    {"cblas_sgemv of the same", 4.0 * N *D + 4.0 * N, 2.0 * N *D, run_sgemv, {0}},
    {"threshold", 4.0 * N *HQ, 0, run_threshold, {0}},
    {"group_scores, softmax", 4.0 * N *(HQ + H), 0, run_group, {0}},
    {"skew of all keys to 38 columns", 2.0 * N *H *(D + PART), 2.0 * N *H *D *PART, run_skew, {0}},
    {"project, 6 rows, 4096 x 4096 bf16", 2.0 * ROWS *ROWS, 2.0 * 6 * ROWS *ROWS, run_project, {0}},
    {"hash_encode, 4096 x 8 keys, 256 bits", ROWS *H *(2.0 * D + BITS / 8 + 4), 2.0 * ROWS *H *D *BITS, run_encode, {0}},
    {"hash_scores, 256 bits and norms", 1.0 * N *H *(BITS / 8 + 4 + 4), 0, run_hash, {0}},
    {"page_update, 16 tokens", 2.0 * N *H *D *(1 + 4.0 / PAGE), 0, run_update, {0}},
    {"page_scores", 8.0 * N / PAGE *H *D, 0, run_pages, {0}},
    {"page_expand, 20 %", 4.0 * N / 5 * H, 0, run_expand, {0}},
};

enum { BENCHES = sizeof benches / sizeof benches[0] };

static void fill(void)
{
    key = halves((size_t)N * H * D);
    part_key = halves((size_t)N * H * PART);
    q = halves(HQ * D);
    key32 = floats((size_t)N * D);
    q32 = floats(D);
    score = room(sizeof *score * N * HQ);
    group = room(sizeof *group * N * H);
    weight = floats((size_t)H * D * BITS);
    basis = floats(H * D * D);
    norm = floats((size_t)N * H);
    code = room(sizeof *code * N * H * BITS / 32);
    q_code = room(sizeof *q_code * HQ * BITS / 32);
    kmin = room(sizeof *kmin * (N / PAGE) * H * D);
    kmax = room(sizeof *kmax * (N / PAGE) * H * D);
    bound = room(sizeof *bound * (N / PAGE) * H);
    y32 = room(sizeof *y32 * N);
    chosen = room(sizeof *chosen * H * (N / PAGE));
    chosen_ids = room(sizeof *chosen_ids * H * N);
    from = room(COPY);
    to = room(COPY);
    w = halves((size_t)ROWS * ROWS);
    x = halves((size_t)6 * ROWS);
    y = halves((size_t)6 * ROWS);
    for (size_t i = 0; i < (size_t)N * H * BITS / 32; i++)
        code[i] = (uint32_t)(uniform() * 2e9f);
    for (int i = 0; i < H * (N / PAGE / 5); i++)
        chosen[i] = i * 5 % (N / PAGE);
    for (int i = 0; i < H * PART; i++)
        columns[i] = (uint8_t)(i * 3 % D);
}

/* The fast backend against the reference, at full size, where one number says it: one head's scores against sgemv. */
static int check(struct smg_kernels *k)
{
    if (run_one_head(k) || run_sgemv(k))
        return 0;
    for (int j = 0; j < N; j++)
        if (!(fabsf(score[j] - y32[j] * 0.0883883f) < 1e-4f))
            return 0;
    return 1;
}

static int ascending(const void *a, const void *b)
{
    double u = *(const double *)a, v = *(const double *)b;

    return u < v ? -1 : u > v;
}

int main(void)
{
    struct smg_kernels *k;
    struct smg_diag diag = {""};
    double copy = 0;

    if (smg_kernels_open("cpu", NULL, &k, &diag))
        return fprintf(stderr, "bench_kernels_select: %s\n", diag.text), 1;
    fill();
    if (!check(k))
        return fprintf(stderr, "bench_kernels_select: wrong result\n"), 1;
    for (int r = 0; r < REPEATS; r++)
        for (int i = 0; i < BENCHES; i++) {
            double start = now();
            if (benches[i].run(k))
                return fprintf(stderr, "bench_kernels_select: %s\n", smg_kernels_diag(k)), 1;
            benches[i].seconds[r] = now() - start;
        }
    printf("%s; sgemv by %s\n%-38s %9s %8s %8s %9s\n", smg_kernels_where(k), smg_blas_name(), "", "us", "GB/s", "GFLOP/s",
           "of memcpy");
    for (int i = 0; i < BENCHES; i++) {
        struct bench *b = &benches[i];
        qsort(b->seconds, REPEATS, sizeof b->seconds[0], ascending);
        double s = b->seconds[REPEATS / 2];
        copy = i ? copy : b->bytes / s;
        printf("%-38s %9.0f %8.2f %8.1f %9.2f\n", b->what, s * 1e6, b->bytes / s * 1e-9, b->flop / s * 1e-9, b->bytes / s / copy);
    }
    smg_kernels_close(k);
    return 0;
}
