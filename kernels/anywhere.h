/* Private to kernels/: SMG_ANYWHERE begins a function that C and .cu sources share. And the least of two, for both. */
#ifndef SMG_KERNELS_ANYWHERE_H
#define SMG_KERNELS_ANYWHERE_H

#include <stdint.h>

#ifdef __CUDACC__
#define SMG_ANYWHERE static __host__ __device__ __forceinline__
#else
#define SMG_ANYWHERE static inline __attribute__((unused))
#endif

SMG_ANYWHERE uint32_t smg_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif
