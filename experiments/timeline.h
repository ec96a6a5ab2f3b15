/* timeline.json: a Chrome trace (opens in Perfetto), one track per lane of each instance. */
#ifndef SMG_EXPERIMENTS_TIMELINE_H
#define SMG_EXPERIMENTS_TIMELINE_H

#include "core/observer.h"
#include "experiments/log.h"

struct smg_timeline;

int smg_timeline_create(const char *path, struct smg_timeline **out, struct smg_diag *diag);
void smg_timeline_operation(struct smg_timeline *t, const struct smg_op *op, double start_s, double end_s);
/* Ends the file and frees t; SMG_ERR_IO when it could not be written whole. */
int smg_timeline_close(struct smg_timeline *t, struct smg_diag *diag);

/* An observer that feeds a log and a timeline (either may be NULL). Free with smg_recorder_observer_free. SMG_ERR_NOMEM: none. */
int smg_recorder_observer(struct smg_log_writer *log, struct smg_timeline *timeline, struct smg_observer *out);
void smg_recorder_observer_free(struct smg_observer *o);

#endif
