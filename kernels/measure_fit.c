/* Lines and powers through measured points. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/smg_measure.h"

enum { POINTS_MAX = 64 };

static int refuse(struct smg_diag *diag, int status, const char *text)
{
    if (diag)
        snprintf(diag->text, sizeof diag->text, "%s", text);
    return status;
}

static int is_positive(double x)
{
    return isfinite(x) && x > 0;
}

/* Numbers above 0, and not all of one x. */
static int check(const double *x, const double *y, const double *error, size_t n, size_t least, struct smg_diag *diag)
{
    char text[96];
    size_t same = 0;

    if (n < least || n > POINTS_MAX) {
        snprintf(text, sizeof text, "%zu points: expected %zu to %d", n, least, POINTS_MAX);
        return refuse(diag, SMG_ERR_INVALID, text);
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_positive(x[i]) || !is_positive(y[i]) || (error && !is_positive(error[i]))) {
            snprintf(text, sizeof text, "point %zu: expected numbers above 0, found %g, %g", i, x[i], y[i]);
            return refuse(diag, SMG_ERR_INVALID, text);
        }
        same += x[i] == x[0];
    }
    return same == n ? refuse(diag, SMG_ERR_INVALID, "all points have the same size") : SMG_OK;
}

static void residuals(const double *x, const double *y, size_t n, struct smg_line_fit *f)
{
    double sum = 0;

    f->worst = 0;
    for (size_t i = 0; i < n; i++) {
        double r = fabs(y[i] - (f->intercept + f->slope * x[i])) / y[i];
        sum += r * r;
        f->worst = fmax(f->worst, r);
    }
    f->rms = sqrt(sum / (double)n);
}

/* Weighted squares of the deviations from the weighted mean. */
static double total_squares(const double *y, const double *w, size_t n)
{
    double sum_w = 0, mean = 0, total = 0;

    for (size_t i = 0; i < n; i++)
        sum_w += w[i];
    for (size_t i = 0; i < n; i++)
        mean += w[i] / sum_w * y[i];
    for (size_t i = 0; i < n; i++)
        total += w[i] * (y[i] - mean) * (y[i] - mean);
    return total;
}

static double explained(double squares, double total)
{
    return total > 0 ? 1 - squares / total : 1;
}

static void through_origin(const double *x, const double *y, const double *w, size_t n, struct smg_line_fit *f)
{
    double cov, squares;

    gsl_fit_wmul(x, 1, w, 1, y, 1, n, &f->slope, &cov, &squares);
    f->slope_error = sqrt(cov * fmax(1, squares / (double)(n - 1)));
    f->intercept = f->intercept_error = 0;
    f->r2 = explained(squares, total_squares(y, w, n));
    f->origin = 1;
    residuals(x, y, n, f);
}

static void weights(const double *error, size_t n, double *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] = 1 / (error[i] * error[i]);
}

static int refuse_fit(const struct smg_line_fit *f, double reach, struct smg_diag *diag)
{
    char text[256];

    snprintf(text, sizeof text,
             f->slope > 0
                 ? "no straight line: intercept %.3g +- %.2g s, below 0 by more than %.2g s; slope %.4g s/B, residuals %.1f%%, "
                   "%zu points"
                 : "no straight line: intercept %.3g +- %.2g s (95%%: %.2g s), slope %.4g s/B, residuals %.1f%%, %zu points",
             f->intercept, f->intercept_error, reach, f->slope, 100 * f->rms, f->points);
    return refuse(diag, SMG_ERR_RANGE, text);
}

int smg_fit_line(const double *x, const double *y, const double *error, size_t n, struct smg_line_fit *out, struct smg_diag *diag)
{
    struct smg_line_fit f = {.points = n};
    double w[POINTS_MAX], cov00, cov01, cov11, squares, scale, reach;
    int status = check(x, y, error, n, SMG_FIT_MIN_POINTS, diag);

    if (status)
        return status;
    weights(error, n, w);
    gsl_fit_wlinear(x, 1, w, 1, y, 1, n, &f.intercept, &f.slope, &cov00, &cov01, &cov11, &squares);
    scale = fmax(1, squares / (double)(n - 2));
    f.intercept_error = sqrt(cov00 * scale);
    f.slope_error = sqrt(cov11 * scale);
    f.found = f.intercept;
    f.r2 = explained(squares, total_squares(y, w, n));
    residuals(x, y, n, &f);
    reach = gsl_cdf_tdist_Pinv(0.975, (double)(n - 2)) * f.intercept_error;
    if (f.slope > 0 && f.intercept < 0 && f.intercept + reach >= 0)
        through_origin(x, y, w, n, &f);
    *out = f;
    return f.slope > 0 && f.intercept >= 0 ? SMG_OK : refuse_fit(&f, reach, diag);
}

int smg_fit_origin(const double *x, const double *y, const double *error, size_t n, struct smg_line_fit *out,
                   struct smg_diag *diag)
{
    struct smg_line_fit f = {.points = n};
    double w[POINTS_MAX];
    int status = check(x, y, error, n, SMG_FIT_MIN_POINTS, diag);

    if (status)
        return status;
    weights(error, n, w);
    through_origin(x, y, w, n, &f);
    *out = f;
    return SMG_OK;
}

int smg_fit_power(const double *x, const double *y, size_t n, struct smg_power_fit *out, struct smg_diag *diag)
{
    struct smg_power_fit f = {.points = n};
    double lx[POINTS_MAX], ly[POINTS_MAX], c, cov00, cov01, cov11, squares, sum = 0;
    int status = check(x, y, NULL, n, 2, diag);

    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        lx[i] = log(x[i]);
        ly[i] = log(y[i]);
    }
    gsl_fit_linear(lx, 1, ly, 1, n, &c, &f.exponent, &cov00, &cov01, &cov11, &squares);
    f.factor = exp(c);
    f.exponent_error = n > 2 ? sqrt(cov11) : 0; /* two points leave nothing to tell it from */
    for (size_t i = 0; i < n; i++) {
        double r = fabs(y[i] - f.factor * pow(x[i], f.exponent)) / y[i];
        sum += r * r;
        f.worst = fmax(f.worst, r);
    }
    f.rms = sqrt(sum / (double)n);
    *out = f;
    return SMG_OK;
}
