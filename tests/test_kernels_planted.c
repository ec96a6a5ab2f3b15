/* Planted tensors: functions of what is asked for, and with the structure that the header states. Bounds of statistics are wide:
 * they tell structure from none, and hold for any seed tried (1 to 5). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/dtype.h"
#include "kernels/smg_planted.h"

enum { D = 128, HQ = 8, H = 2, G = HQ / H };

static double dot(const float *a, const float *b)
{
    double sum = 0;

    for (int i = 0; i < D; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double cosine(const float *a, const float *b)
{
    return dot(a, b) / sqrt(dot(a, a) * dot(b, b));
}

/* Entries asked for alone, backwards, in another type, equal those of a whole fill. */
static void test_pure(void **state)
{
    static float all[4][20][HQ][D];
    struct smg_planted p;

    (void)state;
    smg_planted_defaults(&p, 7, HQ, H, D);
    for (int what = 0; what < 4; what++)
        smg_planted_fill(&p, (enum smg_planted_what)what, 3, 5, 150, 20, SMG_F32, all[what]);
    for (uint32_t t = 20; t-- > 0;) {
        float one[D];
        uint16_t half[D];
        for (uint32_t h = 0; h < H; h++) {
            smg_planted_key(&p, 3, 5, h, 150 + t, SMG_F32, one);
            assert_memory_equal(one, (float *)all[SMG_PLANTED_KEY] + (t * H + h) * D, sizeof one);
            smg_planted_key(&p, 3, 5, h, 150 + t, SMG_BF16, half);
            for (int i = 0; i < D; i++)
                assert_int_equal(half[i], smg_float_to_bf16(one[i]));
            smg_planted_value(&p, 3, 5, h, 150 + t, SMG_F32, one);
            assert_memory_equal(one, (float *)all[SMG_PLANTED_VALUE] + (t * H + h) * D, sizeof one);
        }
        smg_planted_query(&p, 3, 5, 150 + t, 6, SMG_F32, one);
        assert_memory_equal(one, all[SMG_PLANTED_QUERY][t][6], sizeof one);
        smg_planted_rehearsed(&p, 3, 5, 150 + t, 6, SMG_F32, one);
        assert_memory_equal(one, all[SMG_PLANTED_REHEARSED][t][6], sizeof one);
    }
}

/* Any part of the address, and the seed, makes another vector. */
static void test_distinct(void **state)
{
    float base[D], other[D];
    struct smg_planted p, q;

    (void)state;
    smg_planted_defaults(&p, 1, HQ, H, D);
    smg_planted_defaults(&q, 2, HQ, H, D);
    smg_planted_key(&p, 0, 2, 0, 77, SMG_F32, base);
    smg_planted_key(&q, 0, 2, 0, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_key(&p, 1, 2, 0, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_key(&p, SMG_PLANTED_CALIBRATION, 2, 0, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_key(&p, 0, 3, 0, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_key(&p, 0, 2, 1, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_key(&p, 0, 2, 0, 78, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
    smg_planted_value(&p, 0, 2, 0, 77, SMG_F32, other);
    assert_memory_not_equal(base, other, sizeof base);
}

/* Interests and noise of a query move by rho a step: with nothing constant in it, the mean cosine of neighbours is rho. The cut
 * at 16 lags costs less than 0.002, 256 pairs of 128 correlated numbers leave a deviation of about 0.01. */
static void test_correlation(void **state)
{
    double near = 0, far = 0, rehearsed = 0;
    float a[D], b[D];
    struct smg_planted p;

    (void)state;
    smg_planted_defaults(&p, 3, HQ, H, D);
    p.rotated = 0;
    p.sink = p.interest_head = p.interest_request = p.interest_step = 0;
    p.topics = 1;
    for (uint32_t t = 0; t < 256; t++) {
        smg_planted_query(&p, 0, 4, 100 * t, 1, SMG_F32, a);
        smg_planted_query(&p, 0, 4, 100 * t + 1, 1, SMG_F32, b);
        near += cosine(a, b) / 256;
        smg_planted_query(&p, 0, 4, 100 * t + 50, 1, SMG_F32, b);
        far += cosine(a, b) / 256;
        smg_planted_rehearsed(&p, 0, 4, 100 * t, 1, SMG_F32, b);
        rehearsed += cosine(a, b) / 256;
    }
    assert_true(fabs(near - 0.85) < 0.03);
    assert_true(fabs(far) < 0.1);
    assert_true(fabs(rehearsed - 0.95) < 0.01);
}

/* Logits of prompt keys for one query. */
static void logits(const struct smg_planted *p, uint32_t n, uint32_t position, uint32_t q_head, double *z)
{
    float q[D], k[D];

    smg_planted_query(p, 0, 6, position, q_head, SMG_F32, q);
    for (uint32_t t = 0; t < n; t++) {
        smg_planted_key(p, 0, 6, q_head / G, t, SMG_F32, k);
        z[t] = dot(q, k) / sqrt(D);
    }
}

static double correlation(const double *a, const double *b, uint32_t n)
{
    double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;

    for (uint32_t i = 0; i < n; i++) {
        ma += a[i] / n;
        mb += b[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return ab / sqrt(aa * bb);
}

/* Logits spread by a few units; neighbouring steps agree more than query heads of a group, these more than query heads of
 * different groups; sinks and recent tokens stand out. */
static void test_structure(void **state)
{
    enum { N = 1500 };
    static double z[4][N];
    double step = 0, group = 0, other = 0, sinks = 0, mean = 0, square = 0, recent = 0;
    struct smg_planted p;

    (void)state;
    smg_planted_defaults(&p, 4, HQ, H, D);
    for (uint32_t s = 0; s < 8; s++) {
        logits(&p, N, N + 20 * s, 0, z[0]);
        logits(&p, N, N + 20 * s + 1, 0, z[1]);
        logits(&p, N, N + 20 * s, 1, z[2]);
        logits(&p, N, N + 20 * s, G, z[3]);
        step += correlation(z[0], z[1], N) / 8;
        group += correlation(z[0], z[2], N) / 8;
        other += correlation(z[0], z[3], N) / 8;
        for (uint32_t t = 0; t < N; t++) {
            mean += z[0][t] / (8 * N);
            square += z[0][t] * z[0][t] / (8 * N);
            recent += t >= N - 100 ? z[0][t] / 800 : 0;
            sinks += t < 4 ? z[0][t] / 32 : 0;
        }
    }
    assert_true(step > 0.75 && step > group + 0.1 && group > other + 0.1);
    assert_true(sinks > mean + 4 && recent > mean + 0.5);
    assert_true(sqrt(square - mean * mean) > 1.2 && sqrt(square - mean * mean) < 4);
}

static void test_check(void **state)
{
    struct smg_planted p, good;
    struct smg_diag diag;

    (void)state;
    smg_planted_defaults(&good, 1, HQ, H, D);
    assert_int_equal(smg_planted_check(&good, &diag), SMG_OK);
#define REFUSED(field, value)                                                                                                    \
    p = good;                                                                                                                    \
    p.field = value;                                                                                                             \
    assert_int_equal(smg_planted_check(&p, &diag), SMG_ERR_INVALID)
    REFUSED(kv_heads, 3);
    REFUSED(kv_heads, 0);
    REFUSED(head_dim, 258);
    REFUSED(head_dim, 33);
    REFUSED(topics, 65);
    REFUSED(cluster_tokens, 161);
    REFUSED(rotated, 9);
    REFUSED(rho, 1);
    REFUSED(agree, NAN);
    REFUSED(noise, INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pure),      cmocka_unit_test(test_distinct), cmocka_unit_test(test_correlation),
        cmocka_unit_test(test_structure), cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
