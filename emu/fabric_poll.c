/* Polling, and the verdict that a peer is lost. */
#include "emu/fabric_port.h"

/* Looks between two sleeps: many while answers come, halved by every poll that finds nothing, so that an idle process leaves the
 * core to others. Never one alone: a look may take in a single message per queue pair, and peers' writes show no completion here.
 */
#define MAX_LOOKS 32u
#define MIN_LOOKS 8u
/* The queue pairs of a dead process break within this time; a peer that lost only some of them is cut off then. */
#define GRACE_S 0.1

static int peer_is_cut(const struct smg_peer *p)
{
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        if ((p->queues & SMG_QUEUE_BIT(q)) && p->qp[q].state != SMG_QP_DOWN) {
            return 0;
        }
    }
    return 1;
}

static void peer_cut(struct smg_fabric *f, struct smg_peer *p)
{
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        if ((p->queues & SMG_QUEUE_BIT(q)) && p->qp[q].state != SMG_QP_DOWN) {
            f->type->disconnect(&p->qp[q]);
            smg_port_down(&p->qp[q], 0);
        }
    }
}

/* All queue pairs are down and what the device knew about their posts is reported: the rest will never come. */
static void peer_bury(struct smg_fabric *f, struct smg_peer *p, struct smg_sink *sink)
{
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        if ((p->queues & SMG_QUEUE_BIT(q)) && !smg_port_abandon(&p->qp[q], sink)) {
            return;
        }
    }
    if (sink->n < sink->cap) {
        sink->out[sink->n++] = (struct smg_completion){.kind = SMG_DONE_PEER_LOST, .peer = p->instance, .status = SMG_ERR_LOST};
        p->lost = 1;
        f->suspects--;
    }
}

/* Called when the device has no completion left. A queue pair that went down in the same look may have written failures
 * meanwhile, so the verdict waits for the next look. */
static void settle(struct smg_fabric *f, struct smg_sink *sink)
{
    if (f->settling) {
        f->settling = 0;
        return;
    }
    for (size_t i = 0; i < f->n_peers; i++) {
        struct smg_peer *p = &f->peers[i];
        if (!p->suspect || p->lost) {
            continue;
        }
        if (peer_is_cut(p)) {
            peer_bury(f, p, sink);
        } else if (smg_fabric_now_s() - p->suspect_since_s > GRACE_S) {
            peer_cut(f, p);
        }
    }
}

static int look(struct smg_fabric *f, struct smg_sink *sink, struct smg_diag *diag)
{
    int status = f->type->progress(f, sink, diag);
    if (!status && f->suspects && sink->n < sink->cap) {
        settle(f, sink);
    }
    return status;
}

static int poll_until(struct smg_fabric *f, struct smg_sink *sink, double timeout_s, struct smg_diag *diag)
{
    double deadline_s = timeout_s > 0 ? smg_fabric_now_s() + timeout_s : 0;
    for (unsigned looks = 1;; looks++) {
        int status = look(f, sink, diag);
        if (status || sink->n || timeout_s <= 0 || atomic_exchange(&f->woken, 0)) {
            return status;
        }
        double left_s = deadline_s - smg_fabric_now_s();
        if (left_s <= 0) {
            return SMG_OK;
        }
        if (looks >= f->looks) {
            looks = 0;
            status = f->type->wait(f, sink, left_s, diag);
            if (status) {
                return status;
            }
        }
    }
}

int smg_fabric_poll(struct smg_fabric *f, struct smg_completion *out, size_t cap, double timeout_s, size_t *n_out,
                    struct smg_diag *diag)
{
    if (!f->peers || !cap) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: instance %u polls %s", f->self,
                               cap ? "before it is connected" : "for nothing");
    }
    struct smg_sink sink = {out, cap, 0};
    int status = poll_until(f, &sink, timeout_s, diag);
    f->looks = sink.n ? MAX_LOOKS : f->looks / 2 > MIN_LOOKS ? f->looks / 2 : MIN_LOOKS;
    *n_out = sink.n;
    return status;
}

void smg_fabric_wake(struct smg_fabric *f)
{
    atomic_store(&f->woken, 1);
    f->type->wake(f);
}

void smg_fabric_cut(struct smg_fabric *f, uint16_t peer)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        if (f->peers[i].instance == peer && !f->peers[i].lost) {
            peer_cut(f, &f->peers[i]);
        }
    }
}
