/* Lanes: the queues a driver executes actions from. Shared by the simulated and the real driver, so that order and
 * dependencies mean the same in both.
 *
 * An operation starts when it is at the head of its lane, the lane is free, and the operations it names in `after` are
 * complete. Its lane is released (the next operation may start) and the operation completed in two calls: a NIC takes the
 * next work request before the last one is acknowledged.
 */
#ifndef SMG_CORE_LANES_H
#define SMG_CORE_LANES_H

#include "core/agent.h"

#pragma GCC visibility push(default)

struct smg_lane_queue;

struct smg_op {
    struct smg_op *next;
    struct smg_op *open_next, **open_link; /* all operations queued or running */
    struct smg_lane_queue *lane;
    struct smg_action action;
    struct smg_item *items;      /* [action.n_items], owned */
    uint16_t instance;
    double start_s;              /* the driver's */
    uint64_t phase, moved;       /* the driver's */
};

struct smg_lanes;

/* Lanes of one instance among `peers` instances (1..65536). A lane takes memory from its first use on. */
int smg_lanes_create(uint16_t instance, uint32_t peers, struct smg_lanes **out);
/* Frees all operations with it, also those a driver has started and not completed. */
void smg_lanes_destroy(struct smg_lanes *l);
/* Queues a copy of an action (lane != NONE) and its items (NULL when it has none). On error nothing is queued. */
int smg_lanes_submit(struct smg_lanes *l, const struct smg_action *a, const struct smg_item *items);
/* Next operation that may start now, marked as running; NULL: none. Call until NULL after every submit, release, complete.
 * The operation stays owned by the lanes. */
struct smg_op *smg_lanes_start(struct smg_lanes *l);
/* Operation that holds a lane (peer: 0 for a lane without peers), NULL: the lane is free. */
struct smg_op *smg_lanes_running(const struct smg_lanes *l, enum smg_lane lane, uint16_t peer);
/* The lane of a running operation may go on. At most once per operation; complete implies it. */
void smg_lanes_release(struct smg_lanes *l, struct smg_op *op);
/* The operation is complete: unblocks `after` edges and frees op. */
void smg_lanes_complete(struct smg_lanes *l, struct smg_op *op);
/* The first operation, by number, that is queued or running on a lane to `peer`; NULL: none. */
struct smg_op *smg_lanes_to(const struct smg_lanes *l, uint16_t peer);
/* Ends an operation in any state, as complete does: for those whose peer is lost. */
void smg_lanes_drop(struct smg_lanes *l, struct smg_op *op);
/* Operations queued or running. */
size_t smg_lanes_pending(const struct smg_lanes *l);

#pragma GCC visibility pop

#endif
