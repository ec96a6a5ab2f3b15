/* Figures: the points of each are simulated in child processes, written to a data file, and drawn by gnuplot. */
#ifndef SMG_EXPERIMENTS_FIGURES_H
#define SMG_EXPERIMENTS_FIGURES_H

#include "core/stats.h"
#include "core/world.h"
#include "experiments/forks.h"

/* What a figure needs of one run. */
struct smg_point_result {
    double ttft_s, ttst_s, tbt_s; /* means over requests, TBT of the requests' own means */
    double ttft_p95_s, ttst_p95_s, tbt_p95_s;
    double on_demand_ratio;    /* NAN: nothing selects */
    uint64_t bytes[SMG_PATHS]; /* received */
    int synthetic_importance, synthetic_selection, synthetic_workload;
};

/* Simulates a scenario. Runs in a child process. */
typedef int (*smg_run_point_fn)(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag);

struct smg_figure_job {
    smg_run_point_fn run_point;
    void *run_arg;
    size_t jobs;              /* points at a time */
    const char *outdir;       /* made when it does not exist */
    smg_progress_fn progress; /* may be NULL */
    void *progress_arg;
};

/* Fills the numbers of a point from a finished run. */
int smg_point_of_run(const struct smg_world *w, const struct smg_records *r, const struct smg_run_stats *s,
                     struct smg_point_result *out);

/* fig11: TTFT, TTST and TBT against batch size 1..6 for full, partial and smartgen, one prompt per prefill GPU (DP = batch).
 * Writes fig11.csv, fig11.svg, fig11-narrow.svg (panels one above the other), fig11.png and the caption fig11.txt into outdir.
 * Each appears complete or not at all. */
int smg_figure_fig11(const struct smg_figure_job *job, struct smg_diag *diag);

/* Folder of the gnuplot scripts and the report's template: $SMARTGEN_PLOTS, else beside an uninstalled program, else the
 * installed one. */
const char *smg_plots_dir(void);

#endif
