/* Synthetic queries, keys and values with planted structure, so that selecting entries is neither trivial nor hopeless. Host
 * memory, plain C. These tensors come from no model: whatever is computed from them is to be labelled synthetic.
 *
 * Every vector is a function of the parameters and of (request, layer, KV head, token) for keys and values, (request, layer,
 * position, query head) for queries: no state, so any process computes any entry, in any order, with the same bits. Keys and
 * queries are as after RoPE.
 *
 * What is planted, in logits (q . k / sqrt(d)) where nothing else is said; formulas in docs/kernels.md:
 * - topics: `topics` directions of a (layer, KV head), the same for all requests: the low-rank part of keys and queries;
 * - clusters: runs of about `cluster_tokens` tokens that share a topic, about one in `cluster_every` tokens, placed by (request,
 *   layer), of different strength in each KV head;
 * - a query is interested in topics: partly for ever (its head), partly for one request, partly by an AR(1) process along
 *   positions, of which the share `agree` is common to the query heads of a KV head;
 * - rotated channels: `rotated` pairs of channels (j, j + d/2), large in keys, turned by position as RoPE turns them: they prefer
 *   recent tokens;
 * - sinks: the first `sinks` tokens; noise in all channels.
 *
 * Weights that calibration finds (InfiniGen's basis and columns, HATA's hash) depend on (layer, KV head) only. They are computed
 * from SMG_PLANTED_CALIBRATION, a request that no run evaluates. */
#ifndef SMG_KERNELS_SMG_PLANTED_H
#define SMG_KERNELS_SMG_PLANTED_H

#include <stdint.h>

#include "core/status.h"
#include "kernels/smg_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SMG_PLANTED_MAX_TOPICS = 64, SMG_PLANTED_MAX_ROTATED = 8 };

/* A request's number that is kept for calibration. */
#define SMG_PLANTED_CALIBRATION UINT64_MAX

struct smg_planted {
    uint64_t seed;
    uint32_t q_heads, kv_heads, head_dim;                 /* q_heads a multiple of kv_heads; head_dim even, at most 256 */
    uint32_t topics;                                      /* 1 .. SMG_PLANTED_MAX_TOPICS; 16 */
    uint32_t cluster_every, cluster_tokens;               /* tokens; 160 and 24 (the width; at most cluster_every) */
    uint32_t sinks;                                       /* 4 */
    uint32_t rotated;                                     /* pairs, at most SMG_PLANTED_MAX_ROTATED and head_dim / 2; 3 */
    float theta;                                          /* base of the angles, > 1; 1e6 */
    float cluster;                                        /* of a cluster's centre, times the query's interest; 3 */
    float background;                                     /* largest share of a topic in any token; 1.2 */
    float interest_head, interest_request, interest_step; /* deviations of a query's interest in a topic; 0.4, 0.6, 0.6 */
    float agree;                                          /* 0 .. 1; 0.7 */
    float rho;           /* correlation of a query's changing parts from one position to the next, 0 .. 0.9; 0.85 */
    float rotated_logit; /* of one pair at distance 0; 0.8 */
    float rotated_size;  /* radius of a key's pair, in deviations of the noise; 8 */
    float sink;          /* 6 */
    float noise;         /* deviation of the logits by noise; 1 */
    float rehearsal;     /* cosine of a rehearsed query with the true one, 0 .. 1; 0.95 */
};

/* The values above. */
void smg_planted_defaults(struct smg_planted *p, uint64_t seed, uint32_t q_heads, uint32_t kv_heads, uint32_t head_dim);
/* SMG_ERR_INVALID with a line. The functions below want parameters that were checked. */
int smg_planted_check(const struct smg_planted *p, struct smg_diag *diag);

/* One vector of head_dim elements to x. Cost at head_dim 128: key and value below 1 us, query some us. */
void smg_planted_key(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t kv_head, uint32_t token,
                     enum smg_dtype type, void *x);
void smg_planted_value(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t kv_head, uint32_t token,
                       enum smg_dtype type, void *x);
/* The query at a position of the sequence: decode step s of a prompt of N tokens is at N + s. */
void smg_planted_query(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head,
                       enum smg_dtype type, void *x);
/* What InfiniGen's rehearsal predicts for it from the layer before. */
void smg_planted_rehearsed(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head,
                           enum smg_dtype type, void *x);

/* Many at once: x[count][heads][head_dim] of tokens or positions [first, first + count), heads being kv_heads or q_heads. */
enum smg_planted_what { SMG_PLANTED_KEY = 0, SMG_PLANTED_VALUE, SMG_PLANTED_QUERY, SMG_PLANTED_REHEARSED };
void smg_planted_fill(const struct smg_planted *p, enum smg_planted_what what, uint64_t request, uint32_t layer, uint32_t first,
                      uint32_t count, enum smg_dtype type, void *x);

#ifdef __cplusplus
}
#endif

#endif
