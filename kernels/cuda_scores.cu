/* Scores of tokens, threshold, group scores. */
#include "kernels/cuda_select.cuh"

/* ---- scores: a block has 64 tokens of one KV head and up to 8 of its queries, in shared memory; a warp per token ---- */

enum { SCORES_TOKENS = 64, SCORES_QUERIES = 8, SCORES_WARPS = 4 };

struct scores_item {
    uint64_t b, m, h, first;      /* h: the first query head */
    uint32_t queries, there, all; /* tokens that exist, and to be written */
};

static __device__ struct scores_item scores_item_of(const struct smg_scores_args &a, uint64_t item, uint64_t tiles,
                                                    uint32_t parts)
{
    const uint32_t group = a.q_heads / a.kv_heads, part = (uint32_t)(item / tiles % parts);
    const uint64_t row = item / tiles / parts;
    struct scores_item s;

    s.b = row / a.kv_heads;
    s.m = row % a.kv_heads;
    s.h = s.m * group + part * SCORES_QUERIES;
    s.queries = min(group - part * SCORES_QUERIES, (uint32_t)SCORES_QUERIES);
    s.first = item % tiles * SCORES_TOKENS;
    s.all = (uint32_t)min((uint64_t)a.max_tokens - s.first, (uint64_t)SCORES_TOKENS);
    s.there = a.tokens[s.b] < s.first ? 0 : (uint32_t)min((uint64_t)a.tokens[s.b] - s.first, (uint64_t)s.all);
    return s;
}

/* One key against the queries; lane g writes the product of query g. */
template <class T>
static __device__ __forceinline__ void scores_token(const T *key, const float *q, uint32_t width, uint32_t queries, float scale,
                                                    float *dot)
{
    const uint32_t lane = threadIdx.x % 32;
    float sum[SCORES_QUERIES] = {0};

    for (uint32_t i = lane; i < width; i += 32) {
        const float x = smg_to_float(key[i]);
#pragma unroll
        for (uint32_t g = 0; g < SCORES_QUERIES; g++)
            if (g < queries)
                sum[g] += q[g * width + i] * x;
    }
#pragma unroll
    for (uint32_t g = 0; g < SCORES_QUERIES; g++)
        if (g < queries) { /* the same in all lanes */
            const float total = smg_warp_sum(sum[g]);
            if (lane == g)
                dot[g * SCORES_TOKENS] = total * scale;
        }
}

template <class T> static __global__ void scores(struct smg_scores_args a, uint64_t tiles, uint32_t parts, uint64_t items)
{
    const uint32_t warp = threadIdx.x / 32;
    float *dot = (float *)smg_smem;                  /* [SCORES_QUERIES][SCORES_TOKENS] */
    float *q = dot + SCORES_QUERIES * SCORES_TOKENS; /* [SCORES_QUERIES][width] */

    for (uint64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const struct scores_item s = scores_item_of(a, item, tiles, parts);
        const uint64_t row = s.b * a.q_heads + s.h; /* of q and score */
        const T *key = (const T *)a.key + s.b * a.request_stride + s.m * a.head_stride;
        for (uint32_t i = threadIdx.x; i < s.queries * a.width; i += blockDim.x)
            q[i] = smg_to_float(((const T *)a.q)[row * a.width + i]);
        __syncthreads();
        for (uint32_t t = warp; t < s.there; t += SCORES_WARPS)
            scores_token(key + (s.first + t) * a.token_stride, q, a.width, s.queries, a.scale, dot + t);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < s.queries * SCORES_TOKENS; i += blockDim.x) {
            const uint32_t g = i / SCORES_TOKENS, t = i % SCORES_TOKENS;
            if (t < s.all)
                a.score[(row + g) * a.max_tokens + s.first + t] = t < s.there ? dot[i] : SMG_MINUS_INF;
        }
        __syncthreads();
    }
}

extern "C" int smg_cuda_scores(struct smg_kernels *k, const struct smg_scores_args *a, struct smg_stream *stream)
{
    const uint64_t tiles = smg_div_up(a->max_tokens, SCORES_TOKENS);
    const uint32_t parts = smg_div_up(a->q_heads / a->kv_heads, SCORES_QUERIES);
    const uint64_t items = tiles * parts * a->requests * a->kv_heads;
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks(items), 32 * SCORES_WARPS,
                                            SCORES_QUERIES * (SCORES_TOKENS + (size_t)a->width) * sizeof(float));
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, scores<T>, *a, tiles, parts, items));
    return smg_cuda_status(k, error, "scores");
}

/* ---- Reductions of a block of 256; part: 8 values in shared memory, free for use afterwards ---- */

enum { ROW_THREADS = 256 };

/* NaN counts for nothing. */
static __device__ float block_max(float x, float *part)
{
    const uint32_t lane = threadIdx.x % 32;

    x = smg_warp_max(x);
    if (lane == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = smg_warp_max(part[lane % (ROW_THREADS / 32)]);
    __syncthreads();
    return x;
}

static __device__ float block_sum(float x, float *part)
{
    x = smg_warp_sum(x);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (uint32_t i = 0; i < ROW_THREADS / 32; i++)
        x += part[i];
    __syncthreads();
    return x;
}

static __device__ float row_max(const float *score, uint32_t n, float *part)
{
    float best = SMG_MINUS_INF;

    for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
        best = score[j] > best ? score[j] : best;
    return block_max(best, part);
}

/* ---- threshold: a block per row counts, then a thread per request decides ---- */

static __global__ void threshold_count(struct smg_threshold_args a)
{
    const uint64_t rows = (uint64_t)a.requests * a.q_heads;
    float *part = (float *)smg_smem; /* [ROW_THREADS / 32] */
    uint32_t *total = (uint32_t *)(part + ROW_THREADS / 32);

    for (uint64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *score = a.score + r * a.max_tokens;
        const uint32_t n = min(a.tokens[r / a.q_heads], a.max_tokens);
        const float least = row_max(score, n, part) - a.alpha;
        uint32_t count = 0;
        if (threadIdx.x == 0)
            *total = 0;
        __syncthreads();
        for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
            count += score[j] > least;
        if (count)
            atomicAdd(total, count);
        __syncthreads();
        if (threadIdx.x == 0)
            a.count[r] = *total;
        __syncthreads();
    }
}

static __global__ void threshold_keep(struct smg_threshold_args a)
{
    for (uint64_t b = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; b < a.requests; b += (uint64_t)gridDim.x * blockDim.x) {
        const uint32_t most = min(min(a.tokens[b], a.max_tokens), a.k_max[b]);
        uint64_t sum = 0;
        for (uint32_t h = 0; h < a.q_heads; h++)
            sum += a.count[b * a.q_heads + h];
        sum /= a.q_heads;
        a.keep[b] = (uint32_t)min(sum ? sum : (uint64_t)1, (uint64_t)most);
    }
}

extern "C" int smg_cuda_threshold(struct smg_kernels *k, const struct smg_threshold_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t count =
        smg_launch(stream, smg_blocks((uint64_t)a->requests * a->q_heads), ROW_THREADS, (ROW_THREADS / 32 + 1) * sizeof(float));
    const cudaLaunchConfig_t keep = smg_launch(stream, smg_blocks(smg_div_up(a->requests, 128)), 128, 0);
    cudaError_t error = cudaLaunchKernelEx(&count, threshold_count, *a);

    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&keep, threshold_keep, *a);
    return smg_cuda_status(k, error, "threshold");
}

/* ---- group_scores: a block per row of a KV head; query heads one after the other ---- */

/* group[j] += softmax(score)[j]; NaN counts as -inf, entries of +inf share the weight. */
static __device__ void add_softmax(const float *score, uint32_t n, float *group, float *part)
{
    const float best = row_max(score, n, part);
    float total = 0, scale;

    for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
        total += score[j] == best ? 1 : score[j] < best ? expf(score[j] - best) : 0;
    scale = 1 / block_sum(total, part);
    if (best == SMG_MINUS_INF) /* the same in all threads */
        return;
    for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
        group[j] += (score[j] == best ? 1 : score[j] < best ? expf(score[j] - best) : 0) * scale;
}

static __global__ void group_scores(struct smg_group_scores_args a)
{
    const uint64_t rows = (uint64_t)a.requests * a.kv_heads, heads = a.q_heads / a.kv_heads;
    float *part = (float *)smg_smem; /* [ROW_THREADS / 32] */

    for (uint64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const uint64_t b = r / a.kv_heads, first = b * a.q_heads + r % a.kv_heads * heads;
        const uint32_t n = min(a.tokens[b], a.max_tokens);
        float *group = a.group + r * a.max_tokens; /* each element is one thread's */
        for (uint32_t j = threadIdx.x; j < a.max_tokens; j += ROW_THREADS)
            group[j] = j >= n || a.mode == SMG_GROUP_MAX ? SMG_MINUS_INF : 0;
        for (uint64_t h = first; h < first + heads; h++) {
            const float *score = a.score + h * a.max_tokens;
            if (a.mode == SMG_GROUP_SOFTMAX_SUM)
                add_softmax(score, n, group, part);
            else if (a.mode == SMG_GROUP_MAX)
                for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
                    group[j] = score[j] > group[j] ? score[j] : group[j];
            else
                for (uint32_t j = threadIdx.x; j < n; j += ROW_THREADS)
                    group[j] += score[j] == score[j] ? score[j] : SMG_MINUS_INF;
        }
        __syncthreads();
    }
}

extern "C" int smg_cuda_group_scores(struct smg_kernels *k, const struct smg_group_scores_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c =
        smg_launch(stream, smg_blocks((uint64_t)a->requests * a->kv_heads), ROW_THREADS, ROW_THREADS / 32 * sizeof(float));

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, group_scores, *a), "group_scores");
}
