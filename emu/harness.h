/* The harness of an emulated cluster on one host: forks the instances and carries what they must know of each other before the
 * fabric is up (addresses, memory keys, the start of the clock), and what they report at the end. One stream socket per child. */
#ifndef SMG_EMU_HARNESS_H
#define SMG_EMU_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/stats.h"
#include "core/status.h"
#include "emu/fabric.h"

/* What every instance publishes once its memory is registered. */
struct smg_publication {
    struct smg_fabric_address address;
    struct smg_remote memory;
};

struct smg_harness {
    uint32_t instances;
    uint16_t self;               /* 0 in the parent */
    pid_t *pid;                  /* [instances], parent only */
    int *fd;                     /* [instances], parent: one per child; child: fd[0] is the parent */
    double start_s;              /* monotonic clock at which the run's clock is 0 */
};

/* Forks instances 1..n-1; in a child calls child(arg, harness) and exits with its value. The parent gets the harness. */
int smg_harness_fork(uint32_t instances, int (*child)(void *arg, struct smg_harness *h), void *arg, struct smg_harness *out,
                     struct smg_diag *diag);
/* All-to-all exchange through the parent: every instance gives own and gets all[instances]. The parent waits up to `seconds` for
 * each child; SMG_ERR_DEADLOCK: one does not answer (it is stopped, or far too slow). A child waits for as long as the parent is
 * there. */
int smg_harness_swap(struct smg_harness *h, double seconds, const struct smg_publication *own, struct smg_publication *all,
                     struct smg_diag *diag);
/* Barrier; agrees on the start of the clock. `seconds` as above. */
int smg_harness_start(struct smg_harness *h, double seconds, struct smg_diag *diag);
/* Parent: tells the children to stop. Child: whether that was said (or the parent is gone); waits for it up to `seconds`. */
void smg_harness_stop(struct smg_harness *h);
int smg_harness_stopped(struct smg_harness *h, double seconds);
/* Child: reports its outcome, counts and message. Parent: collects them from all (adding counts) and reaps; a child that died or
 * failed gives its status and diag. seconds bounds the wait, also for the rest of half a report; children without a report are
 * killed then, and those that do not end after theirs 5 s later. */
int smg_harness_report(struct smg_harness *h, int status, const struct smg_run_stats *stats, const struct smg_diag *diag);
int smg_harness_collect(struct smg_harness *h, double seconds, struct smg_run_stats *stats, struct smg_diag *diag);
/* Parent, without blocking: non-zero when some child has reported failure or is gone. */
int smg_harness_trouble(struct smg_harness *h);
/* Parent, without blocking: a child that a signal has stopped (SIGSTOP, Ctrl-Z) right now; 0: none. */
uint32_t smg_harness_halted(struct smg_harness *h);
/* Monotonic time since start, s. */
double smg_harness_now(const struct smg_harness *h);
void smg_harness_close(struct smg_harness *h);

#endif
