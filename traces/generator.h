/* Synthetic selections: which tokens a KV head picks in a step.
 *
 * A parametric generator, stateless: a row is a function of (seed, request, layer, head, step), so every driver and every process
 * sees the same lists in any order.
 *
 *     z = g_h beta ln v(l,u) + m_h kappa c(r,l,p) + sqrt(rho) P(r,l,h,p,epoch) + sqrt(1-rho) E(r,l,h,p,t),    row = top k of z
 *
 * v: universal weight by relative position u (floor, sinks, recency plateau, nearest tokens, hot clusters), the same for all
 * requests of a seed. c: clusters that matter to one request. P: noise that persists over the steps of an epoch, E: noise of the
 * step. g_h, m_h: the head's inclination to either weight. Ties break by token.
 */
#ifndef SMG_TRACES_GENERATOR_H
#define SMG_TRACES_GENERATOR_H

#include <stdint.h>

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

/* weight[tokens] of a layer of `layers`. */
void smg_generator_weights(uint64_t seed, uint32_t request, uint32_t layer, uint32_t layers, uint32_t tokens,
                           struct smg_generator_weight *weight);
int smg_generator_scratch_create(uint32_t tokens, struct smg_generator_scratch *out);
void smg_generator_scratch_destroy(struct smg_generator_scratch *s);
/* The k <= tokens tokens that `head` picks in `step`, ascending. weight[tokens]; the scratch holds at least tokens; index[k]. */
void smg_generator_row(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t step,
                       const struct smg_generator_weight *weight, uint32_t tokens, uint32_t k,
                       struct smg_generator_scratch *scratch, int32_t *index);

#endif
