/* The presence ledger: mask, write counts, reuse bitmap. */
#include "tests/world_fixture.h"

#include "core/ledger.h"

static struct smg_ledger *ledger_of(const struct smg_model *m, uint32_t tokens, uint32_t blocks, uint32_t output, int reuse)
{
    struct smg_ledger *l;
    struct smg_grid g;

    smg_grid_init(&g, m, tokens, blocks, 1);
    assert_int_equal(smg_ledger_create(&g, output, reuse, NULL, &l), SMG_OK);
    return l;
}

static void assert_mask(const struct smg_ledger *l, uint32_t layer, uint32_t lo, uint32_t hi, int value)
{
    for (uint32_t t = lo; t < hi; t++) {
        assert_int_equal(smg_ledger_mask(l, layer)[t], value);
    }
}

static void test_initial_mask(void **state)
{
    struct smg_model plain = fixture_qwen3_14b(), sliding = fixture_sliding();
    struct smg_ledger *l = ledger_of(&plain, 100, 10, 64, 0);

    (void)state;
    assert_int_equal(l->width, 164);
    for (uint32_t layer = 0; layer < 40; layer++) {
        assert_mask(l, layer, 0, 100, SMG_MASK_REMOTE);
        assert_mask(l, layer, 100, 164, SMG_MASK_LOCAL);
    }
    assert_null(smg_ledger_kept(l, 0, 0));
    smg_ledger_keep(l, 5, 2, 3);   /* no effect without reuse */
    assert_int_equal(smg_ledger_kept_in(l, 5, 0, 10), 0);
    smg_ledger_destroy(l);

    l = ledger_of(&sliding, 3000, 100, 1, 0);
    assert_mask(l, 0, 0, 1976, SMG_MASK_PAD);
    assert_mask(l, 0, 1976, 3000, SMG_MASK_REMOTE);
    assert_mask(l, 0, 3000, 3001, SMG_MASK_LOCAL);
    assert_mask(l, 5, 0, 3000, SMG_MASK_REMOTE);
    smg_ledger_destroy(l);
    smg_ledger_destroy(NULL);
}

static void test_external_mask(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_ledger *l;
    struct smg_grid g;
    int8_t *mask = malloc(40 * 30);

    (void)state;
    assert_non_null(mask);
    memset(mask, 99, 40 * 30);
    smg_grid_init(&g, &m, 20, 4, 1);
    assert_int_equal(smg_ledger_create(&g, 10, 0, mask, &l), SMG_OK);
    assert_ptr_equal(smg_ledger_mask(l, 1), mask + 30);
    assert_mask(l, 39, 0, 20, SMG_MASK_REMOTE);
    smg_ledger_write(l, 39, 0, 4, 0);   /* the NIC writes this mask: only counted */
    assert_mask(l, 39, 0, 20, SMG_MASK_REMOTE);
    assert_true(smg_ledger_has_block(l, 39, 3));
    smg_ledger_destroy(l);
    free(mask);   /* still the caller's */
}

static void test_write(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_ledger *l = ledger_of(&m, 10, 3, 2, 0);

    (void)state;
    smg_ledger_write(l, 4, 1, 1, 1);
    assert_mask(l, 4, 0, 3, SMG_MASK_REMOTE);
    assert_mask(l, 4, 3, 6, SMG_MASK_LOCAL);
    assert_mask(l, 4, 6, 10, SMG_MASK_REMOTE);
    assert_mask(l, 3, 0, 10, SMG_MASK_REMOTE);
    assert_true(smg_ledger_has_block(l, 4, 1) && !smg_ledger_has_block(l, 4, 0) && !smg_ledger_has_block(l, 4, 2));
    smg_ledger_write(l, 4, 2, 1, 1);
    smg_ledger_write(l, 4, 0, 1, 1);
    assert_mask(l, 4, 0, 12, SMG_MASK_LOCAL);
    assert_true(l->blocks_written == 3 && l->rewritten == 0);
    smg_ledger_write(l, 4, 1, 100, 1);   /* clipped to the two blocks that exist, both for the second time */
    assert_true(l->blocks_written == 5 && l->rewritten == 2);
    smg_ledger_write(l, 4, 3, 1, 1);
    smg_ledger_write(l, 4, 0, 0, 1);
    assert_int_equal(l->blocks_written, 5);
    for (int i = 0; i < 300; i++) {
        smg_ledger_write(l, 4, 0, 1, 1);
    }
    assert_int_equal(l->writes[4 * 3], 255);   /* saturates instead of coming round to "never written" */
    smg_ledger_destroy(l);
}

static void test_write_window(void **state)
{
    struct smg_model m = fixture_sliding();
    struct smg_ledger *l = ledger_of(&m, 1030, 103, 0, 0);   /* window from token 6, in block 0 of 10 tokens */

    (void)state;
    smg_ledger_write(l, 0, 0, 1, 1);
    assert_mask(l, 0, 0, 6, SMG_MASK_PAD);
    assert_mask(l, 0, 6, 10, SMG_MASK_LOCAL);
    smg_ledger_destroy(l);

    l = ledger_of(&m, 8000, 1000, 0, 0);
    smg_ledger_write(l, 0, 870, 4, 1);   /* the window starts at block 872: empty blocks do not count */
    assert_int_equal(l->blocks_written, 2);
    assert_false(smg_ledger_has_block(l, 0, 871));
    assert_mask(l, 0, 0, 6976, SMG_MASK_PAD);
    assert_mask(l, 0, 6976, 6992, SMG_MASK_LOCAL);
    smg_ledger_destroy(l);
}

static void test_kept(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_ledger *l = ledger_of(&m, 200, 2, 8, 1);

    (void)state;
    smg_ledger_keep(l, 7, 3, 0);
    smg_ledger_keep(l, 7, 3, 63);
    smg_ledger_keep(l, 7, 3, 64);
    smg_ledger_keep(l, 7, 0, 99);
    smg_ledger_keep(l, 7, 0, 99);   /* twice is once */
    smg_ledger_keep(l, 7, 7, 100);
    smg_ledger_keep(l, 7, 7, 199);
    smg_ledger_keep(l, 7, 7, 200);   /* a generated token is local anyway */
    assert_true(smg_ledger_kept(l, 7, 3)[0] == (UINT64_C(1) << 63 | 1) && smg_ledger_kept(l, 7, 3)[1] == 1);
    assert_int_equal(smg_ledger_kept_in(l, 7, 0, 1), 4);
    assert_int_equal(smg_ledger_kept_in(l, 7, 1, 1), 2);
    assert_int_equal(smg_ledger_kept_in(l, 7, 0, 2), 6);
    assert_int_equal(smg_ledger_kept_in(l, 7, 2, 1), 0);
    assert_int_equal(smg_ledger_kept_in(l, 6, 0, 2), 0);
    smg_ledger_destroy(l);
}

static void test_kept_in_brute_force(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    uint32_t rng = 5;

    (void)state;
    for (uint32_t tokens = 1; tokens < 400; tokens += 13) {
        struct smg_ledger *l = ledger_of(&m, tokens, 17, 0, 1);

        for (int i = 0; i < 300; i++) {
            smg_ledger_keep(l, 9, fixture_xorshift32(&rng) % 8, fixture_xorshift32(&rng) % tokens);
        }
        for (uint32_t first = 0; first < l->grid.blocks; first++) {
            uint32_t count = 1 + fixture_xorshift32(&rng) % (l->grid.blocks - first), lo, hi, unused;
            uint64_t n = 0;

            smg_grid_block(&l->grid, 9, first, &lo, &unused);
            smg_grid_block(&l->grid, 9, first + count - 1, &unused, &hi);
            for (uint32_t h = 0; h < 8; h++) {
                for (uint32_t t = lo; t < hi; t++) {
                    n += smg_ledger_kept(l, 9, h)[t / 64] >> (t % 64) & 1;
                }
            }
            assert_int_equal(smg_ledger_kept_in(l, 9, first, count), n);
        }
        smg_ledger_destroy(l);
    }
}

static void test_width_overflow(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    struct smg_ledger *l = NULL;
    struct smg_grid g;

    (void)state;
    smg_grid_init(&g, &m, 10, 3, 1);
    assert_int_equal(smg_ledger_create(&g, UINT32_MAX, 0, NULL, &l), SMG_ERR_RANGE);
    assert_null(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_mask),
        cmocka_unit_test(test_external_mask),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_window),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_kept_in_brute_force),
        cmocka_unit_test(test_width_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
