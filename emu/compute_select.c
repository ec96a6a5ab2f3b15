/* The selectors at work: metadata of a layer from its keys, and the entries that a step's query picks by it.
 *
 * Layout of a layer's metadata: InfiniGen bf16 [N][H][d']; HATA uint32 [N][H][bits/32], then fp16 norms [N][H]; Quest, for each
 * page that is full, elements kmin [H][d] and kmax [H][d] (a page that is not is the last: always chosen, so its bounds are of no
 * use). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emu/compute_priv.h"
#include "kernels/dtype.h"

enum { PAGE = 16 }; /* as smg_metadata_token_bytes counts */

static const struct smg_compute_layer *params_of(const struct smg_compute *c, uint32_t layer)
{
    return &c->plan->layer[layer];
}

/* ---- Metadata ---- */

static int infinigen_metadata(struct smg_compute *c, uint32_t tokens, uint32_t layer, const void *key, uint8_t *out)
{
    struct smg_skew_args a = {.rows = tokens,
                              .heads = c->heads,
                              .kv_heads = c->heads,
                              .head_dim = c->dim,
                              .width = c->plan->width,
                              .type = c->type,
                              .out_type = c->type,
                              .x = key,
                              .basis = params_of(c, layer)->basis,
                              .columns = params_of(c, layer)->columns,
                              .y = out};

    return smg_compute_failed(c, smg_skew(c->k, &a, NULL), "skew");
}

static int hata_metadata(struct smg_compute *c, uint32_t tokens, uint32_t layer, const void *key, uint8_t *out)
{
    uint32_t bits = c->world->scenario.selection.hash_bits;
    size_t n = (size_t)tokens * c->heads;
    float *norm = smg_compute_buffer(c, SMG_BUF_NORM, n * sizeof *norm);
    struct smg_hash_encode_args a = {.rows = tokens,
                                     .heads = c->heads,
                                     .kv_heads = c->heads,
                                     .head_dim = c->dim,
                                     .bits = bits,
                                     .weight_heads = c->heads,
                                     .type = c->type,
                                     .x = key,
                                     .weight = params_of(c, layer)->hash,
                                     .code = (uint32_t *)(void *)out,
                                     .norm = norm};
    int status = norm ? smg_hash_encode(c->k, &a, NULL) : SMG_ERR_NOMEM;

    for (size_t i = 0; i < n && !status; i++)
        smg_store(out + n * bits / 8, i, SMG_F16, norm[i]);
    return smg_compute_failed(c, status, "hash_encode");
}

static int quest_metadata(struct smg_compute *c, uint32_t tokens, const void *key, uint8_t *out)
{
    size_t row = (size_t)c->heads * c->dim, pages = tokens / PAGE;
    float *low = smg_compute_buffer(c, SMG_BUF_LOW, pages * row * sizeof *low);
    float *high = smg_compute_buffer(c, SMG_BUF_HIGH, pages * row * sizeof *high);
    struct smg_page_update_args a = {.count = (uint32_t)pages * PAGE,
                                     .kv_heads = c->heads,
                                     .head_dim = c->dim,
                                     .page = PAGE,
                                     .type = c->type,
                                     .key = key,
                                     .kmin = low,
                                     .kmax = high};
    int status = low && high ? smg_page_update(c->k, &a, NULL) : SMG_ERR_NOMEM;

    /* Bounds are values of keys, so storing them in the keys' type loses nothing. */
    for (size_t p = 0; p < pages && !status; p++) {
        for (size_t i = 0; i < row; i++) {
            smg_store(out, 2 * p * row + i, c->type, low[p * row + i]);
            smg_store(out, (2 * p + 1) * row + i, c->type, high[p * row + i]);
        }
    }
    return smg_compute_failed(c, status, "page_update");
}

/* From token-major keys. */
static int metadata_of(struct smg_compute *c, uint32_t tokens, uint32_t layer, uint64_t token_bytes, const void *key,
                       uint8_t *out)
{
    memset(out, 0, tokens * token_bytes);
    switch (c->world->scenario.selector) {
    case SMG_SELECTOR_INFINIGEN:
        return infinigen_metadata(c, tokens, layer, key, out);
    case SMG_SELECTOR_HATA:
        return hata_metadata(c, tokens, layer, key, out);
    case SMG_SELECTOR_QUEST:
        return quest_metadata(c, tokens, key, out);
    case SMG_SELECTOR_ORACLE:
        return SMG_OK;
    }
    return SMG_OK;
}

int smg_compute_metadata(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, const uint8_t *kv, uint8_t *out)
{
    size_t bytes = l->grid.tokens * c->heads * l->half_bytes;
    struct smg_unpack_args a = {.kv = kv + l->layer_offset[layer],
                                .k = smg_compute_buffer(c, SMG_BUF_K, bytes),
                                .v = smg_compute_buffer(c, SMG_BUF_V, bytes)};
    int status = a.k && a.v ? smg_compute_blocks(c, l, layer, &a.blocks) : SMG_ERR_NOMEM;

    if (!status)
        status = smg_unpack(c->k, &a, NULL);
    if (status)
        return smg_compute_failed(c, status, "unpack");
    return metadata_of(c, l->grid.tokens, layer, l->metadata_token_bytes, a.k, out);
}

int smg_compute_metadata_expected(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer,
                                  uint8_t *out)
{
    size_t row = c->heads * l->half_bytes;
    uint8_t *k = smg_compute_buffer(c, SMG_BUF_K, l->grid.tokens * row);

    if (!k)
        return smg_compute_failed(c, SMG_ERR_NOMEM, "metadata");
    for (uint32_t t = 0; t < l->grid.tokens; t++)
        for (uint32_t h = 0; h < c->heads; h++)
            smg_compute_half(c, request, layer, h, t, 0, k + t * row + h * l->half_bytes);
    return metadata_of(c, l->grid.tokens, layer, l->metadata_token_bytes, k, out);
}

/* ---- Selection ---- */

/* One selection: of whom, by what, into which row buffers. */
struct pick {
    struct smg_compute *c;
    uint32_t request, step, layer, tokens, k_max;
    const uint8_t *metadata;
    const void *query;
    int32_t *index;   /* [heads][k_max] */
    uint32_t *length; /* [heads] */
};

/* The best of each row of scores [heads][n], ids ascending: index[heads][k], keep of them (NULL: k). */
static int take_best(struct pick *p, const float *score, uint32_t n, uint32_t k, const uint32_t *keep, int32_t *index)
{
    struct smg_topk_args a = {.rows = p->c->heads,
                              .n = n,
                              .k = k,
                              .order = SMG_TOPK_BY_INDEX,
                              .score = score,
                              .k_of_row = keep,
                              .row_group = p->c->heads,
                              .index = index,
                              .length = p->length};

    return smg_compute_failed(p->c, smg_topk(p->c->k, &a, NULL), "topk");
}

/* Scores per query head by dot products, and per KV head by the softmax of their group. count: InfiniGen's threshold, else k_max.
 */
static int by_dots(struct pick *p, const void *query, const void *key, uint32_t width, uint64_t head_stride,
                   uint64_t token_stride, int threshold)
{
    struct smg_compute *c = p->c;
    float *score = smg_compute_buffer(c, SMG_BUF_SCORE, (size_t)c->q_heads * p->tokens * sizeof *score);
    float *group = smg_compute_buffer(c, SMG_BUF_GROUP, (size_t)c->heads * p->tokens * sizeof *group);
    uint32_t count[SMG_COMPUTE_MAX_HEADS], keep = p->k_max;
    struct smg_scores_args s = {.requests = 1,
                                .q_heads = c->q_heads,
                                .kv_heads = c->heads,
                                .width = width,
                                .max_tokens = p->tokens,
                                .type = c->type,
                                .q = query,
                                .key = key,
                                .token_stride = token_stride,
                                .head_stride = head_stride,
                                .tokens = &p->tokens,
                                .scale = 1 / sqrtf((float)c->dim),
                                .score = score};
    struct smg_threshold_args t = {.requests = 1,
                                   .q_heads = c->q_heads,
                                   .max_tokens = p->tokens,
                                   .score = score,
                                   .tokens = &p->tokens,
                                   .k_max = &p->k_max,
                                   .alpha = (float)c->world->scenario.selection.alpha,
                                   .count = count,
                                   .keep = &keep};
    struct smg_group_scores_args g = {.requests = 1,
                                      .q_heads = c->q_heads,
                                      .kv_heads = c->heads,
                                      .max_tokens = p->tokens,
                                      .mode = SMG_GROUP_SOFTMAX_SUM,
                                      .score = score,
                                      .tokens = &p->tokens,
                                      .group = group};
    int status = score && group ? smg_scores(c->k, &s, NULL) : SMG_ERR_NOMEM;

    if (!status && threshold)
        status = smg_threshold(c->k, &t, NULL);
    if (!status)
        status = smg_group_scores(c->k, &g, NULL);
    if (status)
        return smg_compute_failed(c, status, "scores");
    return take_best(p, group, p->tokens, p->k_max, &keep, p->index);
}

static int pick_infinigen(struct pick *p)
{
    struct smg_compute *c = p->c;
    uint32_t width = c->plan->width;
    struct smg_skew_args a = {.rows = 1,
                              .heads = c->q_heads,
                              .kv_heads = c->heads,
                              .head_dim = c->dim,
                              .width = width,
                              .type = c->type,
                              .out_type = c->type,
                              .x = p->query,
                              .basis = params_of(c, p->layer)->basis,
                              .columns = params_of(c, p->layer)->columns,
                              .y = smg_compute_buffer(c, SMG_BUF_QUERY_SHORT, (size_t)c->q_heads * width * sizeof(float))};
    int status = a.y ? smg_skew(c->k, &a, NULL) : SMG_ERR_NOMEM;

    if (status)
        return smg_compute_failed(c, status, "skew");
    return by_dots(p, a.y, p->metadata, width, width, (uint64_t)c->heads * width, 1);
}

/* Knows all keys, wherever they are: made anew. */
static int pick_oracle(struct pick *p)
{
    struct smg_compute *c = p->c;
    size_t bytes = c->dim * smg_dtype_bytes(c->type);
    uint8_t *k = smg_compute_buffer(c, SMG_BUF_K, (size_t)p->tokens * c->heads * bytes);

    if (!k)
        return smg_compute_failed(c, SMG_ERR_NOMEM, "oracle");
    for (uint32_t t = 0; t < p->tokens; t++)
        for (uint32_t h = 0; h < c->heads; h++)
            smg_compute_half(c, p->request, p->layer, h, t, 0, k + ((size_t)t * c->heads + h) * bytes);
    return by_dots(p, p->query, k, c->dim, c->dim, (uint64_t)c->heads * c->dim, 0);
}

static int pick_hata(struct pick *p)
{
    struct smg_compute *c = p->c;
    uint32_t bits = c->world->scenario.selection.hash_bits;
    size_t n = (size_t)p->tokens * c->heads;
    uint32_t *code = smg_compute_buffer(c, SMG_BUF_QUERY_SHORT, (size_t)c->q_heads * bits / 8);
    float *norm = smg_compute_buffer(c, SMG_BUF_NORM, n * sizeof *norm);
    float *score = smg_compute_buffer(c, SMG_BUF_GROUP, n * sizeof *score);
    struct smg_hash_encode_args e = {.rows = 1,
                                     .heads = c->q_heads,
                                     .kv_heads = c->heads,
                                     .head_dim = c->dim,
                                     .bits = bits,
                                     .weight_heads = c->heads,
                                     .type = c->type,
                                     .x = p->query,
                                     .weight = params_of(c, p->layer)->hash,
                                     .code = code};
    struct smg_hash_scores_args s = {.requests = 1,
                                     .q_heads = c->q_heads,
                                     .kv_heads = c->heads,
                                     .bits = bits,
                                     .max_tokens = p->tokens,
                                     .q_code = code,
                                     .key_code = (const uint32_t *)(const void *)p->metadata,
                                     .norm = norm,
                                     .tokens = &p->tokens,
                                     .score = score};
    int status = code && norm && score ? smg_hash_encode(c->k, &e, NULL) : SMG_ERR_NOMEM;

    for (size_t i = 0; i < n && !status; i++)
        norm[i] = smg_load(p->metadata + n * bits / 8, i, SMG_F16);
    if (!status)
        status = smg_hash_scores(c->k, &s, NULL);
    if (status)
        return smg_compute_failed(c, status, "hash_scores");
    return take_best(p, score, p->tokens, p->k_max, NULL, p->index);
}

static int pick_quest(struct pick *p)
{
    struct smg_compute *c = p->c;
    size_t row = (size_t)c->heads * c->dim, full = p->tokens / PAGE;
    uint32_t pages = (p->tokens + PAGE - 1) / PAGE, most = p->k_max / PAGE ? p->k_max / PAGE : 1;
    float *low = smg_compute_buffer(c, SMG_BUF_LOW, pages * row * sizeof *low);
    float *high = smg_compute_buffer(c, SMG_BUF_HIGH, pages * row * sizeof *high);
    float *bound = smg_compute_buffer(c, SMG_BUF_GROUP, (size_t)c->heads * pages * sizeof *bound);
    int32_t *chosen = smg_compute_buffer(c, SMG_BUF_PAGE, (size_t)c->heads * most * sizeof *chosen);
    struct smg_page_scores_args s = {.requests = 1,
                                     .q_heads = c->q_heads,
                                     .kv_heads = c->heads,
                                     .head_dim = c->dim,
                                     .max_pages = pages,
                                     .type = c->type,
                                     .q = p->query,
                                     .kmin = low,
                                     .kmax = high,
                                     .pages = &pages,
                                     .bound = bound};
    struct smg_page_expand_args e = {.rows = c->heads,
                                     .row_group = c->heads,
                                     .n_pages = most,
                                     .page = PAGE,
                                     .k = p->k_max,
                                     .chosen = chosen,
                                     .tokens = &p->tokens,
                                     .index = p->index,
                                     .length = p->length};
    int status;

    if (!low || !high || !bound || !chosen)
        return smg_compute_failed(c, SMG_ERR_NOMEM, "quest");
    memset(low + full * row, 0, (pages - full) * row * sizeof *low);
    memset(high + full * row, 0, (pages - full) * row * sizeof *high);
    for (size_t g = 0; g < full; g++) {
        for (size_t i = 0; i < row; i++) {
            low[g * row + i] = smg_load(p->metadata, 2 * g * row + i, c->type);
            high[g * row + i] = smg_load(p->metadata, (2 * g + 1) * row + i, c->type);
        }
    }
    status = smg_page_scores(c->k, &s, NULL);
    if (status)
        return smg_compute_failed(c, status, "page_scores");
    status = take_best(p, bound, pages, most, NULL, chosen);
    return status ? status : smg_compute_failed(c, smg_page_expand(c->k, &e, NULL), "page_expand");
}

static int pick(struct pick *p)
{
    switch (p->c->world->scenario.selector) {
    case SMG_SELECTOR_INFINIGEN:
        return pick_infinigen(p);
    case SMG_SELECTOR_HATA:
        return pick_hata(p);
    case SMG_SELECTOR_QUEST:
        return pick_quest(p);
    case SMG_SELECTOR_ORACLE:
        return pick_oracle(p);
    }
    return SMG_ERR_INVALID;
}

/* Entries of a KV head at most: the cap. What InfiniGen's threshold selects below it is counted here; selection.natural is what
 * the simulator takes for that. */
static uint32_t most_entries(const struct smg_compute *c, uint32_t tokens)
{
    double k = floor(c->world->scenario.selection.cap * tokens + 1e-9); /* as smg_selection_k rounds */

    return k < 1 ? 1 : k > tokens ? tokens : (uint32_t)k;
}

/* A layer without a selector uses all it keeps. */
static void all_kept(const struct smg_layout *l, uint32_t layer, int32_t *index, uint32_t cap, uint32_t *row)
{
    for (uint32_t h = 0; h < l->heads; h++) {
        row[h] = l->grid.tokens - l->kept_lo[layer];
        for (uint32_t j = 0; j < row[h]; j++)
            index[(size_t)h * cap + j] = (int32_t)(l->kept_lo[layer] + j);
    }
}

int smg_compute_select(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer,
                       const uint8_t *metadata, int32_t *index, uint32_t cap, uint32_t *row)
{
    struct pick p = {c, request, step, layer, l->grid.tokens, most_entries(c, l->grid.tokens), metadata, NULL, NULL, row};
    int status;

    if (!smg_model_layer_selects(&c->world->model, layer)) {
        all_kept(l, layer, index, cap, row);
        return SMG_OK;
    }
    /* Only InfiniGen selects a layer ahead, by a query that it guesses. */
    p.query = smg_compute_query(c, request, smg_compute_position(l, step), layer,
                                c->world->scenario.selector == SMG_SELECTOR_INFINIGEN);
    p.index = smg_compute_buffer(c, SMG_BUF_INDEX, (size_t)c->heads * p.k_max * sizeof *p.index);
    if (!p.query || !p.index)
        return smg_compute_failed(c, SMG_ERR_NOMEM, "selection");
    status = pick(&p);
    for (uint32_t h = 0; h < c->heads && !status; h++)
        memcpy(index + (size_t)h * cap, p.index + (size_t)h * p.k_max, row[h] * sizeof *index);
    return status;
}
