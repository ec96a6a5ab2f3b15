/* Private to kernels/: from a token to its block, and from an entry to its bytes. For C and .cu sources. */
#ifndef SMG_KERNELS_BLOCKS_H
#define SMG_KERNELS_BLOCKS_H

#include "kernels/anywhere.h"
#include "kernels/smg_kernels.h"

/* A token's block is guessed as token * scale / 2^32: for the grid floor(m N/M), M <= N, that is right or one too low, but for
 * the last tokens of a few large grids. tokens and blocks in 1 .. 2^31 - 1. */
SMG_ANYWHERE uint64_t smg_block_scale(uint32_t tokens, uint32_t blocks)
{
    return ((uint64_t)blocks << 32) / tokens + 1;
}

/* The block m with start[m] <= token < start[m + 1]; start[0] <= token < start[blocks], token < tokens. */
SMG_ANYWHERE uint32_t smg_block_of(const uint32_t *start, uint32_t blocks, uint64_t scale, uint32_t token)
{
    uint32_t m = (uint32_t)(token * scale >> 32), hi = blocks;

    m = m < blocks ? m : blocks - 1;
    m += m + 1 < blocks && start[m + 1] <= token;
    if (start[m] <= token && token < start[m + 1])
        return m;
    /* Another grid: the last m with start[m] <= token. */
    for (m = 0; hi - m > 1;) {
        uint32_t mid = m + (hi - m) / 2;
        if (start[mid] <= token)
            m = mid;
        else
            hi = mid;
    }
    return m;
}

/* Is id a token in [first, tokens)? Negative ids are not. */
SMG_ANYWHERE int smg_id_kept(int32_t id, uint32_t first, uint32_t tokens)
{
    return id >= 0 && (uint32_t)id >= first && (uint32_t)id < tokens;
}

/* Where the K half of an entry of block m lies, and how far behind it the V half; bytes. */
SMG_ANYWHERE uint64_t smg_entry_at(const struct smg_kv_blocks *b, uint32_t m, uint32_t head, uint32_t token, uint64_t *to_v)
{
    const uint64_t lo = b->start[m], n = b->start[m + 1] - lo;

    *to_v = b->heads * n * b->half_bytes;
    return ((lo - b->start[0]) * b->heads * 2 + head * n + (token - lo)) * b->half_bytes;
}

#endif
