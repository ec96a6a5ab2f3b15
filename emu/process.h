/* Private to emu/: one process of the emulated cluster. process.c is the loop, ctl.c the messages, prefill_side.c and
 * decode_side.c what the two roles do with real bytes. */
#ifndef SMG_EMU_PROCESS_H
#define SMG_EMU_PROCESS_H

#include "core/agent.h"
#include "core/lanes.h"
#include "core/observer.h"
#include "core/pool.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "core/split.h"
#include "core/stats.h"
#include "core/store.h"
#include "emu/arena.h"
#include "emu/compute.h"
#include "emu/emu.h"
#include "emu/fabric.h"
#include "emu/fault.h"
#include "emu/harness.h"
#include "emu/layout.h"
#include "emu/link.h"
#include "emu/wire.h"

/* Kinds of completion contexts: pointers are aligned, the low bits tell what they point to. */
enum { SMG_CONTEXT_NONE = 0, SMG_CONTEXT_OP = 1, SMG_CONTEXT_RECEIVE = 2, SMG_CONTEXT_SEND = 3, SMG_CONTEXT_MASK = 7 };

/* Index lists that came with an INDEX, until they are answered. */
struct smg_index {
    struct smg_index *next;
    uint32_t step;
    uint16_t layer;
    uint32_t *rows; /* [heads], behind this struct */
    int32_t *ids;   /* all rows, one after the other, behind those */
    uint64_t entries;
    uint64_t reply_offset; /* gathered bytes, in the arena; UINT64_MAX: none yet */
};

/* What a prefill instance holds of a request. */
struct smg_prefill_data {
    struct smg_layout layout;
    uint64_t kv, metadata;   /* arena offsets */
    uint8_t *written;        /* [layers][blocks] */
    struct smg_index *index; /* oldest first */
    struct smg_op *fenced;   /* write_order fence: mask to be posted when the data is there */
    struct smg_item held;    /* mutant early-mask: data that is held back; count 0: none */
};

/* What a decode instance holds of a request: memory, ledger, and the split of the stage in progress. */
struct smg_decode_data {
    struct smg_layout layout;
    uint64_t kv, mask, metadata, device, staging, reply; /* arena offsets */
    struct smg_ledger *ledger;
    uint32_t step;
    uint16_t layer;
    uint32_t row_cap;     /* entries per row in device and staging: prompt tokens */
    int32_t *ids;         /* [heads][row_cap] row order as gathered: remote first when reordering */
    uint8_t *remote;      /* [heads][row_cap] */
    uint32_t *row;        /* [heads] entries of each row */
    uint32_t *row_remote; /* [heads] */
    int32_t *scratch;     /* [3][row_cap] */
    int split_valid;
    uint8_t *own_metadata; /* [layers] metadata of this layer was made here */
    uint32_t *picked;      /* [heads] entries selected, before the split */
};

struct smg_timer {
    double due_s;
    uint64_t sequence;
    struct smg_op *op; /* NULL: TIMER action, arrival, or forgotten */
    int arrival;       /* -1: forgotten, its operation has ended */
};

struct smg_send_slot {
    struct smg_op *op;
    int busy;
};

/* Control receives posted per queue pair, and sends in flight per process. */
enum { SMG_CTL_RECEIVES = 32, SMG_CTL_SENDS = 64 };

/* What the router sees of a child. */
struct smg_watch {
    double quiet_s; /* without a sign of life, while this process was awake */
    double gone_s;  /* when it was found gone */
    uint32_t beats;
    int gone;     /* its process has ended */
    char how[80]; /* it was lost, and how, for a person; "" */
};

/* More than this many lists of a request are never asked for at a time; room for as many replies is there. */
enum { SMG_INDICES_MAX = 4 };

/* Most segments of one receive. */
enum { SMG_REPLY_SEGMENTS = 64 };

struct smg_process {
    const struct smg_world *world;
    const struct smg_emu_config *config;
    struct smg_features features;
    uint16_t self;
    uint32_t instances;
    struct smg_harness *harness;
    struct smg_links *links;             /* NULL: not shaped */
    const struct smg_compute_plan *plan; /* NULL: paced */
    struct smg_agent *agent;
    struct smg_lanes *lanes;
    struct smg_actions actions;
    struct smg_selection *selection;
    struct smg_compute *compute; /* NULL: paced */
    struct smg_fabric *fabric;
    struct smg_fabric_limits limits;
    struct smg_arena *arena;
    struct smg_mr *mr;
    struct smg_publication *peer; /* [instances] */
    struct smg_pool pool;
    struct smg_store store;            /* of what requests hold, beside the arena */
    struct smg_segment *segment;       /* [2 * kv_heads + 1] of the reply at work */
    uint32_t *first_segment;           /* [2 * kv_heads + 2] of each of its receives */
    uint64_t *reserved_bytes;          /* [n_requests] */
    struct smg_prefill_data **prefill; /* [n_requests] */
    struct smg_decode_data **decode;   /* [n_requests] */
    uint64_t ones;                     /* arena offset of mask bytes of value 1 */
    uint64_t ctl_bytes;                /* room of one control message */
    uint64_t ctl_receive, ctl_send;    /* arena offsets */
    struct smg_send_slot send[SMG_CTL_SENDS];
    struct smg_timer *timer; /* heap by (due, sequence) */
    size_t n_timers, cap_timers;
    struct smg_event *event; /* ring of events not delivered yet */
    size_t event_head, n_events, cap_events;
    uint64_t sequence;
    uint32_t next_arrival;
    int mutated;
    int stopping;
    uint64_t (*cookie)[3]; /* [n_requests] where to write; may be told before the request is assigned here */
    uint32_t *kr_blocks;   /* [n_requests] as assigned */
    uint8_t *full;         /* [n_requests] */
    uint8_t *handed_off;   /* [n_requests] prefill said that its metadata is here */
    uint16_t *partner;     /* [n_requests] the other instance of a request, as assigned; 0: not yet */
    uint16_t *cookie_from; /* [n_requests] who said where to write, 0: nobody */
    uint8_t *dropped;      /* [n_requests] it failed: what lies in its rows is not looked at any more */
    int32_t *lost;         /* [instances] 0: there; else why the peer is lost, or is being cut off */
    uint8_t *told;         /* [instances] the agent knows */
    uint8_t *silent;       /* [instances] the fabric has said its last word of it: no post is in flight */
    uint32_t n_silent;
    struct smg_fault fault;
    struct smg_watch *watch; /* router: [instances] what is known of the children */
    double watched_s;
    struct smg_observer observer;
    struct smg_run_stats stats;
    struct smg_diag diag;
};

/* process.c */
int smg_process_loop(struct smg_process *p);
uint8_t *smg_process_at(const struct smg_process *p, uint64_t offset);
struct smg_piece smg_process_piece(const struct smg_process *p, uint64_t offset, uint64_t bytes);
uint64_t smg_context(const void *pointer, unsigned kind);
int smg_process_fail(struct smg_process *p, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether data is what K (v 0) or V of one entry must be. */
int smg_process_half_is(struct smg_process *p, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v,
                        uint64_t bytes, const uint8_t *data);
/* A message about a request that has failed here, from a peer that did not know: it asks for what is not there any more. */
int smg_process_too_late(const struct smg_process *p, const struct smg_message *m);
/* Fails with what the kernels say. */
int smg_process_compute(struct smg_process *p, uint32_t request, int status);

/* process_lost.c */
/* Gives a peer up, for what it sent (SMG_ERR_PROTOCOL) or because it is gone (SMG_ERR_LOST): the agent hears of it, then the
 * connection is broken, and when the fabric has said its last word the operations towards it end. Never the router: an instance
 * without a router ends. */
int smg_process_cut(struct smg_process *p, uint16_t peer, int why);
int smg_process_told(struct smg_process *p, uint16_t peer); /* the agent's actions on PEER_LOST are taken */
int smg_process_lost(struct smg_process *p, uint16_t peer); /* the fabric's last word */
int smg_process_drop_lost(struct smg_process *p);           /* ends operations towards peers that the agent knows to be lost */
/* A post to a peer was refused: SMG_OK when that costs only this peer. */
int smg_process_post_failed(struct smg_process *p, uint16_t peer, int status);
int smg_process_failed(struct smg_process *p, const struct smg_completion *c); /* a completion with an error */

/* process_watch.c, for the router */
int smg_process_watch(struct smg_process *p);               /* looks after the children, now and then */
int smg_process_someone_quiet(const struct smg_process *p); /* a child that requests wait for may be the reason */
void smg_process_losses(struct smg_process *p, char *text, size_t text_bytes); /* for a person; "": none */

/* process_events.c */
void smg_process_timer_forget(struct smg_process *p, const struct smg_op *op);
int smg_process_event(struct smg_process *p, const struct smg_event *e);
int smg_process_timer(struct smg_process *p, double due_s, struct smg_op *op, int arrival); /* op NULL: TIMER action or arrival */
int smg_process_reserve_queues(struct smg_process *p, uint64_t events, uint64_t timers);
struct smg_timer smg_process_timer_pop(struct smg_process *p);                              /* the soonest of n_timers > 0 */

/* process_execute.c */
int smg_process_submit(struct smg_process *p);                       /* the actions of a step */
int smg_process_kick(struct smg_process *p);                         /* starts what heads its lane */
int smg_process_resume(struct smg_process *p, struct smg_op *op);    /* its timer is due */
int smg_process_completed(struct smg_process *p, struct smg_op *op, uint64_t bytes); /* one of its transfers is */
int smg_process_done(struct smg_process *p, struct smg_op *op);      /* completes it, with its event */

/* process_setup.c */
int smg_process_set_up(struct smg_process *p);
void smg_process_tear_down(struct smg_process *p);
uint64_t smg_process_arena_need(const struct smg_process *p);

/* process_reserve.c */
int smg_process_reserve(struct smg_process *p); /* memory for all that comes while the clock runs: nothing is allocated then */

/* ctl.c */
int smg_ctl_post_receives(struct smg_process *p);
int smg_ctl_send(struct smg_process *p, struct smg_op *op); /* SMG_ERR_CAPACITY: try again later */
int smg_ctl_sent(struct smg_process *p, uint64_t slot);
int smg_ctl_received(struct smg_process *p, const struct smg_completion *c);
uint64_t smg_ctl_bytes(const struct smg_world *w);
int smg_ctl_nonsense(struct smg_process *p, uint64_t bytes); /* test only: to every peer, what is no message */

/* prefill_side.c */
uint64_t smg_prefill_need(const struct smg_process *p, uint32_t request); /* of the arena */
uint64_t smg_prefill_cost(const struct smg_process *p, uint32_t request); /* of the store */
int smg_prefill_open(struct smg_process *p, uint32_t request);
void smg_prefill_close(struct smg_process *p, uint32_t request);
int smg_prefill_fill(struct smg_process *p, uint32_t request, uint32_t layer);
int smg_prefill_write(struct smg_process *p, struct smg_op *op);
int smg_prefill_write_done(struct smg_process *p, struct smg_op *op, int *complete);
/* SMG_ERR_PROTOCOL: `from` may not ask for that. */
int smg_prefill_index(struct smg_process *p, uint16_t from, const struct smg_message *msg, const uint32_t *rows, uint64_t words);
int smg_prefill_gather(struct smg_process *p, struct smg_op *op);
int smg_prefill_reply(struct smg_process *p, struct smg_op *op);
void smg_prefill_reply_done(struct smg_process *p, const struct smg_action *a);
int smg_prefill_message(struct smg_process *p, uint16_t from, const struct smg_message *msg);

/* decode_side.c */
uint64_t smg_decode_need(const struct smg_process *p, uint32_t request);
uint64_t smg_decode_cost(const struct smg_process *p, uint32_t request);
int smg_decode_open(struct smg_process *p, uint32_t request, uint64_t cookie[3]);
int smg_decode_close(struct smg_process *p, uint32_t request); /* verifies what lies in the pool */
void smg_decode_free(struct smg_process *p, uint32_t request);
int smg_decode_split(struct smg_process *p, struct smg_op *op);
int smg_decode_receive(struct smg_process *p, struct smg_op *op); /* posts the receives; op->phase = completions to come */
int smg_decode_received(struct smg_process *p, struct smg_op *op);
int smg_decode_move(struct smg_process *p, struct smg_op *op); /* GATHER and COPY of the lanes */
int smg_decode_attention(struct smg_process *p, const struct smg_action *a);
/* Fills rows and ids of the current remote part of a request for an INDEX; returns 32-bit words written. */
uint64_t smg_decode_index(const struct smg_process *p, uint32_t request, uint32_t *words);

/* How a reply of rows[heads] is cut into receives on both sides. scattered: rows land in place; else contiguous. The plan holds
 * until the next one. */
int smg_reply_plan(const struct smg_process *p, const uint32_t *rows, uint64_t row_stride_bytes, uint64_t v_offset_bytes,
                   struct smg_scatter_plan *out);
int smg_reply_scattered(const struct smg_process *p);

#endif
