/* Tasks in child processes, fig11's files, and the report made from them. */
#include "tests/folder_fixture.h"

#include <signal.h>

#include "experiments/csv.h"
#include "experiments/figures.h"
#include "experiments/report.h"

/* ---- Child processes ---- */

static int square(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    (void)arg;
    (void)diag;
    *(uint64_t *)result = i * i;
    return SMG_OK;
}

static int fail_at_5(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    if (i != 5)
        return square(arg, i, result, diag);
    strcpy(diag->text, "five");
    return SMG_ERR_RANGE;
}

static int die_at_3(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    if (i == 3)
        raise(SIGKILL);
    return square(arg, i, result, diag);
}

static void count_calls(void *arg, size_t done, size_t total)
{
    size_t *calls = arg;

    assert_int_equal(++*calls, done);
    assert_int_equal(total, 20);
}

static void test_forks(void **state)
{
    uint64_t result[20] = {0};
    size_t calls = 0;
    struct smg_forks f = {square, NULL, 20, 3, sizeof result[0], count_calls, &calls};
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_OK);
    assert_int_equal(calls, 20);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(result[i], i * i);
    f.jobs = 0;
    f.progress = NULL;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_OK);
    f.task = fail_at_5;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_ERR_RANGE);
    assert_string_equal(diag.text, "five");
    f.task = die_at_3;
    f.jobs = 100;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_ERR_LOST);
    assert_string_equal(diag.text, "task 3: ended by signal 9");
    f.tasks = 0;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_OK);
}

/* ---- fig11 ---- */

/* Not a simulation: numbers that show which point they belong to. */
static int fake_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    int scheme = !strcmp(s->scheme, "full") ? 3 : !strcmp(s->scheme, "partial") ? 2 : 1;

    (void)arg;
    (void)diag;
    *out = (struct smg_point_result){
        .ttft_s = 0.5, .ttst_s = 0.25 * scheme * s->workload.requests, .tbt_s = 0.125 * s->workload.requests};
    out->ttft_p95_s = out->ttst_p95_s = out->tbt_p95_s = 1;
    out->on_demand_ratio = scheme == 3 ? NAN : 0.25;
    out->bytes[SMG_PATH_PUSH] = 6881280000;
    out->synthetic_importance = 1;
    return SMG_OK;
}

static int no_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    (void)arg;
    (void)out;
    strcpy(diag->text, "no engine");
    return s->workload.requests == 4 && !strcmp(s->scheme, "full") ? SMG_ERR_UNSUPPORTED : SMG_OK;
}

static int have_gnuplot(void)
{
    return !system("gnuplot --version >/dev/null 2>&1");
}

static void test_fig11(void **state)
{
    struct smg_figure_job job = {fake_point, NULL, 2, *state, NULL, NULL};
    struct smg_diag diag = {""};
    struct smg_csv c;
    char *text;
    int status;

    if (!have_gnuplot()) {
        assert_int_equal(smg_figure_fig11(&job, &diag), SMG_ERR_NOT_FOUND);
        assert_int_equal(entries_in(*state), 0);
        skip();
    }
    status = smg_figure_fig11(&job, &diag);
    if (status)
        fail_msg("%s", diag.text);
    assert_int_equal(smg_csv_read(file_in(*state, "fig11.csv"), &c, &diag), SMG_OK);
    assert_int_equal(c.rows, 18);
    assert_string_equal(smg_csv_cell(&c, 11, 0), "partial");
    assert_string_equal(smg_csv_cell(&c, 11, 1), "6");
    assert_string_equal(smg_csv_cell(&c, 11, 3), "3");
    smg_csv_free(&c);
    text = file_text(file_in(*state, "fig11.txt"));
    assert_non_null(strstr(text, "Importance: synthetic. Selection: recorded."));
    free(text);
    text = file_text(file_in(*state, "fig11.svg"));
    assert_non_null(strstr(text, "</svg>"));
    assert_non_null(strstr(text, "smartgen"));
    free(text);
    assert_true(file_exists(file_in(*state, "fig11.png")));
    assert_int_equal(entries_in(*state), 5);
}

static void test_failed_point(void **state)
{
    struct smg_figure_job job = {no_point, NULL, 2, *state, NULL, NULL};
    struct smg_diag diag = {""};

    assert_int_equal(smg_figure_fig11(&job, &diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "fig11, full, batch 4: no engine");
    assert_int_equal(entries_in(*state), 0);
}

/* ---- The report ---- */

static void put_run(const char *out, const char *name, const char *digest)
{
    char folder[1024], text[1024];

    snprintf(folder, sizeof folder, "%s", file_in(out, name));
    assert_int_equal(mkdir(folder, 0777), 0);
    file_put(file_in(folder, "run.json"), "{\"engine\": \"tcp<1>\", \"seed\": 42, \"synthetic\": {\"importance\": true},"
                                          " \"inputs\": [{\"input\": \"scenario\", \"name\": \"scaled.yaml\"}]}");
    snprintf(text, sizeof text,
             "{\"requests\": {\"count\": 6}, \"ttft_s\": {\"mean\": 0.123}, \"ttst_s\": {\"mean\": null}, "
             "\"tbt_request_mean_s\": {\"mean\": 0.5},"
             " \"paths\": {\"proactive\": {\"received_bytes\": 5000000}}%s%s%s}",
             digest ? ", \"digest\": \"" : "", digest ? digest : "", digest ? "\"" : "");
    file_put(file_in(folder, "summary.json"), text);
}

/* The page after report: no place is left open, nothing is loaded from elsewhere. */
static char *report_text(const char *out)
{
    struct smg_diag diag = {""};
    char *text;

    if (smg_report_write(out, &diag))
        fail_msg("%s", diag.text);
    text = file_text(file_in(out, "report.html"));
    assert_null(strstr(text, "{{"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "src="));
    assert_null(strstr(text, "<link"));
    return text;
}

static void test_empty_report(void **state)
{
    char *text = report_text(*state);

    assert_non_null(strstr(text, "Nothing has been simulated yet."));
    assert_non_null(strstr(text, "smartgen figures fig11"));
    assert_non_null(strstr(text, "smartgen emu SCENARIO"));
    assert_int_equal(entries_in(*state), 1);
    free(text);
}

static void test_report_of_figure(void **state)
{
    struct smg_figure_job job = {fake_point, NULL, 2, *state, NULL, NULL};
    struct smg_diag diag = {""};
    char *text;

    if (!have_gnuplot())
        skip();
    assert_int_equal(smg_figure_fig11(&job, &diag), SMG_OK);
    text = report_text(*state);
    assert_non_null(strstr(
        text, "smartgen makes the second token 1.5 s after the first: 3 times sooner than full transfer (4.5 s), and 2 times "
              "sooner than partial transfer (3 s)."));
    assert_non_null(strstr(text, "<tr><td>partial</td><td>0.5</td><td>3</td><td>0.75</td><td>0 B</td><td>6.88 GB</td>"));
    assert_non_null(strstr(text, "id='wide_gpPt0'"));
    assert_non_null(strstr(text, "xlink:href='#narrow_gpPt"));
    assert_null(strstr(text, "'#gpPt"));
    assert_null(strstr(text, "color=\"black\""));
    free(text);
}

static void test_report_of_runs(void **state)
{
    char *text;

    put_run(*state, "emu-full", "00ff");
    put_run(*state, "emu-smartgen", "00ff");
    put_run(*state, "emu-sim-full", NULL);
    put_run(*state, "sim-full", NULL);
    put_run(*state, "sim-partial", NULL);
    put_run(*state, "sim-smartgen", NULL);
    text = report_text(*state);
    assert_non_null(strstr(
        text, "<tr><td>full</td><td>sim (tcp&lt;1&gt;)</td><td>0.123</td><td>&ndash;</td><td>0.5</td><td>&ndash;</td></tr>"));
    assert_non_null(
        strstr(text, "<tr><td>full</td><td>emu (tcp&lt;1&gt;)</td><td>0.123</td><td>&ndash;</td><td>0.5</td><td>00ff</td></tr>"));
    assert_non_null(strstr(text, "equal in all 2 runs that digest them: <strong>yes</strong>"));
    assert_non_null(strstr(text, "seed 42; importance <em>synthetic</em>, selection recorded"));
    assert_non_null(strstr(text, "smartgen emu scaled.yaml --set scheme=SCHEME"));
    assert_non_null(strstr(text, "<td>5 MB</td>"));
    free(text);

    put_run(*state, "emu-partial", "00fe");
    text = report_text(*state);
    assert_non_null(strstr(text, "equal in all 3 runs that digest them: <strong>no</strong>"));
    free(text);
}

static void test_damaged_run(void **state)
{
    struct smg_diag diag = {""};

    put_run(*state, "emu-full", NULL);
    file_put(file_in(*state, "emu-full/summary.json"), "{");
    assert_int_equal(smg_report_write(*state, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "emu-full/summary.json"));
    assert_false(file_exists(file_in(*state, "report.html")));
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forks),     IN_FOLDER(test_fig11),
        IN_FOLDER(test_failed_point),     IN_FOLDER(test_empty_report),
        IN_FOLDER(test_report_of_figure), IN_FOLDER(test_report_of_runs),
        IN_FOLDER(test_damaged_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
