/* Sparse decode attention, version 1: split-K with a block of 4 warps for each part of a row and up to 8 of the query heads that
 * share it, then a merge. Fixed order throughout, plain loads and fp32 arithmetic.
 *
 * A tile is 32 entries. Its keys go through shared memory: each warp takes a quarter of the channels and a lane an entry, so that
 * scores need no shuffles. One warp weighs a query head's 32 scores. Values are read once, from where they are, by threads that
 * hold 4 channels of all query heads and take every n-th entry; their sums meet at the end of the part. */
#include "kernels/attention_cut.h"
#include "kernels/cuda_common.cuh"

#include <math.h>

static constexpr uint32_t THREADS = 128, WARPS = 4, ENTRIES = 32, MERGE_THREADS = 128;

/* Four neighbouring elements. */
template <class T> struct __align__(4 * sizeof(T)) quad
{
    T x[4];
};

/* A call; sum [requests][q_heads][most_parts][4 quads], most and weight [requests][q_heads][most_parts]. */
struct call {
    struct smg_attention_args a;
    uint32_t group, blocks, heads; /* query heads of a KV head; blocks that share them; heads of a block, at most 8 */
    uint32_t most_parts;
    uint32_t quads, columns; /* of 4 channels; threads for an entry: a power of 2, not less */
    uint32_t aligned;        /* rows of K and V may be read in quads */
    float *sum, *most, *weight;
};

/* Shared memory, and how many bytes of it. */
template <class T> struct shared {
    float *q;           /* [heads][4 quads] scaled */
    quad<T> *k;         /* [ENTRIES][quads | 1]: an odd pitch, so that lanes of a column use all banks */
    const T **kp, **vp; /* [2][ENTRIES]: where rows are, of this tile and the next */
    float *s;           /* [WARPS][heads][ENTRIES] scores from a quarter of the channels; then [THREADS][4] sums of values */
    float *p, *factor;  /* [heads][ENTRIES] weights, [heads] */
};

template <class T>
static __host__ __device__ __forceinline__ size_t carve(unsigned char *from, uint32_t heads, uint32_t quads, struct shared<T> *m)
{
    size_t at = 0;

    m->q = (float *)(from + at);
    at += (size_t)heads * quads * 16;
    m->k = (quad<T> *)(from + at);
    at += ((size_t)ENTRIES * (quads | 1) * sizeof(quad<T>) + 15) / 16 * 16;
    m->kp = (const T **)(from + at);
    m->vp = m->kp + 2 * ENTRIES;
    at += 4 * ENTRIES * sizeof(T *);
    m->s = (float *)(from + at);
    at += (heads < 4 ? 4 : heads) * WARPS * ENTRIES * sizeof(float);
    m->p = (float *)(from + at);
    m->factor = m->p + heads * ENTRIES;
    at += heads * (ENTRIES + 1) * sizeof(float);
    return at;
}

/* Channels 4 c .. 4 c + 3 of a row; 0 past its end. */
template <class T> static __device__ __forceinline__ quad<T> load_quad(const T *row, uint32_t c, const struct call &x)
{
    quad<T> v;

    if (x.aligned)
        return ((const quad<T> *)row)[c];
    for (uint32_t i = 0; i < 4; i++)
        v.x[i] = 4 * c + i < x.a.head_dim ? row[4 * c + i] : smg_from_float<T>(0);
    return v;
}

template <class T> static __device__ __forceinline__ float4 widen(quad<T> v)
{
    return make_float4(smg_to_float<T>(v.x[0]), smg_to_float<T>(v.x[1]), smg_to_float<T>(v.x[2]), smg_to_float<T>(v.x[3]));
}

/* Where the rows of tile entry `lane` are; `at` counts in the whole sequence. */
template <class T>
static __device__ __forceinline__ void point(const struct call &x, uint64_t row, uint32_t at, uint32_t end, const T **k,
                                             const T **v)
{
    const uint64_t b = row / x.a.kv_heads, h = row % x.a.kv_heads;

    *k = *v = NULL;
    for (uint32_t r = 0; r < x.a.n_runs && at < end; r++) {
        const uint32_t n = smg_attention_length(&x.a.run[r], row);
        if (at < n) {
            const uint64_t i = b * x.a.run[r].request_stride + h * x.a.run[r].head_stride + at * x.a.run[r].entry_stride;
            *k = (const T *)x.a.run[r].k + i;
            *v = (const T *)x.a.run[r].v + i;
            return;
        }
        at -= n;
        end -= n;
    }
}

/* Scores of 32 entries for all heads from the channels of one warp, a quarter. Lane: entry. */
template <class T, int HEADS>
static __device__ __forceinline__ void score(const struct call &x, const struct shared<T> &m, uint32_t warp, uint32_t lane)
{
    float sum[HEADS] = {};

    for (uint32_t c = warp; c < x.quads; c += WARPS) {
        const float4 k = widen<T>(m.k[lane * (x.quads | 1) + c]);
#pragma unroll
        for (int g = 0; g < HEADS; g++) {
            const float4 q = ((const float4 *)m.q)[g * x.quads + c];
            sum[g] = fmaf(q.x, k.x, sum[g]);
            sum[g] = fmaf(q.y, k.y, sum[g]);
            sum[g] = fmaf(q.z, k.z, sum[g]);
            sum[g] = fmaf(q.w, k.w, sum[g]);
        }
    }
#pragma unroll
    for (int g = 0; g < HEADS; g++)
        m.s[(warp * HEADS + g) * ENTRIES + lane] = sum[g];
}

/* Weights of the n entries for one head: the largest score so far, the sum of weights, and the factor for what was summed before.
 * While no score is above -inf, weights are taken against 0. */
template <class T, int HEADS>
static __device__ __forceinline__ void weigh(const struct shared<T> &m, uint32_t g, uint32_t n, uint32_t lane, float *most,
                                             float *weight)
{
    const float *s = m.s + g * ENTRIES + lane;
    const float score = lane < n ? (s[0] + s[HEADS * ENTRIES]) + (s[2 * HEADS * ENTRIES] + s[3 * HEADS * ENTRIES]) : -INFINITY;
    float now = score, sum, base, factor;

    for (int i = 16; i; i /= 2)
        now = fmaxf(now, __shfl_xor_sync(SMG_FULL_WARP, now, i)); /* leaves out NaN, which the sum will show */
    now = fmaxf(*most, now);
    base = now == -INFINITY ? 0.0f : now;
    sum = expf(score - base);
    m.p[g * ENTRIES + lane] = sum;
    for (int i = 16; i; i /= 2)
        sum += __shfl_xor_sync(SMG_FULL_WARP, sum, i);
    factor = expf(*most - base);
    if (lane == 0)
        m.factor[g] = factor;
    *weight = *weight * factor + sum;
    *most = now;
}

/* sum[g] = factor sum[g] + weights times values, for channels 4 c .. 4 c + 3 and every step-th entry. */
template <class T, int HEADS>
static __device__ __forceinline__ void add_values(const struct call &x, const struct shared<T> &m, const T *const *vp, uint32_t n,
                                                  uint32_t c, uint32_t first, uint32_t step, float4 *sum)
{
#pragma unroll
    for (int g = 0; g < HEADS; g++) {
        const float f = m.factor[g];
        sum[g] = make_float4(sum[g].x * f, sum[g].y * f, sum[g].z * f, sum[g].w * f);
    }
#pragma unroll 4
    for (uint32_t j = first; j < n; j += step) {
        const float4 v = widen<T>(load_quad<T>(vp[j], c, x));
#pragma unroll
        for (int g = 0; g < HEADS; g++) {
            const float p = m.p[g * ENTRIES + j];
            sum[g].x = fmaf(p, v.x, sum[g].x);
            sum[g].y = fmaf(p, v.y, sum[g].y);
            sum[g].z = fmaf(p, v.z, sum[g].z);
            sum[g].w = fmaf(p, v.w, sum[g].w);
        }
    }
}

/* What the threads of a column have summed, in order, to the partial results of the query heads. */
template <class T, int HEADS>
static __device__ __forceinline__ void write_sums(const struct call &x, const struct shared<T> &m, const float4 *sum,
                                                  uint32_t heads, uint64_t query, uint32_t part)
{
#pragma unroll
    for (int g = 0; g < HEADS; g++) {
        __syncthreads();
        ((float4 *)m.s)[threadIdx.x] = sum[g];
        __syncthreads();
        if (threadIdx.x < x.quads && (uint32_t)g < heads) {
            float4 all = make_float4(0, 0, 0, 0);
            for (uint32_t i = threadIdx.x; i < THREADS; i += x.columns) {
                const float4 some = ((const float4 *)m.s)[i];
                all = make_float4(all.x + some.x, all.y + some.y, all.z + some.z, all.w + some.w);
            }
            /* [query][part][quad] */
            ((float4 *)x.sum)[((query + g) * x.most_parts + part) * x.quads + threadIdx.x] = all;
        }
    }
}

/* Entries [from, to) of a row for `heads` query heads from `query` on: the whole block. */
template <class T, int HEADS>
static __device__ __forceinline__ void attend(const struct call &x, uint64_t row, uint32_t part, uint32_t from, uint32_t to,
                                              uint64_t query, uint32_t heads)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t column = threadIdx.x % x.columns, first = threadIdx.x / x.columns, step = THREADS / x.columns;
    float most[(HEADS + WARPS - 1) / WARPS], weight[(HEADS + WARPS - 1) / WARPS];
    float4 sum[HEADS];
    struct shared<T> m;
    uint32_t turn = 0;

    carve<T>(smg_smem, HEADS, x.quads, &m);
    for (uint32_t i = threadIdx.x; i < HEADS * x.quads * 4; i += THREADS) { /* q [g][c] */
        const uint32_t g = i / (x.quads * 4), c = i % (x.quads * 4);
        m.q[i] = g < heads && c < x.a.head_dim ? x.a.scale * smg_to_float<T>(((const T *)x.a.q)[(query + g) * x.a.head_dim + c])
                                               : 0.0f;
    }
    if (warp == 0)
        point<T>(x, row, from + lane, to, &m.kp[lane], &m.vp[lane]);
#pragma unroll
    for (uint32_t i = 0; i < (HEADS + WARPS - 1) / WARPS; i++) {
        most[i] = -INFINITY;
        weight[i] = 0;
    }
#pragma unroll
    for (int g = 0; g < HEADS; g++)
        sum[g] = make_float4(0, 0, 0, 0);
    __syncthreads();
    for (uint32_t at = from; at < to; at += ENTRIES, turn ^= ENTRIES) {
        const uint32_t n = to - at < ENTRIES ? to - at : ENTRIES;
        for (uint32_t i = threadIdx.x; i < ENTRIES * x.quads; i += THREADS) { /* k [j][quad]; 0 past the last entry */
            const uint32_t j = i / x.quads, c = i % x.quads;
            quad<T> v = {{smg_from_float<T>(0), smg_from_float<T>(0), smg_from_float<T>(0), smg_from_float<T>(0)}};
            if (j < n)
                v = load_quad<T>(m.kp[turn + j], c, x);
            m.k[j * (x.quads | 1) + c] = v;
        }
        __syncthreads();
        score<T, HEADS>(x, m, warp, lane);
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < (HEADS + WARPS - 1) / WARPS; i++)
            if (i * WARPS + warp < HEADS) /* the same for a warp */
                weigh<T, HEADS>(m, i * WARPS + warp, n, lane, &most[i], &weight[i]);
        if (warp == WARPS - 1)
            point<T>(x, row, at + ENTRIES + lane, to, &m.kp[(turn ^ ENTRIES) + lane], &m.vp[(turn ^ ENTRIES) + lane]);
        __syncthreads();
        if (column < x.quads)
            add_values<T, HEADS>(x, m, m.vp + turn, n, column, first, step, sum);
    }
    write_sums<T, HEADS>(x, m, sum, heads, query, part);
#pragma unroll
    for (uint32_t i = 0; i < (HEADS + WARPS - 1) / WARPS; i++)
        if (lane == 0 && i * WARPS + warp < heads) {
            x.most[(query + i * WARPS + warp) * x.most_parts + part] = most[i];
            x.weight[(query + i * WARPS + warp) * x.most_parts + part] = weight[i];
        }
}

/* Grid [requests][most_parts][kv_heads][blocks]. */
template <class T, int HEADS> static __global__ void __launch_bounds__(THREADS, HEADS <= 5 ? 4 : 3) attention_parts(struct call x)
{
    const uint32_t block = blockIdx.x % x.blocks, h = blockIdx.x / x.blocks % x.a.kv_heads;
    const uint32_t part = blockIdx.x / x.blocks / x.a.kv_heads % x.most_parts;
    const uint64_t row = (uint64_t)(blockIdx.x / x.blocks / x.a.kv_heads / x.most_parts) * x.a.kv_heads + h;
    const uint32_t entries = smg_attention_entries(&x.a, row), each = smg_attention_part(entries, x.a.splits);
    const uint64_t from = (uint64_t)part * each;
    const uint32_t g = block * x.heads, left = x.group - g;

    if (from < entries) /* the same for the block */
        attend<T, HEADS>(x, row, part, (uint32_t)from, entries - from < each ? entries : (uint32_t)from + each, row * x.group + g,
                         left < x.heads ? left : x.heads);
}

/* A block for each query head: its parts, in order. */
static __global__ void __launch_bounds__(MERGE_THREADS) attention_merge(struct call x)
{
    const uint64_t query = blockIdx.x, first = query * x.most_parts;
    const uint32_t parts = smg_attention_parts(smg_attention_entries(&x.a, query / x.group), x.a.splits), d = x.a.head_dim;
    float most = -INFINITY, weight = 0, base;

    for (uint32_t i = 0; i < parts; i++)
        most = fmaxf(most, x.most[first + i]);
    base = most == -INFINITY ? 0.0f : most;
    for (uint32_t i = 0; i < parts; i++)
        weight = fmaf(expf(x.most[first + i] - base), x.weight[first + i], weight);
    for (uint32_t c = threadIdx.x; c < d; c += MERGE_THREADS) {
        float sum = 0;
        for (uint32_t i = 0; i < parts; i++)
            sum = fmaf(expf(x.most[first + i] - base), x.sum[(first + i) * x.quads * 4 + c], sum);
        x.a.out[query * d + c] = weight == 0 ? 0.0f : sum / weight;
    }
    if (threadIdx.x == 0 && x.a.lse)
        x.a.lse[query] = weight == 0 ? -INFINITY : most + logf(weight);
}

template <class T, int HEADS> static cudaError_t launch_parts(const struct call *x, struct smg_stream *stream)
{
    struct shared<T> unused;
    const uint32_t blocks = x->a.requests * x->most_parts * x->a.kv_heads * x->blocks; /* checked: below 2^31 */
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(blocks), THREADS, carve<T>(NULL, HEADS, x->quads, &unused));

    return cudaLaunchKernelEx(&c, attention_parts<T, HEADS>, *x);
}

/* Compiled for 1, 2, 4, 5 and 8 query heads: those of today's models; others leave some idle. */
template <class T> static cudaError_t launch_heads(const struct call *x, struct smg_stream *stream)
{
    switch (x->heads) {
    case 1:
        return launch_parts<T, 1>(x, stream);
    case 2:
        return launch_parts<T, 2>(x, stream);
    case 3:
    case 4:
        return launch_parts<T, 4>(x, stream);
    case 5:
        return launch_parts<T, 5>(x, stream);
    default:
        return launch_parts<T, 8>(x, stream);
    }
}

/* Rows in quads: whole ones, at addresses that allow it. */
static uint32_t rows_aligned(const struct smg_attention_args *a)
{
    const size_t bytes = smg_dtype_bytes(a->type) * 4;
    uint64_t odd = a->head_dim % 4;

    for (uint32_t r = 0; r < a->n_runs; r++) {
        const struct smg_attention_run *run = &a->run[r];
        odd |= (run->request_stride | run->head_stride | run->entry_stride) % 4;
        odd |= ((uintptr_t)run->k | (uintptr_t)run->v) % bytes;
    }
    return !odd;
}

extern "C" int smg_cuda_attention(struct smg_kernels *k, const struct smg_attention_args *a, struct smg_stream *stream)
{
    const uint32_t queries = a->requests * a->q_heads;
    const cudaLaunchConfig_t merge = smg_launch(stream, dim3(queries), MERGE_THREADS, 0);
    const uint64_t partials = smg_attention_partials(a);
    struct call x = {};
    cudaError_t error = cudaSuccess;
    void *scratch;
    int status;

    x.a = *a;
    x.group = a->q_heads / a->kv_heads;
    x.blocks = (x.group + 7) / 8;
    x.heads = (x.group + x.blocks - 1) / x.blocks;
    x.most_parts = smg_attention_most_parts(smg_attention_longest(a), a->splits);
    x.quads = (a->head_dim + 3) / 4;
    for (x.columns = 4; x.columns < x.quads; x.columns *= 2)
        ;
    x.aligned = rows_aligned(a);
    status = smg_stream_scratch(stream, partials * (x.quads * 4 + 2) * sizeof(float), &scratch);
    if (status)
        return status;
    x.sum = (float *)scratch;
    x.most = x.sum + partials * x.quads * 4;
    x.weight = x.most + partials;
    if (x.most_parts)
        error = a->type == SMG_F32   ? launch_heads<float>(&x, stream)
                : a->type == SMG_F16 ? launch_heads<__half>(&x, stream)
                                     : launch_heads<__nv_bfloat16>(&x, stream);
    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&merge, attention_merge, x);
    return smg_cuda_status(k, error, "attention");
}
