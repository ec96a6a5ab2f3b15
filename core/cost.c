#include "core/cost.h"

#include <math.h>

/* Weights stay bf16 whatever the KV cache is stored in. */
static const double WEIGHT_BYTES = 2;

struct smg_cost smg_cost_make(double latency_s, double Bps, double per_message_s)
{
    return (struct smg_cost){.latency_s = latency_s, .Bps = Bps, .per_message_s = per_message_s};
}

double smg_cost_apply(const struct smg_cost *c, double bytes, double messages)
{
    return c->latency_s + bytes / c->Bps + messages * c->per_message_s;
}

/* 1 / (1/a + 1/b), written so that a free stage leaves the other rate bit for bit. */
static double series_Bps(double a, double b)
{
    if (isinf(a)) {
        return b;
    }
    if (isinf(b)) {
        return a;
    }
    return a * b / (a + b);
}

struct smg_cost smg_cost_series(const struct smg_cost *a, const struct smg_cost *b)
{
    return smg_cost_make(a->latency_s + b->latency_s, series_Bps(a->Bps, b->Bps), a->per_message_s + b->per_message_s);
}

double smg_cost_wire_bytes(double bytes, double messages, double post_cost_s, double Bps)
{
    double posting_s = messages * post_cost_s;

    /* Free posting on a free link is 0 * infinity. */
    return posting_s > 0 && posting_s * Bps > bytes ? posting_s * Bps : bytes;
}

double smg_cost_roofline(double flop, double flops, double bytes, double Bps)
{
    double compute_s = flop / flops, memory_s = bytes / Bps;

    return compute_s > memory_s ? compute_s : memory_s;
}

static double tensor_parallel(const struct smg_pool_config *p)
{
    return p->tp > 0 ? p->tp : 1;
}

double smg_cost_prefill_s(const struct smg_world *w, const struct smg_request_spec *r)
{
    double flop = smg_model_prefill_flop(&w->model, r->hit_tokens, r->prompt_tokens - r->hit_tokens);

    return flop / w->prefill_gpu.prefill_flops / tensor_parallel(&w->scenario.prefill);
}

double smg_cost_prefill_layer_s(const struct smg_world *w, const struct smg_request_spec *r)
{
    return smg_cost_prefill_s(w, r) / w->model.layers;
}

double smg_cost_attention_s(const struct smg_world *w, uint64_t entries)
{
    double bytes = (double)entries * (double)smg_model_entry_bytes(&w->model);

    return w->decode_gpu.decode_layer_overhead_s + bytes / w->decode_gpu.memory_Bps / tensor_parallel(&w->scenario.decode);
}

double smg_cost_ffn_s(const struct smg_world *w, uint32_t batch, int last)
{
    double params = (double)smg_model_layer_params(&w->model);

    if (last) {
        params += (double)w->model.vocab * w->model.hidden;
    }
    return smg_cost_roofline(2 * params * batch, w->decode_gpu.peak_flops, params * WEIGHT_BYTES, w->decode_gpu.memory_Bps) /
           tensor_parallel(&w->scenario.decode);
}

/* Bytes a selector reads per token and layer. The oracle keeps no metadata of its own: it reads every key. */
static double select_token_bytes(const struct smg_world *w)
{
    if (w->scenario.selector == SMG_SELECTOR_ORACLE) {
        return (double)w->model.kv_heads * w->model.head_dim * w->model.value_bytes;
    }
    return (double)smg_metadata_token_bytes(w);
}

static double measured_Bps(const struct smg_gpu *g, double Bps)
{
    return Bps > 0 ? Bps : g->memory_Bps;
}

double smg_cost_select_s(const struct smg_world *w, uint64_t tokens)
{
    const struct smg_gpu *g = &w->decode_gpu;

    if (smg_model_selecting_layers(&w->model) == 0 || tokens == 0) {
        return 0;
    }
    return g->select_overhead_s +
           (double)tokens * select_token_bytes(w) / measured_Bps(g, g->select_Bps) / tensor_parallel(&w->scenario.decode);
}

double smg_cost_split_s(const struct smg_world *w, double entries)
{
    const struct smg_gpu *g = &w->decode_gpu;

    return entries > 0 ? g->split_overhead_s + SMG_SPLIT_ENTRY_BYTES * entries / measured_Bps(g, g->split_Bps) : 0;
}

/* floor(partial_ratio * d). A ratio such as 0.29 has no exact double and 0.29 * 100 falls just below 29: hence the last
 * factor. */
static uint64_t partial_columns(const struct smg_world *w)
{
    return (uint64_t)floor(w->scenario.selection.partial_ratio * w->model.head_dim * (1 + 1e-12));
}

uint64_t smg_metadata_token_bytes(const struct smg_world *w)
{
    uint64_t heads = w->model.kv_heads, dim = w->model.head_dim;

    switch (w->scenario.selector) {
    case SMG_SELECTOR_INFINIGEN:
        return 2 * heads * partial_columns(w);
    case SMG_SELECTOR_HATA:
        return heads * (w->scenario.selection.hash_bits / 8 + 2);   /* code and fp16 norm */
    case SMG_SELECTOR_QUEST:
        return 2 * 2 * dim * heads / 16;                            /* min and max of a page of 16 tokens */
    case SMG_SELECTOR_ORACLE:
        return 0;
    }
    return 0;
}
