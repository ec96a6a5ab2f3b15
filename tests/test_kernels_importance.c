/* Block importance on every backend: golden vector, edges, and random cases. Counts are exact. Means are the same fp32
 * operations in the same order everywhere, and are held against fp64: each of R terms and each sum rounds once or a few times. */
#include "core/grid.h"
#include "kernels/blocks.h"
#include "tests/kernel_fixture.h"
#include "tests/kernel_grid.h"
#include "tests/world_fixture.h"

/* ---- From a token to its block ---- */

static void every_token(const uint32_t *start, uint32_t tokens, uint32_t blocks)
{
    uint64_t scale = smg_block_scale(tokens, blocks);

    for (uint32_t m = 0; m < blocks; m++)
        for (uint32_t t = start[m]; t < start[m + 1]; t++)
            if (smg_block_of(start, blocks, scale, t) != m)
                fail_msg("%u tokens, %u blocks: token %u is in block %u, not %u", tokens, blocks, t, m,
                         smg_block_of(start, blocks, scale, t));
}

static void test_block_of(void **state)
{
    static const uint32_t tokens[] = {1, 2, 31, 33, 1000, 4097, 70001}, blocks[] = {1, 2, 3, 32, 999, 1000, 1001};
    uint32_t start[1002], seed = 11;

    (void)state;
    for (size_t n = 0; n < sizeof tokens / sizeof tokens[0]; n++) {
        for (size_t m = 0; m < sizeof blocks / sizeof blocks[0]; m++) {
            kg_even(tokens[n], blocks[m], 0, start);
            every_token(start, tokens[n], blocks[m]);
            kg_even(tokens[n], blocks[m], tokens[n] / 3, start);
            every_token(start, tokens[n], blocks[m]);
            kg_uneven(&seed, tokens[n], blocks[m], tokens[n] / 5, start);
            every_token(start, tokens[n], blocks[m]);
        }
    }
}

/* Sizes at which token * scale nearly overflows. */
static void test_block_of_large(void **state)
{
    static const uint32_t start[] = {0, INT32_MAX / 2, INT32_MAX},
                          near[] = {0, 1, INT32_MAX / 2 - 1, INT32_MAX / 2, INT32_MAX / 2 + 1, INT32_MAX - 1};

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(smg_block_of(start, 2, smg_block_scale(INT32_MAX, 2), near[i]), near[i] >= start[1]);
    assert_int_equal(smg_block_of(start + 1, 1, smg_block_scale(INT32_MAX, 1), INT32_MAX - 1), 0);
}

/* The grid of the rest of the program. */
static void test_block_of_core(void **state)
{
    struct smg_model model = fixture_qwen3_14b();
    struct smg_grid g;
    uint32_t start[1001], hi;

    (void)state;
    smg_grid_init(&g, &model, 7013, 1000, 1);
    for (uint32_t m = 0; m < g.blocks; m++)
        smg_grid_block(&g, 3, m, &start[m], &hi);
    start[g.blocks] = g.tokens;
    for (uint32_t t = 0; t < g.tokens; t++)
        assert_int_equal(smg_block_of(start, g.blocks, smg_block_scale(g.tokens, g.blocks), t), smg_grid_block_of(&g, t));
}

/* ---- importance ---- */

/* Runs it on top of count[], and compares with the sums of a plain loop. */
static void check_count(const struct smg_importance_args *host)
{
    const size_t ids = (size_t)host->rows * host->k * sizeof *host->index, bytes = host->blocks * sizeof *host->count;
    uint32_t *expected = malloc(bytes + 1), *got = malloc(bytes + 1);

    assert_true(expected && got);
    memcpy(expected, host->count, bytes);
    for (size_t i = 0; i < ids / sizeof *host->index; i++) {
        int64_t id = host->index[i];
        if (id >= host->start[0] && id < host->tokens)
            expected[kg_block_of(host->start, host->blocks, (uint32_t)id)]++;
    }
    FOR_EACH_BACKEND(f)
    {
        struct smg_importance_args a = *host;
        a.index = kf_in(f, host->index, ids);
        a.start = kf_in(f, host->start, (host->blocks + 1) * sizeof *host->start);
        a.count = kf_in(f, host->count, bytes);
        kf_ok(f, smg_importance(f->k, &a, NULL));
        kf_get(f, got, a.count, bytes);
        kf_same(f, got, expected, bytes);
    }
    free(expected);
    free(got);
}

/* Ids at both ends of what counts, and counters that wrap. */
static void test_count_edges(void **state)
{
    static const int32_t index[2][6] = {{-1, INT32_MIN, 2, 3, 9, 10}, {INT32_MAX, 3, 3, 5, 6, 8}};
    static const uint32_t start[] = {3, 3, 6, 6, 10};
    uint32_t count[4] = {7, UINT32_MAX - 1, 5, 0};
    struct smg_importance_args a = {
        .rows = 2, .k = 6, .index = index[0], .tokens = 10, .blocks = 4, .start = start, .count = count};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        static const uint32_t expected[4] = {7, 2, 5, 3}; /* 3, 3, 3, 5 and 9, 6, 8 */
        struct smg_importance_args b = a;
        uint32_t got[4];
        b.index = kf_in(f, index, sizeof index);
        b.start = kf_in(f, start, sizeof start);
        b.count = kf_in(f, count, sizeof count);
        kf_ok(f, smg_importance(f->k, &b, NULL));
        kf_get(f, got, b.count, sizeof got);
        kf_same(f, got, expected, sizeof got);
    }
    check_count(&a);
}

static void random_count(uint32_t *seed, uint32_t rows, uint32_t k, uint32_t tokens, uint32_t blocks, int even)
{
    int32_t *index = malloc((size_t)rows * k * sizeof *index + 1);
    uint32_t *start = malloc((blocks + 1) * sizeof *start), *count = calloc(blocks + 1, sizeof *count), first = tokens / 7;

    assert_true(index && start && count);
    for (size_t i = 0; i < (size_t)rows * k; i++)
        index[i] = (int32_t)(kf_random(seed) % (tokens + 3)) - 2;
    if (even)
        kg_even(tokens, blocks, first, start);
    else
        kg_uneven(seed, tokens, blocks, first, start);
    check_count(&(struct smg_importance_args){rows, k, index, tokens, blocks, start, count});
    free(index);
    free(start);
    free(count);
}

static void test_count_random(void **state)
{
    static const uint32_t sizes[][4] = {/* rows, k, tokens, blocks */
                                        {1, 1, 1, 1},      {1, 31, 64, 33},      {3, 32, 100, 7},
                                        {2, 33, 100, 100}, {1, 255, 500, 31},    {2, 128, 40, 90},
                                        {1, 257, 300, 2},  {8, 300, 4000, 1000}, {2, 16385, 900, 33}};
    uint32_t seed = 5;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int even = 0; even < 2; even++)
            random_count(&seed, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], even);
}

static void test_count_sizes(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_importance_args a = {.rows = 1, .k = 1, .tokens = 1, .blocks = 1}, b;
        for (int i = 0; i < 4; i++) { /* a size of 0: nothing is read or written */
            b = a;
            *(i == 0 ? &b.rows : i == 1 ? &b.k : i == 2 ? &b.tokens : &b.blocks) = 0;
            kf_ok(f, smg_importance(f->k, &b, NULL));
        }
        a.tokens = UINT32_C(1) << 31;
        assert_int_equal(smg_importance(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_non_null(strstr(smg_kernels_diag(f->k), "importance: 2147483648 tokens"));
    }
}

/* ---- importance_mean ---- */

/* Eq. 1: L=4, M=3, N=10, H=1; how often each token was selected, one step; blocks of 3, 3, 4 tokens. Counted, then averaged. */
static void test_mean_golden(void **state)
{
    static const uint32_t selected[2][10] = {{3, 1, 0, 0, 2, 5, 1, 0, 4, 8}, {0, 0, 0, 2, 2, 2, 9, 9, 9, 9}},
                          tokens[3] = {3, 3, 4}, start[4] = {0, 3, 6, 10}, zero[3] = {0}, one = 1;
    static const float expected[2][3] = {{4 / 3.0f, 7 / 3.0f, 13 / 4.0f}, {0, 2, 9}};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        for (int l = 0; l < 2; l++) {
            int32_t index[64];
            uint32_t n = 0;
            float *importance = kf_out(f, sizeof expected[l]), got[3];
            for (uint32_t t = 0; t < 10; t++)
                for (uint32_t i = 0; i < selected[l][t]; i++)
                    index[n++] = (int32_t)t;
            struct smg_importance_args c = {.rows = 1,
                                            .k = n,
                                            .index = kf_in(f, index, n * sizeof index[0]),
                                            .tokens = 10,
                                            .blocks = 3,
                                            .start = kf_in(f, start, sizeof start),
                                            .count = kf_in(f, zero, sizeof zero)};
            struct smg_importance_mean_args a = {.requests = 1,
                                                 .blocks = 3,
                                                 .heads = 1,
                                                 .count = c.count,
                                                 .block_tokens = kf_in(f, tokens, sizeof tokens),
                                                 .steps = kf_in(f, &one, sizeof one),
                                                 .importance = importance};
            kf_ok(f, smg_importance(f->k, &c, NULL));
            kf_ok(f, smg_importance_mean(f->k, &a, NULL));
            kf_get(f, got, importance, sizeof got);
            kf_same(f, got, expected[l], sizeof got);
        }
    }
}

/* Requests of other lengths: one with an empty block, one that made no step; a block that no request has. */
static void test_mean_left_out(void **state)
{
    static const uint32_t count[3][3] = {{6, 9, 9}, {2, 5, 0}, {99, 99, 99}}, tokens[3][3] = {{3, 0, 0}, {1, 5, 0}, {4, 4, 4}},
                          steps[3] = {2, 1, 0};
    static const float expected[3] = {(6 / 12.0f + 2 / 2.0f) / 2, 5 / 10.0f, 0};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_importance_mean_args a = {.requests = 3,
                                             .blocks = 3,
                                             .heads = 2,
                                             .count = kf_in(f, count, sizeof count),
                                             .block_tokens = kf_in(f, tokens, sizeof tokens),
                                             .steps = kf_in(f, steps, sizeof steps),
                                             .importance = kf_out(f, sizeof expected)};
        float got[3];
        kf_ok(f, smg_importance_mean(f->k, &a, NULL));
        kf_get(f, got, a.importance, sizeof got);
        kf_same(f, got, expected, sizeof got);
    }
}

static void random_mean(uint32_t *seed, uint32_t requests, uint32_t blocks)
{
    const size_t n = (size_t)requests * blocks;
    uint32_t *count = malloc(n * 4 + 1), *tokens = malloc(n * 4 + 1), *steps = malloc(requests * 4 + 1);
    float *expected = malloc(blocks * 4), *first = malloc(blocks * 4), *got = malloc(blocks * 4);

    assert_true(count && tokens && steps && expected && first && got);
    for (uint32_t r = 0; r < requests; r++)
        steps[r] = kf_random(seed) % 5 * 100;
    for (size_t i = 0; i < n; i++) {
        count[i] = kf_random(seed) >> kf_random(seed) % 32;
        tokens[i] = kf_random(seed) % 4 * 7;
    }
    for (uint32_t m = 0; m < blocks; m++) {
        double sum = 0, of = 0;
        for (uint32_t r = 0; r < requests; r++)
            if (steps[r] && tokens[r * blocks + m]) {
                sum += count[r * blocks + m] / ((double)steps[r] * 8 * tokens[r * blocks + m]);
                of++;
            }
        expected[m] = of ? (float)(sum / of) : 0;
    }
    FOR_EACH_BACKEND(f)
    {
        struct smg_importance_mean_args a = {.requests = requests,
                                             .blocks = blocks,
                                             .heads = 8,
                                             .count = kf_in(f, count, n * 4),
                                             .block_tokens = kf_in(f, tokens, n * 4),
                                             .steps = kf_in(f, steps, requests * 4),
                                             .importance = kf_out(f, blocks * 4)};
        kf_ok(f, smg_importance_mean(f->k, &a, NULL));
        kf_get(f, got, a.importance, blocks * 4);
        /* All terms are positive: at most requests + 4 roundings of 2^-24 each. */
        kf_close(f, got, expected, blocks, 0, (requests + 4) * 0x1p-24);
        if (kf_reference(f))
            memcpy(first, got, blocks * 4);
        kf_same(f, got, first, blocks * 4);
    }
    free(count);
    free(tokens);
    free(steps);
    free(expected);
    free(first);
    free(got);
}

static void test_mean_random(void **state)
{
    static const uint32_t requests[] = {0, 1, 2, 33}, blocks[] = {1, 31, 32, 33, 127, 128, 129, 5000};
    uint32_t seed = 9;

    (void)state;
    for (int r = 0; r < 4; r++)
        for (int m = 0; m < (r ? 7 : 8); m++)
            random_mean(&seed, requests[r], blocks[m]);
}

static void test_mean_sizes(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        kf_ok(f, smg_importance_mean(f->k, &(struct smg_importance_mean_args){.requests = 1, .heads = 1}, NULL));
        assert_int_equal(smg_importance_mean(f->k, &(struct smg_importance_mean_args){.blocks = 1}, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "importance_mean: heads is 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_of),    cmocka_unit_test(test_block_of_large), cmocka_unit_test(test_block_of_core),
        cmocka_unit_test(test_count_edges), cmocka_unit_test(test_count_random),   cmocka_unit_test(test_count_sizes),
        cmocka_unit_test(test_mean_golden), cmocka_unit_test(test_mean_left_out),  cmocka_unit_test(test_mean_random),
        cmocka_unit_test(test_mean_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
