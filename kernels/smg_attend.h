/* Arguments of attention, and of HACK. Part of smg_kernels.h, which states the conventions. */
#ifndef SMG_KERNELS_SMG_ATTEND_H
#define SMG_KERNELS_SMG_ATTEND_H

#include <stdint.h>

#include "kernels/smg_dtype.h"

/* A run of entries: entry j of row (b, h) has its K at k + b * request_stride + h * head_stride + j * entry_stride elements, its
 * V likewise; length[b * H + h] entries (more than max_length count as max_length), NULL: max_length each. k and v may be NULL
 * where max_length is 0. */
struct smg_attention_run {
    const void *k, *v;
    uint64_t request_stride, head_stride, entry_stride;
    const uint32_t *length;
    uint32_t max_length;
};

/* Most runs of one call: remote, local, new, and one to spare; their max_length sum to SMG_ATTENTION_ENTRIES at most. */
enum { SMG_ATTENTION_RUNS = 4, SMG_ATTENTION_ENTRIES = 0x7fffff00 };

/* out[b][h] = sum_j p_j v_j with p = softmax_j(s_j), s_j = (scale q[b][h]) . k_j, over the entries of all runs, one after the
 * other. No entry: out 0, lse -inf.
 *
 * The result of a row depends on its sequence of entries and on `splits` alone: neither on where runs are cut, nor on strides,
 * max_length, other rows or threads. Equal sequences give equal bits: entries are worked on in tiles at fixed positions of the
 * whole sequence, tiles form parts that are worked on at the same time, and parts are merged by their log-sum-exp in order
 * (split-K). splits: at most so many parts, of equal numbers of tiles; 0: as suits the number of entries of the row itself.
 * Another order of entries, and another `splits`, change rounding alone. So calls may also be merged by the caller: with out and
 * lse of two sets of entries, out = (e^lse1 out1 + e^lse2 out2) / (e^lse1 + e^lse2).
 *
 * Values that are no ordinary numbers, or lead to none:
 * - A score of -inf weighs nothing; where all scores of a query head are -inf, it is as if there were no entry.
 * - A score of +inf or NaN (a product beyond fp32 is infinite) makes out and lse of its query head NaN, of no other.
 * - An element of V that is infinite or NaN makes its channel of out infinite or NaN, whatever the weight of the entry.
 * - A weight below 2^-126 of the largest may count as 0. Sums of p v stay in fp32: elements of V beyond 3e38 / entries may
 *   overflow. */
struct smg_attention_args {
    uint32_t requests, q_heads, kv_heads, head_dim; /* head_dim at most 256; fastest in multiples of 8 */
    enum smg_dtype type;                            /* of q, k, v */
    const void *q;                                  /* [requests][q_heads][head_dim] */
    uint32_t n_runs;
    struct smg_attention_run run[SMG_ATTENTION_RUNS];
    float scale;
    uint32_t splits;
    float *out; /* [requests][q_heads][head_dim] */
    float *lse; /* [requests][q_heads] natural log of sum_j exp(s_j), or NULL */
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
