/* Independent tasks in child processes, several at a time: an engine may allow one simulation per process. */
#ifndef SMG_EXPERIMENTS_FORKS_H
#define SMG_EXPERIMENTS_FORKS_H

#include <stddef.h>

#include "core/status.h"

/* Fills result for task i; runs in a child, so nothing else of what it changes is seen. */
typedef int (*smg_task_fn)(void *arg, size_t i, void *result, struct smg_diag *diag);
typedef void (*smg_progress_fn)(void *arg, size_t done, size_t total);

struct smg_forks {
    smg_task_fn task;
    void *task_arg;
    size_t tasks;
    size_t jobs;              /* children at a time, 0 counts as 1 */
    size_t result_bytes;      /* of one task; no pointers in it */
    smg_progress_fn progress; /* after each task, in the parent; may be NULL */
    void *progress_arg;
    int (*stop)(void); /* asked again and again: non-zero ends the work with SMG_ERR_INTERRUPTED; may be NULL */
};

/* Runs every task and fills results[tasks] of result_bytes each, in the order of the tasks whatever order they end in. On the
 * first failure no further task is started, those that run are ended, and the failed one's diag and status are returned. */
int smg_forks_run(const struct smg_forks *f, void *results, struct smg_diag *diag);

#endif
