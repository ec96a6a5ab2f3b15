/* Contents of the KV cache by kernels, and moving entries. */
#include "emu/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/compute_priv.h"

/* ---- Memory and errors ---- */

void *smg_compute_buffer(struct smg_compute *c, int which, size_t bytes)
{
    struct smg_buffer *b = &c->buffer[which];

    if (bytes > b->bytes || !b->data) {
        free(b->data);
        b->data = malloc(bytes ? bytes : 1);
        b->bytes = b->data ? bytes : 0;
    }
    return b->data;
}

int smg_compute_failed(struct smg_compute *c, int status, const char *what)
{
    if (status)
        snprintf(c->diag, sizeof c->diag, "%s: %.180s", what,
                 smg_kernels_diag(c->k)[0] ? smg_kernels_diag(c->k) : smg_status_string(status));
    return status;
}

const char *smg_compute_diag(const struct smg_compute *c)
{
    return c->diag[0] ? c->diag : "the kernels failed";
}

int smg_compute_create(const struct smg_world *w, const struct smg_compute_plan *plan, struct smg_compute **out,
                       struct smg_diag *diag)
{
    /* One instance of several on this host: it does not spread over its neighbours' cores. */
    static const struct smg_kernels_options one_thread = {1, 0, NULL};
    struct smg_compute *c = calloc(1, sizeof *c);
    int status;

    if (!c)
        return SMG_ERR_NOMEM;
    c->world = w;
    c->plan = plan;
    c->heads = w->model.kv_heads;
    c->q_heads = w->model.q_heads;
    c->dim = w->model.head_dim;
    c->type = plan->type;
    status = smg_kernels_open(w->scenario.emu.backend == SMG_BACKEND_REFERENCE ? "reference" : "cpu", &one_thread, &c->k, diag);
    if (!status)
        status = smg_kernels_open("reference", NULL, &c->reference, diag);
    if (status) {
        smg_compute_destroy(c);
        return status;
    }
    *out = c;
    return SMG_OK;
}

void smg_compute_destroy(struct smg_compute *c)
{
    if (!c)
        return;
    for (int i = 0; i < SMG_BUFFERS; i++)
        free(c->buffer[i].data);
    smg_kernels_close(c->reference);
    smg_kernels_close(c->k);
    free(c);
}

/* ---- Content ---- */

void smg_compute_half(struct smg_compute *c, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, void *out)
{
    if (v)
        smg_planted_value(&c->plan->planted, request, layer, head, token, c->type, out);
    else
        smg_planted_key(&c->plan->planted, request, layer, head, token, c->type, out);
}

int smg_compute_blocks(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, struct smg_kv_blocks *out)
{
    uint32_t *start = smg_compute_buffer(c, SMG_BUF_START, (l->grid.blocks + 1) * sizeof *start), lo, hi;

    if (!start)
        return SMG_ERR_NOMEM;
    for (uint32_t m = 0; m < l->grid.blocks; m++) {
        smg_grid_block(&l->grid, layer, m, &lo, &hi);
        start[m] = lo == hi || lo < l->kept_lo[layer] ? l->kept_lo[layer] : lo;
    }
    start[l->grid.blocks] = l->grid.tokens;
    *out = (struct smg_kv_blocks){l->grid.tokens, l->grid.blocks, l->heads, (uint32_t)l->half_bytes, start};
    return SMG_OK;
}

/* Token-major K and V, as a model's layer makes them, in SMG_BUF_K and SMG_BUF_V. */
static int make_tokens(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer)
{
    size_t row = c->heads * l->half_bytes;
    uint8_t *k = smg_compute_buffer(c, SMG_BUF_K, l->grid.tokens * row),
            *v = smg_compute_buffer(c, SMG_BUF_V, l->grid.tokens * row);

    if (!k || !v)
        return SMG_ERR_NOMEM;
    for (uint32_t t = l->kept_lo[layer]; t < l->grid.tokens; t++) {
        for (uint32_t h = 0; h < c->heads; h++) {
            smg_compute_half(c, request, layer, h, t, 0, k + t * row + h * l->half_bytes);
            smg_compute_half(c, request, layer, h, t, 1, v + t * row + h * l->half_bytes);
        }
    }
    return SMG_OK;
}

int smg_compute_fill(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer, uint8_t *kv)
{
    struct smg_pack_args a = {.kv = kv + l->layer_offset[layer]};
    int status = make_tokens(c, l, request, layer);

    if (!status)
        status = smg_compute_blocks(c, l, layer, &a.blocks);
    if (status)
        return smg_compute_failed(c, status, "filling a layer");
    a.k = c->buffer[SMG_BUF_K].data;
    a.v = c->buffer[SMG_BUF_V].data;
    return smg_compute_failed(c, smg_pack(c->k, &a, NULL), "pack");
}

void *smg_compute_query(struct smg_compute *c, uint32_t request, uint32_t position, uint32_t layer, int rehearsed)
{
    void *q = smg_compute_buffer(c, SMG_BUF_QUERY, c->q_heads * c->dim * smg_dtype_bytes(c->type));

    if (q)
        smg_planted_fill(&c->plan->planted, rehearsed ? SMG_PLANTED_REHEARSED : SMG_PLANTED_QUERY, request, layer, position, 1,
                         c->type, q);
    return q;
}

/* ---- Moving ---- */

int smg_compute_split(struct smg_compute *c, const int32_t *index, uint32_t n, const int8_t *mask, uint32_t width,
                      const uint64_t *kept, int reorder, int32_t *ids, uint8_t *remote, uint32_t *n_remote, uint32_t *n_local)
{
    struct smg_split_args a = {.rows = 1,
                               .heads = 1,
                               .k = n,
                               .width = width,
                               .index = index,
                               .mask = mask,
                               .kept = kept,
                               .kept_words = (width + 63) / 64,
                               .reorder = reorder,
                               .out_index = ids,
                               .n_remote = n_remote,
                               .n_local = n_local,
                               .remote = remote};

    *n_remote = *n_local = 0;
    return smg_compute_failed(c, smg_split(c->k, &a, NULL), "split");
}

static uint32_t longest(const uint32_t *rows, uint32_t heads)
{
    uint32_t most = 0;

    for (uint32_t h = 0; h < heads; h++)
        most = rows[h] > most ? rows[h] : most;
    return most;
}

int smg_compute_gather(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, const uint8_t *kv, const int32_t *ids,
                       const uint64_t *ids_start, const uint32_t *rows, const uint64_t *to_start, uint8_t *k_out, uint8_t *v_out)
{
    struct smg_gather_args a = {.kv = kv + l->layer_offset[layer],
                                .ids = ids,
                                .ids_start = ids_start,
                                .row_entries = rows,
                                .max_row_entries = longest(rows, l->heads),
                                .to_start = to_start,
                                .k_out = k_out,
                                .v_out = v_out};
    int status = smg_compute_blocks(c, l, layer, &a.blocks);

    return smg_compute_failed(c, status ? status : smg_gather(c->k, &a, NULL), "gather");
}

int smg_compute_scatter(struct smg_compute *c, const struct smg_layout *l, const uint32_t *rows, const uint64_t *from_start,
                        const uint64_t *to_start, const uint8_t *k_in, const uint8_t *v_in, uint8_t *k_out, uint8_t *v_out)
{
    struct smg_scatter_args a = {.heads = l->heads,
                                 .half_bytes = (uint32_t)l->half_bytes,
                                 .max_row_entries = longest(rows, l->heads),
                                 .row_entries = rows,
                                 .from_start = from_start,
                                 .to_start = to_start,
                                 .k_in = k_in,
                                 .v_in = v_in,
                                 .k_out = k_out,
                                 .v_out = v_out};

    return smg_compute_failed(c, smg_scatter(c->k, &a, NULL), "scatter");
}
