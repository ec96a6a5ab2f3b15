/* Worlds: what loading resolves and refuses; the synthetic generator's measured facts; both selection sources against each other.
 */
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
#include "core/rank.h"
#include "core/scheme.h"
#include "traces/generator.h"
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
        {{"policy=./a.so"},
         "key 'policy': './a.so' is not available yet; leave it empty and choose a scheme",
         SMG_ERR_UNSUPPORTED},
        {{"decode.start=layer"}, "key 'decode.start': 'layer' is not available yet; use ready or pushed", SMG_ERR_UNSUPPORTED},
        {{"prefill.chunk_tokens=512"},
         "key 'prefill.chunk_tokens': 'chunked prefill' is not available yet; use 0, the whole prompt",
         SMG_ERR_UNSUPPORTED},
        {{"emu.compute=kernels"}, "key 'emu.compute': 'kernels' is not available yet; use paced", SMG_ERR_UNSUPPORTED},
        {{"profile.shift=0.5"}, "key 'profile.shift': 'domain shift' is not available yet; use 0", SMG_ERR_UNSUPPORTED},
        {{"proactive.importance=x.kvit"},
         "key 'proactive.importance': 'x.kvit' is not available yet; use auto",
         SMG_ERR_UNSUPPORTED},
        {{"proactive.ranking=profle"},
         "key 'proactive.ranking': no ranking is called 'profle'; did you mean 'profile'?",
         SMG_ERR_NOT_FOUND},
        {{"prefill.tp=3"}, "key 'prefill.tp': 3 must divide prefill.gpus_per_node, which is 2", SMG_ERR_INVALID},
        {{"prefill.nodes=40000"}, "80000 prefill and 1 decode instances: at most 65534 in all", SMG_ERR_RANGE},
        {{"prefill.gpu=l21"}, "unknown GPU 'l21'; did you mean 'l20'?", SMG_ERR_NOT_FOUND},
        {{"workload.dataset=lc"}, "unknown data set 'lc'; did you mean 'lcc'?", SMG_ERR_NOT_FOUND},
        {{"workload.kind=trace"}, "key 'workload.file': workload.kind trace needs a file", SMG_ERR_INVALID},
        {{"workload.kind=trace", "workload.file=no.csv"}, "no.csv: cannot open: No such file or directory", SMG_ERR_IO},
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

/* ---- The generator ---- */

#define TOKENS 7000u
#define K      1400u
#define LAYERS 40u

struct rows {
    struct smg_generator_weight weight[TOKENS];
    struct smg_generator_scratch scratch;
    int32_t a[K], b[K];
};

static struct rows *rows_create(void)
{
    struct rows *r = malloc(sizeof(*r));

    assert_non_null(r);
    assert_int_equal(smg_generator_scratch_create(TOKENS, &r->scratch), SMG_OK);
    return r;
}

static void rows_destroy(struct rows *r)
{
    smg_generator_scratch_destroy(&r->scratch);
    free(r);
}

static void row(struct rows *r, uint32_t request, uint32_t layer, uint32_t head, uint32_t step, int32_t *index)
{
    smg_generator_row(1, request, layer, head, step, r->weight, TOKENS, K, &r->scratch, index);
}

static uint32_t common(const int32_t *a, const int32_t *b)
{
    uint32_t i = 0, j = 0, n = 0;

    while (i < K && j < K) {
        n += a[i] == b[j];
        if (a[i] <= b[j]) {
            i++;
        } else {
            j++;
        }
    }
    return n;
}

static void test_rows(void **state)
{
    struct rows *r = rows_create();
    uint32_t i;

    (void)state;
    smg_generator_weights(1, 0, 8, LAYERS, TOKENS, r->weight);
    row(r, 0, 8, 3, 5, r->a);
    row(r, 0, 8, 4, 5, r->b);
    assert_memory_not_equal(r->a, r->b, sizeof(r->a));
    row(r, 0, 8, 3, 5, r->b);
    assert_memory_equal(r->a, r->b, sizeof(r->a));
    for (i = 1; i < K; i++) {
        assert_true(r->a[i] > r->a[i - 1] && r->a[i] < (int32_t)TOKENS);
    }
    for (i = 0; i < TOKENS; i++) {
        r->weight[i].universal = 0;
    }
    smg_generator_row(1, 0, 8, 3, 5, r->weight, 7, 7, &r->scratch, r->b);
    for (i = 0; i < 7; i++) {
        assert_int_equal(r->b[i], i);
    }
    rows_destroy(r);
}

/* The generator's aim: consecutive steps share 65% of their entries (accepted: 60 to 70%), and new entries keep coming. */
static void test_overlap(void **state)
{
    struct rows *r = rows_create();
    uint32_t layer, head, step, pairs = 0;
    double shared = 0, first = 0;

    (void)state;
    for (layer = 2; layer < LAYERS; layer += 9) {
        smg_generator_weights(1, 0, layer, LAYERS, TOKENS, r->weight);
        for (head = 0; head < 4; head++) {
            for (step = 1; step < 9; step++, pairs++) {
                row(r, 0, layer, head, step, r->a);
                row(r, 0, layer, head, step + 1, r->b);
                shared += (double)common(r->a, r->b) / K;
            }
            row(r, 0, layer, head, 1, r->a);
            row(r, 0, layer, head, 60, r->b);
            first += (double)common(r->a, r->b) / K / 20;
        }
    }
    print_message("overlap of consecutive steps: %.3f; of steps 1 and 60: %.3f\n", shared / pairs, first);
    assert_near(shared / pairs, 0.65, 0.05);
    assert_true(first < 0.45 && first > 0.20);
    rows_destroy(r);
}

/* Selections per block of a test request, [layers][blocks]. */
static void count_request(struct rows *r, uint32_t request, uint32_t blocks, double *count)
{
    uint32_t layer, head, step, i;

    memset(count, 0, (size_t)LAYERS * blocks * sizeof(*count));
    for (layer = 2; layer < LAYERS; layer++) {
        smg_generator_weights(1, request, layer, LAYERS, TOKENS, r->weight);
        for (head = 0; head < 8; head++) {
            for (step = 1; step <= 61; step += 20) {
                row(r, request, layer, head, step, r->a);
                for (i = 0; i < K; i++) {
                    count[(size_t)layer * blocks + (uint64_t)r->a[i] * blocks / TOKENS]++;
                }
            }
        }
    }
}

struct ranked {
    double by, count;
};

static int descending(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return (x->by < y->by) - (x->by > y->by);
}

/* Share of the selections in the 47.4% of the blocks of layers >= 2 that come first by `by`. */
static double coverage(const double *by, const double *count, uint32_t blocks)
{
    uint32_t n = (LAYERS - 2) * blocks, i;
    struct ranked *list = malloc(n * sizeof(*list));
    double best = 0, all = 0;

    assert_non_null(list);
    for (i = 0; i < n; i++) {
        list[i].by = by[2 * blocks + i];
        list[i].count = count[2 * blocks + i];
    }
    qsort(list, n, sizeof(*list), descending);
    for (i = 0; i < n; i++) {
        all += list[i].count;
        best += i < (uint32_t)(0.474 * n) ? list[i].count : 0;
    }
    free(list);
    return best / all;
}

/* Calibration point P023: half pushed minus layers 0 and 1 holds 66%; a profile made from other requests comes close to the
 * optimum. */
static void test_coverage(void **state)
{
    const uint32_t blocks = 1000;
    struct smg_world w = WORLD("seed=1");
    double *count = malloc(LAYERS * blocks * sizeof(*count)), *profile = malloc(LAYERS * blocks * sizeof(*profile)), optimum,
           held_out;
    struct rows *r = rows_create();
    uint32_t i;

    (void)state;
    assert_true(count != NULL && profile != NULL);
    for (i = 0; i < LAYERS * blocks; i++) {
        profile[i] = w.importance->value[i];
    }
    count_request(r, 0, blocks, count);
    optimum = coverage(count, count, blocks);
    held_out = coverage(profile, count, blocks);
    print_message("coverage of 47.4%% of the blocks: optimum %.3f, profile %.3f\n", optimum, held_out);
    assert_near(optimum, 0.66, 0.03);
    assert_true(held_out > 0.60 && held_out < optimum);
    rows_destroy(r);
    free(profile);
    free(count);
    smg_world_free(&w);
}

static double mean_between(const struct smg_importance *im, uint32_t layer, double lo, double hi)
{
    const float *v = smg_importance_row(im, 0, layer);
    uint32_t b, first = (uint32_t)(lo * im->blocks), end = (uint32_t)(hi * im->blocks);
    double sum = 0;

    for (b = first; b < end; b++) {
        sum += v[b];
    }
    return sum / (end - first);
}

/* Shapes that are reported of real models: a bright last quarter near a fifth of the depth, a dark layer at 14 of 40. */
static void test_importance(void **state)
{
    struct smg_world w = WORLD("seed=1"), again = WORLD("seed=1"), other = WORLD("seed=2");
    const struct smg_importance *im = w.importance;
    uint32_t layer, bin;

    (void)state;
    assert_memory_equal(im->value, again.importance->value, sizeof(float) * im->layers * im->blocks);
    assert_memory_not_equal(im->value, other.importance->value, sizeof(float) * im->layers * im->blocks);
    assert_true(isinf(im->value[0]) && isinf(im->value[2 * im->blocks - 1]));
    for (layer = 2; layer < 40; layer++) {
        assert_near(mean_between(im, layer, 0, 1), 0.20, 0.001);
    }
    for (bin = 0; bin < 5; bin++) {
        assert_true(mean_between(im, 8, 0.75 + 0.05 * bin, 0.80 + 0.05 * bin) > (bin == 0 ? 0.25 : 0.30));
    }
    assert_true(mean_between(im, 8, 0.8, 1) > 1.2 * mean_between(im, 14, 0.8, 1));
    smg_world_free(&w);
    smg_world_free(&again);
    smg_world_free(&other);
}

/* Prompts shorter than M: as many blocks as tokens. Sliding layers: always used. */
static void test_importance_shapes(void **state)
{
    struct smg_world w = WORLD("workload.prompt_tokens=300");
    uint32_t b;

    (void)state;
    assert_int_equal(w.importance->blocks, 300);
    smg_world_free(&w);
    w = WORLD("model=gemma-3-12b", "blocks_per_layer=100");
    for (b = 0; b < 100; b++) {
        assert_true(smg_importance_row(w.importance, 0, 4)[b] == 1);
    }
    assert_near(mean_between(w.importance, 5, 0, 1), 0.20, 0.001);
    smg_world_free(&w);
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

static void push_best(struct source *s, uint32_t share_percent)
{
    struct smg_rank_input in = {.grid = &s->grid, .importance = s->world.importance, .seed = 1};
    struct smg_rank *rank;
    uint32_t i;

    assert_int_equal(smg_rank_create(smg_rank_find("profile"), &in, &rank), SMG_OK);
    for (i = 0; i < rank->total * share_percent / 100; i++) {
        write_blocks(s, rank->order[i].layer, rank->order[i].block, 1);
    }
    smg_rank_unref(rank);
}

static double remote_share(struct source *s, uint32_t steps)
{
    uint32_t layer, step;
    uint64_t local = 0, remote = 0;

    for (step = 1; step <= steps; step++) {
        for (layer = 2; layer < 40; layer++) {
            struct smg_split_count c = split(s, step * 9, layer, 0);

            local += c.local;
            remote += c.remote;
        }
    }
    return (double)remote / (double)(local + remote);
}

/* Blocks pushed by profile: expected counts and index lists agree within 2% of the selected entries. */
static void compare_sources(uint32_t share_percent)
{
    struct source layer, entry;
    double expected, found;

    SOURCE(&layer, "selection.source=layer", "on_demand.reuse=false");
    SOURCE(&entry, "selection.source=entry", "on_demand.reuse=false");
    push_best(&layer, share_percent);
    push_best(&entry, share_percent);
    expected = remote_share(&layer, 3);
    found = remote_share(&entry, 3);
    print_message("on-demand ratio, %u%% pushed by profile: layer %.3f, entry %.3f\n", share_percent, expected, found);
    assert_near(expected, found, 0.02);
    source_close(&layer);
    source_close(&entry);
}

static void test_layer_against_entry(void **state)
{
    (void)state;
    compare_sources(20);
    compare_sources(50);
    compare_sources(80);
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
    assert_near(split(&s, 60, 9, 0).remote, 0.26 * 8 * 400, 1);
    s.selection->type->keep(s.selection, 0, 1, 9);
    source_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_world),
        cmocka_unit_test(test_prompt_lengths),
        cmocka_unit_test(test_poisson),
        cmocka_unit_test(test_trace_world),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_importance),
        cmocka_unit_test(test_importance_shapes),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_either_source),
        cmocka_unit_test(test_sliding_layers),
        cmocka_unit_test(test_open_late),
        cmocka_unit_test(test_layer_against_entry),
        cmocka_unit_test(test_entry_lists),
        cmocka_unit_test(test_reuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
