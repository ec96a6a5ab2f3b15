/* Fits of measured times, on synthetic ones: known lines come back, and what is no line is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/smg_measure.h"

static void near_at(double got, double expected, double relative, int line)
{
    if (!(fabs(got - expected) <= relative * fabs(expected)))
        fail_msg("line %d: %.12g, expected %.12g within %g of it", line, got, expected, relative);
}
#define assert_near(got, expected, relative) near_at((got), (expected), (relative), __LINE__)

enum { N = 6 };
static const double x[N] = {1e6, 2e6, 4e6, 8e6, 16e6, 32e6};

/* Errors of 1%, as the clock would give. */
static void errors(const double *y, size_t n, double *error)
{
    for (size_t i = 0; i < n; i++)
        error[i] = 0.01 * y[i];
}

static int fit(const double *y, size_t n, struct smg_line_fit *f, struct smg_diag *diag)
{
    double error[N];

    memset(diag, 0, sizeof *diag);
    errors(y, n, error);
    return smg_fit_line(x, y, error, n, f, diag);
}

/* A line without noise comes back to rounding: the terms differ by 30 times, so 1e-12 leaves three digits. */
static void test_exact(void **state)
{
    double y[N];
    struct smg_line_fit f;
    struct smg_diag diag;

    (void)state;
    for (int i = 0; i < N; i++)
        y[i] = 5e-6 + x[i] / 20e9;
    assert_int_equal(fit(y, N, &f, &diag), SMG_OK);
    assert_near(f.intercept, 5e-6, 1e-12);
    assert_near(1 / f.slope, 20e9, 1e-12);
    assert_near(f.found, f.intercept, 0);
    assert_near(f.r2, 1, 1e-12);
    assert_true(f.rms < 1e-12 && f.worst < 1e-12);
    assert_int_equal(f.points, N);
    assert_int_equal(f.origin, 0);
    /* The standard errors are those of 1% points, not of the residuals, which are none. */
    assert_true(f.intercept_error > 1e-7 && f.intercept_error < 5e-6);
    assert_true(f.slope_error > 0 && f.slope_error < 0.02 * f.slope);
}

/* Weights: a wild point with a large error moves nothing; the same point with a small one does. */
static void test_weights(void **state)
{
    double y[N], error[N];
    struct smg_line_fit f;
    struct smg_diag diag = {""};

    (void)state;
    for (int i = 0; i < N; i++)
        y[i] = 5e-6 + x[i] / 20e9;
    errors(y, N, error);
    y[3] *= 2;
    error[3] = 1e6;
    assert_int_equal(smg_fit_line(x, y, error, N, &f, &diag), SMG_OK);
    assert_near(f.slope, 1 / 20e9, 1e-9);
    assert_near(f.worst, 0.5, 0.01); /* it is off by half of itself */
    error[3] = 0.01 * y[3];
    smg_fit_line(x, y, error, N, &f, &diag);
    assert_true(fabs(f.slope * 20e9 - 1) > 0.02);
}

/* Noise of 10% around a line through the origin: the intercept that comes out below 0 is none. */
static void test_origin_within_error(void **state)
{
    static const double noise[N] = {-0.10, 0.06, -0.04, 0.02, 0.08, 0.05};
    double y[N], above[N];
    struct smg_line_fit f, g;
    struct smg_diag diag;

    (void)state;
    for (int i = 0; i < N; i++)
        y[i] = (1 + noise[i]) * x[i] / 20e9;
    assert_int_equal(fit(y, N, &f, &diag), SMG_OK);
    assert_true(f.found < 0);
    assert_true(f.intercept == 0 && f.intercept_error == 0);
    assert_int_equal(f.origin, 1);
    assert_near(f.slope, 1 / 20e9, 0.05);
    assert_true(f.rms > 0.02 && f.rms < 0.12);
    /* The same as the fit that knows no fixed part. */
    errors(y, N, above);
    assert_int_equal(smg_fit_origin(x, y, above, N, &g, &diag), SMG_OK);
    assert_near(g.slope, f.slope, 0);
}

/* A line without noise that meets 0 at some size: the intercept is below 0 and means it. */
static void test_negative_intercept(void **state)
{
    double y[N];
    struct smg_line_fit f;
    struct smg_diag diag;

    (void)state;
    for (int i = 0; i < N; i++)
        y[i] = x[i] / 20e9 - 3e-5; /* from 20 us on */
    assert_int_equal(fit(y, N, &f, &diag), SMG_ERR_RANGE);
    assert_near(f.intercept, -3e-5, 1e-9);
    assert_int_equal(f.origin, 0);
    assert_non_null(strstr(diag.text, "intercept -"));
    assert_non_null(strstr(diag.text, "6 points"));
}

static void test_no_slope(void **state)
{
    static const double y[N] = {6e-3, 5e-3, 4e-3, 3e-3, 2e-3, 1e-3};
    struct smg_line_fit f;
    struct smg_diag diag;

    (void)state;
    assert_int_equal(fit(y, N, &f, &diag), SMG_ERR_RANGE);
    assert_true(f.slope < 0);
    assert_non_null(strstr(diag.text, "slope -"));
}

static void test_refused_points(void **state)
{
    static const double good[N] = {1, 2, 3, 4, 5, 6}, same[N] = {1, 1, 1, 1, 1, 1}, none[N] = {1, 2, 0, 4, 5, 6},
                        nan_y[N] = {1, 2, NAN, 4, 5, 6};
    struct smg_line_fit f = {.points = 99};
    struct smg_power_fit p = {.points = 99};
    struct smg_diag diag;

    (void)state;
    assert_int_equal(fit(good, 2, &f, &diag), SMG_ERR_INVALID);
    assert_string_equal(diag.text, "2 points: expected 3 to 64");
    assert_int_equal(fit(good, 0, &f, &diag), SMG_ERR_INVALID);
    assert_int_equal(smg_fit_line(same, good, good, N, &f, &diag), SMG_ERR_INVALID);
    assert_string_equal(diag.text, "all points have the same size");
    assert_int_equal(smg_fit_line(good, good, none, N, &f, &diag), SMG_ERR_INVALID);
    assert_int_equal(smg_fit_line(good, nan_y, good, N, &f, &diag), SMG_ERR_INVALID);
    assert_int_equal(smg_fit_origin(none, good, good, N, &f, &diag), SMG_ERR_INVALID);
    assert_int_equal(smg_fit_power(good, good, 1, &p, &diag), SMG_ERR_INVALID);
    assert_int_equal(smg_fit_power(same, good, N, &p, NULL), SMG_ERR_INVALID);
    assert_int_equal(f.points, 99); /* untouched */
    assert_int_equal(p.points, 99);
}

/* rate = c n^e comes back; two points leave no error to tell. */
static void test_power(void **state)
{
    static const double threads[4] = {1, 2, 4, 8};
    double rate[4];
    struct smg_power_fit f;
    struct smg_diag diag = {""};

    (void)state;
    for (int i = 0; i < 4; i++)
        rate[i] = 3e9 * pow(threads[i], 0.8);
    assert_int_equal(smg_fit_power(threads, rate, 4, &f, &diag), SMG_OK);
    assert_near(f.factor, 3e9, 1e-12);
    assert_near(f.exponent, 0.8, 1e-12);
    assert_true(f.rms < 1e-12 && f.exponent_error < 1e-12);
    assert_int_equal(smg_fit_power(threads, rate, 2, &f, &diag), SMG_OK);
    assert_near(f.exponent, 0.8, 1e-12);
    assert_true(f.exponent_error == 0);
    rate[3] *= 1.2;
    assert_int_equal(smg_fit_power(threads, rate, 4, &f, &diag), SMG_OK);
    assert_true(f.exponent > 0.81 && f.exponent_error > 0.01 && f.worst > 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_origin_within_error),
        cmocka_unit_test(test_negative_intercept),
        cmocka_unit_test(test_no_slope),
        cmocka_unit_test(test_refused_points),
        cmocka_unit_test(test_power),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
