/* Attention on every backend: scores and values that are no ordinary numbers, or lead to none. */
#include "tests/attend_fixture.h"

/* One row of two query heads, d = 8, head 0 with q = e0 and head 1 with q = e1, so that k[j][0] and k[j][1] are the scores. */
enum { ODD_ENTRIES = 70, ODD_D = 8 };

static struct sequences odd(float score)
{
    uint32_t seed = 51;
    struct sequences s = make(&seed, SMG_F32, 1, 1, 2, ODD_D, ODD_ENTRIES);

    memset(s.q, 0, 2 * ODD_D * sizeof(float));
    ((float *)s.q)[0] = ((float *)s.q)[ODD_D + 1] = 1;
    s.scale = 1;
    for (uint32_t j = 0; j < ODD_ENTRIES; j++)
        ((float *)s.k)[j * ODD_D] = score;
    return s;
}

/* Head 0 is to be `out` in each channel with `lse`; head 1 as without what is odd. Where out is NULL: dense attention. */
static void check_odd(struct sequences *s, const float *out, float lse)
{
    struct result expected = result_of(s), got = result_of(s);

    dense(s, expected.out, expected.lse);
    if (out) {
        for (uint32_t c = 0; c < ODD_D; c++)
            expected.out[c] = *out;
        expected.lse[0] = lse;
    }
    FOR_EACH_BACKEND(f)
    {
        for (uint32_t splits = 0; splits < 3; splits++) {
            attend(f, s, &whole, splits, got.out, got.lse);
            close_to(f, s, &got, &expected);
        }
    }
    drop_result(&expected);
    drop_result(&got);
    drop(s);
}

static void test_equal_scores(void **state)
{
    static const float scores[] = {0, 1e-40f, -1e-40f, 1, 88, 1e4f, -1e4f, 3e38f, -3e38f};

    (void)state;
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++) {
        struct sequences s = odd(scores[i]);
        check_odd(&s, NULL, 0);
    }
}

/* Scores that rise or fall by more than e^88 from entry to entry: one entry decides, whatever its place. */
static void test_steep_scores(void **state)
{
    (void)state;
    for (int step = -300; step <= 300; step += 600) {
        struct sequences s = odd(0);
        for (int j = 0; j < ODD_ENTRIES; j++)
            ((float *)s.k)[j * ODD_D] = (float)(step * j);
        check_odd(&s, NULL, 0);
    }
}

/* Products of -9e76, which are -inf in fp32 and weigh nothing in double, for all entries or for every second one. The other
 * head's 0 times -3e38 is an ordinary 0. */
static void test_score_of_minus_infinity(void **state)
{
    const float zero = 0;

    (void)state;
    for (int some = 0; some < 2; some++) {
        struct sequences s = odd(-3e38f);
        ((float *)s.q)[0] = 3e38f;
        for (uint32_t j = 1; some && j < ODD_ENTRIES; j += 2)
            ((float *)s.k)[j * ODD_D] = 1e-38f;
        check_odd(&s, some ? NULL : &zero, -INFINITY);
    }
}

/* At every kind of place; the other query head does not see it. NaN is inf times 0, among scores of -inf. */
static void test_score_of_infinity_or_nan(void **state)
{
    static const uint32_t places[] = {0, 33, ODD_ENTRIES - 1};
    const float nan = NAN;

    (void)state;
    for (int is_nan = 0; is_nan < 2; is_nan++)
        for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
            struct sequences s = odd(is_nan ? -1 : 0);
            ((float *)s.q)[0] = is_nan ? INFINITY : 3e38f;
            ((float *)s.k)[places[p] * ODD_D] = is_nan ? 0 : 3e38f;
            check_odd(&s, &nan, NAN);
        }
}

/* An infinite element of V: its channel is infinite or NaN, the others are right; also where its weight is 0. */
static void test_infinite_value(void **state)
{
    (void)state;
    for (int weightless = 0; weightless < 2; weightless++) {
        struct sequences s = odd(0);
        struct result expected = result_of(&s), got = result_of(&s);
        if (weightless)
            ((float *)s.k)[5 * ODD_D] = -1e4f;
        dense(&s, expected.out, expected.lse);
        ((float *)s.v)[5 * ODD_D + 3] = INFINITY;
        FOR_EACH_BACKEND(f)
        {
            attend(f, &s, &whole, 0, got.out, got.lse);
            for (int g = 0; g < 2; g++) {
                assert_false(isfinite(got.out[g * ODD_D + 3]));
                got.out[g * ODD_D + 3] = expected.out[g * ODD_D + 3];
            }
            close_to(f, &s, &got, &expected);
        }
        drop_result(&expected);
        drop_result(&got);
        drop(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_scores),
        cmocka_unit_test(test_steep_scores),
        cmocka_unit_test(test_score_of_minus_infinity),
        cmocka_unit_test(test_score_of_infinity_or_nan),
        cmocka_unit_test(test_infinite_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
