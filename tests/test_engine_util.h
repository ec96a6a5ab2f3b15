/* Shared by the tests of the engine port: running an engine where it may run, and scenarios of flows. */
#ifndef SMG_TESTS_TEST_ENGINE_UTIL_H
#define SMG_TESTS_TEST_ENGINE_UTIL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/engine.h"

/* Runs on a fresh engine; fills out[]; 0 on success. */
typedef int (*engine_job_fn)(const struct smg_engine_type *type, const void *in, double *out, size_t n_out);

static inline bool pipe_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);

        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static inline size_t pipe_read(int fd, void *data, size_t bytes)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = read(fd, (char *)data + got, bytes - got);

        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

/* A process can hold one SimGrid simulation, so each runs in a child; the native engine stays here, where checkers see it. */
static inline int engine_job(const struct smg_engine_type *type, engine_job_fn job, const void *in, double *out, size_t n_out)
{
    int ends[2], wait_status = 0;
    size_t got;
    pid_t child;

    if (strcmp(type->name, "simgrid") != 0)
        return job(type, in, out, n_out);
    fflush(NULL);
    if (pipe(ends) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        int status = job(type, in, out, n_out);

        _exit(status == 0 && pipe_write(ends[1], out, n_out * sizeof(*out)) ? 0 : 1);
    }
    close(ends[1]);
    got = pipe_read(ends[0], out, n_out * sizeof(*out));
    close(ends[0]);
    if (child < 0 || waitpid(child, &wait_status, 0) != child)
        return -1;
    return wait_status == 0 && got == n_out * sizeof(*out) ? 0 : -1;
}

static inline double relative_error(double value, double expected)
{
    return value == expected ? 0 : fabs(value - expected) / fmax(fabs(expected), 1e-300);
}

#define assert_close(value, expected, tolerance)                                                                                 \
    do {                                                                                                                         \
        double value_ = (value), expected_ = (expected);                                                                         \
        if (!(relative_error(value_, expected_) <= (tolerance)))                                                                 \
            fail_msg("%s = %.17g, expected %.17g: relative error %.3g > %.3g", #value, value_, expected_,                        \
                     relative_error(value_, expected_), (double)(tolerance));                                                    \
    } while (0)

/* xorshift64*: the same numbers everywhere */
static inline uint64_t test_rng(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

static inline double test_uniform(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * (double)(test_rng(state) >> 11) * 0x1p-53;
}

/* ---- Scenarios: flows that start a delay after time 0 or after the end of another flow ---- */
#define FLOW_AT_START UINT32_MAX

struct scenario_flow {
    uint32_t src, dst;
    double bytes;
    uint32_t after; /* a flow with a lower number, or FLOW_AT_START */
    double delay_s;
};

struct scenario {
    uint32_t n_endpoints, n_flows;
    double *tx_Bps, *rx_Bps;     /* [n_endpoints] */
    double core_Bps;             /* 0: none */
    struct scenario_flow *flows; /* [n_flows] */
};

struct scenario_run {
    const struct scenario *s;
    double *end_s; /* [n_flows] */
};

/* Timers have the tag of the flow they start; flows have that plus n_flows. */
static inline int scenario_start_after(struct smg_engine *e, const struct scenario *s, uint32_t after)
{
    int status = 0;

    for (uint32_t i = 0; i < s->n_flows && status == 0; i++)
        if (s->flows[i].after == after)
            status = smg_engine_timer(e, s->flows[i].delay_s, i);
    return status;
}

static inline int scenario_step(struct smg_engine *e, const struct scenario_run *run, uint64_t tag)
{
    const struct scenario *s = run->s;

    if (tag < s->n_flows)
        return smg_engine_flow(e, s->flows[tag].src, s->flows[tag].dst, s->flows[tag].bytes, tag + s->n_flows);
    run->end_s[tag - s->n_flows] = smg_engine_now(e);
    return scenario_start_after(e, s, (uint32_t)(tag - s->n_flows));
}

static inline int scenario_body(struct smg_engine *e, void *arg)
{
    const struct scenario_run *run = arg;
    uint64_t tags[16];
    size_t n = 1;
    int status = scenario_start_after(e, run->s, FLOW_AT_START);

    while (n > 0 && status == 0) {
        status = smg_engine_next(e, tags, 16, &n);
        for (size_t i = 0; i < n && status == 0; i++)
            status = scenario_step(e, run, tags[i]);
    }
    return status;
}

static inline int scenario_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    const struct scenario *s = in;
    struct scenario_run run = {s, out};
    struct smg_engine *e;
    uint32_t id;
    int status = smg_engine_create(type, &e);

    if (status != 0)
        return status;
    for (size_t i = 0; i < n_out; i++)
        out[i] = NAN;
    for (uint32_t i = 0; i < s->n_endpoints && status == 0; i++)
        status = smg_engine_endpoint(e, s->tx_Bps[i], s->rx_Bps[i], &id);
    if (s->core_Bps > 0 && status == 0)
        status = smg_engine_core(e, s->core_Bps);
    if (status == 0)
        status = smg_engine_run(e, scenario_body, &run);
    smg_engine_destroy(e);
    return status;
}

/* end_s[n_flows] */
static inline void scenario_run(const struct smg_engine_type *type, const struct scenario *s, double *end_s)
{
    assert_int_equal(engine_job(type, scenario_job, s, end_s, s->n_flows), 0);
}

/* ---- One program, every engine: each test runs once per engine, its state is the engine ---- */
struct engine_test {
    const char *name;
    CMUnitTestFunction run;
};

#define ENGINE_TEST_MISSING "skip: this program is built without SimGrid"

static inline void engine_test_missing(void **state)
{
    (void)state;
    print_message("%s\n", ENGINE_TEST_MISSING);
    skip();
}

/* Returns the number of failed tests. */
static inline int engine_tests_run(const char *group, const struct engine_test *tests, size_t n_tests)
{
    static char names[64][96];
    struct CMUnitTest list[64] = {{0}};
    size_t n = 0;

    for (size_t t = 0; smg_engine_types[t]; t++)
        for (size_t i = 0; i < n_tests && n < 63; i++, n++) {
            snprintf(names[n], sizeof(names[n]), "%s: %s", smg_engine_types[t]->name, tests[i].name);
            list[n].name = names[n];
            list[n].test_func = tests[i].run;
            memcpy(&list[n].initial_state, &smg_engine_types[t], sizeof(void *));
        }
    if (!smg_engine_find("simgrid"))
        list[n++] = (struct CMUnitTest){.name = "simgrid: all", .test_func = engine_test_missing};
    return _cmocka_run_group_tests(group, list, n, NULL, NULL);
}

#endif
