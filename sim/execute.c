/* Actions become engine work: which resource an operation holds, for how long, and what its end means. */
#include <string.h>

#include "core/cost.h"
#include "sim/sim_priv.h"

/* ---- Starting operations ---- */

static int start_timer(struct smg_sim *s, uint16_t instance, struct smg_op *op, enum smg_pending_kind kind, double seconds)
{
    uint64_t tag;
    int status = smg_sim_pending(s, kind, instance, op, &tag);

    return status ? status : smg_engine_timer(s->engine, seconds, tag);
}

static int start_flow(struct smg_sim *s, uint16_t instance, struct smg_op *op, uint32_t from, uint32_t to, double bytes)
{
    uint64_t tag;
    int status = smg_sim_pending(s, SMG_PENDING_OP, instance, op, &tag);

    return status ? status : smg_engine_flow(s->engine, from, to, bytes, tag);
}

static enum smg_path path_of(const struct smg_action *a)
{
    switch (a->purpose) {
    case SMG_FOR_METADATA:
        return SMG_PATH_METADATA;
    case SMG_FOR_PUSH:
        return SMG_PATH_PUSH;
    case SMG_FOR_SPECULATIVE:
        return SMG_PATH_SPECULATIVE;
    case SMG_FOR_REPLY:
        return SMG_PATH_ON_DEMAND;
    default:
        return SMG_PATH_CONTROL;
    }
}

/* A wire transfer holds the links for its bytes and headers, or for the posting of its messages when that takes longer than these
 * on the slower of the two. */
static int start_wire(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    uint32_t from = s->instance[instance].nic, to = s->instance[a->peer].nic;
    double mine = smg_world_link_Bps(s->world, smg_world_node(s->world, instance));
    double theirs = smg_world_link_Bps(s->world, smg_world_node(s->world, a->peer)), Bps = mine < theirs ? mine : theirs;
    int status = SMG_OK;

    s->stats.sent_bytes[path_of(a)] += a->bytes;
    s->stats.messages[path_of(a)] += a->messages;
    s->stats.mask_bytes += a->mask_bytes;
    if (a->kind == SMG_ACT_REPLY && s->world->nic.send_early > 0)
        status = start_timer(s, instance, op, SMG_PENDING_EARLY,
                             (1 - s->world->nic.send_early) * ((double)a->bytes / Bps + s->latency_s));
    if (status)
        return status;
    return start_flow(s, instance, op, from, to,
                      smg_cost_wire_bytes((double)(a->bytes + a->mask_bytes) + a->messages * s->world->nic.message_bytes,
                                          a->messages, s->world->nic.post_cost_s, Bps));
}

/* Gathers of instances on one node share its CPU: a flow; alone, or beside an oversubscribed core link (see share_cpu), a fixed
 * time. */
static int start_gather(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    const struct smg_instance *in = &s->instance[instance];

    if (!in->shared_cpu)
        return start_timer(s, instance, op, SMG_PENDING_OP, op->action.duration_s + (double)op->action.bytes / in->gather_Bps);
    if (op->action.duration_s > 0 && !op->phase) {
        op->phase = 1;
        return start_timer(s, instance, op, SMG_PENDING_OP, op->action.duration_s);
    }
    op->phase = 2;
    return start_flow(s, instance, op, in->cpu, s->sink, (double)op->action.bytes);
}

/* Messages without bytes beside them take only latency and leave their lane at once. */
static int start_send(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    if (op->action.bytes)
        return start_wire(s, instance, op);
    smg_lanes_release(s->instance[instance].lanes, op);
    return start_timer(s, instance, op, SMG_PENDING_DELIVER, s->latency_s + op->action.duration_s);
}

static int start(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    op->start_s = smg_engine_now(s->engine);
    switch (op->action.kind) {
    case SMG_ACT_COMPUTE:
        return start_timer(s, instance, op, SMG_PENDING_OP, op->action.duration_s + s->world->host.timer_late_s);
    case SMG_ACT_SPLIT:
        return start_timer(s, instance, op, SMG_PENDING_OP, op->action.duration_s);
    case SMG_ACT_COPY:
        return start_timer(s, instance, op, SMG_PENDING_OP, (double)op->action.bytes / s->instance[instance].pcie_Bps);
    case SMG_ACT_GATHER:
        return start_gather(s, instance, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
        return start_wire(s, instance, op);
    case SMG_ACT_SEND:
        return start_send(s, instance, op);
    case SMG_ACT_RECV:
        return SMG_OK; /* holds its lane until the reply is delivered */
    default:
        return SMG_ERR_PROTOCOL;
    }
}

int smg_sim_kick(struct smg_sim *s, uint16_t instance)
{
    struct smg_op *op;
    int status = SMG_OK;

    while (!status && !s->instance[instance].dead && (op = smg_lanes_start(s->instance[instance].lanes)))
        status = start(s, instance, op);
    return status;
}

static int execute_now(struct smg_sim *s, uint16_t instance, const struct smg_action *a)
{
    uint64_t tag;
    int status;

    switch (a->kind) {
    case SMG_ACT_RESERVE:
        return smg_sim_reserve(s, instance, a);
    case SMG_ACT_RELEASE:
        return smg_sim_release(s, instance, a);
    case SMG_ACT_TIMER:
        status = smg_sim_pending(s, SMG_PENDING_TIMER, instance, NULL, &tag);
        return status ? status : smg_engine_timer(s->engine, a->duration_s, tag);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

int smg_sim_submit(struct smg_sim *s, uint16_t instance, const struct smg_actions *actions)
{
    int status = SMG_OK;

    for (size_t i = 0; i < actions->n && !status; i++) {
        const struct smg_action *a = &actions->action[i];
        if (a->lane == SMG_LANE_NONE)
            status = execute_now(s, instance, a);
        else
            status = smg_lanes_submit(s->instance[instance].lanes, a, a->n_items ? actions->items + a->item_first : NULL);
    }
    if (!status && s->instance[instance].told)
        status = smg_sim_drop_lost(s, instance);
    return status ? status : smg_sim_kick(s, instance);
}

/* ---- Ending operations ---- */

static int op_done(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    struct smg_event e;
    int status = SMG_OK;

    if ((a->flags & SMG_ACT_NOTIFY) && !(a->kind == SMG_ACT_REPLY && op->phase)) {
        smg_event_done(a, &e);
        status = smg_sim_event(s, instance, &e);
    }
    smg_lanes_complete(s->instance[instance].lanes, op);
    return status ? status : smg_sim_kick(s, instance);
}

static int split_layer(struct smg_sim *s, const struct smg_item *it, uint32_t layer, struct smg_split_count *c)
{
    const struct smg_ledger *l = s->ledger[it->request];

    if (!l)
        return SMG_ERR_PROTOCOL;
    if (!(it->flags & SMG_ITEM_PRESENT))
        return s->selection->type->split(s->selection, it->request, it->count, layer, it->flags & SMG_ITEM_FULL, c);
    c->local = (uint64_t)s->world->model.kv_heads * l->present[layer];
    return SMG_OK;
}

static int split_item(struct smg_sim *s, uint16_t instance, const struct smg_action *a, const struct smg_item *it)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_SPLIT_DONE;
    e.op = a->op;
    e.request = it->request;
    e.step = it->count;
    e.layer_lo = a->layer_lo;
    e.layer_hi = a->layer_hi;
    for (uint32_t l = a->layer_lo; l < a->layer_hi; l++) {
        struct smg_split_count c = {0, 0, 0};
        int status = split_layer(s, it, l, &c);
        if (status)
            return status;
        e.entries_local += c.local;
        e.entries_remote += c.remote;
    }
    return smg_sim_event(s, instance, &e);
}

static int split_done(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    int status = SMG_OK;

    for (uint32_t i = 0; i < op->action.n_items && !status; i++)
        status = split_item(s, instance, &op->action, &op->items[i]);
    return status ? status : op_done(s, instance, op);
}

/* Fetched entries are in the host pool now: later splits find them local. */
static void keep(struct smg_sim *s, const struct smg_action *a)
{
    for (uint32_t l = a->layer_lo; l < a->layer_hi; l++)
        s->selection->type->keep(s->selection, a->request, a->step, l);
}

/* The last byte has left: the lane goes on, the data arrives one latency later. */
static int wire_done(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    int status = start_timer(s, instance, op, SMG_PENDING_DELIVER, s->latency_s);

    smg_lanes_release(s->instance[instance].lanes, op);
    return status ? status : smg_sim_kick(s, instance);
}

int smg_sim_op_phase(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    const struct smg_action *a = &op->action;

    if (a->kind == SMG_ACT_GATHER && op->phase == 1)
        return start_gather(s, instance, op);
    if (s->observer.operation)
        s->observer.operation(s->observer.arg, op, op->start_s, smg_engine_now(s->engine));
    switch (a->kind) {
    case SMG_ACT_SPLIT:
        return split_done(s, instance, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
    case SMG_ACT_SEND:
        return wire_done(s, instance, op);
    default:
        if (a->purpose == SMG_FOR_KEEP || a->purpose == SMG_FOR_SCATTER)
            keep(s, a);
        return op_done(s, instance, op);
    }
}

/* ---- Arrivals at the other side ---- */

static int deliver_message(struct smg_sim *s, uint16_t from, const struct smg_action *a)
{
    struct smg_event e;

    smg_event_message(from, &a->msg, &e);
    return smg_sim_event(s, a->peer, &e);
}

/* Replies of one queue pair arrive in the order of the receives. */
static int deliver_reply(struct smg_sim *s, uint16_t from, const struct smg_action *a)
{
    struct smg_instance *in = &s->instance[a->peer];
    struct smg_op *receive = smg_lanes_running(in->lanes, SMG_LANE_REPLY, from);
    const struct smg_action *r = receive ? &receive->action : NULL;

    if (!r || r->kind != SMG_ACT_RECV || r->request != a->request || r->step != a->step || r->layer_lo != a->layer_lo ||
        r->bytes != a->bytes)
        return SMG_ERR_PROTOCOL;
    if (s->observer.operation)
        s->observer.operation(s->observer.arg, receive, receive->start_s, smg_engine_now(s->engine));
    return op_done(s, a->peer, receive);
}

int smg_sim_deliver(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    int status;

    if (s->instance[a->peer].dead) /* no acknowledgement: what waits for one ends when the death is known */
        return a->kind == SMG_ACT_SEND ? op_done(s, instance, op) : SMG_OK;
    if (s->instance[instance].dead && s->instance[a->peer].told)
        return SMG_OK;
    if (a->bytes)
        s->stats.received_bytes[path_of(a)] += a->bytes;
    if (a->kind == SMG_ACT_SEND)
        status = deliver_message(s, instance, a);
    else if (a->kind == SMG_ACT_REPLY)
        status = deliver_reply(s, instance, a);
    else
        status = a->purpose == SMG_FOR_METADATA ? SMG_OK : smg_sim_placed(s, op);
    if (!status && a->kind == SMG_ACT_WRITE && s->world->nic.completion_s > 0)
        return start_timer(s, instance, op, SMG_PENDING_CONFIRM, s->world->nic.completion_s);
    return status ? status : op_done(s, instance, op);
}

/* A local buffer has the reply: as far as its sender can tell it is sent. */
int smg_sim_early(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    struct smg_event e;

    op->phase = 1;
    if (!(op->action.flags & SMG_ACT_NOTIFY))
        return SMG_OK;
    smg_event_done(&op->action, &e);
    return smg_sim_event(s, instance, &e);
}

int smg_sim_confirm(struct smg_sim *s, uint16_t instance, struct smg_op *op)
{
    return op_done(s, instance, op);
}
