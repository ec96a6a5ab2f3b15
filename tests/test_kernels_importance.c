/* Block importance on every backend: golden vector, and random cases. Exact where said; means differ by rounding alone. */
#include "tests/kernel_fixture.h"

/* Eq. 1: L=4, M=3, N=10, H=1; selections by token summed over blocks of 3, 3, 4 tokens, one step. */
static void test_mean_golden(void **state)
{
    static const uint32_t count[2][3] = {{3 + 1 + 0, 0 + 2 + 5, 1 + 0 + 4 + 8}, {0, 2 + 2 + 2, 9 * 4}}, tokens[3] = {3, 3, 4},
                          one = 1;
    static const float expected[2][3] = {{4 / 3.0f, 7 / 3.0f, 13 / 4.0f}, {0, 2, 9}};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        for (int l = 0; l < 2; l++) {
            float *importance = kf_out(f, sizeof expected[l]), got[3];
            struct smg_importance_mean_args a = {.requests = 1,
                                                 .blocks = 3,
                                                 .heads = 1,
                                                 .count = kf_in(f, count[l], sizeof count[l]),
                                                 .block_tokens = kf_in(f, tokens, sizeof tokens),
                                                 .steps = kf_in(f, &one, sizeof one),
                                                 .importance = importance};
            kf_ok(f, smg_importance_mean(f->k, &a, NULL));
            kf_get(f, got, importance, sizeof got);
            kf_same(f, got, expected[l], sizeof got);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
