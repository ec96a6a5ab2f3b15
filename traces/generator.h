/* Synthetic selections: which tokens a KV head picks in a step.
 *
 * A parametric generator, stateless: a row is a function of (seed, request, layer, head, step), so every driver and every process
 * sees the same lists in any order.
 *
 *     z = g_h beta ln v(l,u) + m_h kappa c(r,l,p) + sqrt(rho) W(r,l,h,p,t) + sqrt(1-rho) E(r,l,h,p,t),    row = top k of z
 *
 * v: universal weight by relative position u (floor, sinks, recency plateau, nearest tokens, hot clusters), the same for all
 * requests of a seed; a sliding layer has v = 0 outside its window. c: clusters that matter to one request. W: a slow wave of
 * random phase with a normal distribution, so that a token stays selected for a while and comes back only after a rotation; E:
 * noise of the step. g_h, m_h: the head's inclination to either weight. Ties break by token. docs/selection.md has the measured
 * facts. Parameters, with their sources, are in the data file generator.json. */
#ifndef SMG_TRACES_GENERATOR_H
#define SMG_TRACES_GENERATOR_H

#include <stdint.h>

#include "core/model.h"
#include "core/status.h"

/* As in generator.json; shares and gains are plain numbers. */
struct smg_generator_params {
    double universal_gain, context_gain;
    double persistence, rotation_steps, rotation_spread, boundary_rate;
    double head_universal_spread, head_context_spread;
    double floor_weight, sink_tokens, sink_weight, near_weight, near_tokens;
    double plateau_weight, plateau_mean, plateau_swing, plateau_peak, plateau_start, plateau_edge;
    double dip_depth, dip_width, dip_plateau, dip_selected;
    double clusters_min, clusters_max, cluster_width_min, cluster_width_max, cluster_weight_min, cluster_weight_max;
    double context_per_token, context_tokens, context_strength_min, context_strength_max;
};

/* Reads generator.json of the data folder. */
int smg_generator_params_load(struct smg_generator_params *out, struct smg_diag *diag);

/* Requests of the calibration set have ids from here on; evaluated ones have smaller ids. */
#define SMG_GENERATOR_CALIBRATION UINT32_C(0x80000000)

#define SMG_GENERATOR_LEVELS      2048u

struct smg_generator {
    struct smg_generator_params p;
    const struct smg_model *model; /* not owned */
    uint64_t seed;
    double shift;                       /* share of the layers in which evaluated requests have clusters of their own */
    float normal[SMG_GENERATOR_LEVELS]; /* quantiles of the standard normal distribution */
    float wave_gain, step_gain;         /* sqrt(rho), sqrt(1 - rho) */
    uint32_t speed, speed_spread;       /* of the wave: 2^32 is a rotation; per unit of 11 random bits */
};

/* The generator of a model; the model outlives it. Free with smg_generator_destroy. */
int smg_generator_create(const struct smg_model *m, uint64_t seed, double shift, struct smg_generator **out,
                         struct smg_diag *diag);
/* The same, from given parameters. */
int smg_generator_make(const struct smg_generator_params *p, const struct smg_model *m, uint64_t seed, double shift,
                       struct smg_generator **out);
void smg_generator_destroy(struct smg_generator *g);

/* Weights of one token in one (request, layer), before head and step. */
struct smg_generator_weight {
    float universal; /* beta ln v */
    float context;   /* kappa c */
};

/* Work space of smg_generator_row. */
struct smg_generator_scratch {
    uint32_t *key, *near; /* [tokens] each; one allocation */
    uint32_t tokens;
};

/* Entries that a head of a layer picks where k are asked for: fewer in the sparse middle when dip_selected says so; >= 1. */
uint32_t smg_generator_k(const struct smg_generator *g, uint32_t layer, uint32_t k);
/* Universal part of the weight of tokens first, first + stride, ...: out[n]. */
void smg_generator_universal(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t tokens, uint32_t first,
                             uint32_t stride, uint32_t n, float *out);
/* weight[ceil(tokens / stride)] of every stride-th token of a layer. */
void smg_generator_weights(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t tokens, uint32_t stride,
                           struct smg_generator_weight *weight);
int smg_generator_scratch_create(uint32_t tokens, struct smg_generator_scratch *out);
void smg_generator_scratch_destroy(struct smg_generator_scratch *s);
/* The k <= n of n tokens that `head` picks in `step` (>= 1), ascending. weight[n]; the scratch holds at least n; index[k]. */
void smg_generator_row(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t head, uint32_t step,
                       const struct smg_generator_weight *weight, uint32_t n, uint32_t k, struct smg_generator_scratch *scratch,
                       int32_t *index);

#endif
