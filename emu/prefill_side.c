/* What a prefill instance does with real bytes: fills KV, pushes ranges and their masks, gathers and sends replies. */
#include <string.h>

#include "core/reserve.h"
#include "emu/process.h"

uint64_t smg_prefill_need(const struct smg_process *p, uint32_t request)
{
    struct smg_layout l;
    uint64_t kv;

    smg_layout_init(&l, p->world, request, p->features.metadata);
    kv = smg_layout_kv_bytes(&l);
    /* replies in flight are at most one layer of everything, once per stage in flight */
    return kv + smg_layout_metadata_bytes(&l) + SMG_INDICES_MAX * (l.grid.tokens * l.token_bytes + SMG_ARENA_ALIGN) +
           8 * SMG_ARENA_ALIGN;
}

/* Room for the longest lists, so that they are all of one size. */
static uint64_t index_bytes(const struct smg_process *p, uint32_t request)
{
    uint64_t heads = p->world->model.kv_heads, tokens = p->world->requests[request].prompt_tokens;

    return sizeof(struct smg_index) + heads * sizeof(uint32_t) + heads * tokens * sizeof(int32_t);
}

uint64_t smg_prefill_cost(const struct smg_process *p, uint32_t request)
{
    struct smg_layout l;

    smg_layout_init(&l, p->world, request, p->features.metadata);
    return smg_store_cost(sizeof(struct smg_prefill_data)) + smg_store_cost((uint64_t)p->world->model.layers * l.grid.blocks) +
           SMG_INDICES_MAX * smg_store_cost(index_bytes(p, request));
}

int smg_prefill_open(struct smg_process *p, uint32_t request)
{
    struct smg_prefill_data *d = smg_store_take(&p->store, sizeof *d);
    int status = SMG_ERR_NOMEM;

    if (!d)
        return SMG_ERR_NOMEM;
    smg_layout_init(&d->layout, p->world, request, p->features.metadata);
    d->written = smg_store_take(&p->store, (uint64_t)p->world->model.layers * d->layout.grid.blocks);
    if (d->written)
        status = smg_arena_take(p->arena, smg_layout_kv_bytes(&d->layout), &d->kv);
    if (!status)
        status = smg_arena_take(p->arena, smg_layout_metadata_bytes(&d->layout), &d->metadata);
    if (status) {
        smg_store_give(&p->store, d->written);
        smg_store_give(&p->store, d);
        return status;
    }
    p->prefill[request] = d;
    return SMG_OK;
}

static void index_free(struct smg_process *p, struct smg_index *x)
{
    if (x->reply_offset != UINT64_MAX)
        smg_arena_give(p->arena, x->reply_offset);
    smg_store_give(&p->store, x);
}

void smg_prefill_close(struct smg_process *p, uint32_t request)
{
    struct smg_prefill_data *d = p->prefill[request];

    if (!d)
        return;
    while (d->index) {
        struct smg_index *next = d->index->next;
        index_free(p, d->index);
        d->index = next;
    }
    smg_arena_give(p->arena, d->kv);
    smg_arena_give(p->arena, d->metadata);
    smg_store_give(&p->store, d->written);
    smg_store_give(&p->store, d);
    p->prefill[request] = NULL;
}

/* Kernels also make the selector's metadata at once. */
static int compute_layer(struct smg_process *p, struct smg_prefill_data *d, uint32_t request, uint32_t layer)
{
    uint8_t *kv = smg_process_at(p, d->kv);
    int status = smg_compute_fill(p->compute, &d->layout, request, layer, kv);

    if (!status && d->layout.metadata_token_bytes && smg_model_layer_selects(&p->world->model, layer))
        status = smg_compute_metadata(p->compute, &d->layout, layer, kv,
                                      smg_process_at(p, d->metadata + smg_layout_metadata(&d->layout, layer)));
    return smg_process_compute(p, request, status);
}

int smg_prefill_fill(struct smg_process *p, uint32_t request, uint32_t layer)
{
    struct smg_prefill_data *d = p->prefill[request];

    if (d && p->compute)
        return compute_layer(p, d, request, layer);
    if (d)
        smg_content_layer(&d->layout, p->world->scenario.seed, request, layer, smg_process_at(p, d->kv));
    return SMG_OK;
}

/* ---- WRITEs ---- */

/* More than the device takes in one message goes in several, the last one with the flags. */
static int post(struct smg_process *p, uint16_t peer, enum smg_queue queue, uint64_t from, uint64_t bytes, uint64_t to,
                uint64_t context, unsigned flags)
{
    struct smg_qp *qp = smg_fabric_qp(p->fabric, peer, queue);
    uint64_t most = p->limits.max_message_bytes, part;
    int status = SMG_OK;

    for (; !status && bytes > most; bytes -= part, from += part, to += part) {
        struct smg_piece piece = smg_process_piece(p, from, part = most);
        status = smg_fabric_write(qp, &piece, 1, &p->peer[peer].memory, to, 0, SMG_POST_MORE, &p->diag);
    }
    struct smg_piece piece = smg_process_piece(p, from, bytes);
    return status ? status : smg_fabric_write(qp, &piece, 1, &p->peer[peer].memory, to, context, flags, &p->diag);
}

static enum smg_queue queue_of(const struct smg_op *op)
{
    return op->action.lane == SMG_LANE_REPLY ? SMG_QUEUE_REPLY : SMG_QUEUE_PUSH;
}

/* Whether data and mask may be posted together: the device places writes in order, or the user says so. */
static int ordered(const struct smg_process *p, uint64_t bytes)
{
    enum smg_write_order order = p->world->scenario.emu.write_order;

    if (order == SMG_ORDER_ASSUME)
        return 1;
    return order == SMG_ORDER_DEVICE && p->limits.waw_ordered && bytes <= p->limits.max_order_waw_bytes;
}

static int write_data(struct smg_process *p, struct smg_prefill_data *d, struct smg_op *op, const struct smg_item *it,
                      uint64_t context, unsigned flags)
{
    uint64_t at = smg_layout_block(&d->layout, it->layer, it->first);

    return post(p, op->action.peer, queue_of(op), d->kv + at,
                smg_grid_range_bytes(&d->layout.grid, it->layer, it->first, it->count), p->cookie[op->action.request][0] + at,
                context, flags);
}

static int write_mask(struct smg_process *p, struct smg_prefill_data *d, struct smg_op *op, const struct smg_item *it,
                      uint64_t context, unsigned flags)
{
    uint32_t lo, hi;

    smg_grid_block(&d->layout.grid, it->layer, it->first, &lo, &hi);
    return post(p, op->action.peer, queue_of(op), p->ones,
                smg_grid_range_tokens(&d->layout.grid, it->layer, it->first, it->count),
                p->cookie[op->action.request][1] + (uint64_t)it->layer * d->layout.mask_width + lo, context, flags);
}

static void count_blocks(struct smg_process *p, struct smg_prefill_data *d, const struct smg_item *it)
{
    uint8_t *w = d->written + (size_t)it->layer * d->layout.grid.blocks;

    for (uint32_t m = it->first; m < it->first + it->count; m++)
        p->stats.blocks_rewritten += w[m]++ != 0;
}

/* Test only: one byte of the first pushed block of request 0 is not what was computed. */
static void flip_byte(struct smg_process *p, struct smg_prefill_data *d, const struct smg_op *op)
{
    if (p->world->scenario.emu.mutant != SMG_MUTANT_FLIP_BYTE || p->mutated || op->action.purpose != SMG_FOR_PUSH ||
        op->action.request)
        return;
    p->mutated = 1;
    *smg_process_at(p, d->kv + smg_layout_block(&d->layout, op->items[0].layer, op->items[0].first)) ^= 1;
}

/* Test only: the mask says local, the data is held back until the decode side speaks of the request again. */
static int hold_back(struct smg_process *p, struct smg_prefill_data *d, const struct smg_op *op)
{
    if (p->world->scenario.emu.mutant != SMG_MUTANT_EARLY_MASK || p->mutated || op->action.purpose != SMG_FOR_PUSH ||
        op->action.request)
        return 0;
    p->mutated = 1;
    d->held = op->items[0];
    return 1;
}

/* Data and mask of every range in one chain, the last one signaled when placed. */
static int write_chain(struct smg_process *p, struct smg_prefill_data *d, struct smg_op *op)
{
    uint32_t n = op->action.n_items;
    int held = hold_back(p, d, op), status = SMG_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        int last = i + 1 == n;
        if (!(held && i == 0))
            status = write_data(p, d, op, &op->items[i], 0, SMG_POST_MORE);
        if (!status)
            status = write_mask(p, d, op, &op->items[i], last ? smg_context(op, SMG_CONTEXT_OP) : 0,
                                last ? SMG_POST_DELIVERED : SMG_POST_MORE);
    }
    op->phase = 1;
    return status;
}

/* No order promised: all data first, signaled when placed; the masks follow its completion. */
static int write_fenced(struct smg_process *p, struct smg_prefill_data *d, struct smg_op *op)
{
    uint32_t n = op->action.n_items;
    int status = SMG_OK;

    for (uint32_t i = 0; i < n && !status; i++)
        status = write_data(p, d, op, &op->items[i], smg_context(op, SMG_CONTEXT_OP), SMG_POST_DELIVERED);
    op->phase = 2 * (uint64_t)n;
    return status;
}

static int write_metadata(struct smg_process *p, struct smg_prefill_data *d, struct smg_op *op)
{
    const struct smg_item *it = &op->items[0];
    uint64_t at = smg_layout_metadata(&d->layout, it->layer) + it->first;

    if (!p->compute)
        smg_content_metadata(p->world->scenario.seed, it->request, it->layer, it->first, it->count,
                             smg_process_at(p, d->metadata + at));
    op->phase = 1;
    return post(p, op->action.peer, queue_of(op), d->metadata + at, it->count, p->cookie[op->action.request][2] + at,
                smg_context(op, SMG_CONTEXT_OP), SMG_POST_DELIVERED);
}

int smg_prefill_write(struct smg_process *p, struct smg_op *op)
{
    struct smg_prefill_data *d = p->prefill[op->action.request];
    enum smg_path path = op->action.purpose == SMG_FOR_METADATA ? SMG_PATH_METADATA
                         : op->action.purpose == SMG_FOR_PUSH   ? SMG_PATH_PUSH
                                                                : SMG_PATH_SPECULATIVE;

    if (!d || p->cookie_from[op->action.request] != op->action.peer)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "write for request %u, which holds no memory", op->action.request);
    if (smg_fault_at(p, SMG_FAULT_WRITE))
        return SMG_ERR_LOST;
    p->stats.sent_bytes[path] += op->action.bytes;
    p->stats.messages[path] += op->action.messages;
    p->stats.mask_bytes += op->action.mask_bytes;
    if (path == SMG_PATH_METADATA)
        return write_metadata(p, d, op);
    for (uint32_t i = 0; i < op->action.n_items; i++)
        count_blocks(p, d, &op->items[i]);
    flip_byte(p, d, op);
    return ordered(p, op->action.bytes) ? write_chain(p, d, op) : write_fenced(p, d, op);
}

/* One signaled completion of a WRITE. Under a fence, when half are in, the data is there and the masks go. */
int smg_prefill_write_done(struct smg_process *p, struct smg_op *op, int *complete)
{
    uint64_t n = op->action.n_items;
    int status = SMG_OK;

    op->phase--;
    *complete = !op->phase;
    if (op->phase != n || op->action.purpose == SMG_FOR_METADATA || ordered(p, op->action.bytes))
        return SMG_OK;
    for (uint32_t i = 0; i < n && !status; i++)
        status =
            write_mask(p, p->prefill[op->action.request], op, &op->items[i], smg_context(op, SMG_CONTEXT_OP), SMG_POST_DELIVERED);
    return status;
}

/* ---- Messages that matter to the bytes ---- */

/* Where to write is taken once, from the instance that the request is for, and only within its memory. */
static int take_cookie(struct smg_process *p, uint16_t from, const struct smg_message *msg)
{
    uint32_t r = msg->request;
    struct smg_layout l;

    smg_layout_init(&l, p->world, r, p->features.metadata);
    if (!smg_world_is_decode(p->world, from) || p->cookie_from[r] || (p->partner[r] && p->partner[r] != from) ||
        !smg_wire_pool_is_valid(&l, msg, p->peer[from].memory.bytes))
        return SMG_ERR_PROTOCOL;
    memcpy(p->cookie[r], msg->u.pool.cookie, sizeof p->cookie[r]);
    p->cookie_from[r] = from;
    return SMG_OK;
}

/* Remembers where to write, and lets go of data that the early-mask mutant holds back: one step too late. */
int smg_prefill_message(struct smg_process *p, uint16_t from, const struct smg_message *msg)
{
    struct smg_prefill_data *d = p->prefill[msg->request];
    struct smg_op stand_in;
    int speaks = msg->kind == SMG_MSG_INDEX || msg->kind == SMG_MSG_IDLE || msg->kind == SMG_MSG_DONE, status;

    if (msg->kind == SMG_MSG_POOL)
        return take_cookie(p, from, msg);
    if (!d || !d->held.count || !speaks)
        return SMG_OK;
    memset(&stand_in, 0, sizeof stand_in);
    stand_in.action.request = msg->request;
    stand_in.action.lane = SMG_LANE_PUSH;
    stand_in.action.peer = from;
    status = write_data(p, d, &stand_in, &d->held, 0, 0);
    d->held.count = 0;
    return status;
}

static uint32_t lists_of(const struct smg_prefill_data *d)
{
    uint32_t n = 0;

    for (const struct smg_index *x = d->index; x; x = x->next)
        n++;
    return n;
}

/* Keeps the lists of an INDEX until its reply is sent. Everything a peer says is checked first. */
int smg_prefill_index(struct smg_process *p, uint16_t from, const struct smg_message *msg, const uint32_t *rows, uint64_t words)
{
    struct smg_prefill_data *d = p->prefill[msg->request];
    uint32_t heads = p->world->model.kv_heads;
    struct smg_index *x, **tail;
    uint64_t entries = 0;

    if (!d || p->partner[msg->request] != from || lists_of(d) >= SMG_INDICES_MAX ||
        !smg_wire_index_is_valid(p->world, &d->layout, msg, rows, words, &entries))
        return SMG_ERR_PROTOCOL;
    x = smg_store_take_raw(&p->store, index_bytes(p, msg->request));
    if (!x)
        return SMG_ERR_NOMEM;
    *x = (struct smg_index){.step = msg->step, .layer = msg->layer_lo, .entries = entries, .reply_offset = UINT64_MAX};
    x->rows = (uint32_t *)(x + 1);
    x->ids = (int32_t *)(x->rows + heads);
    memcpy(x->rows, rows, heads * sizeof *x->rows);
    memcpy(x->ids, rows + heads, entries * sizeof *x->ids);
    for (tail = &d->index; *tail; tail = &(*tail)->next)
        continue;
    *tail = x;
    return SMG_OK;
}

static struct smg_index *index_find(struct smg_process *p, const struct smg_action *a)
{
    struct smg_prefill_data *d = p->prefill[a->request];
    struct smg_index *x = d ? d->index : NULL;

    while (x && (x->step != a->step || x->layer != a->layer_lo))
        x = x->next;
    return x;
}

static int gather_by_kernel(struct smg_process *p, const struct smg_prefill_data *d, const struct smg_index *x, uint32_t request,
                            const uint8_t *kv, uint8_t *out)
{
    uint64_t start[SMG_COMPUTE_MAX_HEADS], at = 0;

    for (uint32_t h = 0; h < d->layout.heads; at += x->rows[h++])
        start[h] = at;
    return smg_process_compute(p, request,
                               smg_compute_gather(p->compute, &d->layout, x->layer, kv, x->ids, start, x->rows, start, out,
                                                  out + x->entries * d->layout.half_bytes));
}

/* Gathers into one contiguous reply, (all K rows, all V rows). */
int smg_prefill_gather(struct smg_process *p, struct smg_op *op)
{
    struct smg_prefill_data *d = p->prefill[op->action.request];
    struct smg_index *x = index_find(p, &op->action);
    uint64_t half = d ? d->layout.half_bytes : 0, at = 0;
    uint8_t *kv, *out;
    int status;

    if (!x || x->entries != op->action.entries)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "request %u: no index to gather for", op->action.request);
    status = smg_arena_take(p->arena, 2 * half * x->entries, &x->reply_offset);
    if (status)
        return smg_process_fail(p, status, "request %u: no room for a reply", op->action.request);
    kv = smg_process_at(p, d->kv);
    out = smg_process_at(p, x->reply_offset);
    if (p->compute)
        return gather_by_kernel(p, d, x, op->action.request, kv, out);
    for (uint32_t h = 0; h < d->layout.heads; h++) {
        for (uint32_t j = 0; j < x->rows[h]; j++, at++) {
            uint64_t v, k = smg_layout_entry(&d->layout, x->layer, h, (uint32_t)x->ids[at], &v);
            memcpy(out + at * half, kv + k, half);
            memcpy(out + (x->entries + at) * half, kv + v, half);
        }
    }
    return SMG_OK;
}

/* One send per receive of the other side: both cut by the same plan. */
int smg_prefill_reply(struct smg_process *p, struct smg_op *op)
{
    struct smg_prefill_data *d = p->prefill[op->action.request];
    struct smg_index *x = index_find(p, &op->action);
    struct smg_qp *qp = smg_fabric_qp(p->fabric, op->action.peer, SMG_QUEUE_REPLY);
    struct smg_scatter_plan plan = {0};
    uint64_t at = 0, stride = d ? d->layout.grid.tokens * d->layout.half_bytes : 0;
    int status;

    if (!x || x->reply_offset == UINT64_MAX)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "request %u: no reply was gathered", op->action.request);
    if (smg_fault_at(p, SMG_FAULT_REPLY))
        return SMG_ERR_LOST;
    status = smg_reply_plan(p, x->rows, stride, d->layout.heads * stride, &plan);
    for (uint32_t i = 0; !status && i < plan.n_receives; i++) {
        uint64_t bytes = 0;
        struct smg_piece piece;
        for (uint32_t s = plan.first[i]; s < plan.first[i + 1]; s++)
            bytes += plan.segment[s].bytes;
        piece = smg_process_piece(p, x->reply_offset + at, bytes);
        at += bytes;
        status = smg_fabric_send(qp, &piece, 1, i + 1 == plan.n_receives ? smg_context(op, SMG_CONTEXT_OP) : 0,
                                 i + 1 == plan.n_receives ? SMG_POST_SIGNALED : 0, &p->diag);
    }
    op->phase = 1;
    p->stats.sent_bytes[SMG_PATH_ON_DEMAND] += op->action.bytes;
    p->stats.messages[SMG_PATH_ON_DEMAND] += op->action.messages;
    return status;
}

void smg_prefill_reply_done(struct smg_process *p, const struct smg_action *a)
{
    struct smg_prefill_data *d = p->prefill[a->request];
    struct smg_index **link = &d->index, *x = index_find(p, a);

    while (x && *link != x)
        link = &(*link)->next;
    if (!x)
        return;
    *link = x->next;
    index_free(p, x);
}

/* ---- Reply plans, shared by both sides ---- */

/* Rows land in place when they are contiguous at the row's start; otherwise the reply is received whole and moved. */
int smg_reply_scattered(const struct smg_process *p)
{
    return p->features.parallel && p->features.reorder;
}

int smg_reply_plan(const struct smg_process *p, const uint32_t *rows, uint64_t row_stride_bytes, uint64_t v_offset_bytes,
                   struct smg_scatter_plan *out)
{
    uint64_t half = smg_model_entry_bytes(&p->world->model) / 2;
    uint32_t limit = p->world->scenario.on_demand.scatter_limit, heads = p->world->model.kv_heads, one = 0;

    if (limit > p->limits.recv_iov)
        limit = p->limits.recv_iov;
    if (limit > SMG_REPLY_SEGMENTS)
        limit = SMG_REPLY_SEGMENTS;
    if (smg_reply_scattered(p))
        return smg_scatter_plan_at(rows, heads, half, row_stride_bytes, v_offset_bytes, limit, p->segment, p->first_segment, out);
    for (uint32_t h = 0; h < heads; h++)
        one += rows[h];
    /* one row of everything: K then V, one receive */
    return smg_scatter_plan_at(&one, 1, half, one * half, one * half, 2, p->segment, p->first_segment, out);
}
