/* Completions and events: collecting them, and sleeping until there are some. */
#include "config.h"

#include "emu/fabric_port.h"

#ifdef HAVE_VERBS

#include "emu/verbs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CQ_BATCH            16
#define EVENTS_BATCH        16
#define EVENTS_EVERY_PASSES 32   /* connections are looked at this often while nobody waits */
#define SUSPECT_WAIT_S      5e-3 /* a peer in doubt is judged by the clock, which wakes nobody */

/* ---- Completions ---- */

/* A message longer than its receive is a length error; soft-RoCE calls it an error of the queue pair's operation, which nothing
 * else makes of a receive whose pieces were checked. */
static int too_small(const struct smg_slot *slot, enum ibv_wc_status status)
{
    return slot->kind == SMG_DONE_RECV &&
           (status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_REM_INV_REQ_ERR);
}

static int status_of(const struct smg_slot *slot, enum ibv_wc_status status)
{
    if (status == IBV_WC_SUCCESS) {
        return SMG_OK;
    }
    if (too_small(slot, status)) {
        return SMG_ERR_CAPACITY;
    }
    return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_LOC_LEN_ERR ? SMG_ERR_IO
                                                                                                           : SMG_ERR_LOST;
}

/* A failure ends the queue pair, in the device as well as here. */
static void take(const struct ibv_wc *wc, struct smg_sink *sink)
{
    struct smg_slot *slot = (struct smg_slot *)(uintptr_t)wc->wr_id;
    smg_port_complete(slot, status_of(slot, wc->status), (int)wc->status, wc->byte_len, sink);
    if (wc->status != IBV_WC_SUCCESS) {
        smg_verbs_qp_down(slot->qp, (int)wc->status);
    }
}

static int drain_one(struct ibv_cq *cq, struct smg_sink *sink, struct smg_diag *diag)
{
    struct ibv_wc wc[CQ_BATCH];
    while (sink->n < sink->cap) {
        size_t room = sink->cap - sink->n;
        int want = room < CQ_BATCH ? (int)room : CQ_BATCH, n = ibv_poll_cq(cq, want, wc);
        if (n < 0) {
            return smg_fabric_fail(diag, SMG_ERR_IO, "verbs: ibv_poll_cq failed");
        }
        for (int i = 0; i < n; i++) {
            take(&wc[i], sink);
        }
        if (n < want) {
            return SMG_OK;
        }
    }
    return SMG_OK;
}

/* Starts with the queue after the one that filled the sink last time, so that none is passed over for long. */
static int drain(struct verbs_fabric *v, struct smg_sink *sink, struct smg_diag *diag)
{
    int status = SMG_OK;
    for (size_t i = 0; i < v->n_cqs && !status && sink->n < sink->cap; i++) {
        status = drain_one(v->cqs[v->first_cq].cq, sink, diag);
        v->first_cq = v->first_cq + 1 == v->n_cqs ? 0 : v->first_cq + 1;
    }
    return status;
}

/* ---- Events ---- */

static void channel_event(struct verbs_fabric *v)
{
    struct ibv_cq *cq;
    void *context;
    while (!ibv_get_cq_event(v->channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
    }
}

static void all_down(struct verbs_fabric *v, int cause)
{
    for (size_t i = 0; i < v->base.n_peers; i++) {
        for (unsigned k = 0; k < SMG_QUEUES; k++) {
            if (v->base.peers[i].qp[k].impl) {
                smg_verbs_qp_down(&v->base.peers[i].qp[k], cause);
            }
        }
    }
}

/* A port that went away takes its queue pairs with it at once: without posts in flight they would never notice. */
static int async_event(struct verbs_fabric *v, struct smg_diag *diag)
{
    struct ibv_async_event e;
    int status = SMG_OK;
    while (!status && !ibv_get_async_event(v->context, &e)) {
        int cause = VERBS_CAUSE_EVENT + (int)e.event_type;
        switch (e.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
            smg_verbs_qp_down(e.element.qp->qp_context, cause);
            break;
        case IBV_EVENT_PORT_ERR:
            if (e.element.port_num == v->port_number) {
                all_down(v, cause);
            }
            break;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_DEVICE_FATAL:
            status = smg_fabric_fail(diag, SMG_ERR_IO, "verbs: %s", ibv_event_type_str(e.event_type));
            break;
        default:
            break;
        }
        ibv_ack_async_event(&e);
    }
    return status;
}

static void wake_event(const struct verbs_fabric *v)
{
    uint64_t count;
    ssize_t n = read(v->wake.fd, &count, sizeof(count));
    (void)n; /* the flag of the generic half says it */
}

static int serve_one(struct verbs_fabric *v, struct verbs_watch *watch, struct smg_diag *diag)
{
    switch (watch->kind) {
    case VERBS_WATCH_LISTENER:
        smg_verbs_accept(v);
        return SMG_OK;
    case VERBS_WATCH_CHANNEL:
        channel_event(v);
        return SMG_OK;
    case VERBS_WATCH_ASYNC:
        return async_event(v, diag);
    case VERBS_WATCH_WAKE:
        wake_event(v);
        return SMG_OK;
    case VERBS_WATCH_LINK:
        smg_verbs_link_ready(v, (struct verbs_link *)watch);
        return SMG_OK;
    }
    return SMG_OK;
}

/* One event at a time: what it does may close a connection that another event of the same look would speak of. */
static int serve(struct verbs_fabric *v, struct smg_diag *diag)
{
    struct epoll_event e;
    int status = SMG_OK;
    for (unsigned i = 0; i < EVENTS_BATCH && !status; i++) {
        int n = epoll_wait(v->epoll, &e, 1, 0);
        if (n < 0 && errno != EINTR) {
            return smg_verbs_fail(diag, SMG_ERR_IO, "epoll_wait", errno);
        }
        if (n < 1) {
            break;
        }
        status = serve_one(v, e.data.ptr, diag);
    }
    return status;
}

int smg_verbs_progress(struct smg_fabric *f, struct smg_sink *sink, struct smg_diag *diag)
{
    struct verbs_fabric *v = verbs_of(f);
    if (v->chained) {
        smg_verbs_flush(v);
    }
    int status = drain(v, sink, diag);
    if (!status && (!sink->cap || ++v->passes % EVENTS_EVERY_PASSES == 0)) { /* no sink: the mesh is being joined */
        status = serve(v, diag);
    }
    return status;
}

/* ---- Waiting ---- */

/* The queues are armed first and looked at once more: what came between the last look and the arming would wake nobody. */
int smg_verbs_wait(struct smg_fabric *f, struct smg_sink *sink, double wait_s, struct smg_diag *diag)
{
    struct verbs_fabric *v = verbs_of(f);
    struct pollfd p = {.fd = v->epoll, .events = POLLIN};
    wait_s = f->suspects && wait_s > SUSPECT_WAIT_S ? SUSPECT_WAIT_S : wait_s;
    struct timespec t = {.tv_sec = (time_t)wait_s};
    for (size_t i = 0; i < v->n_cqs; i++) {
        int error = ibv_req_notify_cq(v->cqs[i].cq, 0);
        if (error) {
            return smg_verbs_fail(diag, SMG_ERR_IO, "ibv_req_notify_cq", error);
        }
    }
    int status = drain(v, sink, diag);
    if (status || sink->n) {
        return status;
    }
    t.tv_nsec = (long)(1e9 * (wait_s - (double)t.tv_sec));
    if (ppoll(&p, 1, &t, NULL) < 0 && errno != EINTR) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "ppoll", errno);
    }
    return p.revents ? serve(v, diag) : SMG_OK;
}

void smg_verbs_wake(struct smg_fabric *f)
{
    uint64_t one = 1;
    ssize_t n = write(verbs_of(f)->wake.fd, &one, sizeof(one));
    (void)n; /* it fails only when it is so full that it wakes anyway */
}

const char *smg_verbs_cause(int cause)
{
    if (cause >= VERBS_CAUSE_EVENT) {
        return ibv_event_type_str((enum ibv_event_type)(cause - VERBS_CAUSE_EVENT));
    }
    return cause >= VERBS_CAUSE_ERRNO ? strerror(cause - VERBS_CAUSE_ERRNO) : ibv_wc_status_str((enum ibv_wc_status)cause);
}

#endif
