/*
 * Tests the kernels of selftest.h, on the CPU runner or, linked with the CUDA runtime, on a GPU (no device: exit 77). All numbers
 * are small multiples of powers of two, so every sum is exact in any order and results are compared bit by bit.
 */
#include "kernels/runner/selftest/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of the runner's own functions, where it is linked (api.c). */
int selftest_api(void);
#ifdef SMG_CUDA_GPU
int selftest_api(void)
{
    return 0;
}
#endif

static int failed, passed;
static unsigned state = 1;

/* Pseudo-random, 0 .. n - 1. */
static unsigned draw(unsigned n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static float eighths(void)
{
    return (float)((int)draw(32) - 16) / 8.0f;
}

static void must(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
        exit(rc == cudaErrorNoDevice || rc == cudaErrorInsufficientDriver ? 77 : 1);
    }
}
#define MUST(call) must((call), #call)

static void check(int ok, const char *what, int n)
{
    if (ok) {
        passed++;
    } else {
        failed++;
        printf("fail: %s, size %d\n", what, n);
    }
}

/* Memory of the device with a copy of bytes (host NULL: zeros); of one byte at least. */
static void *to_device(const void *host, size_t bytes)
{
    void *p;

    MUST(cudaMalloc(&p, bytes + !bytes));
    if (host)
        MUST(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    else
        MUST(cudaMemset(p, 0, bytes));
    return p;
}

/* Copies back and frees. */
static void from_device(void *host, void *p, size_t bytes)
{
    MUST(cudaDeviceSynchronize());
    if (host)
        MUST(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaFree(p));
}

static void *array(size_t n, size_t bytes)
{
    void *p = calloc(n + !n, bytes);

    if (!p) {
        perror("calloc");
        exit(1);
    }
    return p;
}

/* Exact values of few bits only. */
static uint16_t half_of(float x)
{
    int exponent;
    const float m = frexpf(fabsf(x), &exponent);

    if (x == 0)
        return 0;
    return (uint16_t)((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(m * 2048.0f) - 1024));
}

static uint16_t bfloat_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void test_sum(int n)
{
    float *x = array((size_t)n, sizeof *x), total = 0, expected = 0;

    for (int i = 0; i < n; i++)
        expected += x[i] = eighths();
    float *dx = to_device(x, (size_t)n * sizeof *x), *dt = to_device(NULL, sizeof total);
#ifdef SMG_BUG_HOST_POINTER
    MUST(selftest_sum(dt, x, n));
#else
    MUST(selftest_sum(dt, dx, n));
#endif
#ifdef SMG_BUG_HOST_READ
    MUST(cudaDeviceSynchronize());
    total = *dt;
    from_device(NULL, dt, 0);
#else
    from_device(&total, dt, sizeof total);
#endif
    from_device(NULL, dx, 0);
    check(total == expected, "sum", n);
    free(x);
}

static void test_scores(int pages, int tokens, int dim)
{
    const size_t n = (size_t)pages * (size_t)tokens * (size_t)dim;
    uint16_t *keys = array(n, sizeof *keys), *q = array((size_t)dim, sizeof *q);
    float *fkeys = array(n, sizeof *fkeys), *fq = array((size_t)dim, sizeof *fq), *score = array((size_t)pages, sizeof *score);
    int ok = 1;

    for (size_t i = 0; i < n; i++)
        keys[i] = half_of(fkeys[i] = eighths());
    for (int i = 0; i < dim; i++)
        q[i] = half_of(fq[i] = eighths());
    uint16_t *dk = to_device(keys, n * sizeof *keys), *dq = to_device(q, (size_t)dim * sizeof *q);
    float *ds = to_device(NULL, (size_t)pages * sizeof *score);
    MUST(selftest_scores(ds, dk, dq, pages, tokens, dim));
    from_device(score, ds, (size_t)pages * sizeof *score);
    from_device(NULL, dk, 0);
    from_device(NULL, dq, 0);
    for (int p = 0; p < pages; p++) {
        float sum = 0;
        for (int t = 0; t < tokens; t++) {
            float dot = 0;
            for (int i = 0; i < dim; i++)
                dot += fq[i] * fkeys[((size_t)p * (size_t)tokens + (size_t)t) * (size_t)dim + (size_t)i];
            sum += fmaxf(dot, 0);
        }
        ok &= sum == score[p];
    }
    check(ok, "scores", pages);
    free(keys), free(q), free(fkeys), free(fq), free(score);
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void test_select(int n, float cut)
{
    const size_t bytes = (size_t)n * sizeof(int);
    float *x = array((size_t)n, sizeof *x);
    int *expected = array((size_t)n, sizeof *expected), *index = array((size_t)n, sizeof *index);
    unsigned count, m = 0;

    for (int i = 0; i < n; i++)
        if ((x[i] = eighths()) >= cut)
            expected[m++] = i;
    float *dx = to_device(x, bytes);
    int *di = to_device(NULL, bytes);
    unsigned *dc = to_device(NULL, sizeof count);
    MUST(selftest_select(di, dc, dx, n, cut));
    from_device(index, di, bytes);
    from_device(&count, dc, sizeof count);
    from_device(NULL, dx, 0);
    qsort(index, m, sizeof *index, by_value);
    check(count == m && memcmp(index, expected, m * sizeof *index) == 0, "select", n);
    free(x), free(expected), free(index);
}

static void test_gather(int n, int elements)
{
    const size_t all = (size_t)n * (size_t)elements, bytes = all * sizeof(uint16_t);
    uint16_t *from = array(all, sizeof *from), *to = array(all, sizeof *to), *expected = array(all, sizeof *expected);
    int *index = array((size_t)n, sizeof *index);
    float *values = array(all, sizeof *values);

    for (size_t i = 0; i < all; i++)
        from[i] = bfloat_of(values[i] = eighths());
    for (int i = 0; i < n; i++)
        index[i] = (int)draw((unsigned)n);
    for (size_t i = 0; i < all; i++)
        expected[i] = bfloat_of(values[(size_t)index[i / (size_t)elements] * (size_t)elements + i % (size_t)elements] * 0.5f);
    uint16_t *df = to_device(from, bytes), *dt = to_device(NULL, bytes);
    int *di = to_device(index, (size_t)n * sizeof *index);
    MUST(selftest_gather(dt, df, di, n, elements, 0.5f));
    from_device(to, dt, bytes);
    from_device(NULL, df, 0);
    from_device(NULL, di, 0);
    check(memcmp(to, expected, bytes) == 0, "gather", n);
    free(from), free(to), free(expected), free(index), free(values);
}

static void test_scan(int n)
{
    const size_t bytes = (size_t)n * sizeof(int);
    int *x = array((size_t)n, sizeof *x), *sums = array((size_t)n, sizeof *sums), ok = 1, sum = 0;

    for (int i = 0; i < n; i++)
        x[i] = (int)draw(100) - 50;
    int *dx = to_device(x, bytes), *ds = to_device(NULL, bytes);
    MUST(selftest_scan(ds, dx, n));
    from_device(sums, ds, bytes);
    from_device(NULL, dx, 0);
    for (int i = 0; i < n; i++) {
        sum = x[i] + (i % 256 ? sum : 0);
        ok &= sums[i] == sum;
    }
    check(ok, "scan", n);
    free(x), free(sums);
}

static void test_transpose(int rows, int columns)
{
    const size_t all = (size_t)rows * (size_t)columns, bytes = all * sizeof(float);
    float *x = array(all, sizeof *x), *y = array(all, sizeof *y);
    int ok = 1;

    for (size_t i = 0; i < all; i++)
        x[i] = (float)i + 1;
    float *dx = to_device(x, bytes), *dy = to_device(NULL, bytes);
    MUST(selftest_transpose(dy, dx, rows, columns));
    from_device(y, dy, bytes);
    from_device(NULL, dx, 0);
    for (size_t i = 0; i < all; i++)
        ok &= y[i % (size_t)columns * (size_t)rows + i / (size_t)columns] == x[i];
    check(ok, "transpose", rows);
    free(x), free(y);
}

static void test_histogram(int n, int bins)
{
    unsigned *x = array((size_t)n, sizeof *x), *expected = array((size_t)bins, sizeof *x),
             *counts = array((size_t)bins, sizeof *x);

    for (int i = 0; i < n; i++)
        expected[x[i] = draw((unsigned)bins)]++;
    unsigned *dx = to_device(x, (size_t)n * sizeof *x), *dc = to_device(NULL, (size_t)bins * sizeof *x);
    MUST(selftest_histogram(dc, dx, n, bins));
    from_device(counts, dc, (size_t)bins * sizeof *x);
    from_device(NULL, dx, 0);
    check(memcmp(counts, expected, (size_t)bins * sizeof *x) == 0, "histogram", n);
    free(x), free(expected), free(counts);
}

/* Two kernels that permute or add within groups of threads. */
static void test_exchange(int n, int steps)
{
    const size_t bytes = (size_t)n * sizeof(int);
    int *x = array((size_t)n, sizeof *x), *mirrored = array((size_t)n, sizeof *x), *sums = array((size_t)n, sizeof *x), ok = 1;

    for (int i = 0; i < n; i++)
        x[i] = (int)draw(1000);
    int *dx = to_device(x, bytes), *dm = to_device(NULL, bytes), *ds = to_device(NULL, bytes);
    MUST(selftest_mirror(dm, dx, n));
    MUST(selftest_ring(ds, dx, n, steps));
    from_device(mirrored, dm, bytes);
    from_device(sums, ds, bytes);
    from_device(NULL, dx, 0);
    for (int i = 0; i < n; i++)
        ok &= mirrored[i] == x[i / 32 * 32 + 31 - i % 32];
    check(ok, "mirror", n);
    ok = 1;
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int s = 0; s < steps; s++)
            sum += x[i / 64 * 64 + (i + s) % 64];
        ok &= sums[i] == sum;
    }
    check(ok, "ring", n);
    free(x), free(mirrored), free(sums);
}

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static void test_largest(int n, int m)
{
    const size_t all = (size_t)n * (size_t)m;
    float *x = array(all, sizeof *x), *largest = array((size_t)n * 4, sizeof *x);
    int ok = 1;

    for (size_t i = 0; i < all; i++)
        x[i] = (float)draw(10000);
    float *dx = to_device(x, all * sizeof *x), *dl = to_device(NULL, (size_t)n * 4 * sizeof *x);
    MUST(selftest_largest(dl, dx, n, m));
    from_device(largest, dl, (size_t)n * 4 * sizeof *x);
    from_device(NULL, dx, 0);
    for (int i = 0; i < n; i++) {
        qsort(x + (size_t)i * (size_t)m, (size_t)m, sizeof *x, falling);
        ok &= memcmp(largest + (size_t)i * 4, x + (size_t)i * (size_t)m, 4 * sizeof *x) == 0;
    }
    check(ok, "largest", n);
    free(x), free(largest);
}

static unsigned bits_of(unsigned x)
{
    return (unsigned)__builtin_popcount(x);
}

/* What thread i of words_kernel must see. */
static void expect_words(unsigned i, const uint32_t *scratch, uint32_t *e)
{
    const unsigned lane = i % 32, warp = i / 32 * 32, full = i < 64, group = i / 4 * 4;
    const uint32_t thirds = 0x49249249u;

    *e++ = full ? thirds : thirds & 0xffffu;
    *e++ = 1;
    *e++ = !full;
    *e++ = warp + 3;
    *e++ = i / 8 * 8 + 1;
    *e++ = i ^ 1;
    *e++ = (lane ^ 8) > (lane | 7) ? i : i ^ 8;
    *e++ = i - group < 2 ? i + 2 : i;
    *e++ = i - group < 2 ? i : i - 2;
    *e++ = full ? (i ^ 1) * 2 : 0;
    *e++ = full ? i ^ 1 : 0;
    *e++ = lane < 16 ? 0xffffu : 0xaaaa0000u;
    *e++ = full ? 0xffffffffu : 0xffffu;
    *e++ = 40;
    *e++ = 1;
    *e++ = 0;
    *e++ = scratch[i % 7];
    *e++ = 7;
    *e++ = 2 * bits_of(i);
    *e++ = 2 * (unsigned)__builtin_ffs((int)i);
    *e++ = i ? 2 * (unsigned)__builtin_clz(i) + 32 : 96;
    *e++ = i;
    *e++ = i;
    *e++ = (unsigned)rintf((float)i + 0.5f) + i + i + i + 1;
    *e++ = (unsigned)rintf((float)i * 1.5f) + i * 3 / 2;
    *e++ = 2 * (i + 1) + i - 1;
    *e++ = 2 * i + 1;
    *e++ = 3 * i;
    *e++ = 2 * (i + 7);
    *e++ = (uint32_t)(rintf(expf((float)(i % 8)) * 16) + rintf(logf((float)i + 1.0f) * 16));
    *e++ = (uint32_t)((i < 9 ? 0 : 4) + rintf(1.0f / sqrtf((float)i + 1.0f) * 16) + rintf((float)i / 4.0f));
    *e++ = 7 + 31;
}

static void test_words(void)
{
    enum { N = SELFTEST_THREADS };
    static uint32_t out[SELFTEST_WORDS][N];
    uint32_t start[9] = {0, 0, 0x80000000u, 0x7fffffffu, 0, 0xffffffffu, 0, 0, 0};
    uint32_t scratch[9] = {2 * N, (uint32_t)-N, 39, (uint32_t)-40, 0xffffffffu, 0, 0, 0, 0};
    int ok = 1;

    for (unsigned i = 0; i < N; i++)
        scratch[6] ^= i;
    uint32_t *ds = to_device(start, sizeof start), *dout = to_device(NULL, sizeof out);
    MUST(selftest_words(dout, ds));
    from_device(out, dout, sizeof out);
    from_device(NULL, ds, 0);
    for (unsigned i = 0; i < N; i++) {
        uint32_t expected[SELFTEST_WORDS];
        expect_words(i, scratch, expected);
        for (int w = 0; w < SELFTEST_WORDS; w++) {
            if (out[w][i] != expected[w] && ok) {
                printf("words: word %d of thread %u: expected %u, found %u\n", w, i, expected[w], out[w][i]);
                ok = 0;
            }
        }
    }
    check(ok, "words", N);
}

static void test_large(void)
{
    enum { N = 100, BYTES = 60 * 1024 };
    int to[N], ok = 1;
    int *d = to_device(NULL, sizeof to);

    check(selftest_large(d, N, BYTES, 0) != cudaSuccess, "large without leave", BYTES);
    cudaGetLastError();
    MUST(selftest_large(d, N, BYTES, 1));
    from_device(to, d, sizeof to);
    for (int i = 0; i < N; i++)
        ok &= to[i] == BYTES / 4 - 1 - i;
    check(ok, "large", BYTES);
}

int main(void)
{
    static const int sizes[] = {1, 31, 32, 33, 127, 128, 129, 300};
    int devices = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skip: no CUDA device\n");
        return 77;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i];
        test_sum(n);
        test_select(n, 0.5f);
        test_gather(n < 10 ? n : 10, n);
        test_scan(n);
        test_transpose(n < 130 ? n : 70, n < 40 ? 70 : 33);
        test_histogram(n, 37);
        test_largest(n, 20);
        test_scores(n < 10 ? n : 10, 137, n < 40 ? n : 40);
    }
    test_select(200, -9.0f);
    test_select(200, 9.0f);
    test_exchange(192, 7);
    test_words();
    test_large();
    failed += selftest_api();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
