/* Block importance (Eq. 1): how often a selector picks the entries of a block, averaged over a calibration set. */
#ifndef SMG_CORE_IMPORTANCE_H
#define SMG_CORE_IMPORTANCE_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* One matrix per prompt-length group. value[group][layer][block] is a mean selection frequency in [0, 1]; +inf in layers 0 and
 * 1. */
struct smg_importance {
    uint32_t groups, layers, blocks;
    uint32_t *group_lo, *group_hi; /* [groups], prompt tokens in (lo, hi] */
    float *value;                  /* [groups][layers][blocks] */
    int synthetic;                 /* made by the generator, not captured from a model */

    /* What a profile may know beside; NULL or 0 where it does not. */
    uint32_t *requests, *steps; /* [groups] requests, and decode steps of all of them, that were counted */
    float *variance;            /* [groups][layers][blocks] of the frequency, across requests */
    uint32_t datasets;
    float *dataset_value; /* [groups][datasets][layers][blocks] the matrix of each data set */
    uint32_t overlap_steps;
    float *overlap,
        *newrate; /* [layers][overlap_steps] share of a step's entries that the step before / no earlier step selected */

    /* Frequencies of an evaluated request itself, which no real system knows: for the ranking optimal. NULL: unknown. */
    int (*request_row)(void *context, uint32_t request, uint32_t tokens, uint32_t layer, uint32_t blocks,
                       float *out /* [blocks] */);
    void (*request_free)(void *context);
    void *request_context; /* owned, freed by request_free */
};

/* The optional arrays start absent; smg_importance_destroy frees those that are there. */
int smg_importance_create(uint32_t groups, uint32_t layers, uint32_t blocks, struct smg_importance **out);
void smg_importance_destroy(struct smg_importance *im);
/* Group that contains a prompt of this length, else the nearest. */
uint32_t smg_importance_group(const struct smg_importance *im, uint32_t prompt_tokens);
const float *smg_importance_row(const struct smg_importance *im, uint32_t group, uint32_t layer); /* [blocks] */

/* Row of `layer` resampled to `blocks` blocks by relative position (mean over the stored blocks it covers). out[blocks]. */
void smg_importance_resample(const struct smg_importance *im, uint32_t group, uint32_t layer, uint32_t blocks, float *out);

/* Counts selections of a calibration set. For each request average first (a frequency), then over requests:
 * I[l][m] = (1/R) sum_r count_r[l][m] / (steps_r * H * Nb_r[m]); a block that is empty for a request is skipped for that
 * request. */
struct smg_importance_counter;
int smg_importance_counter_create(uint32_t layers, uint32_t blocks, uint32_t kv_heads, struct smg_importance_counter **out);
void smg_importance_counter_destroy(struct smg_importance_counter *c);
/* Starts a calibration request of `tokens` prompt tokens. */
int smg_importance_counter_begin(struct smg_importance_counter *c, uint32_t tokens);
/* One row of a KV index: k entries (token ids; negative ones are padding) chosen for one head in one step of `layer`. */
int smg_importance_counter_add(struct smg_importance_counter *c, uint32_t layer, const int32_t *index, uint32_t k);
/* Ends the request after `steps` steps (>= 1). */
int smg_importance_counter_end(struct smg_importance_counter *c, uint32_t steps);
/* Raw counts of the open request, [layers][blocks]: S summed over tokens and heads. */
const uint64_t *smg_importance_counter_counts(const struct smg_importance_counter *c);
/* One-group matrix of what was counted, with variance; layers 0, 1 are +inf. */
int smg_importance_counter_finish(const struct smg_importance_counter *c, struct smg_importance **out);

#pragma GCC visibility pop

#endif
