/* Selection source "layer": expected counts instead of index lists.
 *
 * A selecting layer picks k entries per KV head. Those that lie in absent blocks are remote: each token weighs what its class is
 * selected. With KV reuse only entries that no earlier step fetched are remote: each token weighs what its class is selected for
 * the first time in this step; as blocks only ever become present, an entry that is absent now was absent in every earlier step.
 */
#include <math.h>
#include <stdlib.h>

#include "core/importance.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "core/status.h"
#include "traces/importance_auto.h"
#include "traces/selection_table.h"

#define CLASSES SMG_TABLE_CLASSES

/* Tokens of a layer, of all blocks and of absent ones: by class, or in class 0 where the layer does not select. */
struct layer_mass {
    uint32_t all[CLASSES], absent[CLASSES];
};

struct open_request {
    struct smg_ledger *ledger;
    const struct smg_table *table;
    struct layer_mass layer[]; /* [layers] */
};

struct layer_source {
    struct smg_selection base;
    int reuse;
    struct smg_generator *generator;            /* NULL: a captured profile tells */
    struct smg_table *table[SMG_LENGTH_GROUPS]; /* made when the first request of a group is opened */
    struct open_request **open;                 /* [n_requests] */
};

static struct layer_source *self(struct smg_selection *s)
{
    return (struct layer_source *)s;
}

/* Mean prompt of the requests of a length group, at most the calibration's. */
static uint32_t group_tokens(const struct smg_world *w, uint32_t group)
{
    double sum = 0;
    uint32_t i, n = 0;

    for (i = 0; i < w->n_requests; i++) {
        if (smg_length_group(w->requests[i].prompt_tokens) == group) {
            sum += w->requests[i].prompt_tokens;
            n++;
        }
    }
    return n > 0 ? (uint32_t)lround(sum / n) : 1;
}

static int find_table(struct layer_source *s, uint32_t tokens, const struct smg_table **out)
{
    const struct smg_world *w = s->base.world;
    uint32_t group = smg_length_group(tokens);
    struct smg_table **t = &s->table[group];
    int status = SMG_OK;

    if (*t == NULL && s->generator != NULL) {
        status = smg_table_generate(w, s->generator, group_tokens(w, group), s->reuse, t);
    } else if (*t == NULL) {
        status = smg_table_of_profile(w, smg_importance_group(w->importance, tokens), s->reuse, t);
    }
    *out = *t;
    return status;
}

/* Tokens of blocks [first, first+count), by class. */
static void range_mass(const struct layer_source *s, const struct open_request *r, uint32_t layer, uint32_t first, uint32_t count,
                       uint32_t out[CLASSES])
{
    const struct smg_grid *g = &r->ledger->grid;
    uint32_t before[CLASSES], lo, hi, unused, c;

    for (c = 0; c < CLASSES; c++) {
        out[c] = 0;
    }
    if (count == 0) {
        return;
    }
    if (!smg_model_layer_selects(&s->base.world->model, layer)) {
        out[0] = smg_grid_range_tokens(g, layer, first, count);
        return;
    }
    smg_grid_block(g, layer, first, &lo, &unused);
    smg_grid_block(g, layer, first + count - 1, &unused, &hi);
    smg_table_before(r->table, layer, hi, g->tokens, out);
    smg_table_before(r->table, layer, lo, g->tokens, before);
    for (c = 0; c < CLASSES; c++) {
        out[c] -= before[c];
    }
}

static void layer_destroy(struct smg_selection *base)
{
    struct layer_source *s = self(base);
    uint32_t i;

    for (i = 0; s->open != NULL && i < base->world->n_requests; i++) {
        free(s->open[i]);
    }
    for (i = 0; i < SMG_LENGTH_GROUPS; i++) {
        smg_table_destroy(s->table[i]);
    }
    smg_generator_destroy(s->generator);
    free(s->open);
    free(s);
}

extern const struct smg_selection_type smg_selection_layer;

/* A profile captured from a model tells what the model selects; else the generator does, whatever the ranking looked at. */
static int need_generator(struct layer_source *s, int reuse)
{
    const struct smg_world *w = s->base.world;

    if (w->importance != NULL && smg_importance_tells_selection(w->importance, reuse)) {
        return SMG_OK;
    }
    return smg_generator_create(&w->model, w->scenario.seed, w->scenario.profile_shift, &s->generator, NULL);
}

static int layer_create(const struct smg_world *w, struct smg_selection **out)
{
    struct layer_source *s = calloc(1, sizeof(*s));
    struct smg_features features;
    int status = SMG_ERR_NOMEM;

    if (s == NULL) {
        return SMG_ERR_NOMEM;
    }
    s->base.type = &smg_selection_layer;
    s->base.world = w;
    smg_scheme_features(w, &features);
    s->reuse = features.reuse;
    s->open = calloc(w->n_requests > 0 ? w->n_requests : 1, sizeof(struct open_request *));
    if (s->open != NULL) {
        status = need_generator(s, s->reuse);
    }
    if (status != SMG_OK) {
        layer_destroy(&s->base);
        return status;
    }
    *out = &s->base;
    return SMG_OK;
}

static struct open_request *find(struct layer_source *s, uint32_t request)
{
    return request < s->base.world->n_requests ? s->open[request] : NULL;
}

static void take(struct layer_mass *mass, const uint32_t present[CLASSES])
{
    uint32_t c;

    for (c = 0; c < CLASSES; c++) {
        mass->absent[c] -= present[c] < mass->absent[c] ? present[c] : mass->absent[c];
    }
}

static void start_layer(const struct layer_source *s, struct open_request *r, uint32_t layer)
{
    const struct smg_grid *g = &r->ledger->grid;
    struct layer_mass *mass = &r->layer[layer];
    uint32_t block, first = smg_grid_first(g, layer), present[CLASSES];

    range_mass(s, r, layer, first, g->blocks - first, mass->all);
    range_mass(s, r, layer, first, g->blocks - first, mass->absent);
    for (block = first; r->ledger->blocks_written > 0 && block < g->blocks; block++) {
        if (smg_ledger_has_block(r->ledger, layer, block)) {
            range_mass(s, r, layer, block, 1, present);
            take(mass, present);
        }
    }
}

static int layer_open(struct smg_selection *base, uint32_t request, struct smg_ledger *ledger)
{
    struct layer_source *s = self(base);
    struct open_request *r;
    uint32_t layer;
    int status;

    if (request >= base->world->n_requests || s->open[request] != NULL) {
        return SMG_ERR_INVALID;
    }
    r = calloc(1, sizeof(*r) + base->world->model.layers * sizeof(r->layer[0]));
    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    r->ledger = ledger;
    status = find_table(s, ledger->grid.tokens, &r->table);
    if (status != SMG_OK) {
        free(r);
        return status;
    }
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

/* Each block becomes visible once (a conserved quantity); were one repeated, the mass would stop at 0. */
static void layer_visible(struct smg_selection *base, uint32_t request, uint32_t layer, uint32_t first, uint32_t count)
{
    struct layer_source *s = self(base);
    struct open_request *r = find(s, request);
    uint32_t present[CLASSES];

    if (r == NULL || layer >= base->world->model.layers || first >= r->ledger->grid.blocks) {
        return;
    }
    if (count > r->ledger->grid.blocks - first) {
        count = r->ledger->grid.blocks - first;
    }
    range_mass(s, r, layer, first, count, present);
    take(&r->layer[layer], present);
}

static void split_selecting(const struct layer_source *s, const struct open_request *r, uint32_t step, uint32_t layer,
                            struct smg_split_count *out)
{
    const struct smg_world *w = s->base.world;
    uint32_t k = smg_selection_k(w, r->ledger->grid.tokens);
    uint64_t entries = (uint64_t)w->model.kv_heads * (s->generator != NULL ? smg_generator_k(s->generator, layer, k) : k);
    double all = smg_table_rate(r->table, layer, 0, r->layer[layer].all);
    double remote = smg_table_rate(r->table, layer, s->reuse ? step : 0, r->layer[layer].absent);

    out->remote = all > 0 ? (uint64_t)llround((double)entries * fmin(1, remote / all)) : 0;
    out->local = entries - out->remote;
}

static void split_all(const struct layer_source *s, const struct open_request *r, uint32_t layer, struct smg_split_count *out)
{
    uint64_t heads = s->base.world->model.kv_heads;

    out->remote = heads * r->layer[layer].absent[0];
    out->local = heads * r->layer[layer].all[0] - out->remote;
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

/* Where a layer selects, reuse is in the first times already. One that does not select has fetched all that was absent: blocks
 * only ever become present, so nothing is absent from now on. */
static void layer_keep(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer)
{
    struct open_request *r = find(self(base), request);

    (void)step;
    if (r != NULL && layer < base->world->model.layers && !smg_model_layer_selects(&base->world->model, layer)) {
        r->layer[layer].absent[0] = 0;
    }
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
