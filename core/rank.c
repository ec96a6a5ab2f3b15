#include "core/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/reserve.h"
#include "core/status.h"

/* A new ranking is a file core/rank_NAME.c, its declaration here, and its line in the table. */
extern const struct smg_rank_type smg_rank_profile;
extern const struct smg_rank_type smg_rank_sequential;
extern const struct smg_rank_type smg_rank_random;
extern const struct smg_rank_type smg_rank_streamingllm;

const struct smg_rank_type *const smg_rank_types[] = {
    &smg_rank_profile,
    &smg_rank_sequential,
    &smg_rank_random,
    &smg_rank_streamingllm,
    &smg_rank_optimal,
    NULL,
};

const struct smg_rank_type *smg_rank_find(const char *name)
{
    for (const struct smg_rank_type *const *t = smg_rank_types; *t != NULL; t++) {
        if (strcmp((*t)->name, name) == 0) {
            return *t;
        }
    }
    return NULL;
}

struct scored_block {
    float score;
    struct smg_block_id id;
};

static int compare_scored(const void *pa, const void *pb)
{
    const struct scored_block *a = pa, *b = pb;

    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->id.layer != b->id.layer) {
        return a->id.layer < b->id.layer ? -1 : 1;
    }
    return a->id.block < b->id.block ? -1 : a->id.block > b->id.block;
}

static struct smg_block_id block_id(uint32_t layer, uint32_t block)
{
    return (struct smg_block_id){.layer = (uint16_t)layer, .block = block};
}

/* Scores the non-empty blocks of the layers that are not dense into list[]. */
static int score_layers(struct smg_store *s, const struct smg_rank_type *type, const struct smg_rank_input *in,
                        struct scored_block *list)
{
    const struct smg_grid *g = in->grid;
    float *score = smg_store_take(s, g->blocks * sizeof(*score));
    int status = SMG_OK;

    if (score == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (uint32_t l = SMG_DENSE_LAYERS; l < g->model->layers; l++) {
        if ((status = type->score(in, l, score)) != SMG_OK) {
            break;
        }
        for (uint32_t b = smg_grid_first(g, l); b < g->blocks; b++) {
            /* NaN has no place in an order: last. */
            list->score = isnan(score[b]) ? -INFINITY : score[b];
            list->id = block_id(l, b);
            list++;
        }
    }
    smg_store_give(s, score);
    return status;
}

static uint32_t place_dense(const struct smg_grid *g, struct smg_block_id *order)
{
    uint32_t n = 0;

    for (uint32_t l = 0; l < SMG_DENSE_LAYERS && l < g->model->layers; l++) {
        for (uint32_t b = smg_grid_first(g, l); b < g->blocks; b++) {
            order[n++] = block_id(l, b);
        }
    }
    return n;
}

static int place_scored(struct smg_store *s, const struct smg_rank_type *type, const struct smg_rank_input *in,
                        struct smg_block_id *order, uint32_t n)
{
    struct scored_block *list;
    int status;

    if (n == 0) {
        return SMG_OK;
    }
    list = smg_store_take(s, n * sizeof(*list));
    if (list == NULL) {
        return SMG_ERR_NOMEM;
    }
    status = score_layers(s, type, in, list);
    if (status == SMG_OK) {
        qsort(list, n, sizeof(*list), compare_scored);
        for (uint32_t i = 0; i < n; i++) {
            order[i] = list[i].id;
        }
    }
    smg_store_give(s, list);
    return status;
}

/* Inverse of the order; blocks that are not in it are empty. */
static void fill_positions(struct smg_rank *r)
{
    memset(r->position, 0xff, (size_t)r->layers * r->blocks * sizeof(*r->position));
    for (uint32_t i = 0; i < r->total; i++) {
        r->position[(size_t)r->order[i].layer * r->blocks + r->order[i].block] = i;
    }
}

uint64_t smg_rank_cost(const struct smg_grid *g)
{
    uint64_t total = smg_grid_total_blocks(g), all = (uint64_t)g->model->layers * g->blocks;

    return smg_store_cost(sizeof(struct smg_rank)) + smg_store_cost(total * sizeof(struct smg_block_id)) +
           smg_store_cost(all * sizeof(uint32_t)) + smg_store_cost(total * sizeof(struct scored_block)) +
           smg_store_cost(g->blocks * sizeof(float));
}

int smg_rank_create(const struct smg_rank_type *type, const struct smg_rank_input *in, struct smg_rank **out)
{
    return smg_rank_create_in(NULL, type, in, out);
}

int smg_rank_create_in(struct smg_store *s, const struct smg_rank_type *type, const struct smg_rank_input *in,
                       struct smg_rank **out)
{
    const struct smg_grid *g = in->grid;
    struct smg_rank *r;
    uint32_t dense;
    int status = SMG_ERR_NOMEM;

    if (g->model->layers == 0 || g->blocks > UINT32_MAX / g->model->layers) {
        return SMG_ERR_RANGE;
    }
    r = smg_store_take(s, sizeof(*r));
    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    r->store = s;
    r->total = smg_grid_total_blocks(g);
    r->layers = g->model->layers;
    r->blocks = g->blocks;
    r->references = 1;
    r->order = smg_store_take(s, r->total * sizeof(*r->order));
    if (r->order == NULL) {
        goto err_free_rank;
    }
    r->position = smg_store_take(s, (uint64_t)r->blocks * r->layers * sizeof(*r->position));
    if (r->position == NULL) {
        goto err_free_order;
    }
    dense = place_dense(g, r->order);
    status = place_scored(s, type, in, r->order + dense, r->total - dense);
    if (status != SMG_OK) {
        goto err_free_position;
    }
    fill_positions(r);
    *out = r;
    return SMG_OK;

err_free_position:
    smg_store_give(s, r->position);
err_free_order:
    smg_store_give(s, r->order);
err_free_rank:
    smg_store_give(s, r);
    return status;
}

struct smg_rank *smg_rank_ref(struct smg_rank *r)
{
    r->references++;
    return r;
}

void smg_rank_unref(struct smg_rank *r)
{
    if (r == NULL || --r->references > 0) {
        return;
    }
    smg_store_give(r->store, r->position);
    smg_store_give(r->store, r->order);
    smg_store_give(r->store, r);
}
