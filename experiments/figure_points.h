/* The points of several sweeps, each distinct one run once; private to experiments/. */
#ifndef SMG_EXPERIMENTS_FIGURE_POINTS_H
#define SMG_EXPERIMENTS_FIGURE_POINTS_H

#include "experiments/figures.h"
#include "experiments/sweep.h"

struct smg_point_outcome {
    int status; /* not SMG_OK: diag says why, and there is no result */
    struct smg_diag diag;
    struct smg_point_result result;
};

/* A distinct point. */
struct smg_point {
    char *key; /* scenario and way of running as text: equal keys are the same point */
    struct smg_scenario scenario;
    enum smg_sweep_run run;
    char name[SMG_SWEEP_NAME * (SMG_SWEEP_AXES + 1)]; /* of the first sweep that wants it */
};

struct smg_book {
    struct smg_sweep *sweep; /* [sweeps] */
    size_t **index;          /* [sweeps][points of the sweep] into point[]; SIZE_MAX: not wanted */
    size_t sweeps;
    struct smg_point *point; /* [points] */
    size_t points;
    struct smg_point_outcome *outcome; /* [points] after smg_book_run, else NULL */
};

void smg_book_free(struct smg_book *b);
/* Adds a sweep, which belongs to the book from now on, on error too. SMG_ERR_PARSE: its id is taken. */
int smg_book_add(struct smg_book *b, struct smg_sweep *s, struct smg_diag *diag);
/* Finds a point by the name "fig11/full/6". SMG_ERR_NOT_FOUND. */
int smg_book_find(const struct smg_book *b, const char *name, size_t *sweep, size_t *point, struct smg_diag *diag);
/* Asks for a point to be run. */
int smg_book_want(struct smg_book *b, size_t sweep, size_t point, struct smg_diag *diag);
/* Runs what is wanted. A point that fails is an outcome, not an error. */
int smg_book_run(struct smg_book *b, const struct smg_figure_job *job, struct smg_diag *diag);
/* Of a point that was wanted and run. */
const struct smg_point_outcome *smg_book_outcome(const struct smg_book *b, size_t sweep, size_t point);

#endif
