/* What the selectors compute once per model, before anything is served: InfiniGen's skewing (basis and columns) and HATA's hash
 * weights. Host memory, plain C; results depend on the arguments alone, not on threads. Sources: InfiniGen (OSDI'24,
 * snu-comparch/InfiniGen), HATA (ACL Findings 2025, gpzlx1/HATA); formulas in docs/kernels.md.
 *
 * GSL's error handler must be off (gsl_set_error_handler_off in main): its default ends the program. */
#ifndef SMG_KERNELS_SMG_OFFLINE_H
#define SMG_KERNELS_SMG_OFFLINE_H

#include <stdint.h>

#include "core/status.h"
#include "kernels/smg_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queries and keys of one prompt in one layer, as after RoPE. q_heads is a multiple of kv_heads. */
struct smg_calibration {
    uint32_t tokens, q_heads, kv_heads, head_dim;
    enum smg_dtype type;
    const void *q; /* [tokens][q_heads][head_dim] */
    const void *k; /* [tokens][kv_heads][head_dim] */
};

/* ---- InfiniGen ---- */

/* basis[kv_heads][head_dim][head_dim]: for each KV head A = V of the thin SVD U S V^T of the queries averaged over the group.
 * Orthogonal; singular values descend with the column. SMG_ERR_INVALID: sizes, or an element that is not finite; nothing of use
 * is in basis then. */
int smg_skew_basis(const struct smg_calibration *c, float *basis, struct smg_diag *diag);

/* d' = floor(0.3 d), at least 1: what the InfiniGen paper settles on. */
uint32_t smg_skew_width(uint32_t head_dim);

/* Which columns of the skewed basis count: QK_SUM: those of the largest sum over tokens of |q A| (all query heads of the group)
 * and |k A|; Q: of |q A| alone; UNION: the best of |q A| and the best of |k A| in turn, until there are enough. */
enum smg_skew_mode { SMG_SKEW_QK_SUM = 0, SMG_SKEW_Q, SMG_SKEW_UNION };

/* columns[kv_heads][width], ascending. width at most head_dim <= 256. Ties: the lower column. */
int smg_skew_columns(const struct smg_calibration *c, const float *basis, enum smg_skew_mode mode, uint32_t width,
                     uint8_t *columns, struct smg_diag *diag);

/* ---- HATA ---- */

/* Training pairs a query with every key up to it, labelled by the rank of q . k: the best top_share get top_label down to 1,
 * linearly, the rest -1. With h(x) = 2 sigmoid(sigma x W) - 1, over n pairs and r bits:
 *
 *   loss = epsilon / n sum label ||h(q) - h(k)||^2 + lambda ||1/(n r) sum (h(q) + h(k))||^2 + eta ||W^T W - I||_F
 *
 * by stochastic gradient descent with momentum and weight decay. */
struct smg_hata_params {
    uint32_t bits;                     /* a multiple of 32, at most 1024; 256 */
    uint32_t draws;                    /* queries of each prompt, from its second half, each with all heads of the group; 1 */
    uint32_t epochs, steps;            /* 15, 20 steps each */
    uint32_t chunks, chunk_pairs;      /* of an epoch, drawn at random, used in turn; pairs of one: 3, 32768 */
    float top_share, top_label;        /* 0.1, 20 */
    float epsilon, lambda, eta, sigma; /* 0.01, 1, 2, 0.1 */
    float rate, momentum, decay;       /* 0.1, 0.9, 1e-6 */
    int round_bf16;                    /* weights are rounded to bf16 after each step, as in the source; 0: fp32 */
    int portable;                      /* 1: GSL's linear algebra even where OpenBLAS is found */
    uint32_t threads;                  /* KV heads that are trained at the same time; 0: as many as there are CPUs */
    uint64_t seed;                     /* streams "hata-weights", "hata-queries", "hata-chunks" of each head */
};

/* The published values (those above), seed 1. */
void smg_hata_defaults(struct smg_hata_params *p);

/* weight[kv_heads][head_dim][bits] from prompts[n], which agree in heads and head_dim. loss: before the first and after the last
 * step, mean over heads of the epoch's chunk; or NULL. */
int smg_hata_train(const struct smg_hata_params *p, const struct smg_calibration *prompts, uint32_t n, float *weight,
                   double loss[2], struct smg_diag *diag);

/* weight[kv_heads][head_dim][bits] ~ N(0, 1): plain SimHash, and where training starts. */
void smg_hata_untrained(uint64_t seed, uint32_t kv_heads, uint32_t head_dim, uint32_t bits, float *weight);

/* "OpenBLAS", or "GSL" where that is not found. */
const char *smg_hata_library(void);

#ifdef __cplusplus
}
#endif

#endif
