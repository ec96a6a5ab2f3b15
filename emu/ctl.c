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
    wire->magic = SMG_WIRE_MAGIC;
    wire->bytes = (uint32_t)(sizeof *wire + 4 * words);
    wire->msg = op->action.msg;
    piece = smg_process_piece(p, p->ctl_send + slot * p->ctl_bytes, wire->bytes);
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
    return smg_process_done(p, op);
}

static int check(struct smg_process *p, const struct smg_wire *wire, const struct smg_completion *c)
{
    if (c->bytes < sizeof *wire || wire->magic != SMG_WIRE_MAGIC || wire->bytes != c->bytes || (wire->bytes - sizeof *wire) % 4)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "instance %u sent a malformed message", c->peer);
    if (wire->msg.request >= p->world->n_requests)
        return smg_process_fail(p, SMG_ERR_PROTOCOL, "instance %u speaks of request %u, which does not exist", c->peer,
                                wire->msg.request);
    return SMG_OK;
}

int smg_ctl_received(struct smg_process *p, const struct smg_completion *c)
{
    uint64_t slot = c->context >> 3;
    struct smg_wire *wire = (struct smg_wire *)(void *)smg_process_at(p, p->ctl_receive + slot * p->ctl_bytes);
    struct smg_event e;
    int status = check(p, wire, c);

    if (status)
        return status;
    smg_event_message(c->peer, &wire->msg, &e);
    if (e.msg.kind == SMG_MSG_INDEX) /* the same measure as the sender's action: a header and an id an entry */
        p->stats.received_bytes[SMG_PATH_CONTROL] += SMG_INDEX_HEADER_BYTES + e.msg.u.index.entries * SMG_INDEX_ID_BYTES;
    if (e.msg.kind == SMG_MSG_INDEX)
        status = smg_prefill_index(p, &e.msg, wire->rows_then_ids, (wire->bytes - sizeof *wire) / 4);
    if (!status && smg_world_is_prefill(p->world, p->self))
        status = smg_prefill_message(p, c->peer, &e.msg);
    if (!status)
        status = smg_process_event(p, &e);
    return status ? status : post_receive(p, smg_fabric_qp(p->fabric, c->peer, SMG_QUEUE_CTL), slot);
}
