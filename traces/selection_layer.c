/* Selection source "layer": expected counts instead of index lists.
 *
 * A selecting layer picks k entries per KV head; of those the share that lies in absent blocks is remote, each block weighing its
 * importance times its tokens. With KV reuse only entries that no earlier step fetched are remote: NEW_RATE, a synthetic curve.
 */
#include <math.h>
#include <stdlib.h>

#include "core/importance.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "core/status.h"

#define FIXED_ONE 0x1p24 /* weights are integers, so that subtracting block by block ends at exactly 0 */

struct open_request {
    struct smg_ledger *ledger;
    uint32_t group; /* of the importance matrix */
    uint64_t total[SMG_MAX_LAYERS];
    uint64_t absent[SMG_MAX_LAYERS]; /* weight of absent blocks; tokens, in a layer that does not select */
};

struct layer_source {
    struct smg_selection base;
    int reuse;
    uint32_t blocks;            /* of the weight rows */
    uint64_t *before;           /* [groups][layers][blocks + 1] summed weight of the blocks before this one; NULL: uniform */
    struct open_request **open; /* [n_requests] */
};

static struct layer_source *self(struct smg_selection *s)
{
    return (struct layer_source *)s;
}

/* Mean frequency of the blocks within 0.5% of the prompt of block b. The ranking chose blocks by this very matrix, so its noise
 * would flatter them; real shapes are wider than that. */
static double smooth(const float *row, uint32_t blocks, uint32_t b)
{
    uint32_t reach = blocks / 200, first = b > reach ? b - reach : 0, end = b + reach < blocks ? b + reach + 1 : blocks, i;
    double sum = 0;

    for (i = first; i < end; i++) {
        sum += isfinite(row[i]) ? row[i] : 1;
    }
    return sum / (end - first);
}

/* A block that calibration never saw selected still weighs something: absent entries must not vanish. */
static void sum_row(const float *row, uint32_t blocks, uint64_t *before)
{
    uint32_t b;

    before[0] = 0;
    for (b = 0; b < blocks; b++) {
        before[b + 1] = before[b] + 1 + (uint64_t)(smooth(row, blocks, b) * FIXED_ONE);
    }
}

static int sum_rows(struct layer_source *s)
{
    const struct smg_importance *im = s->base.world->importance;
    uint32_t g, l;

    s->blocks = im->blocks;
    s->before = malloc((size_t)im->groups * im->layers * (im->blocks + 1) * sizeof(*s->before));
    if (s->before == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (g = 0; g < im->groups; g++) {
        for (l = 0; l < im->layers; l++) {
            sum_row(smg_importance_row(im, g, l), im->blocks, s->before + ((size_t)g * im->layers + l) * (im->blocks + 1));
        }
    }
    return SMG_OK;
}

/* Weight of tokens [0, token): the stored row stretched over the prompt, linear inside a stored block. */
static uint64_t weight_before(const struct layer_source *s, const struct open_request *r, uint32_t layer, uint32_t token)
{
    uint32_t tokens = r->ledger->grid.tokens;
    uint64_t at = (uint64_t)token * s->blocks, block = at / tokens;
    const uint64_t *before;

    if (s->before == NULL || !smg_model_layer_selects(&s->base.world->model, layer)) {
        return token;
    }
    before = s->before + ((size_t)r->group * s->base.world->model.layers + layer) * (s->blocks + 1);
    return block == s->blocks ? before[block] : before[block] + (before[block + 1] - before[block]) * (at % tokens) / tokens;
}

static uint64_t range_weight(const struct layer_source *s, const struct open_request *r, uint32_t layer, uint32_t first,
                             uint32_t count)
{
    uint32_t lo, hi, unused;

    if (count == 0) {
        return 0;
    }
    smg_grid_block(&r->ledger->grid, layer, first, &lo, &unused);
    smg_grid_block(&r->ledger->grid, layer, first + count - 1, &unused, &hi);
    return hi > lo ? weight_before(s, r, layer, hi) - weight_before(s, r, layer, lo) : 0;
}

static void layer_destroy(struct smg_selection *base)
{
    struct layer_source *s = self(base);
    uint32_t i;

    for (i = 0; s->open != NULL && i < base->world->n_requests; i++) {
        free(s->open[i]);
    }
    free(s->open);
    free(s->before);
    free(s);
}

extern const struct smg_selection_type smg_selection_layer;

static int layer_create(const struct smg_world *w, struct smg_selection **out)
{
    struct layer_source *s = calloc(1, sizeof(*s));
    struct smg_features features;

    if (s == NULL) {
        return SMG_ERR_NOMEM;
    }
    s->base.type = &smg_selection_layer;
    s->base.world = w;
    w->scheme->features(&w->scenario, &features);
    s->reuse = features.reuse;
    s->open = calloc(w->n_requests > 0 ? w->n_requests : 1, sizeof(struct open_request *));
    if (s->open == NULL || (w->importance != NULL && sum_rows(s) != SMG_OK)) {
        layer_destroy(&s->base);
        return SMG_ERR_NOMEM;
    }
    *out = &s->base;
    return SMG_OK;
}

static struct open_request *find(struct layer_source *s, uint32_t request)
{
    return request < s->base.world->n_requests ? s->open[request] : NULL;
}

static void start_layer(const struct layer_source *s, struct open_request *r, uint32_t layer)
{
    const struct smg_grid *g = &r->ledger->grid;
    uint32_t block, first = smg_grid_first(g, layer);

    r->total[layer] = range_weight(s, r, layer, first, g->blocks - first);
    r->absent[layer] = r->total[layer];
    for (block = first; r->ledger->blocks_written > 0 && block < g->blocks; block++) {
        if (smg_ledger_has_block(r->ledger, layer, block)) {
            r->absent[layer] -= range_weight(s, r, layer, block, 1);
        }
    }
}

static int layer_open(struct smg_selection *base, uint32_t request, struct smg_ledger *ledger)
{
    struct layer_source *s = self(base);
    struct open_request *r;
    uint32_t layer;

    if (request >= base->world->n_requests || s->open[request] != NULL) {
        return SMG_ERR_INVALID;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    r->ledger = ledger;
    r->group = base->world->importance != NULL ? smg_importance_group(base->world->importance, ledger->grid.tokens) : 0;
    for (layer = 0; layer < base->world->model.layers; layer++) {
        start_layer(s, r, layer);
    }
    s->open[request] = r;
    return SMG_OK;
}

static void layer_close(struct smg_selection *base, uint32_t request)
{
    struct layer_source *s = self(base);

    if (request < base->world->n_requests) {
        free(s->open[request]);
        s->open[request] = NULL;
    }
}

/* Each block becomes visible once (a conserved quantity); were one repeated, the weight would stop at 0. */
static void layer_visible(struct smg_selection *base, uint32_t request, uint32_t layer, uint32_t first, uint32_t count)
{
    struct layer_source *s = self(base);
    struct open_request *r = find(s, request);
    uint64_t weight;

    if (r == NULL || layer >= base->world->model.layers || first >= r->ledger->grid.blocks) {
        return;
    }
    if (count > r->ledger->grid.blocks - first) {
        count = r->ledger->grid.blocks - first;
    }
    weight = range_weight(s, r, layer, first, count);
    r->absent[layer] -= weight < r->absent[layer] ? weight : r->absent[layer];
}

/* Share of a step's selected entries that no earlier step fetched. Synthetic: starts at 1 and settles at 0.26, the share that
 * makes reuse alone 1.1 times slower than the ideal (calibration point P025). */
static double new_rate(uint32_t step)
{
    return 0.26 + 0.74 * exp(-((double)step - 1) / 3);
}

static void split_selecting(const struct layer_source *s, const struct open_request *r, uint32_t step, uint32_t layer,
                            struct smg_split_count *out)
{
    uint64_t entries = (uint64_t)s->base.world->model.kv_heads * smg_selection_k(s->base.world, r->ledger->grid.tokens);
    double share = (double)r->absent[layer] / (double)r->total[layer];

    out->remote = (uint64_t)llround((double)entries * share * (s->reuse ? new_rate(step) : 1));
    out->local = entries - out->remote;
}

static void split_all(const struct layer_source *s, const struct open_request *r, uint32_t layer, struct smg_split_count *out)
{
    uint64_t heads = s->base.world->model.kv_heads;

    out->remote = heads * r->absent[layer];
    out->local = heads * r->total[layer] - out->remote;
}

static int layer_split(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer, int full,
                       struct smg_split_count *out)
{
    struct layer_source *s = self(base);
    struct open_request *r = find(s, request);
    uint32_t heads = base->world->model.kv_heads;

    if (r == NULL || step == 0 || layer >= base->world->model.layers) {
        return r == NULL ? SMG_ERR_NOT_FOUND : SMG_ERR_INVALID;
    }
    if (smg_model_layer_selects(&base->world->model, layer)) {
        split_selecting(s, r, step, layer, out);
    } else {
        split_all(s, r, layer, out);
    }
    if (full) {
        out->local += out->remote;
        out->remote = 0;
    }
    out->row_max = (uint32_t)((out->remote + heads - 1) / heads);
    return SMG_OK;
}

static int layer_entries(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer, int32_t *index,
                         uint32_t k_cap, uint32_t *k_out)
{
    (void)base, (void)request, (void)step, (void)layer, (void)index, (void)k_cap, (void)k_out;
    return SMG_ERR_UNSUPPORTED;
}

/* Reuse is in the new rate already. */
static void layer_keep(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer)
{
    (void)base, (void)request, (void)step, (void)layer;
}

const struct smg_selection_type smg_selection_layer = {
    .name = "layer",
    .doc = "expected counts per absent block",
    .create = layer_create,
    .destroy = layer_destroy,
    .open = layer_open,
    .close = layer_close,
    .visible = layer_visible,
    .split = layer_split,
    .entries = layer_entries,
    .keep = layer_keep,
};
