/* Out of memory at every place: a small world runs on the native engine while the n-th allocation fails, for n = 1, 2, ... until
 * a run does not reach it. Each run ends in order (done, or SMG_ERR_NOMEM) and gives back all it took.
 *
 * The linker sends this program's malloc, calloc, realloc and free through tests/heap_wrap.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/driver.h"
#include "tests/heap_wrap.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* ---- The allocator that fails once ---- */

static struct {
    uint64_t calls, fail_at; /* 0: never */
} heap;

int heap_fails(void)
{
    return ++heap.calls == heap.fail_at;
}

/* ---- One run ---- */

static int run_once(const struct smg_world *w)
{
    const struct smg_engine_type *native = smg_engine_find("native");
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_diag diag = {""};
    struct smg_law laws[SMG_LAWS];
    size_t n_laws;
    int status = smg_selection_create(w, &selection);

    if (!status)
        status = smg_sim_create(w, native, selection, NULL, &sim);
    if (!status)
        status = smg_sim_run(sim, &diag);
    if (!status)
        status = smg_conservation_check(smg_sim_records(sim), smg_sim_stats(sim), laws, &n_laws);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    return status;
}

static void load(struct smg_world *w, const char *const *more)
{
    const char *sets[24] = {"model=" SMG_TESTDIR "/../experiments/emu-small/config.json",
                            "prefill.nodes=1",
                            "workload.requests=3",
                            "workload.prompt_tokens=96",
                            "workload.output_tokens=3",
                            "blocks_per_layer=8",
                            "network.chunk_kib=8",
                            "seed=1"};
    struct smg_scenario s;
    struct smg_diag diag = {""};
    size_t n = 8;

    while (*more)
        sets[n++] = *more++;
    if (smg_scenario_load(NULL, sets, n, &s, &diag) || smg_world_load(&s, w, &diag))
        fail_msg("%s", diag.text);
}

static void every_allocation_fails_once(const char *const *sets)
{
    struct smg_world w;
    uint64_t n = 1;

    load(&w, sets);
    for (;; n++) {
        int64_t live = heap_live;
        uint64_t calls;
        int status;

        heap.calls = 0;
        heap.fail_at = n;
        status = run_once(&w);
        calls = heap.calls;
        heap.fail_at = 0;
        if (heap_live != live)
            fail_msg("allocation %llu fails: %lld blocks are lost", (unsigned long long)n, (long long)(heap_live - live));
        if (status && (status != SMG_ERR_NOMEM || calls < n))
            fail_msg("allocation %llu fails: %s", (unsigned long long)n, smg_status_string(status));
        if (calls < n)
            break;
    }
    assert_true(n > 100); /* the faults were there */
    smg_world_free(&w);
}

#define EVERY(...) every_allocation_fails_once((const char *const[]){__VA_ARGS__, NULL})

static void test_full(void **state)
{
    (void)state;
    EVERY("scheme=full", "detail=iteration");
}

static void test_partial(void **state)
{
    (void)state;
    EVERY("scheme=partial", "proactive.kr_blocks=20", "detail=iteration");
}

static void test_smartgen(void **state)
{
    (void)state;
    EVERY("proactive.kr_blocks=20", "speculative.queue=own", "workload.requests=2");
}

static void test_keep_and_shared_queue(void **state)
{
    (void)state;
    EVERY("proactive.kr_blocks=20", "on_demand.reuse=true", "gdr=false", "detail=iteration", "decode.nodes=2");
}

static void test_entries(void **state)
{
    (void)state;
    EVERY("proactive.kr_blocks=20", "selection.source=entry", "workload.requests=1", "on_demand.reuse=true", "detail=iteration");
}

/* Requests that do not fit fail, others wait for memory. */
static void test_no_room(void **state)
{
    (void)state;
    EVERY("decode.host_memory_gib=0.000001", "detail=iteration");
    EVERY("prefill.host_memory_gib=0.000001", "detail=iteration", "scheme=full");
    EVERY("decode.host_memory_gib=0.001", "detail=iteration", "workload.batch_barrier=false", "proactive.kr_blocks=20");
}

/* Instances that die while memory is short. */
static void test_lost(void **state)
{
    (void)state;
    EVERY("proactive.kr_blocks=20", "detail=iteration", "decode.nodes=2", "faults.instance=1", "faults.at_s=0.001",
          "faults.detect_s=0.001");
    EVERY("proactive.kr_blocks=20", "detail=iteration", "decode.nodes=2", "faults.instance=2", "faults.at_s=0.02",
          "faults.detect_s=0.001");
    EVERY("scheme=full", "detail=iteration", "prefill.nodes=2", "faults.instance=1", "faults.at_s=0.012",
          "faults.detect_s=0.001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),     cmocka_unit_test(test_partial),
        cmocka_unit_test(test_smartgen), cmocka_unit_test(test_keep_and_shared_queue),
        cmocka_unit_test(test_entries),  cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
