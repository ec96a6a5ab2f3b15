/* What the selectors' .cu files share. */
#ifndef SMG_KERNELS_CUDA_SELECT_CUH
#define SMG_KERNELS_CUDA_SELECT_CUH

#include "kernels/cuda_common.cuh"

#define SMG_MINUS_INF __int_as_float((int)0xff800000u)
#define SMG_PLUS_INF  __int_as_float(0x7f800000)

/* Blocks for so many items; kernels go on to item + gridDim.x. */
static inline dim3 smg_blocks(uint64_t items)
{
    return dim3((unsigned)(items < 1u << 20 ? items : 1u << 20));
}

/* All lanes of a warp call them, and all get the result. The order of additions is fixed. */
static __device__ __forceinline__ float smg_warp_sum(float x)
{
    for (int i = 16; i; i /= 2)
        x += __shfl_xor_sync(SMG_FULL_WARP, x, i);
    return x;
}

static __device__ __forceinline__ float smg_warp_max(float x)
{
    for (int i = 16; i; i /= 2)
        x = fmaxf(x, __shfl_xor_sync(SMG_FULL_WARP, x, i));
    return x;
}

/* Calls CALL with T the type of elements. */
#define SMG_BY_TYPE(type, CALL)                                                                                                  \
    do {                                                                                                                         \
        if ((type) == SMG_F32) {                                                                                                 \
            using T = float;                                                                                                     \
            CALL;                                                                                                                \
        } else if ((type) == SMG_F16) {                                                                                          \
            using T = __half;                                                                                                    \
            CALL;                                                                                                                \
        } else {                                                                                                                 \
            using T = __nv_bfloat16;                                                                                             \
            CALL;                                                                                                                \
        }                                                                                                                        \
    } while (0)

#endif
