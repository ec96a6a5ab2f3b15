/* The CSV reader's words about bad files, and smartgen summarize over folders made by hand. */
#include "tests/folder_fixture.h"

#include "experiments/csv.h"
#include "experiments/summarize.h"

static void assert_refused(const char *folder, const char *text, const char *complaint)
{
    struct smg_diag diag = {""};
    struct smg_csv c;

    file_put(file_in(folder, "x.csv"), text);
    assert_int_equal(smg_csv_read(file_in(folder, "x.csv"), &c, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, complaint));
    assert_null(c.text);
}

static void test_csv(void **state)
{
    struct smg_diag diag = {""};
    struct smg_csv c;
    size_t column = 9;
    double x;

    file_put(file_in(*state, "x.csv"), "a,b\r\n1.5,\r\ntwo,3\n");
    assert_int_equal(smg_csv_read(file_in(*state, "x.csv"), &c, &diag), SMG_OK);
    assert_int_equal(c.rows, 2);
    assert_int_equal(smg_csv_column(&c, "c", &column, &diag), SMG_ERR_PARSE);
    assert_int_equal(column, 9);
    assert_int_equal(smg_csv_column(&c, "b", &column, &diag), SMG_OK);
    assert_int_equal(smg_csv_number(&c, 0, column, &x, &diag), SMG_OK);
    assert_true(isnan(x));
    assert_int_equal(smg_csv_number(&c, 0, 0, &x, &diag), SMG_OK);
    assert_near(x, 1.5, 0);
    assert_int_equal(smg_csv_number(&c, 1, 0, &x, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "x.csv:3: field 'a': expected a number, found 'two'"));
    assert_string_equal(smg_csv_cell(&c, 1, 1), "3");
    assert_int_equal(smg_csv_header(&c, "a,b", &diag), SMG_OK);
    assert_int_equal(smg_csv_header(&c, "a,c", &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "x.csv:1: column 2: expected 'c', found 'b'"));
    assert_int_equal(smg_csv_header(&c, "a", &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "x.csv:1: column 2: expected none, found 'b'"));
    assert_int_equal(smg_csv_header(&c, "a,b,c", &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "x.csv:1: column 3: expected 'c', found ''"));
    smg_csv_free(&c);

    assert_refused(*state, "", "x.csv:1: expected a header line");
    assert_refused(*state, "a,b\n1,2\n1\n", "x.csv:3: expected 2 cells, found 1");
    assert_refused(*state, "a,b\n1,2,3\n", "x.csv:2: expected 2 cells, found 3");
    assert_refused(*state, "\na,b\n", "x.csv:1: expected a header line");
    assert_refused(*state, "a,b\n1,2\n\n", "x.csv:3: expected 2 cells, found 1");
    assert_refused(*state, "a,b\n1,2\n1,0.45", "x.csv:3: the line does not end: the file was cut short");
    assert_refused(*state, "a,b", "x.csv:1: the line does not end");
    assert_refused(*state, "a,b\n1,\"2\"\n", "x.csv:2: found a quote, these files have none");
    assert_refused(*state, "a,,c\n1,2,3\n", "x.csv:1: column 2 has no name");
    assert_refused(*state, "a,b,a\n1,2,3\n", "x.csv:1: two columns 'a'");
}

/* Lines times columns would be terabytes; the file's own size bounds what is asked for. */
static void test_wide_csv(void **state)
{
    enum { N = 400000 };
    char *text = malloc(2 * N + 1);

    assert_non_null(text);
    memset(text, ',', N);
    memset(text + N, '\n', N);
    text[2 * N] = '\0';
    assert_refused(*state, text, "x.csv:2: expected 400001 cells, found 1");
    free(text);
}

/* ---- Record folders: the files that summarize reads, made by hand ---- */

#define HEADER                                                                                                                   \
    "request,status,reason,arrival_s,prompt_tokens,output_tokens,prefill_instance,decode_instance,mode,kr_blocks,"               \
    "prefill_start_s,prefill_end_s,push_done_s,decode_join_s,first_token_s,second_token_s,finish_s,ttft_s,ttst_s,tbt_mean_s,"    \
    "metadata_bytes,proactive_bytes,on_demand_bytes,speculative_bytes,duplicate_bytes,messages,on_demand_ratio\n"

/* A row: the columns that are read, the others empty. */
#define ROW(id, status, ttft, ttst, tbt, ratio)                                                                                  \
    id "," status ",,0,100,4,1,7,selective,5,,,,,,,," ttft "," ttst "," tbt ",,,,,,," ratio "\n"

static void put_run_json(const char *dir, unsigned requests, const char *scenario)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"driver\": \"sim\", \"engine\": \"native\", \"version\": \"1\", \"requests\": %u, \"inputs\": [], \"scenario\": "
             "{%s}}",
             requests, scenario);
    file_put(file_in(dir, "run.json"), text);
}

static void put_run(const char *folder, const char *name, unsigned requests, const char *scenario, const char *rows)
{
    char text[2048], dir[1024];

    snprintf(dir, sizeof dir, "%s", file_in(folder, name));
    assert_int_equal(mkdir(dir, 0777), 0);
    snprintf(text, sizeof text, HEADER "%s", rows);
    file_put(file_in(dir, "requests.csv"), text);
    put_run_json(dir, requests, scenario);
}

/* One blank where there were several. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++)
        if (*from != ' ' || to == text || to[-1] != ' ')
            *to++ = *from;
    *to = '\0';
}

static char warned[2048];

static void collect(void *arg, const char *text)
{
    size_t used = strlen(arg);

    assert_ptr_equal(arg, warned);
    snprintf(warned + used, sizeof warned - used, "%s\n", text);
}

/* The table of folder/NAME..., blanks squeezed; to be freed. */
static char *table_of(const char *folder, const char *const *names, size_t n)
{
    char path[8][1024], *text = NULL;
    const char *dirs[8];
    struct smg_diag diag = {""};
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    assert_in_range(n, 1, 8);
    for (size_t i = 0; i < n; i++) {
        snprintf(path[i], sizeof path[i], "%s", file_in(folder, names[i]));
        dirs[i] = path[i];
    }
    if (smg_summarize(dirs, n, f, collect, warned, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(fclose(f), 0);
    squeeze(text);
    return text;
}

static void test_summarize(void **state)
{
    static const char *const names[] = {"one", "two"};
    char *text;

    put_run(*state, "one", 3, "\"seed\": 1",
            ROW("0", "finished", "1", "2", "0.5", "") ROW("1", "finished", "3", "4", "", "") ROW("2", "failed", "", "", "", ""));
    put_run(*state, "two", 1, "\"seed\": 2, \"records\": {\"tokens\": false}", ROW("0", "finished", "4", "5", "0.25", "0.5"));
    text = table_of(*state, names, 2);
    /* two values 1 and 3: t(0.975, 1) = 12.706, standard error 1 */
    assert_non_null(strstr(text, "/one 3 1 2 +- 13 3 +- 13 0.5 -\n"));
    assert_non_null(strstr(text, "/two 1 0 4 5 0.25 0.5\n"));
    assert_non_null(strstr(text, "mean of runs 4 1 3 +- 13 4 +- 13 0.375 +- 1.6 0.5\n"));
    assert_null(strstr(text, "differ in"));
    free(text);
}

/* Numbers of a run that broke off, or whose books do not balance, are not shown without a word. */
static void test_broken_off(void **state)
{
    static const char *const names[] = {"good", "broken", "law"};
    char broken[1024], law[1024], expected[4096];

    put_run(*state, "good", 1, "\"seed\": 1", ROW("0", "finished", "1", "2", "0.5", ""));
    put_run(*state, "broken", 3, "\"seed\": 2",
            ROW("0", "waiting", "", "", "", "") ROW("1", "finished", "3", "4", "", "") ROW("2", "waiting", "", "", "", ""));
    put_run(*state, "law", 1, "\"seed\": 3", ROW("0", "finished", "1", "2", "0.5", ""));
    snprintf(broken, sizeof broken, "%s", file_in(*state, "broken"));
    snprintf(law, sizeof law, "%s", file_in(*state, "law"));
    file_put(file_in(file_in(*state, "good"), "summary.json"), "{\"conservation\": [{\"law\": \"a\", \"holds\": true}]}");
    file_put(file_in(law, "summary.json"),
             "{\"conservation\": [{\"law\": \"a\", \"holds\": true}, {\"law\": \"b\", \"holds\": false}]}");
    warned[0] = '\0';
    free(table_of(*state, names, 3));
    snprintf(expected, sizeof expected,
             "%s: 2 of 3 requests neither finished nor failed: the run broke off\n"
             "%s: a conservation law does not hold: see summary.json\n",
             broken, law);
    assert_string_equal(warned, expected);
    warned[0] = '\0';
}

/* Runs of another scheme, model or anything but the seed are no repetitions: no mean over them. */
static void test_groups(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    char *text;

    put_run(*state, "a", 1, "\"scheme\": \"full\"", ROW("0", "finished", "1", "1", "1", "0"));
    put_run(*state, "b", 1, "\"scheme\": \"partial\"", ROW("0", "finished", "2", "2", "2", "0.5"));
    put_run(*state, "c", 1, "\"scheme\": \"full\", \"seed\": 5", ROW("0", "finished", "3", "3", "3", "0"));
    put_run(*state, "d", 1, "\"scheme\": \"full\", \"prefill\": {\"nodes\": 4}", ROW("0", "finished", "9", "9", "9", "0"));
    text = table_of(*state, names, 4);
    assert_non_null(strstr(text, "mean of 2 runs scheme=full prefill.nodes=3 2 0 2 +- 13 2 +- 13 2 +- 13 0 +- 0\n"));
    assert_non_null(
        strstr(text, "No mean over runs that differ in more than their seed; these differ in scheme prefill.nodes.\n"));
    assert_null(strstr(text, "\nmean of runs "));
    free(text);
    text = table_of(*state, names, 2);
    assert_null(strstr(text, "\nmean of"));
    assert_non_null(strstr(text, "these differ in scheme.\n"));
    free(text);
    text = table_of(*state, names, 1);
    assert_null(strstr(text, "\nmean of"));
    assert_null(strstr(text, "differ in"));
    free(text);
}

/* A folder counts once, whatever it is called; a copy counts, and is told. */
static void test_copies(void **state)
{
    static const char *const names[] = {"one", "copy", "other"};
    char one[1024], again[1024], expected[4096];
    const char *dirs[] = {one, again};
    struct smg_diag diag = {""};

    put_run(*state, "one", 1, "\"seed\": 1", ROW("0", "finished", "1", "2", "0.5", ""));
    put_run(*state, "copy", 1, "\"seed\": 1", ROW("0", "finished", "1", "2", "0.5", ""));
    put_run(*state, "other", 1, "\"seed\": 2", ROW("0", "finished", "1", "3", "0.5", ""));
    snprintf(one, sizeof one, "%s", file_in(*state, "one"));
    snprintf(again, sizeof again, "%s", file_in(*state, "./other/../one/"));
    assert_int_equal(smg_summarize(dirs, 2, stdout, NULL, NULL, &diag), SMG_ERR_INVALID);
    assert_non_null(strstr(diag.text, "the same folder as"));
    warned[0] = '\0';
    free(table_of(*state, names, 3));
    snprintf(again, sizeof again, "%s", file_in(*state, "copy"));
    snprintf(expected, sizeof expected, "%s: has the seed and the scenario of %s: the two are not independent\n", again, one);
    assert_string_equal(warned, expected);
    warned[0] = '\0';
}

/* Of many keys the first are named. */
static void test_many_differences(void **state)
{
    static const char *const names[] = {"a", "b"};
    char *text;

    put_run(*state, "a", 1, "\"seed\": 1", ROW("0", "finished", "1", "1", "1", "0"));
    put_run(*state, "b", 1,
            "\"gdr\": false, \"scheme\": \"full\", \"prefix_hit\": 0.5, \"selector\": \"quest\", \"blocks_per_layer\": 7, "
            "\"prefill\": {\"nodes\": 4, \"vcpus\": 9}, \"decode\": {\"vcpus\": 9}",
            ROW("0", "finished", "2", "2", "2", "0.5"));
    text = table_of(*state, names, 2);
    assert_non_null(strstr(text, " and 2 more.\n"));
    assert_null(strstr(text, "..."));
    free(text);
}

/* The folder one, and what is said of it after a file of it was replaced. */
static void assert_says(const char *folder, const char *name, const char *text, int status, const char *complaint)
{
    char dir[1024];
    const char *dirs[] = {dir};
    struct smg_diag diag = {""};
    char *kept = file_text(file_in(file_in(folder, "one"), name));

    snprintf(dir, sizeof dir, "%s", file_in(folder, "one"));
    if (text)
        file_put(file_in(dir, name), text);
    else
        assert_int_equal(unlink(file_in(dir, name)), 0);
    assert_int_equal(smg_summarize(dirs, 1, stdout, NULL, NULL, &diag), status);
    if (!strstr(diag.text, complaint))
        fail_msg("'%s' is not in '%s'", complaint, diag.text);
    file_put(file_in(dir, name), kept);
    free(kept);
}

static void test_refused(void **state)
{
    static const struct {
        const char *file, *text;
        int status;
        const char *complaint;
    } bad[] = {
        {"run.json", NULL, SMG_ERR_IO, "/one/run.json: cannot open: No such file"},
        {"requests.csv", NULL, SMG_ERR_IO, "/one/requests.csv: cannot open: No such file"},
        {"run.json", "{", SMG_ERR_PARSE, "/one/run.json:1:1: "},
        {"run.json", "{}", SMG_ERR_PARSE, "/one/run.json: scenario: expected an object"},
        {"run.json", "{\"scenario\": {\"sede\": 1}}", SMG_ERR_PARSE,
         "/one/run.json: scenario: key 'sede': unknown key; did you mean 'seed'?"},
        {"run.json", "{\"scenario\": {}}", SMG_ERR_PARSE, "/one/run.json: key 'driver': expected a text"},
        {"run.json", "{\"driver\": \"sim\", \"engine\": \"native\", \"version\": \"1\", \"scenario\": {}}", SMG_ERR_PARSE,
         "/one/run.json: key 'requests': expected the number of requests"},
        {"requests.csv", "request,status\n", SMG_ERR_PARSE, "/one/requests.csv:1: column 3: expected 'reason', found ''"},
        {"requests.csv", HEADER ROW("0", "finishd", "1", "2", "", ""), SMG_ERR_PARSE,
         "/one/requests.csv:2: field 'status': expected finished, failed or waiting, found 'finishd'"},
        {"requests.csv", HEADER ROW("0", "finished", "1", "2", "", "") ROW("2", "finished", "1", "2", "", ""), SMG_ERR_PARSE,
         "/one/requests.csv:3: field 'request': expected 1, found '2'"},
        {"requests.csv", HEADER ROW("0", "finished", "", "", "", ""), SMG_ERR_PARSE,
         "/one/requests.csv:2: field 'ttft_s': expected a number, since the request finished, found ''"},
        {"requests.csv", HEADER ROW("0", "finished", "1", "x", "", ""), SMG_ERR_PARSE,
         "/one/requests.csv:2: field 'ttst_s': expected a number, found 'x'"},
        {"requests.csv", HEADER ROW("0", "finished", "1", "-1", "", ""), SMG_ERR_PARSE,
         "/one/requests.csv:2: field 'ttst_s': expected a number >= 0, found '-1'"},
        {"requests.csv", HEADER, SMG_ERR_PARSE, "/one/requests.csv: 0 rows, run.json says 1 requests"},
    };

    put_run(*state, "one", 1, "\"seed\": 1", ROW("0", "waiting", "", "", "", ""));
    free(table_of(*state, (const char *const[]){"one"}, 1));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_says(*state, bad[i].file, bad[i].text, bad[i].status, bad[i].complaint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_csv, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_wide_csv, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_summarize, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_broken_off, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_groups, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_copies, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_many_differences, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_refused, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
