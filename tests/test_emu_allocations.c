/* The real engine allocates nothing while the clock runs: no allocation of our own between the start of the clock and the end
 * of the loop, in any process. What libraries allocate is not counted, and neither is the work space of kernels (emu.compute:
 * kernels). */
#include "tests/emu_wrap.h"

static struct run run; /* too large for the stack */

static void run_right(const char *const *sets)
{
    struct smg_world w;

    load_world(&w, sets);
    run_world(&w, &run);
    if (run.status)
        fail_msg("%s", run.diag.text);
    assert_int_equal(run.records.finished, w.n_requests);
    for (unsigned i = 1; i < smg_world_instances(&w); i++) {
        assert_true(watch->of[i].calls[POLL] > 0);
        assert_true(watch->of[i].calls[ALLOCATE] > 0); /* those before the start were seen */
    }
    smg_world_free(&w);
}

static void allocates_nothing(const char *const *sets)
{
    run_right(sets);
    for (unsigned i = 0; i < PROCESSES; i++)
        if (watch->of[i].running)
            fail_msg("instance %u: %llu allocations while the clock runs", i, (unsigned long long)watch->of[i].running);
    run_free(&run);
}

#define NOTHING(...)                                                                                                             \
    allocates_nothing((const char *const[]){"workload.requests=5", "workload.prompt_tokens=200", "workload.output_tokens=4",     \
                                            "blocks_per_layer=16", "network.chunk_kib=32", "proactive.kr_blocks=60", __VA_ARGS__, \
                                            NULL})

static void test_full(void **state)
{
    (void)state;
    NOTHING("scheme=full", "prefill.nodes=2");
}

static void test_partial(void **state)
{
    (void)state;
    NOTHING("scheme=partial", "prefill.nodes=2");
}

static void test_smartgen(void **state)
{
    (void)state;
    NOTHING("scheme=smartgen", "prefill.nodes=2");
    assert_int_equal(watch->of[4].pid, 0);
    NOTHING("scheme=smartgen", "prefill.nodes=2", "decode.nodes=2", "speculative.queue=own");
    NOTHING("scheme=smartgen", "gdr=false", "on_demand.reorder=false", "speculative.start=first");
}

static void test_keep(void **state)
{
    (void)state;
    NOTHING("scheme=smartgen", "on_demand.reuse=true", "gdr=false");
    NOTHING("scheme=smartgen", "on_demand.reuse=true", "on_demand.parallel=false", "emu.write_order=fence");
}

/* Every request has a ranking of its own. */
static void test_rankings(void **state)
{
    (void)state;
    NOTHING("scheme=smartgen", "proactive.ranking=random");
    NOTHING("scheme=proactive-only");
    NOTHING("scheme=streamingllm");
}

/* Requests that wait for the memory of others, and take it over. */
static void test_waiting(void **state)
{
    (void)state;
    NOTHING("scheme=smartgen", "prefill.nodes=2", "decode.host_memory_gib=0.002", "workload.batch_barrier=false");
}

/* The test itself: one allocation too many is seen. */
static void test_planted(void **state)
{
    (void)state;
    planted_at = 80; /* a post after those of the receives, which are there before the clock starts */
    run_right((const char *const[]){"workload.requests=2", "workload.prompt_tokens=64", "workload.output_tokens=3",
                                    "blocks_per_layer=8", "proactive.kr_blocks=20", NULL});
    planted_at = 0;
    assert_true(watch->of[2].calls[POST] > 80);
    assert_int_equal(watch->of[2].running, 1);
    assert_int_equal(watch->of[1].running, 0);
    run_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_smartgen),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_rankings),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_planted),
    };

    need_fabric();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
