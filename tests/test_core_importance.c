/* Eq. 1: counting selections into block importance; the matrix and its resampling. */
#include "tests/world_fixture.h"

#include "core/importance.h"

/* Adds token ids as often as times[] says. */
static void add_counts(struct smg_importance_counter *c, uint32_t layer, const uint32_t *times, int32_t tokens)
{
    for (int32_t t = 0; t < tokens; t++) {
        for (uint32_t i = 0; i < times[t]; i++) {
            assert_int_equal(smg_importance_counter_add(c, layer, &t, 1), SMG_OK);
        }
    }
}

/* Golden vector 2: one step, so that frequencies are the counts of Eq. 1. Floats hold the quotients to one rounding, 1e-7. */
static void test_golden(void **state)
{
    static const uint32_t s2[] = {3, 1, 0, 0, 2, 5, 1, 0, 4, 8}, s3[] = {0, 0, 0, 2, 2, 2, 9, 9, 9, 9};
    struct smg_importance_counter *c;
    struct smg_importance *im;
    const uint64_t *counts;
    const float *row;

    (void)state;
    assert_int_equal(smg_importance_counter_create(4, 3, 1, &c), SMG_OK);
    assert_int_equal(smg_importance_counter_begin(c, 10), SMG_OK);
    add_counts(c, 2, s2, 10);
    add_counts(c, 3, s3, 10);
    counts = smg_importance_counter_counts(c);
    assert_true(counts[2 * 3] == 4 && counts[2 * 3 + 1] == 7 && counts[2 * 3 + 2] == 13);
    assert_int_equal(smg_importance_counter_end(c, 1), SMG_OK);
    assert_int_equal(smg_importance_counter_finish(c, &im), SMG_OK);

    row = smg_importance_row(im, 0, 2);
    assert_near(row[0], 4.0 / 3, 1e-7);
    assert_near(row[1], 7.0 / 3, 1e-7);
    assert_near(row[2], 13.0 / 4, 1e-7);
    row = smg_importance_row(im, 0, 3);
    assert_true(row[0] == 0 && row[1] == 2 && row[2] == 9);
    for (uint32_t b = 0; b < 3; b++) {
        assert_true(isinf(smg_importance_row(im, 0, 0)[b]) && isinf(smg_importance_row(im, 0, 1)[b]));
    }
    smg_importance_destroy(im);
    smg_importance_counter_destroy(c);
}

/* Requests weigh alike whatever their length and steps, and a block that is empty for a request is left out of its mean. */
static void test_requests_average(void **state)
{
    struct smg_importance_counter *c;
    struct smg_importance *im;
    const int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, first[] = {0, -1};

    (void)state;
    assert_int_equal(smg_importance_counter_create(3, 4, 2, &c), SMG_OK);
    assert_int_equal(smg_importance_counter_begin(c, 8), SMG_OK);   /* everything, by one of two heads, in one of two steps */
    assert_int_equal(smg_importance_counter_add(c, 2, all, 8), SMG_OK);
    assert_int_equal(smg_importance_counter_end(c, 2), SMG_OK);
    assert_int_equal(smg_importance_counter_begin(c, 2), SMG_OK);   /* two tokens: only blocks 1 and 3 hold one */
    assert_int_equal(smg_importance_counter_add(c, 2, first, 2), SMG_OK);
    assert_int_equal(smg_importance_counter_add(c, 2, first, 2), SMG_OK);
    assert_int_equal(smg_importance_counter_end(c, 1), SMG_OK);
    assert_int_equal(smg_importance_counter_finish(c, &im), SMG_OK);

    const float *row = smg_importance_row(im, 0, 2);
    assert_true(row[0] == 0.25f && row[2] == 0.25f);
    assert_true(row[1] == 0.625f && row[3] == 0.125f);
    smg_importance_destroy(im);
    smg_importance_counter_destroy(c);
}

static void test_counter_refuses(void **state)
{
    struct smg_importance_counter *c;
    struct smg_importance *im = NULL;
    const int32_t index[] = {0, 10};

    (void)state;
    assert_int_equal(smg_importance_counter_create(0, 3, 1, &c), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_create(4, 3, 1, &c), SMG_OK);
    assert_int_equal(smg_importance_counter_add(c, 2, index, 1), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_finish(c, &im), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_begin(c, 0), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_begin(c, 10), SMG_OK);
    assert_int_equal(smg_importance_counter_begin(c, 10), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_add(c, 4, index, 1), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_add(c, 2, index, 2), SMG_ERR_RANGE);
    for (uint32_t i = 0; i < 12; i++) {
        assert_true(smg_importance_counter_counts(c)[i] == 0);   /* a refused row leaves nothing behind */
    }
    assert_int_equal(smg_importance_counter_end(c, 0), SMG_ERR_INVALID);
    assert_int_equal(smg_importance_counter_end(c, 1), SMG_OK);
    smg_importance_counter_destroy(c);
    smg_importance_counter_destroy(NULL);
    smg_importance_destroy(NULL);
}

static void test_groups(void **state)
{
    struct smg_importance *im;

    (void)state;
    assert_int_equal(smg_importance_create(3, 4, 5, &im), SMG_OK);
    assert_int_equal(smg_importance_group(im, 12345), 0);   /* fresh groups contain every length */
    im->group_lo[0] = 0, im->group_hi[0] = 4096;
    im->group_lo[1] = 8192, im->group_hi[1] = 12288;
    im->group_lo[2] = 12288, im->group_hi[2] = UINT32_MAX - 10;
    assert_int_equal(smg_importance_group(im, 1), 0);
    assert_int_equal(smg_importance_group(im, 4096), 0);
    assert_int_equal(smg_importance_group(im, 4097), 0);
    assert_int_equal(smg_importance_group(im, 8192), 1);   /* 8192 is not in (8192, 12288], but nearest to it */
    assert_int_equal(smg_importance_group(im, 12288), 1);
    assert_int_equal(smg_importance_group(im, 12289), 2);
    assert_int_equal(smg_importance_group(im, UINT32_MAX), 2);
    smg_importance_destroy(im);
    assert_int_equal(smg_importance_create(UINT32_MAX, 256, UINT32_MAX, &im), SMG_ERR_NOMEM);
    assert_int_equal(smg_importance_create(1, 257, 1, &im), SMG_ERR_INVALID);
}

/* Small whole numbers: every mean below is exact in a float. */
static void test_resample(void **state)
{
    struct smg_importance *im;
    float out[12];

    (void)state;
    assert_int_equal(smg_importance_create(2, 3, 6, &im), SMG_OK);
    for (uint32_t b = 0; b < 6; b++) {
        im->value[(1 * 3 + 2) * 6 + b] = (float)b;
    }
    smg_importance_resample(im, 1, 2, 6, out);
    assert_memory_equal(out, smg_importance_row(im, 1, 2), 6 * sizeof(float));
    smg_importance_resample(im, 1, 2, 3, out);
    assert_true(out[0] == 0.5f && out[1] == 2.5f && out[2] == 4.5f);
    smg_importance_resample(im, 1, 2, 12, out);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 1 && out[11] == 5);
    smg_importance_resample(im, 1, 2, 4, out);   /* 1.5 stored blocks each */
    assert_near(out[0], 1.0 / 3, 1e-7);
    assert_near(out[3], 14.0 / 3, 1e-7);
    smg_importance_resample(im, 1, 2, 1, out);
    assert_true(out[0] == 2.5f);
    smg_importance_resample(im, 1, 0, 4, out);
    assert_true(isinf(out[0]) && isinf(out[3]));
    smg_importance_destroy(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_requests_average),
        cmocka_unit_test(test_counter_refuses),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_resample),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
