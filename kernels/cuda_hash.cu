/* HATA: codes of vectors, and scores from codes. */
#include "kernels/cuda_select.cuh"

/* ---- hash_encode: a block has up to 8 vectors of one KV head in shared memory; a thread per bit, a ballot makes the word ----
 */

enum { ENCODE_VECTORS = 8, ENCODE_THREADS = 128 };

/* Vector number v of KV head m, in order (row, head of the group): its place in x. */
static __device__ __forceinline__ uint64_t encode_row(const struct smg_hash_encode_args &a, uint64_t m, uint64_t v)
{
    const uint32_t group = a.heads / a.kv_heads;

    return v / group * a.heads + m * group + v % group;
}

/* All bits of n vectors from `first`. */
static __device__ void encode_bits(const struct smg_hash_encode_args &a, uint64_t m, uint64_t first, uint32_t n, const float *x)
{
    const uint32_t lane = threadIdx.x % 32, d = a.head_dim;
    const float *weight = a.weight + (a.weight_heads == 1 ? 0 : m * d * a.bits);

    for (uint32_t bit = threadIdx.x; bit < a.bits; bit += ENCODE_THREADS) { /* bits are a multiple of 32: warps are whole */
        float sum[ENCODE_VECTORS] = {0};
        for (uint32_t j = 0; j < d; j++) {
            const float w = weight[(uint64_t)j * a.bits + bit];
#pragma unroll
            for (uint32_t v = 0; v < ENCODE_VECTORS; v++)
                if (v < n)
                    sum[v] += x[v * d + j] * w;
        }
#pragma unroll
        for (uint32_t v = 0; v < ENCODE_VECTORS; v++) {
            const uint32_t word = __ballot_sync(SMG_FULL_WARP, sum[v] > 0);
            if (v < n && lane == 0)
                a.code[encode_row(a, m, first + v) * (a.bits / 32) + bit / 32] = word;
        }
    }
}

template <class T> static __global__ void hash_encode(struct smg_hash_encode_args a, uint64_t tiles)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = a.head_dim;
    const uint64_t vectors = (uint64_t)a.rows * (a.heads / a.kv_heads);
    float *x = (float *)smg_smem; /* [ENCODE_VECTORS][d] */

    for (uint64_t item = blockIdx.x; item < tiles * a.kv_heads; item += gridDim.x) {
        const uint64_t m = item / tiles, first = item % tiles * ENCODE_VECTORS;
        const uint32_t n = (uint32_t)min(vectors - first, (uint64_t)ENCODE_VECTORS);
        for (uint32_t i = threadIdx.x; i < n * d; i += ENCODE_THREADS)
            x[i] = smg_to_float(((const T *)a.x)[encode_row(a, m, first + i / d) * d + i % d]);
        __syncthreads();
        encode_bits(a, m, first, n, x);
        for (uint32_t v = warp; v < n && a.norm; v += ENCODE_THREADS / 32) { /* the same in all lanes */
            float square = 0;
            for (uint32_t j = lane; j < d; j += 32)
                square += x[v * d + j] * x[v * d + j];
            square = smg_warp_sum(square);
            if (lane == 0)
                a.norm[encode_row(a, m, first + v)] = sqrtf(square);
        }
        __syncthreads();
    }
}

extern "C" int smg_cuda_hash_encode(struct smg_kernels *k, const struct smg_hash_encode_args *a, struct smg_stream *stream)
{
    const uint64_t tiles = ((uint64_t)a->rows * (a->heads / a->kv_heads) + ENCODE_VECTORS - 1) / ENCODE_VECTORS;
    const cudaLaunchConfig_t c =
        smg_launch(stream, smg_blocks(tiles * a->kv_heads), ENCODE_THREADS, ENCODE_VECTORS * (size_t)a->head_dim * sizeof(float));
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, hash_encode<T>, *a, tiles));
    return smg_cuda_status(k, error, "hash_encode");
}

/* ---- hash_scores: a thread per token and KV head; a key's code is read once ---- */

static __device__ float hash_score(const struct smg_hash_scores_args &a, uint64_t b, uint64_t m, uint64_t j)
{
    const uint32_t group = a.q_heads / a.kv_heads, words = a.bits / 32;
    const uint64_t key = (b * a.max_tokens + j) * a.kv_heads + m;
    const uint32_t *q = a.q_code + (b * a.q_heads + m * group) * words; /* the same for neighbouring threads */
    uint32_t hd = 0;

    for (uint32_t w = 0; w < words; w++) {
        const uint32_t code = a.key_code[key * words + w];
        for (uint32_t g = 0; g < group; g++)
            hd += (uint32_t)__popc(q[(uint64_t)g * words + w] ^ code);
    }
    if (!a.norm)
        return 0.0f - (float)hd;
    return ((float)group - 2.0f * (float)hd / (float)a.bits) * a.norm[key];
}

static __global__ void hash_scores(struct smg_hash_scores_args a)
{
    const uint64_t n = (uint64_t)a.requests * a.kv_heads * a.max_tokens;

    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t j = i % a.max_tokens, row = i / a.max_tokens, b = row / a.kv_heads; /* score[row][j] */
        const uint32_t tokens = a.tokens[b];
        if (j >= tokens)
            a.score[i] = SMG_MINUS_INF;
        else if (j < a.sink || j + a.recent >= tokens)
            a.score[i] = SMG_PLUS_INF;
        else
            a.score[i] = hash_score(a, b, row % a.kv_heads, j);
    }
}

extern "C" int smg_cuda_hash_scores(struct smg_kernels *k, const struct smg_hash_scores_args *a, struct smg_stream *stream)
{
    const uint64_t n = (uint64_t)a->requests * a->kv_heads * a->max_tokens;
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks((n + 127) / 128), 128, 0);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, hash_scores, *a), "hash_scores");
}
