/* The end of sim and emu: records into place, what came out on standard output, what failed on standard error. */
#ifndef SMG_CLI_OUTCOME_H
#define SMG_CLI_OUTCOME_H

#include "cli/cli.h"
#include "cli/run_folder.h"

/* Nothing ran: there is no place for the records. A folder that could be begun and not be written to is no bad input: the disk is
 * full, most likely. Returns the exit status. */
int smg_outcome_refuse(struct smg_run_folder *rec, int status, const struct smg_diag *diag);
/* A run ended with status (SMG_ERR_IO: a log could not be written); its records are written when run has some. What the run
 * said comes before what writing said. Returns the exit status. */
int smg_outcome_finish(struct smg_run_folder *rec, const struct smg_run *run, const struct smg_args *a, int status,
                       const struct smg_diag *run_diag);

#endif
