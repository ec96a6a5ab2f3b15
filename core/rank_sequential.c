#include <string.h>

#include "core/rank.h"
#include "core/status.h"

/* All scores equal: the tie rule (layer, then block) is the order of memory addresses. */
static int sequential_score(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    (void)layer;
    memset(score, 0, in->grid->blocks * sizeof(*score));
    return SMG_OK;
}

const struct smg_rank_type smg_rank_sequential = {
    .name = "sequential",
    .doc = "memory-address order: layer by layer, block by block",
    .score = sequential_score,
};
