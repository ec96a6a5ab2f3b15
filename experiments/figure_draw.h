/* Drawing and placing the files of a figure; private to experiments/. */
#ifndef SMG_EXPERIMENTS_FIGURE_DRAW_H
#define SMG_EXPERIMENTS_FIGURE_DRAW_H

#include "core/status.h"
#include "experiments/run.h"

/* Runs SCRIPT of the plots folder in folder o: data file, output file, layout ("wide" or "narrow"). The script finds them in
 * ARG1..ARG3 and the plots folder in ARG4. */
int smg_gnuplot(const struct smg_outdir *o, const char *script, const char *data, const char *image, const char *layout,
                struct smg_diag *diag);

#endif
