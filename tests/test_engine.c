/* The engine port against closed forms and an independent processor-sharing solver, on every engine. */
#include "config.h"

#include "tests/test_engine_util.h"

/* Relative. The native engine promises 1e-12; SimGrid's clock is a sum of steps, each rounded. */
static double tolerance(const struct smg_engine_type *type)
{
    return strcmp(type->name, "native") == 0 ? 1e-12 : 1e-10;
}

/* ---- Closed forms ---- */

static void test_single_flow(void **state)
{
    const struct smg_engine_type *type = *state;
    double tx[] = {3.125e9, 1e9}, rx[] = {2e9, 2.5e9}, end_s;
    struct scenario_flow flow = {0, 1, 1e6, FLOW_AT_START, 0};
    struct scenario s = {2, 1, tx, rx, 0, &flow};

    scenario_run(type, &s, &end_s);
    assert_close(end_s, 1e6 / 2.5e9, tolerance(type));
    s.core_Bps = 1e8;
    scenario_run(type, &s, &end_s);
    assert_close(end_s, 1e6 / 1e8, tolerance(type));
}

/* Infinite rates on either side, on both, and an endpoint that sends to itself over its own two links. */
static void test_infinite_links(void **state)
{
    const struct smg_engine_type *type = *state;
    double tx[] = {INFINITY, 1e9, INFINITY}, rx[] = {INFINITY, 2e9, INFINITY}, end_s[5];
    struct scenario_flow flows[] = {
        {0, 2, 1e9, FLOW_AT_START, 1}, {1, 2, 1e9, 0, 0}, {0, 1, 1e9, 1, 0}, {1, 1, 1e9, 2, 0}, {0, 0, 1e9, 3, 0}};
    struct scenario s = {3, 5, tx, rx, 0, flows};

    scenario_run(type, &s, end_s);
    assert_close(end_s[0], 1, tolerance(type));
    assert_close(end_s[1], 2, tolerance(type));
    assert_close(end_s[2], 2.5, tolerance(type));
    assert_close(end_s[3], 3.5, tolerance(type));
    assert_close(end_s[4], 3.5, tolerance(type));
}

static void equal_flows_check(const struct smg_engine_type *type, uint32_t n)
{
    double tx[2] = {1e12, 1e12}, rx[2] = {1e12, 3.125e9}, end_s[300];
    struct scenario_flow flows[300];
    struct scenario s = {2, n, tx, rx, 0, flows};

    for (uint32_t i = 0; i < n; i++)
        flows[i] = (struct scenario_flow){0, 1, 1e6, FLOW_AT_START, 0};
    scenario_run(type, &s, end_s);
    for (uint32_t i = 0; i < n; i++) {
        assert_close(end_s[i], n * 1e6 / 3.125e9, tolerance(type));
        assert_true(end_s[i] == end_s[0]);
    }
}

static void test_equal_flows(void **state)
{
    equal_flows_check(*state, 2);
    equal_flows_check(*state, 7);
    equal_flows_check(*state, 300);
}

/* Max-min by hand: three flows leave endpoint 0 (rate 3); one of them meets a slow receiver (0.5), the others get 1.25 each. */
static void test_max_min(void **state)
{
    const struct smg_engine_type *type = *state;
    double tx[] = {3e9, 1e9, 1e9, 1e9}, rx[] = {1e9, 0.5e9, 8e9, 8e9}, end_s[3];
    struct scenario_flow flows[] = {
        {0, 1, 0.5e9, FLOW_AT_START, 0}, {0, 2, 1.25e9, FLOW_AT_START, 0}, {0, 3, 2.75e9, FLOW_AT_START, 0}};
    struct scenario s = {4, 3, tx, rx, 0, flows};

    scenario_run(type, &s, end_s);
    assert_close(end_s[0], 1, tolerance(type));
    assert_close(end_s[1], 1, tolerance(type));
    assert_close(end_s[2], 1.5, tolerance(type)); /* 1.5e9 left at 1 s, alone at 3e9 */
}

/* ---- Staggered flows on one link, against processor sharing solved here ---- */
#define PS_FLOWS 400

struct ps_case {
    double start_s[PS_FLOWS], bytes[PS_FLOWS];
};

/* The link is shared equally by all flows that have started: from event to event, in long double, no heap and no max-min. */
static void ps_solve(const struct ps_case *c, long double cap_Bps, double *end_s)
{
    long double left[PS_FLOWS], now_s = 0;
    size_t done = 0;

    for (size_t i = 0; i < PS_FLOWS; i++) {
        left[i] = c->bytes[i];
        end_s[i] = -1;
    }
    while (done < PS_FLOWS) {
        long double start_s = INFINITY, least = INFINITY, step_s;
        size_t active = 0, first = PS_FLOWS;

        for (size_t i = 0; i < PS_FLOWS; i++) {
            if (end_s[i] >= 0)
                continue;
            if (c->start_s[i] > now_s) {
                start_s = fminl(start_s, c->start_s[i]);
                continue;
            }
            active++;
            if (left[i] < least) {
                least = left[i];
                first = i;
            }
        }
        step_s = active ? least * active / cap_Bps : INFINITY;
        if (now_s + step_s > start_s) {
            first = PS_FLOWS;
            step_s = start_s - now_s;
        }
        for (size_t i = 0; i < PS_FLOWS; i++)
            if (end_s[i] < 0 && c->start_s[i] <= now_s)
                left[i] -= step_s * cap_Bps / active;
        now_s = first == PS_FLOWS ? start_s : now_s + step_s;
        if (first < PS_FLOWS) {
            end_s[first] = (double)now_s;
            done++;
        }
    }
}

static void ps_case_fill(struct ps_case *c, uint64_t seed, double bytes, double load)
{
    double at_s = 0;

    for (size_t i = 0; i < PS_FLOWS; i++) {
        c->bytes[i] = bytes * test_uniform(&seed, 0.1, 2);
        c->start_s[i] = at_s;
        at_s += test_uniform(&seed, 0, 2) * bytes / (load * 3.125e9);
    }
}

/* Sources differ in both engines' links, but only the shared receive link binds. */
static void ps_engine(const struct smg_engine_type *type, const struct ps_case *c, double *end_s)
{
    double tx[9], rx[9];
    struct scenario_flow flows[PS_FLOWS];
    struct scenario s = {9, PS_FLOWS, tx, rx, 0, flows};

    for (size_t i = 0; i < 9; i++)
        tx[i] = rx[i] = i == 0 ? 3.125e9 : 1e13 + 1e12 * (double)i;
    for (uint32_t i = 0; i < PS_FLOWS; i++)
        flows[i] = (struct scenario_flow){1 + i % 8, 0, c->bytes[i], FLOW_AT_START, c->start_s[i]};
    scenario_run(type, &s, end_s);
}

static double worst_error(const double *value, const double *expected, size_t n)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, relative_error(value[i], expected[i]));
    return worst;
}

static void test_processor_sharing(void **state)
{
    const struct smg_engine_type *type = *state;
    static const double loads[] = {0.3, 0.9, 5};
    struct ps_case c;
    double end_s[PS_FLOWS], expected_s[PS_FLOWS];

    for (size_t i = 0; i < 3; i++) {
        ps_case_fill(&c, 11 + i, i == 0 ? 16384 : 1e6, loads[i]);
        ps_engine(type, &c, end_s);
        ps_solve(&c, 3.125e9L, expected_s);
        print_message("%s: load %.1f: worst relative error %.2g\n", type->name, loads[i],
                      worst_error(end_s, expected_s, PS_FLOWS));
        assert_true(worst_error(end_s, expected_s, PS_FLOWS) <= tolerance(type));
        /* the comparison has power: an oracle wrong by 1e-9 is found out */
        ps_solve(&c, 3.125e9L * (1 + 1e-9L), expected_s);
        assert_true(worst_error(end_s, expected_s, PS_FLOWS) > tolerance(type));
    }
}

/* While any flow is active the link is full: bytes = rate * busy time. */
static void test_conservation(void **state)
{
    const struct smg_engine_type *type = *state;
    struct ps_case c;
    double end_s[PS_FLOWS], busy_s = 0, until_s = 0, bytes = 0;

    ps_case_fill(&c, 5, 1e6, 0.7);
    ps_engine(type, &c, end_s);
    for (size_t i = 0; i < PS_FLOWS; i++) {
        double last_s = 0;

        /* starts are sorted, so the busy period before this start is the union of what came earlier */
        for (size_t k = 0; k <= i; k++)
            last_s = fmax(last_s, end_s[k]);
        busy_s += fmax(0, last_s - fmax(until_s, c.start_s[i]));
        until_s = fmax(until_s, last_s);
        bytes += c.bytes[i];
        assert_true(end_s[i] >= c.start_s[i] + c.bytes[i] / 3.125e9 * (1 - 1e-9));
    }
    assert_close(busy_s * 3.125e9, bytes, 1e-10);
}

/* ---- Pipeline: L layers, compute c each, then transfer x each in order ---- */
struct pipeline {
    double compute_s, bytes;
    uint32_t layers;
    double end_s;
};

enum { TAG_COMPUTE, TAG_TRANSFER };

static int pipeline_body(struct smg_engine *e, void *arg)
{
    struct pipeline *p = arg;
    uint32_t computed = 0, sent = 0;
    bool sending = false;
    uint64_t tags[4];
    size_t n;
    int status = smg_engine_timer(e, p->compute_s, TAG_COMPUTE);

    while (status == 0 && sent < p->layers) {
        status = smg_engine_next(e, tags, 4, &n);
        for (size_t i = 0; i < n && status == 0; i++) {
            if (tags[i] == TAG_TRANSFER) {
                sent++;
                sending = false;
            } else if (++computed < p->layers) {
                status = smg_engine_timer(e, p->compute_s, TAG_COMPUTE);
            }
        }
        if (status == 0 && !sending && computed > sent) {
            status = smg_engine_flow(e, 0, 1, p->bytes, TAG_TRANSFER);
            sending = true;
        }
    }
    p->end_s = smg_engine_now(e);
    return status;
}

/* Two endpoints of 3.125e9 B/s each way. */
static int pair_job_run(const struct smg_engine_type *type, smg_engine_body_fn body, void *arg)
{
    struct smg_engine *e;
    uint32_t id;
    int status = smg_engine_create(type, &e);

    if (status != 0)
        return status;
    for (int i = 0; i < 2 && status == 0; i++)
        status = smg_engine_endpoint(e, 3.125e9, 3.125e9, &id);
    if (status == 0)
        status = smg_engine_run(e, body, arg);
    smg_engine_destroy(e);
    return status;
}

static int pipeline_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    struct pipeline p = *(const struct pipeline *)in;
    int status = pair_job_run(type, pipeline_body, &p);

    assert_true(n_out == 1);
    out[0] = p.end_s;
    return status;
}

static void test_pipeline(void **state)
{
    const struct smg_engine_type *type = *state;
    static const double ratios[] = {0.25, 0.999, 1.5, 6};

    for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
        struct pipeline p = {.compute_s = 1.7e-3, .bytes = ratios[i] * 1.7e-3 * 3.125e9, .layers = 40};
        double c = p.compute_s, x = p.bytes / 3.125e9, end_s;

        assert_int_equal(engine_job(type, pipeline_job, &p, &end_s, 1), 0);
        assert_close(end_s, c + (p.layers - 1) * fmax(c, x) + x, tolerance(type));
    }
}

/* ---- Timers, ties, zero bytes: a log of (time, tag) pairs, one per completion, and the size of each batch ---- */
#define LOG_MAX 32

struct tie_log {
    double at_s[LOG_MAX], tag[LOG_MAX], batch[LOG_MAX]; /* batch: number of the call of next */
    double n, calls;
};

static int log_drain(struct smg_engine *e, struct tie_log *log, size_t cap, size_t calls)
{
    uint64_t tags[8];
    size_t n = 1;
    int status = 0;

    for (size_t call = 0; call < calls && n > 0 && status == 0; call++) {
        status = smg_engine_next(e, tags, cap, &n);
        for (size_t i = 0; i < n && status == 0; i++) {
            size_t at = (size_t)log->n;

            log->at_s[at] = smg_engine_now(e);
            log->tag[at] = (double)tags[i];
            log->batch[at] = log->calls;
            log->n++;
        }
        log->calls += n > 0;
    }
    return status;
}

struct tie_script {
    smg_engine_body_fn body;
};

static int tie_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    const struct tie_script *script = in;
    struct tie_log log = {{0}, {0}, {0}, 0, 0};
    int status = pair_job_run(type, script->body, &log);

    assert_true(n_out * sizeof(double) == sizeof(log));
    memcpy(out, &log, sizeof(log));
    return status;
}

static void tie_run(const struct smg_engine_type *type, smg_engine_body_fn body, struct tie_log *log)
{
    struct tie_script script = {body};
    double out[sizeof(*log) / sizeof(double)];

    assert_int_equal(engine_job(type, tie_job, &script, out, sizeof(out) / sizeof(double)), 0);
    memcpy(log, out, sizeof(*log));
}

static void log_check(const struct tie_log *log, size_t n, const double (*expected)[3])
{
    assert_int_equal((size_t)log->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_close(log->at_s[i], expected[i][0], 1e-9);
        assert_true(log->tag[i] == expected[i][1]);
        assert_true(log->batch[i] == expected[i][2]);
    }
}

static int timers_body(struct smg_engine *e, void *arg)
{
    static const double at_ms[] = {3, 1, 2, 1, 0, 2, 3, 0};
    int status = 0;

    for (uint64_t i = 0; i < 8 && status == 0; i++)
        status = smg_engine_timer(e, at_ms[i] * 1e-3, 10 - i);
    return status ? status : log_drain(e, arg, 8, 100);
}

static void test_timers(void **state)
{
    static const double expected[][3] = {{0, 3, 0},    {0, 6, 0},    {1e-3, 7, 1}, {1e-3, 9, 1},
                                         {2e-3, 5, 2}, {2e-3, 8, 2}, {3e-3, 4, 3}, {3e-3, 10, 3}};
    struct tie_log log;

    tie_run(*state, timers_body, &log);
    log_check(&log, 8, expected);
}

/* Flows and timers that end within SMG_ENGINE_TIE_S come together; cap cuts the batch, not the order. */
static int ties_body(struct smg_engine *e, void *arg)
{
    int status = smg_engine_timer(e, 1e-3, 9);

    status = status ? status : smg_engine_timer(e, 1e-3 + 0.5e-12, 2);
    status = status ? status : smg_engine_timer(e, 1e-3 + 1e-9, 1);
    for (uint64_t i = 0; i < 4 && status == 0; i++)
        status = smg_engine_flow(e, 0, 1, 3.125e6 / 4, 8 - i);
    return status ? status : log_drain(e, arg, 4, 100);
}

static void test_ties(void **state)
{
    static const double expected[][3] = {{1e-3, 2, 0}, {1e-3, 5, 0}, {1e-3, 6, 0},       {1e-3, 7, 0},
                                         {1e-3, 8, 1}, {1e-3, 9, 1}, {1e-3 + 1e-9, 1, 2}};
    struct tie_log log;

    tie_run(*state, ties_body, &log);
    log_check(&log, 7, expected);
    for (size_t i = 1; i < 6; i++)
        assert_true(log.at_s[i] == log.at_s[0]);
    assert_true(log.at_s[6] > log.at_s[0]);
}

/* What takes no time completes at this instant but in a later call, even beside flows in flight. */
static int instant_body(struct smg_engine *e, void *arg)
{
    int status = smg_engine_flow(e, 0, 1, 3.125e6, 1);

    status = status ? status : smg_engine_timer(e, 0.5e-3, 2);
    status = status ? status : log_drain(e, arg, 8, 1);
    status = status ? status : smg_engine_flow(e, 1, 0, 0, 4);
    status = status ? status : smg_engine_timer(e, 0, 3);
    status = status ? status : log_drain(e, arg, 8, 1);
    status = status ? status : smg_engine_flow(e, 1, 0, 0, 5);
    return status ? status : log_drain(e, arg, 8, 100);
}

static void test_zero_bytes(void **state)
{
    static const double expected[][3] = {{0.5e-3, 2, 0}, {0.5e-3, 3, 1}, {0.5e-3, 4, 1}, {0.5e-3, 5, 2}, {1e-3, 1, 3}};
    struct tie_log log;

    tie_run(*state, instant_body, &log);
    log_check(&log, 5, expected);
}

/* ---- Contract: phases, arguments, the value of the body ---- */

static int contract_body(struct smg_engine *e, void *arg)
{
    uint64_t tag;
    size_t n = 1;
    uint32_t id;
    double *wrong = arg;

    *wrong += smg_engine_now(e) != 0;
    *wrong += smg_engine_endpoint(e, 1, 1, &id) != SMG_ERR_PROTOCOL;
    *wrong += smg_engine_core(e, 1) != SMG_ERR_PROTOCOL;
    *wrong += smg_engine_run(e, contract_body, arg) != SMG_ERR_PROTOCOL;
    *wrong += smg_engine_timer(e, -1, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_timer(e, INFINITY, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_timer(e, NAN, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_flow(e, 2, 0, 1, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_flow(e, 0, 2, 1, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_flow(e, 0, 1, -1, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_flow(e, 0, 1, NAN, 0) != SMG_ERR_INVALID;
    *wrong += smg_engine_next(e, &tag, 0, &n) != SMG_ERR_INVALID;
    /* refused calls have left nothing behind: nothing is pending, and that is not an error */
    *wrong += smg_engine_next(e, &tag, 1, &n) != SMG_OK || n != 0;
    return SMG_ERR_VERIFY;
}

static int contract_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    struct smg_engine *e, *second = NULL;
    uint32_t id = 0, other = 0;
    uint64_t tag;
    size_t n;
    double wrong = smg_engine_create(type, &e) != SMG_OK;
    bool once = strcmp(type->name, "simgrid") == 0;

    (void)in;
    assert_true(n_out == 1);
    wrong += smg_engine_create(type, &second) != (once ? SMG_ERR_UNSUPPORTED : SMG_OK);
    wrong += smg_engine_endpoint(e, 0, 1, &id) != SMG_ERR_INVALID;
    wrong += smg_engine_endpoint(e, 1, NAN, &id) != SMG_ERR_INVALID;
    wrong += smg_engine_endpoint(e, 1, 1, NULL) != SMG_ERR_INVALID;
    wrong += smg_engine_core(e, -1) != SMG_ERR_INVALID;
    wrong += smg_engine_endpoint(e, 1, 1, &id) != SMG_OK || smg_engine_endpoint(e, 1, 1, &other) != SMG_OK;
    wrong += id != 0 || other != 1;
    wrong += smg_engine_timer(e, 1, 0) != SMG_ERR_PROTOCOL || !isnan(smg_engine_now(e));
    wrong += smg_engine_run(e, NULL, NULL) != SMG_ERR_INVALID;
    wrong += smg_engine_run(e, contract_body, &wrong) != SMG_ERR_VERIFY;
    wrong += smg_engine_run(e, contract_body, &wrong) != SMG_ERR_PROTOCOL;
    wrong += smg_engine_next(e, &tag, 1, &n) != SMG_ERR_PROTOCOL;
    smg_engine_destroy(e);
    smg_engine_destroy(second);
    smg_engine_destroy(NULL);
    out[0] = wrong;
    return 0;
}

static void test_contract(void **state)
{
    double wrong = -1;

    assert_int_equal(engine_job(*state, contract_job, NULL, &wrong, 1), 0);
    assert_true(wrong == 0);
    assert_null(smg_engine_find("no such engine"));
    assert_null(smg_engine_find(NULL));
    assert_non_null(smg_engine_find("native"));
}

/* A run that is left with work in flight ends cleanly: whoever drives the port may stop at any time. */
static int leave_body(struct smg_engine *e, void *arg)
{
    int status = smg_engine_timer(e, 1, 1);

    status = status ? status : smg_engine_flow(e, 0, 1, 1e12, 2);
    status = status ? status : smg_engine_flow(e, 1, 0, 1e3, 3);
    return status ? status : log_drain(e, arg, 8, 1);
}

static void test_leave(void **state)
{
    static const double expected[][3] = {{1e3 / 3.125e9, 3, 0}};
    struct tie_log log;

    tie_run(*state, leave_body, &log);
    log_check(&log, 1, expected);
}

int main(void)
{
    static const struct engine_test tests[] = {
        {"single flow: S/B", test_single_flow},
        {"infinite links never bind", test_infinite_links},
        {"n equal flows: n*S/B", test_equal_flows},
        {"max-min by hand", test_max_min},
        {"staggered flows: processor sharing, with power", test_processor_sharing},
        {"conservation", test_conservation},
        {"pipeline: c + (L-1)*max(c,x) + x", test_pipeline},
        {"timers: by time, then tag", test_timers},
        {"ties of flows and timers", test_ties},
        {"zero bytes and zero delay", test_zero_bytes},
        {"phases and arguments", test_contract},
        {"leaving with work in flight", test_leave},
    };

    return engine_tests_run("engine", tests, sizeof(tests) / sizeof(tests[0]));
}
