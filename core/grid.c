#include "core/grid.h"

void smg_grid_init(struct smg_grid *g, const struct smg_model *m, uint32_t tokens, uint32_t blocks_per_layer,
                   uint32_t min_block_tokens)
{
    uint32_t blocks = blocks_per_layer < tokens ? blocks_per_layer : tokens;

    /* floor(N / min) blocks are the most that can all hold min tokens: sizes differ by at most one. */
    if (min_block_tokens > 1 && blocks > tokens / min_block_tokens) {
        blocks = tokens / min_block_tokens;
    }
    g->model = m;
    g->tokens = tokens;
    g->blocks = blocks > 0 ? blocks : 1;
    g->token_layer_bytes = smg_model_token_layer_bytes(m);
    g->head_extra_bytes = g->tail_extra_bytes = 0;
}

/* First token the layer keeps. */
static uint32_t window_start(const struct smg_grid *g, uint32_t layer)
{
    return g->tokens - smg_model_layer_tokens(g->model, layer, g->tokens);
}

/* Start of block m, or of the window when that lies further right; m == blocks gives the end of the prompt. */
static uint32_t block_start(const struct smg_grid *g, uint32_t layer, uint32_t block)
{
    uint32_t cut = (uint32_t)((uint64_t)block * g->tokens / g->blocks);
    uint32_t window = window_start(g, layer);

    return cut > window ? cut : window;
}

void smg_grid_block(const struct smg_grid *g, uint32_t layer, uint32_t block, uint32_t *lo, uint32_t *hi)
{
    *lo = block_start(g, layer, block);
    *hi = block_start(g, layer, block + 1);
}

uint32_t smg_grid_first(const struct smg_grid *g, uint32_t layer)
{
    return smg_grid_block_of(g, window_start(g, layer));
}

uint32_t smg_grid_range_tokens(const struct smg_grid *g, uint32_t layer, uint32_t first, uint32_t count)
{
    return block_start(g, layer, first + count) - block_start(g, layer, first);
}

uint64_t smg_grid_range_bytes(const struct smg_grid *g, uint32_t layer, uint32_t first, uint32_t count)
{
    uint64_t bytes = smg_grid_range_tokens(g, layer, first, count) * g->token_layer_bytes;
    uint32_t head = smg_grid_first(g, layer);

    if (first <= head && first + count > head) {
        bytes += g->head_extra_bytes;
    }
    return first + count == g->blocks && count > 0 ? bytes + g->tail_extra_bytes : bytes;
}

/* The largest m with floor(m N/M) <= token, that is m N < (token + 1) M. */
uint32_t smg_grid_block_of(const struct smg_grid *g, uint32_t token)
{
    return (uint32_t)((((uint64_t)token + 1) * g->blocks - 1) / g->tokens);
}

uint32_t smg_grid_layer_blocks(const struct smg_grid *g, uint32_t layer)
{
    return g->blocks - smg_grid_first(g, layer);
}

uint32_t smg_grid_blocks_between(const struct smg_grid *g, uint32_t layer_lo, uint32_t layer_hi)
{
    uint32_t n = 0;

    for (uint32_t l = layer_lo; l < layer_hi; l++) {
        n += smg_grid_layer_blocks(g, l);
    }
    return n;
}

uint32_t smg_grid_dense_blocks(const struct smg_grid *g)
{
    return smg_grid_blocks_between(g, 0, g->model->layers < SMG_DENSE_LAYERS ? g->model->layers : SMG_DENSE_LAYERS);
}

uint32_t smg_grid_total_blocks(const struct smg_grid *g)
{
    return smg_grid_blocks_between(g, 0, g->model->layers);
}

uint64_t smg_grid_total_bytes(const struct smg_grid *g)
{
    uint64_t bytes = 0;

    for (uint32_t l = 0; l < g->model->layers; l++) {
        bytes += smg_grid_range_bytes(g, l, 0, g->blocks);
    }
    return bytes;
}
