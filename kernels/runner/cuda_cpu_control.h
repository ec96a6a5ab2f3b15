/* What a test program may ask of the CPU runner of the CUDA sources. Call none of it while a kernel runs. */
#ifndef SMG_KERNELS_RUNNER_CUDA_CPU_CONTROL_H
#define SMG_KERNELS_RUNNER_CUDA_CPU_CONTROL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * In which order ready threads of a block run, and the blocks of a grid: "fwd" (by index), "rev", or "rand", drawn from the seed.
 * Without a call: SMG_CUDA_ORDER and SMG_CUDA_SEED of the environment, else "fwd". Returns 0, or -1 (nothing changes) for another
 * word.
 */
int smg_cuda_order(const char *order, unsigned seed);

/* The n-th CUDA runtime call or launch from now on fails, with cudaErrorUnknown and without effect; 0: none does. */
void smg_cuda_fail(unsigned n);
/* Runtime calls and launches since the program began. */
unsigned long smg_cuda_calls(void);

/* What has been allocated and not freed: device and pinned memory, streams, events. */
size_t smg_cuda_live(void);

#ifdef __cplusplus
}
#endif

#endif
