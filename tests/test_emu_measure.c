/* What smartgen emu measure makes of times, and what the simulator makes of the values: against lines that are known, and against
 * the same numbers given by scenario keys. */
#include "tests/folder_fixture.h"

#include "emu/measure.h"
#include "tests/sim_fixture.h"

enum { N = 40 };

static void test_median(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3}, none[] = {0, 0, 0};
    struct smg_measured_value v = smg_measured_median(odd, 3);

    (void)state;
    assert_near(v.value, 2, 0);
    assert_near(v.spread, 1, 1e-15);
    v = smg_measured_median(even, 4);
    assert_near(v.value, 2.5, 1e-15);
    assert_near(v.spread, 3 / 2.5, 1e-15);
    v = smg_measured_median(none, 3);
    assert_near(v.value, 0, 0);
    assert_near(v.spread, 0, 0);
}

/* A stream at a rate, behind a fixed time; the first `burst` bytes cost nothing. */
static void stream(double Bps, double fixed_s, double burst, double *bytes, double *time_s)
{
    for (int i = 0; i < N; i++) {
        bytes[i] = 65536.0 * (i + 1);
        time_s[i] = fixed_s + (bytes[i] > burst ? bytes[i] - burst : 0) / Bps;
    }
}

static void test_rate(void **state)
{
    double bytes[N], time_s[N], Bps = 0;
    struct smg_diag diag = {""};

    (void)state;
    stream(6e6, 1e-3, 0, bytes, time_s);
    assert_int_equal(smg_measured_rate(bytes, time_s, N, &Bps, &diag), SMG_OK);
    assert_near(Bps, 6e6, 1e-9);
    /* A shaper's burst: the line begins below 0. It is through in the first quarter. */
    stream(6e6, 0, 8 * 65536.0, bytes, time_s);
    assert_int_equal(smg_measured_rate(bytes, time_s, N, &Bps, &diag), SMG_OK);
    assert_near(Bps, 6e6, 1e-9);
    /* Through the origin. */
    stream(2e9, 0, 0, bytes, time_s);
    assert_int_equal(smg_measured_rate(bytes, time_s, N, &Bps, &diag), SMG_OK);
    assert_near(Bps, 2e9, 1e-9);
    /* Every second point 20 ms late: least squares over the last 30 are off by 0.02 * 7.5 / 2247 s a point of 10.9 ms, 0.6%. */
    stream(6e6, 1e-3, 0, bytes, time_s);
    for (int i = 0; i < N; i++)
        time_s[i] += i % 2 ? 0.02 : 0;
    assert_int_equal(smg_measured_rate(bytes, time_s, N, &Bps, &diag), SMG_OK);
    assert_near(Bps, 6e6, 0.007);
}

static void test_no_rate(void **state)
{
    double bytes[N], time_s[N], Bps = 7;
    struct smg_diag diag = {""};

    (void)state;
    stream(6e6, 1e-3, 0, bytes, time_s);
    assert_int_equal(smg_measured_rate(bytes, time_s, 7, &Bps, &diag), SMG_ERR_INVALID);
    for (int i = 0; i < N; i++)
        time_s[i] = 1 - 1e-3 * i;
    assert_int_equal(smg_measured_rate(bytes, time_s, N, &Bps, &diag), SMG_ERR_RANGE);
    assert_non_null(strstr(diag.text, "no rate in the times"));
    assert_near(Bps, 7, 0);
}

/* ---- What the simulator makes of the values ---- */

static const char nic_text[] =
    "{\"post_cost_s\": {\"value\": 0, \"unit\": \"s\", \"source\": \"test\"}, \"max_message_bytes\": {\"value\": 1e9, "
    "\"unit\": \"B\", \"source\": \"test\"}, \"rpc_overhead_s\": {\"value\": 0, \"unit\": \"s\", \"source\": \"test\"}%s}\n";
static const char host_text[] =
    "{\"gather_Bps_per_vcpu\": {\"value\": 1e12, \"unit\": \"B/s\", \"source\": \"test\"}, \"gather_exponent\": "
    "{\"value\": 0, \"unit\": \"1\", \"source\": \"test\"}, \"copy_Bps\": {\"value\": 1e13, \"unit\": \"B/s\", "
    "\"source\": \"test\"}%s}\n";

static void put_file(const char *path, const char *text, const char *key, double value, const char *unit)
{
    char more[160] = "", all[1024];

    if (key)
        snprintf(more, sizeof more, ", \"%s\": {\"value\": %g, \"unit\": \"%s\", \"source\": \"test\"}", key, value, unit);
    snprintf(all, sizeof all, text, more);
    file_put(path, all);
}

/* One request with a key of the NIC's or the host's file, and a scenario key. */
static void run_with(const char *folder, const char *key, double value, const char *unit, const char *extra,
                     struct finished_run *out)
{
    struct words w = {.n = 0};
    char nic[128], host[128];
    int of_host = key && !strcmp(key, "timer_late_s");

    snprintf(nic, sizeof nic, "%s", file_in(folder, "nic.json"));
    snprintf(host, sizeof host, "%s", file_in(folder, "host.json"));
    put_file(nic, nic_text, of_host ? NULL : key, value, unit);
    put_file(host, host_text, of_host ? key : NULL, value, unit);
    words_add(&w, "network.nic=%s", nic);
    words_add(&w, "host=%s", host);
    words_add(&w, "scheme=full");
    words_add(&w, "workload.requests=1");
    words_add(&w, "workload.output_tokens=3");
    words_add(&w, "prefill.link_gbps=5");
    words_add(&w, "decode.link_gbps=5");
    if (extra)
        words_add(&w, "%s", extra);
    run_words(&w, out);
}

static double ttst_of(const struct finished_run *r)
{
    return r->records->request[0].second_token_s - r->records->request[0].first_token_s;
}

static double step_of(const struct finished_run *r)
{
    return r->records->request[0].finish_s - r->records->request[0].second_token_s;
}

/* The rate of the NIC is the link's where it is less, and its latency stands for the scenario's. */
static void test_rate_and_latency(void **state)
{
    struct finished_run a, b;

    run_with(*state, "rate_Bps", 0.5e9, "B/s", NULL, &a);
    run_with(*state, NULL, 0, NULL, "network.efficiency=0.8", &b);
    assert_near(ttst_of(&a), ttst_of(&b), 1e-12);
    assert_near(a.records->request[0].finish_s, b.records->request[0].finish_s, 1e-12);
    run_free(&a);
    run_free(&b);
    run_with(*state, "rate_Bps", 1e12, "B/s", NULL, &a);
    run_with(*state, NULL, 0, NULL, NULL, &b);
    assert_true(ttst_of(&a) == ttst_of(&b));
    run_free(&a);
    run_free(&b);
    run_with(*state, "latency_s", 5e-5, "s", NULL, &a);
    run_with(*state, NULL, 0, NULL, "network.latency_us=50", &b);
    assert_near(ttst_of(&a), ttst_of(&b), 1e-12);
    run_free(&a);
    run_free(&b);
}

/* The wire is what limits here: headers of all messages, and the completion of the last WRITE, come on top. */
static void test_messages_and_completion(void **state)
{
    struct finished_run plain, with;
    double messages;

    run_with(*state, NULL, 0, NULL, NULL, &plain);
    messages = (double)plain.stats->messages[SMG_PATH_PUSH];
    assert_true(messages > 40);
    run_with(*state, "message_bytes", 1000, "B", NULL, &with);
    assert_near(ttst_of(&with) - ttst_of(&plain), messages * 1000 / 0.625e9, 1e-6);
    run_free(&with);
    run_with(*state, "completion_s", 1e-4, "s", NULL, &with);
    assert_near(ttst_of(&with) - ttst_of(&plain), 1e-4, 1e-6);
    assert_near(step_of(&with), step_of(&plain), 1e-12);
    run_free(&with);
    run_free(&plain);
}

/* Attention and feed-forward of 40 layers end late, one after the other. */
static void test_late_timers(void **state)
{
    struct finished_run plain, late;

    run_with(*state, NULL, 0, NULL, NULL, &plain);
    run_with(*state, "timer_late_s", 1e-3, "s", NULL, &late);
    assert_near(step_of(&late) - step_of(&plain), 2 * 40 * 1e-3, 1e-6);
    run_free(&plain);
    run_free(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_no_rate),
        cmocka_unit_test_setup_teardown(test_rate_and_latency, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_messages_and_completion, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_late_timers, folder_setup, folder_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
