/* What an evaluated request itself selects, block by block: the ranking optimal. */
#include <stdlib.h>
#include <string.h>

#include "core/importance.h"
#include "core/status.h"
#include "traces/importance_auto.h"
#include "traces/selection_rows.h"

/* All heads, at up to so many steps spread over the decode: with 8 heads 128 rows a layer. */
#define STEPS  16u
#define CACHED 16u

struct cached {
    uint32_t request, tokens, blocks, age;
    float *value; /* [layers][blocks], NULL: empty */
};

struct optimal {
    struct smg_world world; /* a copy of its plain parts; requests are the original's */
    struct smg_rows *rows;
    struct cached cache[CACHED];
    uint32_t clock;
};

static void optimal_free(void *context)
{
    struct optimal *o = context;
    uint32_t i;

    if (o == NULL) {
        return;
    }
    for (i = 0; i < CACHED; i++) {
        free(o->cache[i].value);
    }
    smg_rows_destroy(o->rows);
    free(o);
}

struct counting {
    uint32_t *count; /* [blocks] */
    int32_t *index;  /* [tokens] */
};

static int count_layer(struct optimal *o, uint32_t request, uint32_t tokens, uint32_t layer, uint32_t blocks, struct counting *c,
                       float *out)
{
    uint32_t output = o->world.requests[request].output_tokens, last = output > 1 ? output - 1 : 1,
             n = last < STEPS ? last : STEPS;
    uint32_t head, s, i, b;
    struct smg_rows_layer rows = {0};
    int status = smg_rows_open(o->rows, request, layer, tokens, &rows);

    if (status != SMG_OK) {
        return status;
    }
    memset(c->count, 0, blocks * sizeof(*c->count));
    for (head = 0; head < o->world.model.kv_heads; head++) {
        for (s = 0; s < n; s++) {
            uint32_t found = smg_rows_get(o->rows, &rows, head, 1 + (uint32_t)((uint64_t)s * last / n), c->index);

            for (i = 0; i < found; i++) {
                c->count[(((uint64_t)(uint32_t)c->index[i] + 1) * blocks - 1) / tokens]++;
            }
        }
    }
    smg_rows_close(&rows);
    for (b = 0; b < blocks; b++) {
        uint64_t size = (b + UINT64_C(1)) * tokens / blocks - (uint64_t)b * tokens / blocks;
        out[b] = (float)c->count[b] / (float)(size * n * o->world.model.kv_heads);
    }
    return SMG_OK;
}

static int count_layers(struct optimal *o, uint32_t request, uint32_t tokens, uint32_t blocks, float *value)
{
    struct counting c = {malloc(blocks * sizeof(*c.count)), malloc(tokens * sizeof(*c.index))};
    uint32_t layer;
    int status = c.count != NULL && c.index != NULL ? SMG_OK : SMG_ERR_NOMEM;

    for (layer = 0; layer < o->world.model.layers && status == SMG_OK; layer++) {
        if (smg_model_layer_selects(&o->world.model, layer)) {
            status = count_layer(o, request, tokens, layer, blocks, &c, value + (size_t)layer * blocks);
        }
    }
    free(c.index);
    free(c.count);
    return status;
}

static int holds(const struct cached *c, uint32_t request, uint32_t tokens, uint32_t blocks)
{
    return c->value != NULL && c->request == request && c->tokens == tokens && c->blocks == blocks;
}

/* The request's entry of the cache, or the one to put it in. */
static struct cached *place_of(struct optimal *o, uint32_t request, uint32_t tokens, uint32_t blocks)
{
    struct cached *oldest = &o->cache[0];
    uint32_t i;

    for (i = 0; i < CACHED; i++) {
        struct cached *c = &o->cache[i];
        if (holds(c, request, tokens, blocks)) {
            return c;
        }
        oldest = c->age < oldest->age ? c : oldest;
    }
    return oldest;
}

static int fill(struct optimal *o, struct cached *c, uint32_t request, uint32_t tokens, uint32_t blocks)
{
    float *value = calloc((size_t)o->world.model.layers * blocks, sizeof(*value));
    int status = value != NULL ? count_layers(o, request, tokens, blocks, value) : SMG_ERR_NOMEM;

    if (status != SMG_OK) {
        free(value);
        return status;
    }
    free(c->value);
    *c = (struct cached){.request = request, .tokens = tokens, .blocks = blocks, .value = value};
    return SMG_OK;
}

static int optimal_row(void *context, uint32_t request, uint32_t tokens, uint32_t layer, uint32_t blocks, float *out)
{
    struct optimal *o = context;
    struct cached *c = place_of(o, request, tokens, blocks);
    int status;

    if (request >= o->world.n_requests || layer >= o->world.model.layers) {
        return SMG_ERR_NOT_FOUND;
    }
    if (!holds(c, request, tokens, blocks)) {
        status = fill(o, c, request, tokens, blocks);
        if (status != SMG_OK) {
            return status;
        }
    }
    c->age = ++o->clock;
    memcpy(out, c->value + (size_t)layer * blocks, blocks * sizeof(*out));
    return SMG_OK;
}

int smg_importance_add_requests(struct smg_importance *im, const struct smg_world *w, struct smg_diag *diag)
{
    struct optimal *o = calloc(1, sizeof(*o));
    int status;

    if (o == NULL) {
        return SMG_ERR_NOMEM;
    }
    o->world = *w;
    status = smg_rows_create(&o->world, &o->rows, diag);
    if (status != SMG_OK) {
        free(o);
        return status;
    }
    im->request_row = optimal_row;
    im->request_context = o;
    im->request_free = optimal_free;
    return SMG_OK;
}
