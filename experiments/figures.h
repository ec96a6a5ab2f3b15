/* Figures: each is a sweep file (experiments/sweep.h). Its points are simulated in child processes, a point that several figures
 * or the validation table need only once, written to a data file, and drawn by gnuplot. */
#ifndef SMG_EXPERIMENTS_FIGURES_H
#define SMG_EXPERIMENTS_FIGURES_H

#include "core/stats.h"
#include "core/world.h"
#include "experiments/forks.h"

enum { SMG_POINT_TOKENS = 128 };

/* What figures and validation need of one run. NAN: does not exist. No pointers: it crosses a pipe. */
struct smg_point_result {
    double ttft_s, ttst_s, tbt_s; /* means over requests, TBT of the requests' own means */
    double ttft_p95_s, ttst_p95_s, tbt_p95_s;
    double on_demand_ratio;         /* remote over selected entries of the whole run; NAN: nothing selects */
    double tp_s, tt_s;              /* of the first request, with all that start with it: prefill, full transfer */
    double kv_bytes;                /* of all requests' prompts */
    double kr_blocks, total_blocks; /* of the first request */
    double bytes[SMG_PATHS];        /* received */
    /* By token id from 1, means over requests. */
    double gap_s[SMG_POINT_TOKENS], token_ratio[SMG_POINT_TOKENS];
    uint32_t tokens; /* of them that exist */
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
    int (*stop)(void); /* as in struct smg_forks; what is finished stays */
};

/* Fills the numbers of a point from a finished run. */
int smg_point_of_run(const struct smg_world *w, const struct smg_records *r, const struct smg_run_stats *s,
                     struct smg_point_result *out);
/* Closed forms only, nothing runs. */
int smg_point_of_plan(const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag);

/* A number of a point by the name that data files and validation.yaml use. */
struct smg_metric {
    const char *name;
    size_t offset; /* of a double in struct smg_point_result */
};
extern const struct smg_metric smg_metrics[]; /* ended by a NULL name */
double smg_metric_of(const struct smg_metric *m, const struct smg_point_result *p);

/* What smg_figures_run knows: fig02 ... fig15 and validation. NULL-terminated. */
extern const char *const smg_figure_ids[];

/* Makes the figures ids[n] of smg_figure_ids (n 0: all) in outdir. Of each: ID.csv, ID.svg, ID-narrow.svg (panels one above the
 * other), ID.png and the caption ID.txt, and what its sweep asks for; of validation: validation.csv and validation.txt. Each
 * appears complete or not at all. A point that fails costs only what needs it: the others are written, and the first failure is
 * returned. */
int smg_figures_run(const struct smg_figure_job *job, const char *const *ids, size_t n, struct smg_diag *diag);

/* Folder of the gnuplot scripts and the report's template: $SMARTGEN_PLOTS, else beside an uninstalled program, else the
 * installed one. */
const char *smg_plots_dir(void);

#endif
