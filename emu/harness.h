/* The harness of an emulated cluster: forks the instances on this host, or takes those that have joined from others (emu/join.h),
 * and carries what they must know of each other before the fabric is up (addresses, memory keys, the start of the clock), and
 * what they report at the end. One stream socket per child; "child" and "parent" also stand for an instance elsewhere and the
 * router. All hosts run the same build: what goes over a socket has this host's byte order and layout, which the geometry of a
 * hello covers. */
#ifndef SMG_EMU_HARNESS_H
#define SMG_EMU_HARNESS_H

#include <pthread.h>
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
    uint16_t self;           /* 0 in the parent */
    pid_t *pid;              /* [instances], parent only; 0: on another host, or has ended */
    int *fd;                 /* [instances], parent: one per child; child: fd[0] is the parent */
    double start_s;          /* monotonic clock at which the run's clock is 0 */
    struct smg_pulse *pulse; /* shared with the children: their signs of life; NULL: they come over the socket */
    uint32_t *beats;         /* [instances], parent of instances on other hosts: signs of life so far */
    double beat_s;           /* child on another host: when it gave the last one */
    int (*stop)(void);       /* non-zero when somebody wants the run to end; NULL: nobody can. Forked children have none */
    uint8_t *lost;           /* [instances] parent only: 1: given up, a missing report is no failure; 2: it gave none */
};

/* Forks instances 1..n-1; in a child calls child(arg, harness) and exits with its value. The parent gets the harness, with that
 * stop(). On error no child is left. SMG_ERR_INTERRUPTED: stop(). */
int smg_harness_fork(uint32_t instances, int (*child)(void *arg, struct smg_harness *h), void *arg, int (*stop)(void),
                     struct smg_harness *out, struct smg_diag *diag);
/* The harness of a router whose instances have joined over fd[1..], which it takes over, and of an instance that has joined over
 * fd. */
int smg_harness_of_router(uint32_t instances, const int *fd, struct smg_harness *out);
int smg_harness_of_instance(uint32_t instances, uint16_t self, int fd, struct smg_harness *out);
/* All-to-all exchange through the parent: every instance gives own and gets all[instances]. The parent waits up to `seconds` for
 * all of them; SMG_ERR_DEADLOCK: one does not answer (it is stopped, or far too slow); SMG_ERR_INTERRUPTED: stop(). A child waits
 * for as long as the parent is there and wants the run. */
int smg_harness_swap(struct smg_harness *h, double seconds, const struct smg_publication *own, struct smg_publication *all,
                     struct smg_diag *diag);
/* Barrier; agrees on the start of the clock. `seconds` as above. */
int smg_harness_start(struct smg_harness *h, double seconds, struct smg_diag *diag);
/* How a run ended, as the parent tells its children. */
struct smg_harness_ending {
    int32_t status; /* SMG_OK: well */
    char why[240];  /* for a person; "": well */
};

enum smg_harness_word { SMG_HARNESS_SILENT, SMG_HARNESS_TOLD, SMG_HARNESS_GONE };

/* Parent: tells the children to stop. Child: whether that was said (or the parent is gone); waits for it up to `seconds`. */
void smg_harness_stop(struct smg_harness *h, const struct smg_harness_ending *ending);
int smg_harness_stopped(struct smg_harness *h, double seconds);
/* Child: what the parent said of the end (TOLD), or that it is gone without a word; waits for it up to `seconds`. */
enum smg_harness_word smg_harness_told(const struct smg_harness *h, double seconds, struct smg_harness_ending *out);
/* Child: reports its outcome, counts and message. Parent: collects them from all (adding counts) and reaps; a child that died or
 * failed gives its status and diag. seconds bounds the wait, also for the rest of half a report; children without a report are
 * killed then, and those that do not end after theirs 5 s later. */
int smg_harness_report(struct smg_harness *h, int status, const struct smg_run_stats *stats, const struct smg_diag *diag);
int smg_harness_collect(struct smg_harness *h, double seconds, struct smg_run_stats *stats, struct smg_diag *diag);
/* Files of an instance on another host, after its report, in the same order on both sides: the child sends what lies at path (an
 * empty string, or nothing there: no file), the parent writes it (an empty string: takes it and keeps nothing). */
int smg_harness_put_file(struct smg_harness *h, const char *path);
int smg_harness_get_file(struct smg_harness *h, uint16_t instance, const char *path, double end_s);
/* A sign of life of this process, and how many a child has given so far. */
void smg_harness_beat(struct smg_harness *h);
uint32_t smg_harness_beats(const struct smg_harness *h, uint32_t instance);

enum smg_child { SMG_CHILD_RUNS, SMG_CHILD_REPORTED, SMG_CHILD_GONE };

/* Parent, without blocking: what became of a child. REPORTED: it ends by itself, with *status; the report stays to be collected.
 * GONE: it ended without one; how (NULL: not wanted) says of what: "signal 9". */
enum smg_child smg_harness_child(struct smg_harness *h, uint16_t instance, int *status, char *how, size_t how_bytes);
/* Parent: this child is given up. What it reports still counts, but it is no failure of the run that it does not. */
void smg_harness_lose(struct smg_harness *h, uint16_t instance);
/* Parent, without blocking: whether a signal has stopped this child (SIGSTOP, Ctrl-Z) right now. */
int smg_harness_halted(struct smg_harness *h, uint32_t instance);
/* Parent: ends a child at once; one on another host is left alone, and ends when it finds its connection broken. */
void smg_harness_end(struct smg_harness *h, uint16_t instance);
/* Parent of children that it has forked: between the two, stop() ends them within moments, whatever this process is doing. */
struct smg_harness_guard {
    struct smg_harness *harness;
    pthread_t thread;
    int runs, pipe[2];
};
void smg_harness_guard_begin(struct smg_harness *h, struct smg_harness_guard *g);
void smg_harness_guard_end(struct smg_harness_guard *g);
/* Monotonic time since start, s. */
double smg_harness_now(const struct smg_harness *h);
void smg_harness_close(struct smg_harness *h);

#endif
