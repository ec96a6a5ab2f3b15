#include "emu/layout.h"

#include <string.h>

#include "core/cost.h"
#include "core/rng.h"

void smg_layout_init(struct smg_layout *l, const struct smg_world *w, uint32_t request, int metadata)
{
    const struct smg_model *m = &w->model;
    const struct smg_request_spec *r = &w->requests[request];

    memset(l, 0, sizeof *l);
    smg_grid_init(&l->grid, m, r->prompt_tokens, w->scenario.blocks_per_layer, w->scenario.min_block_tokens);
    l->heads = m->kv_heads;
    l->half_bytes = smg_model_entry_bytes(m) / 2;
    l->token_bytes = smg_model_token_layer_bytes(m);
    l->mask_width = r->prompt_tokens + r->output_tokens;
    l->metadata_token_bytes = metadata ? smg_metadata_token_bytes(w) : 0;
    for (uint32_t i = 0; i < m->layers; i++) {
        uint32_t kept = smg_model_layer_tokens(m, i, r->prompt_tokens);
        l->kept_lo[i] = r->prompt_tokens - kept;
        l->layer_offset[i + 1] = l->layer_offset[i] + kept * l->token_bytes;
        l->metadata_slot[i] = l->metadata_layers;
        l->metadata_layers += (uint32_t)smg_model_layer_selects(m, i);
    }
}

uint64_t smg_layout_kv_bytes(const struct smg_layout *l)
{
    return l->layer_offset[l->grid.model->layers];
}

uint64_t smg_layout_mask_bytes(const struct smg_layout *l)
{
    return (uint64_t)l->mask_width * l->grid.model->layers;
}

uint64_t smg_layout_metadata_bytes(const struct smg_layout *l)
{
    return (uint64_t)l->grid.tokens * l->metadata_token_bytes * l->metadata_layers;
}

uint64_t smg_layout_block(const struct smg_layout *l, uint32_t layer, uint32_t block)
{
    uint32_t lo, hi;

    smg_grid_block(&l->grid, layer, block, &lo, &hi);
    return l->layer_offset[layer] + (lo - l->kept_lo[layer]) * l->token_bytes;
}

uint64_t smg_layout_metadata(const struct smg_layout *l, uint32_t layer)
{
    return (uint64_t)l->metadata_slot[layer] * l->grid.tokens * l->metadata_token_bytes;
}

uint64_t smg_layout_entry(const struct smg_layout *l, uint32_t layer, uint32_t head, uint32_t token, uint64_t *v_out)
{
    uint32_t lo, hi;
    uint64_t base, row;

    smg_grid_block(&l->grid, layer, smg_grid_block_of(&l->grid, token), &lo, &hi);
    base = l->layer_offset[layer] + (lo - l->kept_lo[layer]) * l->token_bytes;
    row = ((uint64_t)head * (hi - lo) + (token - lo)) * l->half_bytes;
    *v_out = base + (uint64_t)l->heads * (hi - lo) * l->half_bytes + row;
    return base + row;
}

/* ---- Content ---- */

static void fill(uint64_t key, uint64_t bytes, uint8_t *out)
{
    uint64_t i = 0;

    for (; i + 8 <= bytes; i += 8) {
        uint64_t word = smg_mix64(key + i);
        memcpy(out + i, &word, 8);
    }
    if (i < bytes) {
        uint64_t word = smg_mix64(key + i);
        memcpy(out + i, &word, bytes - i);
    }
}

static uint64_t content_key(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v)
{
    return smg_hash3(seed, request, ((uint64_t)layer << 48) | ((uint64_t)head << 33) | ((uint64_t)(v != 0) << 32) | token);
}

int smg_content_is(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, uint64_t bytes,
                   const uint8_t *data)
{
    uint64_t key = content_key(seed, request, layer, head, token, v), differs = 0, word, i = 0;

    for (; i + 8 <= bytes; i += 8) {
        memcpy(&word, data + i, 8);
        differs |= word ^ smg_mix64(key + i);
    }
    word = smg_mix64(key + i);
    return !differs && !memcmp(data + i, &word, bytes - i);
}

void smg_content_half(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, uint64_t bytes,
                      uint8_t *out)
{
    fill(content_key(seed, request, layer, head, token, v), bytes, out);
}

void smg_content_layer(const struct smg_layout *l, uint64_t seed, uint32_t request, uint32_t layer, uint8_t *kv)
{
    for (uint32_t t = l->kept_lo[layer]; t < l->grid.tokens; t++) {
        for (uint32_t h = 0; h < l->heads; h++) {
            uint64_t v, k = smg_layout_entry(l, layer, h, t, &v);
            smg_content_half(seed, request, layer, h, t, 0, l->half_bytes, kv + k);
            smg_content_half(seed, request, layer, h, t, 1, l->half_bytes, kv + v);
        }
    }
}

/* Pieces start at any byte: content is defined per 8-byte word of the layer's metadata. */
void smg_content_metadata(uint64_t seed, uint32_t request, uint32_t layer, uint64_t first, uint64_t bytes, uint8_t *out)
{
    uint64_t key = smg_hash3(seed, request, UINT64_C(0x6d65746100000000) | layer);

    for (uint64_t at = first; at < first + bytes;) {
        uint64_t word = smg_mix64(key + at / 8), skip = at % 8, n = 8 - skip;
        if (n > first + bytes - at)
            n = first + bytes - at;
        memcpy(out + (at - first), (const uint8_t *)&word + skip, n);
        at += n;
    }
}

static uint64_t absorb(uint64_t h, const uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, data + i, 8);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    for (uint64_t i = bytes & ~UINT64_C(7); i < bytes; i++)
        h = (h ^ data[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return h;
}

uint64_t smg_digest_entry(uint32_t layer, uint32_t head, uint32_t token, const uint8_t *k, const uint8_t *v, uint64_t half_bytes)
{
    uint64_t h = smg_hash3(layer, head, token);

    return smg_mix64(absorb(absorb(h, k, half_bytes), v, half_bytes));
}
