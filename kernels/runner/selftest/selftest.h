/*
 * Small kernels that exercise what the project's kernels use, to test the CPU runner itself. All pointers are device pointers.
 * Functions return the status of the launch. With -DSMG_BUG_NAME the kernels have the bug of that name
 * (kernels/runner/mutants.txt).
 */
#ifndef SMG_KERNELS_RUNNER_SELFTEST_H
#define SMG_KERNELS_RUNNER_SELFTEST_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* total[0] += sum of x[n]. */
cudaError_t selftest_sum(float *total, const float *x, int n);
/* score[p] = sum over the page's tokens of max(0, q . key); keys[pages][tokens][dim] and q[dim] are halves. */
cudaError_t selftest_scores(float *score, const uint16_t *keys, const uint16_t *q, int pages, int tokens, int dim);
/* index[0..count[0]) = those i with x[i] >= cut, in no order; count[0] must be 0 before. */
cudaError_t selftest_select(int *index, unsigned *count, const float *x, int n, float cut);
/* to[i][elements] = scale * from[index[i]][elements], bfloat16. */
cudaError_t selftest_gather(uint16_t *to, const uint16_t *from, const int *index, int n, int elements, float scale);
/* sums[i] = x[0] + ... + x[i], within each run of 256. */
cudaError_t selftest_scan(int *sums, const int *x, int n);
/* to[columns][rows] = transpose of from[rows][columns]. */
cudaError_t selftest_transpose(float *to, const float *from, int rows, int columns);
/* counts[bins] += how often x[n] holds each of 0 .. bins - 1; bins <= 4096. */
cudaError_t selftest_histogram(unsigned *counts, const unsigned *x, int n, int bins);
/* to[i] = from[i with its place in the warp mirrored]; n a multiple of 32. */
cudaError_t selftest_mirror(int *to, const int *from, int n);
/* sums[i] = x[i] + x[i + 1] + ... + x[i + steps - 1], within each run of 64, around its end; n a multiple of 64. */
cudaError_t selftest_ring(int *sums, const int *x, int n, int steps);
/* largest[i][4] = the four largest of x[i][m], falling. */
cudaError_t selftest_largest(float *largest, const float *x, int n, int m);

/* What each thread of one block of 64 + 16 sees of warp operations, atomics and intrinsics: out[SELFTEST_WORDS][80]. */
enum { SELFTEST_THREADS = 80, SELFTEST_WORDS = 32 };
cudaError_t selftest_words(uint32_t *out, uint32_t *scratch);

/* Fills n words through a kernel with so many bytes of dynamic shared memory; allow: the kernel is first told that it may have
 * them. */
cudaError_t selftest_large(int *to, int n, size_t shared_bytes, int allow);

#ifdef __cplusplus
}
#endif

#endif
