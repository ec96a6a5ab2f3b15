/* An instance that dies (scenario keys faults.*). It does nothing any more: its operations do not end and its events are dropped.
 * What it has put on the wire before arrives; transfers of which bytes are still to come run out and are thrown away. What is
 * sent to it is lost without a word. After faults.detect_s all others hear PEER_LOST. */
#include <string.h>

#include "sim/sim_priv.h"

static int after(struct smg_sim *s, double seconds, enum smg_pending_kind kind)
{
    uint64_t tag;
    int status = smg_sim_pending(s, kind, (uint16_t)s->world->scenario.faults.instance, NULL, &tag);

    return status ? status : smg_engine_timer(s->engine, seconds, tag);
}

int smg_sim_plan_death(struct smg_sim *s)
{
    return s->world->scenario.faults.instance ? after(s, s->world->scenario.faults.at_s, SMG_PENDING_DEATH) : SMG_OK;
}

int smg_sim_death(struct smg_sim *s)
{
    const struct smg_records *r = smg_sim_records(s);

    if (r->finished + r->failed == r->n_requests)
        return SMG_OK; /* after the end of the run */
    s->instance[s->world->scenario.faults.instance].dead = 1;
    return after(s, s->world->scenario.faults.detect_s, SMG_PENDING_NOTICE);
}

int smg_sim_notice(struct smg_sim *s)
{
    struct smg_event e;
    int status = SMG_OK;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_PEER_LOST;
    e.peer = (uint16_t)s->world->scenario.faults.instance;
    e.status = SMG_ERR_LOST;
    for (uint32_t i = 0; i < s->n_instances && !status; i++)
        status = smg_sim_event(s, (uint16_t)i, &e);
    return status;
}

/* The engine will still tell of the operation's end: nobody is there to hear it. */
static void forget(struct smg_sim *s, const struct smg_op *op)
{
    for (uint32_t i = 0; i < s->n_pending; i++)
        if (s->pending[i].kind != SMG_PENDING_FREE && s->pending[i].op == op)
            s->pending[i].kind = SMG_PENDING_LOST;
}

/* Ends the operations of an instance towards the one that is lost. */
int smg_sim_drop_lost(struct smg_sim *s, uint16_t instance)
{
    struct smg_lanes *lanes = s->instance[instance].lanes;
    struct smg_op *op;
    int status = SMG_OK;

    while (!status && (op = smg_lanes_to(lanes, (uint16_t)s->world->scenario.faults.instance))) {
        struct smg_event e;
        smg_event_undone(&op->action, &e);
        if (op->action.flags & SMG_ACT_NOTIFY && !(op->action.kind == SMG_ACT_REPLY && op->phase)) /* heard early */
            status = smg_sim_event(s, instance, &e);
        forget(s, op);
        smg_lanes_drop(lanes, op);
    }
    return status;
}
