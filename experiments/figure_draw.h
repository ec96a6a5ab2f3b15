/* Drawing and placing the files of a figure; private to experiments/. */
#ifndef SMG_EXPERIMENTS_FIGURE_DRAW_H
#define SMG_EXPERIMENTS_FIGURE_DRAW_H

#include "core/status.h"
#include "experiments/figure_points.h"
#include "experiments/run.h"

/* Runs SCRIPT of the plots folder in folder o: data file, output file, layout ("wide" or "narrow"). The script finds them in
 * ARG1..ARG3 and the plots folder in ARG4. */
int smg_gnuplot(const struct smg_outdir *o, const char *script, const char *data, const char *image, const char *layout,
                struct smg_diag *diag);
/* Draws ID.svg, ID-narrow.svg and ID.png from data (a file in folder o) with the script ID.gp. */
int smg_figure_images(const struct smg_outdir *o, const char *id, const char *data, struct smg_diag *diag);

/* All files of a figure whose points have been run. */
int smg_figure_write(const struct smg_book *b, size_t sweep, const char *outdir, struct smg_diag *diag);
/* A figure of selection counts: counts them in child processes, and writes. */
int smg_figure_heat(const struct smg_sweep *s, const struct smg_figure_job *job, struct smg_diag *diag);

/* A line of a caption: "WORD: synthetic." */
const char *smg_origin(int synthetic);
/* Title, own text, common settings and axes of a sweep. */
void smg_caption_begin(FILE *f, const struct smg_sweep *s);

#endif
