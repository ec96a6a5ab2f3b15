/* The requests of a run. */
#ifndef SMG_TRACES_WORKLOAD_H
#define SMG_TRACES_WORKLOAD_H

#include "core/status.h"
#include "core/world.h"

/* Fills requests, n_requests, synthetic_workload and workload_note of a world whose scenario is set, and settles the scenario's
 * lengths when all requests are alike. */
int smg_workload_make(struct smg_world *w, struct smg_diag *diag);

#endif
