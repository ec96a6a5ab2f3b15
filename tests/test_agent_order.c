/* Messages of different peers arrive in any order, and failures at any time: agents fed by hand with the orders that a real
 * network makes and a simulation never does.
 */
#include "tests/world_fixture.h"

#include "core/agent.h"
#include "core/record.h"

enum { PREFILL = 1, DECODE = 2, REQUESTS = 3 };

struct stage {
    struct smg_world world;
    struct smg_request_spec request[REQUESTS];
    struct smg_agent *agent;
    struct smg_actions actions;
};

static void set_up_with(struct stage *s, uint16_t instance, uint32_t decode_instances)
{
    memset(s, 0, sizeof *s);
    fixture_world(&s->world);
    s->world.scheme = smg_scheme_find("full");
    s->world.prefill_instances = 1;
    s->world.decode_instances = s->world.scenario.decode.nodes = decode_instances; /* one on each node, at most */
    s->world.requests = s->request;
    s->world.n_requests = REQUESTS;
    for (size_t i = 0; i < REQUESTS; i++) {
        s->request[i] = fixture_request(1000);
        s->request[i].output_tokens = 3;
    }
    assert_int_equal(smg_agent_create(&s->world, instance, &s->agent), SMG_OK);
}

static void set_up(struct stage *s, uint16_t instance)
{
    set_up_with(s, instance, 1);
}

static void tear_down(struct stage *s)
{
    smg_agent_destroy(s->agent);
    smg_actions_free(&s->actions);
}

static void step(struct stage *s, const struct smg_event *e)
{
    assert_int_equal(smg_agent_step(s->agent, e, &s->actions), SMG_OK);
}

static struct smg_event message(enum smg_message_kind kind, uint16_t from, uint32_t request)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_MSG;
    e.peer = from;
    e.request = e.msg.request = request;
    e.msg.kind = (uint32_t)kind;
    return e;
}

static void say(struct stage *s, enum smg_message_kind kind, uint16_t from, uint32_t request)
{
    struct smg_event e = message(kind, from, request);

    if (kind == SMG_MSG_FAILED)
        e.msg.u.failed.status = SMG_ERR_CAPACITY;
    step(s, &e);
}

static void assign(struct stage *s, enum smg_message_kind kind, uint16_t partner, uint32_t request)
{
    struct smg_event e = message(kind, SMG_ROUTER, request);

    e.msg.u.assign.prompt_tokens = 1000;
    e.msg.u.assign.output_tokens = 3;
    e.msg.u.assign.kr_blocks = e.msg.u.assign.total_blocks = 40000;
    e.msg.u.assign.mode = SMG_MODE_FULL;
    e.msg.u.assign.partner = partner;
    step(s, &e);
}

static void token(struct stage *s, uint16_t from, uint32_t request, uint32_t number)
{
    struct smg_event e = message(SMG_MSG_TOKEN, from, request);

    e.msg.u.token.token = number;
    e.now_s = number;
    step(s, &e);
}

static void reserved(struct stage *s, uint32_t request, int status)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_RESERVED;
    e.request = request;
    e.status = status;
    step(s, &e);
}

/* How many actions of a kind (SEND: of a message) the last step wanted. */
static int wanted(const struct stage *s, enum smg_action_kind kind, enum smg_message_kind msg, uint16_t to)
{
    int n = 0;

    for (size_t i = 0; i < s->actions.n; i++) {
        const struct smg_action *a = &s->actions.action[i];
        n += a->kind == (uint32_t)kind && a->msg.kind == (uint32_t)msg && (kind != SMG_ACT_SEND || a->peer == to);
    }
    return n;
}

/* ---- Decode ---- */

/* Prefill failed the request and said so before the router's assignment came: memory must go back all the same. */
static void test_decode_hears_done_before_decode(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, DECODE);
    say(&s, SMG_MSG_DONE, PREFILL, 0);
    assert_int_equal(s.actions.n, 0);
    assign(&s, SMG_MSG_DECODE, PREFILL, 0);
    assert_int_equal(wanted(&s, SMG_ACT_RESERVE, SMG_MSG_NONE, 0), 1);
    reserved(&s, 0, SMG_OK);
    assert_int_equal(wanted(&s, SMG_ACT_RELEASE, SMG_MSG_NONE, 0), 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_POOL, PREFILL), 0);
    say(&s, SMG_MSG_FAILED, SMG_ROUTER, 0);
    assert_int_equal(s.actions.n, 0);
    tear_down(&s);
}

/* The request fails elsewhere while its memory is waited for: the answer finds the seat, and the memory goes back. */
static void test_decode_fails_while_it_waits(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, DECODE);
    assign(&s, SMG_MSG_DECODE, PREFILL, 0);
    say(&s, SMG_MSG_FAILED, SMG_ROUTER, 0);
    say(&s, SMG_MSG_DONE, PREFILL, 0);
    assert_int_equal(s.actions.n, 0);
    reserved(&s, 0, SMG_OK);
    assert_int_equal(wanted(&s, SMG_ACT_RELEASE, SMG_MSG_NONE, 0), 1);
    tear_down(&s);
}

/* ---- Prefill ---- */

static void test_prefill_hears_pool_before_prefill(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, PREFILL);
    say(&s, SMG_MSG_POOL, DECODE, 0);
    assign(&s, SMG_MSG_PREFILL, DECODE, 0);
    assert_int_equal(wanted(&s, SMG_ACT_RESERVE, SMG_MSG_NONE, 0), 1);
    reserved(&s, 0, SMG_OK);
    assert_int_equal(wanted(&s, SMG_ACT_COMPUTE, SMG_MSG_NONE, 0), 40);
    tear_down(&s);
}

/* The request fails elsewhere while its memory is waited for: nothing is computed, memory goes back, all are told. */
static void test_prefill_fails_while_it_waits(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, PREFILL);
    assign(&s, SMG_MSG_PREFILL, DECODE, 0);
    say(&s, SMG_MSG_FAILED, SMG_ROUTER, 0);
    assert_int_equal(s.actions.n, 0);
    reserved(&s, 0, SMG_OK);
    assert_int_equal(wanted(&s, SMG_ACT_COMPUTE, SMG_MSG_NONE, 0), 0);
    assert_int_equal(wanted(&s, SMG_ACT_RELEASE, SMG_MSG_NONE, 0), 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, SMG_ROUTER), 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DONE, DECODE), 1);
    tear_down(&s);
}

/* ---- Router ---- */

static void arrive(struct stage *s, uint32_t request)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_ARRIVE;
    e.request = request;
    step(s, &e);
}

static void dispatch(struct stage *s)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_TIMER;
    step(s, &e);
}

/* Decode has no room: the prefill GPU still computes, so the next prompt waits until that instance says that it is free. */
static void test_router_waits_for_the_gpu(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, SMG_ROUTER);
    arrive(&s, 0);
    arrive(&s, 1);
    dispatch(&s);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_PREFILL, PREFILL), 1);
    say(&s, SMG_MSG_FAILED, DECODE, 0);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, PREFILL), 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_PREFILL, PREFILL), 0);
    say(&s, SMG_MSG_FAILED, PREFILL, 0);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_PREFILL, PREFILL), 1);
    assert_int_equal(smg_agent_records(s.agent)->failed, 1);
    tear_down(&s);
}

/* The same when the first token was on its way already: it frees the GPU and is not recorded. */
static void test_router_hears_token_of_a_failed_request(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, SMG_ROUTER);
    arrive(&s, 0);
    arrive(&s, 1);
    dispatch(&s);
    say(&s, SMG_MSG_FAILED, DECODE, 0);
    token(&s, PREFILL, 0, 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_PREFILL, PREFILL), 1);
    assert_int_equal(smg_agent_records(s.agent)->request[0].tokens, 0);
    tear_down(&s);
}

static void test_router_hears_second_token_first(void **state)
{
    struct stage s;
    const struct smg_request_record *q;
    struct smg_event e;

    (void)state;
    set_up(&s, SMG_ROUTER);
    arrive(&s, 0);
    dispatch(&s);
    token(&s, DECODE, 0, 2);
    token(&s, PREFILL, 0, 1);
    token(&s, DECODE, 0, 3);
    q = &smg_agent_records(s.agent)->request[0];
    assert_int_equal(q->tokens, 3);
    assert_true(q->first_token_s == 1 && q->second_token_s == 2 && q->finish_s == 3);
    e = message(SMG_MSG_TOKEN, DECODE, 0);
    e.msg.u.token.token = 3;
    assert_int_equal(smg_agent_step(s.agent, &e, &s.actions), SMG_ERR_PROTOCOL);
    tear_down(&s);
}

/* ---- Lost peers ---- */

static void lose(struct stage *s, uint16_t peer)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_PEER_LOST;
    e.peer = peer;
    e.status = SMG_ERR_LOST;
    step(s, &e);
}

/* Prefill loses its decode instance while it computes: the router hears it at once, and once more when the GPU is free. */
static void test_prefill_loses_decode(void **state)
{
    struct smg_event layer;
    struct stage s;

    (void)state;
    set_up(&s, PREFILL);
    assign(&s, SMG_MSG_PREFILL, DECODE, 0);
    say(&s, SMG_MSG_POOL, DECODE, 0);
    reserved(&s, 0, SMG_OK);
    lose(&s, DECODE);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, SMG_ROUTER), 1);
    assert_int_equal(s.actions.action[0].msg.u.failed.busy, 1);
    lose(&s, DECODE);
    assert_int_equal(s.actions.n, 0);
    memset(&layer, 0, sizeof layer);
    layer.kind = SMG_EV_KV_READY;
    for (uint16_t l = 0; l < s.world.model.layers; l++) {
        layer.layer_lo = l;
        layer.layer_hi = (uint16_t)(l + 1);
        step(&s, &layer);
    }
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, SMG_ROUTER), 1);
    assert_int_equal(s.actions.action[s.actions.n - 1].msg.u.failed.busy, 0);
    assert_int_equal(s.actions.action[s.actions.n - 1].msg.u.failed.instance, DECODE);
    say(&s, SMG_MSG_DONE, DECODE, 0); /* of a lost peer: nothing */
    assert_int_equal(s.actions.n, 0);
    assign(&s, SMG_MSG_PREFILL, DECODE, 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, SMG_ROUTER), 1);
    assert_int_equal(wanted(&s, SMG_ACT_RESERVE, SMG_MSG_NONE, 0), 0);
    tear_down(&s);
}

/* Decode loses prefill: a request that was not handed off fails, one that was (mode full) goes on. */
static void test_decode_loses_prefill(void **state)
{
    struct stage s;

    (void)state;
    set_up(&s, DECODE);
    s.world.scenario.workload.batch_barrier_set = 1;
    s.world.scenario.workload.batch_barrier = 0;
    for (uint32_t i = 0; i < 2; i++) {
        assign(&s, SMG_MSG_DECODE, PREFILL, i);
        reserved(&s, i, SMG_OK);
    }
    say(&s, SMG_MSG_HANDOFF, PREFILL, 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_READY, SMG_ROUTER), 1);
    lose(&s, PREFILL);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, SMG_ROUTER), 1);
    assert_int_equal(wanted(&s, SMG_ACT_RELEASE, SMG_MSG_NONE, 0), 1);
    assert_int_equal(s.actions.action[0].request, 0);
    assert_int_equal(s.actions.action[0].msg.u.failed.instance, PREFILL);
    tear_down(&s);
}

static void test_router_has_no_prefill_left(void **state)
{
    const struct smg_records *r;
    struct stage s;

    (void)state;
    set_up(&s, SMG_ROUTER);
    arrive(&s, 0);
    arrive(&s, 1);
    dispatch(&s);
    lose(&s, PREFILL);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, DECODE), 1);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_FAILED, PREFILL), 0);
    r = smg_agent_records(s.agent);
    assert_true(r->failed == 2 && r->lost == 1);
    assert_true(r->request[0].culprit == PREFILL && r->request[1].culprit == PREFILL && r->request[1].prefill_instance == 0);
    tear_down(&s);
}

/* The one that was cut off is heard first, and blames the one that cut it off; the accusation puts that right. */
static void test_router_hears_the_accused_first(void **state)
{
    const struct smg_request_record *q;
    struct smg_event e;
    struct stage s;

    (void)state;
    set_up(&s, SMG_ROUTER);
    arrive(&s, 0);
    dispatch(&s);
    e = message(SMG_MSG_FAILED, DECODE, 0);
    e.msg.u.failed.status = SMG_ERR_LOST;
    e.msg.u.failed.instance = PREFILL;
    step(&s, &e);
    q = &smg_agent_records(s.agent)->request[0];
    assert_true(q->reason == SMG_ERR_LOST && q->culprit == PREFILL);
    assert_int_equal(smg_agent_records(s.agent)->lost, 0);
    e = message(SMG_MSG_FAILED, PREFILL, 0);
    e.msg.u.failed.status = SMG_ERR_PROTOCOL;
    e.msg.u.failed.instance = DECODE;
    e.msg.u.failed.busy = 1;
    step(&s, &e);
    assert_true(q->reason == SMG_ERR_PROTOCOL && q->culprit == DECODE);
    arrive(&s, 1); /* no decode instance is trusted any more */
    dispatch(&s);
    assert_int_equal(smg_agent_records(s.agent)->failed, 2);
    e.msg.u.failed.instance = PREFILL;
    assert_int_equal(smg_agent_step(s.agent, &e, &s.actions), SMG_ERR_PROTOCOL);
    tear_down(&s);
}

/* What a prefill instance has lost may be lost, before the router knows: a new request goes there only where there is no other.
 */
static void test_router_doubts(void **state)
{
    struct smg_event e;
    struct stage s;

    (void)state;
    set_up_with(&s, SMG_ROUTER, 2);
    arrive(&s, 0);
    dispatch(&s);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DECODE, DECODE), 1);
    e = message(SMG_MSG_FAILED, PREFILL, 0);
    e.msg.u.failed.status = SMG_ERR_LOST;
    e.msg.u.failed.instance = DECODE;
    step(&s, &e);
    assert_int_equal(smg_agent_records(s.agent)->lost, 0);
    arrive(&s, 1);
    dispatch(&s);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DECODE, DECODE), 0);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DECODE, DECODE + 1), 1);
    lose(&s, DECODE + 1);
    say(&s, SMG_MSG_FAILED, PREFILL, 1); /* its GPU is free */
    arrive(&s, 2);
    dispatch(&s);
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DECODE, DECODE), 1);
    tear_down(&s);
}

/* ---- What no correct driver sends ---- */

static struct smg_event done(enum smg_purpose purpose, uint32_t request)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_OP_DONE;
    e.purpose = (uint16_t)purpose;
    e.request = request;
    return e;
}

/* What reaches host memory after the end is not queued any more: a request that is dropped leaves nothing behind. */
static void test_prefill_done_before_the_last_layer(void **state)
{
    struct smg_event offloaded = done(SMG_FOR_OFFLOAD, 0), written = done(SMG_FOR_PUSH, 0);
    struct stage s;
    int in_flight;

    (void)state;
    set_up(&s, PREFILL);
    assign(&s, SMG_MSG_PREFILL, DECODE, 0);
    say(&s, SMG_MSG_POOL, DECODE, 0);
    reserved(&s, 0, SMG_OK);
    step(&s, &offloaded);
    in_flight = wanted(&s, SMG_ACT_WRITE, SMG_MSG_NONE, 0);
    assert_true(in_flight > 0);
    say(&s, SMG_MSG_DONE, DECODE, 0);
    for (uint32_t l = 1; l < s.world.model.layers; l++) {
        step(&s, &offloaded);
        assert_int_equal(wanted(&s, SMG_ACT_WRITE, SMG_MSG_NONE, 0), 0);
    }
    while (in_flight--) {
        step(&s, &written);
        assert_int_equal(wanted(&s, SMG_ACT_WRITE, SMG_MSG_NONE, 0), 0);
    }
    assert_int_equal(wanted(&s, SMG_ACT_SEND, SMG_MSG_DONE, DECODE), 1);
    assert_int_equal(wanted(&s, SMG_ACT_RELEASE, SMG_MSG_NONE, 0), 1);
    tear_down(&s);
}

static void refuses(uint16_t instance, const struct smg_event *e, const char *what)
{
    struct stage s;

    set_up(&s, instance);
    if (smg_agent_step(s.agent, e, &s.actions) != SMG_ERR_PROTOCOL)
        fail_msg("instance %u takes %s", instance, what);
    tear_down(&s);
}

static void test_refused(void **state)
{
    struct smg_event e;

    (void)state;
    for (uint16_t instance = 0; instance <= DECODE; instance++) {
        e = message(SMG_MSG_FAILED, PREFILL, REQUESTS);
        refuses(instance, &e, "a request that does not exist");
        e = message(SMG_MSG_FAILED, DECODE + 1, 0);
        refuses(instance, &e, "word of an instance that does not exist");
        e = message(SMG_MSG_FAILED, PREFILL, 0);
        e.msg.layer_lo = e.msg.layer_hi = 41;
        refuses(instance, &e, "a layer that does not exist");
    }
    e = message(SMG_MSG_DECODE, SMG_ROUTER, 0);
    e.msg.u.assign.output_tokens = 3;
    e.msg.u.assign.partner = PREFILL;
    refuses(DECODE, &e, "a prompt of another length");
    e.msg.u.assign.prompt_tokens = 1000;
    e.msg.u.assign.total_blocks = 40001;
    refuses(DECODE, &e, "more blocks than there are");
    e.msg.u.assign.total_blocks = 40000;
    e.msg.u.assign.partner = DECODE;
    refuses(DECODE, &e, "a decode instance as its partner");
    e = done(SMG_FOR_FFN, 0);
    refuses(DECODE, &e, "the end of what has not begun");
    e = done(SMG_FOR_ATTENTION, 0);
    refuses(DECODE, &e, "the end of what has not begun");
    e = message(SMG_MSG_HANDOFF, SMG_ROUTER, 0);
    refuses(DECODE, &e, "a hand-off of what was not assigned");
}

/* A grant, and the end of more copies than there are layers. */
static void test_prefill_refuses(void **state)
{
    struct stage s;
    struct smg_event e = message(SMG_MSG_IDLE, DECODE, 0);

    (void)state;
    set_up(&s, PREFILL);
    say(&s, SMG_MSG_POOL, DECODE, 0);
    e.msg.u.grant.blocks = UINT32_MAX;
    assert_int_equal(smg_agent_step(s.agent, &e, &s.actions), SMG_ERR_PROTOCOL);
    tear_down(&s);

    set_up(&s, PREFILL);
    assign(&s, SMG_MSG_PREFILL, DECODE, 0);
    reserved(&s, 0, SMG_OK);
    e = done(SMG_FOR_OFFLOAD, 0);
    for (uint32_t l = 0; l < s.world.model.layers; l++)
        step(&s, &e);
    assert_int_equal(smg_agent_step(s.agent, &e, &s.actions), SMG_ERR_PROTOCOL);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_hears_done_before_decode),
        cmocka_unit_test(test_decode_fails_while_it_waits),
        cmocka_unit_test(test_prefill_hears_pool_before_prefill),
        cmocka_unit_test(test_prefill_fails_while_it_waits),
        cmocka_unit_test(test_router_waits_for_the_gpu),
        cmocka_unit_test(test_router_hears_token_of_a_failed_request),
        cmocka_unit_test(test_router_hears_second_token_first),
        cmocka_unit_test(test_prefill_done_before_the_last_layer),
        cmocka_unit_test(test_prefill_loses_decode),
        cmocka_unit_test(test_decode_loses_prefill),
        cmocka_unit_test(test_router_has_no_prefill_left),
        cmocka_unit_test(test_router_hears_the_accused_first),
        cmocka_unit_test(test_router_doubts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prefill_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
