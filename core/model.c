#include "core/model.h"

uint64_t smg_model_entry_bytes(const struct smg_model *m)
{
    return UINT64_C(2) * m->head_dim * m->value_bytes;
}

uint64_t smg_model_token_layer_bytes(const struct smg_model *m)
{
    return m->kv_heads * smg_model_entry_bytes(m);
}

uint64_t smg_model_token_bytes(const struct smg_model *m)
{
    return m->layers * smg_model_token_layer_bytes(m);
}

/* A window of width 0 is no window: config files name sliding layers even where the window is off. */
static int layer_slides(const struct smg_model *m, uint32_t layer)
{
    return m->window_tokens > 0 && m->sliding[layer];
}

uint32_t smg_model_layer_tokens(const struct smg_model *m, uint32_t layer, uint32_t tokens)
{
    return layer_slides(m, layer) && tokens > m->window_tokens ? m->window_tokens : tokens;
}

uint64_t smg_model_prompt_bytes(const struct smg_model *m, uint32_t tokens)
{
    uint64_t kept = 0;

    for (uint32_t l = 0; l < m->layers; l++) {
        kept += smg_model_layer_tokens(m, l, tokens);
    }
    return kept * smg_model_token_layer_bytes(m);
}

int smg_model_layer_selects(const struct smg_model *m, uint32_t layer)
{
    return layer >= SMG_DENSE_LAYERS && !layer_slides(m, layer);
}

uint32_t smg_model_selecting_layers(const struct smg_model *m)
{
    uint32_t n = 0;

    for (uint32_t l = 0; l < m->layers; l++) {
        n += (uint32_t)smg_model_layer_selects(m, l);
    }
    return n;
}

uint64_t smg_model_layer_params(const struct smg_model *m)
{
    uint64_t q_width = (uint64_t)m->q_heads * m->head_dim;
    uint64_t kv_width = (uint64_t)m->kv_heads * m->head_dim;
    uint64_t attention = m->hidden * (2 * q_width + 2 * kv_width);   /* Wq and Wo, Wk and Wv */
    uint64_t ffn = UINT64_C(3) * m->hidden * m->intermediate;

    return attention + ffn;
}

uint64_t smg_model_body_params(const struct smg_model *m)
{
    return m->layers * smg_model_layer_params(m);
}

uint64_t smg_model_params(const struct smg_model *m)
{
    uint64_t tables = m->tied_embeddings ? 1 : 2;

    return smg_model_body_params(m) + tables * m->vocab * m->hidden;
}

/* (query, key) pairs of one layer: the integral over the new tokens x of min(context + x, window). A layer without a window has
 * window = context + fresh. */
static double attention_pairs(double context, double fresh, double window)
{
    double growing = window - context;   /* new tokens that still see everything before them */

    if (growing < 0) {
        growing = 0;
    }
    if (growing > fresh) {
        growing = fresh;
    }
    return growing * (context + growing / 2) + (fresh - growing) * window;
}

double smg_model_prefill_flop(const struct smg_model *m, uint32_t context_tokens, uint32_t new_tokens)
{
    double context = context_tokens, fresh = new_tokens;
    double pairs = 0;

    for (uint32_t l = 0; l < m->layers; l++) {
        pairs += attention_pairs(context, fresh, layer_slides(m, l) ? m->window_tokens : context + fresh);
    }
    return 2.0 * (double)smg_model_body_params(m) * fresh + 4.0 * m->q_heads * m->head_dim * pairs;
}
