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
 * - A weight below e^-87 of the largest may count as 0. Sums of p v stay in fp32: elements of V beyond 3e38 / entries may
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

/* A group of elements shares a minimum and a scale; an element comes back as min + scale * code.
 *
 *   min    bf16(least element), a zero without sign
 *   scale  bf16((greatest element - min) / top), top = 2^bits - 1, of the min just rounded; 1 where this is not above 0
 *   code   r = (x - min) / scale clamped to [0, top], in fp32; nearest: the nearest integer, ties to even;
 *          stochastic: floor(r) + (u < r - floor(r)), u from smg_hack_quantize_args.seed
 *
 * Codes belong to the stored (rounded) min and scale: of all codes the nearest one gives the least error of what comes back. That
 * error is at most scale / 2, except that elements below the rounded min lie up to half an ulp of bf16 (2^-9 |min|) lower, and
 * those near the top up to top scale 2^-9 higher. A group that holds a NaN or an infinity, or whose range or least element is
 * beyond bf16, has the NaN 0x7fc0 as min and scale and codes 0: it comes back as NaN, and so does the attention that reads it.
 *
 * Layouts. "Along channels": a group is `group` neighbouring channels of one token and head; "along tokens": one channel of one
 * head in a block of `group` neighbouring tokens.
 *
 *            K groups        V groups        coded K                      coded V
 *   V1       along channels  along tokens    all tokens                   whole blocks, counted from token 0
 *   ATC26    along tokens    along channels  whole blocks, counted from token `sinks`, of K and V alike
 *
 * Other tokens are dense: elements of shape.type, unchanged. V1: arXiv 2502.03589; ATC26: Zeyu-ZEYU/HACK, where sinks is 4. What
 * is stored of a block does not depend on later tokens, so a longer prompt's codes, scales, minima and sums begin with those of
 * a shorter one (its offsets differ). */
enum smg_hack_layout_kind { SMG_HACK_V1 = 0, SMG_HACK_ATC26 = 1 };

struct smg_hack_shape {
    enum smg_hack_layout_kind layout;
    uint32_t tokens, kv_heads, head_dim; /* head_dim at most 256 */
    uint32_t group, bits;                /* 4 divides group, group divides head_dim; bits 2, 4 or 8 */
    uint32_t sinks;                      /* ATC26: dense first tokens; V1: 0 */
    enum smg_dtype type;                 /* of what is quantised and of dense elements */
};

/* K or V of one request and layer. Tokens [0, first) are dense (sinks), the next `coded` are coded, the last dense_tail dense
 * (tail). Parts are arrays; offsets count bytes from the start of the cache and are multiples of 16, also of a part that is
 * empty. H = kv_heads, d = head_dim, t counts tokens from `first`.
 *
 *   codes  [coded][H][d bits / 8]      channel c of a token in byte c bits / 8, the low bits first
 *   scale  [groups] bf16               groups along channels: [coded][H][d / group]; along tokens: [coded / group][H][d]
 *   min    [groups] bf16
 *   sum    [sums] of sum_bytes each    sums of codes, for summation elimination; K: over the channels of a group of one token,
 *                                      [coded][H][d / group]; V: over the tokens of a block, [coded / group][H][d]
 *   sinks  [first][H][d] elements
 *   tail   [dense_tail][H][d] elements
 *
 * They lie in this order, K's before V's; bytes between them are 0. Numbers are little-endian. */
struct smg_hack_part {
    uint64_t codes, scale, min, sum, sinks, tail; /* offsets */
    uint64_t groups, sums;                        /* how many */
    uint32_t first, coded, dense_tail;
    uint32_t group_along_tokens, sum_along_tokens; /* 0: along channels */
};

struct smg_hack_size {
    struct smg_hack_part k, v;
    uint32_t sum_bytes; /* 1 where group * top <= 255, else 2: unsigned */
    uint64_t bytes;     /* of the whole: the end of v.tail */
};

/* Fills size from shape; SMG_ERR_INVALID when the shape cannot be, and size stays as it was. A coded token and KV head takes 84
 * bytes at d = 128, group 64, 2 bits (80 without the sums), 104 at group 32, 76 at group 128: in either layout. */
int smg_hack_size(const struct smg_hack_shape *shape, struct smg_hack_size *size);

/* k, v [tokens][kv_heads][head_dim] to one cache as laid out above; every byte of it is written.
 *
 * stochastic, not 0: u in [0, 1) of (seed, K or V, token, head, channel), whatever the other sizes are:
 *   row = mix64(seed + 0x9e3779b97f4a7c15 * (1 + (2 token + (1 of V, else 0)) kv_heads + head)), the last steps of splitmix64:
 *         z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^= z >> 31
 *   u   = 2^-24 * ((mix32(low half of row + 0x9e3779b9 * channel) ^ high half of row) >> 8), the last steps of MurmurHash3:
 *         x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; x ^= x >> 16
 * All backends write the same bytes. */
struct smg_hack_quantize_args {
    struct smg_hack_shape shape;
    const void *k, *v;
    int stochastic;
    uint64_t seed;
    void *cache; /* smg_hack_size bytes, aligned to 16 */
};

/* cache back to k, v [tokens][kv_heads][head_dim] of shape.type, min + scale * code rounded once: the unfused path. All backends
 * write the same bits, but for those of a NaN. */
struct smg_hack_dequantize_args {
    struct smg_hack_shape shape;
    const void *cache;
    void *k, *v;
};

/* Decode attention of one request over all tokens of its cache, without a dense copy of it: out[i] = sum_t P_t v_t / sum_t P_t,
 * P_t = exp(l_t - max l), l_t = scale q . k_t; softmax in fp32 over sinks, coded tokens and tail as one sequence. No token: out
 * 0, lse -inf.
 *
 * exact, not 0: q and P are not quantised, k_t and v_t are min + scale * code in fp32 (not rounded to shape.type as dequantize
 * does).
 *
 * exact 0: the homomorphic product, integer dot products of codes. A group of A (codes a', minimum m_a, scale s_a) times a group
 * of B: s_a s_b sum a'b' + m_b s_a sum a' + m_a s_b sum b' + group m_a m_b, where sum b' is stored. Codes of A are of 8 bits by
 * the rule above, to nearest, but min and scale stay in fp32.
 *   V1     q . k_t: A = q, in groups of channels; P V: A = P of a block of tokens, one group; B = a channel of the block.
 *   ATC26  in block b: A = q_c scale_{b,c}, in groups of channels, B = codes of K alone (s_b 1, m_b 0), plus sum_c q_c min_{b,c};
 *          A = P_t scale_{t,g}, a group for each block and channel group g, B = codes of V, plus sum_t P_t min_{t,g}. These last
 *          terms, like all of dense tokens, are with q and P as they are.
 * sum_t P_t is of the unquantised P.
 *
 * Values beyond fp32 on the way (elements near its limits) make results infinite or NaN. */
struct smg_hack_attention_args {
    struct smg_hack_shape shape;
    uint32_t q_heads; /* a multiple of kv_heads */
    const void *q;    /* [q_heads][head_dim] of shape.type */
    const void *cache;
    float scale;
    int exact;
    float *out; /* [q_heads][head_dim] */
    float *lse; /* [q_heads] natural log of sum_t exp(l_t), or NULL */
};

#endif
