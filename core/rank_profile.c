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

static int profile_score(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    const struct smg_grid *g = in->grid;
    const struct smg_importance *im = in->importance;

    if (im == NULL || im->layers != g->model->layers) {
        return SMG_ERR_INVALID;
    }
    if (smg_model_layer_selects(g->model, layer)) {
        smg_importance_resample(im, smg_importance_group(im, g->tokens), layer, g->blocks, score);
    } else {
        always_used(g->blocks, score);
    }
    return SMG_OK;
}

const struct smg_rank_type smg_rank_profile = {
    .name = "profile",
    .doc = "selection frequency on a calibration set (Eq. 1), by prompt-length group",
    .needs_importance = 1,
    .score = profile_score,
};
