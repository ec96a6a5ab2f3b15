/*
 * The kernels of selftest.h: block reduction, dynamic shared memory, ballot compaction, gather, scan by shuffles, 2-D tiles,
 * shared histogram, exchange within a warp. Each #ifdef SMG_BUG_* plants one bug.
 */
#include "kernels/runner/selftest/selftest.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define FULL 0xffffffffu

extern __shared__ unsigned char smg_smem[];

static __device__ float warp_sum(float v)
{
    for (int d = 16; d > 0; d >>= 1) {
        v += __shfl_down_sync(FULL, v, d);
    }
    return v;
}

/* Sum over the block, a multiple of 32 threads; valid in thread 0. */
static __device__ float block_sum(float v)
{
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    v = warp_sum(v);
    if (lane == 0) {
#ifdef SMG_BUG_STATIC_OOB
        part[warp + 31] = v;
#else
        part[warp] = v;
#endif
    }
#ifndef SMG_BUG_NO_BARRIER
    __syncthreads();
#endif
    if (warp == 0) {
        v = warp_sum(lane < warps ? part[lane] : 0.0f);
    }
    return v;
}

static __global__ void sum_kernel(float *total, const float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = block_sum(i < n ? x[i] : 0.0f);

    if (threadIdx.x == 0) {
#ifdef SMG_BUG_CROSS_BLOCK
        *total += v;
#else
        atomicAdd(total, v);
#endif
    }
}

/* One block a page, one token a thread at a time; the query sits in shared memory. */
static __global__ void scores_kernel(float *score, const __half *keys, const __half *q, int tokens, int dim)
{
    float *query = reinterpret_cast<float *>(smg_smem);
    float sum = 0.0f;

    for (int i = threadIdx.x; i < dim; i += blockDim.x) {
#ifdef SMG_BUG_UNWRITTEN
        if (i + 1 < dim)
#endif
            query[i] = __half2float(q[i]);
    }
#ifdef SMG_BUG_SHARED_OOB
    if (threadIdx.x == 0) {
        query[dim] = 0.0f;
    }
#endif
#ifdef SMG_BUG_DIVERGENT
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
#elif !defined(SMG_BUG_NO_FILL_BARRIER)
    __syncthreads();
#endif
    for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
        const __half *key = keys + ((size_t)blockIdx.x * tokens + t) * dim; /* keys[page][t][0] */
        float dot = 0.0f;
#ifdef SMG_BUG_GLOBAL_OOB
        for (int i = 0; i <= dim; i++) {
            dot += query[i < dim ? i : 0] * __half2float(key[i]);
        }
#else
        for (int i = 0; i < dim; i++) {
            dot += query[i] * __half2float(key[i]);
        }
#endif
        sum += fmaxf(dot, 0.0f);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        score[blockIdx.x] = sum;
    }
}

/* One atomicAdd a warp. */
static __global__ void select_kernel(int *index, unsigned *count, const float *x, int n, float cut)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x % 32;
    unsigned base = 0;

#ifdef SMG_BUG_EARLY_RETURN
    if (i >= n) {
        return;
    }
#endif
    const bool keep = i < n && x[i] >= cut;
    const unsigned kept = __ballot_sync(FULL, keep);
#ifdef SMG_BUG_EARLY_RETURN
    const int leader = 31;
#else
    const int leader = 0;
#endif
    if (lane == leader && kept != 0) {
        base = atomicAdd(count, (unsigned)__popc(kept));
    }
    base = __shfl_sync(FULL, base, leader);
    if (keep) {
#ifdef SMG_BUG_RANK
        index[base + __popc(kept & ((2u << lane) - 1))] = i;
#else
        index[base + __popc(kept & ((1u << lane) - 1))] = i;
#endif
    }
}

static __global__ void gather_kernel(__nv_bfloat16 *to, const __nv_bfloat16 *from, const int *index, int elements, float scale)
{
    const __nv_bfloat16 *source = from + (size_t)index[blockIdx.x] * elements;

    for (int e = threadIdx.x; e < elements; e += blockDim.x) {
        to[(size_t)blockIdx.x * elements + e] = __float2bfloat16(__bfloat162float(source[e]) * scale);
    }
}

static __global__ void scan_kernel(int *sums, const int *x, int n)
{
    __shared__ int of_warps[8];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int v = i < n ? x[i] : 0;

    for (int d = 1; d < 32; d *= 2) {
        const int below = __shfl_up_sync(FULL, v, d);
        v += lane >= d ? below : 0;
    }
    if (lane == 31) {
        of_warps[warp] = v;
    }
    __syncthreads();
    for (int w = 0; w < warp; w++) {
        v += of_warps[w];
    }
    if (i < n) {
        sums[i] = v;
    }
}

/* A tile of 32 x 32, with a column that keeps its columns in different banks. */
static __global__ void transpose_kernel(float *to, const float *from, int rows, int columns)
{
    __shared__ float tile[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;

    for (int k = 0; k < 32; k += blockDim.y) {
        if (row + k < rows && column < columns) {
#ifdef SMG_BUG_UNWRITTEN_STATIC
            if (row + k + 1 < rows)
#endif
                tile[threadIdx.y + k][threadIdx.x] = from[(size_t)(row + k) * columns + column];
        }
    }
    __syncthreads();
    row = blockIdx.y * 32 + threadIdx.x;
    column = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += blockDim.y) {
        if (row < rows && column + k < columns) {
            to[(size_t)(column + k) * rows + row] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

static __global__ void histogram_kernel(unsigned *counts, const unsigned *x, int n, int bins)
{
    unsigned *mine = reinterpret_cast<unsigned *>(smg_smem);

    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        mine[b] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
#ifdef SMG_BUG_NO_ATOMIC
        mine[x[i]]++;
#else
        atomicAdd(&mine[x[i]], 1u);
#endif
    }
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (mine[b] != 0) {
            atomicAdd(&counts[b], mine[b]);
        }
    }
}

/* Each warp exchanges through its own piece of shared memory. */
static __global__ void mirror_kernel(int *to, const int *from)
{
    int *piece = reinterpret_cast<int *>(smg_smem) + threadIdx.x / 32 * 32;
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;

    piece[lane] = from[i];
#ifndef SMG_BUG_NO_SYNCWARP
    __syncwarp();
#endif
    to[i] = piece[31 - lane];
}

/* Passes values round a ring; two barriers a step: after writing, and after reading. */
static __global__ void ring_kernel(int *sums, const int *x, int steps)
{
    int *ring = reinterpret_cast<int *>(smg_smem);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = x[i], sum = v;

    for (int s = 1; s < steps; s++) {
        ring[threadIdx.x] = v;
        __syncthreads();
        v = ring[(threadIdx.x + 1) % blockDim.x];
        sum += v;
#ifndef SMG_BUG_NO_LOOP_BARRIER
        __syncthreads();
#endif
    }
    sums[i] = sum;
}

template <class T> static __device__ T other_lane(T v)
{
    return __shfl_xor_sync(FULL, v, 1);
}

/* Warps 0 and 1 are full, warp 2 has 16 lanes. */
static __global__ void words_kernel(uint32_t *out, uint32_t *scratch)
{
    const unsigned i = threadIdx.x, lane = i % 32;
    const unsigned here = i < 64 ? FULL : 0xffffu, half = lane < 16 ? 0xffffu : 0xffff0000u;
    int word = 0;
#define PUT(value) out[word++ * SELFTEST_THREADS + i] = (uint32_t)(value)

#ifdef SMG_BUG_OWN_MASK
    PUT(__ballot_sync(here & ~1u, lane % 3 == 0));
#else
    PUT(__ballot_sync(here, lane % 3 == 0));
#endif
    PUT(__any_sync(here, lane == 5));
    PUT(__all_sync(here, lane < 16));
    PUT(__shfl_sync(here, i, 3));
    PUT(__shfl_sync(here, i, 9, 8));
    PUT(__shfl_xor_sync(here, i, 1));
    PUT(__shfl_xor_sync(here, i, 8, 8));
    PUT(__shfl_down_sync(here, i, 2, 4));
    PUT(__shfl_up_sync(here, i, 2, 4));
    if (i < 64) {
        PUT(other_lane((double)i) * 2);
        PUT(__low2float(other_lane(__floats2half2_rn((float)i, 0.0f))));
    } else {
        PUT(0);
        PUT(0);
    }
#ifdef SMG_BUG_DEADLOCK
    if (lane % 2 == 0) {
        PUT(__ballot_sync(here, 1));
    }
#endif
    /* Halves of a warp on their own ways. */
    if (lane < 16) {
        __syncwarp(half);
        PUT(__ballot_sync(half, 1));
    } else {
        PUT(__ballot_sync(half, lane & 1));
        __syncwarp(half);
    }
    PUT(__activemask());
    PUT(__syncthreads_count(i % 2));
    PUT(__syncthreads_or(i == 70));
    PUT(__syncthreads_and(i < 79));

    atomicAdd(&scratch[0], 2u);
    atomicSub(&scratch[1], 1u);
    atomicMax(reinterpret_cast<int *>(&scratch[2]), (int)i - 40);
    atomicMin(reinterpret_cast<int *>(&scratch[3]), (int)i - 40);
    atomicOr(&scratch[4], 1u << lane);
    atomicAnd(&scratch[5], ~(1u << lane));
    atomicXor(&scratch[6], i);
    if (atomicCAS(&scratch[7], 0u, i + 1) == 0u) {
        atomicExch(&scratch[8], 7u);
    }
    __threadfence();
    __syncthreads();
    PUT(scratch[i % 7]);
    PUT(scratch[8]);

    PUT(__popc(i) + __popcll(i));
    PUT(__ffs((int)i) + __ffsll(i));
    PUT(__clz((int)i) + __clzll(i));
    PUT(__float_as_uint(__uint_as_float(i)));
    PUT(__float_as_int(__int_as_float((int)i)));
    PUT(__float2int_rn((float)i + 0.5f) + __float2int_rz((float)i + 0.75f) + __float2int_rd((float)i + 0.75f) +
        __float2int_ru((float)i + 0.25f));
    PUT(__float2uint_rn((float)i * 1.5f) + __float2uint_rz((float)i * 1.5f));
    PUT(__fmaf_rn(__fadd_rn((float)i, 1.0f), 2.0f, __fsub_rn((float)i, 1.0f)));
    PUT(__fdiv_rn(__fmul_rn((float)i, 3.0f), 3.0f) + __fsqrt_rn((float)(i * i)) + 8 * __frcp_rn(8.0f));
    PUT(__int2float_rn((int)i) + __uint2float_rn(i) + __double2float_rn(i));
    PUT(min((int)i, 7) + max((int)i, 7) + min(i, 7u) + max(i, 7u));
    PUT(rintf(__expf((float)(i % 8)) * 16) + rintf(__logf((float)i + 1.0f) * 16));
    PUT(rintf(__saturatef((float)i - 8.0f) * 4) + rintf(rsqrtf((float)i + 1.0f) * 16) + rintf(__fdividef((float)i, 4.0f)));
    PUT(__ldg(&scratch[8]) + 31);
#undef PUT
}

static __global__ void large_kernel(int *to, int n, int bytes)
{
    int *all = reinterpret_cast<int *>(smg_smem);
    const int words = bytes / (int)sizeof(int);

    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        all[i] = i;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        to[i] = all[words - 1 - i % words];
    }
}

static cudaLaunchConfig_t launch(int blocks, int threads, size_t shared_bytes)
{
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(blocks);
    c.blockDim = dim3(threads);
    c.dynamicSmemBytes = shared_bytes;
    return c;
}

cudaError_t selftest_sum(float *total, const float *x, int n)
{
    const cudaLaunchConfig_t c = launch((n + 127) / 128, 128, 0);
    return cudaLaunchKernelEx(&c, sum_kernel, total, x, n);
}

cudaError_t selftest_scores(float *score, const uint16_t *keys, const uint16_t *q, int pages, int tokens, int dim)
{
    const cudaLaunchConfig_t c = launch(pages, 128, dim * sizeof(float));
    return cudaLaunchKernelEx(&c, scores_kernel, score, reinterpret_cast<const __half *>(keys),
                              reinterpret_cast<const __half *>(q), tokens, dim);
}

cudaError_t selftest_select(int *index, unsigned *count, const float *x, int n, float cut)
{
    const cudaLaunchConfig_t c = launch((n + 127) / 128, 128, 0);
    return cudaLaunchKernelEx(&c, select_kernel, index, count, x, n, cut);
}

cudaError_t selftest_gather(uint16_t *to, const uint16_t *from, const int *index, int n, int elements, float scale)
{
    const cudaLaunchConfig_t c = launch(n, 64, 0);
    return cudaLaunchKernelEx(&c, gather_kernel, reinterpret_cast<__nv_bfloat16 *>(to),
                              reinterpret_cast<const __nv_bfloat16 *>(from), index, elements, scale);
}

cudaError_t selftest_scan(int *sums, const int *x, int n)
{
    const cudaLaunchConfig_t c = launch((n + 255) / 256, 256, 0);
    return cudaLaunchKernelEx(&c, scan_kernel, sums, x, n);
}

cudaError_t selftest_transpose(float *to, const float *from, int rows, int columns)
{
    cudaLaunchConfig_t c = launch(0, 0, 0);
    c.gridDim = dim3((columns + 31) / 32, (rows + 31) / 32);
    c.blockDim = dim3(32, 8);
    return cudaLaunchKernelEx(&c, transpose_kernel, to, from, rows, columns);
}

cudaError_t selftest_histogram(unsigned *counts, const unsigned *x, int n, int bins)
{
    const cudaLaunchConfig_t c = launch(3, 128, bins * sizeof(unsigned));
    return cudaLaunchKernelEx(&c, histogram_kernel, counts, x, n, bins);
}

cudaError_t selftest_mirror(int *to, const int *from, int n)
{
    const cudaLaunchConfig_t c = launch(n / 32, 32, 32 * sizeof(int));
    return cudaLaunchKernelEx(&c, mirror_kernel, to, from);
}

cudaError_t selftest_ring(int *sums, const int *x, int n, int steps)
{
    const cudaLaunchConfig_t c = launch(n / 64, 64, 64 * sizeof(int));
    return cudaLaunchKernelEx(&c, ring_kernel, sums, x, steps);
}

cudaError_t selftest_words(uint32_t *out, uint32_t *scratch)
{
    const cudaLaunchConfig_t c = launch(1, SELFTEST_THREADS, 0);
    return cudaLaunchKernelEx(&c, words_kernel, out, scratch);
}

cudaError_t selftest_large(int *to, int n, size_t shared_bytes, int allow)
{
    const cudaLaunchConfig_t c = launch(1, 64, shared_bytes);
    if (allow) {
        const cudaError_t rc = cudaFuncSetAttribute(large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
        if (rc != cudaSuccess) {
            return rc;
        }
    }
    return cudaLaunchKernelEx(&c, large_kernel, to, n, (int)shared_bytes);
}
