/* Exact top-k. One block of threads a row finds the k-th largest by radix, 8 bits at a time from the top, in histograms in shared
 * memory; one more pass takes what is above it, and the first that equal it, in order of id. By score: the k found of all rows
 * are sorted as pairs of (turned score, id), no two alike, so nothing need be stable: tiles in shared memory by a bitonic
 * network, then rounds of merging in which each pair finds its own place. */
#include "kernels/cuda_scan.cuh"
#include "kernels/topk_order.h"

enum {
    TILE = 1024, /* pairs sorted by one block */
    SORTERS = 256
};

/* Order as an unsigned number: radix wants bits. */
static __device__ __forceinline__ uint32_t key_of(float score)
{
    return (uint32_t)smg_order_of_score(score) ^ 0x80000000u;
}

/* ---- The k-th largest ---- */

/* In shared memory, behind what smg_block_places uses. */
struct digits {
    uint32_t count[256];
    uint32_t digit, want; /* of the round's answer */
};

/* First warp: the digit at which, from the top, the want-th key lies, and which one of those with that digit it is. Lane l looks
 * after digits 255 - 8 l and the seven below. */
static __device__ void find_digit(struct digits *s, uint32_t want)
{
    const unsigned lane = threadIdx.x;
    const int top = 255 - 8 * (int)lane;
    uint32_t mine = 0, sum;

    for (int d = top; d > top - 8; d--)
        mine += s->count[d];
    sum = mine;
    for (unsigned step = 1; step < 32; step *= 2) {
        const uint32_t above = __shfl_up_sync(SMG_FULL_WARP, sum, step);
        sum += lane >= step ? above : 0;
    }
    if (sum - mine < want && want <= sum) { /* one lane */
        uint32_t before = sum - mine;
        int d = top;
        while (before + s->count[d] < want)
            before += s->count[d--];
        s->digit = (uint32_t)d;
        s->want = want - before;
    }
}

/* Key of the want-th largest of score[n], 1 <= want <= n; *ties: how many of those that equal it belong to the want largest. */
static __device__ uint32_t find_bound(struct digits *s, const float *score, uint32_t n, uint32_t want, uint32_t *ties)
{
    uint32_t bound = 0, known = 0; /* known: bits that are found */

    for (int shift = 24; shift >= 0; shift -= 8) {
        for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
            s->count[d] = 0;
        __syncthreads();
        for (uint64_t i = threadIdx.x; i < n; i += blockDim.x) {
            const uint32_t key = key_of(score[i]);
            if ((key & known) == bound)
                atomicAdd(&s->count[key >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32)
            find_digit(s, want);
        __syncthreads();
        bound |= s->digit << shift;
        known |= 255u << shift;
        want = s->want;
    }
    *ties = want;
    return bound;
}

/* ---- A row ---- */

/* pair: [rows][k] for BY_SCORE, ascending in the order wanted; else NULL, and index is written. */
static __global__ void select_rows(struct smg_topk_args a, uint64_t *pair)
{
    struct digits *const s = (struct digits *)(smg_smem + SMG_PLACES_BYTES);
    unsigned turn = 0;

    for (uint32_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const uint32_t group = row / a.row_group, n = a.n_of_row ? smg_least(a.n_of_row[group], a.n) : a.n;
        const uint32_t take = smg_least(a.k_of_row ? smg_least(a.k_of_row[group], a.k) : a.k, n);
        const float *const score = a.score + (uint64_t)row * a.n;               /* [row][0] */
        const uint64_t out = (uint64_t)row * a.k;                               /* [row][0] */
        uint32_t ties = 0, above = 0, equal = 0;                                /* above, equal: seen so far */
        const uint32_t bound = take ? find_bound(s, score, n, take, &ties) : 0; /* the same for the block */
        for (uint64_t tile = 0; tile < n && above + smg_least(equal, ties) < take; tile += blockDim.x, turn ^= 1) {
            const uint64_t i = tile + threadIdx.x;
            const uint32_t key = i < n ? key_of(score[i]) : 0;
            const bool is_above = i < n && key > bound, is_equal = i < n && key == bound;
            const struct smg_places p = smg_block_places(is_above, is_equal, turn);
            if (is_above || (is_equal && equal + p.b < ties)) {
                const uint64_t to = out + above + p.a + smg_least(equal + p.b, ties);
                if (pair)
                    pair[to] = (uint64_t)~key << 32 | i;
                else
                    a.index[to] = (int32_t)i;
            }
            above += p.all_a;
            equal += p.all_b;
        }
        for (uint64_t i = take + (uint64_t)threadIdx.x; i < a.k; i += blockDim.x)
            a.index[out + i] = -1;
        if (threadIdx.x == 0)
            a.length[row] = take;
    }
}

/* ---- By score ---- */

/* Sorts each tile of pair[row][length[row]] ascending. */
static __global__ void sort_tiles(uint64_t *pair, const uint32_t *length, uint32_t rows, uint32_t k)
{
    uint64_t *const s = (uint64_t *)smg_smem; /* [TILE] */
    const uint64_t tiles_a_row = (k + (uint64_t)TILE - 1) / TILE, tiles = rows * tiles_a_row;

    for (uint64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const uint64_t row = t / tiles_a_row, first = t % tiles_a_row * TILE,
                       left = length[row] > first ? length[row] - first : 0;
        const uint32_t here = left < TILE ? (uint32_t)left : (uint32_t)TILE;
        uint64_t *const p = pair + row * k + first;
        uint32_t all = 1; /* a power of two, the same for the block */
        while (all < here)
            all *= 2;
        for (uint32_t i = threadIdx.x; i < all; i += blockDim.x)
            s[i] = i < here ? p[i] : UINT64_MAX;
        __syncthreads();
        for (uint32_t size = 2; size <= all; size *= 2) {
            for (uint32_t stride = size / 2; stride; stride /= 2) {
                for (uint32_t i = threadIdx.x; i < all / 2; i += blockDim.x) {
                    const uint32_t lo = 2 * i - (i & (stride - 1)), hi = lo + stride;
                    const uint64_t x = s[lo], y = s[hi];
                    if ((x > y) == !(lo & size)) {
                        s[lo] = y;
                        s[hi] = x;
                    }
                }
                __syncthreads();
            }
        }
        for (uint32_t i = threadIdx.x; i < here; i += blockDim.x)
            p[i] = s[i];
        __syncthreads();
    }
}

/* Merges sorted runs of `run` pairs two by two: a pair's place is its own in its run, and behind those of the other run that are
 * smaller. */
static __global__ void merge_runs(uint64_t *to, const uint64_t *from, const uint32_t *length, uint32_t rows, uint32_t k,
                                  uint64_t run)
{
    const uint64_t cells = (uint64_t)rows * k, step = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t c = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; c < cells; c += step) {
        const uint64_t row = c / k, i = c % k, n = length[row]; /* [row][i] */
        const uint64_t mine = i / run * run, pairs = i / (2 * run) * 2 * run;
        uint64_t lo = mine == pairs ? mine + run : pairs, hi = lo + run; /* the other run */
        const uint64_t *const p = from + row * k;
        if (i < n) {
            const uint64_t x = p[i];
            lo = lo < n ? lo : n;
            hi = hi < n ? hi : n;
            const uint64_t other = lo;
            while (lo < hi) {
                const uint64_t mid = lo + (hi - lo) / 2;
                if (p[mid] < x)
                    lo = mid + 1;
                else
                    hi = mid;
            }
            to[row * k + pairs + (i - mine) + (lo - other)] = x;
        }
    }
}

static __global__ void write_ids(int32_t *index, const uint64_t *pair, const uint32_t *length, uint32_t rows, uint32_t k)
{
    const uint64_t cells = (uint64_t)rows * k, step = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t c = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; c < cells; c += step)
        if (c % k < length[c / k])
            index[c] = (int32_t)(uint32_t)pair[c];
}

static unsigned grid_of(uint64_t n)
{
    return n < 65536 ? (unsigned)n : 65536;
}

static cudaError_t sort_by_score(const struct smg_topk_args *a, uint64_t *pair, struct smg_stream *stream)
{
    const uint64_t cells = (uint64_t)a->rows * a->k, most = a->k < a->n ? a->k : a->n;
    const cudaLaunchConfig_t tiles =
        smg_launch(stream, dim3(grid_of(a->rows * ((a->k + (uint64_t)TILE - 1) / TILE))), SORTERS, TILE * sizeof(uint64_t));
    const cudaLaunchConfig_t each = smg_launch(stream, dim3(grid_of((cells + 255) / 256)), 256, 0);
    uint64_t *other = pair + cells;
    cudaError_t error = cudaLaunchKernelEx(&tiles, sort_tiles, pair, (const uint32_t *)a->length, a->rows, a->k);

    for (uint64_t run = TILE; run < most && error == cudaSuccess; run *= 2) {
        uint64_t *const swap = pair;
        error =
            cudaLaunchKernelEx(&each, merge_runs, other, (const uint64_t *)pair, (const uint32_t *)a->length, a->rows, a->k, run);
        pair = other;
        other = swap;
    }
    if (error == cudaSuccess)
        error =
            cudaLaunchKernelEx(&each, write_ids, a->index, (const uint64_t *)pair, (const uint32_t *)a->length, a->rows, a->k);
    return error;
}

extern "C" int smg_cuda_topk(struct smg_kernels *k, const struct smg_topk_args *a, struct smg_stream *stream)
{
    const unsigned threads = a->n > 992 ? 1024 : a->n ? (a->n + 31) / 32 * 32 : 32;
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(grid_of(a->rows)), threads, SMG_PLACES_BYTES + sizeof(struct digits));
    void *pair = NULL;
    cudaError_t error;

    if (a->order == SMG_TOPK_BY_SCORE && a->k) {
        int status = smg_stream_scratch(stream, 2 * (size_t)a->rows * a->k * sizeof(uint64_t), &pair);
        if (status)
            return status;
    }
    error = cudaLaunchKernelEx(&c, select_rows, *a, (uint64_t *)pair);
    if (error == cudaSuccess && pair)
        error = sort_by_score(a, (uint64_t *)pair, stream);
    return smg_cuda_status(k, error, "topk");
}
