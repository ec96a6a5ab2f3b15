/* Peers that are gone, or cut off for what they sent: the agent hears of it once, and the operations towards them end. */
#include "emu/process.h"

#include <string.h>

int smg_process_cut(struct smg_process *p, uint16_t peer, int why)
{
    struct smg_event e;

    if (peer == SMG_ROUTER || p->lost[peer])
        return SMG_OK;
    p->lost[peer] = why;
    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_PEER_LOST;
    e.peer = peer;
    e.status = why;
    return smg_process_event(p, &e);
}

/* What the agent had to say of it is on its way: the accused sees the end of its connection after that. */
int smg_process_told(struct smg_process *p, uint16_t peer)
{
    p->told[peer] = 1;
    if (!p->silent[peer])
        smg_fabric_cut(p->fabric, peer);
    return smg_process_drop_lost(p);
}

/* At the end of a run peers close in any order, which is no loss; the router goes last. */
int smg_process_lost(struct smg_process *p, uint16_t peer)
{
    int status;

    if (p->stopping || (p->self && smg_harness_stopped(p->harness, peer == SMG_ROUTER ? 1 : 0))) {
        p->stopping = 1;
        return SMG_OK;
    }
    if (peer == SMG_ROUTER)
        return smg_process_fail(p, SMG_ERR_LOST, "lost instance %u", peer);
    p->silent[peer] = 1;
    p->n_silent++;
    status = smg_process_cut(p, peer, SMG_ERR_LOST);
    return status ? status : smg_process_drop_lost(p);
}

/* The posts that an operation had in flight are complete by now: PEER_LOST is the last thing that the fabric says. */
static int drop(struct smg_process *p, uint16_t peer)
{
    struct smg_op *op;
    int status = SMG_OK;

    while (!status && (op = smg_lanes_to(p->lanes, peer))) {
        struct smg_event e;
        smg_event_undone(&op->action, &e);
        if (op->action.flags & SMG_ACT_NOTIFY)
            status = smg_process_event(p, &e);
        smg_process_timer_forget(p, op);
        for (uint32_t i = 0; i < SMG_CTL_SENDS; i++)
            if (p->send[i].op == op)
                p->send[i].op = NULL;
        smg_lanes_drop(p->lanes, op);
    }
    return status;
}

int smg_process_drop_lost(struct smg_process *p)
{
    int status = SMG_OK;

    for (uint32_t i = 1; p->n_silent && i < p->instances && !status; i++)
        if (p->told[i] && p->silent[i])
            status = drop(p, (uint16_t)i);
    return status;
}

int smg_process_post_failed(struct smg_process *p, uint16_t peer, int status)
{
    if (!status || peer == SMG_ROUTER || (status != SMG_ERR_LOST && status != SMG_ERR_IO))
        return status;
    p->diag.text[0] = '\0';
    return smg_process_cut(p, peer, SMG_ERR_LOST); /* the operation ends when the agent has heard of it */
}

int smg_process_failed(struct smg_process *p, const struct smg_completion *c)
{
    if ((c->context & SMG_CONTEXT_MASK) == SMG_CONTEXT_SEND)
        p->send[c->context >> 3].busy = 0;
    if (p->stopping)
        return SMG_OK;
    if (c->peer == SMG_ROUTER && c->status == SMG_ERR_LOST)
        return smg_process_lost(p, c->peer);
    if (c->peer == SMG_ROUTER)
        return smg_process_fail(p, c->status, "transfer with instance %u failed: %s (%s)", c->peer, smg_status_string(c->status),
                                smg_fabric_cause(p->fabric, c->cause));
    /* A message that is longer than its receive is none of ours; all else is a connection that broke. */
    if (c->status == SMG_ERR_LOST)
        return SMG_OK; /* PEER_LOST follows */
    return smg_process_cut(p, c->peer, c->status == SMG_ERR_CAPACITY ? SMG_ERR_PROTOCOL : SMG_ERR_LOST);
}
