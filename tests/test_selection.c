/* Expected counts against index lists; recordings; the ranking optimal; domain shift. */
#include "tests/selection_fixture.h"

#include <unistd.h>

#include "traces/selection_recording.h"

/* Pushes the best `percent` of the blocks of all layers. */
static void push(struct source *s, const char *ranking, uint32_t percent)
{
    struct smg_rank_input in = {.grid = &s->grid, .importance = s->world.importance, .seed = 1, .request = s->request};
    struct smg_rank *rank;
    uint32_t i;

    assert_int_equal(smg_rank_create(smg_rank_find(ranking), &in, &rank), SMG_OK);
    for (i = 0; i < rank->total * percent / 100; i++) {
        fixture_write(s, rank->order[i].layer, rank->order[i].block, 1);
    }
    smg_rank_unref(rank);
}

struct sums {
    double remote, all;
};

/* On-demand counts of the selecting layers over decode steps 1 to `steps`, in the order of decoding. */
static struct sums decode(struct source *s, uint32_t steps, int reuse)
{
    struct sums sum = {0, 0};
    uint32_t step, layer;

    for (step = 1; step <= steps; step++) {
        for (layer = 2; layer < s->world.model.layers; layer++) {
            struct smg_split_count c = fixture_split(s, step, layer);

            sum.remote += (double)c.remote;
            sum.all += (double)(c.remote + c.local);
            if (reuse) {
                s->selection->type->keep(s->selection, s->request, step, layer);
            }
        }
    }
    return sum;
}

struct decoded {
    struct sums expected, found;
};

static struct source both[2][2]; /* [reuse][layer, entry]; a source finds its world by address */

static void sources_create(void)
{
    static const char *const kept[] = {"on_demand.reuse=false", "on_demand.reuse=true"};
    static const char *const source[] = {"selection.source=layer", "selection.source=entry"};
    int reuse, i;

    for (reuse = 0; reuse < 2; reuse++) {
        for (i = 0; i < 2; i++) {
            SOURCE(&both[reuse][i], 0, "workload.prompt_tokens=2500", "workload.output_tokens=21", "workload.requests=4",
                   "blocks_per_layer=500", kept[reuse], source[i]);
            fixture_shut(&both[reuse][i]);
        }
    }
}

static void sources_destroy(void)
{
    int reuse, i;

    for (reuse = 0; reuse < 2; reuse++) {
        for (i = 0; i < 2; i++) {
            fixture_open(&both[reuse][i], 0);
            fixture_source_free(&both[reuse][i]);
        }
    }
}

/* One request, pushed by a ranking, as both sources see it. */
static void decode_both(const char *ranking, uint32_t percent, int reuse, uint32_t request, struct decoded *d)
{
    struct sums *sum[] = {&d->expected, &d->found}, one;
    int i;

    for (i = 0; i < 2; i++) {
        struct source *s = &both[reuse][i];

        fixture_open(s, request);
        push(s, ranking, percent);
        one = decode(s, reuse ? 20 : 4, reuse);
        sum[i]->remote += one.remote;
        sum[i]->all += one.all;
        fixture_shut(s);
    }
}

/* Relative difference within 2%, ratio within 0.02, with rankings made by a profile and such that know nothing. A request's heads
 * differ from the expectation, so more requests are looked at where fewer steps are. */
static double compare(const char *ranking, uint32_t percent, int reuse)
{
    struct decoded d = {{0, 0}, {0, 0}};
    uint32_t request;
    double relative;

    for (request = 0; request < (reuse ? 1 : 4); request++) {
        decode_both(ranking, percent, reuse, request, &d);
    }
    relative = d.expected.remote / d.found.remote - 1;
    print_message("%-10s %u%% pushed, reuse %d: ratio layer %.4f, entry %.4f, counts differ by %+.2f%%\n", ranking, percent,
                  reuse, d.expected.remote / d.expected.all, d.found.remote / d.found.all, 100 * relative);
    assert_true(d.expected.all == d.found.all);
    assert_within(d.expected.remote / d.expected.all, d.found.remote / d.found.all, 0.02);
    return fabs(relative);
}

static void test_layer_against_entry(void **state)
{
    static const char *const rankings[] = {"profile", "sequential", "random"};
    static const uint32_t percents[] = {20, 50, 80};
    double worst = 0;
    size_t r, p;
    int reuse;

    (void)state;
    sources_create();
    for (r = 0; r < 3; r++) {
        for (p = 0; p < 3; p++) {
            for (reuse = 0; reuse < 2; reuse++) {
                worst = fmax(worst, compare(rankings[r], percents[p], reuse));
            }
        }
    }
    sources_destroy();
    print_message("worst relative difference %.2f%%\n", 100 * worst);
    assert_true(worst <= 0.02);
}

/* ---- Recordings ---- */

/* A sliding layer reads all that it keeps: what one step has fetched and kept is local from then on, whichever source tells. */
static void test_kept_in_sliding_layers(void **state)
{
    static const char *const source[] = {"selection.source=layer", "selection.source=entry"};

    (void)state;
    for (int reuse = 0; reuse < 2; reuse++) {
        for (int i = 0; i < 2; i++) {
            struct source s;
            struct smg_split_count before, after;
            uint32_t window, first;
            const uint32_t layer = 2; /* Gemma-3: layers 5, 11, ... are global */

            SOURCE(&s, 0, source[i], "model=gemma-3-12b", "workload.prompt_tokens=3000", "workload.output_tokens=4",
                   reuse ? "on_demand.reuse=true" : "on_demand.reuse=false");
            assert_false(smg_model_layer_selects(&s.world.model, layer));
            window = s.world.model.window_tokens * s.world.model.kv_heads;
            first = smg_grid_first(&s.grid, layer);
            fixture_write(&s, layer, first, 10);
            before = fixture_split(&s, 1, layer);
            assert_true(before.remote > 0 && before.local > 0 && before.local + before.remote == window);
            if (reuse) {
                s.selection->type->keep(s.selection, 0, 1, layer);
            }
            fixture_write(&s, layer, first + 10, 10); /* comes after it was fetched */
            after = fixture_split(&s, 2, layer);
            assert_true(after.local + after.remote == window);
            assert_true(reuse ? after.remote == 0 : after.remote > 0 && after.remote < before.remote);
            fixture_source_free(&s);
        }
    }
}

static char recording[64];

/* A recorded world splits as the generated one it was made from. */
static void test_recording(void **state)
{
    char set[96];
    struct source generated, recorded;
    struct smg_diag diag = {""};
    uint32_t step, layer, k, n;
    int32_t *x = malloc(8 * 900 * sizeof(*x)), *y = malloc(8 * 900 * sizeof(*y));

    (void)state;
    assert_true(x != NULL && y != NULL);
    snprintf(set, sizeof(set), "selection.file=%s", recording);
    SOURCE(&generated, 1, "workload.prompt_tokens=900", "workload.requests=2", "workload.output_tokens=6",
           "selection.source=entry");
    assert_int_equal(smg_recording_write(recording, &generated.world, 2, 5, NULL, &diag), SMG_OK);
    SOURCE(&recorded, 1, "workload.prompt_tokens=900", "workload.requests=2", "workload.output_tokens=6",
           "selection.source=entry", set);
    push(&generated, "random", 50);
    push(&recorded, "random", 50);
    for (step = 1; step <= 5; step++) {
        for (layer = 0; layer < 40; layer++) {
            struct smg_split_count a = fixture_split(&generated, step, layer), b = fixture_split(&recorded, step, layer);

            assert_true(a.local == b.local && a.remote == b.remote && a.row_max == b.row_max);
            assert_int_equal(generated.selection->type->entries(generated.selection, 1, step, layer, x, 900, &k), SMG_OK);
            assert_int_equal(recorded.selection->type->entries(recorded.selection, 1, step, layer, y, 900, &n), SMG_OK);
            assert_int_equal(k, n);
            assert_memory_equal(x, y, 8 * 900 * sizeof(*x) / 900 * k);
            generated.selection->type->keep(generated.selection, 1, step, layer);
            recorded.selection->type->keep(recorded.selection, 1, step, layer);
        }
    }
    fixture_source_free(&generated);
    fixture_source_free(&recorded);
    free(y);
    free(x);
}

static void refuse(const char *message, int status, const char *a, const char *b)
{
    char set[96];
    const char *sets[] = {set, "selection.source=entry", "scheme=partial", a, b, NULL};
    struct smg_diag d;
    struct smg_world w;

    snprintf(set, sizeof(set), "selection.file=%s", recording);
    assert_int_equal(fixture_load(&w, &d, sets), status);
    if (strstr(d.text, message) == NULL) {
        fail_msg("'%s' does not say '%s'", d.text, message);
    }
}

static void test_recording_refusals(void **state)
{
    FILE *f;

    (void)state;
    refuse("request 0 has 900 prompt tokens there, 901 in the workload", SMG_ERR_INVALID, "workload.prompt_tokens=901",
           "workload.requests=1");
    refuse("holds 2 requests, the workload has 3", SMG_ERR_INVALID, "workload.prompt_tokens=900", "workload.requests=3");
    refuse("request 0 has 5 decode steps there, 64 output tokens take 63", SMG_ERR_INVALID, "workload.prompt_tokens=900",
           "workload.requests=1");
    refuse("recorded from 40 layers of 8 KV heads, llama-3.1-8b has 32 of 8", SMG_ERR_INVALID, "workload.prompt_tokens=900",
           "model=llama-3.1-8b");
    f = fopen(recording, "r+b");
    assert_non_null(f);
    fseek(f, 5000, SEEK_SET);
    fputc(0x5a, f);
    fclose(f);
    refuse("field 'checksum': found ", SMG_ERR_PARSE, "workload.prompt_tokens=900", "workload.requests=1");
    f = fopen(recording, "wb");
    assert_non_null(f);
    fclose(f);
    refuse("cannot map 0 bytes: empty", SMG_ERR_IO, "workload.prompt_tokens=900", "workload.requests=1");
}

/* ---- Rankings ---- */

static double on_demand_ratio(struct source *s, const char *ranking)
{
    struct sums d;

    fixture_open(s, 1);
    push(s, ranking, 50);
    d = decode(s, 5, 0);
    fixture_shut(s);
    return d.remote / d.all;
}

/* Knowing the request itself beats knowing others, which beats knowing nothing. */
static void test_order_of_rankings(void **state)
{
    double optimal, profile, random, streamingllm;
    struct source s;

    (void)state;
    SOURCE(&s, 0, "proactive.ranking=optimal", "on_demand.reuse=false", "workload.prompt_tokens=2500", "blocks_per_layer=250",
           "selection.source=entry", "workload.output_tokens=20");
    fixture_shut(&s);
    optimal = on_demand_ratio(&s, "optimal");
    profile = on_demand_ratio(&s, "profile");
    random = on_demand_ratio(&s, "random");
    streamingllm = on_demand_ratio(&s, "streamingllm");
    print_message("on-demand ratio: optimal %.3f, profile %.3f, streamingllm %.3f, random %.3f\n", optimal, profile, streamingllm,
                  random);
    assert_true(optimal < profile && profile < streamingllm && streamingllm < random);
    assert_within(optimal, 0.34, 0.04);
    fixture_open(&s, 0);
    fixture_source_free(&s);
}

/* The further the workload is from the profile, the less the profile is worth; expected counts follow. */
static void test_domain_shift(void **state)
{
    static const char *const shift[] = {"profile.shift=0", "profile.shift=0.5", "profile.shift=1"};
    static const char *const source[] = {"selection.source=entry", "selection.source=layer"};
    double ratio[3][2];
    struct source s;
    int i, j;

    (void)state;
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 2; j++) {
            SOURCE(&s, 0, shift[i], source[j], "on_demand.reuse=false", "workload.prompt_tokens=2500", "blocks_per_layer=250");
            fixture_shut(&s);
            ratio[i][j] = on_demand_ratio(&s, "profile");
            fixture_open(&s, 0);
            fixture_source_free(&s);
        }
        print_message("shift %.1f: on-demand ratio %.3f, expected %.3f\n", i / 2.0, ratio[i][0], ratio[i][1]);
        assert_within(ratio[i][0], ratio[i][1], 0.02);
    }
    assert_true(ratio[0][0] + 0.02 < ratio[1][0] && ratio[1][0] + 0.02 < ratio[2][0]);
}

static int name_recording(void **state)
{
    (void)state;
    snprintf(recording, sizeof(recording), "/tmp/smg-test-%ld.kvsr", (long)getpid());
    return 0;
}

static int remove_recording(void **state)
{
    (void)state;
    return remove(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_against_entry), cmocka_unit_test(test_kept_in_sliding_layers),
        cmocka_unit_test(test_recording),           cmocka_unit_test(test_recording_refusals),
        cmocka_unit_test(test_order_of_rankings),   cmocka_unit_test(test_domain_shift),
    };

    return cmocka_run_group_tests(tests, name_recording, remove_recording);
}
