/* The seam: agents that step, drivers that execute.
 *
 * Router, prefill and decode instances are agents: state machines that never block, read no clock and look at no memory that a
 * NIC writes. An agent is a function of its event log, so `smartgen replay` can feed a recorded log to the core again and must
 * get the same actions byte for byte. A driver (sim, native, emu, or a test) turns actions into work on lanes and work into
 * events.
 *
 *     for (;;) { next(driver, &event); smg_agent_step(agent, &event, &actions); post(driver, &actions); log(event, actions);
 * } */
#ifndef SMG_CORE_AGENT_H
#define SMG_CORE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

#pragma GCC visibility push(default)

/* ---- Lanes: in-order queues of one instance; PUSH, REPLY and CTL exist once per peer ---- */
enum smg_lane {
    SMG_LANE_NONE,       /* not queued: done at once (RESERVE, RELEASE, TIMER, FAIL) */
    SMG_LANE_GPU_MAIN,
    SMG_LANE_GPU_SELECT,
    SMG_LANE_H2D,
    SMG_LANE_D2H,
    SMG_LANE_CPU_GATHER,
    SMG_LANE_PUSH,
    SMG_LANE_REPLY,
    SMG_LANE_CTL,
    SMG_LANES
};

/* ---- Messages between agents (lane CTL; small, fixed size; index lists travel beside them, handled by the driver) ---- */
enum smg_message_kind {
    SMG_MSG_NONE,
    SMG_MSG_PREFILL,     /* router -> prefill: assign */
    SMG_MSG_DECODE,      /* router -> decode: assign */
    SMG_MSG_POOL,        /* decode -> prefill: memory reserved, where to write */
    SMG_MSG_STARTED,     /* prefill -> router: prefill compute starts */
    SMG_MSG_TOKEN,       /* prefill or decode -> router: a token (EMIT) */
    SMG_MSG_HANDOFF,     /* prefill -> decode: what decode.start asks for is there */
    SMG_MSG_READY,       /* decode -> router: hand-off complete */
    SMG_MSG_START,       /* router -> decode: the barrier opens */
    SMG_MSG_JOINED,      /* decode -> router: request is part of the batch from this iteration on */
    SMG_MSG_PUSHED,      /* prefill -> router: all Kr blocks have arrived */
    SMG_MSG_INDEX,       /* decode -> prefill: send these entries (on demand) */
    SMG_MSG_IDLE,        /* decode -> prefill: grant of speculative blocks */
    SMG_MSG_DONE,        /* decode -> prefill: request is finished, drop it */
    SMG_MSG_SUMMARY,     /* prefill or decode -> router: byte and message counts of one request */
    SMG_MSG_FAILED       /* any -> any: request failed */
};

/* Size of an INDEX on the wire: a header and one id an entry. */
enum { SMG_INDEX_HEADER_BYTES = 64, SMG_INDEX_ID_BYTES = 4 };

enum smg_mode { SMG_MODE_SELECTIVE, SMG_MODE_FULL };

struct smg_message {
    uint32_t kind;                   /* enum smg_message_kind */
    uint32_t request;
    uint32_t step;                   /* decode step that makes token step+1; 0 outside decode */
    uint16_t layer_lo, layer_hi;     /* [lo, hi) */
    union {
        struct {                     /* PREFILL, DECODE */
            double arrival_s;
            uint32_t prompt_tokens, output_tokens, hit_tokens;
            uint32_t kr_blocks, total_blocks;
            uint16_t mode;           /* enum smg_mode */
            uint16_t partner;        /* the decode (prefill) instance */
        } assign;
        struct {                     /* POOL: opaque to agents, set by the driver's RESERVED event */
            uint64_t cookie[3];
        } pool;
        struct {                     /* TOKEN */
            uint32_t token;          /* 1.. */
            uint32_t pad;
            uint64_t selected_entries, remote_entries, on_demand_bytes, speculative_bytes;
        } token;
        struct {                     /* INDEX */
            uint64_t entries;        /* over layers [lo, hi) and KV heads */
            uint64_t bytes;          /* of the reply */
            uint32_t messages;       /* receives the reply is cut into */
            uint32_t pad;
        } index;
        struct {                     /* IDLE */
            uint32_t blocks;
        } grant;
        struct {                     /* SUMMARY */
            uint64_t metadata_bytes, proactive_bytes, on_demand_bytes, speculative_bytes, duplicate_bytes, messages;
            uint64_t selected_entries, remote_entries;
        } summary;
        struct {                     /* FAILED */
            int32_t status;
            uint32_t instance;       /* with SMG_ERR_LOST and SMG_ERR_PROTOCOL: the one that is to blame; else 0 */
            uint32_t busy;           /* from prefill: its GPU still works on it, and FAILED comes again when it is free */
        } failed;
    } u;
};

/* ---- Events. At equal times a driver delivers them in the order kind, peer, request, layer ---- */
enum smg_event_kind {
    SMG_EV_NONE,
    SMG_EV_ARRIVE,       /* router: request `request` arrives */
    SMG_EV_RESERVED,     /* RESERVE was granted; status != 0: it can never be */
    SMG_EV_KV_READY,     /* prefill of layers [lo, hi) of `request` is complete in GPU memory */
    SMG_EV_OP_DONE,      /* a notifying action is complete; purpose, request, step, layers, bytes, entries, messages echo it */
    SMG_EV_MSG,          /* message from `peer` */
    SMG_EV_SPLIT_DONE,   /* entries_local, entries_remote of `request` at layers [lo, hi) of `step` */
    SMG_EV_BLOCKS_VISIBLE, /* reserved for drivers that watch the mask */
    SMG_EV_TIMER,
    SMG_EV_PEER_LOST,    /* `peer` is gone (status SMG_ERR_LOST) or was cut off for what it sent (SMG_ERR_PROTOCOL); see below */
    SMG_EV_CANCEL
};

/* A lost peer. PEER_LOST comes once per peer; of the router it never comes, a driver ends then. Nothing that is sent to the peer
 * arrives any more, and agents pass over what it said if that comes later. Once the agent's actions on PEER_LOST are taken, the
 * driver ends all operations of the lanes PUSH, REPLY and CTL to that peer, running or not, in the order of their numbers: an
 * operation that notifies with an OP_DONE of status SMG_ERR_LOST, any other without a word. What is submitted to these lanes
 * later ends in the same way, at once. Operations of other lanes go on. */

struct smg_event {
    double now_s;                    /* driver's clock, from 0 at the start of the run */
    uint32_t kind;                   /* enum smg_event_kind */
    uint32_t op;                     /* of the action this answers, 0: none */
    uint16_t peer;                   /* sender of a message, or lane's peer */
    uint16_t purpose;                /* echoed from the action */
    int32_t status;                  /* 0 or enum smg_status */
    uint32_t request;
    uint32_t step;
    uint16_t layer_lo, layer_hi;
    uint32_t messages;               /* OP_DONE: echoed from the action */
    uint64_t bytes, entries;         /* OP_DONE: echoed from the action, also where status says that nothing was moved */
    uint64_t entries_local, entries_remote; /* SPLIT_DONE */
    uint64_t cookie[3];              /* RESERVED: where, in the driver's terms */
    struct smg_message msg;          /* MSG */
};

/* ---- Actions ---- */
enum smg_action_kind {
    SMG_ACT_NONE,
    SMG_ACT_COMPUTE,     /* duration_s of model work on a GPU lane */
    SMG_ACT_COPY,        /* `bytes` over PCIe (lane H2D or D2H) */
    SMG_ACT_GATHER,      /* CPU gather or scatter of `bytes` */
    SMG_ACT_WRITE,       /* one-sided: item block ranges, then their mask; or metadata (no items) */
    SMG_ACT_RECV,        /* expect the reply to the INDEX of the same request, step, layers */
    SMG_ACT_REPLY,       /* send gathered entries: answers a RECV */
    SMG_ACT_SEND,        /* message `msg` to `peer`, with `bytes` beside it (index lists) */
    SMG_ACT_SPLIT,       /* select and split for each item's request: one SPLIT_DONE per item */
    SMG_ACT_RESERVE,     /* `bytes` of KV pool for `request`: RESERVED event */
    SMG_ACT_RELEASE,
    SMG_ACT_TIMER,       /* TIMER event after duration_s */
    SMG_ACT_FAIL         /* router: request failed, status in `bytes` as int */
};

/* Why the agent issued an action; echoed in its OP_DONE. */
enum smg_purpose {
    SMG_FOR_NONE,
    SMG_FOR_PREFILL_LAYER,
    SMG_FOR_OFFLOAD,         /* D2H of new KV on the prefill node */
    SMG_FOR_METADATA,
    SMG_FOR_PUSH,            /* blocks of the Kr set */
    SMG_FOR_SPECULATIVE,
    SMG_FOR_REPLY_GATHER,
    SMG_FOR_REPLY,
    SMG_FOR_ATTENTION,
    SMG_FOR_SELECT,
    SMG_FOR_SPLIT,
    SMG_FOR_FFN,
    SMG_FOR_LOCAL_GATHER,    /* local lane: host memory -> staging */
    SMG_FOR_LOCAL_COPY,      /* local lane: staging -> GPU */
    SMG_FOR_REMOTE_RECV,
    SMG_FOR_REMOTE_COPY,     /* no GDR: landed remote entries -> GPU */
    SMG_FOR_SCATTER,         /* KV reuse, serial on demand: landed reply -> host pool by the CPU, background */
    SMG_FOR_KEEP,            /* KV reuse: fetched entries, GPU -> host pool, background */
    SMG_FOR_DISPATCH         /* router: end of a burst of simultaneous arrivals */
};

enum smg_action_flag {
    SMG_ACT_NOTIFY = 1u      /* the driver reports OP_DONE; of a WRITE only when the data is placed at the receiver */
};

enum smg_item_flag {
    SMG_ITEM_FULL = 1u,      /* SPLIT: this request is in mode full, everything is local and no mask is read */
    SMG_ITEM_PRESENT = 2u    /* SPLIT: no selector, everything that is present is used (with FULL: all tokens) */
};

/* A piece of an action. WRITE of blocks: [first, first+count) of `layer`. WRITE of metadata: bytes [first, first+count) of that
 * layer's metadata. SPLIT: one request of the batch, its decode step in count. */
struct smg_item {
    uint32_t request;
    uint16_t layer;
    uint16_t flags;
    uint32_t first;
    uint32_t count;
};

struct smg_action {
    uint32_t kind;                   /* enum smg_action_kind */
    uint32_t op;                     /* unique per agent, from 1 */
    uint16_t lane;                   /* enum smg_lane */
    uint16_t peer;                   /* of PUSH, REPLY, CTL; destination of SEND */
    uint16_t purpose;                /* enum smg_purpose */
    uint16_t flags;                  /* enum smg_action_flag */
    uint32_t request;
    uint32_t step;
    uint16_t layer_lo, layer_hi;
    uint32_t after[3];               /* ops of this agent that must be complete first; 0: none */
    uint32_t item_first, n_items;    /* into smg_actions.items */
    uint32_t messages;               /* work requests on the wire */
    uint64_t bytes;                  /* payload */
    uint64_t mask_bytes;             /* mask traffic of a WRITE, beside bytes */
    uint64_t entries;                /* GATHER, RECV, REPLY: KV entries moved */
    double duration_s;               /* COMPUTE, SPLIT, TIMER; GATHER, SEND: fixed time beside the transfer */
    struct smg_message msg;          /* SEND */
};

/* What one step wants done, in order. Owned by the caller, reused from step to step; smg_agent_step() empties it first. */
struct smg_actions {
    struct smg_action *action;
    size_t n, cap;
    struct smg_item *items;
    size_t n_items, cap_items;
};

void smg_actions_free(struct smg_actions *a);
/* Appends a zeroed action and returns it; NULL: out of memory. The pointer is valid until the next append. */
struct smg_action *smg_actions_add(struct smg_actions *a, enum smg_action_kind kind);
/* Appends an item to the last action; SMG_ERR_NOMEM leaves the action as it was. */
int smg_actions_item(struct smg_actions *a, const struct smg_item *item);

struct smg_agent;
struct smg_records;

/* Creates the agent of an instance (its role follows from the number). The world must outlive it. */
int smg_agent_create(const struct smg_world *w, uint16_t instance, struct smg_agent **out);
void smg_agent_destroy(struct smg_agent *a);
/* Feeds one event. SMG_ERR_PROTOCOL of a message: its sender may not say that, or not now; the agent is as it was, has no actions
 * and can be stepped on. After any other error (out of memory, or an event no correct driver sends: SMG_ERR_PROTOCOL) the agent
 * must not be stepped again. */
int smg_agent_step(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out);
/* Records kept by the router agent, NULL for others. Owned by the agent. */
const struct smg_records *smg_agent_records(const struct smg_agent *a);

/* For drivers: the event that answers a notifying action, and the event a message becomes at its receiver. Every byte of *out is
 * set except now_s. */
void smg_event_done(const struct smg_action *a, struct smg_event *out);
/* The same for an operation whose peer is lost. */
void smg_event_undone(const struct smg_action *a, struct smg_event *out);
void smg_event_message(uint16_t from, const struct smg_message *msg, struct smg_event *out);

/* Order of simultaneous events of one agent: kind, peer, request, layer, then op. <0, 0, >0 as qsort wants. */
int smg_event_compare(const struct smg_event *a, const struct smg_event *b);

const char *smg_event_name(uint32_t kind);
const char *smg_action_name(uint32_t kind);
const char *smg_purpose_name(uint32_t purpose);
const char *smg_message_name(uint32_t kind);

#pragma GCC visibility pop

#endif
