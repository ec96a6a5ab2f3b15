/* Private to sim/: the state of a simulated run, split over driver.c (loop), execute.c (actions to engine work) and memory.c
 * (pools, ledgers). */
#ifndef SMG_SIM_SIM_PRIV_H
#define SMG_SIM_SIM_PRIV_H

#include "core/lanes.h"
#include "core/pool.h"
#include "core/scheme.h"
#include "sim/driver.h"

struct smg_sim_event {
    uint16_t instance;
    uint64_t sequence;
    struct smg_event event;
};

/* Something that completes in the engine. */
enum smg_pending_kind {
    SMG_PENDING_FREE,
    SMG_PENDING_ARRIVALS,    /* next requests arrive */
    SMG_PENDING_OP,          /* current phase of an operation ends */
    SMG_PENDING_DELIVER,     /* a WRITE, REPLY or message reaches the other side */
    SMG_PENDING_CONFIRM,     /* the sender of a WRITE hears of that */
    SMG_PENDING_EARLY,       /* the sender of a reply goes on before that */
    SMG_PENDING_TIMER,       /* TIMER action of an agent */
    SMG_PENDING_DEATH,       /* an instance dies */
    SMG_PENDING_NOTICE,      /* the others get to know */
    SMG_PENDING_LOST         /* of an operation that has ended because its peer is lost */
};

struct smg_pending {
    enum smg_pending_kind kind;
    uint16_t instance;
    struct smg_op *op;
    uint32_t next_free;
};

struct smg_instance {
    struct smg_agent *agent;
    struct smg_lanes *lanes;
    uint32_t nic, cpu;       /* endpoints; cpu is used when gathers are flows */
    double pcie_Bps, gather_Bps;
    int shared_cpu;          /* gathers are flows that share the node's CPU */
    struct smg_pool pool;
    int dead;                /* it does nothing any more */
    int told;                /* knows that faults.instance is lost */
};

struct smg_sim {
    const struct smg_world *world;
    struct smg_features features;
    struct smg_engine *engine;
    struct smg_selection *selection;
    struct smg_observer observer;
    struct smg_instance *instance;   /* [n_instances] */
    uint32_t n_instances;
    uint32_t sink;                   /* endpoint that never limits */
    struct smg_ledger **ledger;      /* [n_requests], NULL without memory on the decode side */
    uint64_t *reserved_bytes[2];     /* [n_requests], prefill and decode side */
    struct smg_pending *pending;     /* slab */
    uint32_t n_pending, cap_pending, free_pending;
    struct smg_sim_event *event, *round;
    size_t n_events, cap_events, cap_round;
    uint64_t sequence;
    struct smg_actions actions;
    uint32_t next_arrival;
    struct smg_run_stats stats;
    double latency_s;
    struct smg_diag diag;
};

/* driver.c */
int smg_sim_event(struct smg_sim *s, uint16_t instance, const struct smg_event *e);
int smg_sim_pending(struct smg_sim *s, enum smg_pending_kind kind, uint16_t instance, struct smg_op *op, uint64_t *tag);

/* execute.c */
int smg_sim_submit(struct smg_sim *s, uint16_t instance, const struct smg_actions *actions);
int smg_sim_kick(struct smg_sim *s, uint16_t instance);
int smg_sim_op_phase(struct smg_sim *s, uint16_t instance, struct smg_op *op);
int smg_sim_deliver(struct smg_sim *s, uint16_t instance, struct smg_op *op);
int smg_sim_early(struct smg_sim *s, uint16_t instance, struct smg_op *op);
int smg_sim_confirm(struct smg_sim *s, uint16_t instance, struct smg_op *op);

/* memory.c */
int smg_sim_reserve(struct smg_sim *s, uint16_t instance, const struct smg_action *a);
int smg_sim_release(struct smg_sim *s, uint16_t instance, const struct smg_action *a);
int smg_sim_placed(struct smg_sim *s, const struct smg_op *op);

/* faults.c */
int smg_sim_plan_death(struct smg_sim *s);
int smg_sim_death(struct smg_sim *s);
int smg_sim_notice(struct smg_sim *s);
int smg_sim_drop_lost(struct smg_sim *s, uint16_t instance);

#endif
