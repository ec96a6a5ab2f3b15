/* smartgen summarize: several record folders side by side. */
#ifndef SMG_EXPERIMENTS_SUMMARIZE_H
#define SMG_EXPERIMENTS_SUMMARIZE_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"
#include "traces/scenario_origin.h"

/* Prints one line per folder of dirs[n >= 1]: requests, and the mean over its requests of TTFT, TTST, TBT (s) and on-demand ratio
 * with half the width of the 95% confidence interval. Folders that differ in their seed alone get a line of the mean over their
 * means, and its interval; where folders differ in more, the last line names in what. Read from run.json and requests.csv, which
 * must be exactly what smg_run_write writes: messages name file, line and field. On error nothing is printed.
 * A run that broke off is no error: warn (NULL: nobody) is told of requests that neither finished nor failed, and of a
 * conservation law that summary.json says does not hold. */
int smg_summarize(const char *const *dirs, size_t n, FILE *out, smg_warn_fn warn, void *arg, struct smg_diag *diag);

#endif
