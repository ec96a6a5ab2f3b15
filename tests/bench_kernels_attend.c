/* Speed of sparse decode attention on the cpu backend, in one run beside
 *   blas     OpenBLAS: scale q K^T, softmax, P V for each row (fp32 alone; the better of threads inside and around the products)
 *   gemms    the two products of that without the softmax
 *   read     a sum over all bytes of K and V (bytes a second: the most that can be read), and memcpy of them (bytes copied)
 * with the same threads. Medians of interleaved repetitions; results are checked first. Numbers are for people, not for tests. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/threads.h"

enum { REPETITIONS = 9, HEADS = 8, D = 128 };

/* K and V [requests][HEADS][entries][D], or token-major: [requests][entries][HEADS][D]. */
struct shape {
    enum smg_dtype type;
    uint32_t requests, group, entries;
    int token_major;
};

static const struct shape shapes[] = {
    {SMG_F32, 6, 5, 1400, 0},  {SMG_F32, 4, 5, 8192, 0},  {SMG_F32, 4, 4, 8192, 0},  {SMG_F32, 1, 5, 49152, 0},
    {SMG_BF16, 6, 5, 1400, 0}, {SMG_BF16, 4, 5, 8192, 0}, {SMG_BF16, 4, 4, 8192, 0}, {SMG_BF16, 2, 5, 49152, 0},
    {SMG_BF16, 4, 5, 8192, 1}, {SMG_F16, 6, 5, 1400, 0},  {SMG_F16, 4, 5, 8192, 0},  {SMG_BF16, 4, 1, 8192, 0},
};

struct bench {
    struct shape shape;
    struct smg_kernels *k;
    struct smg_threads *threads;
    struct smg_attention_args args;
    size_t bytes; /* of K, as of V */
    void *q, *key, *value, *copy;
    float *scores, *out, *blas_out, *lse;
    int softmax, inner; /* of the product with OpenBLAS: whether, and threads inside it */
    uint64_t read;
};

static void need(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench_kernels_attend: %s\n", what);
    exit(1);
}

static void *take(size_t bytes)
{
    void *p = NULL;

    need(!posix_memalign(&p, 256, bytes), "out of memory");
    return p;
}

/* Synthetic: uniform in [-1, 1), so that weights are far from equal where scale is 1 / sqrt(d) times 4. */
static void *elements(uint32_t *x, size_t n, enum smg_dtype type)
{
    void *p = take(n * smg_dtype_bytes(type));

    for (size_t i = 0; i < n; i++) {
        *x ^= *x << 13;
        *x ^= *x >> 17;
        *x ^= *x << 5;
        smg_store(p, i, type, (float)(*x >> 8) / 8388608.0f - 1.0f);
    }
    return p;
}

static void set_up(struct bench *b, const struct shape *s)
{
    const uint32_t rows = s->requests * HEADS, queries = rows * s->group;
    const size_t n = (size_t)rows * s->entries * D;
    uint32_t seed = 1;

    b->shape = *s;
    b->bytes = n * smg_dtype_bytes(s->type);
    b->q = elements(&seed, (size_t)queries * D, s->type);
    b->key = elements(&seed, n, s->type);
    b->value = elements(&seed, n, s->type);
    b->copy = take(b->bytes);
    memset(b->copy, 0, b->bytes);
    b->scores = take((size_t)queries * s->entries * sizeof(float));
    b->out = take((size_t)queries * D * sizeof(float));
    b->blas_out = take((size_t)queries * D * sizeof(float));
    b->lse = take(queries * sizeof(float));
    b->args = (struct smg_attention_args){.requests = s->requests,
                                          .q_heads = HEADS * s->group,
                                          .kv_heads = HEADS,
                                          .head_dim = D,
                                          .type = s->type,
                                          .q = b->q,
                                          .n_runs = 1,
                                          .scale = 4 / sqrtf(D),
                                          .out = b->out,
                                          .lse = b->lse};
    b->args.run[0] = (struct smg_attention_run){.k = b->key,
                                                .v = b->value,
                                                .request_stride = (uint64_t)s->entries * HEADS * D,
                                                .head_stride = s->token_major ? D : (uint64_t)s->entries * D,
                                                .entry_stride = s->token_major ? (uint64_t)HEADS * D : D,
                                                .max_length = s->entries};
}

static void tear_down(struct bench *b)
{
    free(b->q);
    free(b->key);
    free(b->value);
    free(b->copy);
    free(b->scores);
    free(b->out);
    free(b->blas_out);
    free(b->lse);
}

/* ---- What is timed ---- */

static void ours(struct bench *b)
{
    need(!smg_attention(b->k, &b->args, NULL) && !smg_stream_sync(b->k, NULL), smg_kernels_diag(b->k));
}

typedef uint64_t v4u __attribute__((vector_size(32)));

static void read_piece(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    struct bench *b = arg;
    v4u sum[4] = {{0}};

    (void)worker;
    for (int side = 0; side < 2; side++) {
        const v4u *p = side ? b->value : b->key;
        for (uint64_t i = lo / sizeof *p; i + 4 <= hi / sizeof *p; i += 4)
            for (int j = 0; j < 4; j++)
                sum[j] += p[i + (uint64_t)j];
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    __atomic_fetch_add(&b->read, sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3], __ATOMIC_RELAXED);
}

static void read_all(struct bench *b)
{
    smg_threads_run(b->threads, b->bytes, 1 << 18, read_piece, b);
}

static void copy_piece(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    struct bench *b = arg;

    (void)worker;
    memcpy((char *)b->copy + lo, (char *)b->key + lo, hi - lo);
    memcpy((char *)b->copy + lo, (char *)b->value + lo, hi - lo);
}

static void copy_all(struct bench *b)
{
    smg_threads_run(b->threads, b->bytes, 1 << 18, copy_piece, b);
}

#ifdef HAVE_OPENBLAS
static void softmax(float *s, size_t n)
{
    float most = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        most = s[i] > most ? s[i] : most;
    for (size_t i = 0; i < n; i++) {
        s[i] = expf(s[i] - most);
        sum += s[i];
    }
    for (size_t i = 0; i < n; i++)
        s[i] /= sum;
}

static void blas_rows(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    struct bench *b = arg;
    const int g = (int)b->shape.group, n = (int)b->shape.entries;

    (void)worker;
    for (uint64_t row = lo; row < hi; row++) {
        const float *q = (float *)b->q + row * (uint64_t)g * D, *k = (float *)b->key + row * (uint64_t)n * D;
        float *s = b->scores + row * (uint64_t)g * (uint64_t)n;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, g, n, D, b->args.scale, q, D, k, D, 0, s, n);
        for (int i = 0; i < g && b->softmax; i++)
            softmax(s + (size_t)i * (size_t)n, (size_t)n);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, g, D, n, 1, s, n, (float *)b->value + row * (uint64_t)n * D, D, 0,
                    b->blas_out + row * (uint64_t)g * D, D);
    }
}

static void blas_of(struct bench *b, int with_softmax, int inner)
{
    const uint64_t rows = (uint64_t)b->shape.requests * HEADS;

    b->softmax = with_softmax;
    openblas_set_num_threads(inner ? (int)smg_threads_count(b->threads) : 1);
    if (inner)
        blas_rows(b, 0, rows, 0);
    else
        smg_threads_run(b->threads, rows, 1, blas_rows, b);
}

static void blas_inner(struct bench *b)
{
    blas_of(b, 1, 1);
}

static void blas_outer(struct bench *b)
{
    blas_of(b, 1, 0);
}

static void gemms_inner(struct bench *b)
{
    blas_of(b, 0, 1);
}

static void gemms_outer(struct bench *b)
{
    blas_of(b, 0, 0);
}
#endif

/* ---- Timing ---- */

static double seconds(struct bench *b, void (*what)(struct bench *))
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    what(b);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, REPETITIONS, sizeof *x, compare);
    return x[REPETITIONS / 2];
}

enum { OURS, READ, COPY, BLAS_INNER, BLAS_OUTER, GEMMS_INNER, GEMMS_OUTER, TIMED };

static void time_all(struct bench *b, double *result)
{
    void (*what[TIMED])(struct bench *) = {ours, read_all, copy_all};
    static double t[TIMED][REPETITIONS];

#ifdef HAVE_OPENBLAS
    if (b->shape.type == SMG_F32) {
        what[BLAS_INNER] = blas_inner;
        what[BLAS_OUTER] = blas_outer;
        what[GEMMS_INNER] = gemms_inner;
        what[GEMMS_OUTER] = gemms_outer;
    }
#endif
    for (int r = -1; r < REPETITIONS; r++) /* the first one warms up */
        for (int i = 0; i < TIMED; i++) {
            double s = what[i] ? seconds(b, what[i]) : 0;
            if (r >= 0)
                t[i][r] = s;
        }
    for (int i = 0; i < TIMED; i++)
        result[i] = median(t[i]);
}

/* The first request against the reference, and all against OpenBLAS. */
static void check(struct bench *b)
{
    struct smg_kernels *reference;
    struct smg_diag diag;
    struct smg_attention_args one = b->args;
    const size_t n = (size_t)HEADS * b->shape.group * D;
    float *expected = take(n * sizeof *expected);

    need(!smg_kernels_open("reference", NULL, &reference, &diag), "no reference");
    one.requests = 1;
    one.out = expected;
    one.lse = NULL;
    need(!smg_attention(reference, &one, NULL), smg_kernels_diag(reference));
    ours(b);
    for (size_t i = 0; i < n; i++)
        need(fabsf(b->out[i] - expected[i]) < 1e-5f, "a result is wrong");
#ifdef HAVE_OPENBLAS
    if (b->shape.type == SMG_F32) {
        blas_outer(b);
        for (size_t i = 0; i < n * b->shape.requests; i++)
            need(fabsf(b->out[i] - b->blas_out[i]) < 1e-5f, "OpenBLAS differs");
    }
#endif
    smg_kernels_close(reference);
    free(expected);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void report(const struct bench *b, const double *t)
{
    const struct shape *s = &b->shape;
    const double bytes = 2.0 * (double)b->bytes;

    printf("%-5s %3u %2u %6u %-5s %9.3f %7.2f %7.2f %7.2f %6.2f", smg_dtype_name(s->type), s->requests, s->group, s->entries,
           s->token_major ? "token" : "head", t[OURS] * 1e3, bytes / t[OURS] * 1e-9, bytes / t[READ] * 1e-9,
           bytes / t[COPY] * 1e-9, t[READ] / t[OURS]);
    if (t[BLAS_OUTER] > 0)
        printf(" %7.2f %7.2f", least(t[BLAS_INNER], t[BLAS_OUTER]) / t[OURS], least(t[GEMMS_INNER], t[GEMMS_OUTER]) / t[OURS]);
    printf("\n");
    fflush(stdout);
}

int main(void)
{
    const struct smg_kernels_options options = {.threads = 2};
    static struct bench b;
    struct smg_diag diag;

    need(!smg_kernels_open("cpu", &options, &b.k, &diag), diag.text);
    need(!smg_threads_open(options.threads, &b.threads), "threads");
    printf("attention on %s; H = %d, d = %d, K and V once each; aims: /read 0.33 on long rows, /blas 0.7\n",
           smg_kernels_where(b.k), HEADS, D);
#ifndef HAVE_OPENBLAS
    printf("built without OpenBLAS: no comparison with it\n");
#endif
    printf("type    B  G entries order      ms    GB/s    read    copy  /read   /blas  /gemms\n");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        double t[TIMED];
        set_up(&b, &shapes[i]);
        check(&b);
        time_all(&b, t);
        report(&b, t);
        tear_down(&b);
    }
    smg_threads_close(b.threads);
    smg_kernels_close(b.k);
    return 0;
}
