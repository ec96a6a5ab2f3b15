/* The record folder of a run (docs/records.md): run.json, requests.csv, tokens.csv, decisions.csv, summary.json, timeline.json,
 * events.bin, actions.bin. Everything is written into a temporary folder beside DIR and moved into place file by file at the end,
 * so that no half-written output is left behind. */
#ifndef SMG_EXPERIMENTS_RUN_H
#define SMG_EXPERIMENTS_RUN_H

#include "core/record.h"
#include "core/stats.h"
#include "core/world.h"
#include "experiments/log.h"

#pragma GCC visibility push(default)

/* A folder being written. */
struct smg_outdir {
    char path[SMG_PATH_MAX]; /* final */
    char temporary[SMG_PATH_MAX];
    int lock; /* the temporary folder, open and locked; -1: not */
};

/* Whether path may become a record folder: it does not exist, is empty, or holds an earlier run (run.json). SMG_ERR_INVALID: it
 * holds something else, which a run would overwrite. */
int smg_outdir_claim(const char *path, struct smg_diag *diag);
/* Makes the temporary folder (and the parents of path) and locks it, until commit or abort: SMG_ERR_INVALID while another process
 * has it. What a killed process left does not lock, and is emptied. */
int smg_outdir_begin(const char *path, struct smg_outdir *out, struct smg_diag *diag);
/* Path of a file inside the temporary folder; buffer of SMG_PATH_MAX. Messages name such paths: smg_outdir_explain makes of them
 * the paths that the files will have in the end. */
int smg_outdir_file(const struct smg_outdir *o, const char *name, char path[SMG_PATH_MAX]);
void smg_outdir_explain(const struct smg_outdir *o, struct smg_diag *diag);
/* Moves every file into the final folder, replacing old ones of the same name and removing record files of an earlier run that
 * this one did not write. */
int smg_outdir_commit(struct smg_outdir *o, struct smg_diag *diag);
/* Removes the temporary folder and what is in it. */
void smg_outdir_abort(struct smg_outdir *o);

/* A finished run, to be written. */
struct smg_run {
    const struct smg_world *world;
    const struct smg_records *records;
    const struct smg_run_stats *stats;
    const char *driver;        /* "sim" or "emu" */
    const char *engine;        /* "simgrid", "native", "tcp" ... */
    const char *scenario_path; /* as given; "-": standard input, NULL: defaults */
    const char *losses;        /* which instances were lost, and how, for a person; NULL: records have all that is known */
};

/* Writes run.json, requests.csv, tokens.csv (records.tokens), decisions.csv (records.decisions; read from the events.bin and
 * actions.bin that are already in the folder) and summary.json. SMG_ERR_CONSERVATION: written, but a law is broken (diag names
 * it). */
int smg_run_write(const struct smg_outdir *o, const struct smg_run *run, struct smg_diag *diag);

/* Why a failed request failed, for a person: "lost instance 2", or its status. Static texts are copied too. */
void smg_request_reason(const struct smg_request_record *q, char *text, size_t text_bytes);

/* Digest of what the processes of one run must agree about: the scenario but for its records, the contents of its input files,
 * the requests, the version of the program and the layout of its messages. */
int smg_run_geometry(const struct smg_world *w, uint64_t *out, struct smg_diag *diag);

/* Feeds the recorded events of DIR to fresh agents; every action must be byte-equal. *steps_out: steps compared. SMG_ERR_VERIFY:
 * they differ (diag names instance, step and action). */
int smg_replay(const char *dir, uint64_t *steps_out, struct smg_diag *diag);

#pragma GCC visibility pop

#endif
