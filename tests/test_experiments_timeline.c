/* timeline.json: valid JSON whose tracks have names and no overlaps, whose stages add up, and whose bytes repeat. */
#include "tests/folder_fixture.h"

#include <jansson.h>

#include "experiments/timeline.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* ---- Reading a timeline ---- */

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

    if (!j)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    return j;
}

static json_int_t whole(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* Times have three decimals, so they are whole ns. */
static long long ns(const json_t *event, const char *key)
{
    return llround(json_number_value(json_object_get(event, key)) * 1e3);
}

static int is(const json_t *event, const char *key, const char *text)
{
    return !strcmp(json_string_value(json_object_get(event, key)), text);
}

/* The name of a process (tid 0) or track, NULL: none. */
static const char *name_of(const json_t *events, json_int_t pid, json_int_t tid)
{
    size_t i;
    json_t *e;

    json_array_foreach(
        events, i, e) if (is(e, "ph", "M") && is(e, "name", tid ? "thread_name" : "process_name") && whole(e, "pid") == pid &&
                          whole(e, "tid") == tid) return json_string_value(json_object_get(json_object_get(e, "args"), "name"));
    return NULL;
}

struct slice {
    json_int_t pid, tid;
    long long start, end;
};

static int by_track(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Returns the number of slices. */
static size_t check_tracks(const json_t *events)
{
    struct slice *s = calloc(json_array_size(events), sizeof *s);
    size_t i, n = 0;
    json_t *e;

    assert_non_null(s);
    json_array_foreach(events, i, e)
    {
        if (!is(e, "ph", "X"))
            continue;
        s[n] = (struct slice){whole(e, "pid"), whole(e, "tid"), ns(e, "ts"), ns(e, "ts") + ns(e, "dur")};
        assert_true(s[n].start >= 0 && s[n].end >= s[n].start);
        assert_non_null(json_string_value(json_object_get(e, "cat")));
        assert_non_null(name_of(events, s[n].pid, 0));
        assert_non_null(name_of(events, s[n].pid, s[n].tid));
        n++;
    }
    qsort(s, n, sizeof *s, by_track);
    for (i = 1; i < n; i++)
        if (s[i].pid == s[i - 1].pid && s[i].tid == s[i - 1].tid && s[i].start < s[i - 1].end)
            fail_msg("two slices of track %lld of process %lld overlap at %lld ns", (long long)s[i].tid, (long long)s[i].pid,
                     s[i].start);
    free(s);
    return n;
}

/* The stages of a request follow each other without a gap, from its arrival to its last token. */
static void check_request(const json_t *events, const struct smg_request_record *q, json_int_t id)
{
    static const char *const stages[] = {"queue", "prefill", "handoff", "join", "decode"};
    long long at = llround(q->arrival_s * 1e9);
    size_t i, stage = 0, tokens = 0;
    json_t *e;

    json_array_foreach(events, i, e)
    {
        if (whole(e, "pid") != SMG_TIMELINE_REQUESTS || !is(e, "ph", "X") || is(e, "cat", "push") ||
            whole(json_object_get(e, "args"), "request") != id)
            continue;
        if (!tokens && stage < 4 && !is(e, "cat", stages[stage]))
            fail_msg("request %lld: %s instead of %s", (long long)id, json_string_value(json_object_get(e, "cat")),
                     stages[stage]);
        tokens += is(e, "cat", "decode");
        stage++;
        assert_int_equal(ns(e, "ts"), at);
        at += ns(e, "dur");
    }
    assert_int_equal(tokens, q->output_tokens - 1);
    assert_int_equal(at, llround(q->finish_s * 1e9));
}

/* ---- A simulated run ---- */

static void simulate(const char *path, int check)
{
    static const char *const sets[] = {
        "workload.requests=3", "workload.prompt_tokens=500", "workload.output_tokens=4", "blocks_per_layer=50",
        "prefill.nodes=1",     "proactive.kr_blocks=200",    "selection.source=entry"};
    struct smg_scenario scenario;
    struct smg_world w;
    struct smg_timeline *t;
    struct smg_observer observer;
    struct smg_selection *selection;
    struct smg_sim *sim;
    struct smg_diag diag = {""};
    json_t *j;

    if (smg_scenario_load(NULL, sets, sizeof sets / sizeof sets[0], &scenario, &diag) || smg_world_load(&scenario, &w, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_timeline_create(path, &t, &diag), SMG_OK);
    assert_int_equal(smg_recorder_observer(NULL, t, &observer), SMG_OK);
    assert_int_equal(smg_selection_create(&w, &selection), SMG_OK);
    assert_int_equal(smg_sim_create(&w, smg_engine_find("native"), selection, &observer, &sim), SMG_OK);
    if (smg_sim_run(sim, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_timeline_close(t, &diag), SMG_OK);
    if (check) {
        const struct smg_records *r = smg_sim_records(sim);
        j = load(path);
        assert_true(check_tracks(json_object_get(j, "traceEvents")) > 500);
        for (uint32_t i = 0; i < r->n_requests; i++)
            check_request(json_object_get(j, "traceEvents"), &r->request[i], i);
        json_decref(j);
    }
    smg_recorder_observer_free(&observer);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    smg_world_free(&w);
}

static void test_run(void **state)
{
    char first[1024];
    char *text;

    snprintf(first, sizeof first, "%s", file_in(*state, "first.json"));
    simulate(first, 1);
    simulate(file_in(*state, "second.json"), 0);
    text = file_text(file_in(*state, "second.json"));
    assert_file_is(first, text);
    free(text);
}

/* Each kind of resource of the decode instance (3: after two prefill instances) has its track. */
static void test_tracks_of_decode(void **state)
{
    static const char *const wanted[] = {"GPU main",
                                         "GPU select",
                                         "copy engine H2D",
                                         "CPU gather",
                                         "NIC in: from instance 1",
                                         "NIC out: control to instance 1",
                                         "waiting for replies of instance 1"};
    size_t i, k;
    json_t *j, *events, *e;

    simulate(file_in(*state, "t.json"), 0);
    j = load(file_in(*state, "t.json"));
    events = json_object_get(j, "traceEvents");
    assert_string_equal(name_of(events, 0, 0), "router");
    assert_string_equal(name_of(events, 1, 0), "prefill 1");
    assert_string_equal(name_of(events, 3, 0), "decode 3");
    assert_string_equal(name_of(events, SMG_TIMELINE_REQUESTS, 0), "requests");
    for (k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        int found = 0;
        json_array_foreach(events, i, e) found |=
            whole(e, "pid") == 3 && is(e, "name", "thread_name") && is(json_object_get(e, "args"), "name", wanted[k]);
        if (!found)
            fail_msg("no track '%s'", wanted[k]);
    }
    json_decref(j);
}

/* ---- What a simulation does not show ---- */

static void operate(struct smg_timeline *t, uint16_t lane, double start_s, double end_s)
{
    struct smg_op op;

    memset(&op, 0, sizeof op);
    op.instance = 1;
    op.action.kind = SMG_ACT_WRITE;
    op.action.lane = lane;
    op.action.peer = 2;
    op.action.purpose = SMG_FOR_PUSH;
    op.action.bytes = 1;
    op.action.layer_hi = 1;
    smg_timeline_operation(t, &op, start_s, end_s);
}

static void message(struct smg_timeline *t, enum smg_message_kind kind, uint32_t token, double now_s)
{
    struct smg_actions none = {0};
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = kind == SMG_MSG_NONE ? SMG_EV_ARRIVE : SMG_EV_MSG;
    e.now_s = now_s;
    e.msg.kind = kind;
    e.msg.u.token.token = token;
    smg_timeline_step(t, SMG_ROUTER, &e, &none);
}

static size_t slices_of(const json_t *events, const char *category)
{
    size_t i, n = 0;
    json_t *e;

    json_array_foreach(events, i, e) n += is(e, "ph", "X") && is(e, "cat", category);
    return n;
}

static void assign(struct smg_timeline *t)
{
    struct smg_actions actions = {0};
    struct smg_action *a = smg_actions_add(&actions, SMG_ACT_SEND);
    struct smg_event e;

    assert_non_null(a);
    memset(&e, 0, sizeof e);
    a->peer = 1;
    a->msg.kind = SMG_MSG_PREFILL;
    a->msg.u.assign.output_tokens = 3;
    a->msg.u.assign.kr_blocks = 7;
    smg_timeline_step(t, SMG_ROUTER, &e, &actions);
    smg_timeline_step(t, 1, &e, &actions); /* not the router: says nothing */
    a->peer = 2;
    a->msg.kind = SMG_MSG_DECODE;
    smg_timeline_step(t, SMG_ROUTER, &e, &actions);
    smg_actions_free(&actions);
}

/* On a real network operations of a lane overlap, and messages of two instances overtake each other. A part is added whole. */
static void test_real_network(void **state)
{
    struct smg_timeline *t, *part;
    struct smg_diag diag = {""};
    json_t *j, *events;

    assert_int_equal(smg_timeline_create_part(file_in(*state, "part"), &part, &diag), SMG_OK);
    operate(part, SMG_LANE_PUSH, 0.1, 0.4);
    operate(part, SMG_LANE_PUSH, 0.2, 0.5);
    operate(part, SMG_LANE_PUSH, 0.4, 0.6);
    for (int i = 0; i < 3; i++)
        operate(part, SMG_LANE_PUSH, 0.45, 0.7);
    assert_int_equal(smg_timeline_close(part, &diag), SMG_OK);
    assert_int_equal(smg_timeline_create(file_in(*state, "t.json"), &t, &diag), SMG_OK);
    message(t, SMG_MSG_NONE, 0, 0);
    assign(t);
    message(t, SMG_MSG_STARTED, 0, 0.1);
    message(t, SMG_MSG_READY, 0, 0.3);
    message(t, SMG_MSG_TOKEN, 1, 0.35); /* overtaken by READY */
    message(t, SMG_MSG_JOINED, 0, 0.4);
    message(t, SMG_MSG_TOKEN, 2, 0.5);
    message(t, SMG_MSG_PUSHED, 0, 0.55);
    message(t, SMG_MSG_TOKEN, 3, 0.6);
    assert_int_equal(smg_timeline_append(t, file_in(*state, "part"), &diag), SMG_OK);
    assert_int_equal(smg_timeline_append(t, file_in(*state, "none"), &diag), SMG_ERR_IO);
    assert_int_equal(smg_timeline_close(t, &diag), SMG_OK);
    j = load(file_in(*state, "t.json"));
    events = json_object_get(j, "traceEvents");
    assert_int_equal(check_tracks(events), 2 * 6 + 6); /* operations are also seen by the NIC that receives */
    assert_int_equal(slices_of(events, "push"), 6 + 1);
    assert_int_equal(slices_of(events, "NIC in"), 6);
    assert_int_equal(slices_of(events, "prefill"), 1);
    assert_int_equal(slices_of(events, "handoff"), 0);
    assert_int_equal(slices_of(events, "join"), 1);
    assert_int_equal(slices_of(events, "decode"), 2);
    json_decref(j);
}

/* A request that never ends, and one that fails, end where the run does, and say so. */
static void test_unfinished(void **state)
{
    struct smg_timeline *t;
    struct smg_diag diag = {""};
    char *text;
    json_t *j;

    assert_int_equal(smg_timeline_create(file_in(*state, "t.json"), &t, &diag), SMG_OK);
    message(t, SMG_MSG_NONE, 0, 0);
    assign(t);
    message(t, SMG_MSG_STARTED, 0, 0.125);
    operate(t, SMG_LANE_GPU_MAIN, 0.125, 0.5);
    assert_int_equal(smg_timeline_close(t, &diag), SMG_OK);
    j = load(file_in(*state, "t.json"));
    assert_int_equal(check_tracks(json_object_get(j, "traceEvents")), 5);
    json_decref(j);
    text = file_text(file_in(*state, "t.json"));
    assert_non_null(strstr(text,
                           "{\"name\":\"prefill\",\"cat\":\"prefill\",\"ph\":\"X\",\"pid\":65536,\"tid\":1,\"ts\":125000.000,"
                           "\"dur\":375000.000,\"args\":{\"request\":0,\"prompt_tokens\":0,\"output_tokens\":3,"
                           "\"mode\":\"selective\",\"kr_blocks\":7,\"total_blocks\":0,\"unfinished\":true}}"));
    free(text);
    assert_int_equal(smg_timeline_create(file_in(*state, "no/t.json"), &t, &diag), SMG_ERR_IO);
    assert_non_null(strstr(diag.text, "no/t.json: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_tracks_of_decode, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_network, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_unfinished, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests_name("experiments: timeline", tests, NULL, NULL);
}
