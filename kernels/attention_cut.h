/* Private to kernels/: how a row's entries are cut into tiles and parts. cpu and cuda cut alike; what matters is that only the
 * number of entries and `splits` decide, see smg_attention_args. */
#ifndef SMG_KERNELS_ATTENTION_CUT_H
#define SMG_KERNELS_ATTENTION_CUT_H

#include <stdint.h>

#include "kernels/smg_kernels.h"

#ifdef __CUDACC__
#define SMG_HOST_DEVICE __host__ __device__
#else
#define SMG_HOST_DEVICE
#endif

/* Entries of a tile, and what splits = 0 means: parts of two tiles or more, 64 at most. A part of two tiles costs about 4% more
 * bytes for its partial result; 64 parts a row keep 2 cores as well as 132 multiprocessors busy. */
enum { SMG_ATTENTION_TILE = 64, SMG_ATTENTION_PART_TILES = 2, SMG_ATTENTION_PARTS = 64 };

static SMG_HOST_DEVICE inline uint32_t smg_attention_tiles(uint32_t entries)
{
    return (entries + SMG_ATTENTION_TILE - 1) / SMG_ATTENTION_TILE;
}

/* Entries of a part, a multiple of the tile; the last part of a row may be shorter. */
static SMG_HOST_DEVICE inline uint32_t smg_attention_part(uint32_t entries, uint32_t splits)
{
    const uint32_t parts = splits ? splits : (uint32_t)SMG_ATTENTION_PARTS;
    const uint32_t least = splits ? 1 : (uint32_t)SMG_ATTENTION_PART_TILES;
    const uint32_t tiles = smg_attention_tiles(entries), each = tiles / parts + (tiles % parts != 0);

    return (each > least ? each : least) * SMG_ATTENTION_TILE;
}

static SMG_HOST_DEVICE inline uint32_t smg_attention_parts(uint32_t entries, uint32_t splits)
{
    const uint32_t part = smg_attention_part(entries, splits);

    return entries / part + (entries % part != 0);
}

/* Most parts of a row of at most so many entries. */
static SMG_HOST_DEVICE inline uint32_t smg_attention_most_parts(uint32_t entries, uint32_t splits)
{
    const uint32_t parts = splits ? splits : (uint32_t)SMG_ATTENTION_PARTS;
    const uint32_t least = splits ? 1 : (uint32_t)SMG_ATTENTION_PART_TILES;
    const uint32_t tiles = smg_attention_tiles(entries), most = tiles / least + (tiles % least != 0);

    return most < parts ? most : parts;
}

/* Entries of run i in row (b, h). */
static SMG_HOST_DEVICE inline uint32_t smg_attention_length(const struct smg_attention_run *run, uint64_t row)
{
    const uint32_t n = run->length ? run->length[row] : run->max_length;

    return n < run->max_length ? n : run->max_length;
}

/* Entries of row `row` = b * H + h; their sum over the longest lengths was checked. */
static SMG_HOST_DEVICE inline uint32_t smg_attention_entries(const struct smg_attention_args *a, uint64_t row)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < a->n_runs; r++)
        n += smg_attention_length(&a->run[r], row);
    return n;
}

static SMG_HOST_DEVICE inline uint32_t smg_attention_longest(const struct smg_attention_args *a)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < a->n_runs; r++)
        n += a->run[r].max_length;
    return n;
}

/* Scratch of parts: [requests][q_heads][most_parts] times d floats of sums, one of the maximum and one of the weight. */
static SMG_HOST_DEVICE inline uint64_t smg_attention_partials(const struct smg_attention_args *a)
{
    return (uint64_t)a->requests * a->q_heads * smg_attention_most_parts(smg_attention_longest(a), a->splits);
}

#endif
