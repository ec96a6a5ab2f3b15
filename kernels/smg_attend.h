/* Arguments of attention, and of HACK. Part of smg_kernels.h, which states the conventions. */
#ifndef SMG_KERNELS_SMG_ATTEND_H
#define SMG_KERNELS_SMG_ATTEND_H

#include <stdint.h>

#include "kernels/smg_dtype.h"

/* A run of entries: entry j of row (b, h) has its K at k + b * request_stride + h * head_stride + j * entry_stride elements, its
 * V likewise; length[b * H + h] entries, NULL: max_length each. */
struct smg_attention_run {
    const void *k, *v;
    uint64_t request_stride, head_stride, entry_stride;
    const uint32_t *length;
    uint32_t max_length;
};

/* Most runs of one call: remote, local, new, and one to spare. */
enum { SMG_ATTENTION_RUNS = 4 };

/* out[b][h] = sum_j p_j v_j, p = softmax_j(scale q[b][h] . k_j), over the entries of all runs, one after the other. No entry: 0,
 * lse -inf. The result depends on the sequence of entries alone: not on where runs are cut, nor on threads; entries are worked on
 * in tiles at fixed positions of the whole sequence, so equal sequences give equal bits. splits: parts of the sequence worked on
 * at the same time and merged by their log-sum-exp (split-K); 0: the backend chooses from the sizes alone (max_length, not
 * length). */
struct smg_attention_args {
    uint32_t requests, q_heads, kv_heads, head_dim; /* head_dim at most 256 */
    enum smg_dtype type;                            /* of q, k, v */
    const void *q;                                  /* [requests][q_heads][head_dim] */
    uint32_t n_runs;
    struct smg_attention_run run[SMG_ATTENTION_RUNS];
    float scale;
    uint32_t splits;
    float *out; /* [requests][q_heads][head_dim] */
    float *lse; /* [requests][q_heads] natural log of sum_j exp(scale q.k_j), or NULL */
};

/* ---- HACK: KV as low-bit codes ---- */

/* Groups share a scale and a minimum: x ~ min + scale * code, scale = (max - min) / (2^bits - 1), 1 if that is 0; stored as bf16.
 * V1 (arXiv 2502.03589): K groups along the channels of a token, V groups along `group` tokens of a channel; the V of the
 * unfinished last group stays dense. ATC26 (Zeyu-ZEYU/HACK): K groups along tokens, V groups along channels; the first `sinks`
 * tokens and the unfinished last group (K and V) stay dense. A group along channels is d / group groups a token. Coded tokens are
 * [first, first + coded): K and V differ in V1, see smg_hack_shape. */
enum smg_hack_layout_kind { SMG_HACK_V1 = 0, SMG_HACK_ATC26 = 1 };

struct smg_hack_shape {
    enum smg_hack_layout_kind layout;
    uint32_t tokens, kv_heads, head_dim, group, bits; /* group divides head_dim and 8 | group; bits 2, 4 or 8 */
    uint32_t sinks;                                   /* ATC26: dense first tokens (4 in the artifact); V1: 0 */
    enum smg_dtype type;                              /* of dense elements */
};

/* Where the parts of one request's quantised layer lie, bytes from its start, each 16-byte aligned; 0 bytes where a part is
 * empty. Codes are packed in little-endian order, 8/bits to a byte, along channels: code of channel c of a token in byte c bits
 * / 8. Sums of codes (summation elimination) are uint8 where group * (2^bits - 1) <= 255, else uint16. */
struct smg_hack_part {
    uint64_t codes, scale, min, sum, sinks, tail; /* offsets */
    uint32_t first, coded, dense_tail;            /* tokens: dense before `first`, then coded, then dense */
    uint32_t groups;                              /* [coded][H][d / group] or [coded / group][H][d] */
};
struct smg_hack_size {
    struct smg_hack_part k, v;
    uint64_t bytes; /* of the whole */
};

/* Fills size from shape; SMG_ERR_INVALID when the shape cannot be. Known: d = 128, group 64, 2 bits: 84 B for a coded token and
 * head. */
int smg_hack_size(const struct smg_hack_shape *shape, struct smg_hack_size *size);

/* k, v [tokens][kv_heads][head_dim] to one buffer as laid out above. stochastic: rounding by floor(x + u), u from a hash of
 * (seed, K or V, token, head, channel), else to nearest (ties to even). */
struct smg_hack_quantize_args {
    struct smg_hack_shape shape;
    const void *k, *v;
    int stochastic;
    uint64_t seed;
    void *cache; /* smg_hack_size bytes */
};

/* cache back to k, v [tokens][kv_heads][head_dim] of shape.type: the unfused path. */
struct smg_hack_dequantize_args {
    struct smg_hack_shape shape;
    const void *cache;
    void *k, *v;
};

/* Decode attention of one request on the codes, fused: homomorphic QK and PV with 8-bit q and P where exact is 0; with exact 1 q
 * and P stay unquantised (equals attention over the dequantised tensors). Softmax in fp32 across sinks, coded and tail. */
struct smg_hack_attention_args {
    struct smg_hack_shape shape;
    uint32_t q_heads;
    const void *q; /* [q_heads][head_dim] of shape.type */
    const void *cache;
    float scale;
    int exact;
    float *out; /* [q_heads][head_dim] */
    float *lse; /* [q_heads] or NULL */
};

#endif
