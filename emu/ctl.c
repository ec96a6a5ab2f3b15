/* Control messages: fixed-size agent messages, index lists beside them, receives that are always posted. */
#include <stdlib.h>
#include <string.h>

#include "emu/process.h"

uint64_t smg_ctl_bytes(const struct smg_world *w)
{
    uint64_t longest = 0, words;

    for (uint32_t i = 0; i < w->n_requests; i++)
        if (w->requests[i].prompt_tokens > longest)
            longest = w->requests[i].prompt_tokens;
    words = w->model.kv_heads * (1 + longest);
    return (sizeof(struct smg_wire) + 4 * words + SMG_ARENA_ALIGN - 1) / SMG_ARENA_ALIGN * SMG_ARENA_ALIGN;
}

static int post_receive(struct smg_process *p, struct smg_qp *qp, uint64_t slot)
{
    struct smg_piece piece = smg_process_piece(p, p->ctl_receive + slot * p->ctl_bytes, p->ctl_bytes);

    return smg_fabric_recv(qp, &piece, 1, (slot << 3) | SMG_CONTEXT_RECEIVE, &p->diag);
}

int smg_ctl_post_receives(struct smg_process *p)
{
    int status = SMG_OK;

    for (uint32_t i = 0; i < p->instances; i++) {
        struct smg_qp *qp = i == p->self ? NULL : smg_fabric_qp(p->fabric, (uint16_t)i, SMG_QUEUE_CTL);
        for (uint64_t k = 0; qp && k < SMG_CTL_RECEIVES && !status; k++)
            status = post_receive(p, qp, (uint64_t)i * SMG_CTL_RECEIVES + k);
    }
    return status;
}

/* Test only: moments at which a fault may be wanted. */
static int sent_now(struct smg_process *p, const struct smg_message *m)
{
    if (m->kind == SMG_MSG_HANDOFF)
        return smg_fault_at(p, SMG_FAULT_HANDOFF);
    return m->kind == SMG_MSG_TOKEN ? smg_fault_at(p, SMG_FAULT_TOKEN) : SMG_OK;
}

int smg_ctl_send(struct smg_process *p, struct smg_op *op)
{
    struct smg_qp *qp = smg_fabric_qp(p->fabric, op->action.peer, SMG_QUEUE_CTL);
    struct smg_wire *wire;
    struct smg_piece piece;
    uint64_t slot = 0, words = 0;
    int status;

    while (slot < SMG_CTL_SENDS && p->send[slot].busy)
        slot++;
    if (slot == SMG_CTL_SENDS)
        return SMG_ERR_CAPACITY;
    if (!qp)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "no control queue to instance %u", op->action.peer);
    wire = (struct smg_wire *)(void *)smg_process_at(p, p->ctl_send + slot * p->ctl_bytes);
    if (op->action.msg.kind == SMG_MSG_INDEX)
        words = smg_decode_index(p, op->action.request, wire->rows_then_ids);
    if (words && smg_fault_due(p, SMG_FAULT_BAD_INDEX))
        wire->rows_then_ids[p->world->model.kv_heads] = p->world->requests[op->action.request].prompt_tokens;
    wire->magic = SMG_WIRE_MAGIC;
    wire->bytes = (uint32_t)(sizeof *wire + 4 * words);
    wire->msg = op->action.msg;
    if (wire->msg.kind == SMG_MSG_POOL && smg_fault_due(p, SMG_FAULT_BAD_COOKIE))
        wire->msg.u.pool.cookie[0] = p->peer[op->action.peer].memory.bytes;
    piece = smg_process_piece(p, p->ctl_send + slot * p->ctl_bytes, wire->bytes);
    status = sent_now(p, &wire->msg);
    if (!status)
        status = smg_fabric_send(qp, &piece, 1, (slot << 3) | SMG_CONTEXT_SEND, SMG_POST_SIGNALED, &p->diag);
    if (status)
        return status;
    p->send[slot] = (struct smg_send_slot){op, 1};
    p->stats.sent_bytes[SMG_PATH_CONTROL] += op->action.bytes;
    p->stats.messages[SMG_PATH_CONTROL]++;
    return SMG_OK;
}

int smg_ctl_sent(struct smg_process *p, uint64_t slot)
{
    struct smg_op *op = p->send[slot].op;

    p->send[slot] = (struct smg_send_slot){NULL, 0};
    return op ? smg_process_done(p, op) : SMG_OK; /* none: its peer is lost, or it was nonsense */
}

int smg_ctl_nonsense(struct smg_process *p, uint64_t bytes)
{
    int status = SMG_OK;

    for (uint32_t i = 0; i < p->instances && !status; i++) {
        uint64_t slot = SMG_CTL_SENDS - 2 - i % 8, at = p->ctl_send + slot * p->ctl_bytes;
        struct smg_qp *qp = i == p->self ? NULL : smg_fabric_qp(p->fabric, (uint16_t)i, SMG_QUEUE_CTL);
        struct smg_piece piece = smg_process_piece(p, at, bytes);
        if (!qp || p->send[slot].busy)
            continue;
        memset(smg_process_at(p, at), 0xA5, bytes);
        p->send[slot] = (struct smg_send_slot){NULL, 1};
        status = smg_fabric_send(qp, &piece, 1, (slot << 3) | SMG_CONTEXT_SEND, SMG_POST_SIGNALED, &p->diag);
    }
    return status;
}

/* Test only: moments at which a fault may be wanted. */
static int heard(struct smg_process *p, const struct smg_message *m)
{
    return m->kind == SMG_MSG_HANDOFF ? smg_fault_at(p, SMG_FAULT_HANDOFF) : SMG_OK;
}

static int take(struct smg_process *p, uint16_t from, const struct smg_wire *wire, const struct smg_completion *c)
{
    struct smg_event e;
    int known = c->bytes <= p->ctl_bytes && smg_wire_is_message(p->world, wire, c->bytes);
    int status = known ? SMG_OK : SMG_ERR_PROTOCOL;

    if (status)
        return status;
    smg_event_message(from, &wire->msg, &e);
    if (smg_process_too_late(p, &e.msg))
        return SMG_OK;
    if (e.msg.kind == SMG_MSG_INDEX)
        status = smg_prefill_index(p, from, &e.msg, wire->rows_then_ids, smg_wire_words(wire));
    if (!status && smg_world_is_prefill(p->world, p->self))
        status = smg_prefill_message(p, from, &e.msg);
    if (!status && e.msg.kind == SMG_MSG_INDEX) /* the same measure as the sender's action: a header and an id an entry */
        p->stats.received_bytes[SMG_PATH_CONTROL] += SMG_INDEX_HEADER_BYTES + e.msg.u.index.entries * SMG_INDEX_ID_BYTES;
    if (!status)
        status = heard(p, &e.msg);
    return status ? status : smg_process_event(p, &e);
}

int smg_ctl_received(struct smg_process *p, const struct smg_completion *c)
{
    uint64_t slot = c->context >> 3;
    const struct smg_wire *wire = (const struct smg_wire *)(const void *)smg_process_at(p, p->ctl_receive + slot * p->ctl_bytes);
    int status;

    if (p->lost[c->peer])
        return SMG_OK;
    status = take(p, c->peer, wire, c);
    if (status == SMG_ERR_PROTOCOL && c->peer == SMG_ROUTER)
        return smg_process_fail(p, status, "the router sent a malformed message");
    if (status == SMG_ERR_PROTOCOL)
        return smg_process_cut(p, c->peer, SMG_ERR_PROTOCOL);
    if (!status)
        status = post_receive(p, smg_fabric_qp(p->fabric, c->peer, SMG_QUEUE_CTL), slot);
    return c->peer == SMG_ROUTER && status == SMG_ERR_LOST ? SMG_OK : smg_process_post_failed(p, c->peer, status);
}
