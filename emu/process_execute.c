/* Actions become real work: lanes start operations, timers and completions end them; memory is reserved and released. */
#include "emu/process.h"

#include <string.h>

/* ---- Operations ---- */

int smg_process_done(struct smg_process *p, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    struct smg_event e;
    int status = SMG_OK;

    if (p->observer.operation)
        p->observer.operation(p->observer.arg, op, op->start_s, smg_harness_now(p->harness));
    if (a->flags & SMG_ACT_NOTIFY) {
        smg_event_done(a, &e);
        status = smg_process_event(p, &e);
    }
    smg_lanes_complete(p->lanes, op);
    return status;
}

/* Paced compute: the lane is held for the modelled time, while the bytes it makes or reads are made or checked. */
static int start_compute(struct smg_process *p, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    double due_s = op->start_s + a->duration_s * p->world->scenario.emu.time_scale;
    int status = SMG_OK;

    if (a->purpose == SMG_FOR_PREFILL_LAYER)
        status = smg_prefill_fill(p, a->request, a->layer_lo);
    if (a->purpose == SMG_FOR_ATTENTION)
        status = smg_decode_attention(p, a);
    return status ? status : smg_process_timer(p, due_s, op, 0);
}

/* A shaped transfer is posted when its last byte would be through the link; its lane is held until then. */
static int shaped(struct smg_process *p, struct smg_op *op, double *due_s)
{
    const struct smg_action *a = &op->action;

    if (!p->links || a->kind == SMG_ACT_RECV)
        return 0;
    *due_s = smg_links_take(p->links, smg_world_node(p->world, p->self), smg_world_node(p->world, a->peer),
                            (double)(a->bytes + a->mask_bytes), smg_harness_now(p->harness));
    return 1;
}

/* Posts and lets the lane go on: the queue pair keeps the order. */
static int post_now(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.kind == SMG_ACT_WRITE)
        status = smg_prefill_write(p, op);
    else if (op->action.kind == SMG_ACT_REPLY)
        status = smg_prefill_reply(p, op);
    else
        status = smg_decode_receive(p, op);
    status = smg_process_post_failed(p, op->action.peer, status);
    if (!status)
        smg_lanes_release(p->lanes, op);
    return status;
}

/* Test only: a receiver that is not ready when its reply comes. */
static const double late_s = 0.02;

static int start_posted(struct smg_process *p, struct smg_op *op)
{
    double due_s;

    if (op->action.kind == SMG_ACT_RECV && smg_fault_due(p, SMG_FAULT_SLOW_RECEIVER))
        return smg_process_timer(p, op->start_s + late_s, op, 0);
    return shaped(p, op, &due_s) ? smg_process_timer(p, due_s, op, 0) : post_now(p, op);
}

static int start_now(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.kind == SMG_ACT_SPLIT)
        status = smg_decode_split(p, op);
    else if (op->action.purpose == SMG_FOR_REPLY_GATHER)
        status = smg_prefill_gather(p, op);
    else
        status = smg_decode_move(p, op);
    return status ? status : smg_process_done(p, op);
}

/* A message whose slots are all in flight keeps its lane and is tried again. */
static int start_send(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.duration_s > 0 && !op->phase) {
        op->phase = 1; /* a fixed time ahead of the message */
        return smg_process_timer(p, op->start_s + op->action.duration_s, op, 0);
    }
    status = smg_ctl_send(p, op);
    if (status == SMG_ERR_CAPACITY)
        return smg_process_timer(p, smg_harness_now(p->harness) + 20e-6, op, 0);
    status = smg_process_post_failed(p, op->action.peer, status);
    if (!status)
        smg_lanes_release(p->lanes, op);
    return status;
}

static int start(struct smg_process *p, struct smg_op *op)
{
    op->start_s = smg_harness_now(p->harness);
    switch (op->action.kind) {
    case SMG_ACT_COMPUTE:
        return start_compute(p, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
    case SMG_ACT_RECV:
        return start_posted(p, op);
    case SMG_ACT_SEND:
        return start_send(p, op);
    default:
        return start_now(p, op);
    }
}

int smg_process_kick(struct smg_process *p)
{
    struct smg_op *op;
    int status = SMG_OK;

    while (!status && (op = smg_lanes_start(p->lanes)))
        status = start(p, op);
    return status;
}

int smg_process_resume(struct smg_process *p, struct smg_op *op)
{
    switch (op->action.kind) {
    case SMG_ACT_SEND:
        return start_send(p, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
    case SMG_ACT_RECV:
        return post_now(p, op);
    default:
        return smg_process_done(p, op);
    }
}

/* A part of a reply has landed. One that has not the bytes that were asked for is nonsense: what waits for it ends with its
 * sender. */
static int received(struct smg_process *p, struct smg_op *op, uint64_t bytes, int *complete)
{
    int status;

    op->moved += bytes;
    *complete = !--op->phase;
    if (!*complete)
        return SMG_OK;
    if (op->moved != op->action.bytes) {
        *complete = 0;
        return smg_process_cut(p, op->action.peer, SMG_ERR_PROTOCOL);
    }
    status = smg_decode_received(p, op);
    return status ? status : smg_fault_at(p, SMG_FAULT_REPLY);
}

int smg_process_completed(struct smg_process *p, struct smg_op *op, uint64_t bytes)
{
    int complete = 1, status = SMG_OK;

    if (op->action.kind == SMG_ACT_WRITE) {
        status = smg_process_post_failed(p, op->action.peer, smg_prefill_write_done(p, op, &complete));
    } else if (op->action.kind == SMG_ACT_RECV) {
        status = received(p, op, bytes, &complete);
    } else {
        smg_prefill_reply_done(p, &op->action);
    }
    return status || !complete ? status : smg_process_done(p, op);
}

/* ---- Memory ---- */

static int reserved(struct smg_process *p, uint32_t request, uint32_t op, uint64_t bytes, int outcome)
{
    struct smg_event e;
    int status = SMG_OK;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_RESERVED;
    e.request = request;
    e.op = op;
    e.status = outcome;
    p->reserved_bytes[request] = outcome ? 0 : bytes;
    if (!outcome && smg_world_is_prefill(p->world, p->self))
        status = smg_prefill_open(p, request);
    else if (!outcome)
        status = smg_decode_open(p, request, e.cookie);
    return status ? status : smg_process_event(p, &e);
}

static int reserve(struct smg_process *p, const struct smg_action *a)
{
    int status = smg_pool_ask(&p->pool, a->request, a->op, a->bytes);

    if (status == SMG_OK || status == SMG_ERR_CAPACITY)
        return reserved(p, a->request, a->op, a->bytes, status);
    return status == SMG_ERR_RANGE ? SMG_OK : status;
}

static int release(struct smg_process *p, const struct smg_action *a)
{
    uint32_t request, op;
    uint64_t bytes;
    int status = SMG_OK;

    if (smg_world_is_prefill(p->world, p->self))
        smg_prefill_close(p, a->request);
    else
        status = smg_decode_close(p, a->request);
    smg_pool_give(&p->pool, p->reserved_bytes[a->request]);
    while (!status && smg_pool_next(&p->pool, &request, &op, &bytes))
        status = reserved(p, request, op, bytes, SMG_OK);
    return status;
}

static int execute_now(struct smg_process *p, const struct smg_action *a)
{
    switch (a->kind) {
    case SMG_ACT_RESERVE:
        return reserve(p, a);
    case SMG_ACT_RELEASE:
        return release(p, a);
    case SMG_ACT_TIMER:
        return smg_process_timer(p, smg_harness_now(p->harness) + a->duration_s, NULL, 0);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

int smg_process_submit(struct smg_process *p)
{
    int status = SMG_OK;

    for (size_t i = 0; i < p->actions.n && !status; i++) {
        const struct smg_action *a = &p->actions.action[i];
        if (a->kind == SMG_ACT_SEND && a->msg.kind == SMG_MSG_FAILED)
            p->dropped[a->request] = 1;
        if (a->lane == SMG_LANE_NONE)
            status = execute_now(p, a);
        else
            status = smg_lanes_submit(p->lanes, a, a->n_items ? p->actions.items + a->item_first : NULL);
    }
    if (!status)
        status = smg_process_drop_lost(p);
    return status ? status : smg_process_kick(p);
}
