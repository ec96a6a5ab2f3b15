/* The requests of a run. */
#ifndef SMG_TRACES_WORKLOAD_H
#define SMG_TRACES_WORKLOAD_H

#include "core/status.h"
#include "core/world.h"

/* Fills requests and n_requests of a world whose scenario is set, and settles the scenario's prompt length. */
int smg_workload_make(struct smg_world *w, struct smg_diag *diag);

#endif
