#include "core/hack.h"

#include <string.h>

enum { SINKS = 4, SCALE_AND_MIN_BYTES = 4 };

/* Bytes of one sum of `group` codes: at most group * (2^bits - 1). */
static uint32_t sum_bytes(uint32_t group, uint32_t bits)
{
    uint64_t largest = (uint64_t)group * ((UINT64_C(1) << bits) - 1);

    return largest < 256 ? 1 : 2;
}

/* Coded bytes of K (or V) of one token: d codes, and per group of values one scale, one minimum and one sum. */
static uint32_t half_bytes(const struct smg_world *w)
{
    uint32_t d = w->model.head_dim, bits = w->scenario.hack.bits, group = w->scenario.hack.group, groups = d / group;

    return d * bits / 8 + groups * (SCALE_AND_MIN_BYTES + sum_bytes(group, bits));
}

void smg_hack_layout(const struct smg_world *w, uint32_t tokens, struct smg_hack_layout *out)
{
    int v1 = strcmp(w->scenario.hack.layout, "v1") == 0;
    uint32_t dense = w->model.head_dim * w->model.value_bytes, half = half_bytes(w), group = w->scenario.hack.group;
    uint32_t sinks = v1 ? 0 : SINKS;

    out->coded_bytes = 2 * half;
    out->sink_tokens = sinks < tokens ? sinks : tokens;
    out->tail_tokens = (tokens - out->sink_tokens) % group;
    out->sink_extra_bytes = 2 * (dense - half);
    out->tail_extra_bytes = (v1 ? 1 : 2) * (dense - half);
}

double smg_hack_attention_s(const struct smg_world *w, uint64_t tokens)
{
    const struct smg_gpu *gpu = &w->decode_gpu;
    struct smg_hack_layout l;

    if (!w->scenario.hack.fused)
        return gpu->hack_layer_overhead_s + (double)(tokens * smg_model_token_layer_bytes(&w->model)) / gpu->hack_unpack_Bps;
    smg_hack_layout(w, 1, &l);
    return gpu->decode_layer_overhead_s + (double)(tokens * w->model.kv_heads * l.coded_bytes) / gpu->memory_Bps;
}
