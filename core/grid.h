/* Block grid: how a prompt's tokens are cut into KV blocks, layer by layer.
 *
 * Block m of a prompt of N tokens covers tokens [floor(m N/M), floor((m+1) N/M)). A prompt shorter than M tokens has N blocks,
 * and min_block_tokens may coarsen further: the grid then has fewer blocks, none of them empty in a layer that keeps everything.
 * A sliding layer keeps only its last window tokens: blocks before the window are empty, the one it cuts is shortened. */
#ifndef SMG_CORE_GRID_H
#define SMG_CORE_GRID_H

#include <stdint.h>

#include "core/model.h"

#pragma GCC visibility push(default)

struct smg_grid {
    const struct smg_model *model;
    uint32_t tokens;            /* N >= 1 */
    uint32_t blocks;            /* per layer, 1..N */
    uint64_t token_layer_bytes; /* KV bytes of one token in one layer */
    uint64_t head_extra_bytes;  /* beside that, in a layer's first and last block (quantised layouts keep some tokens dense) */
    uint64_t tail_extra_bytes;
};

void smg_grid_init(struct smg_grid *g, const struct smg_model *m, uint32_t tokens, uint32_t blocks_per_layer,
                   uint32_t min_block_tokens);
/* Tokens [*lo, *hi) of block m that the layer keeps; *lo == *hi: empty. */
void smg_grid_block(const struct smg_grid *g, uint32_t layer, uint32_t block, uint32_t *lo, uint32_t *hi);
/* First block that is not empty in this layer; blocks from there to grid.blocks are non-empty. */
uint32_t smg_grid_first(const struct smg_grid *g, uint32_t layer);
/* Tokens, and KV bytes, of blocks [first, first+count) in a layer. */
uint32_t smg_grid_range_tokens(const struct smg_grid *g, uint32_t layer, uint32_t first, uint32_t count);
uint64_t smg_grid_range_bytes(const struct smg_grid *g, uint32_t layer, uint32_t first, uint32_t count);
/* Block that holds a token the layer keeps. */
uint32_t smg_grid_block_of(const struct smg_grid *g, uint32_t token);
/* Non-empty blocks of a layer, of layers [lo, hi), of the dense layers, and of the whole prompt. */
uint32_t smg_grid_layer_blocks(const struct smg_grid *g, uint32_t layer);
uint32_t smg_grid_blocks_between(const struct smg_grid *g, uint32_t layer_lo, uint32_t layer_hi);
uint32_t smg_grid_dense_blocks(const struct smg_grid *g);
uint32_t smg_grid_total_blocks(const struct smg_grid *g);
/* Bytes of the whole prompt. */
uint64_t smg_grid_total_bytes(const struct smg_grid *g);

#pragma GCC visibility pop

#endif
