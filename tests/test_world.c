/* Worlds: what loading resolves and refuses; what holds for either selection source. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/importance.h"
#include "core/scheme.h"
#include "traces/scenario.h"
#include "traces/world.h"

#ifndef SMG_TESTDIR
#define SMG_TESTDIR "tests"
#endif

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

#define SETS_MAX                     8

/* Loads a world from up to SETS_MAX settings, ended by NULL. */
static int load(struct smg_world *w, struct smg_diag *d, const char *const *sets)
{
    struct smg_scenario s;
    size_t n = 0;

    while (sets[n] != NULL) {
        n++;
    }
    memset(d, 0, sizeof(*d));
    assert_int_equal(smg_scenario_load(NULL, sets, n, &s, d), SMG_OK);
    return smg_world_load(&s, w, d);
}

static struct smg_world world_of(const char *const *sets)
{
    struct smg_world w;
    struct smg_diag d;

    assert_int_equal(load(&w, &d, sets), SMG_OK);
    return w;
}

#define WORLD(...) world_of((const char *const[]){__VA_ARGS__, NULL})

static void test_default_world(void **state)
{
    struct smg_world w = WORLD("seed=1");
    uint32_t i;

    (void)state;
    assert_string_equal(w.model.name, "qwen3-14b");
    assert_string_equal(w.scheme->name, "smartgen");
    assert_int_equal(w.prefill_instances, 6);
    assert_int_equal(w.decode_instances, 1);
    assert_int_equal(smg_world_nodes(&w), 4);
    assert_int_equal(w.n_requests, 6);
    for (i = 0; i < 6; i++) {
        assert_true(w.requests[i].arrival_s == 0);
        assert_int_equal(w.requests[i].prompt_tokens, 7000);
        assert_int_equal(w.requests[i].output_tokens, 64);
        assert_int_equal(w.requests[i].hit_tokens, 5250);
    }
    assert_non_null(w.importance);
    assert_int_equal(w.importance->blocks, 1000);
    assert_int_equal(w.importance->layers, 40);
    assert_true(w.synthetic_importance && w.synthetic_selection && w.synthetic_workload);
    assert_int_equal(w.over_length, 0);
    smg_world_free(&w);
    assert_null(w.requests);
    smg_world_free(&w);
    smg_world_free(NULL);
}

/* The data set decides only when no length is given; the resolved scenario says what was used. */
static void test_prompt_lengths(void **state)
{
    struct smg_world w = WORLD("workload.dataset=govreport", "scheme=full");

    (void)state;
    assert_int_equal(w.requests[0].prompt_tokens, 10000);
    assert_int_equal(w.scenario.workload.prompt_tokens, 10000);
    assert_int_equal(w.scenario.workload.prompt_tokens_set, 1);
    assert_null(w.importance);
    assert_int_equal(w.synthetic_importance, 0);
    smg_world_free(&w);
    w = WORLD("workload.dataset=govreport", "workload.prompt_tokens=50000", "scheme=full", "prefix_hit=0.999999");
    assert_int_equal(w.requests[0].prompt_tokens, 50000);
    assert_true(w.requests[0].hit_tokens < 50000);
    assert_int_equal(w.over_length, 6);
    smg_world_free(&w);
}

static void test_poisson(void **state)
{
    struct smg_world a = WORLD("workload.kind=poisson", "workload.rate=4", "workload.requests=4000", "scheme=full");
    struct smg_world b = WORLD("workload.kind=poisson", "workload.rate=4", "workload.requests=4000", "scheme=partial");
    uint32_t i;

    (void)state;
    assert_memory_equal(a.requests, b.requests, 4000 * sizeof(*a.requests));
    assert_true(a.requests[0].arrival_s == 0);
    for (i = 1; i < 4000; i++) {
        assert_true(a.requests[i].arrival_s >= a.requests[i - 1].arrival_s);
    }
    /* The mean of 3,999 gaps has a standard error of 1.6%. */
    assert_near(a.requests[3999].arrival_s / 3999, 0.25, 0.25 * 0.06);
    assert_int_equal(smg_world_barrier(&a), 0);
    smg_world_free(&a);
    smg_world_free(&b);
}

static void test_trace_world(void **state)
{
    struct smg_world w = WORLD("workload.kind=trace", "workload.format=mooncake",
                               "workload.file=" SMG_TESTDIR "/data/mooncake.jsonl", "workload.limit=2");

    (void)state;
    assert_int_equal(w.n_requests, 2);
    assert_int_equal(w.requests[1].hit_tokens, 1024);
    assert_int_equal(w.synthetic_workload, 0);
    smg_world_free(&w);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *sets[3], *message;
        int status;
    } bad[] = {
        {{"scheme=hack", "hack.bits=3"}, "key 'hack.bits': expected 2, 4 or 8, found 3", SMG_ERR_RANGE},
        {{"scheme=hack", "hack.group=48"},
         "key 'hack.group': expected a divisor of the model's head dimension 128, found 48",
         SMG_ERR_RANGE},
        {{"policy=./a.so"}, "key 'policy': ./a.so: cannot open: No such file or directory", SMG_ERR_IO},
        {{"decode.start=layer"}, "key 'decode.start': 'layer' is not available yet; use ready or pushed", SMG_ERR_UNSUPPORTED},
        {{"prefill.chunk_tokens=512"},
         "key 'prefill.chunk_tokens': 'chunked prefill' is not available yet; use 0, the whole prompt",
         SMG_ERR_UNSUPPORTED},
        {{"emu.token=text"}, "key 'emu.token': 'text' is not available yet; use none", SMG_ERR_UNSUPPORTED},
        {{"proactive.importance=x.kvit"},
         "key 'proactive.importance': x.kvit: cannot open: No such file or directory",
         SMG_ERR_IO},
        {{"selection.file=x.kvsr"}, "key 'selection.file': recorded selections need selection.source: entry", SMG_ERR_INVALID},
        {{"selection.file=x.kvsr", "selection.source=entry"},
         "key 'selection.file': x.kvsr: cannot open: No such file or directory",
         SMG_ERR_IO},
        {{"selection.file=/", "selection.source=entry"}, "key 'selection.file': /: cannot open: Is a directory", SMG_ERR_IO},
        {{"proactive.importance=/"}, "key 'proactive.importance': /: cannot read: Is a directory", SMG_ERR_IO},
        {{"proactive.ranking=profle"},
         "key 'proactive.ranking': expected one of profile, sequential, random, streamingllm, optimal, found 'profle'; did you "
         "mean "
         "'profile'?",
         SMG_ERR_NOT_FOUND},
        {{"prefill.tp=3"}, "key 'prefill.tp': 3 must divide prefill.gpus_per_node, which is 2", SMG_ERR_INVALID},
        {{"prefill.nodes=40000"},
         "key 'prefill.nodes': 80000 prefill and 1 decode instances: at most 65534 in all",
         SMG_ERR_RANGE},
        {{"decode.nodes=70000"}, "key 'decode.nodes': 6 prefill and 70000 decode instances: at most 65534 in all", SMG_ERR_RANGE},
        {{"model=qwen3-14"}, "key 'model': unknown model 'qwen3-14'; did you mean 'qwen3-14b'?", SMG_ERR_NOT_FOUND},
        {{"model=/"}, "key 'model': //config.json: cannot open: No such file or directory", SMG_ERR_IO},
        {{"prefill.gpu=l21"}, "key 'prefill.gpu': unknown GPU 'l21'; did you mean 'l20'?", SMG_ERR_NOT_FOUND},
        {{"decode.gpu=xyzzy"}, "key 'decode.gpu': unknown GPU 'xyzzy'; `smartgen list gpus` names them", SMG_ERR_NOT_FOUND},
        {{"network.nic=/"}, "key 'network.nic': /: is a folder, expected a file that describes a NIC", SMG_ERR_IO},
        {{"host=defalt"}, "key 'host': unknown host 'defalt'; did you mean 'default'?", SMG_ERR_NOT_FOUND},
        {{"workload.dataset=lc"}, "key 'workload.dataset': unknown data set 'lc'; did you mean 'lcc'?", SMG_ERR_NOT_FOUND},
        {{"workload.kind=trace"}, "key 'workload.kind': trace needs a file, given by key 'workload.file'", SMG_ERR_INVALID},
        {{"workload.kind=trace", "workload.file=no.csv"},
         "key 'workload.file': no.csv: cannot open: No such file or directory",
         SMG_ERR_IO},
    };
    static const struct smg_world zero;
    struct smg_world w;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(load(&w, &d, bad[i].sets), bad[i].status);
        assert_string_equal(d.text, bad[i].message);
        assert_memory_equal(&w, &zero, sizeof(w));
    }
}

/* ---- Selection sources ---- */

struct source {
    struct smg_world world;
    struct smg_grid grid;
    struct smg_ledger *ledger;
    struct smg_selection *selection;
};

static void source_open(struct source *s, const char *const *sets)
{
    struct smg_features f;

    s->world = world_of(sets);
    s->world.scheme->features(&s->world.scenario, &f);
    smg_grid_init(&s->grid, &s->world.model, s->world.requests[0].prompt_tokens, s->world.scenario.blocks_per_layer, 1);
    assert_int_equal(smg_ledger_create(&s->grid, 64, f.reuse, NULL, &s->ledger), SMG_OK);
    assert_int_equal(smg_selection_create(&s->world, &s->selection), SMG_OK);
    assert_int_equal(s->selection->type->open(s->selection, 0, s->ledger), SMG_OK);
}

#define SOURCE(s, ...) source_open(s, (const char *const[]){__VA_ARGS__, NULL})

static void source_close(struct source *s)
{
    s->selection->type->close(s->selection, 0);
    smg_selection_destroy(s->selection);
    smg_ledger_destroy(s->ledger);
    smg_world_free(&s->world);
}

static void write_blocks(struct source *s, uint32_t layer, uint32_t first, uint32_t count)
{
    smg_ledger_write(s->ledger, layer, first, count, 1);
    s->selection->type->visible(s->selection, 0, layer, first, count);
}

static struct smg_split_count split(struct source *s, uint32_t step, uint32_t layer, int full)
{
    struct smg_split_count c;

    assert_int_equal(s->selection->type->split(s->selection, 0, step, layer, full, &c), SMG_OK);
    return c;
}

static void test_types(void **state)
{
    size_t n;

    (void)state;
    for (n = 0; smg_selection_types[n] != NULL; n++) {
        assert_non_null(smg_selection_types[n]->name);
        assert_true(smg_selection_types[n]->split != NULL && smg_selection_types[n]->keep != NULL);
    }
    assert_int_equal(n, 2);
    smg_selection_destroy(NULL);
}

/* What holds for either source: sums, layers that do not select, full mode, ends of the push. */
static void check_source(const char *source)
{
    struct smg_split_count c;
    struct source s;

    SOURCE(&s, source, "scheme=partial", "workload.prompt_tokens=2000", "workload.requests=2");
    c = split(&s, 1, 0, 0);
    assert_int_equal(c.remote, 8 * 2000);
    assert_int_equal(c.local, 0);
    assert_int_equal(c.row_max, 2000);
    c = split(&s, 1, 5, 0);
    assert_int_equal(c.remote, 8 * 400);
    assert_int_equal(c.row_max, 400);
    c = split(&s, 1, 5, 1);
    assert_int_equal(c.local, 8 * 400);
    assert_int_equal(c.remote + c.row_max, 0);
    write_blocks(&s, 0, 0, 250);
    c = split(&s, 1, 0, 0);
    assert_int_equal(c.local, 8 * 500);
    assert_int_equal(c.remote, 8 * 1500);
    write_blocks(&s, 5, 0, 999);
    c = split(&s, 1, 5, 0);
    assert_int_equal(c.local + c.remote, 8 * 400);
    assert_true(c.remote > 0 && c.remote <= 16);
    write_blocks(&s, 5, 999, 1);
    c = split(&s, 1, 5, 0);
    assert_int_equal(c.remote, 0);
    assert_int_equal(c.row_max, 0);
    assert_int_equal(s.selection->type->split(s.selection, 1, 1, 5, 0, &c), SMG_ERR_NOT_FOUND);
    assert_int_equal(s.selection->type->split(s.selection, 0, 0, 5, 0, &c), SMG_ERR_INVALID);
    assert_int_equal(s.selection->type->open(s.selection, 0, s.ledger), SMG_ERR_INVALID);
    source_close(&s);
}

static void test_either_source(void **state)
{
    (void)state;
    check_source("selection.source=layer");
    check_source("selection.source=entry");
}

/* A sliding layer keeps its last 1,024 tokens, whatever the source. */
static void check_sliding(const char *source)
{
    struct smg_split_count c;
    struct source s;

    SOURCE(&s, source, "scheme=partial", "model=gemma-3-12b", "workload.prompt_tokens=2000");
    c = split(&s, 1, 4, 0);
    assert_int_equal(c.remote, 8 * 1024);
    write_blocks(&s, 4, 0, 500);
    write_blocks(&s, 4, 500, 250);
    c = split(&s, 1, 4, 0);
    assert_int_equal(c.remote, 8 * 500);
    assert_int_equal(c.local, 8 * 524);
    source_close(&s);
}

static void test_sliding_layers(void **state)
{
    (void)state;
    check_sliding("selection.source=layer");
    check_sliding("selection.source=entry");
}

/* Blocks written before the request is opened are present from the start. */
static void test_open_late(void **state)
{
    struct source s;
    struct smg_split_count before;

    (void)state;
    SOURCE(&s, "selection.source=layer", "on_demand.reuse=false");
    write_blocks(&s, 7, 10, 300);
    before = split(&s, 1, 7, 0);
    s.selection->type->close(s.selection, 0);
    assert_int_equal(s.selection->type->open(s.selection, 0, s.ledger), SMG_OK);
    assert_int_equal(split(&s, 1, 7, 0).remote, before.remote);
    source_close(&s);
}

/* Index lists and split agree; lists of two processes agree because they depend on nothing but their names. */
static void test_entry_lists(void **state)
{
    struct source a, b;
    int32_t *x = malloc(8 * 2000 * sizeof(*x)), *y = malloc(8 * 2000 * sizeof(*y));
    uint32_t k, i, n_remote = 0;
    struct smg_split_count c;

    (void)state;
    assert_true(x != NULL && y != NULL);
    SOURCE(&a, "selection.source=entry", "workload.prompt_tokens=2000", "on_demand.reuse=false");
    SOURCE(&b, "selection.source=entry", "workload.prompt_tokens=2000", "scheme=partial");
    (void)split(&b, 9, 20, 0);
    assert_int_equal(a.selection->type->entries(a.selection, 0, 3, 17, x, 400, &k), SMG_OK);
    assert_int_equal(k, 400);
    assert_int_equal(b.selection->type->entries(b.selection, 0, 3, 17, y, 400, &k), SMG_OK);
    assert_memory_equal(x, y, 8 * 400 * sizeof(*x));
    write_blocks(&a, 17, 0, 500);
    for (i = 0; i < 8 * 400; i++) {
        n_remote += x[i] >= 1000;
    }
    c = split(&a, 3, 17, 0);
    assert_int_equal(c.remote, n_remote);
    assert_int_equal(a.selection->type->entries(a.selection, 0, 3, 17, x, 399, &k), SMG_ERR_CAPACITY);
    assert_int_equal(a.selection->type->entries(a.selection, 0, 3, 1, x, 2000, &k), SMG_OK);
    assert_int_equal(k, 2000);
    assert_int_equal(x[7 * 2000 + 1999], 1999);
    source_close(&a);
    source_close(&b);
    SOURCE(&a, "selection.source=layer", "workload.prompt_tokens=2000");
    assert_int_equal(a.selection->type->entries(a.selection, 0, 3, 17, x, 2000, &k), SMG_ERR_UNSUPPORTED);
    source_close(&a);
    free(x);
    free(y);
}

/* Kept entries are not fetched again; a layer's expected counts fall from step to step. */
static void test_reuse(void **state)
{
    struct source s;
    struct smg_split_count first, again;
    uint32_t head;
    uint64_t kept = 0;

    (void)state;
    SOURCE(&s, "selection.source=entry", "workload.prompt_tokens=2000", "on_demand.reuse=true");
    first = split(&s, 1, 9, 0);
    s.selection->type->keep(s.selection, 0, 1, 9);
    kept = smg_ledger_kept_in(s.ledger, 9, 0, 1000);
    assert_int_equal(kept, first.remote);
    assert_int_equal(split(&s, 1, 9, 0).remote, 0);
    again = split(&s, 2, 9, 0);
    assert_true(again.remote > 0 && again.remote < first.remote / 2);
    (void)split(&s, 3, 9, 0);
    s.selection->type->keep(s.selection, 0, 2, 9);
    assert_int_equal(split(&s, 2, 9, 0).remote, 0);
    s.selection->type->keep(s.selection, 0, 1, 30);
    for (head = 0; head < 8; head++) {
        assert_non_null(smg_ledger_kept(s.ledger, 9, head));
    }
    source_close(&s);
    SOURCE(&s, "selection.source=layer", "workload.prompt_tokens=2000", "on_demand.reuse=true");
    assert_int_equal(split(&s, 1, 9, 0).remote, 8 * 400);
    assert_true(split(&s, 2, 9, 0).remote < 8 * 400);
    assert_near(split(&s, 10, 9, 0).remote, 0.19 * 8 * 400, 0.05 * 8 * 400);
    s.selection->type->keep(s.selection, 0, 1, 9);
    source_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_world), cmocka_unit_test(test_prompt_lengths), cmocka_unit_test(test_poisson),
        cmocka_unit_test(test_trace_world),   cmocka_unit_test(test_refusals),       cmocka_unit_test(test_types),
        cmocka_unit_test(test_either_source), cmocka_unit_test(test_sliding_layers), cmocka_unit_test(test_open_late),
        cmocka_unit_test(test_entry_lists),   cmocka_unit_test(test_reuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
