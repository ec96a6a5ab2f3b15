/* Private to the comparison of runs: what is read of each. */
#ifndef SMG_EXPERIMENTS_COMPARE_PRIV_H
#define SMG_EXPERIMENTS_COMPARE_PRIV_H

#include "core/world.h"
#include "experiments/compare.h"

enum compare_cell {
    COMPARE_PROMPT,
    COMPARE_OUTPUT,
    COMPARE_DECODE,
    COMPARE_JOIN,
    COMPARE_SECOND,
    COMPARE_FINISH,
    COMPARE_TTFT,
    COMPARE_TTST,
    COMPARE_TBT,
    COMPARE_METADATA,
    COMPARE_PROACTIVE,
    COMPARE_ON_DEMAND,
    COMPARE_SPECULATIVE,
    COMPARE_CELLS
};

struct compare_request {
    double cell[COMPARE_CELLS]; /* NAN: empty */
    double transfer_s;          /* NAN: no second token */
    int full, finished;         /* mode full; status finished */
    uint32_t tokens;            /* rows of tokens.csv */
};

struct compare_token {
    uint32_t request, token;
    double gap_s;
};

struct compare_run {
    const char *dir;
    json_t *settings, *synthetic; /* as of smg_run_settings */
    uint64_t seed;
    char model[SMG_PATH_MAX], model_digest[24]; /* digest: "" where it is built in or not recorded */
    struct smg_world world;                     /* model and hardware; its requests are none of the run's */
    int has_world;
    uint32_t n;
    struct compare_request *request; /* [n] */
    struct compare_token *token;     /* [n_tokens] with a gap, by request and token; NULL: not recorded */
    size_t n_tokens;
};

/* Fills a zeroed run; free it on error too. dir is kept. */
int smg_compare_read(const char *dir, struct compare_run *run, struct smg_diag *diag);
void smg_compare_run_free(struct compare_run *run);

#endif
