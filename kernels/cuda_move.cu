/* Moving KV entries. One warp an entry, K and V halves side by side: with 256 bytes each its lanes move 16 bytes each in one go.
 * Blocks of 8 warps. The unit of a copy is 16 bytes where pointers and sizes allow it, else 4. */
#include "kernels/blocks.h"
#include "kernels/cuda_common.cuh"

enum { WARPS = 8 };

static bool by_16_bytes(const void *a, const void *b, const void *c, const void *d, uint32_t half_bytes)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | half_bytes) % 16) == 0;
}

/* units of K, then units of V, by all lanes of a warp. */
template <class U>
static __device__ __forceinline__ void copy_entry(void *k_to, void *v_to, const void *k_from, const void *v_from, uint32_t units)
{
    for (uint64_t i = threadIdx.x % 32; i < 2 * (uint64_t)units; i += 32) {
        const bool v = i >= units;
        const uint64_t at = v ? i - units : i;
        ((U *)(v ? v_to : k_to))[at] = ((const U *)(v ? v_from : k_from))[at];
    }
}

/* ---- gather: grid x over the entries of a row, y over rows ---- */

template <class U> static __global__ void gather(struct smg_gather_args a, uint64_t scale)
{
    const struct smg_kv_blocks b = a.blocks;
    const uint32_t first = b.start[0];

    for (uint32_t h = blockIdx.y; h < b.heads; h += gridDim.y) {
        const uint32_t n = a.row_entries[h];
        for (uint64_t j = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32; j < n; j += (uint64_t)gridDim.x * WARPS) {
            const int32_t id = a.ids[a.ids_start[h] + j];
            const uint64_t to = (a.to_start[h] + j) * b.half_bytes;
            if (smg_id_kept(id, first, b.tokens)) { /* the same for all lanes */
                uint64_t to_v;
                const uint32_t m = smg_block_of(b.start, b.blocks, scale, (uint32_t)id);
                const char *const from = (const char *)a.kv + smg_entry_at(&b, m, h, (uint32_t)id, &to_v);
                copy_entry<U>((char *)a.k_out + to, (char *)a.v_out + to, from, from + to_v, b.half_bytes / sizeof(U));
            }
        }
    }
}

static dim3 row_grid(uint32_t max_row_entries, uint32_t heads)
{
    return dim3(smg_div_up(max_row_entries, WARPS), heads < 65535 ? heads : 65535);
}

extern "C" int smg_cuda_gather(struct smg_kernels *k, const struct smg_gather_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, row_grid(a->max_row_entries, a->blocks.heads), 32 * WARPS, 0);
    const uint64_t scale = smg_block_scale(a->blocks.tokens, a->blocks.blocks);
    const bool wide = by_16_bytes(a->kv, a->k_out, a->v_out, NULL, a->blocks.half_bytes);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, wide ? gather<uint4> : gather<uint32_t>, *a, scale), "gather");
}

/* ---- scatter: likewise ---- */

template <class U> static __global__ void scatter(struct smg_scatter_args a)
{
    for (uint32_t h = blockIdx.y; h < a.heads; h += gridDim.y) {
        const uint32_t n = a.row_entries[h];
        for (uint64_t j = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32; j < n; j += (uint64_t)gridDim.x * WARPS) {
            const uint64_t from = (a.from_start[h] + j) * a.half_bytes, to = (a.to_start[h] + j) * a.half_bytes;
            copy_entry<U>((char *)a.k_out + to, (char *)a.v_out + to, (const char *)a.k_in + from, (const char *)a.v_in + from,
                          a.half_bytes / sizeof(U));
        }
    }
}

extern "C" int smg_cuda_scatter(struct smg_kernels *k, const struct smg_scatter_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, row_grid(a->max_row_entries, a->heads), 32 * WARPS, 0);
    const bool wide = by_16_bytes(a->k_in, a->v_in, a->k_out, a->v_out, a->half_bytes);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, wide ? scatter<uint4> : scatter<uint32_t>, *a), "scatter");
}

/* ---- pack and unpack: entries of kept tokens one after another, token-major ---- */

struct packing {
    struct smg_kv_blocks blocks;
    uint64_t scale;
    char *k, *v, *kv;
};

template <class U, bool pack> static __global__ void repack(struct packing p)
{
    const struct smg_kv_blocks b = p.blocks;
    const uint64_t entries = (uint64_t)b.tokens * b.heads, step = (uint64_t)gridDim.x * WARPS;
    uint64_t e = (uint64_t)b.start[0] * b.heads + (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;

    for (; e < entries; e += step) {
        const uint32_t t = (uint32_t)(e / b.heads), h = (uint32_t)(e % b.heads); /* [t][h] */
        uint64_t to_v;
        char *const block = p.kv + smg_entry_at(&b, smg_block_of(b.start, b.blocks, p.scale, t), h, t, &to_v);
        char *const k = p.k + e * b.half_bytes, *const v = p.v + e * b.half_bytes;
        if (pack)
            copy_entry<U>(block, block + to_v, k, v, b.half_bytes / sizeof(U));
        else
            copy_entry<U>(k, v, block, block + to_v, b.half_bytes / sizeof(U));
    }
}

template <bool pack>
static int repack_run(struct smg_kernels *k, const struct packing &p, struct smg_stream *stream, const char *name)
{
    const uint64_t blocks = ((uint64_t)p.blocks.tokens * p.blocks.heads + WARPS - 1) / WARPS;
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(blocks < 1 << 20 ? (unsigned)blocks : 1 << 20), 32 * WARPS, 0);
    const bool wide = by_16_bytes(p.k, p.v, p.kv, NULL, p.blocks.half_bytes);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, wide ? repack<uint4, pack> : repack<uint32_t, pack>, p), name);
}

extern "C" int smg_cuda_pack(struct smg_kernels *k, const struct smg_pack_args *a, struct smg_stream *stream)
{
    const struct packing p = {a->blocks, smg_block_scale(a->blocks.tokens, a->blocks.blocks), (char *)a->k, (char *)a->v,
                              (char *)a->kv};

    return repack_run<true>(k, p, stream, "pack");
}

extern "C" int smg_cuda_unpack(struct smg_kernels *k, const struct smg_unpack_args *a, struct smg_stream *stream)
{
    const struct packing p = {a->blocks, smg_block_scale(a->blocks.tokens, a->blocks.blocks), (char *)a->k, (char *)a->v,
                              (char *)a->kv};

    return repack_run<false>(k, p, stream, "unpack");
}
