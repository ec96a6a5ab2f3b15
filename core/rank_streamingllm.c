#include "core/rank.h"
#include "core/status.h"

/* Sink block first, then from the newest block back. The score is a function of the block alone, so ties break by layer and a
 * budget of a share y covers the sink and the last y*M blocks of every layer. Floats hold block numbers exactly up to 2^24. */
static int streamingllm_score(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    uint32_t blocks = in->grid->blocks;

    (void)layer;
    score[0] = (float)blocks;
    for (uint32_t b = 1; b < blocks; b++) {
        score[b] = (float)b;
    }
    return SMG_OK;
}

const struct smg_rank_type smg_rank_streamingllm = {
    .name = "streamingllm",
    .doc = "attention sink and recent window: block 0, then the newest blocks of all layers",
    .score = streamingllm_score,
};
