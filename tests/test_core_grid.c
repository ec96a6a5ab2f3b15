/* The block grid. */
#include "tests/world_fixture.h"

#include "core/grid.h"

static void test_cuts(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;
    uint32_t lo, hi;

    (void)state;
    smg_grid_init(&g, &m, 10, 3, 1);   /* blocks of 3, 3 and 4 tokens */
    smg_grid_block(&g, 7, 0, &lo, &hi);
    assert_true(lo == 0 && hi == 3);
    smg_grid_block(&g, 7, 1, &lo, &hi);
    assert_true(lo == 3 && hi == 6);
    smg_grid_block(&g, 7, 2, &lo, &hi);
    assert_true(lo == 6 && hi == 10);
    assert_int_equal(smg_grid_range_tokens(&g, 7, 1, 2), 7);
    assert_int_equal(smg_grid_range_bytes(&g, 7, 1, 2), 7 * 4096);
    assert_int_equal(smg_grid_range_tokens(&g, 7, 1, 0), 0);
}

static void test_totals(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;

    (void)state;
    smg_grid_init(&g, &m, 7000, 1000, 1);
    assert_int_equal(smg_grid_total_blocks(&g), 40000);
    assert_int_equal(smg_grid_dense_blocks(&g), 2000);
    assert_int_equal(smg_grid_blocks_between(&g, 3, 5), 2000);
    smg_grid_init(&g, &m, 300, 1000, 1);   /* fewer tokens than blocks */
    assert_int_equal(g.blocks, 300);
    assert_int_equal(smg_grid_total_blocks(&g), 12000);
    smg_grid_init(&g, &m, 1, 1000, 16);
    assert_int_equal(g.blocks, 1);
    m.layers = 1;
    smg_grid_init(&g, &m, 300, 1000, 1);
    assert_int_equal(smg_grid_dense_blocks(&g), 300);
}

static void test_min_block_tokens(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;

    (void)state;
    for (uint32_t tokens = 1; tokens < 3000; tokens += 7) {
        smg_grid_init(&g, &m, tokens, 100, 16);
        assert_true(g.blocks >= 1 && g.blocks <= 100);
        for (uint32_t b = 0; b < g.blocks && tokens >= 16; b++) {
            assert_true(smg_grid_range_tokens(&g, 2, b, 1) >= 16);
        }
    }
}

static void test_sliding_layer(void **state)
{
    struct smg_model m = fixture_sliding();
    struct smg_grid g;
    uint32_t lo, hi;

    (void)state;
    smg_grid_init(&g, &m, 8000, 1000, 1);   /* window [6976, 8000), 8 tokens a block: begins at block 872 */
    assert_int_equal(smg_grid_first(&g, 0), 872);
    assert_int_equal(smg_grid_first(&g, 5), 0);
    assert_int_equal(smg_grid_layer_blocks(&g, 0), 128);
    assert_int_equal(smg_grid_dense_blocks(&g), 256);
    assert_int_equal(smg_grid_total_blocks(&g), 40 * 128 + 8 * 1000);
    smg_grid_block(&g, 0, 871, &lo, &hi);
    assert_int_equal(lo, hi);
    assert_int_equal(smg_grid_range_tokens(&g, 0, 0, 1000), 1024);

    smg_grid_init(&g, &m, 1030, 100, 1);   /* window [6, 1030) cuts the first block [0, 10) */
    smg_grid_block(&g, 0, 0, &lo, &hi);
    assert_true(lo == 6 && hi == 10);
}

/* For every layer kind and many shapes: blocks tile the kept tokens, are non-empty from the first on, and block_of inverts the
 * cut. */
static void test_tiling(void **state)
{
    static const uint32_t lengths[] = {1, 2, 3, 99, 100, 101, 999, 1000, 1024, 1025, 4097, 7001};
    static const uint32_t blocks[] = {1, 2, 7, 100, 1000};
    struct smg_model m = fixture_sliding();

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (size_t j = 0; j < sizeof(blocks) / sizeof(blocks[0]); j++) {
            for (uint32_t layer = 4; layer < 6; layer++) {
                struct smg_grid g;
                uint32_t lo, hi, at;

                smg_grid_init(&g, &m, lengths[i], blocks[j], 1);
                at = lengths[i] - smg_model_layer_tokens(&m, layer, lengths[i]);
                for (uint32_t b = smg_grid_first(&g, layer); b < g.blocks; b++) {
                    smg_grid_block(&g, layer, b, &lo, &hi);
                    assert_true(lo == at && hi > lo);
                    for (at = lo; at < hi; at++) {
                        assert_int_equal(smg_grid_block_of(&g, at), b);
                    }
                }
                assert_int_equal(at, lengths[i]);
            }
        }
    }
}

static void test_huge_prompt(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_grid g;

    (void)state;
    smg_grid_init(&g, &m, 4000000000u, 100000, 1);
    assert_int_equal(smg_grid_range_tokens(&g, 0, 99999, 1), 40000);
    assert_int_equal(smg_grid_block_of(&g, 3999999999u), 99999);
    assert_int_equal(smg_grid_range_bytes(&g, 0, 0, 100000), UINT64_C(4000000000) * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_min_block_tokens),
        cmocka_unit_test(test_sliding_layer),
        cmocka_unit_test(test_tiling),
        cmocka_unit_test(test_huge_prompt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
