/* How far HACK's codes are from what was given: figures of a uniform quantiser on Gaussian groups, and what they do to
 * attention. Data are synthetic. A tolerance is a few times the spread of the figure over seeds, unless said otherwise. */
#include "tests/hack_fixture.h"

static struct smg_hack_shape shape(enum smg_hack_layout_kind layout, uint32_t tokens, uint32_t head_dim, uint32_t group,
                                   uint32_t bits)
{
    return (struct smg_hack_shape){layout, tokens, 1, head_dim, group, bits, 0, SMG_F32};
}

/* n numbers of a normal distribution, by Box and Muller. */
static void gaussian(float *x, size_t n, uint32_t *seed)
{
    for (size_t i = 0; i < n; i += 2) {
        double r = sqrt(-2 * log(1 - ldexp(kf_random(seed) >> 8, -24))), angle = 2 * acos(-1) * ldexp(kf_random(seed) >> 8, -24);
        x[i] = (float)(r * cos(angle));
        x[i + 1] = (float)(r * sin(angle));
    }
}

static struct hack_case gaussian_case(const struct smg_hack_shape *s, uint32_t seed)
{
    struct hack_case c = hf_open(s, &seed);

    gaussian(c.k, hf_elements(s), &seed);
    gaussian(c.v, hf_elements(s), &seed);
    return c;
}

struct error {
    double bias, square, power; /* means of: error, its square, the given value's square */
};

static struct error error_of(const struct hack_case *c, int v, const float *back)
{
    const float *x = v ? c->v : c->k;
    const size_t n = hf_elements(&c->s);
    struct error e = {0};

    for (size_t i = 0; i < n; i++) {
        double d = (double)back[i] - x[i];
        e.bias += d / (double)n;
        e.square += d * d / (double)n;
        e.power += (double)x[i] * x[i] / (double)n;
    }
    return e;
}

/* Of K and V together, that is of groups along channels and along tokens. */
static struct error measure(struct kernel_fixture *f, uint32_t group, uint32_t bits, int stochastic)
{
    const struct smg_hack_shape s = shape(SMG_HACK_V1, 256, 128, group, bits);
    struct hack_case c = gaussian_case(&s, 1000 + group + bits);
    float *k = malloc(hf_bytes(&s)), *v = malloc(hf_bytes(&s));
    struct error a, b;

    assert_true(k && v);
    hf_dequantize(f, &c, hf_quantize(f, &c, stochastic, 42), k, v);
    a = error_of(&c, 0, k);
    b = error_of(&c, 1, v);
    a = (struct error){(a.bias + b.bias) / 2, (a.square + b.square) / 2, (a.power + b.power) / 2};
    free(k);
    free(v);
    hf_close(&c);
    return a;
}

/* Between seeds the figures of 64K values differ by 1.5%: 3% is allowed, and 30% at 8 bits, whose published figures have one
 * digit. */
static void test_table(void **state)
{
    static const uint32_t group[3] = {32, 64, 128}, bits[3] = {2, 4, 8};
    static const double expected[3][3] = {{0.154, 0.0062, 2e-5}, {0.201, 0.0080, 3e-5}, {0.250, 0.0099, 3e-5}};
    static const double within[3] = {0.03, 0.03, 0.3};

    (void)state;
    FOR_EACH_BACKEND(f)
    for (int g = 0; g < 3; g++)
        for (int b = 0; b < 3; b++) {
            struct error e = measure(f, group[g], bits[b], 0);
            double got = e.square / e.power;
            if (kf_reference(f))
                printf("group %u, %u bits: relative error %.3g (%.1f dB), published %.3g\n", group[g], bits[b], got,
                       -10 * log10(got), expected[g][b]);
            if (fabs(got - expected[g][b]) > within[b] * expected[g][b])
                fail_msg("%s: group %u, %u bits: %g, expected %g", smg_kernels_where(f->k), group[g], bits[b], got,
                         expected[g][b]);
        }
}

/* Stochastic rounding: no bias (64K errors of deviation sqrt(square): 4 of the mean's; and the greatest of 64 may be clamped, by
 * at most top scale 2^-9), and twice the square error, s^2 / 6
 * against s^2 / 12, where steps are small beside the distribution; 2 bits are coarse, so 10% there. */
static void test_stochastic(void **state)
{
    const double range = 4.7; /* of 64 values, in deviations */

    (void)state;
    FOR_EACH_BACKEND(f)
    for (uint32_t bits = 2; bits <= 8; bits *= 2) {
        struct error nearest = measure(f, 64, bits, 0), e = measure(f, 64, bits, 1);
        if (kf_reference(f))
            printf("%u bits: stochastic %.4g, nearest %.4g, ratio %.3f, bias %.2g\n", bits, e.square, nearest.square,
                   e.square / nearest.square, e.bias);
        assert_true(fabs(e.bias) < 4 * sqrt(e.square / 65536) + range / 512 / 64);
        assert_float_equal(e.square / nearest.square, 2, bits == 2 ? 0.2 : 0.06);
    }
}

/* Each single value comes back unbiased: its mean over 400 seeds lies within 5 deviations, at most (scale / 2) / sqrt(400). */
static void test_unbiased_each(void **state)
{
    const struct smg_hack_shape s = shape(SMG_HACK_ATC26, 16, 16, 16, 2);
    struct hack_case c = gaussian_case(&s, 8);
    enum { SEEDS = 400 };

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        double sum[256] = {0};
        float k[256], v[256], min, scale;
        /* The reference alone: the others write the same bytes, as test_kernels_hack.c sees. */
        for (uint64_t seed = 0; seed < (kf_reference(f) ? SEEDS : 0); seed++) {
            hf_dequantize(f, &c, hf_quantize(f, &c, 1, seed), k, v);
            for (int i = 0; i < 256; i++)
                sum[i] += v[i];
            kf_free_all(f);
        }
        for (uint32_t i = 0; kf_reference(f) && i < 256; i++) {
            hf_min_scale(&c, 1, i / 16, 0, i % 16, &min, &scale);
            /* The ends of the range are moved by the rounding of min and scale. */
            assert_float_equal(sum[i] / SEEDS, hf_given(&c, 1, i / 16, 0, i % 16),
                               5 * scale / 2 / sqrt(SEEDS) + ldexp(fabsf(min) + 3 * scale, -9));
        }
    }
    hf_close(&c);
}

/* A logit's error is q . dK / sqrt(d): deviation ||q|| rms(dK) / sqrt(d). 256 tokens: within 20%, 4 deviations of a deviation. */
static void test_logit_error(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++)
        FOR_EACH_BACKEND(f)
        {
            const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 256, 128, 64, 2);
            struct hack_case c = gaussian_case(&s, 21);
            float *k = malloc(hf_bytes(&s)), *v = malloc(hf_bytes(&s)), q[128];
            double square = 0, length = 0, expected;
            uint32_t seed = 22;
            assert_true(k && v);
            gaussian(q, 128, &seed);
            hf_dequantize(f, &c, hf_quantize(f, &c, 0, 0), k, v);
            for (uint32_t t = 0; t < 256; t++) {
                double error = 0;
                for (uint32_t i = 0; i < 128; i++)
                    error += q[i] * ((double)k[t * 128 + i] - ((float *)c.k)[t * 128 + i]);
                square += error * error / 128 / 256;
            }
            for (int i = 0; i < 128; i++)
                length += (double)q[i] * q[i];
            expected = sqrt(length * error_of(&c, 0, k).square / 128);
            if (kf_reference(f))
                printf("%s: logit error %.3f, by the formula %.3f\n", l ? "ATC26" : "V1", sqrt(square), expected);
            assert_float_equal(sqrt(square) / expected, 1, 0.2);
            free(k);
            free(v);
            hf_close(&c);
        }
}

/* ---- Attention ---- */

enum { HEADS = 8 };

/* Root mean squares over query heads and channels of two differences: exact attention on codes from attention on what was given,
 * and attention with coded q and P from exact. */
static void attention_errors(struct kernel_fixture *f, const struct hack_case *c, const float *q, double *of_codes, double *of_a)
{
    const uint32_t d = c->s.head_dim;
    float *exact = malloc(HEADS * d * sizeof *exact), *coded = malloc(HEADS * d * sizeof *coded), lse[HEADS];
    void *cache = kf_in(f, c->cache, c->z.bytes);
    const float scale = 1 / sqrtf((float)d);

    assert_true(exact && coded);
    *of_codes = *of_a = 0;
    hf_attention(f, c, cache, HEADS, q, scale, 1, exact, lse);
    hf_attention(f, c, cache, HEADS, q, scale, 0, coded, lse);
    for (uint32_t h = 0; h < HEADS; h++) {
        double row[256], out[256];
        for (uint32_t i = 0; i < d; i++)
            row[i] = q[h * d + i];
        hf_expected(c, 1, 0, row, scale, out);
        for (uint32_t i = 0; i < d; i++) {
            *of_codes += pow(exact[h * d + i] - out[i], 2) / (HEADS * d);
            *of_a += pow((double)coded[h * d + i] - exact[h * d + i], 2) / (HEADS * d);
        }
    }
    *of_codes = sqrt(*of_codes);
    *of_a = sqrt(*of_a);
    free(exact);
    free(coded);
}

/* q and P of 8 bits are negligible beside K and V of 2: a tenth of their error at most. */
static void test_eight_bits_of_a(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++)
        FOR_EACH_BACKEND(f)
        {
            const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 256, 128, 64, 2);
            struct hack_case c = gaussian_case(&s, 31);
            float q[HEADS * 128];
            double of_codes, of_a;
            uint32_t seed = 32;
            gaussian(q, HEADS * 128, &seed);
            hf_quantize(f, &c, 0, 0);
            attention_errors(f, &c, q, &of_codes, &of_a);
            if (kf_reference(f))
                printf("%s: error of an output from K and V of 2 bits %.4f, from q and P of 8 bits %.4f\n", l ? "ATC26" : "V1",
                       of_codes, of_a);
            assert_true(of_a < of_codes / 10);
            hf_close(&c);
        }
}

/* Rotated keys have a few large channels; here 4 of 128, ten times the others. A group along channels takes its range from them,
 * a group along tokens does not: V1's keys, and the logits of a query that weighs all channels alike, come back worse than
 * ATC26's. */
static void test_large_channels(void **state)
{
    static double reference[2][2];

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        double keys[2], logits[2];
        for (int l = 0; l < 2; l++) {
            const struct smg_hack_shape s = shape((enum smg_hack_layout_kind)l, 256, 128, 64, 2);
            struct hack_case c = gaussian_case(&s, 41);
            float *k = malloc(hf_bytes(&s)), *v = malloc(hf_bytes(&s)), q[128];
            uint32_t seed = 42;
            struct error e;
            assert_true(k && v);
            gaussian(q, 128, &seed);
            for (uint32_t t = 0; t < 256; t++)
                for (uint32_t i = 17; i < 128; i += 32)
                    ((float *)c.k)[t * 128 + i] *= 10;
            hf_dequantize(f, &c, hf_quantize(f, &c, 0, 0), k, v);
            e = error_of(&c, 0, k);
            keys[l] = e.square / e.power;
            logits[l] = 0;
            for (uint32_t t = 0; t < 256; t++) {
                double error = 0;
                for (uint32_t i = 0; i < 128; i++)
                    error += q[i] * ((double)k[t * 128 + i] - ((float *)c.k)[t * 128 + i]);
                logits[l] += error * error / 128 / 256;
            }
            logits[l] = sqrt(logits[l]);
            free(k);
            free(v);
            hf_close(&c);
        }
        if (kf_reference(f)) {
            printf("large channels: relative error of K: V1 %.3f, ATC26 %.3f; error of a logit: V1 %.2f, ATC26 %.2f\n", keys[0],
                   keys[1], logits[0], logits[1]);
            memcpy(reference[0], keys, sizeof keys);
            memcpy(reference[1], logits, sizeof logits);
        }
        assert_true(keys[0] > keys[1] && logits[0] > logits[1]);
        assert_memory_equal(reference[0], keys, sizeof keys);
        assert_memory_equal(reference[1], logits, sizeof logits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),       cmocka_unit_test(test_stochastic),      cmocka_unit_test(test_unbiased_each),
        cmocka_unit_test(test_logit_error), cmocka_unit_test(test_eight_bits_of_a), cmocka_unit_test(test_large_channels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
