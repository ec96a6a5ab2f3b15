/* Names of events, actions, purposes and messages as they appear in records, and the order of simultaneous events. */
#include "core/agent.h"

#define NAME_OF(table, value) ((value) < sizeof(table) / sizeof((table)[0]) ? (table)[value] : "unknown")

const char *smg_event_name(uint32_t kind)
{
    static const char *const name[] = {
        [SMG_EV_NONE] = "none",
        [SMG_EV_ARRIVE] = "arrive",
        [SMG_EV_RESERVED] = "reserved",
        [SMG_EV_KV_READY] = "kv_ready",
        [SMG_EV_OP_DONE] = "op_done",
        [SMG_EV_MSG] = "msg",
        [SMG_EV_SPLIT_DONE] = "split_done",
        [SMG_EV_BLOCKS_VISIBLE] = "blocks_visible",
        [SMG_EV_TIMER] = "timer",
        [SMG_EV_PEER_LOST] = "peer_lost",
        [SMG_EV_CANCEL] = "cancel",
    };

    return NAME_OF(name, kind);
}

const char *smg_action_name(uint32_t kind)
{
    static const char *const name[] = {
        [SMG_ACT_NONE] = "none",
        [SMG_ACT_COMPUTE] = "compute",
        [SMG_ACT_COPY] = "copy",
        [SMG_ACT_GATHER] = "gather",
        [SMG_ACT_WRITE] = "write",
        [SMG_ACT_RECV] = "recv",
        [SMG_ACT_REPLY] = "reply",
        [SMG_ACT_SEND] = "send",
        [SMG_ACT_SPLIT] = "split",
        [SMG_ACT_RESERVE] = "reserve",
        [SMG_ACT_RELEASE] = "release",
        [SMG_ACT_TIMER] = "timer",
        [SMG_ACT_FAIL] = "fail",
    };

    return NAME_OF(name, kind);
}

const char *smg_purpose_name(uint32_t purpose)
{
    static const char *const name[] = {
        [SMG_FOR_NONE] = "none",
        [SMG_FOR_PREFILL_LAYER] = "prefill_layer",
        [SMG_FOR_OFFLOAD] = "offload",
        [SMG_FOR_METADATA] = "metadata",
        [SMG_FOR_PUSH] = "push",
        [SMG_FOR_SPECULATIVE] = "speculative",
        [SMG_FOR_REPLY_GATHER] = "reply_gather",
        [SMG_FOR_REPLY] = "reply",
        [SMG_FOR_ATTENTION] = "attention",
        [SMG_FOR_SELECT] = "select",
        [SMG_FOR_SPLIT] = "split",
        [SMG_FOR_FFN] = "ffn",
        [SMG_FOR_LOCAL_GATHER] = "local_gather",
        [SMG_FOR_LOCAL_COPY] = "local_copy",
        [SMG_FOR_REMOTE_RECV] = "remote_recv",
        [SMG_FOR_REMOTE_COPY] = "remote_copy",
        [SMG_FOR_SCATTER] = "scatter",
        [SMG_FOR_KEEP] = "keep",
        [SMG_FOR_DISPATCH] = "dispatch",
    };

    return NAME_OF(name, purpose);
}

const char *smg_message_name(uint32_t kind)
{
    static const char *const name[] = {
        [SMG_MSG_NONE] = "none",
        [SMG_MSG_PREFILL] = "prefill",
        [SMG_MSG_DECODE] = "decode",
        [SMG_MSG_POOL] = "pool",
        [SMG_MSG_STARTED] = "started",
        [SMG_MSG_TOKEN] = "token",
        [SMG_MSG_HANDOFF] = "handoff",
        [SMG_MSG_READY] = "ready",
        [SMG_MSG_START] = "start",
        [SMG_MSG_JOINED] = "joined",
        [SMG_MSG_PUSHED] = "pushed",
        [SMG_MSG_INDEX] = "index",
        [SMG_MSG_IDLE] = "idle",
        [SMG_MSG_DONE] = "done",
        [SMG_MSG_SUMMARY] = "summary",
        [SMG_MSG_FAILED] = "failed",
    };

    return NAME_OF(name, kind);
}

static int order(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int smg_event_compare(const struct smg_event *a, const struct smg_event *b)
{
    int c = order(a->kind, b->kind);

    c = c != 0 ? c : order(a->peer, b->peer);
    c = c != 0 ? c : order(a->request, b->request);
    c = c != 0 ? c : order(a->layer_lo, b->layer_lo);
    return c != 0 ? c : order(a->op, b->op);
}
