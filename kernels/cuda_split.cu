/* Algorithm 1. One block of threads a row, one pass over the index: remote entries go to the front, local ones aside (scratch),
 * and behind the remote ones when their number is known. */
#include "kernels/cuda_scan.cuh"

enum { DROPPED = 0, LOCAL = 1, REMOTE = 2 };

/* Someone may write the mask meanwhile: it is read once. */
static __device__ int locate(const struct smg_split_args &a, uint32_t row, int32_t id)
{
    int value;

    if (id < 0 || (uint32_t)id >= a.width)
        return DROPPED;
    value = *(const volatile int8_t *)&a.mask[(uint64_t)(row / a.heads) * a.width + (uint32_t)id]; /* mask[request][id] */
    if (value == REMOTE && a.kept && a.kept[(uint64_t)row * a.kept_words + (uint32_t)id / 64] >> ((uint32_t)id % 64) & 1)
        return LOCAL;
    return value == LOCAL || value == REMOTE ? value : DROPPED;
}

/* aside: [rows][k], with reorder. */
static __global__ void split(struct smg_split_args a, int32_t *aside)
{
    unsigned turn = 0;

    for (uint32_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const uint64_t at = (uint64_t)row * a.k; /* [row][0] */
        uint32_t n_remote = 0, n_local = 0;
        for (uint64_t tile = 0; tile < a.k; tile += blockDim.x, turn ^= 1) {
            const uint64_t i = tile + threadIdx.x;
            const int32_t id = i < a.k ? a.index[at + i] : -1;
            const int where = locate(a, row, id);
            const struct smg_places p = smg_block_places(where == REMOTE, where == LOCAL, turn);
            if (where != DROPPED && !a.reorder) {
                const uint64_t to = at + n_remote + n_local + p.a + p.b;
                a.out_index[to] = id;
                if (a.remote)
                    a.remote[to] = where == REMOTE;
            } else if (where == REMOTE) {
                a.out_index[at + n_remote + p.a] = id;
            } else if (where == LOCAL) {
                aside[at + n_local + p.b] = id;
            }
            n_remote += p.all_a;
            n_local += p.all_b;
        }
        __syncthreads(); /* aside is complete */
        for (uint64_t i = threadIdx.x; i < a.k; i += blockDim.x) {
            const bool past = i >= (uint64_t)n_remote + n_local;
            if (past)
                a.out_index[at + i] = -1;
            else if (a.reorder && i >= n_remote)
                a.out_index[at + i] = aside[at + i - n_remote];
            if (a.remote && (past || a.reorder))
                a.remote[at + i] = i < n_remote && !past;
        }
        if (threadIdx.x == 0) {
            a.n_remote[row] = n_remote;
            a.n_local[row] = n_local;
        }
    }
}

extern "C" int smg_cuda_split(struct smg_kernels *k, const struct smg_split_args *a, struct smg_stream *stream)
{
    const unsigned threads = a->k > 992 ? 1024 : a->k ? (a->k + 31) / 32 * 32 : 32;
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(a->rows < 65536 ? a->rows : 65536), threads, SMG_PLACES_BYTES);
    void *aside = NULL;

    if (a->reorder && a->k) {
        int status = smg_stream_scratch(stream, (size_t)a->rows * a->k * sizeof(int32_t), &aside);
        if (status)
            return status;
    }
    return smg_cuda_status(k, cudaLaunchKernelEx(&c, split, *a, (int32_t *)aside), "split");
}
