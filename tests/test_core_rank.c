/* Block rankings: tie order, dense layers first, sliding windows, short prompts. */
#include "tests/world_fixture.h"

#include "core/rank.h"

/* A request that selects its blocks the more the later they come. */
static int later_more(void *context, uint32_t request, uint32_t tokens, uint32_t layer, uint32_t blocks, float *out)
{
    (void)context, (void)request, (void)tokens, (void)layer;
    for (uint32_t b = 0; b < blocks; b++)
        out[b] = (float)b / (float)blocks;
    return SMG_OK;
}

static struct smg_importance *importance_of(uint32_t layers, uint32_t blocks)
{
    struct smg_importance *im;

    assert_int_equal(smg_importance_create(1, layers, blocks, &im), SMG_OK);
    im->request_row = later_more;
    return im;
}

static struct smg_rank *rank_of(const char *name, const struct smg_grid *g, const struct smg_importance *im, uint32_t request)
{
    struct smg_rank_input in = {.grid = g, .importance = im, .seed = 7, .request = request};
    struct smg_rank *r;

    assert_int_equal(smg_rank_create(smg_rank_find(name), &in, &r), SMG_OK);
    return r;
}

static void assert_at(const struct smg_rank *r, uint32_t place, uint32_t layer, uint32_t block)
{
    assert_int_equal(r->order[place].layer, layer);
    assert_int_equal(r->order[place].block, block);
}

static void test_find(void **state)
{
    (void)state;
    assert_non_null(smg_rank_find("profile"));
    assert_non_null(smg_rank_find("streamingllm"));
    assert_null(smg_rank_find("prof"));
    assert_true(smg_rank_find("profile")->needs_importance);
    assert_true(smg_rank_find("random")->per_request);
    for (size_t i = 0; smg_rank_types[i] != NULL; i++) {
        assert_ptr_equal(smg_rank_find(smg_rank_types[i]->name), smg_rank_types[i]);
    }
}

/* Whatever the ranking and the shape: a permutation of the non-empty blocks, its inverse, dense layers first in address order. */
static void check_order(const struct smg_grid *g, const struct smg_rank *r)
{
    uint32_t dense = smg_grid_dense_blocks(g), listed = 0, at = 0;

    assert_int_equal(r->total, smg_grid_total_blocks(g));
    for (uint32_t l = 0; l < r->layers; l++) {
        for (uint32_t b = 0; b < r->blocks; b++) {
            uint32_t place = r->position[(size_t)l * r->blocks + b];

            if (b < smg_grid_first(g, l)) {
                assert_int_equal(place, UINT32_MAX);
                continue;
            }
            assert_true(place < r->total);
            assert_at(r, place, l, b);
            listed++;
            if (l < SMG_DENSE_LAYERS) {
                assert_int_equal(place, at++);
            }
        }
    }
    assert_int_equal(listed, r->total);
    assert_int_equal(at, dense);
}

static void test_every_ranking_is_an_order(void **state)
{
    static const uint32_t lengths[] = {1, 5, 99, 1000, 1024, 3001};
    struct smg_model models[] = {fixture_qwen3_14b(), fixture_sliding()};
    uint32_t rng = 1;

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        struct smg_importance *im = importance_of(models[m].layers, 100);

        for (size_t i = 2 * 100; i < (size_t)models[m].layers * 100; i++) {
            im->value[i] = fixture_float(&rng);
        }
        for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
            for (size_t t = 0; smg_rank_types[t] != NULL; t++) {
                struct smg_grid g;
                struct smg_rank *r;

                smg_grid_init(&g, &models[m], lengths[n], 100, 1);
                r = rank_of(smg_rank_types[t]->name, &g, im, 3);
                check_order(&g, r);
                smg_rank_unref(r);
            }
        }
        smg_importance_destroy(im);
    }
}

static void test_profile_ties(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_importance *im;
    struct smg_grid g;
    struct smg_rank *r;

    (void)state;
    m.layers = 5;
    im = importance_of(5, 3);
    smg_grid_init(&g, &m, 30, 3, 1);
    memcpy(im->value + 2 * 3, (const float[]){0.5f, 0.1f, 0.5f, 0.1f, 0.9f, 0.5f, 0.5f, NAN, 0.2f}, 9 * sizeof(float));
    r = rank_of("profile", &g, im, 0);
    assert_at(r, 5, 1, 2);
    assert_at(r, 6, 3, 1);    /* 0.9 */
    assert_at(r, 7, 2, 0);    /* 0.5: layer, then block */
    assert_at(r, 8, 2, 2);
    assert_at(r, 9, 3, 2);
    assert_at(r, 10, 4, 0);
    assert_at(r, 11, 4, 2);   /* 0.2 */
    assert_at(r, 12, 2, 1);   /* 0.1 */
    assert_at(r, 13, 3, 0);
    assert_at(r, 14, 4, 1);   /* not a number: last */
    assert_ptr_equal(smg_rank_ref(r), r);
    smg_rank_unref(r);
    assert_int_equal(r->references, 1);
    smg_rank_unref(r);
    smg_rank_unref(NULL);
    smg_importance_destroy(im);
}

static void test_profile_needs_its_matrix(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_importance *im = importance_of(39, 10);
    struct smg_grid g;
    struct smg_rank_input in = {.grid = &g};
    struct smg_rank *r = NULL;

    (void)state;
    smg_grid_init(&g, &m, 30, 3, 1);
    assert_int_equal(smg_rank_create(smg_rank_find("profile"), &in, &r), SMG_ERR_INVALID);
    in.importance = im;   /* a matrix of another model */
    assert_int_equal(smg_rank_create(smg_rank_find("profile"), &in, &r), SMG_ERR_INVALID);
    assert_null(r);
    smg_importance_destroy(im);
}

/* A prompt shorter than M has N blocks: importance is read by relative position. */
static void test_profile_short_prompt(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_importance *im;
    struct smg_grid g;
    struct smg_rank *r;

    (void)state;
    m.layers = 3;
    im = importance_of(3, 1000);
    for (uint32_t b = 0; b < 1000; b++) {
        im->value[2 * 1000 + b] = (float)b / 1000;
    }
    smg_grid_init(&g, &m, 10, 1000, 1);
    r = rank_of("profile", &g, im, 0);
    assert_int_equal(r->total, 30);
    assert_at(r, 20, 2, 9);
    assert_at(r, 29, 2, 0);
    smg_rank_unref(r);
    smg_importance_destroy(im);
}

/* Layers that slide are always used, so their window comes before what selecting layers keep. */
static void test_profile_sliding_first(void **state)
{
    struct smg_model m = fixture_sliding();
    struct smg_importance *im = importance_of(48, 100);
    struct smg_grid g;
    struct smg_rank *r;
    uint32_t sliding_blocks;

    (void)state;
    for (uint32_t i = 2 * 100; i < 48 * 100; i++) {
        im->value[i] = 0.9f;
    }
    smg_grid_init(&g, &m, 8000, 1000, 1);
    r = rank_of("profile", &g, im, 0);
    sliding_blocks = 40 * 128;
    for (uint32_t i = 0; i < r->total; i++) {
        assert_int_equal(m.sliding[r->order[i].layer], i < sliding_blocks);
    }
    smg_rank_unref(r);
    smg_importance_destroy(im);
}

static void test_sequential(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;
    struct smg_rank *r;

    (void)state;
    smg_grid_init(&g, &m, 7000, 1000, 1);
    r = rank_of("sequential", &g, NULL, 0);
    for (uint32_t i = 0; i < r->total; i += 37) {
        assert_at(r, i, i / 1000, i % 1000);
    }
    smg_rank_unref(r);
}

static void test_streamingllm(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;
    struct smg_rank *r;

    (void)state;
    m.layers = 4;
    smg_grid_init(&g, &m, 50, 5, 1);
    r = rank_of("streamingllm", &g, NULL, 0);
    for (uint32_t i = 0; i < 10; i++) {   /* block 0, then 4, 3, 2, 1, each in both layers */
        assert_at(r, 10 + i, 2 + i % 2, i < 2 ? 0 : 5 - i / 2);
    }
    smg_rank_unref(r);
}

static void test_random(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;
    struct smg_rank *a, *b, *c;
    double layer_sum = 0;

    (void)state;
    smg_grid_init(&g, &m, 7000, 1000, 1);
    a = rank_of("random", &g, NULL, 1);
    b = rank_of("random", &g, NULL, 1);
    c = rank_of("random", &g, NULL, 2);
    assert_memory_equal(a->position, b->position, 40000 * sizeof(*a->position));
    assert_memory_not_equal(a->position, c->position, 40000 * sizeof(*a->position));
    for (uint32_t i = 2000; i < 2000 + 19000; i++) {
        layer_sum += a->order[i].layer;
    }
    /* The first half should be a fair sample of layers 2..39, mean 20.5; its standard deviation is below 0.06, the seed is
     * fixed. */
    assert_near(layer_sum / 19000, 20.5, 0.01);
    smg_rank_unref(a);
    smg_rank_unref(b);
    smg_rank_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_every_ranking_is_an_order),
        cmocka_unit_test(test_profile_ties),
        cmocka_unit_test(test_profile_needs_its_matrix),
        cmocka_unit_test(test_profile_short_prompt),
        cmocka_unit_test(test_profile_sliding_first),
        cmocka_unit_test(test_sequential),
        cmocka_unit_test(test_streamingllm),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
