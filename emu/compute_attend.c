/* Attention over the gathered rows, and the same by other means. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "emu/compute_priv.h"

/* K and V of the tokens generated up to this step, the present one included: [heads][step][dim]. */
static int make_generated(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer)
{
    uint8_t *k = smg_compute_buffer(c, SMG_BUF_NEW_K, (size_t)c->heads * step * l->half_bytes);
    uint8_t *v = smg_compute_buffer(c, SMG_BUF_NEW_V, (size_t)c->heads * step * l->half_bytes);

    if (!k || !v)
        return SMG_ERR_NOMEM;
    for (uint32_t h = 0; h < c->heads; h++) {
        for (uint32_t j = 0; j < step; j++) {
            uint64_t at = ((uint64_t)h * step + j) * l->half_bytes;
            smg_compute_half(c, request, layer, h, l->grid.tokens + j, 0, k + at);
            smg_compute_half(c, request, layer, h, l->grid.tokens + j, 1, v + at);
        }
    }
    return SMG_OK;
}

/* Over rows [heads][cap][dim], row[h] of them, and the tokens generated up to this step. */
static struct smg_attention_args over(const struct smg_compute *c, const void *query, const void *k_rows, const void *v_rows,
                                      const struct smg_compute_rows *rows, uint32_t step, float *out)
{
    return (struct smg_attention_args){.requests = 1,
                                       .q_heads = c->q_heads,
                                       .kv_heads = c->heads,
                                       .head_dim = c->dim,
                                       .type = c->type,
                                       .q = query,
                                       .n_runs = 2,
                                       .run = {{.k = k_rows,
                                                .v = v_rows,
                                                .head_stride = (uint64_t)rows->cap * c->dim,
                                                .entry_stride = c->dim,
                                                .length = rows->row,
                                                .max_length = rows->cap},
                                               {.k = c->buffer[SMG_BUF_NEW_K].data,
                                                .v = c->buffer[SMG_BUF_NEW_V].data,
                                                .head_stride = (uint64_t)step * c->dim,
                                                .entry_stride = c->dim,
                                                .max_length = step}},
                                       .scale = 1 / sqrtf((float)c->dim),
                                       .out = out};
}

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* The rows as they should be, made anew in order of ids: K in SMG_BUF_K, V in SMG_BUF_V, [heads][cap][dim]. */
static int make_rows(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer,
                     const struct smg_compute_rows *rows)
{
    size_t area = (size_t)c->heads * rows->cap * l->half_bytes;
    uint8_t *k = smg_compute_buffer(c, SMG_BUF_K, area), *v = smg_compute_buffer(c, SMG_BUF_V, area);
    int32_t *ids = smg_compute_buffer(c, SMG_BUF_IDS, rows->cap * sizeof *ids);

    if (!k || !v || !ids)
        return SMG_ERR_NOMEM;
    for (uint32_t h = 0; h < c->heads; h++) {
        memcpy(ids, rows->ids + (size_t)h * rows->cap, rows->row[h] * sizeof *ids);
        qsort(ids, rows->row[h], sizeof *ids, by_id);
        for (uint32_t j = 0; j < rows->row[h]; j++) {
            uint64_t at = ((uint64_t)h * rows->cap + j) * l->half_bytes;
            smg_compute_half(c, request, layer, h, (uint32_t)ids[j], 0, k + at);
            smg_compute_half(c, request, layer, h, (uint32_t)ids[j], 1, v + at);
        }
    }
    return SMG_OK;
}

static uint64_t digest_of(const float *out, size_t n, uint32_t request, uint32_t step, uint32_t layer)
{
    uint64_t h = smg_hash3(request, layer, step);

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], sizeof bits);
        h = smg_mix64(h ^ bits);
    }
    return h;
}

/* The same attention by the reference, over entries made anew in order of their ids, and how far out is from it. */
static int check_output(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer,
                        const struct smg_compute_rows *rows, const void *query, const float *out, struct smg_compute_error *error)
{
    float *expected = smg_compute_buffer(c, SMG_BUF_EXPECTED, (size_t)c->q_heads * c->dim * sizeof *expected);
    int status = expected ? make_rows(c, l, request, layer, rows) : SMG_ERR_NOMEM;

    if (!status) {
        struct smg_attention_args a = over(c, query, c->buffer[SMG_BUF_K].data, c->buffer[SMG_BUF_V].data, rows, step, expected);
        status = smg_attention(c->reference, &a, NULL);
        if (!status)
            status = smg_compute_error_of(c, &a, out, error);
    }
    return smg_compute_failed(c, status, "attention by the reference");
}

int smg_compute_attention(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer,
                          const struct smg_compute_rows *rows, int check, uint64_t *digest, struct smg_compute_error *error)
{
    size_t n = (size_t)c->q_heads * c->dim;
    float *out = smg_compute_buffer(c, SMG_BUF_OUT, n * sizeof *out);
    const void *query = smg_compute_query(c, request, smg_compute_position(l, step), layer, 0);
    int status = out && query ? make_generated(c, l, request, step, layer) : SMG_ERR_NOMEM;

    if (!status) {
        const uint8_t *v = rows->device + (uint64_t)c->heads * rows->cap * l->half_bytes;
        struct smg_attention_args a = over(c, query, rows->device, v, rows, step, out);
        status = smg_attention(c->k, &a, NULL);
    }
    if (status)
        return smg_compute_failed(c, status, "attention");
    *digest = digest_of(out, n, request, step, layer);
    *error = (struct smg_compute_error){0, 0};
    return check ? check_output(c, l, request, step, layer, rows, query, out, error) : SMG_OK;
}
