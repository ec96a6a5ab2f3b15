/* Private to kernels/: a fixed set of threads that share loops. Started once; a loop costs a few microseconds of waking, so short
 * ones run on the caller alone. */
#ifndef SMG_KERNELS_THREADS_H
#define SMG_KERNELS_THREADS_H

#include <stdint.h>

struct smg_threads;

/* n threads, the caller of smg_threads_run included; 0: as many as the process may use (its CPU affinity), at most 64. */
int smg_threads_open(uint32_t n, struct smg_threads **out);
void smg_threads_close(struct smg_threads *t);
uint32_t smg_threads_count(const struct smg_threads *t);

/* Works on [lo, hi) of a loop. worker: 0 (the caller) to count - 1, no two at the same time with one number. */
typedef void (*smg_loop_fn)(void *arg, uint64_t lo, uint64_t hi, uint32_t worker);

/* Runs fn over [0, n) in pieces of at most grain (0 counts as 1), each once, in any order; returns when all are done. fn must not
 * call it again. n <= grain runs here and now. One caller at a time. */
void smg_threads_run(struct smg_threads *t, uint64_t n, uint64_t grain, smg_loop_fn fn, void *arg);

#endif
