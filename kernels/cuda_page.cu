/* Quest: bounds of pages, bounds of scores, chosen pages to tokens. */
#include "kernels/cuda_select.cuh"

/* ---- page_update: a thread per page and element ---- */

template <class T> static __global__ void page_update(struct smg_page_update_args a, uint64_t pages)
{
    const uint64_t row = (uint64_t)a.kv_heads * a.head_dim, first = a.first, end = first + a.count;

    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < pages * row; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t page = first / a.page + i / row, x = i % row, begin = page * a.page;
        const uint64_t to = min(begin + a.page, end);
        uint64_t t = begin < first ? first : begin;
        float least, most;
        if (begin < first) { /* widened */
            least = a.kmin[page * row + x];
            most = a.kmax[page * row + x];
        } else {
            least = most = smg_to_float(((const T *)a.key)[(t - first) * row + x]);
            t++;
        }
        for (; t < to; t++) {
            const float key = smg_to_float(((const T *)a.key)[(t - first) * row + x]);
            least = key < least ? key : least;
            most = key > most ? key : most;
        }
        a.kmin[page * row + x] = least;
        a.kmax[page * row + x] = most;
    }
}

extern "C" int smg_cuda_page_update(struct smg_kernels *k, const struct smg_page_update_args *a, struct smg_stream *stream)
{
    const uint64_t pages = (a->first + a->count - 1) / a->page - a->first / a->page + 1;
    const uint64_t n = pages * a->kv_heads * a->head_dim;
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks((n + 127) / 128), 128, 0);
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, page_update<T>, *a, pages));
    return smg_cuda_status(k, error, "page_update");
}

/* ---- page_scores: a warp per page and KV head; the bounds are read once for all queries of the group ---- */

template <class T> static __device__ float page_bound(const struct smg_page_scores_args &a, uint64_t b, uint64_t m, uint64_t page)
{
    const uint32_t lane = threadIdx.x % 32, group = a.q_heads / a.kv_heads, d = a.head_dim;
    const uint64_t at = ((b * a.max_pages + page) * a.kv_heads + m) * d;
    const T *q = (const T *)a.q + (b * a.q_heads + m * group) * d; /* [group][d] */
    float sum = 0;

    for (uint32_t i = lane; i < d; i += 32) {
        const float low = a.kmin[at + i], high = a.kmax[at + i];
        for (uint32_t g = 0; g < group; g++) {
            const float x = smg_to_float(q[(uint64_t)g * d + i]), u = x * high, v = x * low;
            sum += u > v ? u : v;
        }
    }
    return smg_warp_sum(sum);
}

enum { PAGE_WARPS = 4 };

template <class T> static __global__ void page_scores(struct smg_page_scores_args a)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t n = (uint64_t)a.requests * a.kv_heads * a.max_pages;

    for (uint64_t i = (uint64_t)blockIdx.x * PAGE_WARPS + threadIdx.x / 32; i < n; i += (uint64_t)gridDim.x * PAGE_WARPS) {
        const uint64_t page = i % a.max_pages, row = i / a.max_pages, b = row / a.kv_heads; /* bound[row][page] */
        const uint32_t pages = a.pages[b];
        float bound = page + 1 == pages ? SMG_PLUS_INF : SMG_MINUS_INF;
        if (page + 1 < pages) /* the same in all lanes */
            bound = page_bound<T>(a, b, row % a.kv_heads, page);
        if (lane == 0)
            a.bound[i] = bound;
    }
}

extern "C" int smg_cuda_page_scores(struct smg_kernels *k, const struct smg_page_scores_args *a, struct smg_stream *stream)
{
    const uint64_t n = (uint64_t)a->requests * a->kv_heads * a->max_pages;
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks((n + PAGE_WARPS - 1) / PAGE_WARPS), 32 * PAGE_WARPS, 0);
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, page_scores<T>, *a));
    return smg_cuda_status(k, error, "page_scores");
}

/* ---- page_expand: a warp per row; a lane per page finds where its tokens go, then the lanes copy page by page ---- */

/* Tokens of 32 pages to index from n on; returns the new n. */
static __device__ uint32_t expand_pages(const struct smg_page_expand_args &a, int32_t page, uint32_t tokens, uint32_t n,
                                        int32_t *index)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t begin = page < 0 ? tokens : (uint64_t)page * a.page;
    uint32_t count = begin < tokens ? (uint32_t)min((uint64_t)a.page, tokens - begin) : 0, end = min(count, a.k - n);

    for (int i = 1; i < 32; i *= 2) { /* where the lane's page ends; no more than k - n, so that nothing overflows */
        const uint32_t before = __shfl_up_sync(SMG_FULL_WARP, end, i);
        if (lane >= (uint32_t)i)
            end = (uint32_t)min((uint64_t)end + before, (uint64_t)(a.k - n));
    }
    for (int p = 0; p < 32; p++) {
        const uint32_t to = __shfl_sync(SMG_FULL_WARP, end, p), from = p ? __shfl_sync(SMG_FULL_WARP, end, p - 1) : 0;
        const uint64_t first = __shfl_sync(SMG_FULL_WARP, begin, p);
        for (uint32_t i = from + lane; i < to; i += 32)
            index[n + i] = (int32_t)(first + (i - from));
    }
    return n + __shfl_sync(SMG_FULL_WARP, end, 31);
}

enum { EXPAND_WARPS = 4 };

static __global__ void page_expand(struct smg_page_expand_args a)
{
    const uint32_t lane = threadIdx.x % 32;

    for (uint64_t r = (uint64_t)blockIdx.x * EXPAND_WARPS + threadIdx.x / 32; r < a.rows;
         r += (uint64_t)gridDim.x * EXPAND_WARPS) {
        const int32_t *chosen = a.chosen + r * a.n_pages;
        int32_t *index = a.index + r * a.k;
        uint32_t n = 0;
        for (uint64_t c = 0; c < a.n_pages && n < a.k; c += 32) /* the same in all lanes */
            n = expand_pages(a, c + lane < a.n_pages ? chosen[c + lane] : -1, a.tokens[r / a.row_group], n, index);
        for (uint32_t i = n + lane; i < a.k; i += 32)
            index[i] = -1;
        if (lane == 0)
            a.length[r] = n;
    }
}

extern "C" int smg_cuda_page_expand(struct smg_kernels *k, const struct smg_page_expand_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c =
        smg_launch(stream, smg_blocks(((uint64_t)a->rows + EXPAND_WARPS - 1) / EXPAND_WARPS), 32 * EXPAND_WARPS, 0);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, page_expand, *a), "page_expand");
}
