/* Norm and rotation, projection, skewing, on every backend. Inputs are in [-1, 1); sums are in fp32 in some order, so each result
 * is held to 1e-6 a term (8 units of fp32's 2^-23) and to one rounding of its type. */
#include "tests/select_fixture.h"

/* ---- rotate ---- */

struct rotate_case {
    uint32_t rows, heads, d;
    enum smg_dtype type;
    int norm;
    float theta;
};

static void check_rotate(const struct rotate_case *c)
{
    static const uint32_t positions[] = {0, 1, 31, 4096, 131071, 4000000000u, 7};
    size_t n = (size_t)c->rows * c->heads * c->d;
    uint32_t seed = 11 + c->d;
    void *x = kf_elements(&seed, n, c->type);
    float *weight = sf_floats(&seed, c->d), *expected = malloc((n + 1) * sizeof *expected), *got = malloc((n + 1) * sizeof *got);

    assert_true(expected && got);
    FOR_EACH_BACKEND(f)
    {
        void *dev = kf_in(f, x, n * smg_dtype_bytes(c->type));
        struct smg_rotate_args a = {.rows = c->rows,
                                    .heads = c->heads,
                                    .head_dim = c->d,
                                    .type = c->type,
                                    .x = dev,
                                    .weight = c->norm ? kf_in(f, weight, c->d * sizeof *weight) : NULL,
                                    .eps = 1e-6f,
                                    .theta = c->theta,
                                    .position = kf_in(f, positions, c->rows * sizeof *positions)};
        kf_ok(f, smg_rotate(f->k, &a, NULL));
        sf_get(f, kf_reference(f) ? expected : got, dev, n, c->type);
        if (!kf_reference(f)) /* 4e9 radians in double keep 1e-6 */
            kf_close(f, got, expected, n, 1e-5, 1.01 * 2 * sf_rounding(c->type));
    }
    free(x);
    free(weight);
    free(expected);
    free(got);
}

static void test_rotate(void **state)
{
    static const uint32_t dims[] = {0, 2, 8, 14, 16, 30, 32, 62, 64, 66, 128, 256};

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int t = 0; t < 3; t++) {
            check_rotate(&(struct rotate_case){7, 3, dims[i], sf_types[t], 1, 1e6f});
            check_rotate(&(struct rotate_case){2, 1, dims[i], sf_types[t], 0, 1e4f});
        }
    check_rotate(&(struct rotate_case){5, 2, 16, SMG_F32, 1, 0}); /* norm alone */
    check_rotate(&(struct rotate_case){0, 2, 16, SMG_F32, 1, 1e4f});
    check_rotate(&(struct rotate_case){3, 0, 16, SMG_F32, 1, 1e4f});
    check_rotate(&(struct rotate_case){3, 2, 16, SMG_BF16, 0, 0}); /* nothing to do: untouched */
}

/* By hand, d = 4, theta 100: pairs (0, 2) at angle p, (1, 3) at angle p / 10; p = 2. Products of two rotated vectors depend on
 * the distance of their positions alone. */
static void test_rotate_known(void **state)
{
    static const float x[4] = {1, 2, 3, -1}, k[4] = {0.5f, -1, 2, 1};
    static const uint32_t positions[4] = {2, 9, 102, 109};
    const float expected[4] = {(float)(cos(2) - 3 * sin(2)), (float)(2 * cos(0.2) + sin(0.2)), (float)(3 * cos(2) + sin(2)),
                               (float)(-cos(0.2) + 2 * sin(0.2))};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        float got[4][4], dot[2] = {0, 0};
        struct smg_rotate_args a = {.rows = 4, .heads = 1, .head_dim = 4, .theta = 100};
        for (int i = 0; i < 4; i++)
            memcpy(got[i], i % 2 ? k : x, sizeof x);
        a.position = kf_in(f, positions, sizeof positions);
        a.x = kf_in(f, got, sizeof got);
        kf_ok(f, smg_rotate(f->k, &a, NULL));
        kf_get(f, got, a.x, sizeof got);
        kf_close(f, got[0], expected, 4, 1e-6, 0);
        for (int i = 0; i < 4; i++) {
            dot[0] += got[0][i] * got[1][i];
            dot[1] += got[2][i] * got[3][i];
        }
        kf_close(f, dot, dot + 1, 1, 2e-6, 0);
    }
}

/* ---- project ---- */

static void check_project(uint32_t rows, uint32_t in, uint32_t out, enum smg_dtype type)
{
    size_t n = (size_t)rows * out, bytes = smg_dtype_bytes(type);
    uint32_t seed = 5 + rows + in * 7 + out * 131;
    void *x = kf_elements(&seed, (size_t)rows * in, type), *w = kf_elements(&seed, (size_t)in * out, type);
    float *expected = malloc((n + 1) * sizeof *expected), *got = malloc((n + 1) * sizeof *got);

    assert_true(expected && got);
    FOR_EACH_BACKEND(f)
    {
        struct smg_project_args a = {.rows = rows,
                                     .in = in,
                                     .out = out,
                                     .type = type,
                                     .x = kf_in(f, x, rows * in * bytes),
                                     .w = kf_in(f, w, (size_t)in * out * bytes),
                                     .y = kf_out(f, n * bytes)};
        kf_ok(f, smg_project(f->k, &a, NULL));
        sf_get(f, kf_reference(f) ? expected : got, a.y, n, type);
        if (!kf_reference(f))
            kf_close(f, got, expected, n, 1e-6 * in + 1e-7, 1.01 * 2 * sf_rounding(type));
    }
    free(x);
    free(w);
    free(expected);
    free(got);
}

static void test_project(void **state)
{
    static const uint32_t rows[] = {0, 1, 2, 3, 4, 8, 9, 97}, in[] = {0, 1, 31, 33}, out[] = {0, 1, 31, 32, 33, 130};

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
            check_project(rows[r], in[i], 33, SMG_F32);
    for (int t = 0; t < 3; t++)
        for (size_t o = 0; o < sizeof out / sizeof out[0]; o++)
            check_project(4, 70, out[o], sf_types[t]);
}

/* ---- skew ---- */

/* An orthogonal matrix for each head: turns by seeded angles in the planes (i, i + 1) of three passes. */
static float *orthogonal(uint32_t *seed, uint32_t heads, uint32_t d)
{
    float *basis = calloc((size_t)heads * d * d + 1, sizeof *basis);

    assert_non_null(basis);
    for (uint32_t m = 0; m < heads; m++) {
        float *a = basis + (size_t)m * d * d;
        for (uint32_t i = 0; i < d; i++)
            a[i * d + i] = 1;
        for (uint32_t i = 0; d > 1 && i < 3 * d; i++) {
            double angle = 3.1 * kf_uniform(seed);
            uint32_t p = i % d, q = (i + 1) % d;
            for (uint32_t j = 0; j < d; j++) {
                float u = a[j * d + p], v = a[j * d + q];
                a[j * d + p] = (float)(u * cos(angle) - v * sin(angle));
                a[j * d + q] = (float)(v * cos(angle) + u * sin(angle));
            }
        }
    }
    return basis;
}

struct skew_case {
    uint32_t rows, heads, kv_heads, d, width;
    enum smg_dtype type, out_type;
    int columns;
};

static void check_skew(const struct skew_case *c)
{
    size_t n = (size_t)c->rows * c->heads * c->d, n_out = (size_t)c->rows * c->heads * c->width;
    uint32_t seed = 3 + c->d + 7 * c->width;
    void *x = kf_elements(&seed, n, c->type);
    float *basis = orthogonal(&seed, c->kv_heads, c->d), *expected = malloc((n_out + 1) * sizeof *expected),
          *got = malloc((n_out + 1) * sizeof *got);
    uint8_t columns[4 * 256];

    assert_true(expected && got);
    for (uint32_t i = 0; i < c->kv_heads * c->width; i++)
        columns[i] = (uint8_t)(kf_random(&seed) % (c->d + (c->d < 255))); /* one too many: a column that does not exist */
    FOR_EACH_BACKEND(f)
    {
        struct smg_skew_args a = {.rows = c->rows,
                                  .heads = c->heads,
                                  .kv_heads = c->kv_heads,
                                  .head_dim = c->d,
                                  .width = c->width,
                                  .type = c->type,
                                  .out_type = c->out_type,
                                  .x = kf_in(f, x, n * smg_dtype_bytes(c->type)),
                                  .basis = kf_in(f, basis, (size_t)c->kv_heads * c->d * c->d * sizeof *basis),
                                  .columns = c->columns ? kf_in(f, columns, c->kv_heads * c->width) : NULL,
                                  .y = kf_out(f, n_out * smg_dtype_bytes(c->out_type))};
        kf_ok(f, smg_skew(f->k, &a, NULL));
        sf_get(f, kf_reference(f) ? expected : got, a.y, n_out, c->out_type);
        if (!kf_reference(f)) /* rows of an orthogonal matrix have length 1: errors grow with sqrt(d) at most */
            kf_close(f, got, expected, n_out, 1e-6 * sqrt(c->d), 1.01 * 2 * sf_rounding(c->out_type));
    }
    free(x);
    free(basis);
    free(expected);
    free(got);
}

static void test_skew(void **state)
{
    static const uint32_t dims[] = {1, 31, 32, 33, 64}, widths[] = {1, 15, 16, 17, 31, 32, 33, 38, 47, 48, 49, 64};

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int t = 0; t < 3; t++)
            check_skew(&(struct skew_case){3, 4, 2, dims[i], dims[i], sf_types[t], SMG_F32, 0});
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        check_skew(&(struct skew_case){2, 6, 3, 64, widths[i], SMG_BF16, SMG_BF16, 1});
    check_skew(&(struct skew_case){5, 1, 1, 256, 256, SMG_F16, SMG_F16, 1});
    check_skew(&(struct skew_case){0, 2, 1, 8, 8, SMG_F32, SMG_F32, 0});
    check_skew(&(struct skew_case){2, 2, 1, 8, 0, SMG_F32, SMG_F32, 1});
}

/* Products of vectors are the same in the skewed basis: 1e-3 of the vectors' lengths in fp16, 1e-5 in fp32. */
static void test_skew_invariance(void **state)
{
    enum { D = 128, N = 24 };
    uint32_t seed = 77;
    float *basis = orthogonal(&seed, 1, D);

    (void)state;
    for (int t = 0; t < 2; t++) {
        enum smg_dtype type = t ? SMG_F16 : SMG_F32;
        void *x = kf_elements(&seed, N * D, type);
        FOR_EACH_BACKEND(f)
        {
            static float y[N][D];
            struct smg_skew_args a = {.rows = N, .heads = 1, .kv_heads = 1, .head_dim = D, .width = D, .type = type};
            a.out_type = type;
            a.x = kf_in(f, x, N * D * smg_dtype_bytes(type));
            a.basis = kf_in(f, basis, D * D * sizeof *basis);
            a.y = kf_out(f, N * D * smg_dtype_bytes(type));
            kf_ok(f, smg_skew(f->k, &a, NULL));
            sf_get(f, y[0], a.y, N * D, type);
            for (int i = 0; i + 1 < N; i++) {
                double before = 0, after = 0, square = 0;
                for (int j = 0; j < D; j++) {
                    before += (double)smg_load(x, (uint64_t)(i * D + j), type) * smg_load(x, (uint64_t)(i * D + D + j), type);
                    after += (double)y[i][j] * y[i + 1][j];
                    square += (double)y[i][j] * y[i][j];
                }
                assert_true(fabs(after - before) < (t ? 1e-3 : 1e-5) * square);
            }
        }
        free(x);
    }
    free(basis);
}

/* ---- Sizes that cannot be ---- */

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_rotate_args r = {.rows = 1, .heads = 1, .head_dim = 7, .theta = 1e4f};
        struct smg_project_args p = {.rows = 1, .in = 1, .out = 1, .type = (enum smg_dtype)3};
        struct smg_skew_args s = {.rows = 1, .heads = 3, .kv_heads = 2, .head_dim = 8, .width = 8};
        sf_refused(f, smg_rotate(f->k, &r, NULL), "rotate: head_dim 7 is odd");
        r.head_dim = 8;
        r.theta = -1;
        sf_refused(f, smg_rotate(f->k, &r, NULL), "rotate: theta");
        r.theta = 1e4f;
        r.eps = NAN;
        sf_refused(f, smg_rotate(f->k, &r, NULL), "rotate: eps");
        r.eps = 0;
        r.rows = r.heads = UINT32_MAX;
        sf_refused(f, smg_rotate(f->k, &r, NULL), "rotate: the product");
        r.head_dim = 1026;
        sf_refused(f, smg_rotate(f->k, &r, NULL), "rotate: head_dim 1026");
        sf_refused(f, smg_project(f->k, &p, NULL), "project: 3 is no type");
        sf_refused(f, smg_skew(f->k, &s, NULL), "skew: 3 query heads");
        s.kv_heads = 0;
        sf_refused(f, smg_skew(f->k, &s, NULL), "skew: 3 query heads");
        s.kv_heads = 3;
        s.width = 9;
        sf_refused(f, smg_skew(f->k, &s, NULL), "skew: width 9");
        s.head_dim = 257;
        sf_refused(f, smg_skew(f->k, &s, NULL), "skew: head_dim 257");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotate), cmocka_unit_test(test_rotate_known),    cmocka_unit_test(test_project),
        cmocka_unit_test(test_skew),   cmocka_unit_test(test_skew_invariance), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
