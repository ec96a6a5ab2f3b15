/* Exact top-k on every backend, against a selection by ranks: an entry is taken iff fewer than k come before it. All exact. */
#include <float.h>

#include "kernels/topk_order.h"
#include "tests/kernel_fixture.h"

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 1);

    assert_non_null(p);
    return p;
}

/* ---- The whole number that stands for a score ---- */

static void test_order_of_score(void **state)
{
    static const float ascending[] = {-INFINITY, -3e38f, -1, -0x1p-126f, -0x1p-149f, 0, 0x1p-149f, 0x1p-126f, 1, 3e38f, INFINITY};

    (void)state;
    for (int i = 0; i + 1 < 11; i++)
        assert_true(smg_order_of_score(ascending[i]) < smg_order_of_score(ascending[i + 1]));
    assert_int_equal(smg_order_of_score(-0.0f), smg_order_of_score(0.0f));
    assert_int_equal(smg_order_of_score(NAN), smg_order_of_score(-INFINITY));
    assert_int_equal(smg_order_of_score(-NAN), smg_order_of_score(-INFINITY));
    assert_int_equal(smg_order_of_score(smg_float_of_bits(0x7f800001)), smg_order_of_score(-INFINITY));
}

/* ---- What a row must give ---- */

static float counted(float score)
{
    return isnan(score) ? -INFINITY : score;
}

static const float *sorting; /* scores of the row at hand, for qsort */

static int before(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const float sx = counted(sorting[x]), sy = counted(sorting[y]);

    return sx > sy ? -1 : sx < sy ? 1 : (x > y) - (x < y);
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void expect_row(const float *score, uint32_t n, uint32_t take, enum smg_topk_order order, uint32_t k, int32_t *index)
{
    int32_t *all = room(n * sizeof *all);

    for (uint32_t i = 0; i < n; i++)
        all[i] = (int32_t)i;
    sorting = score;
    qsort(all, n, sizeof *all, before);
    if (order == SMG_TOPK_BY_INDEX)
        qsort(all, take, sizeof *all, by_id);
    for (uint32_t i = 0; i < k; i++)
        index[i] = i < take ? all[i] : -1;
    free(all);
}

struct topk_case {
    uint32_t rows, n, k, group;
    const float *score;
    const uint32_t *n_of_row, *k_of_row; /* or NULL */
};

static void check(const struct topk_case *c)
{
    const size_t cells = (size_t)c->rows * c->k * sizeof(int32_t), groups = c->rows / c->group * sizeof(uint32_t);
    int32_t *expected = room(cells), *got = room(cells);
    uint32_t *length = room(c->rows * 4), *got_length = room(c->rows * 4);

    for (int order = 0; order < 2; order++) {
        for (uint32_t r = 0; r < c->rows; r++) {
            uint32_t n = c->n_of_row && c->n_of_row[r / c->group] < c->n ? c->n_of_row[r / c->group] : c->n;
            uint32_t k = c->k_of_row && c->k_of_row[r / c->group] < c->k ? c->k_of_row[r / c->group] : c->k;
            length[r] = k < n ? k : n;
            expect_row(c->score + (size_t)r * c->n, n, length[r], (enum smg_topk_order)order, c->k, expected + (size_t)r * c->k);
        }
        FOR_EACH_BACKEND(f)
        {
            struct smg_topk_args a = {.rows = c->rows,
                                      .n = c->n,
                                      .k = c->k,
                                      .order = (enum smg_topk_order)order,
                                      .score = kf_in(f, c->score, (size_t)c->rows * c->n * sizeof *c->score),
                                      .n_of_row = c->n_of_row ? kf_in(f, c->n_of_row, groups) : NULL,
                                      .k_of_row = c->k_of_row ? kf_in(f, c->k_of_row, groups) : NULL,
                                      .row_group = c->group,
                                      .index = kf_out(f, cells),
                                      .length = kf_out(f, c->rows * 4)};
            kf_ok(f, smg_topk(f->k, &a, NULL));
            kf_get(f, got, a.index, cells);
            kf_get(f, got_length, a.length, c->rows * 4);
            kf_same(f, got_length, length, c->rows * 4);
            kf_same(f, got, expected, cells);
        }
    }
    free(expected);
    free(got);
    free(length);
    free(got_length);
}

/* ---- Scores ---- */

enum { UNIFORM, EQUAL, FEW, ASCENDING, DESCENDING, ODD, NOTHING, TINY, KINDS };

static float draw(uint32_t *seed, int kind, uint32_t i)
{
    static const float odd[] = {NAN,       -NAN,       INFINITY, -INFINITY, 0.0f, -0.0f,
                                0x1p-149f, -0x1p-149f, FLT_MAX,  -FLT_MAX,  1.5f, -1.5f};
    const uint32_t x = kf_random(seed) >> 8;

    switch (kind) {
    case EQUAL:
        return 0.25f;
    case FEW:
        return (float)(x % 5) - 2;
    case ASCENDING:
        return (float)i * 0.5f - 100;
    case DESCENDING:
        return 100 - (float)i * 0.5f;
    case ODD:
        return odd[x % 12];
    case NOTHING:
        return x % 2 ? NAN : -INFINITY;
    case TINY: /* denormals of both signs, and zeros */
        return smg_float_of_bits((x & 1) << 31 | x % 4096);
    default:
        return (float)x / 8388608.0f - 1;
    }
}

static float *scores(uint32_t *seed, uint32_t rows, uint32_t n, int kind)
{
    float *s = room((size_t)rows * n * sizeof *s);

    for (size_t i = 0; i < (size_t)rows * n; i++)
        s[i] = draw(seed, kind, (uint32_t)(i % n));
    return s;
}

/* Lengths around a vector, a warp, a digit's 256 values, and the largest block of threads, which is also what one block sorts. */
static void test_lengths(void **state)
{
    static const uint32_t ns[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 65, 129, 255, 257};
    uint32_t seed = 31;

    (void)state;
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        const uint32_t ks[] = {0, 1, ns[i] / 5, ns[i] / 2, ns[i] - 1, ns[i], ns[i] + 3};
        for (int k = 0; k < 7; k++) {
            const int kind = (int)(i + (size_t)k) % KINDS;
            float *s = scores(&seed, 3, ns[i], kind);
            check(&(struct topk_case){3, ns[i], ks[k], 1, s, NULL, NULL});
            free(s);
        }
    }
}

static void test_kinds(void **state)
{
    static const uint32_t n[] = {33, 200}, k[] = {7, 40};
    uint32_t seed = 32;

    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < 2; i++) {
            float *s = scores(&seed, 2, n[i], kind);
            check(&(struct topk_case){2, n[i], k[i], 2, s, NULL, NULL});
            free(s);
        }
    }
}

static void test_long_rows(void **state)
{
    static const uint32_t size[][2] = {{1023, 204}, {1024, 1024}, {1025, 1025}, {2100, 420}, {3000, 2500}};
    uint32_t seed = 33;

    (void)state;
    for (int i = 0; i < 5; i++) {
        float *s = scores(&seed, 2, size[i][0], i == 3 ? FEW : UNIFORM);
        check(&(struct topk_case){2, size[i][0], size[i][1], 1, s, NULL, NULL});
        free(s);
    }
}

/* Requests of different length and budget, also none; what lies behind a row's length is the best, and must not be seen. */
static void test_groups(void **state)
{
    static const uint32_t n_of_row[] = {50, 0, 1, 60, UINT32_MAX, 33}, k_of_row[] = {10, 10, 10, 0, 7, UINT32_MAX};
    enum { N = 60, GROUP = 3, ROWS = 6 * GROUP };
    uint32_t seed = 34;
    float *s = scores(&seed, ROWS, N, FEW);

    (void)state;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < N; i++)
            if (i >= n_of_row[r / GROUP])
                s[r * N + i] = INFINITY;
    check(&(struct topk_case){ROWS, N, 12, GROUP, s, n_of_row, k_of_row});
    check(&(struct topk_case){ROWS, N, 40, GROUP, s, n_of_row, NULL});
    check(&(struct topk_case){ROWS, N, 60, GROUP, s, NULL, k_of_row});
    free(s);
}

/* Rows enough for all threads of the cpu backend, in pieces of several rows. */
static void test_many_rows(void **state)
{
    uint32_t seed = 35;
    float *s = scores(&seed, 280, 20, UNIFORM);

    (void)state;
    check(&(struct topk_case){280, 20, 6, 7, s, NULL, NULL});
    free(s);
}

static void test_sizes(void **state)
{
    (void)state;
    check(&(struct topk_case){4, 0, 3, 2, NULL, NULL, NULL}); /* no candidates: all padding */
    FOR_EACH_BACKEND(f)
    {
        struct smg_topk_args a = {.rows = 0, .n = 5, .k = 5, .row_group = 0};
        kf_ok(f, smg_topk(f->k, &a, NULL));
        a.rows = 3;
        assert_int_equal(smg_topk(f->k, &a, NULL), SMG_ERR_INVALID);
        a.row_group = 2;
        assert_int_equal(smg_topk(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "topk: 3 rows are no multiple of row_group 2");
        a.n = UINT32_C(1) << 31;
        assert_int_equal(smg_topk(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "topk: 2147483648 scores in a row, ids reach 2^31 - 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_score), cmocka_unit_test(test_lengths), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_long_rows),      cmocka_unit_test(test_groups),  cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
