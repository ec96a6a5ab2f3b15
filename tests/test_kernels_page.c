/* Quest on every backend: bounds of pages, bounds of scores, chosen pages to tokens. Bounds of pages and ids are exact. */
#include "tests/select_fixture.h"

/* ---- page_update ---- */

/* Tokens [first, first + count) of keys [..][row] into bounds on the host. */
static void run_update(struct kernel_fixture *f, uint32_t first, uint32_t count, uint32_t heads, uint32_t d, uint32_t page,
                       enum smg_dtype type, const void *key, float *kmin, float *kmax)
{
    size_t row = (size_t)heads * d, pages = ((size_t)first + count + page - 1) / page, bytes = pages * row * sizeof *kmin;
    struct smg_page_update_args a = {
        .first = first, .count = count, .kv_heads = heads, .head_dim = d, .page = page, .type = type};

    kf_free_all(f);
    a.key = kf_in(f, (const char *)key + first * row * smg_dtype_bytes(type), count * row * smg_dtype_bytes(type));
    a.kmin = kf_in(f, kmin, bytes);
    a.kmax = kf_in(f, kmax, bytes);
    kf_ok(f, smg_page_update(f->k, &a, NULL));
    kf_get(f, kmin, a.kmin, bytes);
    kf_get(f, kmax, a.kmax, bytes);
}

/* A prompt at once and token by token give the same bounds, which are those of the definition. */
static void check_update(uint32_t n, uint32_t heads, uint32_t d, uint32_t page, enum smg_dtype type, uint32_t step)
{
    size_t row = (size_t)heads * d, size = ((size_t)n / page + 2) * row;
    uint32_t seed = 47 + n;
    void *key = kf_elements(&seed, n * row, type);
    float *kmin = malloc((size + 1) * sizeof *kmin), *kmax = malloc((size + 1) * sizeof *kmax);

    assert_true(kmin && kmax);
    if (row && n > 2) {
        smg_store(key, row, type, INFINITY);
        smg_store(key, 2 * row - 1, type, -INFINITY);
        smg_store(key, 2 * row, type, 0x1p-24f);
    }
    FOR_EACH_BACKEND(f)
    {
        for (size_t i = 0; i < size; i++)
            kmin[i] = kmax[i] = 77; /* of another request, say */
        for (uint32_t t = 0; t < n; t += step)
            run_update(f, t, n - t < step ? n - t : step, heads, d, page, type, key, kmin, kmax);
        for (size_t i = 0; i < row; i++)
            for (uint32_t first = 0; first < n; first += page) {
                float least = INFINITY, most = -INFINITY;
                for (uint32_t t = first; t < n && t < first + page; t++) {
                    least = fminf(least, smg_load(key, t * row + i, type));
                    most = fmaxf(most, smg_load(key, t * row + i, type));
                }
                kf_same(f, &kmin[first / page * row + i], &least, sizeof least);
                kf_same(f, &kmax[first / page * row + i], &most, sizeof most);
            }
    }
    free(key);
    free(kmin);
    free(kmax);
}

static void test_update(void **state)
{
    static const uint32_t dims[] = {0, 1, 7, 8, 9, 31, 33};

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int t = 0; t < 3; t++)
            check_update(37, 3, dims[i], 16, sf_types[t], 37);
    check_update(37, 2, 5, 16, SMG_BF16, 1);
    check_update(40, 2, 8, 16, SMG_F16, 7);
    check_update(9, 1, 8, 1, SMG_F32, 2);
    check_update(5, 1, 8, 16, SMG_F32, 3);
    check_update(0, 1, 8, 16, SMG_F32, 1);
}

/* ---- page_scores ---- */

struct page_case {
    uint32_t requests, q_heads, kv_heads, d, max_pages;
    enum smg_dtype type;
};

static void run_page_scores(struct kernel_fixture *f, const struct page_case *c, const void *q, const float *kmin,
                            const float *kmax, const uint32_t *pages, float *bound)
{
    size_t n = (size_t)c->requests * c->max_pages * c->kv_heads;
    struct smg_page_scores_args a = {.requests = c->requests,
                                     .q_heads = c->q_heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->d,
                                     .max_pages = c->max_pages,
                                     .type = c->type};

    kf_free_all(f);
    a.q = kf_in(f, q, (size_t)c->requests * c->q_heads * c->d * smg_dtype_bytes(c->type));
    a.kmin = kf_in(f, kmin, n * c->d * sizeof *kmin);
    a.kmax = kf_in(f, kmax, n * c->d * sizeof *kmax);
    a.pages = kf_in(f, pages, c->requests * sizeof *pages);
    a.bound = kf_out(f, n * sizeof *bound);
    kf_ok(f, smg_page_scores(f->k, &a, NULL));
    kf_get(f, bound, a.bound, n * sizeof *bound);
}

/* Pages {[0.5,1,0,2],[1,-1,3,0]} and {[2,2,2,2],[-1,0,1,-3]}; a third, the last, is always taken. Exact in fp32. */
static void test_golden(void **state)
{
    static const float key[6][4] = {{0.5f, 1, 0, 2}, {1, -1, 3, 0}, {2, 2, 2, 2}, {-1, 0, 1, -3}}, q[4] = {1, -2, 0.5f, -0.25f},
                       expected[4] = {4.5f, 3.75f, INFINITY, -INFINITY};
    static const struct page_case c = {1, 1, 1, 4, 4, SMG_F32};
    static const uint32_t pages = 3;

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        float kmin[4][4] = {{0}}, kmax[4][4] = {{0}}, bound[4];
        run_update(f, 0, 6, 1, 4, 2, SMG_F32, key, kmin[0], kmax[0]);
        run_page_scores(f, &c, q, kmin[0], kmax[0], &pages, bound);
        kf_same(f, bound, expected, sizeof bound);
    }
}

static void check_page_scores(const struct page_case *c)
{
    static const uint32_t pages[] = {5, 0, 1, 3, 99};
    size_t n = (size_t)c->requests * c->max_pages * c->kv_heads, rows = (size_t)c->requests * c->q_heads;
    uint32_t seed = 53 + c->d;
    void *q = kf_elements(&seed, rows * c->d, c->type);
    float *kmin = sf_floats(&seed, n * c->d), *kmax = sf_floats(&seed, n * c->d), *got = malloc((n + 1) * sizeof *got),
          *expected = malloc((n + 1) * sizeof *expected);

    assert_true(got && expected);
    FOR_EACH_BACKEND(f)
    {
        run_page_scores(f, c, q, kmin, kmax, pages, kf_reference(f) ? expected : got);
        if (!kf_reference(f))
            kf_close(f, got, expected, n, 1e-6 * c->d * (c->q_heads / (double)(c->kv_heads + !c->kv_heads)), 1e-6);
    }
    free(q);
    free(kmin);
    free(kmax);
    free(got);
    free(expected);
}

static void test_page_scores(void **state)
{
    static const uint32_t dims[] = {0, 1, 7, 8, 9, 31, 32, 33, 128}, pages[] = {0, 1, 4, 5, 6, 31, 32, 33};

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int t = 0; t < 3; t++)
            check_page_scores(&(struct page_case){5, 6, 2, dims[i], 6, sf_types[t]});
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        check_page_scores(&(struct page_case){5, 2, 1, 16, pages[i], SMG_BF16});
    check_page_scores(&(struct page_case){0, 2, 1, 16, 4, SMG_F32});
}

/* The bound is at least the sum over the group of q . k, for each key of the page; 1e-5 for the sum's rounding. */
static void test_dominates(void **state)
{
    enum { N = 96, D = 32, HQ = 6, H = 2, PAGE = 16, PAGES = N / PAGE + 1 };
    static const struct page_case c = {1, HQ, H, D, PAGES, SMG_F16};
    static const uint32_t pages = PAGES;
    uint32_t seed = 59;
    void *key = kf_elements(&seed, (size_t)(N + 1) * H * D, SMG_F16), *q = kf_elements(&seed, HQ * D, SMG_F16);

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        static float kmin[PAGES * H * D], kmax[PAGES * H * D], bound[H][PAGES];
        run_update(f, 0, N + 1, H, D, PAGE, SMG_F16, key, kmin, kmax);
        run_page_scores(f, &c, q, kmin, kmax, &pages, bound[0]);
        for (uint64_t i = 0; i < N * H; i++) {
            uint64_t j = i / H, m = i % H;
            double sum = 0;
            for (uint64_t g = 0; g < HQ / H; g++)
                for (uint64_t x = 0; x < D; x++)
                    sum += (double)smg_load(q, (m * (HQ / H) + g) * D + x, SMG_F16) * smg_load(key, (j * H + m) * D + x, SMG_F16);
            assert_true((double)bound[m][j / PAGE] >= sum - 1e-5);
        }
    }
    free(key);
    free(q);
}

/* ---- page_expand ---- */

static void run_expand(struct kernel_fixture *f, struct smg_page_expand_args a, const int32_t *chosen, const uint32_t *tokens,
                       int32_t *index, uint32_t *length)
{
    kf_free_all(f);
    a.chosen = kf_in(f, chosen, (size_t)a.rows * a.n_pages * sizeof *chosen);
    a.tokens = kf_in(f, tokens, (a.rows + a.row_group - 1) / a.row_group * sizeof *tokens);
    a.index = kf_out(f, (size_t)a.rows * a.k * sizeof *index);
    a.length = kf_out(f, a.rows * sizeof *length);
    kf_ok(f, smg_page_expand(f->k, &a, NULL));
    kf_get(f, index, a.index, (size_t)a.rows * a.k * sizeof *index);
    kf_get(f, length, a.length, a.rows * sizeof *length);
}

/* Pages of 4: the last of 10 tokens is short, padding and what lies beyond is left out, k cuts. */
static void test_expand_known(void **state)
{
    static const int32_t chosen[4][3] = {{2, 0, -1}, {1, 7, 2}, {-1, -1, -1}, {0, 1, 2}},
                         expected[4][8] = {{8, 9, 0, 1, 2, 3, -1, -1},
                                           {4, 5, 6, 7, 8, 9, -1, -1},
                                           {-1, -1, -1, -1, -1, -1, -1, -1},
                                           {0, 1, 2, 3, 4, 5, 6, 7}};
    static const uint32_t tokens[2] = {10, 10}, lengths[4] = {6, 6, 0, 8};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        int32_t index[4][8];
        uint32_t length[4];
        run_expand(f, (struct smg_page_expand_args){.rows = 4, .row_group = 2, .n_pages = 3, .page = 4, .k = 8}, chosen[0],
                   tokens, index[0], length);
        kf_same(f, index, expected, sizeof index);
        kf_same(f, length, lengths, sizeof length);
    }
}

static void test_expand(void **state)
{
    static const uint32_t sizes[] = {0, 1, 31, 32, 33, 64, 65};
    static int32_t chosen[6 * 65], got[6 * 700], expected[6 * 700];
    static uint32_t length[6], lengths[6];
    uint32_t seed = 61;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] * 4; i++) {
        static const uint32_t pages[4] = {1, 3, 16, 33}, most[4] = {0, 33, 700, 200};
        struct smg_page_expand_args a = {.rows = 6, .row_group = 3, .n_pages = sizes[i / 4], .page = pages[i % 4]};
        uint32_t tokens[2] = {a.n_pages * a.page / 2 + 3, a.page * 5};
        a.k = most[(i + i / 4) % 4];
        for (uint32_t c = 0; c < 6 * a.n_pages; c++)
            chosen[c] = (int32_t)(kf_random(&seed) % (a.n_pages + 2)) - 1;
        FOR_EACH_BACKEND(f)
        {
            run_expand(f, a, chosen, tokens, kf_reference(f) ? expected : got, kf_reference(f) ? lengths : length);
            if (kf_reference(f))
                continue;
            kf_same(f, got, expected, (size_t)6 * a.k * sizeof *got);
            kf_same(f, length, lengths, sizeof length);
        }
    }
}

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_page_update_args u = {.first = UINT32_MAX, .count = 1, .kv_heads = 1, .head_dim = 1};
        struct smg_page_scores_args s = {.requests = 1, .q_heads = 1, .kv_heads = 2, .head_dim = 8, .max_pages = 1};
        struct smg_page_expand_args e = {.rows = 1, .row_group = 0, .n_pages = 1, .page = 1, .k = 1};
        sf_refused(f, smg_page_update(f->k, &u, NULL), "page_update: page is 0");
        u.page = 16;
        sf_refused(f, smg_page_update(f->k, &u, NULL), "page_update: first");
        u.type = (enum smg_dtype)9;
        sf_refused(f, smg_page_update(f->k, &u, NULL), "page_update: 9 is no type");
        sf_refused(f, smg_page_scores(f->k, &s, NULL), "page_scores: 1 query heads");
        s.head_dim = 2000;
        sf_refused(f, smg_page_scores(f->k, &s, NULL), "page_scores: head_dim 2000");
        sf_refused(f, smg_page_expand(f->k, &e, NULL), "page_expand: row_group is 0");
        e.row_group = 1;
        e.page = 0;
        sf_refused(f, smg_page_expand(f->k, &e, NULL), "page_expand: page is 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update),    cmocka_unit_test(test_golden),       cmocka_unit_test(test_page_scores),
        cmocka_unit_test(test_dominates), cmocka_unit_test(test_expand_known), cmocka_unit_test(test_expand),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
