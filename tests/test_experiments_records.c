/* requests.csv, tokens.csv, summary.json and run.json of records made by hand. */
#include "tests/folder_fixture.h"

#include <jansson.h>

#include "core/stats.h"
#include "experiments/run.h"
#include "traces/scenario.h"

/* Three requests: one of four tokens, one of a single token, one that failed. */
struct hand {
    struct smg_world world;
    struct smg_request_spec spec[3];
    struct smg_records records;
    struct smg_run_stats stats;
    struct smg_run run;
};

static void add_tokens(struct smg_records *r)
{
    /* in order of arrival at the router: request 1 comes between */
    static const struct smg_token_record tokens[] = {
        {0, 1, 1.5, 0, 0, 0, 0},       {1, 1, 1.75, 0, 0, 0, 0}, {0, 2, 2.0, 100, 25, 512, 1024},
        {0, 3, 2.25, 100, 10, 256, 0}, {0, 4, 3.0, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        assert_int_equal(smg_records_token(r, &tokens[i]), SMG_OK);
}

static void add_requests(struct smg_records *r)
{
    struct smg_request_record *q = r->request;

    q[0].status = SMG_REQUEST_FINISHED;
    q[0].arrival_s = 0.5;
    q[0].prompt_tokens = 7000;
    q[0].output_tokens = q[0].tokens = 4;
    q[0].prefill_instance = 1;
    q[0].decode_instance = 7;
    q[0].kr_blocks = 8112;
    q[0].prefill_start_s = 0.75;
    q[0].prefill_end_s = q[0].first_token_s = 1.5;
    q[0].push_done_s = 1.625;
    q[0].ready_s = 1.75;
    q[0].decode_join_s = 1.875;
    q[0].second_token_s = 2;
    q[0].finish_s = 3;
    q[0].metadata_bytes = 1000;
    q[0].proactive_bytes = 2000;
    q[0].on_demand_bytes = q[0].on_demand_sent_bytes = 768;
    q[0].speculative_bytes = 1024;
    q[0].messages = 9;
    q[0].selected_entries = 200;
    q[0].remote_entries = 35;
    q[1].status = SMG_REQUEST_FINISHED;
    q[1].prompt_tokens = 100;
    q[1].output_tokens = q[1].tokens = 1;
    q[1].prefill_instance = 2;
    q[1].prefill_start_s = 1;
    q[1].prefill_end_s = q[1].first_token_s = q[1].finish_s = 1.75;
    q[2].status = SMG_REQUEST_FAILED;
    q[2].reason = SMG_ERR_CAPACITY;
    q[2].arrival_s = 1;
    q[2].prompt_tokens = 9;
    q[2].output_tokens = 9;
    r->finished = 2;
    r->failed = 1;
}

static int hand_setup(void **state)
{
    struct hand *h = calloc(1, sizeof *h);

    if (!h || smg_records_init(&h->records, 3) || smg_run_stats_init(&h->stats, 3))
        return -1;
    fixture_world(&h->world);
    smg_scenario_default(&h->world.scenario);
    strcpy(h->world.host.name, "default");
    h->world.scenario.records.tokens = 1;
    h->world.requests = h->spec;
    h->world.n_requests = 3;
    h->world.synthetic_importance = 1;
    add_requests(&h->records);
    add_tokens(&h->records);
    h->stats.duplicate_bytes[0] = 77;
    h->stats.sent_bytes[SMG_PATH_PUSH] = h->stats.received_bytes[SMG_PATH_PUSH] = 5000000000;
    h->stats.messages[SMG_PATH_PUSH] = 12;
    h->run = (struct smg_run){&h->world, &h->records, &h->stats, "sim", "native", NULL, NULL};
    *state = h;
    return 0;
}

static int hand_teardown(void **state)
{
    struct hand *h = *state;

    smg_records_free(&h->records);
    smg_run_stats_free(&h->stats);
    free(h);
    return 0;
}

/* Writes the run into FOLDER/run. */
static void write_run(const struct hand *h, const char *folder, int expected)
{
    struct smg_outdir o;
    struct smg_diag diag = {""};

    assert_int_equal(smg_outdir_begin(file_in(folder, "run"), &o, &diag), SMG_OK);
    assert_int_equal(smg_run_write(&o, &h->run, &diag), expected);
    assert_int_equal(smg_outdir_commit(&o, &diag), SMG_OK);
    assert_true(!expected == !diag.text[0]);
}

static void test_requests_csv(void **state)
{
    void *folder = NULL;

    assert_int_equal(folder_setup(&folder), 0);
    write_run(*state, folder, SMG_OK);
    assert_file_is(
        file_in(folder, "run/requests.csv"),
        "request,status,reason,arrival_s,prompt_tokens,output_tokens,prefill_instance,decode_instance,mode,kr_blocks,"
        "prefill_start_s,prefill_end_s,push_done_s,decode_join_s,first_token_s,second_token_s,finish_s,ttft_s,ttst_s,tbt_mean_s,"
        "metadata_bytes,proactive_bytes,on_demand_bytes,speculative_bytes,duplicate_bytes,messages,on_demand_ratio\n"
        "0,finished,,0.5,7000,4,1,7,selective,8112,0.75,1.5,1.625,1.875,1.5,2,3,1,0.5,0.5,1000,2000,768,1024,77,9,0.175\n"
        "1,finished,,0,100,1,2,,,,1,1.75,,,1.75,,1.75,1.75,,,0,0,0,0,0,0,\n"
        "2,failed,capacity exceeded,1,9,9,,,,,,,,,,,,,,,,,,,,,\n");
    assert_file_is(
        file_in(folder, "run/tokens.csv"),
        "request,token,time_s,gap_s,selected_entries,remote_entries,on_demand_ratio,on_demand_bytes,speculative_bytes\n"
        "0,1,1.5,,0,0,,0,0\n"
        "0,2,2,0.5,100,25,0.25,512,1024\n"
        "0,3,2.25,0.25,100,10,0.1,256,0\n"
        "0,4,3,0.75,0,0,,0,0\n"
        "1,1,1.75,,0,0,,0,0\n");
    assert_false(file_exists(file_in(folder, "run/decisions.csv")));
    folder_teardown(&folder);
}

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *j = json_load_file(path, 0, &error);

    assert_non_null(j);
    return j;
}

static double number(const json_t *j, const char *group, const char *key)
{
    const json_t *value = json_object_get(json_object_get(j, group), key);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void test_summary(void **state)
{
    void *folder = NULL;
    json_t *j;

    assert_int_equal(folder_setup(&folder), 0);
    write_run(*state, folder, SMG_OK);
    j = read_json(file_in(folder, "run/summary.json"));
    assert_int_equal(number(j, "ttft_s", "count"), 2);
    assert_near(number(j, "ttft_s", "mean"), 1.375, 1e-9);
    assert_near(number(j, "ttft_s", "p50"), 1.375, 1e-9);
    assert_near(number(j, "ttft_s", "max"), 1.75, 1e-9);
    assert_near(number(j, "ttst_s", "mean"), 0.5, 1e-9);
    assert_near(number(j, "second_token_since_arrival_s", "mean"), 1.5, 1e-9);
    assert_near(number(j, "tbt_request_mean_s", "mean"), 0.5, 1e-9);
    assert_int_equal(number(j, "gap_s", "count"), 2);
    assert_near(number(j, "gap_s", "max"), 0.75, 1e-9);
    assert_near(number(j, "ctl_s", "mean"), (2.5 / 4 + 1.75) / 2, 1e-9);
    assert_near(number(j, "prefill_wait_s", "mean"), (0.25 + 1) / 2, 1e-9);
    assert_near(number(j, "handoff_s", "mean"), 0.25, 1e-9);
    assert_near(number(j, "join_wait_s", "mean"), 0.125, 1e-9);
    assert_near(json_number_value(json_object_get(j, "makespan_s")), 3, 1e-9);
    assert_near(json_number_value(json_object_get(j, "on_demand_ratio")), 0.175, 1e-9);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json_object_get(j, "paths"), "proactive"), "sent_bytes")),
                     5000000000);
    /* TTFT 1 and 1.75 s are within 2 s; TBT 0.5 s is not above 0.5 s */
    assert_int_equal(number(j, "goodput", "requests_within_slo"), 2);
    assert_near(number(j, "goodput", "requests_per_s"), 2.0 / 3, 1e-9);
    assert_true(json_array_size(json_object_get(j, "conservation")) >= 6);
    assert_null(json_object_get(j, "digest"));
    json_decref(j);
    folder_teardown(&folder);
}

static void test_nothing_finished(void **state)
{
    struct hand *h = *state;
    void *folder = NULL;
    json_t *j;

    assert_int_equal(folder_setup(&folder), 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct smg_request_record *q = &h->records.request[i];
        *q = h->records.request[2];
    }
    h->records.finished = 0;
    h->records.failed = 3;
    h->records.n_tokens = 0;
    write_run(h, folder, SMG_OK);
    j = read_json(file_in(folder, "run/summary.json"));
    assert_int_equal(number(j, "ttft_s", "count"), 0);
    assert_true(json_is_null(json_object_get(json_object_get(j, "ttft_s"), "mean")));
    assert_true(json_is_null(json_object_get(j, "makespan_s")));
    json_decref(j);
    folder_teardown(&folder);
}

static void test_broken_law_is_written(void **state)
{
    struct hand *h = *state;
    void *folder = NULL;
    json_t *j, *law;
    size_t i, broken = 0;

    assert_int_equal(folder_setup(&folder), 0);
    h->stats.blocks_rewritten = 3;
    h->stats.digest[1] = 5;
    write_run(h, folder, SMG_ERR_CONSERVATION);
    j = read_json(file_in(folder, "run/summary.json"));
    json_array_foreach(json_object_get(j, "conservation"), i, law)
    {
        broken += json_is_false(json_object_get(law, "holds"));
    }
    assert_int_equal(broken, 1);
    assert_int_equal(strlen(json_string_value(json_object_get(j, "digest"))), 16);
    json_decref(j);
    folder_teardown(&folder);
}

static void test_run_json(void **state)
{
    struct smg_scenario s;
    void *folder = NULL;
    json_t *j;
    char *first, *second;

    assert_int_equal(folder_setup(&folder), 0);
    write_run(*state, folder, SMG_OK);
    first = file_text(file_in(folder, "run/run.json"));
    write_run(*state, folder, SMG_OK);
    second = file_text(file_in(folder, "run/run.json"));
    assert_string_equal(first, second);
    j = read_json(file_in(folder, "run/run.json"));
    assert_string_equal(json_string_value(json_object_get(j, "driver")), "sim");
    assert_true(json_is_true(json_object_get(json_object_get(j, "synthetic"), "importance")));
    assert_true(json_is_false(json_object_get(json_object_get(j, "synthetic"), "workload")));
    assert_int_equal(json_array_size(json_object_get(j, "inputs")), 5);
    assert_int_equal(smg_scenario_from_json(json_object_get(j, "scenario"), &s, NULL), SMG_OK);
    assert_string_equal(s.model, "qwen3-14b");
    json_decref(j);
    free(first);
    free(second);
    folder_teardown(&folder);
}

#define HAND_TEST(f) cmocka_unit_test_setup_teardown(f, hand_setup, hand_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HAND_TEST(test_requests_csv),          HAND_TEST(test_summary),  HAND_TEST(test_nothing_finished),
        HAND_TEST(test_broken_law_is_written), HAND_TEST(test_run_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
