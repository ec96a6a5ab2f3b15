/* What the .cu files share. They are compiled by nvcc, and by g++ or clang++ through kernels/runner: docs/kernels.md has the ten
 * conventions that make both work. */
#ifndef SMG_KERNELS_CUDA_COMMON_CUH
#define SMG_KERNELS_CUDA_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/backend.h"

/* The one dynamic shared memory; carved by casts at offsets that are multiples of 16. */
extern __shared__ unsigned char smg_smem[];

#define SMG_FULL_WARP 0xffffffffu

template <class T> static __device__ __forceinline__ float smg_to_float(T x);
template <> __device__ __forceinline__ float smg_to_float<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ float smg_to_float<__half>(__half x)
{
    return __half2float(x);
}
template <> __device__ __forceinline__ float smg_to_float<__nv_bfloat16>(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <class T> static __device__ __forceinline__ T smg_from_float(float x);
template <> __device__ __forceinline__ float smg_from_float<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ __half smg_from_float<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 smg_from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Grid of one dimension per argument; blocks_x at most 2^31 - 1, y and z 65535. */
static inline cudaLaunchConfig_t smg_launch(struct smg_stream *stream, dim3 grid, unsigned threads, size_t smem_bytes)
{
    cudaLaunchConfig_t c = {};

    c.gridDim = grid;
    c.blockDim = dim3(threads);
    c.dynamicSmemBytes = smem_bytes;
    c.stream = (cudaStream_t)stream->native;
    return c;
}

/* Status of a CUDA call; a failure goes to k->diag with the name of what was tried. */
int smg_cuda_status(struct smg_kernels *k, cudaError_t error, const char *what);

static inline unsigned smg_div_up(uint64_t n, unsigned by)
{
    return (unsigned)((n + by - 1) / by);
}

#endif
