/* Geometry of a transformer's KV cache, and the arithmetic of its forward pass. Source of the conventions: the model's
 * Hugging Face config.json. All sizes are per model (not per tensor-parallel rank). */
#ifndef SMG_CORE_MODEL_H
#define SMG_CORE_MODEL_H

#include <stdint.h>

#pragma GCC visibility push(default)

#define SMG_MAX_LAYERS 256
#define SMG_NAME_MAX 64

/* Layers below this index never select and are always sent (the first two; InfiniGen, Quest and HATA all skip them). */
#define SMG_DENSE_LAYERS 2u

struct smg_model {
    char name[SMG_NAME_MAX];
    uint32_t layers;             /* 1..SMG_MAX_LAYERS */
    uint32_t hidden;             /* model width D */
    uint32_t q_heads;            /* Hq */
    uint32_t kv_heads;           /* H; q_heads is a multiple of it */
    uint32_t head_dim;           /* d; explicit, never derived when the key exists */
    uint32_t intermediate;       /* FFN width, gated (three matrices) */
    uint32_t vocab;
    uint32_t max_positions;      /* 0: not stated */
    uint32_t value_bytes;        /* bytes of one K or V number: 2 for bf16/fp16 */
    uint32_t window_tokens;      /* width of the sliding window, 0: no layer slides */
    uint8_t sliding[SMG_MAX_LAYERS]; /* [layers], 1: this layer keeps only window_tokens */
    uint8_t tied_embeddings;
    uint8_t quantized_weights;   /* the file says so; costs still count 16 bits per weight */
};

/* Bytes of one KV entry: K and V of one token for one KV head of one layer, 2*d*value_bytes. */
uint64_t smg_model_entry_bytes(const struct smg_model *m);

/* Bytes of one token in one layer, all KV heads. */
uint64_t smg_model_token_layer_bytes(const struct smg_model *m);

/* Bytes of one token over all layers, windows ignored (163,840 for Qwen3-14B). */
uint64_t smg_model_token_bytes(const struct smg_model *m);

/* Tokens of a prompt of `tokens` that layer keeps: min(tokens, window) when it slides. */
uint32_t smg_model_layer_tokens(const struct smg_model *m, uint32_t layer, uint32_t tokens);

/* KV bytes of a whole prompt, sliding windows honoured. */
uint64_t smg_model_prompt_bytes(const struct smg_model *m, uint32_t tokens);

/* True when the selector picks entries in this layer (not layers 0, 1, not sliding). */
int smg_model_layer_selects(const struct smg_model *m, uint32_t layer);

/* Number of layers that select. */
uint32_t smg_model_selecting_layers(const struct smg_model *m);

/* Parameters of one layer (attention projections and gated FFN; norms left out), of all layers, and of all layers plus
 * embeddings. */
uint64_t smg_model_layer_params(const struct smg_model *m);
uint64_t smg_model_body_params(const struct smg_model *m);
uint64_t smg_model_params(const struct smg_model *m);

/* FLOP to prefill new_tokens on top of context_tokens already cached: 2*P*new for the linear part, 4*Hq*d per (query, key) pair
 * and layer for attention; query i attends to context + i keys (mean context + new/2), or to the window where a layer slides. */
double smg_model_prefill_flop(const struct smg_model *m, uint32_t context_tokens, uint32_t new_tokens);

#pragma GCC visibility pop

#endif
