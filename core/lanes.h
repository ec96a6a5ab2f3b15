/* Lanes: the queues a driver executes actions from. Shared by the simulated and the real driver, so that order and dependencies mean the
 * same in both.
 *
 * An operation starts when it is at the head of its lane, the lane is free, and the operations it names in `after` are complete. Its
 * lane is released (the next operation may start) and the operation completed in two calls: a NIC takes the next work request before the last one
 * is acknowledged.
 */
#ifndef SMG_CORE_LANES_H
#define SMG_CORE_LANES_H

#include "core/agent.h"

struct smg_lane_queue;

struct smg_op {
    struct smg_op *next;
    struct smg_lane_queue *lane;
    struct smg_action action;
    struct smg_item *items;      /* [action.n_items], owned */
    uint16_t instance;
    double start_s;              /* the driver's */
    uint64_t phase;              /* the driver's */
};

struct smg_lanes;

int smg_lanes_create(uint16_t instance, uint32_t peers, struct smg_lanes **out);
void smg_lanes_destroy(struct smg_lanes *l);
/* Queues a copy of an action (lane != NONE) and its items. */
int smg_lanes_submit(struct smg_lanes *l, const struct smg_action *a, const struct smg_item *items);
/* Next operation that may start now, marked as running; NULL: none. Call until NULL after every submit, release, complete. */
struct smg_op *smg_lanes_start(struct smg_lanes *l);
/* The lane of a running operation may go on. At most once per operation; complete implies it. */
void smg_lanes_release(struct smg_lanes *l, struct smg_op *op);
/* The operation is complete: unblocks `after` edges and frees op. */
void smg_lanes_complete(struct smg_lanes *l, struct smg_op *op);
/* Operations queued or running. */
size_t smg_lanes_pending(const struct smg_lanes *l);

#endif
