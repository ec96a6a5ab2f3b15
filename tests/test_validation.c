/* The validation table: expressions over points, its reader, and that no number is left out. */
#include "tests/folder_fixture.h"

#include <math.h>

#include "experiments/csv.h"
#include "experiments/sweep.h"
#include "experiments/validation.h"

/* Numbers that are easy to compute with: TTST 10 times the requests, TBT 2, gaps that are the token id. */
static int fake_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    (void)arg;
    memset(out, 0, sizeof *out);
    if (s->seed == 99) {
        strcpy(diag->text, "refused");
        return SMG_ERR_UNSUPPORTED;
    }
    out->ttst_s = 10.0 * s->workload.requests;
    out->tbt_s = 2;
    out->tp_s = 0.25;
    out->tokens = 20;
    for (uint32_t t = 1; t <= SMG_POINT_TOKENS; t++) {
        out->gap_s[t - 1] = t > 1 && t <= 20 ? t * s->workload.requests : NAN;
        out->token_ratio[t - 1] = t > 1 && t <= 7 ? 0.5 : 0;
    }
    return SMG_OK;
}

/* A book with the points x/1, x/2, x/3 (requests) and y/99, which fails. */
static void open_book(const char *folder, struct smg_book *b)
{
    struct smg_diag diag = {""};
    struct smg_sweep s;

    memset(b, 0, sizeof *b);
    file_put(file_in(folder, "x.yaml"), "figure: x\naxes: [{axis: a, key: workload.requests, values: [1, 2, 3]}]\n");
    file_put(file_in(folder, "y.yaml"), "figure: y\naxes: [{axis: a, key: seed, values: [99]}]\n");
    assert_int_equal(smg_sweep_read(file_in(folder, "x.yaml"), &s, &diag), SMG_OK);
    assert_int_equal(smg_book_add(b, &s, &diag), SMG_OK);
    assert_int_equal(smg_sweep_read(file_in(folder, "y.yaml"), &s, &diag), SMG_OK);
    assert_int_equal(smg_book_add(b, &s, &diag), SMG_OK);
}

/* Asks, runs, computes. */
static int evaluate(const char *folder, const char *text, double *out, struct smg_diag *diag)
{
    struct smg_figure_job job = {fake_point, NULL, 2, folder, NULL, NULL, NULL};
    struct smg_book b;
    int status;

    open_book(folder, &b);
    status = smg_expression(text, &b, out, diag);
    if (!status)
        status = smg_book_run(&b, &job, diag);
    if (!status)
        status = smg_expression(text, &b, out, diag);
    smg_book_free(&b);
    return status;
}

static void test_expressions(void **state)
{
    static const struct {
        const char *text;
        double expected;
    } good[] = {
        {"1 + 2 * 3 - 4 / 2", 5},
        {"-(2 - 5) * 2", 6},
        {"100 * (1 - 0.75)", 25},
        {"ttst_s(x/2)", 20},
        {"ttst_s( x/3 ) / tbt_s(x/1)", 15},
        {"max(ttst_s(x/1), ttst_s(x/3), ttst_s(x/2))", 30},
        {"min(1, tp_s(x/1)) + max(2)", 2.25},
        {"gap_s(x/2, 5)", 10},
        {"gap_s(x/2, gap_s(x/1, 5))", 10},
        {"token_ratio(x/1, 3) + token_ratio(x/1, 8)", 0.5},
        {"last_remote(x/1) - 2", 5},
        {"max_gap_over(x/3, x/1, x/2, 3, 12)", 1.5},
    };
    struct smg_diag diag = {""};
    double x;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (evaluate(*state, good[i].text, &x, &diag))
            fail_msg("%s: %s", good[i].text, diag.text);
        if (!(fabs(x - good[i].expected) < 1e-12))
            fail_msg("%s: %g, expected %g", good[i].text, x, good[i].expected);
    }
}

static void test_bad_expressions(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", "expected a number"},
        {"1 +", "expected a number"},
        {"1 2", "expected an operator, found 2"},
        {"(1", "expected ')'"},
        {"speed(x/1)", "no function or metric is called speed"},
        {"ttst_s(x/4)", "no sweep has a point x/4"},
        {"ttst_s()", "expected the name of a point"},
        {"ttst_s", "expected '('"},
        {"gap_s(x/1)", "expected ','"},
        {"gap_s(x/1, 0)", "expected a token id"},
        {"gap_s(x/1, 1.5)", "expected a token id"},
        {"ttst_s(y/99)", "y/99: refused"},
        {"((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))", "too deep"},
    };
    double x;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct smg_diag diag = {""};
        assert_int_not_equal(evaluate(*state, bad[i].text, &x, &diag), SMG_OK);
        if (!strstr(diag.text, bad[i].expected))
            fail_msg("%s: '%s' does not say '%s'", bad[i].text, diag.text, bad[i].expected);
    }
}

/* ---- The reader ---- */

static void test_reader_errors(void **state)
{
#define ROW "rows:\n  - {row: P1, quantity: q, label: predicted, ours: '1'}\n"
    static const struct {
        const char *table, *reasons, *expected;
    } bad[] = {
        {"sweeps: []\n", "{}", "validation.yaml:1:1: key 'rows': expected a list"},
        {"rows: 3\n", "{}", "validation.yaml:1:7: key 'rows': expected a list"},
        {"rows:\n  - {row: P1, label: predicted, ours: '1'}\n", "{}", "validation.yaml:2:5: key 'quantity' is missing"},
        {"rows:\n  - {row: P1, quantity: 'a, b', label: predicted, ours: '1'}\n", "{}", "no comma, quote or line break here"},
        {"rows:\n  - {row: P1, quantity: q, label: guess, ours: '1'}\n", "{}", "expected calibrated or predicted, found 'guess'"},
        {"rows:\n  - {row: P1, quantity: q, label: predicted, ours: '1', paper: many}\n", "{}",
         "expected a number, found 'many'"},
        {ROW "  - {row: P1, quantity: q, label: predicted, ours: '2'}\n", "{}", "validation.yaml:3:5: row 'P1': given twice"},
        {"rows:\n  - {row: 'P{}', quantity: q, label: predicted, ours: '1', each: ['1,2']}\n", "{}",
         "validation.yaml:2:66: '1,2': no comma, quote or line break here"},
        {ROW "more: 1\n", "{}", "validation.yaml:3:1: key 'more': unknown key"},
        {ROW "sweeps: [{figure: x}]\n", "{}", "key 'axes'"},
        {ROW, "P2: {ours: 1, text: too far}\n", "validation_reasons.yaml:1:1: row 'P2': the table has no such row"},
        {ROW, "P1: {ours: 1, text: 'a, b'}\n", "no comma, quote or line break here"},
        {ROW, "P1: {ours: few, text: a}\n", "key 'ours': expected a number, found 'few'"},
        {ROW, "P1: a\n", "validation_reasons.yaml:1:5: expected a mapping"},
    };
#undef ROW

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct smg_diag diag = {""};
        struct smg_validation v;
        struct smg_book b;
        open_book(*state, &b);
        file_put(file_in(*state, "validation.yaml"), bad[i].table);
        file_put(file_in(*state, "validation_reasons.yaml"), bad[i].reasons);
        assert_int_not_equal(smg_validation_read(*state, &b, &v, &diag), SMG_OK);
        if (!strstr(diag.text, bad[i].expected))
            fail_msg("case %zu: '%s' does not say '%s'", i, diag.text, bad[i].expected);
        smg_book_free(&b);
    }
}

/* ---- The table ---- */

static const char small_table[] = "rows:\n"
                                  "  - {row: P7.a, quantity: q, paper: 4, label: calibrated, ours: 'ttst_s(x/1) / 2'}\n"
                                  "  - {row: P8, quantity: q, paper: 4, relation: <, label: predicted, ours: '5'}\n"
                                  "  - {row: P9, quantity: q, paper: 1, label: predicted, ours: 'ttst_s(y/99)'}\n"
                                  "  - {row: 'g.{}', quantity: '{} g', label: predicted, ours: 'ttst_s(x/{})', each: [1, 2]}\n";

static void test_small_table(void **state)
{
    struct smg_figure_job job = {fake_point, NULL, 2, *state, NULL, NULL, NULL};
    struct smg_diag diag = {""};
    struct smg_validation v;
    struct smg_book b;

    open_book(*state, &b);
    file_put(file_in(*state, "validation.yaml"), small_table);
    file_put(file_in(*state, "validation_reasons.yaml"), "P7.a: {ours: 5.1, text: 5 is 10 over 2.}\nP8: {ours: 4, text: old}\n");
    if (smg_validation_read(*state, &b, &v, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_validation_want(&v, &b, &diag), SMG_OK);
    assert_int_equal(b.points, 3);
    assert_int_equal(smg_book_run(&b, &job, &diag), SMG_OK);
    assert_int_equal(smg_validation_write(&v, &b, *state, &diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "validation: row P9: y/99: refused");
    assert_file_is(file_in(*state, "validation.csv"),
                   "id,row,quantity,condition,relation,paper,ours,error_percent,label,maximum,reason\n"
                   "P7,P7.a,q,,=,4,5,25,calibrated,,5 is 10 over 2.\n"
                   "P8,P8,q,,<,4,5,,predicted,,(written for 4) old\n"
                   "P9,P9,q,,=,1,,,predicted,,no value: y/99: refused\n"
                   ",g.1,1 g,,,,10,,predicted,,\n"
                   ",g.2,2 g,,,,20,,predicted,,\n");
    smg_validation_free(&v);
    smg_book_free(&b);
}

static int has_id(const struct smg_csv *c, const char *id)
{
    for (size_t i = 0; i < c->rows; i++)
        if (!strcmp(smg_csv_cell(c, i, 0), id))
            return 1;
    return 0;
}

/* The real table, every point faked: all numbers of the paper that constants may come from are in it, and what is only predicted
 * has an empty paper column. */
static void test_real_table(void **state)
{
    static const char *const ids[] = {"P015", "P016", "P018", "P019", "P020", "P022", "P023", "P024", "P025", "P049",
                                      "P102", "P103", "P104", "P110", "P111", "P112", "P113", "P114", "P115", "P131",
                                      "P132", "P133", "P134", "P135", "P136", "P137", "P139", "P140", "P141", "P158"};
    struct smg_figure_job job = {fake_point, NULL, 2, *state, NULL, NULL, NULL};
    const char *what = "validation";
    struct smg_diag diag = {""};
    struct smg_csv c;
    size_t open = 0;

    if (smg_figures_run(&job, &what, 1, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(entries_in(*state), 2);
    if (smg_csv_read(file_in(*state, "validation.csv"), &c, &diag))
        fail_msg("%s", diag.text);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (!has_id(&c, ids[i]))
            fail_msg("%s is not in the table", ids[i]);
    for (size_t i = 0; i < c.rows; i++) {
        if (!smg_csv_cell(&c, i, 0)[0])
            assert_string_equal(smg_csv_cell(&c, i, 5), "");
        open += !smg_csv_cell(&c, i, 5)[0];
    }
    assert_true(open >= 100);
    smg_csv_free(&c);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_expressions), IN_FOLDER(test_bad_expressions), IN_FOLDER(test_reader_errors),
        IN_FOLDER(test_small_table), IN_FOLDER(test_real_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
