/* What selectors compute once: skewing and hash weights. Synthetic tensors; statements about training are about these. */
#include <gsl/gsl_errno.h>

#include "kernels/offline_hata.h"
#include "kernels/smg_offline.h"
#include "kernels/smg_planted.h"
#include "tests/select_fixture.h"

/* Planted queries and keys of the calibration request, as floats; free both. */
static struct smg_calibration planted(uint32_t tokens, uint32_t q_heads, uint32_t kv_heads, uint32_t d, enum smg_dtype type)
{
    size_t bytes = smg_dtype_bytes(type) * tokens * d;
    void *q = malloc(bytes * q_heads), *k = malloc(bytes * kv_heads);
    struct smg_planted p;

    assert_true(q && k);
    smg_planted_defaults(&p, 5, q_heads, kv_heads, d);
    smg_planted_fill(&p, SMG_PLANTED_QUERY, SMG_PLANTED_CALIBRATION, 2, 0, tokens, type, q);
    smg_planted_fill(&p, SMG_PLANTED_KEY, SMG_PLANTED_CALIBRATION, 2, 0, tokens, type, k);
    return (struct smg_calibration){tokens, q_heads, kv_heads, d, type, q, k};
}

static void release(struct smg_calibration *c)
{
    free((void *)(uintptr_t)c->q);
    free((void *)(uintptr_t)c->k);
}

/* ---- Skewing ---- */

/* A^T A = I within 1e-6; the energy of averaged queries descends with the column. Also with fewer tokens than channels. */
static void check_basis(uint32_t tokens, uint32_t q_heads, uint32_t kv_heads, uint32_t d, enum smg_dtype type)
{
    struct smg_calibration c = planted(tokens, q_heads, kv_heads, d, type);
    float *basis = malloc((size_t)kv_heads * d * d * sizeof *basis);
    uint32_t group = q_heads / kv_heads;
    struct smg_diag diag;

    assert_non_null(basis);
    assert_int_equal(smg_skew_basis(&c, basis, &diag), SMG_OK);
    for (uint32_t m = 0; m < kv_heads; m++) {
        const float *a = basis + (size_t)m * d * d;
        double energy[256] = {0};
        for (uint32_t i = 0; i < d; i++)
            for (uint32_t j = 0; j < d; j++) {
                double dot = 0;
                for (uint32_t r = 0; r < d; r++)
                    dot += (double)a[r * d + i] * (double)a[r * d + j];
                assert_true(fabs(dot - (i == j)) < 1e-6);
            }
        for (uint32_t t = 0; t < tokens; t++)
            for (uint32_t i = 0; i < d; i++) {
                double x = 0;
                for (uint32_t r = 0; r < d * group; r++)
                    x += (double)smg_load(c.q, ((uint64_t)t * q_heads + m * group) * d + r, type) * (double)a[r % d * d + i];
                energy[i] += x * x;
            }
        for (uint32_t i = 1; i < d; i++)
            assert_true(energy[i] <= energy[i - 1] * (1 + 1e-4) + 1e-6 * energy[0]);
        assert_true(d < 32 || energy[0] > 4 * energy[d / 2]);
    }
    free(basis);
    release(&c);
}

static void test_basis(void **state)
{
    (void)state;
    check_basis(200, 4, 2, 32, SMG_F32);
    check_basis(10, 3, 1, 24, SMG_BF16);
    check_basis(300, 2, 1, 128, SMG_F16);
    check_basis(1, 1, 1, 2, SMG_F32);
}

/* Identity basis, so that magnitudes can be read off: one token, two query heads. |q|: 5 0 2 7, |k|: 0 9 6 1. */
static void test_columns(void **state)
{
    static const float q[2][4] = {{-4, 0, 1, 3}, {1, 0, -1, -4}}, k[4] = {0, -9, 6, 1};
    static const float basis[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    static const struct smg_calibration c = {1, 2, 1, 4, SMG_F32, q, k};
    static const struct {
        enum smg_skew_mode mode;
        uint32_t width;
        uint8_t columns[4];
    } cases[] = {
        {SMG_SKEW_QK_SUM, 1, {1}},    /* 5 9 8 8 */
        {SMG_SKEW_QK_SUM, 2, {1, 2}}, /* a tie of 2 and 3 */
        {SMG_SKEW_QK_SUM, 3, {1, 2, 3}}, {SMG_SKEW_Q, 2, {0, 3}},        {SMG_SKEW_UNION, 1, {3}},
        {SMG_SKEW_UNION, 2, {1, 3}},     {SMG_SKEW_UNION, 3, {0, 1, 3}}, {SMG_SKEW_UNION, 4, {0, 1, 2, 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t columns[4];
        struct smg_diag diag;
        assert_int_equal(smg_skew_columns(&c, basis[0], cases[i].mode, cases[i].width, columns, &diag), SMG_OK);
        assert_memory_equal(columns, cases[i].columns, cases[i].width);
    }
    assert_int_equal(smg_skew_width(128), 38);
    assert_int_equal(smg_skew_width(2), 1);
}

static void test_calibration_refused(void **state)
{
    float q[2 * 4] = {0}, k[2 * 4] = {0}, basis[16];
    struct smg_calibration c = {2, 1, 1, 4, SMG_F32, q, k};
    uint8_t columns[4];
    struct smg_diag diag;

    (void)state;
    k[5] = NAN;
    assert_int_equal(smg_skew_basis(&c, basis, &diag), SMG_ERR_INVALID);
    assert_non_null(strstr(diag.text, "not finite"));
    k[5] = 0;
    assert_int_equal(smg_skew_basis(&c, basis, &diag), SMG_OK); /* all zero: still orthogonal columns, or none of use */
    assert_int_equal(smg_skew_columns(&c, basis, SMG_SKEW_Q, 5, columns, &diag), SMG_ERR_INVALID);
    c.head_dim = 257;
    assert_int_equal(smg_skew_basis(&c, basis, &diag), SMG_ERR_INVALID);
    c.head_dim = 4;
    c.kv_heads = 2;
    assert_int_equal(smg_skew_basis(&c, basis, &diag), SMG_ERR_INVALID);
}

/* ---- Gradient ---- */

enum { D = 8, BITS = 32, PAIRS = 12 };

struct gradient_case {
    float epsilon, lambda, eta;
};

/* Central differences of one part of the loss with steps of 0.02: their own error is of the order of step^2, that of fp32 sums
 * 1e-6 of the loss over the step. Held to 1% of the largest element of the gradient. */
static void check_gradient(struct gradient_case g, int portable)
{
    static float w[D * BITS], gradient[D * BITS], unused[D * BITS], q[2 * D], keys[PAIRS * D], label[PAIRS];
    struct smg_hata_segment segment[2] = {{q, keys, label, 7}, {q + D, keys + 7 * D, label + 7, PAIRS - 7}};
    struct smg_hata_params p;
    struct smg_hata_work work;
    double largest = 0;

    smg_hata_defaults(&p);
    p.bits = BITS;
    p.epsilon = g.epsilon;
    p.lambda = g.lambda;
    p.eta = g.eta;
    p.sigma = 0.4f;
    p.portable = portable;
    smg_hata_untrained(9, 1, D, BITS, w);
    smg_hata_untrained(10, 1, 2, D, q);
    smg_hata_untrained(11, 1, PAIRS, D, keys);
    for (int i = 0; i < PAIRS; i++)
        label[i] = i % 3 ? -1 : (float)(20 - i);
    assert_int_equal(smg_hata_work_create(&work, D, BITS, PAIRS, 2), SMG_OK);
    (void)smg_hata_loss(&p, D, w, segment, 2, &work, gradient);
    for (int i = 0; i < D * BITS; i++)
        largest = fmax(largest, fabs((double)gradient[i]));
    assert_true(largest > 1e-3);
    for (int i = 0; i < D * BITS; i++) {
        float before = w[i];
        double up, down;
        w[i] = before + 0.02f;
        up = smg_hata_loss(&p, D, w, segment, 2, &work, unused);
        w[i] = before - 0.02f;
        down = smg_hata_loss(&p, D, w, segment, 2, &work, unused);
        w[i] = before;
        assert_true(fabs((up - down) / (double)0.04f - (double)gradient[i]) < 0.01 * largest);
    }
    smg_hata_work_destroy(&work);
}

static void test_gradient(void **state)
{
    (void)state;
    for (int portable = 0; portable < 2; portable++) {
        check_gradient((struct gradient_case){1, 0, 0}, portable);
        check_gradient((struct gradient_case){0, 1000, 0}, portable);
        check_gradient((struct gradient_case){0, 0, 1}, portable);
        check_gradient((struct gradient_case){1, 1000, 1}, portable);
    }
}

/* W of orthonormal columns has no decorrelation loss; its gradient there is taken as 0, not 0/0. */
static void test_gradient_at_optimum(void **state)
{
    float w[D * BITS] = {0}, gradient[D * BITS];
    struct smg_hata_params p;
    struct smg_hata_work work;

    (void)state;
    smg_hata_defaults(&p);
    p.bits = D; /* the loss itself knows no words */
    for (int i = 0; i < D; i++)
        w[i * D + i] = 1;
    assert_int_equal(smg_hata_work_create(&work, D, D, 1, 1), SMG_OK);
    assert_true(smg_hata_loss(&p, D, w, NULL, 0, &work, gradient) == 0);
    for (int i = 0; i < D * D; i++)
        assert_true(gradient[i] == 0);
    smg_hata_work_destroy(&work);
}

/* ---- Training ---- */

static struct smg_hata_params small_training(void)
{
    struct smg_hata_params p;

    smg_hata_defaults(&p);
    p.bits = 64;
    p.draws = 2;
    p.epochs = 4;
    p.steps = 5;
    p.chunk_pairs = 128;
    p.portable = 1;
    return p;
}

/* Same bits with any number of threads; other seeds, other weights; the loss falls; rounding to bf16 leaves bf16 numbers. */
static void test_training(void **state)
{
    enum { H = 3, DIM = 32, SIZE = H * DIM * 64 };
    static float w[4][SIZE];
    struct smg_calibration c = planted(150, 6, H, DIM, SMG_F16);
    struct smg_hata_params p = small_training();
    struct smg_diag diag;
    double loss[2], again[2];

    (void)state;
    p.threads = 1;
    assert_int_equal(smg_hata_train(&p, &c, 1, w[0], loss, &diag), SMG_OK);
    assert_true(loss[1] < loss[0] / 10); /* the columns are far from orthogonal at first */
    p.threads = 3;
    assert_int_equal(smg_hata_train(&p, &c, 1, w[1], again, &diag), SMG_OK);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(loss, again, sizeof loss);
    p.seed = 2;
    assert_int_equal(smg_hata_train(&p, &c, 1, w[2], NULL, &diag), SMG_OK);
    assert_memory_not_equal(w[0], w[2], sizeof w[0]);
    p.round_bf16 = 1;
    assert_int_equal(smg_hata_train(&p, &c, 1, w[3], NULL, &diag), SMG_OK);
    for (int i = 0; i < SIZE; i++)
        assert_true(!(smg_bits_of_float(w[3][i]) & 0xffff));
    release(&c);
}

/* Two prompts, chunks larger than all pairs, one pair. */
static void test_training_sizes(void **state)
{
    static float w[2 * 16 * 64];
    struct smg_calibration c[2] = {planted(20, 2, 2, 16, SMG_F32), planted(1, 2, 2, 16, SMG_F32)};
    struct smg_hata_params p = small_training();
    struct smg_diag diag;

    (void)state;
    assert_int_equal(smg_hata_train(&p, c, 2, w, NULL, &diag), SMG_OK);
    assert_int_equal(smg_hata_train(&p, c + 1, 1, w, NULL, &diag), SMG_OK);
    p.chunk_pairs = 1;
    assert_int_equal(smg_hata_train(&p, c, 2, w, NULL, &diag), SMG_OK);
    p.rate = 1e30f;
    assert_int_equal(smg_hata_train(&p, c, 1, w, NULL, &diag), SMG_ERR_INVALID);
    assert_non_null(strstr(diag.text, "diverged"));
    p = small_training();
    p.bits = 40;
    assert_int_equal(smg_hata_train(&p, c, 1, w, NULL, &diag), SMG_ERR_INVALID);
    p = small_training();
    p.top_share = 0;
    assert_int_equal(smg_hata_train(&p, c, 1, w, NULL, &diag), SMG_ERR_INVALID);
    c[1].head_dim = 8;
    p = small_training();
    assert_int_equal(smg_hata_train(&p, c, 2, w, NULL, &diag), SMG_ERR_INVALID);
    release(&c[0]);
    release(&c[1]);
}

/* Mean and variance of 32768 numbers: deviations 0.0055 and 0.0078, held to five of them. */
static void test_untrained(void **state)
{
    static float w[32768], again[32768];
    double mean = 0, square = 0;

    (void)state;
    smg_hata_untrained(3, 1, 128, 256, w);
    smg_hata_untrained(3, 1, 128, 256, again);
    assert_memory_equal(w, again, sizeof w);
    for (int i = 0; i < 32768; i++) {
        mean += (double)w[i] / 32768;
        square += (double)w[i] * (double)w[i] / 32768;
    }
    assert_true(fabs(mean) < 0.0275 && fabs(square - 1) < 0.039);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basis),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_calibration_refused),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_gradient_at_optimum),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_sizes),
        cmocka_unit_test(test_untrained),
    };

    gsl_set_error_handler_off();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
