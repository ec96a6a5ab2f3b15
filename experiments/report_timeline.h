/* A timeline.json, cut to what a page can bear; private to experiments/. */
#ifndef SMG_EXPERIMENTS_REPORT_TIMELINE_H
#define SMG_EXPERIMENTS_REPORT_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

/* The page shows the first requests with all their stages, and of the operations those that start first. A larger file is left
 * out. */
enum { SMG_SHOWN_REQUESTS = 12, SMG_SHOWN_STAGES = 4000, SMG_SHOWN_OPERATIONS = 4000, SMG_SHOWN_FILE_BYTES = 16 << 20 };

/* What a slice is about, which is its colour. */
enum smg_shown_kind {
    SMG_SHOWN_QUEUED,
    SMG_SHOWN_PREFILL,
    SMG_SHOWN_HANDOFF,
    SMG_SHOWN_JOIN,
    SMG_SHOWN_DECODE,
    SMG_SHOWN_PUSH,
    SMG_SHOWN_METADATA,
    SMG_SHOWN_SPECULATIVE,
    SMG_SHOWN_ON_DEMAND,
    SMG_SHOWN_SELECT,
    SMG_SHOWN_COPY,
    SMG_SHOWN_CONTROL,
    SMG_SHOWN_KINDS
};

extern const char *const smg_shown_kinds[SMG_SHOWN_KINDS]; /* their names in the page */

/* The rows of an instance; those of the requests are numbered by request. */
enum smg_shown_resource {
    SMG_SHOWN_GPU_MAIN,
    SMG_SHOWN_GPU_SELECT,
    SMG_SHOWN_H2D,
    SMG_SHOWN_D2H,
    SMG_SHOWN_CPU,
    SMG_SHOWN_NIC_IN,
    SMG_SHOWN_NIC_OUT,
    SMG_SHOWN_RESOURCES
};

enum { SMG_SHOWN_DETAILS = 5 };

struct smg_shown_slice {
    uint32_t rank, pid;   /* of the process: requests first, then decode, then prefill instances */
    uint32_t row;         /* request, or enum smg_shown_resource */
    uint32_t tid;         /* the tracks of a row lie side by side */
    int64_t start, ticks; /* in 0.1 us */
    uint32_t name;        /* into names */
    /* Of an operation: request, step, layer, layers, bytes; request and layer from 1, 0: does not apply. Of a token: its number,
     * remote and selected entries, bytes on demand, speculative bytes. Of a prefill: prompt tokens, Kr blocks, all blocks. */
    double detail[SMG_SHOWN_DETAILS];
};

struct smg_shown_name {
    char text[SMG_NAME_MAX];
    enum smg_shown_kind kind;
};

struct smg_shown_process {
    uint32_t pid;
    char text[SMG_NAME_MAX];
};

struct smg_shown {
    struct smg_shown_slice *slice; /* in the order of the drawing: process, row, track, start */
    size_t slices, cap_slices;
    struct smg_shown_name name[64];
    size_t names;
    struct smg_shown_process *process;
    size_t processes;
    int64_t end;       /* of the whole run */
    int64_t cut;       /* operations are left out from here on; -1: none is */
    uint32_t requests; /* in the file */
    size_t operations; /* in the file */
};

/* SMG_ERR_PARSE: not a timeline that this program wrote. To be freed with smg_shown_free, whatever it returns. */
int smg_shown_read(const char *path, struct smg_shown *out, struct smg_diag *diag);
void smg_shown_free(struct smg_shown *s);

#endif
