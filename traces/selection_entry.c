/* Selection source "entry": index lists, generated or recorded, split by the real mask and the reuse bitmap. */
#include <stdlib.h>
#include <string.h>

#include "core/scheme.h"
#include "core/selection.h"
#include "core/split.h"
#include "core/status.h"
#include "core/store.h"
#include "traces/selection_rows.h"

/* What the last split of a layer fetched: keep() marks it. */
struct fetched {
    uint32_t step;  /* 0: nothing */
    uint32_t *row;  /* [kv_heads] entries per row */
    int32_t *token; /* [kv_heads][k] */
};

struct open_request {
    struct smg_ledger *ledger;
    struct smg_rows_layer rows[SMG_MAX_LAYERS]; /* made on first use */
    struct fetched fetched[SMG_MAX_LAYERS];     /* only with reuse, made on first use */
};

struct entry_source {
    struct smg_selection base;
    int reuse;
    struct open_request **open; /* [n_requests] */
    struct smg_rows *rows;
    uint32_t row_tokens;
    int32_t *index, *remote; /* [row_tokens] one row */
    struct smg_store store;  /* of what is open */
};

static struct entry_source *self(struct smg_selection *s)
{
    return (struct entry_source *)s;
}

static void close_request(struct entry_source *s, struct open_request *r)
{
    uint32_t layer;

    if (r == NULL) {
        return;
    }
    for (layer = 0; layer < SMG_MAX_LAYERS; layer++) {
        smg_rows_close(&r->rows[layer]);
        smg_store_give(&s->store, r->fetched[layer].row);
        smg_store_give(&s->store, r->fetched[layer].token);
    }
    smg_store_give(&s->store, r);
}

static void entry_destroy(struct smg_selection *base)
{
    struct entry_source *s = self(base);
    uint32_t i;

    for (i = 0; s->open != NULL && i < base->world->n_requests; i++) {
        close_request(s, s->open[i]);
    }
    smg_store_free(&s->store);
    free(s->open);
    free(s->index);
    free(s->remote);
    smg_rows_destroy(s->rows);
    free(s);
}

extern const struct smg_selection_type smg_selection_entry;

static int entry_create(const struct smg_world *w, struct smg_selection **out)
{
    struct entry_source *s = calloc(1, sizeof(*s));
    struct smg_features features;
    int status;

    if (s == NULL) {
        return SMG_ERR_NOMEM;
    }
    s->base.type = &smg_selection_entry;
    s->base.world = w;
    smg_scheme_features(w, &features);
    s->reuse = features.reuse;
    s->open = calloc(w->n_requests > 0 ? w->n_requests : 1, sizeof(struct open_request *));
    status = s->open != NULL ? smg_rows_create(w, &s->rows, NULL) : SMG_ERR_NOMEM;
    if (status != SMG_OK) {
        entry_destroy(&s->base);
        return status;
    }
    *out = &s->base;
    return SMG_OK;
}

/* Row buffers grow to the longest prompt seen. */
static int reserve_rows(struct entry_source *s, uint32_t tokens)
{
    int32_t *index, *remote;

    if (tokens <= s->row_tokens) {
        return SMG_OK;
    }
    index = malloc(tokens * sizeof(*index));
    remote = malloc(tokens * sizeof(*remote));
    if (index == NULL || remote == NULL) {
        free(index);
        free(remote);
        return SMG_ERR_NOMEM;
    }
    free(s->index);
    free(s->remote);
    s->index = index;
    s->remote = remote;
    s->row_tokens = tokens;
    return SMG_OK;
}

static int entry_reserve(struct smg_selection *base)
{
    struct entry_source *s = self(base);
    const struct smg_model *m = &base->world->model;
    uint32_t longest = 0, i;
    uint64_t bytes = 0;
    int status = smg_rows_reserve(s->rows);

    for (i = 0; i < base->world->n_requests; i++) {
        uint32_t tokens = base->world->requests[i].prompt_tokens;

        longest = tokens > longest ? tokens : longest;
        bytes += smg_store_cost(sizeof(struct open_request));
        if (s->reuse) { /* a row has no more entries than the prompt */
            bytes += m->layers * (smg_store_cost(m->kv_heads * sizeof(uint32_t)) +
                                  smg_store_cost((uint64_t)m->kv_heads * tokens * sizeof(int32_t)));
        }
    }
    if (status == SMG_OK) {
        status = reserve_rows(s, longest);
    }
    return status == SMG_OK ? smg_store_reserve(&s->store, bytes) : status;
}

static int entry_open(struct smg_selection *base, uint32_t request, struct smg_ledger *ledger)
{
    struct entry_source *s = self(base);

    if (request >= base->world->n_requests || s->open[request] != NULL) {
        return SMG_ERR_INVALID;
    }
    if (reserve_rows(s, ledger->grid.tokens) != SMG_OK) {
        return SMG_ERR_NOMEM;
    }
    s->open[request] = smg_store_take(&s->store, sizeof(struct open_request));
    if (s->open[request] == NULL) {
        return SMG_ERR_NOMEM;
    }
    s->open[request]->ledger = ledger;
    return SMG_OK;
}

static void entry_close(struct smg_selection *base, uint32_t request)
{
    struct entry_source *s = self(base);

    if (request < base->world->n_requests) {
        close_request(s, s->open[request]);
        s->open[request] = NULL;
    }
}

/* The mask itself is read at every split. */
static void entry_visible(struct smg_selection *base, uint32_t request, uint32_t layer, uint32_t first, uint32_t count)
{
    (void)base, (void)request, (void)layer, (void)first, (void)count;
}

/* One (request, layer, step) at work. */
struct job {
    struct entry_source *source;
    struct open_request *r;
    uint32_t request, step, layer;
    uint32_t tokens, k; /* of the prompt; of a row, at most */
    int selects;
};

static int start_job(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer, struct job *j)
{
    const struct smg_model *m = &base->world->model;

    *j = (struct job){.source = self(base), .request = request, .step = step, .layer = layer};
    j->r = request < base->world->n_requests ? j->source->open[request] : NULL;
    if (j->r == NULL) {
        return SMG_ERR_NOT_FOUND;
    }
    if (step == 0 || layer >= m->layers) {
        return SMG_ERR_INVALID;
    }
    j->tokens = j->r->ledger->grid.tokens;
    j->selects = smg_model_layer_selects(m, layer);
    j->k = j->selects ? smg_rows_k(j->source->rows, request, layer, j->tokens) : smg_model_layer_tokens(m, layer, j->tokens);
    return SMG_OK;
}

static int need_rows(const struct job *j)
{
    struct smg_rows_layer *rows = &j->r->rows[j->layer];

    return rows->open || !j->selects ? SMG_OK : smg_rows_open(j->source->rows, j->request, j->layer, j->tokens, rows);
}

/* Entries of one head, index[k]; a layer that does not select keeps its last k tokens. */
static uint32_t make_row(const struct job *j, uint32_t head, int32_t *index)
{
    uint32_t i;

    if (j->selects) {
        return smg_rows_get(j->source->rows, &j->r->rows[j->layer], head, j->step, index);
    }
    for (i = 0; i < j->k; i++) {
        index[i] = (int32_t)(j->tokens - j->k + i);
    }
    return j->k;
}

static int need_fetched(const struct job *j)
{
    struct fetched *f = &j->r->fetched[j->layer];
    struct smg_store *store = &j->source->store;
    size_t heads = j->source->base.world->model.kv_heads;

    if (!j->source->reuse || f->token != NULL) {
        return SMG_OK;
    }
    f->row = f->row != NULL ? f->row : smg_store_take(store, heads * sizeof(*f->row));
    f->token = smg_store_take_raw(store, heads * j->k * sizeof(*f->token));
    return f->row != NULL && f->token != NULL ? SMG_OK : SMG_ERR_NOMEM;
}

static void remember(const struct job *j, uint32_t head, uint32_t n)
{
    struct fetched *f = &j->r->fetched[j->layer];

    if (j->source->reuse) {
        f->step = j->step;
        f->row[head] = n;
        memcpy(f->token + (size_t)head * j->k, j->source->remote, n * sizeof(*f->token));
    }
}

static void split_head(const struct job *j, uint32_t head, struct smg_split_count *out)
{
    struct smg_ledger *l = j->r->ledger;
    uint32_t remote = 0, local = 0, n = make_row(j, head, j->source->index);

    smg_split_row(j->source->index, n, smg_ledger_mask(l, j->layer), l->width, smg_ledger_kept(l, j->layer, head), 0, NULL,
                  j->source->remote, &remote, NULL, &local);
    remember(j, head, remote);
    out->remote += remote;
    out->local += local;
    out->row_max = remote > out->row_max ? remote : out->row_max;
}

static int split_rows(const struct job *j, struct smg_split_count *out)
{
    uint32_t heads = j->source->base.world->model.kv_heads, head;
    int status = need_rows(j);

    if (status == SMG_OK) {
        status = need_fetched(j);
    }
    for (head = 0; head < heads && status == SMG_OK; head++) {
        split_head(j, head, out);
    }
    return status;
}

/* The common case of layers 0 and 1: everything is here, and no row need be made to know it. */
static int all_here(const struct job *j)
{
    const int8_t *mask = smg_ledger_mask(j->r->ledger, j->layer);

    return memchr(mask + (j->tokens - j->k), SMG_MASK_REMOTE, j->k) == NULL;
}

/* Entries that all heads pick, whatever is here. */
static int count_rows(const struct job *j, uint64_t *out)
{
    uint32_t heads = j->source->base.world->model.kv_heads, head;
    int status = need_rows(j);

    if (!j->selects) {
        *out = (uint64_t)heads * j->k;
        return SMG_OK;
    }
    for (head = 0; head < heads && status == SMG_OK; head++) {
        *out += smg_rows_count(j->source->rows, &j->r->rows[j->layer], head, j->step);
    }
    return status;
}

static int entry_split(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer, int full,
                       struct smg_split_count *out)
{
    struct smg_split_count count = {0, 0, 0};
    struct job j;
    int status = start_job(base, request, step, layer, &j);

    if (status != SMG_OK) {
        return status;
    }
    if (full || (!j.selects && all_here(&j))) {
        status = count_rows(&j, &count.local);
        j.r->fetched[layer].step = 0;
    } else {
        status = split_rows(&j, &count);
    }
    if (status == SMG_OK) {
        *out = count;
    }
    return status;
}

static int entry_entries(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer, int32_t *index,
                         uint32_t k_cap, uint32_t *k_out)
{
    uint32_t head, n;
    struct job j;
    int status = start_job(base, request, step, layer, &j);

    if (status == SMG_OK && j.k > k_cap) {
        status = SMG_ERR_CAPACITY;
    }
    if (status == SMG_OK) {
        status = need_rows(&j);
    }
    if (status != SMG_OK) {
        return status;
    }
    for (head = 0; head < base->world->model.kv_heads; head++) {
        int32_t *row = index + (size_t)head * k_cap;

        for (n = make_row(&j, head, row); n < j.k; n++) {
            row[n] = -1;
        }
    }
    *k_out = j.k;
    return SMG_OK;
}

static void entry_keep(struct smg_selection *base, uint32_t request, uint32_t step, uint32_t layer)
{
    struct smg_split_count unused = {0, 0, 0};
    const struct fetched *f;
    uint32_t head, i;
    struct job j;

    if (!self(base)->reuse || start_job(base, request, step, layer, &j) != SMG_OK) {
        return;
    }
    /* Rows are a function of the step: what a later split has overwritten is made again. */
    if (j.r->fetched[layer].step != step && (all_here(&j) || split_rows(&j, &unused) != SMG_OK)) {
        return;
    }
    f = &j.r->fetched[layer];
    for (head = 0; head < base->world->model.kv_heads; head++) {
        for (i = 0; i < f->row[head]; i++) {
            smg_ledger_keep(j.r->ledger, layer, head, (uint32_t)f->token[(size_t)head * j.k + i]);
        }
    }
}

const struct smg_selection_type smg_selection_entry = {
    .name = "entry",
    .doc = "index lists, split by the mask",
    .create = entry_create,
    .destroy = entry_destroy,
    .open = entry_open,
    .close = entry_close,
    .visible = entry_visible,
    .split = entry_split,
    .entries = entry_entries,
    .keep = entry_keep,
    .reserve = entry_reserve,
};
