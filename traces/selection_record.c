/* Writing a recording: rows of a world, request by request. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "traces/importance_bytes.h"
#include "traces/selection_recording.h"
#include "traces/selection_rows.h"
#include "traces/text.h"

struct recorder {
    const struct smg_world *w;
    struct smg_rows *rows;
    struct smg_byte_writer out;
    uint32_t requests, steps;
    int (*stop)(void);
    struct smg_rows_layer layer[SMG_MAX_LAYERS];
    int32_t *index;
    unsigned char *bitmap;
};

static uint32_t row_bytes(uint32_t tokens)
{
    return (tokens + 63) / 64 * 8;
}

static uint32_t most_entries(const struct recorder *c, uint32_t request)
{
    uint32_t layer, k = 1, n;

    for (layer = 0; layer < c->w->model.layers; layer++) {
        n = smg_rows_k(c->rows, request, layer, c->w->requests[request].prompt_tokens);
        k = smg_model_layer_selects(&c->w->model, layer) && n > k ? n : k;
    }
    return k;
}

static char *header_text(const struct recorder *c)
{
    const struct smg_scenario *s = &c->w->scenario;
    json_t *root = json_pack("{s:s, s:s, s:b, s:s, s:f, s:I}", "created_by", "smartgen profile --record", "model",
                             c->w->model.name, "synthetic", c->w->synthetic_selection, "selector",
                             s->selector == SMG_SELECTOR_INFINIGEN ? "infinigen" : "other", "cap", s->selection.cap, "seed",
                             (json_int_t)s->seed);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(root);
    return text;
}

static void put_head(struct recorder *c, const char *header, uint32_t header_bytes)
{
    const struct smg_model *m = &c->w->model;
    uint32_t layer;

    smg_put_bytes(&c->out, "KVSR", 4);
    smg_put_u32(&c->out, SMG_RECORDING_VERSION);
    smg_put_u32(&c->out, header_bytes);
    smg_put_u32(&c->out, c->requests);
    smg_put_u32(&c->out, m->layers);
    smg_put_u32(&c->out, m->kv_heads);
    smg_put_u32(&c->out, smg_model_selecting_layers(m));
    smg_put_u32(&c->out, 0);
    for (layer = 0; layer < m->layers; layer++) {
        unsigned char selects = (unsigned char)smg_model_layer_selects(m, layer);
        smg_put_bytes(&c->out, &selects, 1);
    }
    smg_put_padding(&c->out, 0);
    smg_put_bytes(&c->out, header, strlen(header));
    smg_put_padding(&c->out, ' ');
}

static void put_table(struct recorder *c)
{
    uint64_t rows = (uint64_t)smg_model_selecting_layers(&c->w->model) * c->w->model.kv_heads * c->steps;
    uint64_t at = c->out.offset + 32 * (uint64_t)c->requests;
    uint32_t i;

    for (i = 0; i < c->requests; i++) {
        uint32_t tokens = c->w->requests[i].prompt_tokens;

        smg_put_u32(&c->out, tokens);
        smg_put_u32(&c->out, c->steps);
        smg_put_u32(&c->out, most_entries(c, i));
        smg_put_u32(&c->out, row_bytes(tokens));
        smg_put_u64(&c->out, at);
        smg_put_u64(&c->out, 0);
        at += rows * row_bytes(tokens);
    }
}

static void put_row(struct recorder *c, const struct smg_rows_layer *l, uint32_t head, uint32_t step)
{
    uint32_t n = smg_rows_get(c->rows, l, head, step, c->index), i;

    memset(c->bitmap, 0, row_bytes(l->tokens));
    for (i = 0; i < n; i++) {
        c->bitmap[c->index[i] / 8] |= (unsigned char)(1u << c->index[i] % 8);
    }
    smg_put_bytes(&c->out, c->bitmap, row_bytes(l->tokens));
}

static int open_layers(struct recorder *c, uint32_t request)
{
    uint32_t layer;
    int status = SMG_OK;

    for (layer = 0; layer < c->w->model.layers && status == SMG_OK; layer++) {
        if (smg_model_layer_selects(&c->w->model, layer)) {
            status = smg_rows_open(c->rows, request, layer, c->w->requests[request].prompt_tokens, &c->layer[layer]);
        }
    }
    return status;
}

static void close_layers(struct recorder *c)
{
    uint32_t layer;

    for (layer = 0; layer < c->w->model.layers; layer++) {
        smg_rows_close(&c->layer[layer]);
    }
}

static int put_request(struct recorder *c, uint32_t request)
{
    uint32_t step, layer, head;
    int status = open_layers(c, request);

    for (step = 1; step <= c->steps && status == SMG_OK; step++) {
        if (c->stop != NULL && c->stop()) {
            status = SMG_ERR_INTERRUPTED;
        }
        for (layer = 0; layer < c->w->model.layers; layer++) {
            for (head = 0; c->layer[layer].open && head < c->w->model.kv_heads; head++) {
                put_row(c, &c->layer[layer], head, step);
            }
        }
    }
    close_layers(c);
    return status;
}

static int write_all(struct recorder *c, const char *path, struct smg_diag *diag)
{
    char *header = header_text(c);
    uint32_t i;
    int status = header != NULL ? smg_byte_writer_open(path, &c->out, diag) : SMG_ERR_NOMEM, closed;

    if (status == SMG_OK) {
        put_head(c, header, (uint32_t)((strlen(header) + 7) / 8 * 8));
        put_table(c);
        for (i = 0; i < c->requests && status == SMG_OK; i++) {
            status = put_request(c, i);
        }
        closed = smg_byte_writer_close(&c->out, status == SMG_OK, diag);
        status = status == SMG_OK ? closed : status;
    }
    free(header);
    return status;
}

int smg_recording_write(const char *path, const struct smg_world *w, uint32_t requests, uint32_t steps, int (*stop)(void),
                        struct smg_diag *diag)
{
    struct recorder c = {.w = w, .stop = stop, .requests = requests < w->n_requests ? requests : w->n_requests, .steps = steps};
    uint32_t i, longest = 1;
    int status = smg_rows_create(w, &c.rows, diag);

    for (i = 0; i < c.requests; i++) {
        longest = w->requests[i].prompt_tokens > longest ? w->requests[i].prompt_tokens : longest;
    }
    if (status != SMG_OK) {
        return status;
    }
    c.index = malloc(longest * sizeof(*c.index));
    c.bitmap = malloc(row_bytes(longest));
    status = c.index != NULL && c.bitmap != NULL ? write_all(&c, path, diag) : SMG_ERR_NOMEM;
    free(c.bitmap);
    free(c.index);
    smg_rows_destroy(c.rows);
    return status;
}
