/* The built-in importance matrix: the generator's calibration requests, counted. Synthetic, and labelled so. */
#ifndef SMG_TRACES_IMPORTANCE_AUTO_H
#define SMG_TRACES_IMPORTANCE_AUTO_H

#include "core/importance.h"
#include "core/world.h"
#include "traces/generator.h"

/* Prompt-length groups (0,4K], (4K,8K], (8K,12K], (12K,16K], (16K,inf), K = 1024. */
#define SMG_LENGTH_GROUPS 5u
extern const uint32_t smg_length_group_lo[SMG_LENGTH_GROUPS], smg_length_group_hi[SMG_LENGTH_GROUPS];
/* Group of a prompt length. */
uint32_t smg_length_group(uint32_t tokens);

/* One group per length group that the world's requests fall in; each calibrated at the mean length of its requests, or at
 * SMG_CALIBRATION_TOKENS where they are longer. A function of scenario, model and requests. */
#define SMG_CALIBRATION_TOKENS 8000u
int smg_importance_auto(const struct smg_world *w, struct smg_importance **out, struct smg_diag *diag);

/* What calibration requests first, first + 1, ... (ids from SMG_GENERATOR_CALIBRATION on) select in steps 1, 1 + stride, ...: a
 * matrix of one group. k of `tokens` tokens are selected. */
struct smg_calibration {
    const struct smg_generator *generator;
    uint32_t first, requests, tokens, k, steps, stride, blocks;
};
int smg_calibration_count(const struct smg_calibration *c, struct smg_importance **out);

/* A sliding layer attends to all it keeps: the row of a sliding layer is the share of each block's tokens that lie in the window.
 */
void smg_importance_mark_sliding(struct smg_importance *im, uint32_t group, const struct smg_model *m, uint32_t tokens);

/* Whether expected counts come from this profile instead of the generator: it was captured, and knows first times where they
 * matter. */
int smg_importance_tells_selection(const struct smg_importance *im, int reuse);

/* Lets the ranking optimal see the decode of the evaluated requests themselves, from the world's rows. */
int smg_importance_add_requests(struct smg_importance *im, const struct smg_world *w, struct smg_diag *diag);

#endif
