/* The synthetic generator: its rows, the facts it was made to show, its options. */
#include "tests/selection_fixture.h"

#include "traces/generator.h"

#define TOKENS 7000u
#define K      1400u
#define LAYERS 40u

struct rows {
    struct smg_model model;
    struct smg_generator *generator;
    struct smg_generator_weight weight[TOKENS];
    struct smg_generator_scratch scratch;
    int32_t a[K], b[K];
};

static struct rows *rows_create(void)
{
    struct rows *r = malloc(sizeof(*r));
    struct smg_diag diag;

    assert_non_null(r);
    assert_int_equal(smg_model_load("qwen3-14b", &r->model, &diag), SMG_OK);
    assert_int_equal(smg_generator_create(&r->model, 1, 0, &r->generator, &diag), SMG_OK);
    assert_int_equal(smg_generator_scratch_create(TOKENS, &r->scratch), SMG_OK);
    return r;
}

static void rows_destroy(struct rows *r)
{
    smg_generator_scratch_destroy(&r->scratch);
    smg_generator_destroy(r->generator);
    free(r);
}

static void row(struct rows *r, uint32_t request, uint32_t layer, uint32_t head, uint32_t step, int32_t *index)
{
    smg_generator_row(r->generator, request, layer, head, step, r->weight, TOKENS, K, &r->scratch, index);
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
    smg_generator_weights(r->generator, 0, 8, TOKENS, 1, r->weight);
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
    smg_generator_row(r->generator, 0, 8, 3, 5, r->weight, 7, 7, &r->scratch, r->b);
    for (i = 0; i < 7; i++) {
        assert_int_equal(r->b[i], i);
    }
    rows_destroy(r);
}

/* The generator's aim: consecutive steps share 65% of their entries (accepted: 60 to 70%). */
static void test_overlap(void **state)
{
    struct rows *r = rows_create();
    uint32_t layer, head, step, pairs = 0;
    double shared = 0;

    (void)state;
    for (layer = 2; layer < LAYERS; layer += 9) {
        smg_generator_weights(r->generator, 0, layer, TOKENS, 1, r->weight);
        for (head = 0; head < 4; head++) {
            for (step = 1; step < 9; step++, pairs++) {
                row(r, 0, layer, head, step, r->a);
                row(r, 0, layer, head, step + 1, r->b);
                shared += (double)common(r->a, r->b) / K;
            }
        }
    }
    print_message("overlap of consecutive steps: %.3f\n", shared / pairs);
    assert_within(shared / pairs, 0.65, 0.05);
    rows_destroy(r);
}

/* Selections per block of a test request, [layers][blocks]. */
static void count_request(struct rows *r, uint32_t request, uint32_t blocks, double *count)
{
    uint32_t layer, head, step, i;

    memset(count, 0, (size_t)LAYERS * blocks * sizeof(*count));
    for (layer = 2; layer < LAYERS; layer++) {
        smg_generator_weights(r->generator, request, layer, TOKENS, 1, r->weight);
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
    assert_within(optimum, 0.66, 0.03);
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
        assert_within(mean_between(im, layer, 0, 1), 0.20, 0.001);
    }
    for (bin = 0; bin < 5; bin++) {
        assert_true(mean_between(im, 8, 0.75 + 0.05 * bin, 0.80 + 0.05 * bin) > (bin == 0 ? 0.25 : 0.30));
    }
    assert_true(mean_between(im, 8, 0.8, 1) > 1.2 * mean_between(im, 14, 0.8, 1));
    smg_world_free(&w);
    smg_world_free(&again);
    smg_world_free(&other);
}

/* Prompts shorter than M: as many blocks as tokens. Sliding layers: what the window holds, and nothing else. */
static void test_importance_shapes(void **state)
{
    struct smg_world w = WORLD("workload.prompt_tokens=300");
    uint32_t b;

    (void)state;
    assert_int_equal(w.importance->blocks, 300);
    smg_world_free(&w);
    w = WORLD("model=gemma-3-12b", "blocks_per_layer=100"); /* 7000 tokens: the window starts at 85.37 blocks */
    for (b = 0; b < 100; b++) {
        assert_within(smg_importance_row(w.importance, 0, 4)[b], b < 85 ? 0 : b > 85 ? 1 : 0.63, b == 85 ? 0.01 : 0);
    }
    assert_within(mean_between(w.importance, 5, 0, 1), 0.20, 0.001);
    smg_world_free(&w);
}

/* Calibration point P025: of the entries in absent blocks (the worse half), the share that no earlier step selected is about 0.26
 * at steps 10 and 20. The counting bound forbids that it stays there: its sum over the steps is at most what an entry is worth.
 */
static void test_new_entries(void **state)
{
    const uint32_t steps = 40, layers[] = {4, 8, 14, 20, 30, 38};
    double fresh[40] = {0}, all[40] = {0}, sum = 0;
    struct rows *r = rows_create();
    struct smg_world w = WORLD("seed=1", "blocks_per_layer=100");
    uint32_t i, l, head, step;
    static uint8_t seen[TOKENS];

    (void)state;
    for (l = 0; l < 6; l++) {
        const float *profile = smg_importance_row(w.importance, 0, layers[l]);

        smg_generator_weights(r->generator, 0, layers[l], TOKENS, 1, r->weight);
        for (head = 0; head < 4; head++) {
            memset(seen, 0, sizeof(seen));
            for (step = 0; step < steps; step++) {
                row(r, 0, layers[l], head, step + 1, r->a);
                for (i = 0; i < K; i++) {
                    int absent = profile[(uint64_t)r->a[i] * 100 / TOKENS] < 0.182f; /* about the worse half of the blocks */

                    all[step] += absent;
                    fresh[step] += absent && !seen[r->a[i]];
                    seen[r->a[i]] = 1;
                }
            }
        }
    }
    for (step = 0; step < steps; step++) {
        sum += fresh[step] / all[step];
    }
    print_message("never selected before, of absent entries: step 2 %.3f, 10 %.3f, 20 %.3f, 40 %.3f; sum %.2f\n",
                  fresh[1] / all[1], fresh[9] / all[9], fresh[19] / all[19], fresh[39] / all[39], sum);
    assert_within(fresh[9] / all[9], 0.26, 0.03);
    assert_within(fresh[19] / all[19], 0.26, 0.03);
    rows_destroy(r);
    smg_world_free(&w);
}

/* A sliding layer picks from its window alone; the seed's layers look alike whatever else the model has. */
static void test_window(void **state)
{
    struct smg_generator_weight *weight = malloc(4000 * sizeof(*weight));
    struct smg_generator_scratch scratch;
    struct smg_generator *g;
    struct smg_model m;
    struct smg_diag diag;
    int32_t index[800];
    uint32_t i;

    (void)state;
    assert_int_equal(smg_model_load("gemma-3-12b", &m, &diag), SMG_OK);
    assert_int_equal(smg_generator_create(&m, 1, 0, &g, &diag), SMG_OK);
    assert_int_equal(smg_generator_scratch_create(4000, &scratch), SMG_OK);
    smg_generator_weights(g, 0, 4, 4000, 1, weight);
    smg_generator_row(g, 0, 4, 0, 1, weight, 4000, 800, &scratch, index);
    for (i = 0; i < 800; i++) {
        assert_true(index[i] >= 4000 - 1024);
    }
    smg_generator_scratch_destroy(&scratch);
    smg_generator_destroy(g);
    free(weight);
}

/* Layers whose universal weights differ from calibration's. */
static uint32_t shifted_layers(struct rows *r, double shift)
{
    float evaluated[100], calibrated[100];
    uint32_t layer, n = 0;

    r->generator->shift = shift;
    for (layer = 2; layer < LAYERS; layer++) {
        smg_generator_universal(r->generator, 0, layer, TOKENS, 0, 70, 100, evaluated);
        smg_generator_universal(r->generator, SMG_GENERATOR_CALIBRATION, layer, TOKENS, 0, 70, 100, calibrated);
        n += memcmp(evaluated, calibrated, sizeof(evaluated)) != 0;
    }
    return n;
}

static void test_shift(void **state)
{
    struct rows *r = rows_create();
    uint32_t half;

    (void)state;
    assert_int_equal(shifted_layers(r, 0), 0);
    half = shifted_layers(r, 0.5);
    assert_true(half > 9 && half < 29);
    assert_true(shifted_layers(r, 0.7) >= half);
    assert_int_equal(shifted_layers(r, 1), 38);
    rows_destroy(r);
}

/* A boundary draws everything persistent anew: the overlap there falls to that of strangers. */
static void test_boundaries(void **state)
{
    struct rows *r = rows_create();
    uint32_t step, low = 0;

    (void)state;
    r->generator->p.boundary_rate = 0.2;
    smg_generator_weights(r->generator, 0, 20, TOKENS, 1, r->weight);
    for (step = 1; step < 41; step++) {
        row(r, 0, 20, 0, step, r->a);
        row(r, 0, 20, 0, step + 1, r->b);
        low += common(r->a, r->b) < K * 45 / 100;
    }
    assert_true(low >= 3 && low <= 16);
    rows_destroy(r);
}

/* dip_selected makes the middle select less. */
static void test_selected_in_the_dip(void **state)
{
    struct rows *r = rows_create();

    (void)state;
    assert_int_equal(smg_generator_k(r->generator, 14, 1400), 1400);
    r->generator->p.dip_selected = 0.35;
    assert_true(smg_generator_k(r->generator, 14, 1400) < 920);
    assert_int_equal(smg_generator_k(r->generator, 39, 1400), 1400);
    assert_int_equal(smg_generator_k(r->generator, 14, 1), 1);
    rows_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_importance),
        cmocka_unit_test(test_importance_shapes),
        cmocka_unit_test(test_new_entries),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_selected_in_the_dip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
