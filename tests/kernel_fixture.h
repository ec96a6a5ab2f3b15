/* What the tests of kernels share: every case runs on the reference, and on each other backend that is here, in the same order:
 *
 *     static void test_x(void **state)
 *     {
 *         FOR_EACH_BACKEND(f) {
 *             float *dev = kf_out(f, n * sizeof *dev);
 *             struct smg_x_args a = {.., .in = kf_in(f, host, bytes), .out = dev};
 *             kf_ok(f, smg_x(f->k, &a, NULL));
 *             kf_get(f, got, dev, bytes);
 *         }
 *     }
 *
 * Buffers have exactly the size asked for, so that a checker of memory sees one element too many; outputs begin as 0xff bytes
 * (NaN, -1). They live until the loop goes on. SMG_KERNEL_TEST_TYPES adds a backend that the product's table does not hold. */
#ifndef TESTS_KERNEL_FIXTURE_H
#define TESTS_KERNEL_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"

/* Name, options: the reference first. Added by build: a real GPU, or the .cu sources on the CPU. */
struct kf_backend {
    const struct smg_kernels_type *type;
    struct smg_kernels_options options;
};

static const struct kf_backend kf_backends[] = {
    {&smg_kernels_reference, {0, 0, NULL}},
#ifndef SMG_KERNEL_TEST_CUDA_ONLY
    {&smg_kernels_cpu, {1, 0, "base"}},
    {&smg_kernels_cpu, {3, 0, NULL}},
#endif
#ifdef SMG_KERNEL_TEST_CUDA
    {&smg_kernels_cuda, {0, 0, NULL}},
#endif
};

enum { KF_BACKENDS = sizeof kf_backends / sizeof kf_backends[0], KF_BUFFERS = 64 };

struct kernel_fixture {
    struct smg_kernels *k;
    void *buffer[KF_BUFFERS];
    unsigned n_buffers, i;
};

static inline void kf_free_all(struct kernel_fixture *f)
{
    while (f->n_buffers)
        smg_memory_free(f->k, f->buffer[--f->n_buffers]);
}

/* Opens the next backend; 0: there is none. */
static inline int kf_next(struct kernel_fixture *f, unsigned i)
{
    struct smg_diag diag = {""};

    if (f->k) {
        kf_free_all(f);
        smg_kernels_close(f->k);
        f->k = NULL;
    }
    f->i = i;
    if (i >= KF_BACKENDS)
        return 0;
    if (smg_kernels_open_type(kf_backends[i].type, &kf_backends[i].options, &f->k, &diag))
        fail_msg("%s: %s", kf_backends[i].type->name, diag.text);
    return 1;
}

#define FOR_EACH_BACKEND(f) for (struct kernel_fixture f##_value = {0}, *f = &f##_value; kf_next(f, f->k ? f->i + 1 : 0);)

/* Is this the reference, whose results the others are held against? */
static inline int kf_reference(const struct kernel_fixture *f)
{
    return f->k->type == &smg_kernels_reference;
}

#define kf_ok(f, call) kf_ok_at((f), (call), __FILE__, __LINE__)
static inline void kf_ok_at(struct kernel_fixture *f, int status, const char *file, int line)
{
    if (!status)
        status = smg_stream_sync(f->k, NULL);
    if (status)
        fail_msg("%s:%d: %s: %s (%s)", file, line, smg_kernels_where(f->k), smg_status_string(status), smg_kernels_diag(f->k));
}

static inline void *kf_out(struct kernel_fixture *f, size_t bytes)
{
    void *p = NULL;

    assert_true(f->n_buffers < KF_BUFFERS);
    kf_ok(f, smg_memory_alloc(f->k, bytes, &p));
    kf_ok(f, smg_memory_fill(f->k, p, 0xff, bytes, NULL));
    f->buffer[f->n_buffers++] = p;
    return p;
}

static inline void *kf_in(struct kernel_fixture *f, const void *host, size_t bytes)
{
    void *p = kf_out(f, bytes);

    kf_ok(f, smg_memory_copy(f->k, p, host, bytes, NULL));
    return p;
}

static inline void kf_get(struct kernel_fixture *f, void *host, const void *from, size_t bytes)
{
    kf_ok(f, smg_memory_copy(f->k, host, from, bytes, NULL));
}

/* ---- Random cases ---- */

/* xorshift32 (13, 17, 5); seed not 0. float in [-1, 1): (x >> 8) / 2^23 - 1. */
static inline uint32_t kf_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

static inline float kf_uniform(uint32_t *x)
{
    return (float)(kf_random(x) >> 8) / 8388608.0f - 1.0f;
}

/* n elements of a type, uniform in [-1, 1); free it. */
static inline void *kf_elements(uint32_t *seed, size_t n, enum smg_dtype type)
{
    void *x = malloc(n ? n * smg_dtype_bytes(type) : 1);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        smg_store(x, i, type, kf_uniform(seed));
    return x;
}

/* ---- Comparison ---- */

/* |got - expected| <= absolute + relative |expected|; equal infinities and NaNs are equal. */
#define kf_close(f, got, expected, n, absolute, relative)                                                                        \
    kf_close_at((f), (got), (expected), (n), (absolute), (relative), __FILE__, __LINE__)
static inline void kf_close_at(struct kernel_fixture *f, const float *got, const float *expected, size_t n, double absolute,
                               double relative, const char *file, int line)
{
    for (size_t i = 0; i < n; i++) {
        double g = got[i], e = expected[i];
        if (g == e || (isnan(g) && isnan(e)) || fabs(g - e) <= absolute + relative * fabs(e))
            continue;
        fail_msg("%s:%d: %s: [%zu] is %.9g, expected %.9g +- %.3g", file, line, smg_kernels_where(f->k), i, g, e,
                 absolute + relative * fabs(e));
    }
}

#define kf_same(f, got, expected, bytes) kf_same_at((f), (got), (expected), (bytes), __FILE__, __LINE__)
static inline void kf_same_at(struct kernel_fixture *f, const void *got, const void *expected, size_t bytes, const char *file,
                              int line)
{
    const unsigned char *g = got, *e = expected;

    for (size_t i = 0; i < bytes; i++)
        if (g[i] != e[i])
            fail_msg("%s:%d: %s: byte %zu of %zu is 0x%02x, expected 0x%02x", file, line, smg_kernels_where(f->k), i, bytes, g[i],
                     e[i]);
}

#endif
