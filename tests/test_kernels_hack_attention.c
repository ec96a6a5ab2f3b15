/* Attention on HACK codes, on every backend.
 *
 * Tolerances. exact: against fp64 over the stored elements; sums of up to 1100 products of fp32 in [-1, 1], and an exponential:
 * 2e-5 of outputs at most 1. Not exact: q and P have codes of 8 bits; who computes P with another last bit may round one of them
 * the other way, which moves an output by a step of P, at most (greatest P) / 255 times a code's worth of V, so by less than
 * 1/255 of a range of 2 where one token has all the weight; 3e-3. Against exact attention the sum of all these errors: 2e-2. */
#include "tests/hack_fixture.h"

static struct smg_hack_shape shape(enum smg_hack_layout_kind layout, uint32_t tokens, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t group, uint32_t bits, uint32_t sinks, enum smg_dtype type)
{
    return (struct smg_hack_shape){layout, tokens, kv_heads, head_dim, group, bits, layout == SMG_HACK_V1 ? 0 : sinks, type};
}

enum { MOST_OUT = 12 * 256 };

/* Both ways of attention on every backend, against fp64 and the reference. */
static void check(const struct smg_hack_shape *s, uint32_t heads, float scale, uint32_t seed)
{
    const uint32_t q_heads = heads * s->kv_heads, d = s->head_dim;
    struct hack_case c = hf_open(s, &seed);
    void *q = kf_elements(&seed, (size_t)q_heads * d, s->type);
    static float expected[MOST_OUT], out[MOST_OUT], first[MOST_OUT];
    float lse[64], expected_lse[64], first_lse[64];

    assert_true(q_heads * d <= MOST_OUT && q_heads <= 64);
    FOR_EACH_BACKEND(f)
    {
        const void *cache = hf_quantize(f, &c, 0, 0);
        for (uint32_t i = 0; kf_reference(f) && i < q_heads; i++) {
            double row[256], sum[256];
            for (uint32_t j = 0; j < d; j++)
                row[j] = smg_load(q, (uint64_t)i * d + j, s->type);
            expected_lse[i] = (float)hf_expected(&c, 0, i / heads, row, scale, sum);
            for (uint32_t j = 0; j < d; j++)
                expected[i * d + j] = (float)sum[j];
        }
        hf_attention(f, &c, cache, q_heads, q, scale, 1, out, lse);
        kf_close(f, out, expected, (size_t)q_heads * d, 2e-5, 0);
        kf_close(f, lse, expected_lse, q_heads, 2e-5, 1e-6);
        hf_attention(f, &c, cache, q_heads, q, scale, 0, out, lse);
        kf_close(f, out, expected, (size_t)q_heads * d, 2e-2, 0);
        kf_close(f, lse, expected_lse, q_heads, 2e-2, 0);
        if (kf_reference(f)) {
            memcpy(first, out, sizeof first);
            memcpy(first_lse, lse, sizeof first_lse);
        }
        kf_close(f, out, first, (size_t)q_heads * d, 3e-3, 0);
        kf_close(f, lse, first_lse, q_heads, 1e-4, 0);
    }
    free(q);
    hf_close(&c);
}

/* Every number of tokens around tiles, in both layouts, for each number of bits. */
static void test_lengths(void **state)
{
    static const uint32_t tokens[] = {0, 1, 2, 3, 4, 5, 15, 16, 17, 19, 20, 21, 31, 32, 33, 35, 36, 37, 53};

    (void)state;
    for (uint32_t i = 0; i < 2 * sizeof tokens / sizeof tokens[0]; i += HF_STRIDE) {
        const struct smg_hack_shape s =
            shape((enum smg_hack_layout_kind)(i % 2), tokens[i / 2], 1 + i % 3 % 2, 32, 16, 2u << i % 3, 4, SMG_F32);
        check(&s, 1 + i % 2, 0.5f, 100 + i);
    }
}

/* Dimensions and groups with whole and odd vectors, all types, several query heads. */
static void test_dims(void **state)
{
    static const struct {
        uint32_t head_dim, group, tokens;
    } dims[] = {{128, 64, 133},  {128, 32, 70}, {128, 128, 261}, {96, 32, 67}, {64, 64, 130},
                {256, 128, 140}, {40, 8, 29},   {12, 4, 19},     {24, 12, 31}};

    (void)state;
    for (uint32_t i = 0; i < 6 * sizeof dims / sizeof dims[0]; i += HF_STRIDE) {
        const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)(i % 2), dims[i / 6].tokens, 1, dims[i / 6].head_dim,
                                              dims[i / 6].group, 2u << i % 3, i % 6 < 3 ? 4 : 1, (enum smg_dtype)(i % 3));
        check(&s, 1 + i % 3, 2 / sqrtf((float)dims[i / 6].head_dim), 500 + i);
    }
}

/* Longer than what one thread takes at a time, and sinks longer than a tile. */
static void test_long(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++) {
        const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 1101, 1, 16, 16, 2, 37, SMG_BF16);
        check(&s, 2, 1, 900 + (uint32_t)l);
    }
}

/* Scores far apart: the softmax is carried over tiles whose greatest logits rise and fall by hundreds. */
static void test_steep(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++) {
        const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 101, 1, 16, 8, 4, 4, SMG_F32);
        uint32_t seed = 11;
        struct hack_case c = hf_open(&s, &seed);
        float q[16], out[16], lse, expected[16];
        double row[16], sum[16], total;
        for (int i = 0; i < 16; i++)
            row[i] = q[i] = 200 * kf_uniform(&seed);
        FOR_EACH_BACKEND(f)
        {
            const void *cache = hf_quantize(f, &c, 0, 0);
            total = hf_expected(&c, 0, 0, row, 1, sum);
            for (int i = 0; i < 16; i++)
                expected[i] = (float)sum[i];
            hf_attention(f, &c, cache, 1, q, 1, 1, out, &lse);
            assert_true(fabs(lse - total) < 1e-3); /* of about 600: 2e-6 */
            kf_close(f, out, expected, 16, 1e-3, 0);
        }
        hf_close(&c);
    }
}

/* Sums as large as they get: all elements 1, but one of each group, along channels or tokens, -1; so codes are the top one, but
 * one, and those of q too, and with a scale below 0 those of P. Two values need no rounding: this is exact, but for the fp32 of
 * sums that reach 256. */
static void test_full_codes(void **state)
{
    static const uint32_t dim[] = {256, 128, 128, 96, 64, 48}, group[] = {256, 128, 64, 32, 64, 16};

    (void)state;
    for (uint32_t i = 0; i < 6 * 6; i += HF_STRIDE) {
        const uint32_t d = dim[i / 6], g = group[i / 6];
        const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)(i % 2), 2 * g, 1, d, g, 2u << i % 3, 0, SMG_F32);
        uint32_t seed = 1;
        struct hack_case c = hf_open(&s, &seed);
        static float q[256], out[256], expected[256];
        double row[256], sum[256], total;
        float lse;
        for (uint32_t t = 0; t < s.tokens; t++)
            for (uint32_t j = 0; j < d; j++)
                ((float *)c.k)[t * d + j] = ((float *)c.v)[t * d + j] = (t + j) % g ? 1 : -1;
        for (uint32_t j = 0; j < d; j++)
            row[j] = q[j] = j % g ? 1 : -1;
        FOR_EACH_BACKEND(f)
        {
            const void *cache = hf_quantize(f, &c, 0, 0);
            total = hf_expected(&c, 0, 0, row, -0.25, sum);
            for (uint32_t j = 0; j < d; j++)
                expected[j] = (float)sum[j];
            hf_attention(f, &c, cache, 1, q, -0.25f, 0, out, &lse);
            assert_float_equal(lse, total, 2e-4);
            kf_close(f, out, expected, d, 2e-4, 0);
        }
        hf_close(&c);
    }
}

#ifndef SMG_KERNEL_TEST_CUDA_ONLY
/* Results do not depend on threads. */
static void test_threads(void **state)
{
    static const char *const isa[] = {"base", NULL};

    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)(i % 2), 2300, 2, 32, 16, 2, 4, SMG_F16);
        float first[4 * 32], first_lse[4];
        for (uint32_t threads = 1; threads <= 3; threads++) {
            const struct smg_kernels_options options = {threads, 0, isa[i / 2 % 2]};
            struct kernel_fixture value = {0}, *f = &value;
            struct smg_diag diag;
            uint32_t seed = 77;
            struct hack_case c = hf_open(&s, &seed);
            void *q = kf_elements(&seed, (size_t)4 * 32, s.type);
            float out[4 * 32], lse[4];
            assert_int_equal(smg_kernels_open("cpu", &options, &f->k, &diag), SMG_OK);
            hf_attention(f, &c, hf_quantize(f, &c, 0, 0), 4, q, 0.3f, i / 4, out, lse);
            if (threads == 1) {
                memcpy(first, out, sizeof first);
                memcpy(first_lse, lse, sizeof first_lse);
            }
            kf_same(f, out, first, sizeof first);
            kf_same(f, lse, first_lse, sizeof first_lse);
            kf_free_all(f);
            smg_kernels_close(f->k);
            free(q);
            hf_close(&c);
        }
    }
}
#endif

/* lse may be NULL. */
static void test_no_lse(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        const struct smg_hack_shape s = shape(SMG_HACK_V1, 9, 1, 8, 8, 2, 0, SMG_F32);
        uint32_t seed = 2;
        struct hack_case c = hf_open(&s, &seed);
        float q[8] = {1}, with[8], lse, out[8];
        void *cache = hf_quantize(f, &c, 0, 0);
        struct smg_hack_attention_args a = {.shape = s, .q_heads = 1, .q = kf_in(f, q, sizeof q), .cache = cache, .scale = 1};
        hf_attention(f, &c, cache, 1, q, 1, 0, with, &lse);
        a.out = kf_out(f, sizeof out);
        kf_ok(f, smg_hack_attention(f->k, &a, NULL));
        kf_get(f, out, a.out, sizeof out);
        kf_same(f, out, with, sizeof out);
        hf_close(&c);
    }
}

/* A NaN of V stays where its group is: a channel of V1, the channel group of ATC26. */
static void test_broken_value(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        FOR_EACH_BACKEND(f)
        {
            const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)(i % 2), 21, 1, 16, 8, 2, 4, SMG_F32);
            uint32_t seed = 4;
            struct hack_case c = hf_open(&s, &seed);
            float q[16], out[16], lse;
            for (int j = 0; j < 16; j++)
                q[j] = kf_uniform(&seed);
            ((float *)c.v)[9 * 16 + 10] = NAN;
            hf_attention(f, &c, hf_quantize(f, &c, 0, 0), 1, q, 1, i / 2, out, &lse);
            assert_false(isnan(lse));
            for (int j = 0; j < 16; j++)
                assert_int_equal(!!isnan(out[j]), i % 2 ? j >= 8 : j == 10);
            hf_close(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_dims),         cmocka_unit_test(test_long),
        cmocka_unit_test(test_steep),   cmocka_unit_test(test_full_codes),
        cmocka_unit_test(test_no_lse),  cmocka_unit_test(test_broken_value),
#ifndef SMG_KERNEL_TEST_CUDA_ONLY
        cmocka_unit_test(test_threads),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
