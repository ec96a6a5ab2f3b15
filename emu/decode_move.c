/* How entries move on a decode instance: gathered from the pool, copied to the device, landed by replies, kept in the pool. */
#include <string.h>

#include "emu/decode_priv.h"

/* Replies land on the device with GPUDirect, in host memory without, and always there when they are fetched serially. */
static int lands_on_device(const struct smg_process *p)
{
    return p->world->scenario.gdr && p->features.parallel;
}

enum move {
    POOL_TO_STAGING,   /* local gather */
    STAGING_TO_DEVICE, /* host-to-device copy of the local part */
    REMOTE_TO_DEVICE,  /* the same of remote entries that landed in host memory */
    LANDED_TO_POOL     /* KV reuse: fetched entries to the host pool */
};

static void move_entry(struct smg_process *p, struct smg_decode_data *d, enum move move, uint32_t h, uint32_t j)
{
    int32_t token = d->ids[(size_t)h * d->row_cap + j];
    struct smg_place pool = smg_in_pool(p, d, h, (uint32_t)token), staging = smg_in_rows(p, d, d->staging, h, j),
                     device = smg_in_rows(p, d, d->device, h, j);
    struct smg_place from = move == POOL_TO_STAGING ? pool : move == LANDED_TO_POOL && lands_on_device(p) ? device : staging;
    struct smg_place to = move == POOL_TO_STAGING ? staging : move == LANDED_TO_POOL ? pool : device;

    memcpy(to.k, from.k, d->layout.half_bytes);
    memcpy(to.v, from.v, d->layout.half_bytes);
    if (move == LANDED_TO_POOL)
        smg_ledger_keep(d->ledger, d->layer, h, (uint32_t)token);
}

/* With reordering a row's local entries follow one another: one gather for all heads, and one copy a head and half. */
static int move_local(struct smg_process *p, struct smg_decode_data *d, enum move move)
{
    uint64_t start[SMG_COMPUTE_MAX_HEADS], half = d->layout.half_bytes, v = (uint64_t)d->layout.heads * d->row_cap * half;
    uint32_t local[SMG_COMPUTE_MAX_HEADS];
    uint8_t *staging = smg_process_at(p, d->staging), *device = smg_process_at(p, d->device);

    for (uint32_t h = 0; h < d->layout.heads; h++) {
        start[h] = (uint64_t)h * d->row_cap + d->row_remote[h];
        local[h] = d->row[h] - d->row_remote[h];
    }
    if (move == POOL_TO_STAGING)
        return smg_compute_gather(p->compute, &d->layout, d->layer, smg_process_at(p, d->kv), d->ids, start, local, start,
                                  staging, staging + v);
    for (uint32_t h = 0; h < d->layout.heads; h++) {
        memcpy(device + start[h] * half, staging + start[h] * half, local[h] * half);
        memcpy(device + v + start[h] * half, staging + v + start[h] * half, local[h] * half);
    }
    return SMG_OK;
}

static void move_rows(struct smg_process *p, struct smg_decode_data *d, enum move move)
{
    int want = move == REMOTE_TO_DEVICE || move == LANDED_TO_POOL;

    for (uint32_t h = 0; h < d->layout.heads; h++)
        for (uint32_t j = 0; j < d->row[h]; j++)
            if (d->remote[(size_t)h * d->row_cap + j] == want)
                move_entry(p, d, move, h, j);
}

static int spread_by_kernel(struct smg_process *p, const struct smg_decode_data *d, const uint8_t *reply, uint64_t entries,
                            uint8_t *rows)
{
    uint64_t from[SMG_COMPUTE_MAX_HEADS], to[SMG_COMPUTE_MAX_HEADS], half = d->layout.half_bytes, at = 0;

    for (uint32_t h = 0; h < d->layout.heads; at += d->row_remote[h++]) {
        from[h] = at;
        to[h] = (uint64_t)h * d->row_cap;
    }
    return smg_compute_scatter(p->compute, &d->layout, d->row_remote, from, to, reply, reply + entries * half, rows,
                               rows + (uint64_t)d->layout.heads * d->row_cap * half);
}

/* A reply that was received whole, (all K, all V) of the remote entries in row order, goes to its places in the rows. */
static int spread_reply(struct smg_process *p, struct smg_decode_data *d)
{
    uint64_t half = d->layout.half_bytes, area = lands_on_device(p) ? d->device : d->staging, n = 0, at = 0;
    const uint8_t *reply = smg_process_at(p, d->reply);

    for (uint32_t h = 0; h < d->layout.heads; h++)
        n += d->row_remote[h];
    if (p->compute && p->features.reorder)
        return spread_by_kernel(p, d, reply, n, smg_process_at(p, area));
    for (uint32_t h = 0; h < d->layout.heads; h++) {
        for (uint32_t j = 0; j < d->row[h]; j++) {
            struct smg_place to = smg_in_rows(p, d, area, h, j);
            if (!d->remote[(size_t)h * d->row_cap + j])
                continue;
            memcpy(to.k, reply + at * half, half);
            memcpy(to.v, reply + (n + at) * half, half);
            at++;
        }
    }
    return SMG_OK;
}

/* Every request of the batch takes part in the local lane. */
static int move_batch(struct smg_process *p, enum move move)
{
    int by_kernel = p->compute && p->features.reorder && move != REMOTE_TO_DEVICE, status = SMG_OK;

    for (uint32_t r = 0; r < p->world->n_requests && !status; r++) {
        if (!p->decode[r] || !p->decode[r]->split_valid)
            continue;
        if (by_kernel)
            status = smg_process_compute(p, r, move_local(p, p->decode[r], move));
        else
            move_rows(p, p->decode[r], move);
    }
    return status;
}

int smg_decode_move(struct smg_process *p, struct smg_op *op)
{
    struct smg_decode_data *d = p->decode[op->action.request];
    int status;

    switch (op->action.purpose) {
    case SMG_FOR_LOCAL_GATHER:
        return move_batch(p, POOL_TO_STAGING);
    case SMG_FOR_LOCAL_COPY:
        status = move_batch(p, STAGING_TO_DEVICE);
        return status || p->features.parallel ? status : move_batch(p, REMOTE_TO_DEVICE);
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
    return status;
}

int smg_decode_received(struct smg_process *p, struct smg_op *op)
{
    struct smg_decode_data *d = p->decode[op->action.request];

    if (!smg_reply_scattered(p)) {
        int status = spread_reply(p, d);
        if (status)
            return smg_process_compute(p, op->action.request, status);
    }
    p->stats.received_bytes[SMG_PATH_ON_DEMAND] += op->action.bytes;
    return SMG_OK;
}
