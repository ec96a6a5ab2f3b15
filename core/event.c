/* Events that every driver makes the same way. */
#include <string.h>

#include "core/agent.h"

void smg_event_done(const struct smg_action *a, struct smg_event *out)
{
    memset(out, 0, sizeof *out); /* padding too: logs of events are compared byte for byte */
    out->kind = a->purpose == SMG_FOR_PREFILL_LAYER ? SMG_EV_KV_READY : SMG_EV_OP_DONE;
    out->op = a->op;
    out->peer = a->peer;
    out->purpose = a->purpose;
    out->request = a->request;
    out->step = a->step;
    out->layer_lo = a->layer_lo;
    out->layer_hi = a->layer_hi;
    out->bytes = a->bytes;
    out->entries = a->entries;
    out->messages = a->messages;
}

void smg_event_undone(const struct smg_action *a, struct smg_event *out)
{
    smg_event_done(a, out);
    out->status = SMG_ERR_LOST;
}

void smg_event_message(uint16_t from, const struct smg_message *msg, struct smg_event *out)
{
    memset(out, 0, sizeof *out);
    out->kind = SMG_EV_MSG;
    out->peer = from;
    out->request = msg->request;
    out->step = msg->step;
    out->layer_lo = msg->layer_lo;
    out->layer_hi = msg->layer_hi;
    out->msg = *msg;
}
