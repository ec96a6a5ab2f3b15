/* smartgen summarize: several record folders side by side. */
#ifndef SMG_EXPERIMENTS_SUMMARIZE_H
#define SMG_EXPERIMENTS_SUMMARIZE_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Prints one line per folder of dirs[n]: requests, and the mean over its requests of TTFT, TTST, TBT (s) and on-demand ratio with
 * half the width of the 95% confidence interval. With several folders a last line gives the mean over the folders' means, and its
 * interval: for runs that differ only in their seed. Read from requests.csv. On error nothing is printed. */
int smg_summarize(const char *const *dirs, size_t n, FILE *out, struct smg_diag *diag);

#endif
