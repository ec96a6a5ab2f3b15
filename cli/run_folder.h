/* The record folder of a run in progress: its logs and its timeline while they are written, all of it at the end. */
#ifndef SMG_CLI_RUN_FOLDER_H
#define SMG_CLI_RUN_FOLDER_H

#include "experiments/run.h"
#include "experiments/timeline.h"

/* All zero: no folder was asked for. */
struct smg_run_folder {
    struct smg_outdir dir;
    struct smg_log_writer log;
    struct smg_timeline *timeline;
    int active, logging;
};

/* Whether a run writes events.bin and actions.bin: for replay, or for decisions.csv. */
int smg_run_folder_wants_log(const struct smg_scenario *s);
/* Begins the folder (output NULL: none) and, for a run in one process, opens what is wanted of log and timeline. On error the
 * caller aborts. */
int smg_run_folder_open(struct smg_run_folder *rec, const char *output, const struct smg_scenario *s, int one_process,
                        struct smg_diag *diag);
/* Path of a file of the folder while it is written. */
int smg_run_folder_file(const struct smg_run_folder *rec, const char *name, char path[SMG_PATH_MAX]);
/* Paths of the two logs of one process, suffix as below. */
int smg_run_folder_log_paths(const struct smg_run_folder *rec, const char *suffix, char events[SMG_PATH_MAX],
                             char actions[SMG_PATH_MAX]);
/* The logs of one process; suffix: "" or ".<instance>". */
int smg_run_folder_open_logs(struct smg_run_folder *rec, const char *suffix, struct smg_diag *diag);
/* Closes a pair of logs of the folder; diag says of which folder, and why. */
int smg_run_folder_close_log(const struct smg_run_folder *rec, struct smg_log_writer *log, struct smg_diag *diag);
void smg_run_folder_remove_logs(const struct smg_run_folder *rec, const char *suffix);
/* Writes the records and moves the folder into place; also after a failed run, whose records tell what happened. */
int smg_run_folder_commit(struct smg_run_folder *rec, const struct smg_run *run, struct smg_diag *diag);
/* Drops what was not committed. */
void smg_run_folder_abort(struct smg_run_folder *rec);

#endif
