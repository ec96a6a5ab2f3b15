/* How well selectors select, on planted tensors (smg_planted.h): synthetic, so the numbers compare selectors under a known
 * structure and say nothing about a model. */
#ifndef SMG_KERNELS_SMG_QUALITY_H
#define SMG_KERNELS_SMG_QUALITY_H

#include "kernels/smg_kernels.h"
#include "kernels/smg_offline.h"
#include "kernels/smg_planted.h"

#ifdef __cplusplus
extern "C" {
#endif

/* id, name, what it ranks by. Per KV head; a selection of k entries is the first k of a ranking. */
#define SMG_QUALITY_MAP(X)                                                                                                       \
    X(ORACLE, "oracle", "true query, all keys: sum of softmax over the query heads of the group")                                \
    X(INFINIGEN, "infinigen", "rehearsed query, partial columns of the skewed keys")                                             \
    X(HATA, "hata", "trained hash codes and norms")                                                                              \
    X(HATA_UNTRAINED, "hata-untrained", "random hash codes and norms")                                                           \
    X(QUEST, "quest", "upper bounds of pages; the last page first")                                                              \
    X(STREAMINGLLM, "streamingllm", "the first tokens, then the most recent")                                                    \
    X(RANDOM, "random", "a random order")

enum smg_quality_selector {
#define SMG_QUALITY_ID(id, name, text) SMG_QUALITY_##id,
    SMG_QUALITY_MAP(SMG_QUALITY_ID)
#undef SMG_QUALITY_ID
        SMG_QUALITY_SELECTORS
};
const char *smg_quality_name(enum smg_quality_selector s);

enum { SMG_QUALITY_RATIOS = 8 };

struct smg_quality_params {
    struct smg_planted planted;
    enum smg_dtype type;                     /* of queries, keys and partial keys; bf16 */
    uint32_t layer, requests, tokens, steps; /* requests 0 .. requests - 1 in one layer; 2, 2, 2048, 8 */
    uint32_t stride;                         /* positions from one evaluated step to the next; 8 */
    uint32_t calibration_tokens;             /* of the request that calibrates; 1024 */
    enum smg_skew_mode columns;
    uint32_t width;       /* columns that InfiniGen keeps, d'; 0: smg_skew_width */
    float alpha;          /* InfiniGen's, in logits; 5 */
    uint32_t page, sinks; /* 16, 4 */
    struct smg_hata_params hata;
    uint32_t ratios;
    float ratio[SMG_QUALITY_RATIOS]; /* of the entries selected: k = floor(ratio tokens), at least 1; above 0, at most 1 */
};

/* Sizes above, ratios 5, 10, 20, 30, 40 %, a training short enough for a command. */
void smg_quality_defaults(struct smg_quality_params *p, uint64_t seed, uint32_t q_heads, uint32_t kv_heads, uint32_t head_dim);

/* Means over requests, steps and KV heads. recall: share of the oracle's k entries that are among the selector's k. mass: softmax
 * weight that they hold, mean over query heads. */
struct smg_quality {
    struct {
        double recall, mass;
    } at[SMG_QUALITY_SELECTORS][SMG_QUALITY_RATIOS];
    double keep;    /* share of the entries that InfiniGen's threshold would keep, without a bound */
    double loss[2]; /* of the training, before and after */
};

/* Uses the kernels of k for all scores. */
int smg_selector_quality(struct smg_kernels *k, const struct smg_quality_params *p, struct smg_quality *out,
                         struct smg_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
