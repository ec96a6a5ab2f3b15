/* Progress of long work on standard error: one line on a terminal, rewritten at most four times a second and erased at the end;
 * plain lines on a pipe when --progress asks for them; nothing else. It has no effect on results. */
#ifndef SMG_CLI_PROGRESS_H
#define SMG_CLI_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "core/observer.h"

enum smg_progress_mode { SMG_PROGRESS_OFF, SMG_PROGRESS_LINE, SMG_PROGRESS_PLAIN };

struct smg_progress {
    const char *command, *unit; /* "sim", "tokens" */
    uint64_t done, total;
    double start_s, shown_s; /* of a monotonic clock; shown_s: of the last update */
    enum smg_progress_mode mode;
    int width; /* columns of the line on the terminal now */
    /* Of a run: */
    const struct smg_world *world;
    uint32_t finished; /* requests whose last token came */
    struct smg_observer inner;
};

/* Starts: shows 0 of total. */
void smg_progress_begin(struct smg_progress *p, const struct smg_args *a, const char *command, const char *unit, uint64_t total);
/* So much is done. Costs a look at the clock when progress is shown, nothing otherwise. */
void smg_progress_at(struct smg_progress *p, uint64_t done);
/* Erases the line; on a pipe says how long it took. May be called more than once. */
void smg_progress_end(struct smg_progress *p);

/* For smg_figure_job and smg_profile_plan: arg is a struct smg_progress that has begun, with total 0 for "not known yet". */
void smg_progress_points(void *arg, size_t done, size_t total);
void smg_progress_requests(void *arg, uint32_t done, uint32_t all);

/* Watches the tokens that reach the router: begins, and wraps *observer when progress is shown. p and the world must outlive the
 * run. Other instances than the router are left alone. */
void smg_progress_observe(struct smg_progress *p, const struct smg_args *a, const char *command, const struct smg_world *w,
                          struct smg_observer *observer);

#endif
