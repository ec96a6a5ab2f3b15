/* A policy plug-in: a block ranking of one's own, "newest": the last tokens of the prompt first, in every layer. */
#include <core/plugin.h>

/* Higher is better. Layers 0 and 1, ties, empty blocks and cutting at Kr are the framework's business. */
static int score_newest(const struct smg_rank_input *in, uint32_t layer, float *score)
{
    uint32_t block;

    (void)layer;
    for (block = 0; block < in->grid->blocks; block++) {
        score[block] = (float)block;
    }
    return SMG_OK;
}

static const struct smg_rank_type newest = {.name = "newest", .doc = "newest blocks first", .score = score_newest};

static const struct smg_rank_type *const rankings[] = {&newest, NULL};

SMG_PLUGIN(.name = "newest", .doc = "ranks blocks by age", .rankings = rankings);
