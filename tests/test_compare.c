/* Two runs side by side: the transfer part of TTST against the closed form, errors against altered folders, and runs that may not
 * be compared. */
#include "tests/folder_fixture.h"

#include "core/cost.h"
#include "experiments/compare.h"
#include "experiments/run.h"
#include "tests/sim_fixture.h"

/* A run of two requests on the native engine, written into FOLDER/NAME. */
static void write_run(const char *folder, const char *name, const char *extra, struct finished_run *run)
{
    struct words w = {.n = 0};
    struct smg_outdir o;
    struct smg_diag diag = {""};
    struct smg_run r;

    words_add(&w, "workload.requests=2");
    words_add(&w, "workload.output_tokens=4");
    words_add(&w, "blocks_per_layer=50");
    words_add(&w, "proactive.ranking=sequential");
    words_add(&w, "records.events=false");
    if (extra)
        words_add(&w, "%s", extra);
    run_words(&w, run);
    r = (struct smg_run){&run->world, run->records, run->stats, "sim", "native", NULL, NULL};
    if (smg_outdir_begin(file_in(folder, name), &o, &diag) || smg_run_write(&o, &r, &diag) || smg_outdir_commit(&o, &diag))
        fail_msg("%s", diag.text);
}

static void write_and_free(const char *folder, const char *name, const char *extra)
{
    struct finished_run run;

    write_run(folder, name, extra, &run);
    run_free(&run);
}

/* Replaces the cell of a column in the row of request 0. */
static void alter(const char *path, size_t column, const char *value)
{
    char *text = file_text(path), *at = strchr(text, '\n') + 1, *end, *changed = calloc(1, strlen(text) + 64);

    assert_non_null(changed);
    while (column--)
        at = strchr(at, ',') + 1;
    end = at + strcspn(at, ",\n");
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, value, end);
    file_put(path, changed);
    free(changed);
    free(text);
}

static const struct smg_compare_row *row_of(const struct smg_comparison *c, uint32_t request, enum smg_compared what)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->row[i].request == request && c->row[i].what == what)
            return &c->row[i];
    fail_msg("no row of %s", smg_compared_name(what));
    return NULL;
}

static void test_same(void **state)
{
    struct smg_comparison c;
    struct finished_run run;
    struct smg_diag diag = {""};
    const int full[2] = {0, 0};
    uint32_t tokens[2];
    const char *dir;

    write_run(*state, "a", NULL, &run);
    dir = file_in(*state, "a");
    assert_int_equal(smg_compare(dir, dir, &c, &diag), SMG_OK);
    assert_near(c.largest, 0, 0);
    /* 8 quantities and 3 gaps of each request. */
    assert_int_equal(c.n, 2 * (8 + 3));
    assert_int_equal(c.summary[SMG_COMPARE_GAP].rows, 6);
    assert_near(c.summary[SMG_COMPARE_TTST].mean, 0, 0);
    assert_string_equal(c.differs, "");
    assert_string_equal(c.synthetic[0], "selection, workload");
    assert_string_equal(c.synthetic[1], c.synthetic[0]);
    /* Both join at the barrier; the files have 9 digits. */
    for (uint32_t r = 0; r < 2; r++)
        tokens[r] = run.world.requests[r].prompt_tokens;
    for (uint32_t r = 0; r < 2; r++) {
        const struct smg_request_record *q = &run.records->request[r];
        double transfer_s = q->second_token_s - q->first_token_s - smg_cost_decode_s(&run.world, tokens, full, 2);
        assert_true(transfer_s > 0);
        assert_near(row_of(&c, r, SMG_COMPARE_TRANSFER)->a, transfer_s, 1e-7);
    }
    smg_comparison_free(&c);
    run_free(&run);
}

static void test_altered(void **state)
{
    enum { TTST = 18, ON_DEMAND = 22 };
    struct smg_comparison c;
    struct smg_diag diag = {""};
    char value[32];
    double ttst;

    write_and_free(*state, "a", NULL);
    write_and_free(*state, "b", NULL);
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "b"), &c, &diag), SMG_OK);
    ttst = row_of(&c, 0, SMG_COMPARE_TTST)->b;
    smg_comparison_free(&c);

    snprintf(value, sizeof value, "%.9g", 1.1 * ttst);
    alter(file_in(file_in(*state, "b"), "requests.csv"), TTST, value);
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "b"), &c, &diag), SMG_OK);
    assert_near(row_of(&c, 0, SMG_COMPARE_TTST)->error, -1 / 11.0, 1e-6);
    assert_true(row_of(&c, 0, SMG_COMPARE_TRANSFER)->error < -1 / 11.0);
    assert_near(row_of(&c, 1, SMG_COMPARE_TTST)->error, 0, 0);
    assert_near(c.summary[SMG_COMPARE_TTST].mean, 0.5 / 11, 1e-6);
    assert_near(c.summary[SMG_COMPARE_TTST].bias, -0.5 / 11, 1e-6);
    assert_near(c.summary[SMG_COMPARE_TTST].max, 1 / 11.0, 1e-6);
    smg_comparison_free(&c);

    /* A value that only one run has, and one that should be 0, are no small errors. */
    alter(file_in(file_in(*state, "b"), "requests.csv"), ON_DEMAND, "");
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "b"), &c, &diag), SMG_OK);
    assert_true(isinf(c.largest));
    assert_int_equal(c.summary[SMG_COMPARE_ON_DEMAND].rows, 2);
    assert_int_equal(c.summary[SMG_COMPARE_ON_DEMAND].n, 1);
    smg_comparison_free(&c);
}

static void refused(const char *folder, const char *extra, const char *complaint)
{
    struct smg_comparison c;
    struct smg_diag diag = {""};

    write_and_free(folder, "other", extra);
    assert_int_equal(smg_compare(file_in(folder, "a"), file_in(folder, "other"), &c, &diag), SMG_ERR_INVALID);
    assert_non_null(strstr(diag.text, complaint));
    assert_null(c.row);
}

static void test_not_comparable(void **state)
{
    struct smg_comparison c;
    struct smg_diag diag = {""};

    write_and_free(*state, "a", NULL);
    refused(*state, "seed=2", "seed: 1 and 2");
    refused(*state, "scheme=full", "scheme: smartgen and full");
    refused(*state, "model=qwen3-8b", "model: qwen3-14b and qwen3-8b");
    refused(*state, "workload.requests=3", "number of requests: 2 and 3");
    refused(*state, "workload.prompt_tokens=6999", "prompt_tokens of request 0: 7000 and 6999");
    refused(*state, "workload.output_tokens=5", "output_tokens of request 0: 4 and 5");
    write_and_free(*state, "other", "decode.link_gbps=20");
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "other"), &c, &diag), SMG_OK);
    assert_string_equal(c.differs, "decode.link_gbps");
    assert_true(row_of(&c, 0, SMG_COMPARE_TTST)->error < 0);
    smg_comparison_free(&c);
}

static void test_damaged(void **state)
{
    struct smg_comparison c;
    struct smg_diag diag = {""};
    const char *csv;

    write_and_free(*state, "a", NULL);
    write_and_free(*state, "b", NULL);
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "none"), &c, &diag), SMG_ERR_IO);
    assert_non_null(strstr(diag.text, "none/run.json"));
    csv = file_in(file_in(*state, "b"), "requests.csv");
    alter(csv, 4, "many");
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "b"), &c, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "requests.csv:2: field 'prompt_tokens': expected a number, found 'many'"));
    alter(csv, 4, "");
    assert_int_equal(smg_compare(file_in(*state, "a"), file_in(*state, "b"), &c, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "requests.csv:2: field 'prompt_tokens'"));
}

/* One cell of the first row of a file of run b. */
static void damaged(const char *folder, const char *file, size_t column, const char *value, const char *complaint)
{
    struct smg_comparison c;
    struct smg_diag diag = {""};

    write_and_free(folder, "b", NULL);
    alter(file_in(file_in(folder, "b"), file), column, value);
    assert_int_equal(smg_compare(file_in(folder, "a"), file_in(folder, "b"), &c, &diag), SMG_ERR_PARSE);
    if (!strstr(diag.text, complaint))
        fail_msg("%s instead of %s", diag.text, complaint);
}

/* What no run writes is no run. */
static void test_cells(void **state)
{
    write_and_free(*state, "a", NULL);
    damaged(*state, "requests.csv", 0, "1", "requests.csv:2: field 'request': expected 0, found '1'");
    damaged(*state, "requests.csv", 1, "fin",
            "requests.csv:2: field 'status': expected finished, failed or waiting, found 'fin'");
    damaged(*state, "requests.csv", 3, "-1", "requests.csv:2: field 'arrival_s': expected a number >= 0, found '-1'");
    damaged(*state, "requests.csv", 3, "", "requests.csv:2: field 'arrival_s': expected a number, found ''");
    damaged(*state, "requests.csv", 5, "-3", "requests.csv:2: field 'output_tokens': expected a whole number >= 1, found '-3'");
    damaged(*state, "requests.csv", 5, "1",
            "requests.csv:2: field 'ttst_s': expected nothing, since the only token is the first");
    damaged(*state, "requests.csv", 8, "half", "requests.csv:2: field 'mode': expected full, selective or nothing, found 'half'");
    damaged(*state, "requests.csv", 17, "", "requests.csv:2: field 'ttft_s': expected a number, since the request finished");
    damaged(*state, "requests.csv", 22, "1.5",
            "requests.csv:2: field 'on_demand_bytes': expected a whole number >= 0, found '1.5'");
    damaged(*state, "requests.csv", 26, "1.5",
            "requests.csv:2: field 'on_demand_ratio': expected a number in [0, 1], found '1.5'");
    damaged(*state, "tokens.csv", 0, "2", "tokens.csv:2: field 'request': expected a request of requests.csv, found '2'");
    damaged(*state, "tokens.csv", 1, "5", "tokens.csv:2: field 'token': expected one of the request's output_tokens, found '5'");
    damaged(*state, "tokens.csv", 1, "2",
            "tokens.csv:3: field 'token': expected rows by request and token, each once, found '2'");
    damaged(*state, "tokens.csv", 2, "-1",
            "tokens.csv:2: field 'time_s': expected a time that is not before the token before it");
    damaged(*state, "tokens.csv", 2, "1e9",
            "tokens.csv:3: field 'time_s': expected a time that is not before the token before it");
    damaged(*state, "requests.csv", 16, "0",
            "requests.csv:2: field 'finish_s': expected a time that is not before those before it");
    damaged(*state, "requests.csv", 18, "", "requests.csv:2: field 'ttst_s': expected a number, since the request finished");
    damaged(*state, "tokens.csv", 4, "1.5", "tokens.csv:2: field 'selected_entries': expected a whole number >= 0, found '1.5'");
    damaged(*state, "tokens.csv", 5, "9",
            "tokens.csv:2: field 'remote_entries': expected no more than selected_entries, found '9'");
    damaged(*state, "tokens.csv", 7, "-1", "tokens.csv:2: field 'on_demand_bytes': expected a whole number >= 0, found '-1'");
    damaged(*state, "tokens.csv", 3, "-1", "tokens.csv:2: field 'gap_s': expected a number >= 0, found '-1'");
}

/* One request alone, whose gathers and copies take next to nothing: a step is its computing, and what it takes before the first
 * attention. */
static void test_closed_form(void **state)
{
    struct words w = {.n = 0};
    struct finished_run run;
    const int full = 1;
    char path[256];
    double bytes, step_s;

    snprintf(path, sizeof path, "%s", file_in(*state, "host.json"));
    file_put(
        path,
        "{\"gather_Bps_per_vcpu\": {\"value\": 1e12, \"unit\": \"B/s\", \"source\": \"test\"}, \"gather_exponent\": {\"value\": "
        "0, "
        "\"unit\": \"1\", \"source\": \"test\"}, \"copy_Bps\": {\"value\": 1e13, \"unit\": \"B/s\", \"source\": \"test\"}}\n");
    words_add(&w, "host=%s", path);
    words_add(&w, "scheme=full");
    words_add(&w, "workload.requests=1");
    words_add(&w, "workload.output_tokens=3");
    run_words(&w, &run);
    bytes = 7000.0 * run.world.model.kv_heads * (double)smg_model_entry_bytes(&run.world.model);
    step_s = run.records->request[0].finish_s - run.records->request[0].second_token_s;
    assert_near(step_s - bytes * (1e-12 + 1e-13), smg_cost_decode_s(&run.world, &run.world.requests[0].prompt_tokens, &full, 1),
                1e-9);
    run_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_same, folder_setup, folder_teardown),
                                       cmocka_unit_test_setup_teardown(test_altered, folder_setup, folder_teardown),
                                       cmocka_unit_test_setup_teardown(test_not_comparable, folder_setup, folder_teardown),
                                       cmocka_unit_test_setup_teardown(test_damaged, folder_setup, folder_teardown),
                                       cmocka_unit_test_setup_teardown(test_cells, folder_setup, folder_teardown),
                                       cmocka_unit_test_setup_teardown(test_closed_form, folder_setup, folder_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
