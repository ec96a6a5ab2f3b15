/* HACK: KV as low-bit codes that stay on the decode GPU (the baseline "hack"). Sizes follow the published layouts: `v1` (arXiv
 * 2502.03589) and `atc26` (the authors' artifact, Zeyu-ZEYU/HACK). */
#ifndef SMG_CORE_HACK_H
#define SMG_CORE_HACK_H

#include <stdint.h>

#include "core/world.h"

#pragma GCC visibility push(default)

/* Per KV head. A coded token takes K and V codes, 16-bit scale and minimum per group, and the stored sums (summation
 * elimination); some tokens stay in 16 bit: the first ones (sinks) and the last, unfinished group (tail). */
struct smg_hack_layout {
    uint32_t coded_bytes;        /* one coded token: 84 for d = 128, groups of 64, 2 bits */
    uint32_t sink_tokens;        /* K and V dense */
    uint32_t tail_tokens;
    uint32_t sink_extra_bytes;   /* what a dense sink token takes beyond a coded one */
    uint32_t tail_extra_bytes;   /* the same of a tail token (v1: only its V is dense) */
};

/* Layout of a prompt of `tokens` tokens. hack.group must divide head_dim, hack.bits be 2, 4 or 8. Known values: 84, 104 (groups
 * of 32), 76 (128). */
void smg_hack_layout(const struct smg_world *w, uint32_t tokens, struct smg_hack_layout *out);

/* One decode layer over `tokens` tokens of the batch. Unfused: a fixed part and the unpacking of everything at hack_unpack_Bps of
 * 16-bit KV; fused: the codes are read at memory rate. */
double smg_hack_attention_s(const struct smg_world *w, uint64_t tokens);

#pragma GCC visibility pop

#endif
