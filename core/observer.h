/* What a driver shows of itself while it runs: every step of every agent, and every operation on a lane. */
#ifndef SMG_CORE_OBSERVER_H
#define SMG_CORE_OBSERVER_H

#include "core/agent.h"
#include "core/lanes.h"

#pragma GCC visibility push(default)

struct smg_observer {
    void *arg;
    /* After each step of an agent. Non-zero ends the run with that status. NULL: not wanted. */
    int (*step)(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions);
    /* An operation ran on its lane from start_s to end_s. NULL: not wanted. */
    void (*operation)(void *arg, const struct smg_op *op, double start_s, double end_s);
};

#pragma GCC visibility pop

#endif
