/* What the benches of kernels that move data share: contenders run in turn, so that a noisy machine hits all alike; medians; and
 * memcpy on as many threads as the kernels use. Time on the clock is what counts; processor time, of all threads together, tells
 * when others were using the cores. */
#ifndef TESTS_BENCH_MOVE_H
#define TESTS_BENCH_MOVE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/threads.h"

enum { BM_ROUNDS = 9, BM_CONTENDERS = 8 };

struct bm_contender {
    const char *what;
    void (*run)(void *arg);
    void *arg;
    double ns, cpu_ns; /* medians */
};

static inline void bm_need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench: %s\n", what);
        exit(1);
    }
}

static inline void *bm_room(size_t bytes)
{
    void *p = NULL;

    bm_need(!posix_memalign(&p, 256, bytes ? bytes : 1), "out of memory");
    memset(p, 0, bytes); /* pages are there before time is taken */
    return p;
}

static inline double bm_now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static inline int bm_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double bm_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, bm_compare);
    return x[n / 2];
}

/* Each contender once to warm up, then BM_ROUNDS times in turn. */
static inline void bm_race(struct bm_contender *c, int n)
{
    double ns[BM_CONTENDERS][BM_ROUNDS], cpu[BM_CONTENDERS][BM_ROUNDS];

    for (int round = -1; round < BM_ROUNDS; round++) {
        for (int i = 0; i < n; i++) {
            double begin = bm_now_ns(CLOCK_MONOTONIC), cpu_begin = bm_now_ns(CLOCK_PROCESS_CPUTIME_ID);
            c[i].run(c[i].arg);
            if (round < 0)
                continue;
            ns[i][round] = bm_now_ns(CLOCK_MONOTONIC) - begin;
            cpu[i][round] = bm_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
        }
    }
    for (int i = 0; i < n; i++) {
        c[i].ns = bm_median(ns[i], BM_ROUNDS);
        c[i].cpu_ns = bm_median(cpu[i], BM_ROUNDS);
    }
}

/* One line a contender, beside the first: bytes moved by a run, and things of which a run does n. */
static inline void bm_print(const struct bm_contender *c, int n, const char *thing, double bytes, double things, const char **aim)
{
    printf("%-36s %7s/%-6s %8s %8s %10s  %s\n", "", "ns", thing, "GB/s", "of first", "(cpu time)", "aim");
    for (int i = 0; i < n; i++)
        printf("%-36s %14.3f %8.2f %8.2f %10.2f  %s\n", c[i].what, c[i].ns / things, bytes / c[i].ns, c[0].ns / c[i].ns,
               c[0].cpu_ns / c[i].cpu_ns, aim[i] ? aim[i] : "");
}

/* memcpy of `bytes`, one run of them a thread. */
struct bm_copy {
    struct smg_threads *threads;
    char *to;
    const char *from;
    size_t bytes;
};

static inline void bm_copy_piece(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct bm_copy *c = arg;

    (void)worker;
    memcpy(c->to + lo, c->from + lo, hi - lo);
}

static inline void bm_copy_run(void *arg)
{
    const struct bm_copy *c = arg;
    const uint32_t n = smg_threads_count(c->threads);

    smg_threads_run(c->threads, c->bytes, (c->bytes + n - 1) / n, bm_copy_piece, arg);
}

static inline uint32_t bm_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

static inline struct smg_kernels *bm_open(const char *name, const char *isa)
{
    struct smg_kernels_options options = {.isa = isa};
    struct smg_diag diag = {""};
    struct smg_kernels *k = NULL;

    if (smg_kernels_open(name, &options, &k, &diag)) {
        fprintf(stderr, "bench: %s\n", diag.text);
        exit(1);
    }
    return k;
}

#endif
