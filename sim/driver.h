/* The simulated driver: executes the agents' actions on an engine (SimGrid or native). */
#ifndef SMG_SIM_DRIVER_H
#define SMG_SIM_DRIVER_H

#include "core/observer.h"
#include "core/record.h"
#include "core/selection.h"
#include "core/stats.h"
#include "core/world.h"
#include "sim/engine.h"

#pragma GCC visibility push(default)

struct smg_sim;

/* Prepares a run of world w on an engine of the given type, with a selection source (not owned). observer may be NULL. */
int smg_sim_create(const struct smg_world *w, const struct smg_engine_type *type, struct smg_selection *selection,
                   const struct smg_observer *observer, struct smg_sim **out);
/* Runs to the end. SMG_ERR_DEADLOCK: nothing is pending but requests wait; diag names them. Records and counts are readable
 * afterwards, also on error. */
int smg_sim_run(struct smg_sim *s, struct smg_diag *diag);
const struct smg_records *smg_sim_records(const struct smg_sim *s);
const struct smg_run_stats *smg_sim_stats(const struct smg_sim *s);
/* KV memory that an instance holds, bytes; 0 when every request gave back what it had. */
uint64_t smg_sim_used_bytes(const struct smg_sim *s, uint32_t instance);
void smg_sim_destroy(struct smg_sim *s);

#pragma GCC visibility pop

#endif
