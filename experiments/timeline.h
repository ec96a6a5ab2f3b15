/* timeline.json: a Chrome trace (opens in Perfetto). A process per instance, with a track per GPU stream, copy engine, CPU
 * gather, sending queue of the NIC, and sender that the NIC receives from; and one process "requests" with the stages and the
 * push of each request as the router sees them. Slices of one track never overlap: where operations do, the track has further
 * rows. */
#ifndef SMG_EXPERIMENTS_TIMELINE_H
#define SMG_EXPERIMENTS_TIMELINE_H

#include "core/observer.h"
#include "core/world.h"
#include "experiments/log.h"

/* The process id of the requests; instances have their own numbers, which are smaller. */
enum { SMG_TIMELINE_REQUESTS = 65536 };

struct smg_timeline;

/* Creates a timeline, or the part of one that a process of the emulation writes. Both are ended by smg_timeline_close. */
int smg_timeline_create(const char *path, struct smg_timeline **out, struct smg_diag *diag);
int smg_timeline_create_part(const char *path, struct smg_timeline **out, struct smg_diag *diag);
/* An operation that ran on its lane. Operations of one instance come in the order in which they end. */
void smg_timeline_operation(struct smg_timeline *t, const struct smg_op *op, double start_s, double end_s);
/* A step of an agent. Only the router's say something: arrivals, assignments, and the messages that reach it. */
void smg_timeline_step(struct smg_timeline *t, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions);
/* Adds what a closed part holds. */
int smg_timeline_append(struct smg_timeline *t, const char *part, struct smg_diag *diag);
/* Which inputs of the run were synthetic: "otherData" of the file says so. */
void smg_timeline_synthetic(struct smg_timeline *t, const struct smg_world *w);
/* Ends the file and frees t; SMG_ERR_IO when it could not be written whole, SMG_ERR_NOMEM when something is missing in it. */
int smg_timeline_close(struct smg_timeline *t, struct smg_diag *diag);

/* An observer that feeds a log and a timeline (either may be NULL). Free with smg_recorder_observer_free. SMG_ERR_NOMEM: none. */
int smg_recorder_observer(struct smg_log_writer *log, struct smg_timeline *timeline, struct smg_observer *out);
void smg_recorder_observer_free(struct smg_observer *o);

#endif
