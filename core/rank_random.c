#include "core/rank.h"
#include "core/rng.h"
#include "core/status.h"

/* One substream per (request, layer), so that a score does not depend on which other layers were scored before. */
static int random_score(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    struct smg_rng rng;

    smg_rng_init(&rng, smg_hash3(in->seed, in->request, layer), "rank_random");
    for (uint32_t b = 0; b < in->grid->blocks; b++) {
        score[b] = (float)(smg_rng_u64(&rng) >> 40) * 0x1p-24f;   /* 24 bits: exact in a float */
    }
    return SMG_OK;
}

const struct smg_rank_type smg_rank_random = {
    .name = "random",
    .doc = "uniformly random, drawn anew for every request from the run's seed",
    .per_request = 1,
    .score = random_score,
};
