/* The emulated cluster: one process per instance, real bytes over a real fabric, driven by the same agents as the simulation. */
#ifndef SMG_EMU_EMU_H
#define SMG_EMU_EMU_H

#include "core/observer.h"
#include "core/record.h"
#include "core/selection.h"
#include "core/stats.h"
#include "core/status.h"
#include "core/world.h"
#include "emu/join.h"

enum { SMG_DEVICE_BYTES = 96, SMG_EMU_PATH_BYTES = 4096 };

/* What a run was left by, and what of it cannot be had. */
struct smg_emu_losses {
    char text[512];           /* "lost instance 2 (signal 9)", for a person; "" none */
    uint8_t silent[1u << 16]; /* [instance] it has given no report: its logs may end anywhere */
};

/* A run whose instances are started one by one, on this host or others, and join the router's process. */
struct smg_emu_cluster {
    const char *router; /* address, as emu/join.h has it; the router listens there, the others dial */
    uint64_t geometry;  /* digest of what all must agree about */
    struct smg_token token;
    uint16_t self;                             /* instance of this process, 0: the router */
    void (*listens)(void *arg, uint16_t port); /* router: called when it does; NULL: not wanted */
};

/* Files that each instance leaves beside its report (logs): path of the k-th of an instance; an empty path: not wanted here.
 * Returns 0 when there are no more than k. */
typedef int (*smg_emu_file_fn)(void *arg, uint16_t instance, unsigned k, char *path, size_t path_bytes);

struct smg_emu_config {
    const char *fabric; /* name of a fabric type, e.g. "ofi" */
    /* Device or provider, NULL: the fabric's default; "A,B": the router and prefill instances use A, decode instances B. Each
     * name is shorter than SMG_DEVICE_BYTES. */
    const char *provider;
    const struct smg_selection_type *selection; /* must yield entries */
    /* Called in each process for its instance before and after the run; NULL: no observer. */
    int (*observe)(void *arg, uint16_t instance, struct smg_observer *out);
    int (*observed)(void *arg, uint16_t instance, struct smg_observer *observer);
    void *arg;
    double stall_timeout_s;                /* no event for so long: deadlock; no sign of life: lost */
    struct smg_emu_losses *losses;         /* filled in, NULL: not wanted */
    const struct smg_emu_cluster *cluster; /* NULL: every instance is forked here */
    int (*stop)(void);                     /* asked all the time; non-zero: ends with SMG_ERR_INTERRUPTED. NULL: no */
    smg_emu_file_fn file;                  /* with a cluster: same number of files in all processes; NULL: none */
};

/* Runs the world: forks one process per instance, or waits for those of a cluster; is the router itself, and returns when every
 * request is settled. An instance that is lost costs the requests that it holds (records, losses); the run itself succeeds. On
 * success and on failed verification records (initialised here; free with smg_records_free) and stats are filled. Needs detail:
 * layer. SMG_ERR_VERIFY: bytes used for attention were not those of the prompt's KV; diag names instance, request, layer, head
 * and token. */
int smg_emu_run(const struct smg_world *w, const struct smg_emu_config *config, struct smg_records *records,
                struct smg_run_stats *stats, struct smg_diag *diag);
/* Joins a cluster as config->cluster->self, which is not 0, and is that instance until the run ends. SMG_ERR_INVALID: refused. */
int smg_emu_join(const struct smg_world *w, const struct smg_emu_config *config, struct smg_diag *diag);

#endif
