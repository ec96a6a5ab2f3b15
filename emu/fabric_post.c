/* Posts: argument checks, credits, and the bookkeeping that gives every watched post exactly one completion. */
#include "emu/fabric_port.h"

#include <stdlib.h>

/* ---- Slots ---- */

int smg_slots_init(struct smg_slots *s, struct smg_qp *qp, uint32_t max)
{
    s->slot = calloc(max, sizeof(*s->slot));
    if (!s->slot) {
        return SMG_ERR_NOMEM;
    }
    for (uint32_t i = max; i-- > 0;) {
        s->slot[i].qp = qp;
        s->slot[i].next = s->free;
        s->free = &s->slot[i];
    }
    return SMG_OK;
}

void smg_slots_free(struct smg_slots *s)
{
    free(s->slot);
}

static struct smg_slots *slots_of(struct smg_slot *slot)
{
    return slot->kind == SMG_DONE_RECV ? &slot->qp->recv : &slot->qp->send;
}

static struct smg_slot *slot_take(struct smg_slots *s)
{
    struct smg_slot *slot = s->free;
    s->free = slot->next;
    slot->next = NULL;
    slot->sequence = s->next_sequence++;
    s->busy++;
    return slot;
}

static void slot_release(struct smg_slots *s, struct smg_slot *slot)
{
    slot->state = SMG_SLOT_FREE;
    slot->next = s->free;
    s->free = slot;
    s->busy--;
}

static void silent_append(struct smg_slots *s, struct smg_slot *slot)
{
    if (s->silent_last) {
        s->silent_last->next = slot;
    } else {
        s->silent_first = slot;
    }
    s->silent_last = slot;
}

/* Sends leave in order, so the success of one says that all silent ones before it are through. */
static void silent_retire(struct smg_slots *s, uint64_t before_sequence)
{
    while (s->silent_first && s->silent_first->sequence < before_sequence) {
        struct smg_slot *slot = s->silent_first;
        s->silent_first = slot->next;
        slot_release(s, slot);
    }
    if (!s->silent_first) {
        s->silent_last = NULL;
    }
}

void smg_port_complete(struct smg_slot *slot, int status, int cause, size_t bytes, struct smg_sink *sink)
{
    struct smg_slots *s = slots_of(slot);
    if (slot->state != SMG_SLOT_WATCHED && (slot->state != SMG_SLOT_SILENT || !status)) {
        return;
    }
    sink->out[sink->n++] = (struct smg_completion){
        .context = slot->context,
        .bytes = slot->kind == SMG_DONE_RECV ? bytes : slot->bytes,
        .kind = slot->kind,
        .peer = slot->qp->peer->instance,
        .queue = slot->qp->queue,
        .status = status,
        .cause = cause,
    };
    if (!status) {
        silent_retire(s, slot->sequence);
    }
    if (slot->state == SMG_SLOT_SILENT) {
        slot->state = SMG_SLOT_FAILED; /* stays in the silent list until the queue pair is abandoned */
    } else {
        slot_release(s, slot);
    }
}

static int slots_abandon(struct smg_slots *s, uint32_t max, int cause, struct smg_sink *sink)
{
    silent_retire(s, UINT64_MAX);
    for (uint32_t i = 0; i < max && s->busy && sink->n < sink->cap; i++) {
        if (s->slot[i].state == SMG_SLOT_WATCHED) {
            smg_port_complete(&s->slot[i], SMG_ERR_LOST, cause, 0, sink);
        }
    }
    return !s->busy;
}

int smg_port_abandon(struct smg_qp *qp, struct smg_sink *sink)
{
    uint32_t max = qp->fabric->limits.max_outstanding;
    return slots_abandon(&qp->send, max, qp->cause, sink) && slots_abandon(&qp->recv, max, qp->cause, sink);
}

/* ---- Checks ---- */

static int count_check(const struct smg_qp *qp, size_t n, uint32_t max, struct smg_diag *diag)
{
    if (!n || n > max) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: peer %u %s: %zu pieces in one post, the device takes 1 to %u",
                               qp->peer->instance, smg_queue_name(qp->queue), n, max);
    }
    return SMG_OK;
}

static int pieces_check(const struct smg_qp *qp, const struct smg_piece *pieces, size_t n, int may_lack_mr, struct smg_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        const struct smg_piece *p = &pieces[i];
        if (!p->bytes || (!p->mr && !may_lack_mr)) {
            return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: peer %u %s: piece %zu of %zu is empty or not registered",
                                   qp->peer->instance, smg_queue_name(qp->queue), i, n);
        }
        size_t offset = p->mr ? (uintptr_t)p->data - (uintptr_t)p->mr->base : 0;
        if (p->mr && (offset > p->mr->bytes || p->bytes > p->mr->bytes - offset)) {
            return smg_fabric_fail(diag, SMG_ERR_RANGE, "fabric: peer %u %s: piece %zu of %zu leaves its region of %zu bytes",
                                   qp->peer->instance, smg_queue_name(qp->queue), i, n, p->mr->bytes);
        }
    }
    return SMG_OK;
}

static int bytes_check(const struct smg_qp *qp, size_t bytes, unsigned flags, struct smg_diag *diag)
{
    const struct smg_fabric_limits *l = &qp->fabric->limits;
    size_t max = flags & SMG_POST_INJECT ? l->inject_bytes : l->max_message_bytes;
    if (bytes > max) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: peer %u %s: %zu bytes in one %s, the device takes %zu",
                               qp->peer->instance, smg_queue_name(qp->queue), bytes,
                               flags & SMG_POST_INJECT ? "inject" : "message", max);
    }
    return SMG_OK;
}

static int room_check(const struct smg_qp *qp, const struct smg_slots *s, struct smg_diag *diag)
{
    if (qp->state != SMG_QP_UP) {
        return smg_fabric_fail(diag, SMG_ERR_LOST, "fabric: peer %u %s is down: %s", qp->peer->instance,
                               smg_queue_name(qp->queue), qp->cause ? qp->fabric->type->cause(qp->cause) : "closed");
    }
    if (!s->free) {
        return smg_fabric_fail(diag, SMG_ERR_CAPACITY, "fabric: peer %u %s: %u posts are in flight", qp->peer->instance,
                               smg_queue_name(qp->queue), s->busy);
    }
    return SMG_OK;
}

/* ---- Posts ---- */

static size_t total_bytes(const struct smg_piece *pieces, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += pieces[i].bytes;
    }
    return sum;
}

static int work_check(const struct smg_qp *qp, const struct smg_slots *s, const struct smg_work *work, struct smg_diag *diag)
{
    const struct smg_fabric_limits *l = &qp->fabric->limits;
    int status = count_check(qp, work->n_pieces, s == &qp->recv ? l->recv_iov : l->send_iov, diag);
    if (!status) {
        status = pieces_check(qp, work->pieces, work->n_pieces, !!(work->flags & SMG_POST_INJECT), diag);
    }
    if (!status) {
        status = bytes_check(qp, total_bytes(work->pieces, work->n_pieces), work->flags, diag);
    }
    return status ? status : room_check(qp, s, diag);
}

static int post(struct smg_qp *qp, uint16_t kind, uint64_t context, struct smg_work *work, struct smg_diag *diag)
{
    struct smg_slots *s = kind == SMG_DONE_RECV ? &qp->recv : &qp->send;
    if (work->flags & SMG_POST_DELIVERED) {
        work->flags |= SMG_POST_SIGNALED;
    }
    int status = work_check(qp, s, work, diag);
    if (status) {
        return status;
    }
    struct smg_slot *slot = slot_take(s);
    slot->kind = kind;
    slot->bytes = total_bytes(work->pieces, work->n_pieces);
    slot->context = context;
    slot->state = work->flags & SMG_POST_SIGNALED ? SMG_SLOT_WATCHED : SMG_SLOT_SILENT;
    work->slot = slot;
    status = qp->fabric->type->post(qp, work, diag);
    if (status) {
        slot_release(s, slot);
    } else if (slot->state == SMG_SLOT_SILENT) {
        silent_append(s, slot);
    }
    return status;
}

int smg_fabric_write(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, const struct smg_remote *remote,
                     uint64_t offset_bytes, uint64_t context, unsigned flags, struct smg_diag *diag)
{
    struct smg_work work = {
        .pieces = pieces, .n_pieces = n, .address = remote->base + offset_bytes, .key = remote->key, .flags = flags};
    int status = count_check(qp, n, qp->fabric->limits.send_iov, diag);
    if (status) {
        return status;
    }
    size_t bytes = total_bytes(pieces, n);
    if (offset_bytes > remote->bytes || bytes > remote->bytes - offset_bytes) {
        return smg_fabric_fail(diag, SMG_ERR_RANGE,
                               "fabric: peer %u %s: write of %zu bytes at offset %llu leaves the region of %llu",
                               qp->peer->instance, smg_queue_name(qp->queue), bytes, (unsigned long long)offset_bytes,
                               (unsigned long long)remote->bytes);
    }
    return post(qp, SMG_DONE_WRITE, context, &work, diag);
}

int smg_fabric_send(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, unsigned flags,
                    struct smg_diag *diag)
{
    struct smg_work work = {.pieces = pieces, .n_pieces = n, .flags = flags};
    return post(qp, SMG_DONE_SEND, context, &work, diag);
}

int smg_fabric_recv(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, struct smg_diag *diag)
{
    struct smg_work work = {.pieces = pieces, .n_pieces = n, .flags = SMG_POST_SIGNALED};
    return post(qp, SMG_DONE_RECV, context, &work, diag);
}

uint32_t smg_qp_send_room(const struct smg_qp *qp)
{
    return qp->fabric->limits.max_outstanding - qp->send.busy;
}

uint32_t smg_qp_recv_room(const struct smg_qp *qp)
{
    return qp->fabric->limits.max_outstanding - qp->recv.busy;
}

uint16_t smg_qp_peer(const struct smg_qp *qp)
{
    return qp->peer->instance;
}

enum smg_queue smg_qp_queue(const struct smg_qp *qp)
{
    return (enum smg_queue)qp->queue;
}
