/* Tasks in child processes, sweep files, figures, and the report made from them. */
#include "tests/folder_fixture.h"

#include <math.h>
#include <signal.h>

#include "experiments/csv.h"
#include "experiments/figure_draw.h"
#include "experiments/figures.h"
#include "experiments/report.h"
#include "experiments/sweep.h"

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

static int never_ends(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    pause();
    return square(arg, i, result, diag);
}

static int at_once(void)
{
    return 1;
}

static int when_asked_again(void)
{
    static int asked;

    return asked++ > 2;
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
    struct smg_forks f = {square, NULL, 20, 3, sizeof result[0], count_calls, &calls, NULL};
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
    f.stop = at_once;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_ERR_INTERRUPTED);
    f.task = never_ends;
    f.stop = when_asked_again;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_ERR_INTERRUPTED);
    f.tasks = 0;
    assert_int_equal(smg_forks_run(&f, result, &diag), SMG_OK);
}

/* ---- Figures ---- */

/* Not a simulation: numbers that show which point they belong to. */
static int fake_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    int scheme = !strcmp(s->scheme, "full") ? 3 : !strcmp(s->scheme, "partial") ? 2 : 1;

    (void)arg;
    (void)diag;
    memset(out, 0, sizeof *out);
    out->ttft_s = 0.5;
    out->ttst_s = 0.25 * scheme * s->workload.requests;
    out->tbt_s = 0.125 * s->workload.requests;
    out->ttft_p95_s = out->ttst_p95_s = out->tbt_p95_s = 1;
    out->on_demand_ratio = scheme == 3 ? NAN : 0.25;
    out->bytes[SMG_PATH_PUSH] = 6881280000;
    out->synthetic_importance = 1;
    out->tokens = 64;
    for (uint32_t t = 0; t < SMG_POINT_TOKENS; t++)
        out->gap_s[t] = t > 0 && t < 64 ? s->speculative.ratio * t : NAN;
    return SMG_OK;
}

static int no_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    if (s->workload.requests != 4 || strcmp(s->scheme, "full"))
        return fake_point(arg, s, out, diag);
    strcpy(diag->text, "no engine");
    return SMG_ERR_UNSUPPORTED;
}

static int have_gnuplot(void)
{
    return !system("gnuplot --version >/dev/null 2>&1");
}

static int make(const char *outdir, size_t jobs, const char *id, smg_run_point_fn point, struct smg_diag *diag)
{
    struct smg_figure_job job = {point, NULL, jobs, outdir, NULL, NULL, NULL};

    return smg_figures_run(&job, &id, 1, diag);
}

static void test_fig11(void **state)
{
    struct smg_diag diag = {""};
    struct smg_csv c;
    char *text;
    int status;

    if (!have_gnuplot()) {
        assert_int_equal(make(*state, 2, "fig11", fake_point, &diag), SMG_ERR_NOT_FOUND);
        assert_int_equal(entries_in(*state), 0);
        skip();
    }
    status = make(*state, 2, "fig11", fake_point, &diag);
    if (status)
        fail_msg("%s", diag.text);
    assert_int_equal(smg_csv_read(file_in(*state, "fig11.csv"), &c, &diag), SMG_OK);
    assert_int_equal(c.rows, 30);
    assert_string_equal(smg_csv_cell(&c, 11, 0), "partial");
    assert_string_equal(smg_csv_cell(&c, 11, 1), "6");
    assert_string_equal(smg_csv_cell(&c, 11, 3), "3");
    smg_csv_free(&c);
    text = file_text(file_in(*state, "fig11.txt"));
    assert_non_null(strstr(text, "Importance: synthetic. Selection: recorded."));
    assert_non_null(strstr(text, "Seed 1."));
    free(text);
    text = file_text(file_in(*state, "fig11.svg"));
    assert_non_null(strstr(text, "</svg>"));
    assert_non_null(strstr(text, "smartgen-hata"));
    free(text);
    assert_true(file_exists(file_in(*state, "fig11.png")));
    assert_int_equal(entries_in(*state), 5);
}

/* A failed point costs its figure, and no other one. */
static void test_failed_point(void **state)
{
    static const char *const ids[] = {"fig11", "fig02"};
    struct smg_figure_job job = {no_point, NULL, 2, *state, NULL, NULL, NULL};
    struct smg_diag diag = {""};

    assert_int_equal(smg_figures_run(&job, ids, 2, &diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "fig11/full/4: no engine");
    assert_false(file_exists(file_in(*state, "fig11.csv")));
    if (have_gnuplot())
        assert_true(file_exists(file_in(*state, "fig02.png")));
    assert_int_equal(make(*state, 1, "fig1", fake_point, &diag), SMG_ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "unknown figure 'fig1'; did you mean"));
}

static void note_total(void *arg, size_t done, size_t total)
{
    (void)done;
    *(size_t *)arg = total;
}

/* fig12's points at 25 Gbit/s are fig11's at batch 6: run once. */
static void test_shared_points(void **state)
{
    static const char *const ids[] = {"fig11", "fig12"};
    size_t total = 0;
    struct smg_figure_job job = {fake_point, NULL, 2, *state, note_total, &total, NULL};
    struct smg_diag diag = {""};

    if (!have_gnuplot())
        skip();
    assert_int_equal(smg_figures_run(&job, ids, 2, &diag), SMG_OK);
    assert_int_equal(total, 30 + 15 - 5);
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char *text = file_text(file_in(b, name));

    assert_file_is(file_in(a, name), text);
    free(text);
}

static void test_jobs_do_not_matter(void **state)
{
    static const char *const ids[] = {"fig02", "fig14", "validation"};
    struct smg_figure_job job = {fake_point, NULL, 1, NULL, NULL, NULL, NULL};
    struct smg_diag diag = {""};
    char one[1024], many[1024];

    if (!have_gnuplot())
        skip();
    snprintf(one, sizeof one, "%s", file_in(*state, "one"));
    snprintf(many, sizeof many, "%s", file_in(*state, "many"));
    job.outdir = one;
    assert_int_equal(smg_figures_run(&job, ids, 3, &diag), SMG_OK);
    job.jobs = 3;
    job.outdir = many;
    assert_int_equal(smg_figures_run(&job, ids, 3, &diag), SMG_OK);
    assert_same_file(one, many, "fig02.csv");
    assert_same_file(one, many, "fig02.svg");
    assert_same_file(one, many, "fig14-tokens.csv");
    assert_same_file(one, many, "fig14.txt");
    assert_same_file(one, many, "validation.csv");
    assert_same_file(one, many, "validation.txt");
}

/* ---- Sweep files ---- */

static void test_sweep(void **state)
{
    static const char text[] = "figure: x\n"
                               "base: {workload: {prompt_tokens: 8000}, kr_share: 0.5}\n"
                               "axes:\n"
                               "  - axis: scheme\n"
                               "    points: {full: {scheme: full}, seq: {proactive.ranking: sequential, seed: 7}}\n"
                               "  - {axis: batch, key: workload.requests, values: [1, 2, 3]}\n"
                               "speedup: {axis: scheme, over: seq}\n";
    struct smg_diag diag = {""};
    struct smg_scenario scenario;
    struct smg_sweep s;
    char name[256];

    file_put(file_in(*state, "x.yaml"), text);
    if (smg_sweep_read(file_in(*state, "x.yaml"), &s, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_sweep_points(&s), 6);
    smg_sweep_name(&s, 4, name, sizeof name);
    assert_string_equal(name, "x/seq/2");
    assert_int_equal(smg_sweep_find(&s, "x/seq/2"), 4);
    assert_true(smg_sweep_find(&s, "x/seq/4") == SIZE_MAX);
    assert_int_equal(smg_sweep_reference(&s, 1), 4);
    assert_int_equal(smg_sweep_reference(&s, 4), 4);
    assert_int_equal(smg_sweep_scenario(&s, 4, &scenario, &diag), SMG_OK);
    assert_int_equal(scenario.seed, 7);
    assert_int_equal(scenario.workload.requests, 2);
    assert_int_equal(scenario.workload.prompt_tokens, 8000);
    assert_int_equal(scenario.proactive.kr_blocks, 20000); /* half of 40 layers of 1000 blocks */
    smg_sweep_free(&s);
}

static void test_sweep_errors(void **state)
{
#define AXES   "axes: [{axis: a, key: seed, values: [1, 2]}]\n"
#define TEN(d) #d "0, " #d "1, " #d "2, " #d "3, " #d "4, " #d "5, " #d "6, " #d "7, " #d "8, " #d "9, "
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", "x.yaml:1: empty"},
        {"[1]", "x.yaml:1:1: expected a mapping"},
        {"figure: x\nfigure: [", "x.yaml:3:"},
        {"figure: x\n", "x.yaml:1:1: key 'axes': expected a list"},
        {AXES, "key 'figure' is missing"},
        {"figure: x\naxis: 3\n" AXES, "x.yaml:2:1: key 'axis': unknown key; did you mean 'axes'?"},
        {"figure: x\nfigure: y\n" AXES, "x.yaml:2:1: key 'figure': given twice"},
        {"figure: x\nrun: fast\n" AXES, "x.yaml:2:6: key 'run': expected sim, plan or heat"},
        {"figure: x\ntokens: 500\n" AXES, "x.yaml:2:9: key 'tokens': expected a number in [2, 128]"},
        {"figure: x\nbase: {shceme: full}\n" AXES, "x.yaml:2:16: shceme=full: "},
        {"figure: x\nbase:\n  workload: {requests: many}\n" AXES, "x.yaml:3:24: workload.requests=many: "},
        {"figure: x\nbase: {kr_share: 2}\n" AXES, "key 'kr_share': expected a share in (0, 1]"},
        {"figure: x\nbase: {seed: 1, seed: 2}\n" AXES, "x.yaml:2:17: key 'seed': given twice"},
        {"figure: x\naxes: [{axis: a, key: seed, values: [1, 1]}]\n", "x.yaml:2:41: key '1': given twice"},
        {"figure: x\naxes: [{axis: a, key: seed}]\n", "axis 'a': expected either key and values, or points"},
        {"figure: x\naxes: [{axis: a, points: {b c: {}}}]\n", "expected a name of at most"},
        {"figure: x\n" AXES "speedup: {axis: b, over: 1}\n", "x.yaml:3:10: key 'b': no axis has this name"},
        {"figure: x\n" AXES "speedup: {axis: a, over: 3}\n", "key '3': the axis has no such value"},
        {"figure: x\n" AXES "---\nfigure: y\n", "found a second"},
        {"figure: x\nbase: {a: {}}\n" AXES, "x.yaml:2:11: expected a mapping of scenario keys"},
        {"figure: x\naxes: [{axis: a, key: seed, values: &v [" TEN(1) TEN(2) TEN(3) "40]},\n  {axis: b, key: seed, values: *v}, "
                                                                                    "{axis: c, key: seed, values: *v}]\n",
         "x.yaml:2:7: key 'axes': more than 10000 points"},
    };
#undef AXES
#undef TEN
    struct smg_diag diag;
    struct smg_sweep s;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        file_put(file_in(*state, "x.yaml"), bad[i].text);
        diag.text[0] = '\0';
        assert_int_not_equal(smg_sweep_read(file_in(*state, "x.yaml"), &s, &diag), SMG_OK);
        if (!strstr(diag.text, bad[i].expected))
            fail_msg("case %zu: '%s' does not say '%s'", i, diag.text, bad[i].expected);
    }
    assert_int_equal(smg_sweep_read(file_in(*state, "none.yaml"), &s, &diag), SMG_ERR_IO);
}

/* ---- Heat maps ---- */

static void test_heat(void **state)
{
    static const char text[] = "figure: fig05\nrun: heat\nbase: {scheme: full, workload: {requests: 2, prompt_tokens: 400}}\n"
                               "axes:\n  - {axis: model, key: model, values: [llama-3.1-8b, qwen3-8b, qwen3-14b]}\n"
                               "  - {axis: seed, key: seed, values: [1, 2, 3, 4]}\n";
    struct smg_figure_job job = {NULL, NULL, 2, *state, NULL, NULL, NULL};
    struct smg_diag diag = {""};
    struct smg_sweep s;
    struct smg_csv c;
    double x, sum = 0;

    if (!have_gnuplot())
        skip();
    file_put(file_in(*state, "x.yaml"), text);
    assert_int_equal(smg_sweep_read(file_in(*state, "x.yaml"), &s, &diag), SMG_OK);
    if (smg_figure_heat(&s, &job, &diag))
        fail_msg("%s", diag.text);
    smg_sweep_free(&s);
    assert_int_equal(smg_csv_read(file_in(*state, "fig05.csv"), &c, &diag), SMG_OK);
    assert_int_equal(c.rows, 4 * 100 * (30 + 34 + 38));
    for (size_t i = 0; i < c.rows; i++) {
        assert_int_equal(smg_csv_number(&c, i, 4, &x, &diag), SMG_OK);
        assert_true(x >= 0 && x <= 1);
        sum += x;
    }
    /* Each head picks the same share everywhere, so the mean frequency is the cap. */
    assert_true(fabs(sum / (double)c.rows - 0.2) < 1e-3);
    smg_csv_free(&c);
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
    assert_null(strstr(text, "<script src"));
    assert_null(strstr(text, "src="));
    assert_null(strstr(text, "<link"));
    return text;
}

static void test_empty_report(void **state)
{
    char *text = report_text(*state);

    assert_non_null(strstr(text, "Nothing has been simulated yet."));
    assert_non_null(strstr(text, "smartgen figures"));
    assert_non_null(strstr(text, "smartgen figures validation"));
    assert_non_null(strstr(text, "smartgen emu SCENARIO"));
    assert_int_equal(entries_in(*state), 1);
    free(text);
}

static void test_report_of_figure(void **state)
{
    static const char *const ids[] = {"fig11", "validation"};
    struct smg_figure_job job = {fake_point, NULL, 2, *state, NULL, NULL, NULL};
    struct smg_diag diag = {""};
    char *text;

    if (!have_gnuplot())
        skip();
    assert_int_equal(smg_figures_run(&job, ids, 2, &diag), SMG_OK);
    text = report_text(*state);
    assert_non_null(strstr(text, "<td class=\"id\">P102</td><td class=\"text\">TTST full over smartgen</td>"));
    assert_non_null(strstr(
        text, "smartgen makes the second token 1.5 s after the first: 3 times sooner than full transfer (4.5 s), and 2 times "
              "sooner than partial transfer (3 s)."));
    assert_non_null(strstr(text, "<tr><td>partial</td><td>0.5</td><td>3</td><td>0.75</td><td>0 B</td><td>6.88 GB</td>"));
    assert_non_null(strstr(text, "id='fig11_wide_gpPt0'"));
    assert_non_null(strstr(text, "xlink:href='#fig11_narrow_gpPt"));
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
    assert_non_null(strstr(text,
                           "<tr><td>full</td><td class=\"text\">sim (tcp&lt;1&gt;)</td><td>0.123</td><td>&ndash;</td><td>0.5</td>"
                           "<td class=\"long\">\u2013</td><td class=\"text\">\u2013</td></tr>"));
    assert_non_null(strstr(text,
                           "<tr><td>full</td><td class=\"text\">emu (tcp&lt;1&gt;)</td><td>0.123</td><td>&ndash;</td><td>0.5</td>"
                           "<td class=\"long\">TTFT 1.00, TTST &ndash;, TBT 1.00</td><td class=\"text\">00ff</td></tr>"));
    assert_non_null(strstr(text, "equal in all 2 runs that digest them: <strong>yes</strong>"));
    assert_non_null(strstr(text, "seed 42; <em>synthetic</em> importance</td>"));
    assert_non_null(strstr(text, "smartgen emu scaled.yaml --set scheme=smartgen -o OUT/emu-smartgen"));
    assert_non_null(strstr(text, "<td>5 MB</td>"));
    assert_non_null(strstr(text, "shaped in software"));
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
        cmocka_unit_test(test_forks),       IN_FOLDER(test_fig11),
        IN_FOLDER(test_failed_point),       IN_FOLDER(test_shared_points),
        IN_FOLDER(test_jobs_do_not_matter), IN_FOLDER(test_sweep),
        IN_FOLDER(test_sweep_errors),       IN_FOLDER(test_heat),
        IN_FOLDER(test_empty_report),       IN_FOLDER(test_report_of_figure),
        IN_FOLDER(test_report_of_runs),     IN_FOLDER(test_damaged_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
