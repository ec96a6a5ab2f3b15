/* What a decode instance does with real bytes: its memory, selection, and the split by the mask that NICs write. "Device" memory
 * is host memory here, kept apart so that every copy of the real path is made. decode_move.c and decode_verify.c go on. */
#include <string.h>

#include "core/reserve.h"
#include "emu/process.h"

static uint64_t device_bytes(const struct smg_layout *l)
{
    return 2 * (uint64_t)l->heads * l->grid.tokens * l->half_bytes; /* one layer of everything: K rows, then V rows */
}

/* Kernels select by metadata also where none is sent: then it is made here. */
static int has_metadata(const struct smg_process *p)
{
    return p->features.metadata || p->plan;
}

uint64_t smg_decode_need(const struct smg_process *p, uint32_t request)
{
    struct smg_layout l;

    smg_layout_init(&l, p->world, request, has_metadata(p));
    return smg_layout_kv_bytes(&l) + smg_layout_mask_bytes(&l) + smg_layout_metadata_bytes(&l) + 3 * device_bytes(&l) +
           8 * SMG_ARENA_ALIGN;
}

/* ---- Memory ---- */

static void give_all(struct smg_process *p, struct smg_decode_data *d)
{
    const uint64_t areas[] = {d->kv, d->mask, d->metadata, d->device, d->staging, d->reply};

    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        if (areas[i] != UINT64_MAX)
            smg_arena_give(p->arena, areas[i]);
}

static int take_all(struct smg_process *p, struct smg_decode_data *d)
{
    const struct smg_layout *l = &d->layout;
    uint64_t device = device_bytes(l);
    int status = smg_arena_take(p->arena, smg_layout_kv_bytes(l), &d->kv);

    if (!status)
        status = smg_arena_take(p->arena, smg_layout_mask_bytes(l), &d->mask);
    if (!status)
        status = smg_arena_take(p->arena, smg_layout_metadata_bytes(l), &d->metadata);
    if (!status)
        status = smg_arena_take(p->arena, device, &d->device);
    if (!status)
        status = smg_arena_take(p->arena, device, &d->staging);
    return status ? status : smg_arena_take(p->arena, device, &d->reply);
}

static int take_rows(struct smg_process *p, struct smg_decode_data *d)
{
    uint64_t rows = d->layout.heads, cap = d->layout.grid.tokens;

    d->row_cap = (uint32_t)cap;
    d->ids = smg_store_take(&p->store, rows * cap * sizeof *d->ids);
    d->remote = smg_store_take(&p->store, rows * cap);
    d->row = smg_store_take(&p->store, rows * sizeof *d->row);
    d->row_remote = smg_store_take(&p->store, rows * sizeof *d->row_remote);
    d->scratch = smg_store_take(&p->store, (rows + 2) * cap * sizeof *d->scratch);
    d->own_metadata = smg_store_take(&p->store, SMG_MAX_LAYERS);
    d->picked = smg_store_take(&p->store, rows * sizeof *d->picked);
    return d->ids && d->remote && d->row && d->row_remote && d->scratch && d->own_metadata && d->picked ? SMG_OK : SMG_ERR_NOMEM;
}

/* With what the check at its end takes: a ranking, and one layer's metadata. */
uint64_t smg_decode_cost(const struct smg_process *p, uint32_t request)
{
    struct smg_layout l;
    uint64_t rows, cap;

    smg_layout_init(&l, p->world, request, has_metadata(p));
    rows = l.heads;
    cap = l.grid.tokens;
    return smg_store_cost(sizeof(struct smg_decode_data)) + smg_store_cost(rows * cap * sizeof(int32_t)) +
           smg_store_cost(rows * cap) + 3 * smg_store_cost(rows * sizeof(uint32_t)) +
           smg_store_cost((rows + 2) * cap * sizeof(int32_t)) + smg_store_cost(SMG_MAX_LAYERS) +
           smg_ledger_cost(&l.grid, p->world->requests[request].output_tokens, p->features.reuse, 1) + smg_rank_cost(&l.grid) +
           smg_store_cost(cap * l.metadata_token_bytes);
}

void smg_decode_free(struct smg_process *p, uint32_t request)
{
    struct smg_decode_data *d = p->decode[request];

    if (!d)
        return;
    if (d->ledger)
        p->selection->type->close(p->selection, request);
    smg_ledger_destroy(d->ledger);
    give_all(p, d);
    smg_store_give(&p->store, d->ids);
    smg_store_give(&p->store, d->remote);
    smg_store_give(&p->store, d->row);
    smg_store_give(&p->store, d->row_remote);
    smg_store_give(&p->store, d->scratch);
    smg_store_give(&p->store, d->own_metadata);
    smg_store_give(&p->store, d->picked);
    smg_store_give(&p->store, d);
    p->decode[request] = NULL;
}

int smg_decode_open(struct smg_process *p, uint32_t request, uint64_t cookie[3])
{
    struct smg_decode_data *d = smg_store_take(&p->store, sizeof *d);
    int status;

    if (!d)
        return SMG_ERR_NOMEM;
    smg_layout_init(&d->layout, p->world, request, has_metadata(p));
    d->kv = d->mask = d->metadata = d->device = d->staging = d->reply = UINT64_MAX;
    p->decode[request] = d;
    status = take_all(p, d);
    if (!status)
        status = take_rows(p, d);
    if (!status)
        status = smg_ledger_create_in(&p->store, &d->layout.grid, p->world->requests[request].output_tokens, p->features.reuse,
                                      (int8_t *)smg_process_at(p, d->mask), &d->ledger);
    if (!status)
        status = p->selection->type->open(p->selection, request, d->ledger);
    if (status)
        return smg_process_fail(p, status, "request %u: no memory", request);
    /* What was here before must not pass for data; and the pages are there before time counts. */
    memset(smg_process_at(p, d->kv), 0xEE, smg_layout_kv_bytes(&d->layout));
    memset(smg_process_at(p, d->staging), 0xEE, device_bytes(&d->layout));
    memset(smg_process_at(p, d->device), 0xEE, device_bytes(&d->layout));
    cookie[0] = d->kv;
    cookie[1] = d->mask;
    cookie[2] = d->metadata;
    return SMG_OK;
}

/* ---- Split ---- */

static int split_by_kernel(struct smg_process *p, struct smg_decode_data *d, uint32_t head, uint32_t k)
{
    size_t at = (size_t)head * d->row_cap;
    uint32_t n_remote, n_local;
    int status = smg_compute_split(p->compute, d->scratch + at, k, smg_ledger_mask(d->ledger, d->layer), d->layout.grid.tokens,
                                   smg_ledger_kept(d->ledger, d->layer, head), p->features.reorder, d->ids + at, d->remote + at,
                                   &n_remote, &n_local);

    d->row[head] = n_remote + n_local;
    d->row_remote[head] = n_remote;
    return status ? status : d->row[head] == k ? SMG_OK : SMG_ERR_VERIFY;
}

static int split_row(struct smg_process *p, struct smg_decode_data *d, uint32_t head, uint32_t k, unsigned flags)
{
    const int32_t *index = d->scratch + (size_t)head * d->row_cap;
    int32_t *remote = d->scratch + (size_t)d->layout.heads * d->row_cap, *local = remote + d->row_cap;
    int32_t *ids = d->ids + (size_t)head * d->row_cap;
    uint8_t *flag = d->remote + (size_t)head * d->row_cap;
    uint32_t n_remote = 0, n_local = 0, at = 0;

    if (flags & SMG_ITEM_FULL) {
        memcpy(ids, index, k * sizeof *ids);
        memset(flag, 0, k);
        d->row[head] = k;
        d->row_remote[head] = 0;
        return SMG_OK;
    }
    if (p->compute && !p->features.evict)
        return split_by_kernel(p, d, head, k);
    smg_split_row(index, k, smg_ledger_mask(d->ledger, d->layer), d->layout.mask_width,
                  smg_ledger_kept(d->ledger, d->layer, head), p->features.reorder, ids, remote, &n_remote, local, &n_local);
    if (p->features.evict) { /* absent entries are left out of the row */
        memcpy(ids, local, n_local * sizeof *ids);
        memset(flag, 0, n_local);
        d->row[head] = n_local;
        d->row_remote[head] = 0;
        return SMG_OK;
    }
    d->row[head] = n_remote + n_local;
    d->row_remote[head] = n_remote;
    for (uint32_t j = 0; j < d->row[head]; j++) {
        flag[j] = at < n_remote && ids[j] == remote[at]; /* both lists keep input order */
        at += flag[j];
    }
    return d->row[head] == k ? SMG_OK : SMG_ERR_VERIFY; /* a selected entry that is padding */
}

/* Without a selector every kept token is a candidate; the mask decides. */
static void every_token(struct smg_decode_data *d)
{
    uint32_t lo = d->layout.kept_lo[d->layer], k = d->layout.grid.tokens - lo;

    for (uint32_t h = 0; h < d->layout.heads; h++) {
        d->picked[h] = k;
        for (uint32_t j = 0; j < k; j++)
            d->scratch[(size_t)h * d->row_cap + j] = (int32_t)(lo + j);
    }
}

/* Lists of the selection source, as long for each head. */
static int select_by_source(struct smg_process *p, struct smg_decode_data *d, const struct smg_item *it)
{
    uint32_t k = 0;
    int status = p->selection->type->entries(p->selection, it->request, it->count, d->layer, d->scratch, d->row_cap, &k);

    for (uint32_t h = 0; h < d->layout.heads; h++)
        d->picked[h] = k;
    return status;
}

/* Selector metadata as received; when everything was sent there is none, and it is made of the keys. */
static int select_by_kernel(struct smg_process *p, struct smg_decode_data *d, const struct smg_item *it)
{
    uint8_t *metadata = smg_process_at(p, d->metadata + smg_layout_metadata(&d->layout, d->layer));
    int made = p->full[it->request] && d->layout.metadata_token_bytes && smg_model_layer_selects(&p->world->model, d->layer);
    int status = SMG_OK;

    if (made && !d->own_metadata[d->layer])
        status = smg_compute_metadata(p->compute, &d->layout, d->layer, smg_process_at(p, d->kv), metadata);
    d->own_metadata[d->layer] = 1;
    if (!status)
        status = smg_compute_select(p->compute, &d->layout, it->request, it->count, d->layer, metadata, d->scratch, d->row_cap,
                                    d->picked);
    return smg_process_compute(p, it->request, status);
}

static int split_request(struct smg_process *p, const struct smg_action *a, const struct smg_item *it)
{
    struct smg_decode_data *d = p->decode[it->request];
    struct smg_event e;
    int status = SMG_OK;

    if (!d)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "split of request %u, which holds no memory", it->request);
    d->layer = a->layer_lo;
    d->step = it->count;
    d->split_valid = 1;
    if (it->flags & SMG_ITEM_PRESENT)
        every_token(d);
    else
        status = p->compute ? select_by_kernel(p, d, it) : select_by_source(p, d, it);
    if (status && p->compute)
        return status;
    memset(&e, 0, sizeof e);
    for (uint32_t h = 0; h < d->layout.heads && !status; h++) {
        status = split_row(p, d, h, d->picked[h], it->flags);
        e.entries_remote += d->row_remote[h];
        e.entries_local += d->row[h] - d->row_remote[h];
    }
    if (status)
        return smg_process_fail(p, status, "request %u, layer %u: the selection does not fit the mask", it->request, d->layer);
    e.kind = SMG_EV_SPLIT_DONE;
    e.op = a->op;
    e.request = it->request;
    e.step = it->count;
    e.layer_lo = a->layer_lo;
    e.layer_hi = a->layer_hi;
    return smg_process_event(p, &e);
}

int smg_decode_split(struct smg_process *p, struct smg_op *op)
{
    int status = SMG_OK;

    for (uint32_t r = 0; r < p->world->n_requests; r++)
        if (p->decode[r])
            p->decode[r]->split_valid = 0;
    for (uint32_t i = 0; i < op->action.n_items && !status; i++)
        status = split_request(p, &op->action, &op->items[i]);
    return status;
}

uint64_t smg_decode_index(const struct smg_process *p, uint32_t request, uint32_t *words)
{
    const struct smg_decode_data *d = p->decode[request];
    uint64_t n = d->layout.heads;

    memcpy(words, d->row_remote, d->layout.heads * sizeof *words);
    for (uint32_t h = 0; h < d->layout.heads; h++)
        for (uint32_t j = 0; j < d->row[h]; j++)
            if (d->remote[(size_t)h * d->row_cap + j])
                words[n++] = (uint32_t)d->ids[(size_t)h * d->row_cap + j];
    return n;
}
