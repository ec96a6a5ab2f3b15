/* Stable places of two kinds of elements in a block of threads, one element a thread. */
#ifndef SMG_KERNELS_CUDA_SCAN_CUH
#define SMG_KERNELS_CUDA_SCAN_CUH

#include "kernels/cuda_common.cuh"

struct smg_places {
    uint32_t a, b;         /* elements of a kind before this thread's */
    uint32_t all_a, all_b; /* in the block */
};

/* Bytes of shared memory that smg_block_places works in: two turns of one word a warp. */
enum { SMG_PLACES_BYTES = 2 * 32 * 4 };

/* All threads of the block call it (blockDim.x a multiple of 32, at most 1024), with turn 0, 1, 0, 1, ..: what one call reads is
 * written over by the next but one, with a barrier in between. Counts fit 16 bits. */
static __device__ __forceinline__ struct smg_places smg_block_places(bool is_a, bool is_b, unsigned turn)
{
    uint32_t *const warp_counts = (uint32_t *)smg_smem + 32 * (turn & 1);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const uint32_t in_a = __ballot_sync(SMG_FULL_WARP, is_a), in_b = __ballot_sync(SMG_FULL_WARP, is_b);
    const uint32_t below = (1u << lane) - 1;
    uint32_t sum, before, all;

    if (lane == 0)
        warp_counts[warp] = (uint32_t)__popc(in_a) | (uint32_t)__popc(in_b) << 16;
    __syncthreads();
    sum = lane < warps ? warp_counts[lane] : 0;
    for (unsigned step = 1; step < 32; step *= 2) { /* inclusive sums over warps, the same in each of them */
        const uint32_t left = __shfl_up_sync(SMG_FULL_WARP, sum, step);
        sum += lane >= step ? left : 0;
    }
    before = __shfl_sync(SMG_FULL_WARP, sum, warp ? warp - 1 : 0);
    all = __shfl_sync(SMG_FULL_WARP, sum, 31);
    before = warp ? before : 0;
    return {(before & 0xffff) + __popc(in_a & below), (before >> 16) + __popc(in_b & below), all & 0xffff, all >> 16};
}

#endif
