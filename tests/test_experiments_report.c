/* report.html: what it says of runs, honestly also when smartgen loses; the timeline it draws; what is missing; its bytes. */
#include "tests/folder_fixture.h"

#include <jansson.h>

#include "experiments/report.h"
#include "experiments/report_timeline.h"

/* ---- Runs ---- */

static void put_run(const char *out, const char *name, double ttft_s, double ttst_s, double tbt_s)
{
    char folder[1024], text[1024];

    snprintf(folder, sizeof folder, "%s", file_in(out, name));
    assert_int_equal(mkdir(folder, 0777), 0);
    file_put(file_in(folder, "run.json"),
             "{\"version\": \"9.8.7\", \"driver\": \"sim\", \"engine\": \"native\", \"seed\": 42, \"synthetic\": {\"selection\": "
             "true},"
             " \"inputs\": [{\"input\": \"scenario\", \"name\": \"a&b.yaml\", \"fnv1a64\": \"0123456789abcdef\"}],"
             " \"scenario\": {\"model\": \"tiny\", \"prefill\": {\"gpu\": \"l20\"}, \"decode\": {\"link_gbps\": 25.0},"
             " \"workload\": {\"kind\": \"batch\", \"prompt_tokens\": 500, \"output_tokens\": 4}, \"records\": {\"timeline\": "
             "true}}}");
    snprintf(text, sizeof text,
             "{\"requests\": {\"count\": 6}, \"ttft_s\": {\"mean\": %g}, \"ttst_s\": {\"mean\": %g}, \"tbt_request_mean_s\": "
             "{\"mean\": %g}}",
             ttft_s, ttst_s, tbt_s);
    file_put(file_in(folder, "summary.json"), text);
}

static char *report_text(const char *out)
{
    struct smg_diag diag = {""};

    if (smg_report_write(out, &diag))
        fail_msg("%s", diag.text);
    return file_text(file_in(out, "report.html"));
}

static void assert_says(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("the page does not say '%s'", what);
}

static void three_runs(const char *out, double ttst_s, double tbt_s)
{
    put_run(out, "sim-full", 0.5, 2, 0.4);
    put_run(out, "sim-partial", 0.5, 1, 0.5);
    put_run(out, "sim-smartgen", 0.5, ttst_s, tbt_s);
}

static void test_gain(void **state)
{
    char *text;

    three_runs(*state, 0.5, 0.4);
    text = report_text(*state);
    assert_says(text, "<strong>Selective transfer pays here.</strong>");
    assert_says(
        text, "0.5 s after the first: 4 times sooner than full transfer (2 s), and 2 times sooner than partial transfer (1 s).");
    assert_says(text, "<b>smartgen</b> <span class=\"value\">0.5 s</span> <span class=\"ratio gain\">4.00&times; sooner</span>"
                      "<i style=\"width:25.00%\"></i>");
    assert_says(text, "<b>partial</b> <span class=\"value\">0.5 s</span> <span class=\"ratio loss\">1.25&times; later</span>");
    assert_says(text, "6 requests at once, 500 prompt and 4 output tokens each");
    assert_says(text, "<em>synthetic</em>: selection</li>");
    free(text);
}

static void test_loss(void **state)
{
    char *text;

    three_runs(*state, 4, 0.8);
    text = report_text(*state);
    assert_says(text, "<strong>Selective transfer does not pay here.</strong>");
    assert_says(text,
                "4 s after the first: 2 times later than full transfer (2 s), and 4 times later than partial transfer (1 s).");
    assert_says(text, "<span class=\"ratio loss\">2.00&times; later</span>");
    free(text);
}

static void test_trade(void **state)
{
    char *text;

    three_runs(*state, 1, 0.8);
    text = report_text(*state);
    assert_says(text, "<strong>Selective transfer is a trade here.</strong>");
    assert_says(text, "at the same time as partial transfer");
    free(text);
}

/* 1 part in 50 is no difference. */
static void test_no_difference(void **state)
{
    char *text;

    three_runs(*state, 1.99, 0.401);
    text = report_text(*state);
    assert_says(text, "<strong>Selective transfer changes nothing here.</strong>");
    assert_says(text, "at the same time as full transfer");
    free(text);
}

/* Folder, command, digest, inputs and version of each run; text of files is no markup. */
static void test_provenance(void **state)
{
    char *text;

    three_runs(*state, 1, 0.4);
    file_put(file_in(*state, "fig02.csv"), "a,b\n1,2\n");
    text = report_text(*state);
    assert_says(text,
                "<code>sim-partial</code></td><td class=\"text wide-cell\"><code>smartgen sim a&amp;b.yaml --set scheme=partial "
                "--timeline -o OUT/sim-partial</code></td><td class=\"text\">0123456789abcdef</td><td class=\"text\">seed 42; "
                "<em>synthetic</em> selection</td><td class=\"text\">9.8.7</td>");
    assert_says(text, "for s in full partial smartgen; do smartgen sim a&amp;b.yaml --set scheme=$s");
    /* FNV-1a of the 8 bytes above, computed apart. */
    assert_says(text, "<td class=\"text\"><code>fig02.csv</code></td><td class=\"text\">6c1480fd529a9f01</td>");
    free(text);
}

/* ---- Figures ---- */

/* What gnuplot draws in black becomes the page's colour, ids become unique, names of plots and titles go. */
static void test_figure(void **state)
{
    static const char svg[] = "<?xml?>\n<svg viewBox=\"0 0 400 90\"><title>fig02_wide</title><g id=\"gnuplot_canvas\">"
                              "<g id=\"fig02_wide_plot_1\"><title>full</title><path stroke='black' d='gpPt' id='gpPt0'/></g>"
                              "<use xlink:href='#gpPt0' color='rgb(  0, 114, 178)'/></g></svg>";
    char *text;

    file_put(file_in(*state, "fig02.txt"), "fig02. A title & more.\nThe rest.\nSeed 1.\n");
    file_put(file_in(*state, "fig02.svg"), svg);
    file_put(file_in(*state, "fig02-narrow.svg"), svg);
    text = report_text(*state);
    assert_says(text, "<h3><span class=\"id\">fig02</span> A title &amp; more</h3>");
    assert_says(text, "<div class=\"wide\" style=\"max-width:440px\" role=\"img\" aria-label=\"A title &amp; more\">");
    assert_says(
        text, "<g id=\"fig02_wide_gnuplot_canvas\"><g><path stroke='currentColor' d='fig02_wide_gpPt' id='fig02_wide_gpPt0'/></g>"
              "<use xlink:href='#fig02_wide_gpPt0' color='rgb(  0, 114, 178)'/></g></svg>");
    assert_says(text, "id='fig02_narrow_gpPt0'");
    assert_says(text, "<figcaption>The rest.\nSeed 1.\n</figcaption>");
    assert_says(text, "Not all figures have been drawn yet");
    free(text);
}

/* ---- The timeline ---- */

static const char timeline[] =
    "{\"traceEvents\":[\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"prefill 1\"}},\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":7,\"tid\":0,\"args\":{\"name\":\"decode </script>\"}},\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":65536,\"tid\":0,\"args\":{\"name\":\"requests\"}},\n"
    "{\"name\":\"token 2\",\"cat\":\"decode\",\"ph\":\"X\",\"pid\":65536,\"tid\":1,\"ts\":30.0,\"dur\":5,\"args\":{\"request\":0,"
    "\"remote_entries\":3}},\n"
    "{\"name\":\"prefill\",\"cat\":\"prefill\",\"ph\":\"X\",\"pid\":65536,\"tid\":1,\"ts\":10.0,\"dur\":20,\"args\":{\"request\":"
    "0}},\n"
    "{\"name\":\"push\",\"cat\":\"push\",\"ph\":\"X\",\"pid\":1,\"tid\":9,\"ts\":11.0,\"dur\":1,\"args\":{\"request\":0,"
    "\"bytes\":8}},\n"
    "{\"name\":\"attention\",\"cat\":\"GPU "
    "main\",\"ph\":\"X\",\"pid\":7,\"tid\":4,\"ts\":30.0,\"dur\":1,\"args\":{\"layer\":0}},\n"
    "{\"name\":\"remote_recv\",\"cat\":\"receive\",\"ph\":\"X\",\"pid\":7,\"tid\":5,\"ts\":30.0,\"dur\":1,\"args\":{\"layer\":0}}"
    ",\n"
    "{\"name\":\"token\",\"cat\":\"control\",\"ph\":\"X\",\"pid\":7,\"tid\":6,\"ts\":30.0,\"dur\":1,\"args\":{\"bytes\":0}}\n"
    "]}\n";

/* The data that the page's script draws. */
static json_t *timeline_data(const char *page)
{
    const char *at = strstr(page, "id=\"timeline-data\">"), *end;
    json_error_t error;
    json_t *j;

    assert_non_null(at);
    at += strlen("id=\"timeline-data\">");
    end = strstr(at, "</script>");
    assert_non_null(end);
    j = json_loadb(at, (size_t)(end - at), 0, &error);
    if (!j)
        fail_msg("line %d: %s", error.line, error.text);
    return j;
}

static void test_timeline(void **state)
{
    char *text;
    json_t *j, *rows;

    put_run(*state, "emu-sim-smartgen", 0.5, 1, 0.4);
    file_put(file_in(*state, "emu-sim-smartgen/timeline.json"), timeline);
    text = report_text(*state);
    j = timeline_data(text);
    assert_int_equal(json_array_size(j), 1);
    rows = json_object_get(json_array_get(j, 0), "rows");
    assert_int_equal(json_array_size(rows), 3); /* one request, decode, prefill; no receives, no messages without bytes */
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "name")), "request 0");
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 1), "of")), "decode </script>");
    assert_says(text, "\"name\":\"request 0\",\"strips\":[[[100,200,1],[200,50,0,2,3]]]}"); /* sorted, starts as differences */
    assert_says(text, "\"cut\":-1,\"requests\":1,\"shown\":1,\"operations\":2");
    json_decref(j);
    free(text);
}

/* A page whose headline is of another scenario says so beside the timeline. */
static void test_other_scenario(void **state)
{
    static const char run[] = "{\"driver\": \"sim\", \"engine\": \"native\", \"inputs\": [{\"input\": \"scenario\", \"name\": "
                              "\"small.yaml\", \"fnv1a64\": \"fedcba9876543210\"}], \"scenario\": {}}";
    char *text;

    three_runs(*state, 1, 0.4);
    file_put(file_in(*state, "sim-full/timeline.json"), timeline);
    put_run(*state, "emu-sim-smartgen", 0.5, 1, 0.4);
    file_put(file_in(*state, "emu-sim-smartgen/run.json"), run);
    file_put(file_in(*state, "emu-sim-smartgen/timeline.json"), timeline);
    text = report_text(*state);
    assert_says(text, "\"folder\":\"sim-full\",\"family\":\"sim\",\"scheme\":\"full\",\"driver\":\"sim\",\"other\":\"\"");
    assert_says(text, "\"scheme\":\"smartgen\",\"driver\":\"sim\",\"other\":\"small.yaml\"");
    free(text);
}

/* ---- Simulation beside the engine ---- */

/* A run of the engine that took more than 1.5 times what was simulated is remarked, another is not. */
static void test_busy_host(void **state)
{
    char *text;

    put_run(*state, "emu-sim-full", 0.1, 1, 0.4);
    put_run(*state, "emu-full", 0.5, 1, 0.4);
    put_run(*state, "emu-sim-partial", 0.1, 1, 0.4);
    put_run(*state, "emu-partial", 0.149, 1, 0.4);
    text = report_text(*state);
    assert_says(
        text,
        "<td class=\"long\">TTFT 5.00, TTST 1.00, TBT 1.00; <strong>host was busy or too slow for this scenario</strong></td>");
    assert_says(text, "<td class=\"long\">TTFT 1.49, TTST 1.00, TBT 1.00</td>");
    free(text);
}

/* More operations than a page bears: the first are kept, and where they end is told. */
static void test_cut(void **state)
{
    char path[1024];
    struct smg_shown shown;
    struct smg_diag diag = {""};
    FILE *f;

    snprintf(path, sizeof path, "%s", file_in(*state, "t.json"));
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"traceEvents\":[", f);
    for (int i = 0; i < 2 * SMG_SHOWN_OPERATIONS; i++) /* two start together, the last ones first in the file */
        fprintf(f, "%s{\"name\":\"ffn\",\"cat\":\"GPU main\",\"ph\":\"X\",\"pid\":7,\"tid\":4,\"ts\":%d,\"dur\":1,\"args\":{}}",
                i ? "," : "", SMG_SHOWN_OPERATIONS - i / 2);
    for (int i = 0; i < 100; i++)
        fprintf(f,
                ",{\"name\":\"prefill\",\"cat\":\"prefill\",\"ph\":\"X\",\"pid\":65536,\"tid\":4,\"ts\":0,\"dur\":1,\"args\":{"
                "\"request\":%d}}",
                i);
    fputs("]}", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(smg_shown_read(path, &shown, &diag), SMG_OK);
    assert_int_equal(shown.operations, 2 * SMG_SHOWN_OPERATIONS);
    assert_int_equal(shown.requests, 100);
    assert_int_equal(shown.slices, SMG_SHOWN_REQUESTS + SMG_SHOWN_OPERATIONS);
    assert_int_equal(shown.cut, 10 * (SMG_SHOWN_OPERATIONS / 2 + 1)); /* starts count from 1 */
    assert_int_equal(shown.end, 10 * (SMG_SHOWN_OPERATIONS + 1));
    smg_shown_free(&shown);
}

static void test_bad_timeline(void **state)
{
    struct smg_diag diag = {""};

    put_run(*state, "sim-full", 0.5, 1, 0.4);
    file_put(file_in(*state, "sim-full/timeline.json"), "{\"traceEvents\":{}}");
    assert_int_equal(smg_report_write(*state, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "sim-full/timeline.json: key 'traceEvents': expected an array"));
    file_put(file_in(*state, "sim-full/timeline.json"),
             "{\"traceEvents\":[1,{\"ph\":\"X\"},{\"ph\":\"X\",\"pid\":-1,\"args\":3}]}");
    free(report_text(*state));
    assert_false(file_exists(file_in(*state, "report.html.tmp")));
}

/* ---- The same folder twice ---- */

static void test_same_bytes(void **state)
{
    char *first, *second;

    three_runs(*state, 1, 0.4);
    file_put(file_in(*state, "sim-full/timeline.json"), timeline);
    first = report_text(*state);
    second = report_text(*state);
    assert_string_equal(first, second);
    assert_null(strstr(first, *state)); /* nor does it say where it was written */
    free(first);
    free(second);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_gain),         IN_FOLDER(test_loss),       IN_FOLDER(test_trade),          IN_FOLDER(test_no_difference),
        IN_FOLDER(test_provenance),   IN_FOLDER(test_figure),     IN_FOLDER(test_timeline),       IN_FOLDER(test_cut),
        IN_FOLDER(test_bad_timeline), IN_FOLDER(test_same_bytes), IN_FOLDER(test_other_scenario), IN_FOLDER(test_busy_host),
    };

    return cmocka_run_group_tests_name("experiments: report", tests, NULL, NULL);
}
