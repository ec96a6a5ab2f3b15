/* The two engines against each other: random scenarios over many links, with flows that start when others end. */
#include "config.h"

#include "tests/test_engine_util.h"

/* Relative, on completion times. */
#define PAIR_TOLERANCE 1e-9
#define PAIR_SCENARIOS 100

static void scenario_free(struct scenario *s)
{
    free(s->tx_Bps);
    free(s->rx_Bps);
    free(s->flows);
}

static double random_rate(uint64_t *rng)
{
    return test_uniform(rng, 0, 1) < 0.15 ? INFINITY : exp(test_uniform(rng, log(1e8), log(5e10)));
}

/* One draw a statement: the order of draws must not depend on the compiler. */
static struct scenario_flow random_flow(uint64_t *rng, uint32_t i, uint32_t n_endpoints)
{
    struct scenario_flow flow = {.after = FLOW_AT_START};

    flow.src = (uint32_t)(test_rng(rng) % n_endpoints);
    flow.dst = (uint32_t)(test_rng(rng) % n_endpoints);
    flow.bytes = exp(test_uniform(rng, log(1e3), log(1e8)));
    if (test_uniform(rng, 0, 1) < 0.05)
        flow.bytes = 0;
    if (i > 3 && test_uniform(rng, 0, 1) < 0.6)
        flow.after = (uint32_t)(test_rng(rng) % i);
    /* delays are random, so no two events coincide unless one causes the other */
    flow.delay_s = test_uniform(rng, 0, flow.after == FLOW_AT_START ? 0.05 : 1e-3);
    return flow;
}

static struct scenario random_scenario(uint64_t seed, uint32_t n_endpoints, uint32_t n_flows)
{
    uint64_t rng = 0x9e3779b97f4a7c15ull * (seed + 1);
    struct scenario s = {n_endpoints,
                         n_flows,
                         calloc(n_endpoints, sizeof(double)),
                         calloc(n_endpoints, sizeof(double)),
                         0,
                         calloc(n_flows, sizeof(struct scenario_flow))};

    assert_true(s.tx_Bps && s.rx_Bps && s.flows);
    for (uint32_t i = 0; i < n_endpoints; i++) {
        s.tx_Bps[i] = random_rate(&rng);
        s.rx_Bps[i] = random_rate(&rng);
    }
    if (seed % 3 == 0)
        s.core_Bps = test_uniform(&rng, 1e9, 1e10);
    for (uint32_t i = 0; i < n_flows; i++)
        s.flows[i] = random_flow(&rng, i, n_endpoints);
    return s;
}

/* Worst relative difference of completion times. */
static double pair_compare(const struct smg_engine_type *simgrid, const struct scenario *s)
{
    double *native_s = calloc(s->n_flows, sizeof(double)), *simgrid_s = calloc(s->n_flows, sizeof(double)), worst = 0;

    assert_true(native_s && simgrid_s);
    scenario_run(smg_engine_find("native"), s, native_s);
    scenario_run(simgrid, s, simgrid_s);
    for (uint32_t i = 0; i < s->n_flows; i++) {
        assert_true(native_s[i] >= 0);
        assert_close(simgrid_s[i], native_s[i], PAIR_TOLERANCE);
        worst = fmax(worst, relative_error(simgrid_s[i], native_s[i]));
    }
    free(native_s);
    free(simgrid_s);
    return worst;
}

static void test_random(void **state)
{
    const struct smg_engine_type *simgrid = smg_engine_find("simgrid");
    double worst = 0;

    (void)state;
    for (uint64_t seed = 0; seed < PAIR_SCENARIOS; seed++) {
        uint64_t rng = seed + 77;
        uint32_t n_endpoints = 2 + (uint32_t)(test_rng(&rng) % 30);
        uint32_t n_flows = 20 + (uint32_t)(test_rng(&rng) % 180);
        struct scenario s = random_scenario(seed, n_endpoints, n_flows);

        worst = fmax(worst, pair_compare(simgrid, &s));
        scenario_free(&s);
    }
    print_message("%d scenarios: worst relative difference %.2g\n", PAIR_SCENARIOS, worst);
}

/* Thousands of endpoints, hundreds of flows at a time. */
static void test_large(void **state)
{
    const struct smg_engine_type *simgrid = smg_engine_find("simgrid");
    struct scenario s = random_scenario(1000, 3000, 4000);

    (void)state;
    print_message("3000 endpoints: worst relative difference %.2g\n", pair_compare(simgrid, &s));
    scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_large),
    };

    if (!smg_engine_find("simgrid")) {
        puts(ENGINE_TEST_MISSING);
        return 77;
    }
    return cmocka_run_group_tests_name("engine pair", tests, NULL, NULL);
}
