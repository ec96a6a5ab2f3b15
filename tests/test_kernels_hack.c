/* HACK on every backend: sizes, golden vector, the stored bytes, and codes back. Exact throughout: caches are compared byte by
 * byte, elements bit by bit. Attention is in test_kernels_hack_attention.c. */
#include "core/hack.h"
#include "kernels/hack.h"
#include "tests/hack_fixture.h"

/* layout, tokens, kv_heads, head_dim, group, bits, sinks, type */
static struct smg_hack_shape shape(enum smg_hack_layout_kind layout, uint32_t tokens, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t group, uint32_t bits, uint32_t sinks, enum smg_dtype type)
{
    return (struct smg_hack_shape){layout, tokens, kv_heads, head_dim, group, bits, layout == SMG_HACK_V1 ? 0 : sinks, type};
}

/* ---- Sizes ---- */

/* Bytes of a coded token and head: of 1024 blocks' worth of tokens, all coded, parts without gaps. */
static double coded_bytes(enum smg_hack_layout_kind layout, uint32_t group, uint32_t bits, int sums)
{
    const struct smg_hack_shape s = shape(layout, 1024 * group, 8, 128, group, bits, 0, SMG_BF16);
    struct smg_hack_size z;
    uint64_t bytes;

    assert_int_equal(smg_hack_size(&s, &z), SMG_OK);
    bytes = z.bytes - (sums ? 0 : (z.k.sums + z.v.sums) * z.sum_bytes);
    return (double)bytes / (s.tokens * 8.0);
}

static void test_known_sizes(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++) {
        enum smg_hack_layout_kind layout = (enum smg_hack_layout_kind)l;
        assert_float_equal(coded_bytes(layout, 64, 2, 1), 84, 0);
        assert_float_equal(coded_bytes(layout, 64, 2, 0), 80, 0);
        assert_float_equal(coded_bytes(layout, 32, 2, 1), 104, 0);
        assert_float_equal(coded_bytes(layout, 128, 2, 1), 76, 0); /* sums to 384: 2 bytes each */
        assert_float_equal(coded_bytes(layout, 64, 4, 1), 128 + 16 + 8, 0);
        assert_float_equal(coded_bytes(layout, 64, 8, 1), 256 + 16 + 8, 0);
    }
}

/* 4096 tokens, 4 sinks, a tail of 60: 17.7% of the dense cache. */
static void test_stored_share(void **state)
{
    const struct smg_hack_shape s = shape(SMG_HACK_ATC26, 4096, 8, 128, 64, 2, 4, SMG_BF16);
    struct smg_hack_size z;

    (void)state;
    assert_int_equal(smg_hack_size(&s, &z), SMG_OK);
    assert_int_equal(z.k.first, 4);
    assert_int_equal(z.k.coded, 4032);
    assert_int_equal(z.k.dense_tail, 60);
    assert_float_equal((double)z.bytes / (4096.0 * 8 * 512), 0.177, 0.0005);
}

/* The sizes that the simulation charges, for any number of tokens; up to 15 bytes before each of 12 parts. */
static void test_same_as_core(void **state)
{
    static const uint32_t tokens[] = {0, 1, 3, 4, 5, 63, 64, 67, 68, 4096, 4100, 42000}, group[] = {32, 64, 128};

    (void)state;
    for (int l = 0; l < 2; l++)
        for (int g = 0; g < 3; g++)
            for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
                const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, tokens[i], 8, 128, group[g], 2, 4, SMG_BF16);
                struct smg_world w = {0};
                struct smg_hack_layout core;
                struct smg_hack_size z;
                uint64_t bytes;
                w.model.head_dim = 128;
                w.model.value_bytes = 2;
                w.scenario.hack.bits = 2;
                w.scenario.hack.group = group[g];
                snprintf(w.scenario.hack.layout, sizeof w.scenario.hack.layout, "%s", l ? "atc26" : "v1");
                smg_hack_layout(&w, tokens[i], &core);
                assert_int_equal(smg_hack_size(&s, &z), SMG_OK);
                assert_int_equal(z.v.first, core.sink_tokens);
                assert_int_equal(z.v.dense_tail, core.tail_tokens);
                bytes = 8ull * ((uint64_t)tokens[i] * core.coded_bytes + core.sink_tokens * core.sink_extra_bytes +
                                core.tail_tokens * core.tail_extra_bytes);
                assert_in_range(z.bytes, bytes, bytes + 12 * 15);
            }
}

static void test_impossible_shapes(void **state)
{
    const struct smg_hack_shape good = shape(SMG_HACK_ATC26, 10, 2, 64, 32, 2, 4, SMG_F16);
    struct smg_hack_shape bad[10];
    struct smg_hack_size z;

    (void)state;
    for (int i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].bits = 3;
    bad[1].bits = 0;
    bad[2].group = 0;
    bad[3].group = 48; /* does not divide 64 */
    bad[4].group = 2;
    bad[5].head_dim = 0;
    bad[6].head_dim = bad[6].group = 512;
    bad[7].layout = SMG_HACK_V1; /* with sinks */
    bad[8].type = (enum smg_dtype)3;
    bad[9].tokens = bad[9].kv_heads = UINT32_MAX;
    assert_int_equal(smg_hack_size(&good, &z), SMG_OK);
    FOR_EACH_BACKEND(f)
    {
        struct smg_hack_attention_args a = {.shape = good, .q_heads = 3};
        for (int i = 0; i < 10; i++) {
            struct smg_hack_quantize_args q = {.shape = bad[i]};
            struct smg_hack_dequantize_args d = {.shape = bad[i]};
            struct smg_hack_attention_args t = {.shape = bad[i], .q_heads = 2};
            assert_int_equal(smg_hack_size(&bad[i], &z), SMG_ERR_INVALID);
            assert_int_equal(smg_hack_quantize(f->k, &q, NULL), SMG_ERR_INVALID);
            assert_int_equal(smg_hack_dequantize(f->k, &d, NULL), SMG_ERR_INVALID);
            assert_int_equal(smg_hack_attention(f->k, &t, NULL), SMG_ERR_INVALID);
        }
        assert_int_equal(smg_hack_attention(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "hack_attention: 3 query heads, no multiple of 2 KV heads");
    }
}

/* ---- Golden vector: group of 4, to nearest ---- */

static void test_golden(void **state)
{
    static const float k[4] = {-1, 0.2f, 2, 0.9f}, v[4] = {5, 6, 7, 8}, q[4] = {0.3f, -0.7f, 1.1f, 0.05f};
    static const uint8_t k_codes[4] = {0, 1, 3, 2}, q_codes[4] = {142, 0, 255, 106};
    const struct smg_hack_shape s = shape(SMG_HACK_V1, 1, 1, 4, 4, 2, 0, SMG_F32);
    struct smg_hack_coded a;
    uint32_t seed = 1, dot = 0;

    (void)state;
    smg_hack_code_group(q, 4, &a);
    assert_memory_equal(a.code, q_codes, 4);
    assert_int_equal(a.sum, 503);
    assert_float_equal(a.min, -0.7, 1e-7);
    assert_float_equal(a.scale, 1.8 / 255, 1e-9);
    FOR_EACH_BACKEND(f)
    {
        struct hack_case c = hf_open(&s, &seed);
        float out[4], lse, min, scale;
        void *cache;
        memcpy(c.k, k, sizeof k);
        memcpy(c.v, v, sizeof v);
        cache = hf_quantize(f, &c, 0, 0);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(hf_code(&c, 0, 0, 0, i), k_codes[i]);
        hf_min_scale(&c, 0, 0, 0, 0, &min, &scale);
        assert_float_equal(min, -1, 0);
        assert_float_equal(scale, 1, 0);
        assert_int_equal(hf_sum(&c, 0, 0, 0, 0), 6);
        dot = 0;
        for (uint32_t i = 0; i < 4; i++)
            dot += a.code[i] * hf_code(&c, 0, 0, 0, i);
        assert_int_equal(dot, 977);
        /* One token: the log-sum-exp is its logit. fp32 holds 1e-7 of it. */
        hf_attention(f, &c, cache, 1, q, 1, 0, out, &lse);
        assert_float_equal(lse, 1.945882352941177, 1e-6);
        kf_same(f, out, v, sizeof v); /* V is an unfinished group: dense */
        hf_attention(f, &c, cache, 1, q, 1, 1, out, &lse);
        assert_float_equal(lse, 1.95, 1e-6); /* q as it is, k back from its codes: -1, 0, 2, 1 */
        hf_close(&c);
    }
}

/* ---- Bytes ---- */

static const struct {
    uint32_t head_dim, group;
} dims[] = {{128, 64}, {128, 32}, {128, 128}, {96, 32}, {64, 64}, {40, 8}, {12, 4}, {24, 12}};

/* Shape number i of a family that meets each dimension with each kind of length, type, number of bits and layout. */
static struct smg_hack_shape some_shape(uint32_t i)
{
    const uint32_t group = dims[i % 8].group, first = 3;
    const uint32_t tokens[] = {1, 2, 3, group - 1, group, group + 1, group + 2, group + 3, 2 * group, 31, 32, 33, 3 * group + 5};

    return shape((enum smg_hack_layout_kind)(i / 8 % 2), tokens[i % 13], 1 + i % 3, dims[i % 8].head_dim, group, 2u << i % 3,
                 i % 5 ? first : 0, (enum smg_dtype)(i % 7 % 3));
}

/* What is stored must follow from what was given, by the rules of the header. */
static void check_cache(struct kernel_fixture *f, const struct hack_case *c, int stochastic)
{
    const float top = (float)((1u << c->s.bits) - 1);

    for (int v = 0; v < 2; v++)
        for (uint32_t t = 0; t < c->s.tokens; t++)
            for (uint32_t h = 0; h < c->s.kv_heads; h++)
                for (uint32_t i = 0; i < c->s.head_dim; i++) {
                    double error = fabs(hf_value(c, v, t, h, i) - hf_given(c, v, t, h, i)), most;
                    float min, scale;
                    if (!hf_is_coded(c, v, t)) {
                        assert_float_equal(error, 0, 0);
                        continue;
                    }
                    hf_min_scale(c, v, t, h, i, &min, &scale);
                    most = scale * (stochastic ? 1.0 : 0.5) + ldexp(fabsf(min) + top * scale, -9) + 1e-7;
                    if (error > most)
                        fail_msg("%s: %c of token %u, head %u, channel %u is off by %g, more than %g", smg_kernels_where(f->k),
                                 "KV"[v], t, h, i, error, most);
                }
}

static void check_sums(const struct hack_case *c)
{
    for (int v = 0; v < 2; v++) {
        const struct smg_hack_part *p = hf_part(c, v);
        const uint32_t step_t = v ? c->s.group : 1, step_c = v ? 1 : c->s.group;
        for (uint32_t t = 0; t < p->coded; t += step_t)
            for (uint32_t h = 0; h < c->s.kv_heads; h++)
                for (uint32_t i = 0; i < c->s.head_dim; i += step_c) {
                    uint32_t sum = 0;
                    for (uint32_t j = 0; j < c->s.group; j++)
                        sum += hf_code(c, v, p->first + t + (v ? j : 0), h, i + (v ? 0 : j));
                    assert_int_equal(hf_sum(c, v, p->first + t, h, i), sum);
                }
    }
}

static void test_caches(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 104; i += HF_STRIDE) {
        const struct smg_hack_shape s = some_shape(i);
        const int stochastic = i % 4 == 3;
        uint32_t seed = 17 + i;
        struct hack_case c = hf_open(&s, &seed);
        uint8_t *first = malloc(c.z.bytes + 1), *k = malloc(hf_bytes(&s) + 1), *v = malloc(hf_bytes(&s) + 1);
        uint8_t *first_k = malloc(hf_bytes(&s) + 1), *first_v = malloc(hf_bytes(&s) + 1);
        assert_true(first && k && v && first_k && first_v);
        FOR_EACH_BACKEND(f)
        {
            void *cache = hf_quantize(f, &c, stochastic, 1000 + i);
            hf_dequantize(f, &c, cache, k, v);
            if (kf_reference(f)) {
                check_cache(f, &c, stochastic);
                check_sums(&c);
                memcpy(first, c.cache, c.z.bytes);
                memcpy(first_k, k, hf_bytes(&s));
                memcpy(first_v, v, hf_bytes(&s));
                for (size_t e = 0; e < hf_elements(&s); e++) {
                    uint32_t channel = (uint32_t)(e % s.head_dim), row = (uint32_t)(e / s.head_dim);
                    float back = (float)hf_value(&c, 0, row / s.kv_heads, row % s.kv_heads, channel), rounded;
                    uint32_t bits = 0;
                    smg_store(&bits, 0, s.type, back);
                    rounded = smg_load(&bits, 0, s.type);
                    assert_true(smg_load(k, e, s.type) == rounded);
                }
            }
            kf_same(f, c.cache, first, c.z.bytes);
            kf_same(f, k, first_k, hf_bytes(&s));
            kf_same(f, v, first_v, hf_bytes(&s));
        }
        free(first);
        free(k);
        free(v);
        free(first_k);
        free(first_v);
        hf_close(&c);
    }
}

/* Zeros of both signs, denormals, infinities and NaNs among ordinary elements, in whole vectors and odd ones: the same bytes. */
static void test_odd_elements(void **state)
{
    static const float odd[] = {-0.0f, 0, 1e-45f, -3e-39f, INFINITY, -INFINITY, NAN, 3.4e38f, -3.4e38f, 6e-8f};

    (void)state;
    for (uint32_t i = 0; i < 48; i += HF_STRIDE) {
        const struct smg_hack_shape s = some_shape(i);
        uint32_t seed = 300 + i;
        struct hack_case c = hf_open(&s, &seed);
        uint8_t *first = malloc(c.z.bytes + 1);
        assert_non_null(first);
        /* Some cases with many zeros, some with few broken elements. */
        for (size_t e = 0; e < hf_elements(&s); e++) {
            uint32_t x = kf_random(&seed) % (i % 2 ? 3 : 100);
            if (x < 2)
                smg_store(x ? c.v : c.k, e, s.type, odd[i % 2 ? x : kf_random(&seed) % 10]);
        }
        FOR_EACH_BACKEND(f)
        {
            hf_quantize(f, &c, i % 4 == 3, 7);
            if (kf_reference(f))
                memcpy(first, c.cache, c.z.bytes);
            kf_same(f, c.cache, first, c.z.bytes);
        }
        free(first);
        hf_close(&c);
    }
}

/* No token, no head: nothing is written. */
static void test_nothing(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_hack_quantize_args q = {.shape = shape(SMG_HACK_V1, 0, 2, 64, 32, 2, 0, SMG_F16)};
        struct smg_hack_dequantize_args d = {.shape = shape(SMG_HACK_ATC26, 5, 0, 64, 32, 2, 4, SMG_F16)};
        struct smg_hack_attention_args a = {.shape = d.shape};
        struct smg_hack_size z;
        assert_int_equal(smg_hack_size(&q.shape, &z), SMG_OK);
        assert_int_equal(z.bytes, 0);
        kf_ok(f, smg_hack_quantize(f->k, &q, NULL));
        kf_ok(f, smg_hack_dequantize(f->k, &d, NULL));
        kf_ok(f, smg_hack_attention(f->k, &a, NULL));
    }
}

/* A longer prompt's parts begin with a shorter one's: blocks are not coded again when tokens come. */
static void test_prefix(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++)
        FOR_EACH_BACKEND(f)
        {
            const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 75, 2, 32, 16, 2, 4, SMG_F16);
            uint32_t seed = 5;
            struct hack_case full = hf_open(&s, &seed), part = full;
            part.s.tokens = 53;
            assert_int_equal(smg_hack_size(&part.s, &part.z), SMG_OK);
            part.cache = malloc(part.z.bytes);
            assert_non_null(part.cache);
            hf_quantize(f, &full, 1, 9);
            hf_quantize(f, &part, 1, 9);
            for (int v = 0; v < 2; v++) {
                const struct smg_hack_part *a = hf_part(&full, v), *b = hf_part(&part, v);
                assert_true(b->coded && b->coded < a->coded);
                kf_same(f, full.cache + a->codes, part.cache + b->codes, (size_t)b->coded * 2 * 8);
                kf_same(f, full.cache + a->scale, part.cache + b->scale, b->groups * 2);
                kf_same(f, full.cache + a->min, part.cache + b->min, b->groups * 2);
                kf_same(f, full.cache + a->sum, part.cache + b->sum, b->sums * part.z.sum_bytes);
            }
            free(part.cache);
            hf_close(&full);
        }
}

/* ---- Groups that are not ordinary; V1's K, a token a group ---- */

static void test_odd_groups(void **state)
{
    static const float x[][4] = {
        {0.5f, 0.5f, 0.5f, 0.5f},                 /* 0: all equal: scale 1 */
        {0.1f, 0.1f, 0.1f, 0.1f},                 /* 1: not a bf16; its min is above it */
        {-0.0f, 0.0f, -0.0f, 0.0f},               /* 2: the min has no sign */
        {3e-39f, 0, 1e-39f, 2e-39f},              /* 3: denormals */
        {1e-45f, 0, 0, 0},                        /* 4: a range below bf16: as if all equal */
        {INFINITY, 0, 1, 2},                      /* 5 */
        {-INFINITY, 0, 1, 2},                     /* 6 */
        {NAN, 0, 1, 2},                           /* 7 */
        {0, 1, 2, NAN},                           /* 8 */
        {3e38f, -3e38f, 0, 1},                    /* 9: a range beyond fp32 */
        {-3.4e38f, -3.4e38f, -3.4e38f, -3.4e38f}, /* 10: a min beyond bf16 */
        {65504, -65504, 1, -1},                   /* 11 */
        {100.2f, 100.2f, 100.2f, 100.2f},         /* 12: its min is 100 */
    };
    enum { N = sizeof x / sizeof x[0] };
    static const uint16_t one = 0x3f80;
    const struct smg_hack_shape s = shape(SMG_HACK_V1, N, 1, 4, 4, 2, 0, SMG_F32);
    uint32_t seed = 3;
    struct hack_case c = hf_open(&s, &seed);
    uint8_t first[1024];

    (void)state;
    memcpy(c.k, x, sizeof x);
    FOR_EACH_BACKEND(f)
    {
        float k[N][4], v[N][4], lse[1], out[4];
        void *cache = hf_quantize(f, &c, 0, 0);
        hf_dequantize(f, &c, cache, k, v);
        for (uint32_t t = 0; t < N; t++) {
            uint16_t scale, min;
            int bad = (t >= 5 && t <= 10);
            memcpy(&scale, c.cache + c.z.k.scale + 2 * t, 2);
            memcpy(&min, c.cache + c.z.k.min + 2 * t, 2);
            if (bad)
                assert_true(scale == 0x7fc0 && min == 0x7fc0 && hf_sum(&c, 0, t, 0, 0) == 0);
            for (int i = 0; i < 4; i++) {
                float most = t == 3 ? 1e-39f : t == 11 ? 65504 / 3.0f : ldexpf(fabsf(x[t][0]), -9) + 2e-45f;
                assert_true(bad ? isnan(k[t][i]) : fabsf(k[t][i] - x[t][i]) <= most);
            }
            if (t < 3 || t == 4)
                assert_true(scale == one);
            if (t == 2)
                assert_int_equal(min, 0);
            if (t == 12)
                assert_true(fabsf(k[t][0] - 100.2f) < 0.001f); /* all have the top code */
        }
        if (kf_reference(f))
            memcpy(first, c.cache, c.z.bytes);
        kf_same(f, c.cache, first, c.z.bytes);
        /* Whoever reads a broken group says so. */
        for (int exact = 0; exact < 2; exact++) {
            hf_attention(f, &c, cache, 1, x[0], 1, exact, out, lse);
            assert_true(isnan(lse[0]) && isnan(out[0]));
        }
    }
    hf_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_sizes),  cmocka_unit_test(test_stored_share),      cmocka_unit_test(test_same_as_core),
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_impossible_shapes), cmocka_unit_test(test_caches),
        cmocka_unit_test(test_odd_elements), cmocka_unit_test(test_nothing),           cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_odd_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
