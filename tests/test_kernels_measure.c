/* Fits of measured times, on synthetic ones: known lines come back, and what is no line is refused. And that a measurement
 * counts bytes as the cost models do; its times are nobody's business here. */
#include "core/cost.h"
#include "kernels/smg_measure.h"
#include "tests/world_fixture.h"

static void near_at(double got, double expected, double relative, int line)
{
    if (!(fabs(got - expected) <= relative * fabs(expected)))
        fail_msg("line %d: %.12g, expected %.12g within %g of it", line, got, expected, relative);
}
#define assert_within(got, expected, relative) near_at((got), (expected), (relative), __LINE__)

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
    assert_within(f.intercept, 5e-6, 1e-12);
    assert_within(1 / f.slope, 20e9, 1e-12);
    assert_within(f.found, f.intercept, 0);
    assert_within(f.r2, 1, 1e-12);
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
    assert_within(f.slope, 1 / 20e9, 1e-9);
    assert_within(f.worst, 0.5, 0.01); /* it is off by half of itself */
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
    assert_within(f.slope, 1 / 20e9, 0.05);
    assert_true(f.rms > 0.02 && f.rms < 0.12);
    /* The same as the fit that knows no fixed part. */
    errors(y, N, above);
    assert_int_equal(smg_fit_origin(x, y, above, N, &g, &diag), SMG_OK);
    assert_within(g.slope, f.slope, 0);
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
    assert_within(f.intercept, -3e-5, 1e-9);
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
    assert_within(f.factor, 3e9, 1e-12);
    assert_within(f.exponent, 0.8, 1e-12);
    assert_true(f.rms < 1e-12 && f.exponent_error < 1e-12);
    assert_int_equal(smg_fit_power(threads, rate, 2, &f, &diag), SMG_OK);
    assert_within(f.exponent, 0.8, 1e-12);
    assert_true(f.exponent_error == 0);
    rate[3] *= 1.2;
    assert_int_equal(smg_fit_power(threads, rate, 4, &f, &diag), SMG_OK);
    assert_true(f.exponent > 0.81 && f.exponent_error > 0.01 && f.worst > 0.02);
}

/* ---- Measurements ---- */

/* A model small enough for sanitizers. */
static void small_world(struct smg_world *w, enum smg_selector selector)
{
    fixture_world(w);
    w->model.q_heads = 4;
    w->model.kv_heads = 2;
    w->model.head_dim = 64;
    w->scenario.selector = selector;
    w->scenario.hack.bits = 2;
    w->scenario.hack.group = 64;
    /* So the models give bytes. */
    w->decode_gpu.select_Bps = w->decode_gpu.split_Bps = w->decode_gpu.memory_Bps = 1;
    w->decode_gpu.decode_layer_overhead_s = 0;
}

static void check_point(const struct smg_world *w, const struct smg_measure_series *s, const struct smg_measure_point *p)
{
    uint64_t entries = (uint64_t)p->rows * p->k;

    assert_true(p->seconds > 0 && p->error_s > 0 && p->samples >= 3 && p->calls >= 1);
    switch (s->what) {
    case SMG_MEASURE_SELECT:
        assert_within(p->bytes, smg_cost_select_s(w, p->tokens), 1e-12);
        break;
    case SMG_MEASURE_SPLIT:
        assert_within(p->bytes, smg_cost_split_s(w, (double)entries), 1e-12);
        break;
    case SMG_MEASURE_ATTENTION:
        assert_within(p->bytes, smg_cost_attention_s(w, entries), 1e-12);
        break;
    case SMG_MEASURE_UNPACK:
        assert_within(p->bytes, (double)p->tokens * (double)smg_model_token_layer_bytes(&w->model), 1e-12);
        break;
    case SMG_MEASURE_GATHER:
        assert_within(p->bytes, (double)entries * (double)smg_model_entry_bytes(&w->model), 1e-12);
        break;
    }
}

static uint32_t told;
static void tell(void *arg, uint32_t done, uint32_t of)
{
    (void)arg;
    assert_true(done <= of);
    told = done;
}

/* A machine that does other work may give times that are no line; then the series before that one are what there is. */
static void test_bytes(void **state)
{
    static const struct {
        enum smg_selector selector;
        const char *backend, *kernel;
    } runs[] = {{SMG_SELECTOR_INFINIGEN, "cpu", "scores"},
                {SMG_SELECTOR_HATA, "cpu", "hash_scores"},
                {SMG_SELECTOR_QUEST, "reference", "page_scores"},
                {SMG_SELECTOR_ORACLE, "cpu", "scores"}};

    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
        struct smg_measure_plan plan = {.backend = runs[r].backend, .quick = 1, .progress = tell};
        struct smg_measurement m;
        struct smg_diag diag = {""};
        struct smg_world w;
        int status;
        small_world(&w, runs[r].selector);
        status = smg_measure_run(&w, &plan, &m, &diag);
        if (status && status != SMG_ERR_RANGE)
            fail_msg("%s: %s", runs[r].kernel, diag.text);
        assert_int_equal(told, m.n);
        assert_true(status || m.n >= 5);
        for (size_t i = 0; i < m.n; i++) {
            assert_null(m.series[i].skipped);
            assert_true(m.series[i].n >= SMG_FIT_MIN_POINTS);
            for (size_t p = 0; p < m.series[i].n; p++)
                check_point(&w, &m.series[i], &m.series[i].point[p]);
        }
        if (m.n)
            assert_string_equal(m.series[0].kernel, runs[r].kernel);
    }
}

/* What cannot be measured is left out, with the reason. */
static void test_skipped(void **state)
{
    struct smg_measure_plan plan = {.backend = "cpu", .quick = 1};
    struct smg_measurement m;
    struct smg_diag diag = {""};
    struct smg_world w;

    (void)state;
    small_world(&w, SMG_SELECTOR_HATA);
    w.scenario.selection.hash_bits = 40;
    w.scenario.hack.group = 48;
    w.model.head_dim = 320; /* a multiple of neither 48 nor anything that attention takes */
    smg_measure_run(&w, &plan, &m, &diag);
    assert_true(m.n >= 1);
    for (size_t i = 0; i < m.n; i++)
        assert_true(!m.series[i].skipped == (m.series[i].what == SMG_MEASURE_SPLIT || m.series[i].what == SMG_MEASURE_GATHER));
}

static int at_once(void)
{
    return 1;
}

static void test_refused_runs(void **state)
{
    struct smg_measure_plan stopped = {.backend = "cpu", .quick = 1, .stop = at_once}, unknown = {.backend = "none", .quick = 1};
    struct smg_measurement m;
    struct smg_diag diag = {""};
    struct smg_world w;

    (void)state;
    small_world(&w, SMG_SELECTOR_INFINIGEN);
    assert_int_equal(smg_measure_run(&w, &stopped, &m, &diag), SMG_ERR_INTERRUPTED);
    diag.text[0] = '\0';
    assert_int_equal(smg_measure_run(&w, &unknown, &m, &diag), SMG_ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "'none'"));
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
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_refused_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
