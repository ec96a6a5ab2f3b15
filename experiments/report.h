/* report.html: one page that needs nothing else, from what lies in an output folder. */
#ifndef SMG_EXPERIMENTS_REPORT_H
#define SMG_EXPERIMENTS_REPORT_H

#include "core/status.h"

/* Writes OUT_DIR/report.html from what is there: every figure (ID.txt, ID.svg, ID-narrow.svg), validation.csv, record folders
 * sim-SCHEME (else the largest batch of fig11.csv) for the table of schemes; emu-SCHEME and emu-sim-SCHEME for the comparison.
 * What is missing is named in its place, with the command that makes it. */
int smg_report_write(const char *out_dir, struct smg_diag *diag);

#endif
