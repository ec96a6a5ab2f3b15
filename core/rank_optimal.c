#include <stddef.h>

#include "core/rank.h"
#include "core/status.h"

/* A layer that does not select attends to everything it keeps: selection frequency 1. */
static void always_used(uint32_t blocks, float *score)
{
    for (uint32_t b = 0; b < blocks; b++) {
        score[b] = 1.0f;
    }
}

static int optimal_score(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    const struct smg_grid *g = in->grid;
    const struct smg_importance *im = in->importance;

    if (im == NULL || im->request_row == NULL || im->layers != g->model->layers) {
        return SMG_ERR_INVALID;
    }
    if (!smg_model_layer_selects(g->model, layer)) {
        always_used(g->blocks, score);
        return SMG_OK;
    }
    return im->request_row(im->request_context, in->request, g->tokens, layer, g->blocks, score);
}

const struct smg_rank_type smg_rank_optimal = {
    .name = "optimal",
    .doc = "selection frequency of the evaluated request itself, which no real system knows: a bound",
    .needs_importance = 1,
    .per_request = 1,
    .score = optimal_score,
};
