/* HACK, codes and back. Version 1: a warp a group along channels, a thread a byte of codes along tokens; sums are made from the
 * codes by a second launch, so that no order of additions is open. */
#include "kernels/cuda_common.cuh"
#include "kernels/hack.h"

/* K or V of a request, and its part of the cache. */
struct plane {
    struct smg_hack_shape s;
    struct smg_hack_part part;
    const void *x; /* [tokens][H][d] */
    uint8_t *cache;
    uint32_t number, sum_bytes; /* number 0: K, 1: V */
    int stochastic;
    uint64_t seed;
};

static const unsigned THREADS = 128, WARPS = THREADS / 32;

/* Blocks of a grid-stride loop over n threads. */
static dim3 grid_for(uint64_t n)
{
    const uint64_t blocks = (n + THREADS - 1) / THREADS;

    return dim3(blocks < 65536 ? (unsigned)blocks : 65536u);
}

template <class T>
static __device__ float element(const struct plane &p, const T *x, uint32_t row, uint32_t head, uint32_t channel)
{
    return smg_to_float<T>(x[(((uint64_t)p.part.first + row) * p.s.kv_heads + head) * p.s.head_dim + channel]);
}

/* Min and scale of a group in fp32, and, by the thread that shall, stored. Broken groups leave scale 0, a sign to code_of. */
static __device__ void set_group(const struct plane &p, uint64_t group, float least, float greatest, int bad, int shall,
                                 float *min, float *scale)
{
    const __nv_bfloat16 m = __float2bfloat16_rn(least + 0.0f);
    const float step = (greatest - __bfloat162float(m)) / (float)((1u << p.s.bits) - 1);
    __nv_bfloat16 f = __float2bfloat16_rn(step);

    if (!(__bfloat162float(f) > 0))
        f = __float2bfloat16_rn(1);
    bad |= !(step - step == 0);
    *min = __bfloat162float(m);
    *scale = bad ? 0 : __bfloat162float(f);
    if (shall) {
        ((uint16_t *)(p.cache + p.part.min))[group] = bad ? (uint16_t)SMG_HACK_NAN : __bfloat16_as_ushort(m);
        ((uint16_t *)(p.cache + p.part.scale))[group] = bad ? (uint16_t)SMG_HACK_NAN : __bfloat16_as_ushort(f);
    }
}

static __device__ uint32_t code_of(const struct plane &p, float x, float min, float scale, uint32_t row, uint32_t head,
                                   uint32_t channel)
{
    float u = -1;

    if (scale == 0)
        return 0;
    if (p.stochastic)
        u = smg_hack_random(smg_hack_random_row(p.seed, p.number, p.part.first + row, head, p.s.kv_heads), channel);
    return smg_hack_code(x, min, scale, (float)((1u << p.s.bits) - 1), u);
}

/* A warp a group: [coded][H][d / group]. */
template <class T> static __global__ void code_channels(struct plane p)
{
    const uint32_t lane = threadIdx.x % 32, d = p.s.head_dim, group = p.s.group, per = 8 / p.s.bits;
    const uint64_t warps = (uint64_t)gridDim.x * WARPS;
    const T *x = (const T *)p.x;

    for (uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < p.part.groups; i += warps) { /* whole warps */
        const uint32_t c0 = (uint32_t)(i % (d / group)) * group;
        const uint64_t at = i / (d / group); /* [coded][H] */
        const uint32_t row = (uint32_t)(at / p.s.kv_heads), head = (uint32_t)(at % p.s.kv_heads);
        float least = INFINITY, greatest = -INFINITY, min, scale;
        int bad = 0;
        for (uint32_t j = lane; j < group; j += 32) {
            const float e = element(p, x, row, head, c0 + j);
            bad |= e != e;
            least = fminf(least, e);
            greatest = fmaxf(greatest, e);
        }
        for (int step = 16; step; step /= 2) {
            least = fminf(least, __shfl_xor_sync(SMG_FULL_WARP, least, step));
            greatest = fmaxf(greatest, __shfl_xor_sync(SMG_FULL_WARP, greatest, step));
        }
        bad = __any_sync(SMG_FULL_WARP, bad);
        set_group(p, i, least, greatest, bad, lane == 0, &min, &scale);
        for (uint32_t b = lane; b < group / per; b += 32) {
            uint32_t byte = 0;
            for (uint32_t j = 0; j < per; j++) {
                const uint32_t c = c0 + b * per + j;
                byte |= code_of(p, element(p, x, row, head, c), min, scale, row, head, c) << j * p.s.bits;
            }
            p.cache[p.part.codes + at * (d / per) + c0 / per + b] = (uint8_t)byte;
        }
    }
}

/* A thread a byte of codes, that is 8 / BITS channels, over the tokens of a block: [coded / group][H][d BITS / 8]. */
template <class T, int BITS> static __global__ void code_tokens(struct plane p)
{
    const int per = 8 / BITS;
    const uint32_t d = p.s.head_dim, bytes = d / per, group = p.s.group;
    const uint64_t n = (uint64_t)(p.part.coded / group) * p.s.kv_heads * bytes, threads = (uint64_t)gridDim.x * blockDim.x;
    const T *x = (const T *)p.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        const uint32_t b = (uint32_t)(i % bytes), row0 = (uint32_t)(i / bytes / p.s.kv_heads) * group;
        const uint32_t head = (uint32_t)(i / bytes % p.s.kv_heads);
        float min[per], scale[per];
#pragma unroll
        for (int j = 0; j < per; j++) {
            const uint32_t c = b * per + j;
            float least = INFINITY, greatest = -INFINITY;
            int bad = 0;
            for (uint32_t r = row0; r < row0 + group; r++) {
                const float e = element(p, x, r, head, c);
                bad |= e != e;
                least = fminf(least, e);
                greatest = fmaxf(greatest, e);
            }
            set_group(p, smg_hack_group(&p.s, 1, row0, head, c), least, greatest, bad, 1, &min[j], &scale[j]);
        }
        for (uint32_t r = row0; r < row0 + group; r++) {
            uint32_t byte = 0;
#pragma unroll
            for (int j = 0; j < per; j++) {
                const uint32_t c = b * per + j;
                byte |= code_of(p, element(p, x, r, head, c), min[j], scale[j], r, head, c) << j * BITS;
            }
            p.cache[p.part.codes + ((uint64_t)r * p.s.kv_heads + head) * bytes + b] = (uint8_t)byte;
        }
    }
}

/* A thread a sum: K over channels [coded][H][d / group], V over tokens [coded / group][H][d]. */
static __global__ void sum_codes(struct plane p)
{
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint32_t group = p.s.group, per_row = p.part.sum_along_tokens ? p.s.head_dim : p.s.head_dim / group;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.part.sums; i += threads) {
        const uint32_t at = (uint32_t)(i % per_row), head = (uint32_t)(i / per_row % p.s.kv_heads);
        const uint32_t row = (uint32_t)(i / per_row / p.s.kv_heads);
        uint32_t sum = 0;
        for (uint32_t j = 0; j < group; j++)
            sum += p.part.sum_along_tokens ? smg_hack_code_at(&p.s, &p.part, p.cache, row * group + j, head, at)
                                           : smg_hack_code_at(&p.s, &p.part, p.cache, row, head, at * group + j);
        if (p.sum_bytes == 1)
            p.cache[p.part.sum + i] = (uint8_t)sum;
        else
            *(uint16_t *)(p.cache + p.part.sum + 2 * i) = (uint16_t)sum;
    }
}

struct gaps {
    struct smg_hack_gap gap[SMG_HACK_GAPS];
    uint8_t *cache;
};

/* 16 threads a gap. */
static __global__ void clear_gaps(struct gaps g)
{
    const uint32_t i = threadIdx.x / 16, j = threadIdx.x % 16;

    if (j < g.gap[i].bytes)
        g.cache[g.gap[i].at + j] = 0;
}

/* ---- quantize ---- */

template <class T> static cudaError_t launch_codes(const struct plane &p, struct smg_stream *stream)
{
    const uint64_t bytes = p.part.groups * p.s.bits / 8;
    cudaLaunchConfig_t c;

    if (!p.part.group_along_tokens) {
        c = smg_launch(stream, grid_for(p.part.groups * 32), THREADS, 0);
        return cudaLaunchKernelEx(&c, code_channels<T>, p);
    }
    /* Of `groups` columns, as many threads as bytes in a row of codes. */
    c = smg_launch(stream, grid_for(bytes ? bytes : 1), THREADS, 0);
    if (p.s.bits == 2)
        return cudaLaunchKernelEx(&c, code_tokens<T, 2>, p);
    if (p.s.bits == 4)
        return cudaLaunchKernelEx(&c, code_tokens<T, 4>, p);
    return cudaLaunchKernelEx(&c, code_tokens<T, 8>, p);
}

static cudaError_t quantize(const struct plane &p, struct smg_stream *stream)
{
    const size_t token = (size_t)p.s.kv_heads * p.s.head_dim * smg_dtype_bytes(p.s.type);
    const cudaStream_t native = (cudaStream_t)stream->native;
    const uint8_t *x = (const uint8_t *)p.x;
    cudaError_t error = cudaSuccess;

    if (p.part.coded) {
        const cudaLaunchConfig_t c = smg_launch(stream, grid_for(p.part.sums), THREADS, 0);
        error = p.s.type == SMG_F16    ? launch_codes<__half>(p, stream)
                : p.s.type == SMG_BF16 ? launch_codes<__nv_bfloat16>(p, stream)
                                       : launch_codes<float>(p, stream);
        if (error == cudaSuccess)
            error = cudaLaunchKernelEx(&c, sum_codes, p);
    }
    if (error == cudaSuccess && p.part.first)
        error = cudaMemcpyAsync(p.cache + p.part.sinks, x, p.part.first * token, cudaMemcpyDefault, native);
    if (error == cudaSuccess && p.part.dense_tail)
        error = cudaMemcpyAsync(p.cache + p.part.tail, x + ((size_t)p.part.first + p.part.coded) * token,
                                p.part.dense_tail * token, cudaMemcpyDefault, native);
    return error;
}

extern "C" int smg_cuda_hack_quantize(struct smg_kernels *k, const struct smg_hack_quantize_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(1), SMG_HACK_GAPS * 16, 0);
    struct smg_hack_size z;
    struct gaps g;
    cudaError_t error = cudaSuccess;

    (void)smg_hack_size(&a->shape, &z); /* checked before */
    for (uint32_t i = 0; i < 2 && error == cudaSuccess; i++) {
        const struct plane p = {a->shape, i ? z.v : z.k, i ? a->v : a->k, (uint8_t *)a->cache,
                                i,        z.sum_bytes,   a->stochastic,   a->seed};
        error = quantize(p, stream);
    }
    smg_hack_gaps(&a->shape, &z, g.gap);
    g.cache = (uint8_t *)a->cache;
    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&c, clear_gaps, g);
    return smg_cuda_status(k, error, "hack_quantize");
}

/* ---- dequantize ---- */

/* A thread an element. */
template <class T> static __global__ void restore(struct plane p, T *out)
{
    const uint32_t d = p.s.head_dim;
    const uint64_t row_elements = (uint64_t)p.s.kv_heads * d, n = p.s.tokens * row_elements;
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        const uint32_t token = (uint32_t)(i / row_elements), at = (uint32_t)(i % row_elements); /* at: [H][d] */
        const uint32_t row = token - p.part.first;
        if (token < p.part.first || row >= p.part.coded) {
            out[i] = ((const T *)(p.cache + smg_hack_dense_at(&p.part, token, row_elements * sizeof(T))))[at];
            continue;
        }
        const uint64_t group = smg_hack_group(&p.s, p.part.group_along_tokens, row, at / d, at % d);
        const float min = __bfloat162float(((const __nv_bfloat16 *)(p.cache + p.part.min))[group]);
        const float scale = __bfloat162float(((const __nv_bfloat16 *)(p.cache + p.part.scale))[group]);
        out[i] = smg_from_float<T>(min + scale * (float)smg_hack_code_at(&p.s, &p.part, p.cache, row, at / d, at % d));
    }
}

extern "C" int smg_cuda_hack_dequantize(struct smg_kernels *k, const struct smg_hack_dequantize_args *a,
                                        struct smg_stream *stream)
{
    const struct smg_hack_shape *s = &a->shape;
    const cudaLaunchConfig_t c = smg_launch(stream, grid_for((uint64_t)s->tokens * s->kv_heads * s->head_dim), THREADS, 0);
    struct smg_hack_size z;
    cudaError_t error = cudaSuccess;

    (void)smg_hack_size(s, &z); /* checked before */
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        const struct plane p = {*s, i ? z.v : z.k, NULL, (uint8_t *)const_cast<void *>(a->cache), 0, z.sum_bytes, 0, 0};
        void *out = i ? a->v : a->k;
        error = s->type == SMG_F16    ? cudaLaunchKernelEx(&c, restore<__half>, p, (__half *)out)
                : s->type == SMG_BF16 ? cudaLaunchKernelEx(&c, restore<__nv_bfloat16>, p, (__nv_bfloat16 *)out)
                                      : cudaLaunchKernelEx(&c, restore<float>, p, (float *)out);
    }
    return smg_cuda_status(k, error, "hack_dequantize");
}
