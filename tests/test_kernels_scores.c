/* Scores of tokens, threshold and group scores, on every backend. Counts are exact on the same scores; sums are held to 1e-6 a
 * term of inputs in [-1, 1). */
#include "tests/select_fixture.h"

/* ---- scores ---- */

struct scores_case {
    uint32_t requests, q_heads, kv_heads, width, max_tokens;
    enum smg_dtype type;
    int head_major, extreme;
};

static const uint32_t lengths[] = {0, 1, 33, 1000000, 17};

/* Infinities and denormals among the keys, never two infinities in one key. */
static void make_extreme(void *key, size_t n, uint32_t width, enum smg_dtype type)
{
    for (size_t i = 0; i + width <= n; i += width) {
        if (i / width % 5 == 1)
            smg_store(key, i + width - 1, type, i % 2 ? INFINITY : -INFINITY);
        if (i / width % 5 == 2)
            for (uint32_t j = 0; j < width; j++)
                smg_store(key, i + j, type, type == SMG_F16 ? 0x1p-24f : 0x1p-130f);
    }
}

static void check_scores(const struct scores_case *c)
{
    size_t rows = (size_t)c->requests * c->q_heads, n = rows * c->max_tokens,
           n_key = (size_t)c->requests * c->max_tokens * c->kv_heads * c->width;
    uint32_t seed = 19 + c->width;
    void *q = kf_elements(&seed, rows * c->width, c->type), *key = kf_elements(&seed, n_key, c->type);
    float *expected = malloc((n + 1) * sizeof *expected), *got = malloc((n + 1) * sizeof *got);

    assert_true(expected && got && c->requests <= 5);
    if (c->extreme)
        make_extreme(key, n_key, c->width, c->type);
    FOR_EACH_BACKEND(f)
    {
        struct smg_scores_args a = {.requests = c->requests,
                                    .q_heads = c->q_heads,
                                    .kv_heads = c->kv_heads,
                                    .width = c->width,
                                    .max_tokens = c->max_tokens,
                                    .type = c->type,
                                    .q = kf_in(f, q, rows * c->width * smg_dtype_bytes(c->type)),
                                    .key = kf_in(f, key, n_key * smg_dtype_bytes(c->type)),
                                    .request_stride = (uint64_t)c->max_tokens * c->kv_heads * c->width,
                                    .token_stride = c->head_major ? c->width : (uint64_t)c->kv_heads * c->width,
                                    .head_stride = c->head_major ? (uint64_t)c->max_tokens * c->width : c->width,
                                    .tokens = kf_in(f, lengths, c->requests * sizeof *lengths),
                                    .scale = 0.25f,
                                    .score = kf_out(f, n * sizeof(float))};
        kf_ok(f, smg_scores(f->k, &a, NULL));
        kf_get(f, kf_reference(f) ? expected : got, a.score, n * sizeof *got);
        if (!kf_reference(f))
            kf_close(f, got, expected, n, 1e-6 * c->width + 1e-9, 1e-6);
    }
    free(q);
    free(key);
    free(expected);
    free(got);
}

static void test_scores(void **state)
{
    static const uint32_t widths[] = {0, 1, 7, 8, 9, 15, 31, 32, 33, 38, 128}, tokens[] = {0, 1, 15, 16, 17, 31, 32, 33, 65};

    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (int t = 0; t < 3; t++)
            check_scores(&(struct scores_case){5, 4, 2, widths[i], 37, sf_types[t], i % 2, 0});
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        check_scores(&(struct scores_case){4, 7, 1, 19, tokens[i], SMG_BF16, 0, 0});
    for (uint32_t group = 1; group < 10; group++)
        check_scores(&(struct scores_case){3, 2 * group, 2, 24, 20, SMG_F32, 1, 0});
    for (int t = 0; t < 3; t++) {
        check_scores(&(struct scores_case){5, 2, 2, 14, 40, sf_types[t], 0, 1});
        check_scores(&(struct scores_case){5, 5, 1, 5, 40, sf_types[t], 0, 1});
    }
    check_scores(&(struct scores_case){0, 4, 2, 8, 8, SMG_F32, 0, 0});
    check_scores(&(struct scores_case){4, 1, 1, 1024, 3, SMG_F16, 0, 0});
}

/* ---- threshold ---- */

static void run_threshold(struct kernel_fixture *f, uint32_t requests, uint32_t heads, uint32_t max_tokens, const float *score,
                          const uint32_t *tokens, const uint32_t *k_max, float alpha, uint32_t *count, uint32_t *keep)
{
    struct smg_threshold_args a = {.requests = requests, .q_heads = heads, .max_tokens = max_tokens, .alpha = alpha};

    kf_free_all(f);
    a.score = kf_in(f, score, (size_t)requests * heads * max_tokens * sizeof *score);
    a.tokens = kf_in(f, tokens, requests * sizeof *tokens);
    a.k_max = kf_in(f, k_max, requests * sizeof *k_max);
    a.count = kf_out(f, (size_t)requests * heads * sizeof *count);
    a.keep = kf_out(f, requests * sizeof *keep);
    kf_ok(f, smg_threshold(f->k, &a, NULL));
    kf_get(f, count, a.count, (size_t)requests * heads * sizeof *count);
    kf_get(f, keep, a.keep, requests * sizeof *keep);
}

/* InfiniGen, alpha = 5: 9 - 5 = 4 leaves 3.9 out and keeps 4.1; counts 4 and 5, mean 4.5. */
static void test_threshold_golden(void **state)
{
    static const float score[2][6] = {{9, 3.9f, 4.1f, 8.5f, -1, 6}, {2, 1.9f, -2.9f, -3.1f, 0, 1}};
    static const uint32_t tokens = 6, bounds[2] = {6, 2};
    static const uint32_t best[2][4] = {{0, 3, 5, 2}, {0, 1, 5, 4}};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        uint32_t count[2], keep, index[4];
        for (int i = 0; i < 2; i++) {
            run_threshold(f, 1, 2, 6, score[0], &tokens, bounds + i, 5, count, &keep);
            assert_int_equal(count[0], 4);
            assert_int_equal(count[1], 5);
            assert_int_equal(keep, i ? 2 : 4);
            for (int h = 0; h < 2; h++) {
                sf_top(score[h], 6, keep, index);
                assert_memory_equal(index, best[h], keep * sizeof *index);
            }
        }
    }
}

/* alpha = 0 counts nothing, as nothing is above the best: 1 is kept. alpha = +inf counts all that is not -inf or NaN. */
static void test_threshold_edges(void **state)
{
    static const float score[4][5] = {{1, 1, 1, 1, 1},
                                      {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
                                      {NAN, 2, -INFINITY, 1.5f, 99},
                                      {INFINITY, 1, 2, 3, 4}};
    static const uint32_t tokens[4] = {5, 5, 4, 7}, k_max[4] = {3, 9, 9, 9}, none[4] = {0, 5, 5, 0}, zero[4] = {0, 0, 0, 0};
    static const uint32_t count0[4] = {0, 0, 0, 0}, keep0[4] = {1, 1, 1, 1}, count1[4] = {5, 0, 2, 0}, keep1[4] = {3, 1, 2, 1},
                          count_inf[4] = {5, 0, 2, 0}, keep_none[4] = {0, 1, 2, 0};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        uint32_t count[4], keep[4];
        run_threshold(f, 4, 1, 5, score[0], tokens, k_max, 0, count, keep);
        kf_same(f, count, count0, sizeof count);
        kf_same(f, keep, keep0, sizeof keep);
        run_threshold(f, 4, 1, 5, score[0], tokens, k_max, 1, count, keep);
        kf_same(f, count, count1, sizeof count);
        kf_same(f, keep, keep1, sizeof keep);
        run_threshold(f, 4, 1, 5, score[0], tokens, k_max, INFINITY, count, keep);
        kf_same(f, count, count_inf, sizeof count);
        kf_same(f, keep, keep1, sizeof keep);
        run_threshold(f, 4, 1, 5, score[0], tokens, none, INFINITY, count, keep);
        kf_same(f, keep, keep_none, sizeof keep);
        run_threshold(f, 4, 1, 5, score[0], zero, k_max, 1, count, keep);
        kf_same(f, count, zero, sizeof count);
        kf_same(f, keep, zero, sizeof keep);
        run_threshold(f, 4, 1, 0, score[0], tokens, k_max, 1, count, keep);
        kf_same(f, keep, zero, sizeof keep);
    }
}

/* alpha = +inf: keep is the bound, whatever the scores. Random counts are exact. */
static void test_threshold_random(void **state)
{
    static const uint32_t sizes[] = {1, 7, 8, 9, 31, 32, 33, 127, 128, 129, 300};
    uint32_t seed = 23;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i], tokens[3] = {n, n / 2, n - 1}, k_max[3] = {n / 5, n, n}, count[9], keep[3], counts[9], keeps[3];
        float *score = sf_floats(&seed, (size_t)9 * n);
        FOR_EACH_BACKEND(f)
        {
            run_threshold(f, 3, 3, n, score, tokens, k_max, 0.7f, count, keep);
            if (kf_reference(f)) {
                memcpy(counts, count, sizeof count);
                memcpy(keeps, keep, sizeof keep);
            }
            kf_same(f, count, counts, sizeof count);
            kf_same(f, keep, keeps, sizeof keep);
            run_threshold(f, 3, 3, n, score, tokens, k_max, INFINITY, count, keep);
            for (int b = 0; b < 3; b++)
                assert_int_equal(keep[b], k_max[b] < tokens[b] ? k_max[b] : tokens[b]);
        }
        free(score);
    }
}

/* ---- group_scores ---- */

static void run_group(struct kernel_fixture *f, uint32_t requests, uint32_t q_heads, uint32_t kv_heads, uint32_t max_tokens,
                      enum smg_group_mode mode, const float *score, const uint32_t *tokens, float *group)
{
    struct smg_group_scores_args a = {
        .requests = requests, .q_heads = q_heads, .kv_heads = kv_heads, .max_tokens = max_tokens, .mode = mode};

    kf_free_all(f);
    a.score = kf_in(f, score, (size_t)requests * q_heads * max_tokens * sizeof *score);
    a.tokens = kf_in(f, tokens, requests * sizeof *tokens);
    a.group = kf_out(f, (size_t)requests * kv_heads * max_tokens * sizeof *group);
    kf_ok(f, smg_group_scores(f->k, &a, NULL));
    kf_get(f, group, a.group, (size_t)requests * kv_heads * max_tokens * sizeof *group);
}

/* Two query heads: softmax of (ln 1, ln 3) and of (0, 0); -inf, NaN and padding count for nothing; a row of -inf is 0; infinities
 * share the weight. */
static void test_group_known(void **state)
{
    static const float score[2][4] = {{0, 1.0986123f, -INFINITY, 9}, {-3, -3, NAN, 9}},
                       none[2][4] = {{-INFINITY, -INFINITY, -INFINITY, 0}, {INFINITY, 7, INFINITY, 0}};
    static const uint32_t tokens = 3;
    static const float softmax[4] = {0.75f, 1.25f, 0, -INFINITY}, most[4] = {0, 1.0986123f, -INFINITY, -INFINITY},
                       sum[4] = {-3, -1.9013877f, -INFINITY, -INFINITY}, shared[4] = {0.5f, 0, 0.5f, -INFINITY};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        float got[4];
        run_group(f, 1, 2, 1, 4, SMG_GROUP_SOFTMAX_SUM, score[0], &tokens, got);
        kf_close(f, got, softmax, 4, 1e-6, 0);
        run_group(f, 1, 2, 1, 4, SMG_GROUP_MAX, score[0], &tokens, got);
        kf_close(f, got, most, 4, 0, 0);
        run_group(f, 1, 2, 1, 4, SMG_GROUP_SUM, score[0], &tokens, got);
        kf_close(f, got, sum, 4, 1e-6, 0);
        run_group(f, 1, 2, 1, 4, SMG_GROUP_SOFTMAX_SUM, none[0], &tokens, got);
        kf_close(f, got, shared, 4, 1e-6, 0);
    }
}

/* Softmax sums to 1 for each query head; modes MAX and SUM of finite scores, added in order, are exact. Scores spread over 400
 * logits, so that exponentials of all sizes are met. */
static void test_group_random(void **state)
{
    static const uint32_t sizes[] = {1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 600};
    static float got[3 * 2 * 600], expected[3 * 2 * 600];
    uint32_t seed = 29;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i], tokens[3] = {n, 0, n / 2 + 1};
        float *score = sf_floats(&seed, (size_t)18 * n);
        for (size_t j = 0; j < (size_t)18 * n; j++)
            score[j] *= i % 2 ? 200 : 3;
        for (int mode = 0; mode < 3; mode++)
            FOR_EACH_BACKEND(f)
            {
                run_group(f, 3, 6, 2, n, (enum smg_group_mode)mode, score, tokens, kf_reference(f) ? expected : got);
                if (!kf_reference(f) && mode == SMG_GROUP_SOFTMAX_SUM)
                    kf_close(f, got, expected, (size_t)6 * n, 1e-7, 4e-6);
                else if (!kf_reference(f))
                    kf_close(f, got, expected, (size_t)6 * n, 0, 0);
                if (mode == SMG_GROUP_SOFTMAX_SUM) {
                    double sum = 0;
                    for (uint32_t j = 0; j < n; j++)
                        sum += kf_reference(f) ? expected[j] : got[j];
                    assert_true(fabs(sum - 3) < 1e-5);
                }
            }
        free(score);
    }
}

/* ---- Sizes that cannot be ---- */

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_scores_args s = {.requests = 1, .q_heads = 5, .kv_heads = 2, .width = 8, .max_tokens = 1};
        struct smg_threshold_args t = {.requests = 1, .q_heads = 1, .max_tokens = 1, .alpha = -1};
        struct smg_group_scores_args g = {.requests = 1, .q_heads = 2, .kv_heads = 1, .max_tokens = 1};
        sf_refused(f, smg_scores(f->k, &s, NULL), "scores: 5 query heads");
        s.kv_heads = 5;
        s.width = 1025;
        sf_refused(f, smg_scores(f->k, &s, NULL), "scores: width 1025");
        s.width = 8;
        s.requests = s.max_tokens = UINT32_MAX;
        sf_refused(f, smg_scores(f->k, &s, NULL), "scores: the product");
        s.type = (enum smg_dtype)(-1);
        sf_refused(f, smg_scores(f->k, &s, NULL), "no type");
        sf_refused(f, smg_threshold(f->k, &t, NULL), "threshold: alpha");
        t.alpha = NAN;
        sf_refused(f, smg_threshold(f->k, &t, NULL), "threshold: alpha");
        t.alpha = 1;
        t.q_heads = 0;
        sf_refused(f, smg_threshold(f->k, &t, NULL), "threshold: q_heads");
        g.mode = (enum smg_group_mode)3;
        sf_refused(f, smg_group_scores(f->k, &g, NULL), "group_scores: 3 is no mode");
        g.mode = SMG_GROUP_MAX;
        g.kv_heads = 3;
        sf_refused(f, smg_group_scores(f->k, &g, NULL), "group_scores: 2 query heads");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),           cmocka_unit_test(test_threshold_golden), cmocka_unit_test(test_threshold_edges),
        cmocka_unit_test(test_threshold_random), cmocka_unit_test(test_group_known),      cmocka_unit_test(test_group_random),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
