/* What the two halves of a timeline share; private to experiments/. */
#ifndef SMG_EXPERIMENTS_TIMELINE_PRIV_H
#define SMG_EXPERIMENTS_TIMELINE_PRIV_H

#include "experiments/timeline.h"

struct smg_timeline_track;

enum smg_timeline_stage {
    SMG_STAGE_NONE, /* has not arrived */
    SMG_STAGE_QUEUED,
    SMG_STAGE_PREFILL,
    SMG_STAGE_HANDOFF,
    SMG_STAGE_JOIN,
    SMG_STAGE_DECODE,
    SMG_STAGE_ENDED
};

struct smg_timeline_request {
    enum smg_timeline_stage stage;
    int64_t since_ns, pushing_ns; /* pushing_ns < 0: nothing is being pushed */
    uint32_t token;               /* of stage DECODE: the one being made */
    struct smg_message assigned;  /* PREFILL, from the router */
};

struct smg_timeline {
    FILE *f;
    char path[SMG_PATH_MAX];
    char synthetic[64];
    int any, part, status;
    int64_t last_ns;                  /* where the latest slice ends */
    struct smg_timeline_track *track; /* sorted by key */
    size_t tracks, cap_tracks;
    struct smg_timeline_request *request;
    uint32_t requests;
};

int64_t smg_timeline_ns(double seconds);
/* Begins a slice from ns[0] to ns[1] and leaves its "args" open. */
void smg_timeline_begin(struct smg_timeline *t, const char *name, const char *category, uint32_t pid, uint32_t tid,
                        const int64_t ns[2]);
void smg_timeline_end(struct smg_timeline *t);
/* Name, and place in the order, of a process (tid 0) or a track. */
void smg_timeline_name(struct smg_timeline *t, uint32_t pid, uint32_t tid, const char *name, uint32_t place);
/* Whether a process is named for the first time. */
int smg_timeline_first(struct smg_timeline *t, uint32_t pid);
/* Ends the stages and pushes that are still open. */
void smg_timeline_end_requests(struct smg_timeline *t);

#endif
