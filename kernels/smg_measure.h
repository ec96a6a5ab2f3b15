/* How fast a machine's kernels are, in the terms of the simulator's cost models (core/cost.h): times over sizes, and lines fitted
 * through them. Sizes and geometry are a scenario's. Needs a clock, and a machine that does little else meanwhile. */
#ifndef SMG_KERNELS_SMG_MEASURE_H
#define SMG_KERNELS_SMG_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

/* ---- Fits ---- */

enum { SMG_FIT_MIN_POINTS = 3 };

/* y = intercept + slope x by weighted least squares. Standard errors take their scale from the residuals where these are larger
 * than the errors of the points. */
struct smg_line_fit {
    size_t points;
    double intercept, slope;
    double intercept_error, slope_error;
    double found;      /* the intercept before it became 0, origin 1; else the same as intercept */
    double r2;         /* 1 - weighted squares of the residuals / of the deviations from the mean */
    double rms, worst; /* |y - fit| / y: root of the mean square, largest */
    int origin;        /* the line goes through the origin */
};

/* Fits points of x > 0, y > 0, error > 0 (one standard deviation of y). An intercept below 0 that is within its 95% interval
 * (Student's t, n - 2 degrees) becomes 0: the line is fitted again, through the origin. SMG_ERR_INVALID: fewer than
 * SMG_FIT_MIN_POINTS, or points that are no such numbers or all of one x. SMG_ERR_RANGE: an intercept further below 0, or a slope
 * that is not above 0; diag has the figures. *out is filled in with what was found on SMG_ERR_RANGE too. */
int smg_fit_line(const double *x, const double *y, const double *error, size_t n, struct smg_line_fit *out,
                 struct smg_diag *diag);
/* y = slope x, where the model has no fixed part. */
int smg_fit_origin(const double *x, const double *y, const double *error, size_t n, struct smg_line_fit *out,
                   struct smg_diag *diag);

/* y = factor x^exponent: least squares of the logarithms. */
struct smg_power_fit {
    size_t points;
    double factor, exponent;
    double exponent_error; /* 0 for two points */
    double rms, worst;     /* |y - fit| / y */
};

/* At least two different x, all above 0; else SMG_ERR_INVALID. */
int smg_fit_power(const double *x, const double *y, size_t n, struct smg_power_fit *out, struct smg_diag *diag);

/* ---- Measurements ---- */

/* What is measured, and which values of a hardware file that gives. */
enum smg_measured {
    SMG_MEASURE_SELECT,    /* scores of one layer: select_Bps, select_overhead_s */
    SMG_MEASURE_SPLIT,     /* split of one layer: split_Bps, split_overhead_s */
    SMG_MEASURE_ATTENTION, /* attention of one layer: memory_Bps, decode_layer_overhead_s */
    SMG_MEASURE_UNPACK,    /* HACK codes to elements: hack_unpack_Bps */
    SMG_MEASURE_GATHER     /* CPU gather with some number of threads: gather_Bps_per_vcpu, gather_exponent */
};
/* "select", "split", ... */
const char *smg_measured_name(enum smg_measured what);

struct smg_measure_point {
    uint32_t requests, tokens, rows, k; /* of one call; k: entries of a row, 0 where there are no rows */
    double bytes;                       /* as the cost model counts them */
    double seconds, error_s;            /* of one call: median of the samples, its standard error (0.5% at least) */
    uint32_t samples, calls;            /* calls of a sample, timed together */
};

enum { SMG_MEASURE_POINTS = 8, SMG_MEASURE_SERIES = 16 };

/* One kernel at several sizes. */
struct smg_measure_series {
    enum smg_measured what;
    const char *kernel;  /* "hash_scores" */
    uint32_t threads;    /* gather; 0: does not apply */
    const char *skipped; /* why there is nothing; NULL: measured */
    size_t n;
    struct smg_measure_point point[SMG_MEASURE_POINTS];
    struct smg_line_fit fit;
};

struct smg_measurement {
    char where[128];      /* smg_kernels_where of the backend */
    char host_where[128]; /* the same for gather: the CPU, also beside a GPU */
    size_t n;
    struct smg_measure_series series[SMG_MEASURE_SERIES];
    /* Gather rate over threads, B/s: factor, exponent. points 0: one number of threads, so no exponent was found. */
    struct smg_power_fit gather;
};

struct smg_measure_plan {
    const char *backend;
    int quick;                                               /* small sizes, few repetitions: shows that it works */
    int (*stop)(void);                                       /* asked often; not 0: SMG_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *arg, uint32_t done, uint32_t of); /* series; may be NULL */
    void *arg;
};

/* Measures all of it with the sizes of a world's model, selector, prompts and scheme. Each kernel's result is held against the
 * reference backend before it is timed (SMG_ERR_VERIFY: it differs). A series whose fit is refused is measured again, twice at
 * most; SMG_ERR_RANGE: refused still. Other errors as of smg_kernels_open and the kernels. */
int smg_measure_run(const struct smg_world *w, const struct smg_measure_plan *plan, struct smg_measurement *out,
                    struct smg_diag *diag);

#endif
