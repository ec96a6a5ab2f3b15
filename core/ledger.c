#include "core/ledger.h"

#include <string.h>

#include "core/reserve.h"
#include "core/status.h"

/* layers <= SMG_MAX_LAYERS: products of layers and one 32-bit count fit, and so do those of layers, heads and words. */
_Static_assert(sizeof(size_t) >= 8, "sizes of [layers][heads] rows need 64 bits");

static uint32_t kept_words(const struct smg_ledger *l)
{
    return l->grid.tokens / 64 + (l->grid.tokens % 64 != 0);
}

static int8_t *mask_row(const struct smg_ledger *l, uint32_t layer)
{
    return l->mask + (size_t)layer * l->width;
}

static uint8_t *writes_row(const struct smg_ledger *l, uint32_t layer)
{
    return l->writes + (size_t)layer * l->grid.blocks;
}

static void mask_init(struct smg_ledger *l)
{
    uint32_t tokens = l->grid.tokens;

    for (uint32_t layer = 0; layer < l->grid.model->layers; layer++) {
        int8_t *row = mask_row(l, layer);
        uint32_t keeps = smg_model_layer_tokens(l->grid.model, layer, tokens);

        memset(row, SMG_MASK_PAD, tokens - keeps);
        memset(row + (tokens - keeps), SMG_MASK_REMOTE, keeps);
        memset(row + tokens, SMG_MASK_LOCAL, l->width - tokens);
    }
}

static uint64_t kept_bytes(const struct smg_ledger *l)
{
    return (uint64_t)kept_words(l) * l->grid.model->layers * l->grid.model->kv_heads * sizeof(uint64_t);
}

static int kept_create(struct smg_ledger *l)
{
    l->kept = smg_store_take(l->store, kept_bytes(l));
    return l->kept != NULL ? SMG_OK : SMG_ERR_NOMEM;
}

uint64_t smg_ledger_cost(const struct smg_grid *g, uint32_t output_tokens, int reuse, int external_mask)
{
    const struct smg_ledger l = {.grid = *g};
    uint64_t layers = g->model->layers, mask = layers * ((uint64_t)g->tokens + output_tokens);

    return smg_store_cost(sizeof(l)) + smg_store_cost(layers * g->blocks) + (external_mask ? 0 : smg_store_cost(mask)) +
           (reuse ? smg_store_cost(kept_bytes(&l)) : 0);
}

int smg_ledger_create(const struct smg_grid *g, uint32_t output_tokens, int reuse, int8_t *external_mask, struct smg_ledger **out)
{
    return smg_ledger_create_in(NULL, g, output_tokens, reuse, external_mask, out);
}

int smg_ledger_create_in(struct smg_store *s, const struct smg_grid *g, uint32_t output_tokens, int reuse, int8_t *external_mask,
                         struct smg_ledger **out)
{
    uint64_t layers = g->model->layers;
    struct smg_ledger *l;
    int status = SMG_ERR_NOMEM;

    if (output_tokens > UINT32_MAX - g->tokens) {
        return SMG_ERR_RANGE;
    }
    l = smg_store_take(s, sizeof(*l));
    if (l == NULL) {
        return SMG_ERR_NOMEM;
    }
    l->store = s;
    l->grid = *g;
    l->width = g->tokens + output_tokens;
    l->writes = smg_store_take(s, layers * g->blocks);
    if (l->writes == NULL) {
        goto err_free_ledger;
    }
    l->mask_owned = external_mask == NULL;
    l->mask = l->mask_owned ? smg_store_take(s, layers * l->width) : external_mask;
    if (l->mask == NULL) {
        goto err_free_writes;
    }
    if (reuse && (status = kept_create(l)) != SMG_OK) {
        goto err_free_mask;
    }
    mask_init(l);
    *out = l;
    return SMG_OK;

err_free_mask:
    if (l->mask_owned) {
        smg_store_give(s, l->mask);
    }
err_free_writes:
    smg_store_give(s, l->writes);
err_free_ledger:
    smg_store_give(s, l);
    return status;
}

void smg_ledger_destroy(struct smg_ledger *l)
{
    if (l == NULL) {
        return;
    }
    smg_store_give(l->store, l->kept);
    if (l->mask_owned) {
        smg_store_give(l->store, l->mask);
    }
    smg_store_give(l->store, l->writes);
    smg_store_give(l->store, l);
}

const int8_t *smg_ledger_mask(const struct smg_ledger *l, uint32_t layer)
{
    return mask_row(l, layer);
}

uint64_t *smg_ledger_kept(struct smg_ledger *l, uint32_t layer, uint32_t head)
{
    if (l->kept == NULL) {
        return NULL;
    }
    return l->kept + ((size_t)layer * l->grid.model->kv_heads + head) * kept_words(l);
}

/* Clips blocks [first, first+count) to those that exist in the layer; empty blocks carry nothing and never count. */
static uint32_t clip_range(const struct smg_ledger *l, uint32_t layer, uint32_t *first, uint32_t count)
{
    uint64_t end = (uint64_t)*first + count;
    uint32_t begin = smg_grid_first(&l->grid, layer);

    if (end > l->grid.blocks) {
        end = l->grid.blocks;
    }
    if (*first < begin) {
        *first = begin;
    }
    return end > *first ? (uint32_t)end - *first : 0;
}

void smg_ledger_write(struct smg_ledger *l, uint32_t layer, uint32_t first, uint32_t count, int set_mask)
{
    uint8_t *writes = writes_row(l, layer);
    uint32_t lo, hi, unused;

    count = clip_range(l, layer, &first, count);
    if (count == 0) {
        return;
    }
    for (uint32_t b = first; b < first + count; b++) {
        l->rewritten += writes[b] > 0;
        l->present[layer] += writes[b] > 0 ? 0 : smg_grid_range_tokens(&l->grid, layer, b, 1);
        if (writes[b] < UINT8_MAX) {
            writes[b]++;
        }
    }
    l->blocks_written += count;
    if (set_mask) {
        smg_grid_block(&l->grid, layer, first, &lo, &unused);
        smg_grid_block(&l->grid, layer, first + count - 1, &unused, &hi);
        memset(mask_row(l, layer) + lo, SMG_MASK_LOCAL, hi - lo);
    }
}

int smg_ledger_has_block(const struct smg_ledger *l, uint32_t layer, uint32_t block)
{
    return writes_row(l, layer)[block] > 0;
}

void smg_ledger_keep(struct smg_ledger *l, uint32_t layer, uint32_t head, uint32_t token)
{
    uint64_t *bits = smg_ledger_kept(l, layer, head);

    if (bits != NULL && token < l->grid.tokens) {
        bits[token / 64] |= UINT64_C(1) << (token % 64);
    }
}

/* Set bits of [lo, hi). */
static uint64_t count_bits(const uint64_t *bits, uint32_t lo, uint32_t hi)
{
    uint64_t n = 0;

    for (uint32_t at = lo; at < hi;) {
        uint32_t in_word = 64 - at % 64;
        uint64_t word = bits[at / 64] >> (at % 64);

        if (in_word > hi - at) {
            in_word = hi - at;
            word &= (UINT64_C(1) << in_word) - 1;
        }
        for (; word != 0; word &= word - 1) {
            n++;
        }
        at += in_word;
    }
    return n;
}

uint64_t smg_ledger_kept_in(const struct smg_ledger *l, uint32_t layer, uint32_t first, uint32_t count)
{
    const struct smg_model *m = l->grid.model;
    uint32_t lo, hi, unused;
    uint64_t n = 0;

    count = clip_range(l, layer, &first, count);
    if (l->kept == NULL || count == 0) {
        return 0;
    }
    smg_grid_block(&l->grid, layer, first, &lo, &unused);
    smg_grid_block(&l->grid, layer, first + count - 1, &unused, &hi);
    for (uint32_t h = 0; h < m->kv_heads; h++) {
        n += count_bits(l->kept + ((size_t)layer * m->kv_heads + h) * kept_words(l), lo, hi);
    }
    return n;
}
