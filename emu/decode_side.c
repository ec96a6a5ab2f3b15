/* What a decode instance does with real bytes: splits by the mask that NICs write, gathers, receives, and checks every entry that
 * attention would read. "Device" memory is host memory here, kept apart so that every copy of the real path is
 * made. */
#include <stdlib.h>
#include <string.h>

#include "core/plugin.h"
#include "emu/process.h"

static uint64_t device_bytes(const struct smg_layout *l)
{
    return 2 * (uint64_t)l->heads * l->grid.tokens * l->half_bytes; /* one layer of everything: K rows, then V rows */
}

uint64_t smg_decode_need(const struct smg_process *p, uint32_t request)
{
    struct smg_layout l;

    smg_layout_init(&l, p->world, request, p->features.metadata);
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

static int take_rows(struct smg_decode_data *d)
{
    size_t rows = d->layout.heads, cap = d->layout.grid.tokens;

    d->row_cap = (uint32_t)cap;
    d->ids = calloc(rows * cap, sizeof *d->ids);
    d->remote = calloc(rows, cap);
    d->row = calloc(rows, sizeof *d->row);
    d->row_remote = calloc(rows, sizeof *d->row_remote);
    d->scratch = calloc((rows + 2) * cap, sizeof *d->scratch);
    return d->ids && d->remote && d->row && d->row_remote && d->scratch ? SMG_OK : SMG_ERR_NOMEM;
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
    free(d->ids);
    free(d->remote);
    free(d->row);
    free(d->row_remote);
    free(d->scratch);
    free(d);
    p->decode[request] = NULL;
}

int smg_decode_open(struct smg_process *p, uint32_t request, uint64_t cookie[3])
{
    struct smg_decode_data *d = calloc(1, sizeof *d);
    int status;

    if (!d)
        return SMG_ERR_NOMEM;
    smg_layout_init(&d->layout, p->world, request, p->features.metadata);
    d->kv = d->mask = d->metadata = d->device = d->staging = d->reply = UINT64_MAX;
    p->decode[request] = d;
    status = take_all(p, d);
    if (!status)
        status = take_rows(d);
    if (!status)
        status = smg_ledger_create(&d->layout.grid, p->world->requests[request].output_tokens, p->features.reuse,
                                   (int8_t *)smg_process_at(p, d->mask), &d->ledger);
    if (!status)
        status = p->selection->type->open(p->selection, request, d->ledger);
    if (status)
        return smg_process_fail(p, status, "request %u: no memory", request);
    /* What was here before must not pass for data. */
    memset(smg_process_at(p, d->kv), 0xEE, smg_layout_kv_bytes(&d->layout));
    cookie[0] = d->kv;
    cookie[1] = d->mask;
    cookie[2] = d->metadata;
    return SMG_OK;
}

/* ---- Split ---- */

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
static uint32_t every_token(struct smg_decode_data *d)
{
    uint32_t lo = d->layout.kept_lo[d->layer], k = d->layout.grid.tokens - lo;

    for (uint32_t h = 0; h < d->layout.heads; h++)
        for (uint32_t j = 0; j < k; j++)
            d->scratch[(size_t)h * d->row_cap + j] = (int32_t)(lo + j);
    return k;
}

static int split_request(struct smg_process *p, const struct smg_action *a, const struct smg_item *it)
{
    struct smg_decode_data *d = p->decode[it->request];
    struct smg_event e;
    uint32_t k = 0;
    int status = SMG_OK;

    if (!d)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "split of request %u, which holds no memory", it->request);
    d->layer = a->layer_lo;
    d->step = it->count;
    d->split_valid = 1;
    if (it->flags & SMG_ITEM_PRESENT)
        k = every_token(d);
    else
        status = p->selection->type->entries(p->selection, it->request, it->count, d->layer, d->scratch, d->row_cap, &k);
    memset(&e, 0, sizeof e);
    for (uint32_t h = 0; h < d->layout.heads && !status; h++) {
        status = split_row(p, d, h, k, it->flags);
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

/* ---- Moving entries ---- */

struct place {
    uint8_t *k, *v;
};

/* Place of row position j in an area of rows (device, staging). */
static struct place in_rows(const struct smg_process *p, const struct smg_decode_data *d, uint64_t area, uint32_t head,
                            uint32_t j)
{
    uint64_t at = ((uint64_t)head * d->row_cap + j) * d->layout.half_bytes;
    uint8_t *base = smg_process_at(p, area);

    return (struct place){base + at, base + d->layout.heads * (uint64_t)d->row_cap * d->layout.half_bytes + at};
}

static struct place in_pool(const struct smg_process *p, const struct smg_decode_data *d, uint32_t head, uint32_t token)
{
    uint64_t v, k = smg_layout_entry(&d->layout, d->layer, head, token, &v);
    uint8_t *base = smg_process_at(p, d->kv);

    return (struct place){base + k, base + v};
}

/* Replies land on the device with GPUDirect, in host memory without, and always there when they are fetched serially. */
static int lands_on_device(const struct smg_process *p)
{
    return p->world->scenario.gdr && p->features.parallel;
}

enum move {
    POOL_TO_STAGING,     /* local gather */
    STAGING_TO_DEVICE,   /* host-to-device copy of the local part */
    REMOTE_TO_DEVICE,    /* the same of remote entries that landed in host memory */
    LANDED_TO_POOL       /* KV reuse: fetched entries to the host pool */
};

static void move_entry(struct smg_process *p, struct smg_decode_data *d, enum move move, uint32_t h, uint32_t j)
{
    int32_t token = d->ids[(size_t)h * d->row_cap + j];
    struct place pool = in_pool(p, d, h, (uint32_t)token), staging = in_rows(p, d, d->staging, h, j),
                 device = in_rows(p, d, d->device, h, j);
    struct place from = move == POOL_TO_STAGING ? pool : move == LANDED_TO_POOL && lands_on_device(p) ? device : staging;
    struct place to = move == POOL_TO_STAGING ? staging : move == LANDED_TO_POOL ? pool : device;

    memcpy(to.k, from.k, d->layout.half_bytes);
    memcpy(to.v, from.v, d->layout.half_bytes);
    if (move == LANDED_TO_POOL)
        smg_ledger_keep(d->ledger, d->layer, h, (uint32_t)token);
}

static void move_rows(struct smg_process *p, struct smg_decode_data *d, enum move move)
{
    int want = move == REMOTE_TO_DEVICE || move == LANDED_TO_POOL;

    for (uint32_t h = 0; h < d->layout.heads; h++)
        for (uint32_t j = 0; j < d->row[h]; j++)
            if (d->remote[(size_t)h * d->row_cap + j] == want)
                move_entry(p, d, move, h, j);
}

/* A reply that was received whole, (all K, all V) of the remote entries in row order, goes to its places in the rows. */
static void spread_reply(struct smg_process *p, struct smg_decode_data *d)
{
    uint64_t half = d->layout.half_bytes, area = lands_on_device(p) ? d->device : d->staging, n = 0, at = 0;
    const uint8_t *reply = smg_process_at(p, d->reply);

    for (uint32_t h = 0; h < d->layout.heads; h++)
        n += d->row_remote[h];
    for (uint32_t h = 0; h < d->layout.heads; h++) {
        for (uint32_t j = 0; j < d->row[h]; j++) {
            struct place to = in_rows(p, d, area, h, j);
            if (!d->remote[(size_t)h * d->row_cap + j])
                continue;
            memcpy(to.k, reply + at * half, half);
            memcpy(to.v, reply + (n + at) * half, half);
            at++;
        }
    }
}

/* Every request of the batch takes part in the local lane. */
static void move_batch(struct smg_process *p, enum move move)
{
    for (uint32_t r = 0; r < p->world->n_requests; r++)
        if (p->decode[r] && p->decode[r]->split_valid)
            move_rows(p, p->decode[r], move);
}

int smg_decode_move(struct smg_process *p, struct smg_op *op)
{
    struct smg_decode_data *d = p->decode[op->action.request];

    switch (op->action.purpose) {
    case SMG_FOR_LOCAL_GATHER:
        move_batch(p, POOL_TO_STAGING);
        return SMG_OK;
    case SMG_FOR_LOCAL_COPY:
        move_batch(p, STAGING_TO_DEVICE);
        if (!p->features.parallel)
            move_batch(p, REMOTE_TO_DEVICE);
        return SMG_OK;
    case SMG_FOR_REMOTE_COPY:
        move_rows(p, d, REMOTE_TO_DEVICE);
        return SMG_OK;
    case SMG_FOR_SCATTER:
    case SMG_FOR_KEEP:
        move_rows(p, d, LANDED_TO_POOL);
        return SMG_OK;
    default:
        return SMG_OK;
    }
}

/* ---- Receiving ---- */

int smg_decode_receive(struct smg_process *p, struct smg_op *op)
{
    struct smg_decode_data *d = p->decode[op->action.request];
    struct smg_qp *qp = smg_fabric_qp(p->fabric, op->action.peer, SMG_QUEUE_REPLY);
    uint64_t stride = d->row_cap * d->layout.half_bytes, area = d->reply;
    struct smg_scatter_plan plan = {0};
    int status = smg_reply_plan(p, d->row_remote, stride, d->layout.heads * stride, &plan);

    if (smg_reply_scattered(p))
        area = lands_on_device(p) ? d->device : d->staging;
    op->phase = plan.n_receives;
    for (uint32_t i = 0; !status && i < plan.n_receives; i++) {
        struct smg_piece piece[SMG_REPLY_SEGMENTS];
        uint32_t n = plan.first[i + 1] - plan.first[i];
        for (uint32_t s = 0; s < n; s++) {
            const struct smg_segment *g = &plan.segment[plan.first[i] + s];
            piece[s] = smg_process_piece(p, area + g->offset, g->bytes);
        }
        status = smg_fabric_recv(qp, piece, n, smg_context(op, SMG_CONTEXT_OP), &p->diag);
    }
    smg_scatter_free(&plan);
    return status;
}

int smg_decode_received(struct smg_process *p, struct smg_op *op)
{
    struct smg_decode_data *d = p->decode[op->action.request];

    if (!smg_reply_scattered(p))
        spread_reply(p, d);
    p->stats.received_bytes[SMG_PATH_ON_DEMAND] += op->action.bytes;
    return SMG_OK;
}

/* ---- Verification ---- */

static int entry_right(struct smg_process *p, const struct smg_decode_data *d, uint32_t request, uint32_t h, uint32_t token,
                       struct place at)
{
    uint64_t seed = p->world->scenario.seed, half = d->layout.half_bytes;

    return smg_content_is(seed, request, d->layer, h, token, 0, half, at.k) &&
           smg_content_is(seed, request, d->layer, h, token, 1, half, at.v);
}

static int verify_rows(struct smg_process *p, struct smg_decode_data *d, uint32_t request)
{
    int check = p->world->scenario.emu.verify == SMG_VERIFY_ALL;

    for (uint32_t h = 0; h < d->layout.heads; h++) {
        for (uint32_t j = 0; j < d->row[h]; j++) {
            uint32_t token = (uint32_t)d->ids[(size_t)h * d->row_cap + j];
            struct place at = in_rows(p, d, d->device, h, j);
            p->stats.digest[request] += smg_digest_entry(d->layer, h, token, at.k, at.v, d->layout.half_bytes);
            if (!check || entry_right(p, d, request, h, token, at))
                continue;
            p->stats.invalid_entries++;
            return smg_process_fail(
                p, SMG_ERR_VERIFY,
                "request %u, step %u: the entry of layer %u, KV head %u, token %u is not what prefill computed", request, d->step,
                d->layer, h, token);
        }
    }
    return SMG_OK;
}

/* Attention reads the rows as gathered: digest them, and check each entry. */
int smg_decode_attention(struct smg_process *p, const struct smg_action *a)
{
    int status = SMG_OK;

    for (uint32_t r = 0; r < p->world->n_requests && !status; r++) {
        struct smg_decode_data *d = p->decode[r];
        if (d && d->split_valid && d->layer == a->layer_lo)
            status = verify_rows(p, d, r);
    }
    return status;
}

/* Bytes of one block as computed against what lies in the pool. */
static int block_right(struct smg_process *p, struct smg_decode_data *d, uint32_t request, uint32_t block)
{
    uint32_t lo, hi;

    smg_grid_block(&d->layout.grid, d->layer, block, &lo, &hi);
    for (uint32_t t = lo; t < hi; t++)
        for (uint32_t h = 0; h < d->layout.heads; h++)
            if (!entry_right(p, d, request, h, t, in_pool(p, d, h, t)))
                return 0;
    return 1;
}

/* The NIC writes no ledger: a block has landed when the mask of its tokens says so. */
static int block_landed(const struct smg_decode_data *d, uint32_t layer, uint32_t block)
{
    const int8_t *mask = smg_ledger_mask(d->ledger, layer);
    uint32_t lo, hi;

    smg_grid_block(&d->layout.grid, layer, block, &lo, &hi);
    while (lo < hi && mask[lo] == SMG_MASK_LOCAL)
        lo++;
    return lo == hi;
}

/* Which blocks have landed follows from the mask; which path they came by from the ranking. */
static int account_blocks(struct smg_process *p, struct smg_decode_data *d, uint32_t request, const struct smg_rank *rank,
                          uint32_t kr_blocks)
{
    const struct smg_grid *g = &d->layout.grid;
    int status = SMG_OK;

    for (uint32_t l = 0; l < p->world->model.layers && !status; l++) {
        d->layer = (uint16_t)l;
        for (uint32_t m = smg_grid_first(g, l); m < g->blocks && !status; m++) {
            int pushed = rank->position[(size_t)l * rank->blocks + m] < kr_blocks;
            if (!block_landed(d, l, m))
                continue;
            p->stats.blocks_written++;
            p->stats.received_bytes[pushed ? SMG_PATH_PUSH : SMG_PATH_SPECULATIVE] += smg_grid_range_bytes(g, l, m, 1);
            p->stats.duplicate_bytes[request] += smg_ledger_kept_in(d->ledger, l, m, 1) * 2 * d->layout.half_bytes;
            if (p->world->scenario.emu.verify == SMG_VERIFY_ALL && !block_right(p, d, request, m))
                status = smg_process_fail(p, SMG_ERR_VERIFY, "request %u: block %u of layer %u is not what prefill computed",
                                          request, m, l);
        }
    }
    return status;
}

static int account_metadata(struct smg_process *p, struct smg_decode_data *d, uint32_t request, int full)
{
    uint64_t bytes = d->layout.grid.tokens * d->layout.metadata_token_bytes;
    uint8_t *expected = malloc(bytes ? bytes : 1);
    int status = expected ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t l = 0; l < p->world->model.layers && bytes && !full && !status; l++) {
        if (!smg_model_layer_selects(&p->world->model, l))
            continue;
        smg_content_metadata(p->world->scenario.seed, request, l, 0, bytes, expected);
        if (memcmp(expected, smg_process_at(p, d->metadata + smg_layout_metadata(&d->layout, l)), bytes))
            status = smg_process_fail(p, SMG_ERR_VERIFY, "request %u: metadata of layer %u is not what prefill sent", request, l);
        p->stats.received_bytes[SMG_PATH_METADATA] += bytes;
    }
    free(expected);
    return status;
}

int smg_decode_close(struct smg_process *p, uint32_t request)
{
    struct smg_decode_data *d = p->decode[request];
    const struct smg_rank_type *type = smg_world_ranking(p->world, p->features.ranking);
    struct smg_rank_input in = {&d->layout.grid, p->world->importance, p->world->scenario.seed, request};
    struct smg_rank *rank = NULL;
    int status = smg_rank_create(type, &in, &rank);

    if (!status)
        status = account_blocks(p, d, request, rank, p->kr_blocks[request]);
    if (!status && p->handed_off[request]) /* a request that failed before may hold anything */
        status = account_metadata(p, d, request, p->full[request]);
    smg_rank_unref(rank);
    smg_decode_free(p, request);
    return status;
}
