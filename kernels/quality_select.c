/* Each selector as a sequence of kernels, for one request at a time. */
#include <math.h>
#include <stdlib.h>

#include "kernels/quality.h"

/* ---- Memory ---- */

static void *take(struct smg_quality_state *s, size_t bytes)
{
    void *p = NULL;

    if (s->buffers == SMG_QUALITY_BUFFERS || smg_memory_alloc(s->k, bytes, &p))
        return NULL;
    s->buffer[s->buffers++] = p;
    return p;
}

static int take_all(struct smg_quality_state *s)
{
    const struct smg_planted *g = &s->p->planted;
    size_t n = s->p->tokens, hq = g->q_heads, h = g->kv_heads, d = g->head_dim, words = s->p->hata.bits / 32,
           bytes = smg_dtype_bytes(s->p->type);

    return (s->tokens = take(s, 4)) && (s->n_pages = take(s, 4)) && (s->k_max = take(s, 4)) && (s->keep = take(s, 4)) &&
           (s->q = take(s, hq * d * bytes)) && (s->key = take(s, n * h * d * bytes)) &&
           (s->q_partial = take(s, hq * s->width * bytes)) && (s->key_partial = take(s, n * h * s->width * bytes)) &&
           (s->basis = take(s, h * d * d * 4)) && (s->columns = take(s, h * s->width)) &&
           (s->weight[0] = take(s, h * d * words * 128)) && (s->weight[1] = take(s, h * d * words * 128)) &&
           (s->q_code = take(s, hq * words * 4)) && (s->key_code[0] = take(s, n * h * words * 4)) &&
           (s->key_code[1] = take(s, n * h * words * 4)) && (s->norm = take(s, n * h * 4)) &&
           (s->kmin = take(s, s->pages * h * d * 4)) && (s->kmax = take(s, s->pages * h * d * 4)) &&
           (s->score = take(s, hq * n * 4)) && (s->group = take(s, h * n * 4)) && (s->count = take(s, hq * 4)) &&
           (s->chosen = take(s, h * s->pages * 4)) && (s->index = take(s, h * n * 4)) && (s->length = take(s, h * 4));
}

int smg_quality_state_create(struct smg_quality_state *s)
{
    const struct smg_planted *g = &s->p->planted;
    size_t cells = (size_t)g->kv_heads * s->p->tokens, bytes = smg_dtype_bytes(s->p->type);
    size_t longest = s->p->tokens > s->p->calibration_tokens ? s->p->tokens : s->p->calibration_tokens;
    uint32_t one[3] = {s->p->tokens, s->pages, s->p->tokens};
    int status = SMG_ERR_NOMEM;

    s->raw = malloc(longest * g->q_heads * g->head_dim * bytes);
    s->mass = malloc(cells * sizeof *s->mass);
    s->row = malloc(cells * sizeof *s->row);
    s->order = malloc(cells * sizeof *s->order);
    s->place = malloc(cells * sizeof *s->place);
    if (s->raw && s->mass && s->row && s->order && s->place && take_all(s))
        status = smg_memory_copy(s->k, s->tokens, &one[0], 4, NULL);
    if (!status)
        status = smg_memory_copy(s->k, s->n_pages, &one[1], 4, NULL);
    if (!status)
        status = smg_memory_copy(s->k, s->k_max, &one[2], 4, NULL);
    if (!status)
        status = smg_stream_sync(s->k, NULL);
    return status;
}

void smg_quality_state_destroy(struct smg_quality_state *s)
{
    while (s->buffers)
        smg_memory_free(s->k, s->buffer[--s->buffers]);
    free(s->raw);
    free(s->mass);
    free(s->row);
    free(s->order);
    free(s->place);
}

/* To the backend, and back; the host's side is free, or there, on return. */
static int send(struct smg_quality_state *s, void *to, const void *from, size_t bytes)
{
    int status = smg_memory_copy(s->k, to, from, bytes, NULL);

    return status ? status : smg_stream_sync(s->k, NULL);
}

/* ---- Once for all: weights ---- */

int smg_quality_calibrate(struct smg_quality_state *s, double loss[2], struct smg_diag *diag)
{
    const struct smg_quality_params *p = s->p;
    const struct smg_planted *g = &p->planted;
    size_t row = (size_t)p->calibration_tokens * g->head_dim * smg_dtype_bytes(p->type), h = g->kv_heads, d = g->head_dim,
           n_weight = h * d * p->hata.bits;
    struct smg_calibration c = {p->calibration_tokens, g->q_heads, g->kv_heads, g->head_dim, p->type, NULL, NULL};
    void *q = malloc(row * g->q_heads), *key = malloc(row * h);
    float *basis = malloc(h * d * d * sizeof *basis), *weight = malloc(n_weight * sizeof *weight);
    uint8_t *columns = malloc(h * s->width);
    int status = SMG_ERR_NOMEM;

    if (!q || !key || !basis || !weight || !columns) {
        *diag = (struct smg_diag){"out of memory for the calibration"};
        goto free_all;
    }
    smg_planted_fill(g, SMG_PLANTED_QUERY, SMG_PLANTED_CALIBRATION, p->layer, 0, p->calibration_tokens, p->type, q);
    smg_planted_fill(g, SMG_PLANTED_KEY, SMG_PLANTED_CALIBRATION, p->layer, 0, p->calibration_tokens, p->type, key);
    c.q = q;
    c.k = key;
    status = smg_skew_basis(&c, basis, diag);
    if (!status)
        status = smg_skew_columns(&c, basis, p->columns, s->width, columns, diag);
    if (!status)
        status = smg_hata_train(&p->hata, &c, 1, weight, loss, diag);
    if (status)
        goto free_all;
    status = send(s, s->basis, basis, h * d * d * sizeof *basis);
    if (!status)
        status = send(s, s->columns, columns, h * s->width);
    if (!status)
        status = send(s, s->weight[0], weight, n_weight * sizeof *weight);
    smg_hata_untrained(p->hata.seed, g->kv_heads, g->head_dim, p->hata.bits, weight);
    if (!status)
        status = send(s, s->weight[1], weight, n_weight * sizeof *weight);
    if (status)
        *diag = (struct smg_diag){"weights cannot be copied to the backend"};
free_all:
    free(q);
    free(key);
    free(basis);
    free(weight);
    free(columns);
    return status;
}

/* ---- Once for a request: keys ---- */

static int skew(struct smg_quality_state *s, uint32_t rows, uint32_t heads, const void *x, void *y)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_skew_args a = {rows,       heads, g->kv_heads, g->head_dim, s->width, s->p->type,
                                    s->p->type, x,     s->basis,    s->columns,  y};

    return smg_skew(s->k, &a, NULL);
}

static int encode(struct smg_quality_state *s, uint32_t rows, uint32_t heads, const void *x, int untrained, uint32_t *code,
                  float *norm)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_hash_encode_args a = {
        rows, heads, g->kv_heads, g->head_dim, s->p->hata.bits, g->kv_heads, s->p->type, x, s->weight[untrained], code, norm};

    return smg_hash_encode(s->k, &a, NULL);
}

int smg_quality_keys(struct smg_quality_state *s, uint64_t request)
{
    const struct smg_quality_params *p = s->p;
    const struct smg_planted *g = &p->planted;
    uint32_t n = p->tokens, h = g->kv_heads, d = g->head_dim;
    const struct smg_page_update_args pages = {0, n, h, d, p->page, p->type, s->key, s->kmin, s->kmax};
    int status;

    smg_planted_fill(g, SMG_PLANTED_KEY, request, p->layer, 0, n, p->type, s->raw);
    status = send(s, s->key, s->raw, (size_t)n * h * d * smg_dtype_bytes(p->type));
    if (!status)
        status = skew(s, n, h, s->key, s->key_partial);
    for (int i = 0; !status && i < 2; i++)
        status = encode(s, n, h, s->key, i, s->key_code[i], s->norm);
    return status ? status : smg_page_update(s->k, &pages, NULL);
}

int smg_quality_query(struct smg_quality_state *s, uint64_t request, uint32_t position, enum smg_planted_what what)
{
    const struct smg_planted *g = &s->p->planted;

    smg_planted_fill(g, what, request, s->p->layer, position, 1, s->p->type, s->raw);
    return send(s, s->q, s->raw, (size_t)g->q_heads * g->head_dim * smg_dtype_bytes(s->p->type));
}

/* ---- Scores ---- */

static int fetch(struct smg_quality_state *s, void *to, const void *from, uint64_t n)
{
    return send(s, to, from, n * s->p->planted.kv_heads * 4);
}

/* Products with keys of a width, to s->score. */
static int products(struct smg_quality_state *s, uint32_t width, const void *q, const void *key)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_scores_args a = {.requests = 1,
                                      .q_heads = g->q_heads,
                                      .kv_heads = g->kv_heads,
                                      .width = width,
                                      .max_tokens = s->p->tokens,
                                      .type = s->p->type,
                                      .q = q,
                                      .key = key,
                                      .token_stride = (uint64_t)g->kv_heads * width,
                                      .head_stride = width,
                                      .tokens = s->tokens,
                                      .scale = 1 / sqrtf((float)g->head_dim),
                                      .score = s->score};

    return smg_scores(s->k, &a, NULL);
}

static int group(struct smg_quality_state *s)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_group_scores_args a = {1,        g->q_heads, g->kv_heads, s->p->tokens, SMG_GROUP_SOFTMAX_SUM,
                                            s->score, s->tokens,  s->group};
    int status = smg_group_scores(s->k, &a, NULL);

    return status ? status : fetch(s, s->row, s->group, s->p->tokens);
}

int smg_quality_exact(struct smg_quality_state *s)
{
    int status = products(s, s->p->planted.head_dim, s->q, s->key);

    return status ? status : group(s);
}

int smg_quality_infinigen(struct smg_quality_state *s, uint32_t *keep)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_threshold_args a = {1,        g->q_heads,  s->p->tokens, s->score, s->tokens,
                                         s->k_max, s->p->alpha, s->count,     s->keep};
    int status = skew(s, 1, g->q_heads, s->q, s->q_partial);

    if (!status)
        status = products(s, s->width, s->q_partial, s->key_partial);
    if (!status)
        status = smg_threshold(s->k, &a, NULL);
    if (!status && keep)
        status = send(s, keep, s->keep, 4);
    return status ? status : group(s);
}

int smg_quality_hata(struct smg_quality_state *s, int untrained)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_hash_scores_args a = {.requests = 1,
                                           .q_heads = g->q_heads,
                                           .kv_heads = g->kv_heads,
                                           .bits = s->p->hata.bits,
                                           .max_tokens = s->p->tokens,
                                           .q_code = s->q_code,
                                           .key_code = s->key_code[untrained],
                                           .norm = s->norm,
                                           .tokens = s->tokens,
                                           .score = s->group};
    int status = encode(s, 1, g->q_heads, s->q, untrained, s->q_code, NULL);

    if (!status)
        status = smg_hash_scores(s->k, &a, NULL);
    return status ? status : fetch(s, s->row, s->group, s->p->tokens);
}

/* All pages in order of their bounds, then their tokens. */
int smg_quality_quest(struct smg_quality_state *s)
{
    const struct smg_planted *g = &s->p->planted;
    const struct smg_page_scores_args a = {1,    g->q_heads, g->kv_heads, g->head_dim, s->pages, s->p->type,
                                           s->q, s->kmin,    s->kmax,     s->n_pages,  s->group};
    const struct smg_page_expand_args e = {g->kv_heads, g->kv_heads, s->pages, s->p->page, s->p->tokens,
                                           s->chosen,   s->tokens,   s->index, s->length};
    int status = smg_page_scores(s->k, &a, NULL);

    if (!status)
        status = fetch(s, s->row, s->group, s->pages);
    if (!status)
        status = smg_quality_rank(s, s->pages);
    if (!status)
        status = fetch(s, s->chosen, s->order, s->pages);
    if (!status)
        status = smg_page_expand(s->k, &e, NULL);
    return status ? status : fetch(s, s->order, s->index, s->p->tokens);
}
