/* Posts. Those with SMG_POST_MORE wait for the one that ends their chain: the device hears of all of them with one doorbell. */
#include "config.h"

#include "emu/fabric_port.h"

#ifdef HAVE_VERBS

#include "emu/verbs.h"

#include <string.h>

static void fill(struct ibv_sge *sge, const struct smg_work *work)
{
    for (size_t i = 0; i < work->n_pieces; i++) {
        const struct smg_piece *p = &work->pieces[i];
        const struct ibv_mr *m = p->mr ? p->mr->impl : NULL;
        sge[i] = (struct ibv_sge){(uint64_t)(uintptr_t)p->data, (uint32_t)p->bytes, m ? m->lkey : 0};
    }
}

static int post_receive(struct verbs_qp *q, const struct smg_work *work)
{
    struct ibv_sge sge[VERBS_RECV_IOV];
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)(uintptr_t)work->slot, .sg_list = sge, .num_sge = (int)work->n_pieces};
    struct ibv_recv_wr *bad;
    fill(sge, work);
    return ibv_post_recv(q->ibv, &wr, &bad);
}

/* Small posts travel inside the work request: the device need not fetch them. */
static void append(struct verbs_qp *q, const struct smg_work *work)
{
    unsigned i = q->n_chain++;
    struct ibv_send_wr *wr = &q->wr[i];
    *wr = (struct ibv_send_wr){
        .wr_id = (uint64_t)(uintptr_t)work->slot, .sg_list = q->sge[i], .num_sge = (int)work->n_pieces, .opcode = IBV_WR_SEND};
    fill(q->sge[i], work);
    if (work->flags & SMG_POST_SIGNALED) {
        wr->send_flags |= IBV_SEND_SIGNALED;
    }
    if (work->slot->bytes <= q->port->fabric->limits.inject_bytes) {
        wr->send_flags |= IBV_SEND_INLINE;
    }
    if (work->slot->kind == SMG_DONE_WRITE) {
        wr->opcode = IBV_WR_RDMA_WRITE;
        wr->wr.rdma.remote_addr = work->address;
        wr->wr.rdma.rkey = (uint32_t)work->key;
    }
    if (i) {
        q->wr[i - 1].next = wr;
    }
}

static int hand_over(struct verbs_qp *q)
{
    struct ibv_send_wr *bad;
    int error = ibv_post_send(q->ibv, q->wr, &bad);
    q->n_chain = 0;
    return error;
}

static void unchain(struct verbs_fabric *v, struct verbs_qp *q)
{
    struct verbs_qp **at = &v->chained;
    while (*at && *at != q) {
        at = &(*at)->next_chained;
    }
    if (*at) {
        *at = q->next_chained;
    }
}

static int post_send(struct verbs_fabric *v, struct verbs_qp *q, const struct smg_work *work)
{
    int waiting = q->n_chain > 0;
    append(q, work);
    if ((work->flags & SMG_POST_MORE) && !(work->flags & SMG_POST_INJECT) && q->n_chain < VERBS_CHAIN) {
        if (!waiting) {
            q->next_chained = v->chained;
            v->chained = q;
        }
        return 0;
    }
    if (waiting) {
        unchain(v, q);
    }
    return hand_over(q);
}

/* A device that refuses a post has refused what came with it in the chain too, and those posts were taken on: the queue pair is
 * given up, so that they complete as lost. */
int smg_verbs_post(struct smg_qp *qp, const struct smg_work *work, struct smg_diag *diag)
{
    struct verbs_qp *q = qp->impl;
    int receive = work->slot->kind == SMG_DONE_RECV;
    int error = receive ? post_receive(q, work) : post_send(verbs_of(qp->fabric), q, work);
    if (!error) {
        return SMG_OK;
    }
    if (!receive) {
        smg_verbs_qp_down(qp, VERBS_CAUSE_ERRNO + error);
    }
    return smg_fabric_fail(diag, SMG_ERR_IO, "verbs: post to peer %u %s: %s", qp->peer->instance, smg_queue_name(qp->queue),
                           strerror(error));
}

void smg_verbs_flush(struct verbs_fabric *v)
{
    while (v->chained) {
        struct verbs_qp *q = v->chained;
        v->chained = q->next_chained;
        int error = hand_over(q);
        if (error) {
            smg_verbs_qp_down(q->port, VERBS_CAUSE_ERRNO + error);
        }
    }
}

#endif
