/* Profiling: from selections to an importance matrix with its groups (Eq. 1) and temporal statistics. */
#ifndef SMG_TRACES_IMPORTANCE_PROFILE_H
#define SMG_TRACES_IMPORTANCE_PROFILE_H

#include "core/importance.h"
#include "core/world.h"
#include "traces/importance_file.h"

/* Requests of a length group: no two are equally long, and the shortest group has 4096 lengths. */
#define SMG_PROFILE_REQUESTS_MAX 4096u

struct smg_profile_plan {
    uint32_t requests, steps;                                     /* per length group; consecutive decode steps of each */
    void (*progress)(void *context, uint32_t done, uint32_t all); /* NULL: silent */
    void *context;
    int (*stop)(void); /* asked now and then: non-zero ends the work with SMG_ERR_INTERRUPTED; may be NULL */
};

/* Profiles what a world selects. Generated selections: `requests` calibration requests in each length group, of lengths spread
 * over it, drawn by the name of the data set. Recorded ones: the workload's own requests, in the groups they fall in. */
int smg_profile_make(const struct smg_world *w, const struct smg_profile_plan *plan, struct smg_importance **out,
                     struct smg_importance_info *info, struct smg_diag *diag);

#endif
