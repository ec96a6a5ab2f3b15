/* Attention on every backend: against dense attention in double, the promise that only the sequence of entries matters,
 * permutations, merging by lse, and sizes at the edges of tiles. */
#include "tests/attend_fixture.h"

/* ---- Against dense attention ---- */

static void check_dense(enum smg_dtype type, uint32_t group, uint32_t d, uint32_t entries, uint32_t splits)
{
    uint32_t seed = 1 + (uint32_t)type + 7 * group + 31 * d + 1009 * entries;
    struct sequences s = make(&seed, type, 1, 2, group, d, entries);
    struct result expected = result_of(&s), got = result_of(&s);

    dense(&s, expected.out, expected.lse);
    FOR_EACH_BACKEND(f)
    {
        attend(f, &s, &whole, splits, got.out, got.lse);
        close_to(f, &s, &got, &expected);
    }
    drop_result(&expected);
    drop_result(&got);
    drop(&s);
}

static void test_entries(void **state)
{
    static const uint32_t entries[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 257};

    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        for (int type = SMG_F32; type <= SMG_BF16; type++)
            check_dense((enum smg_dtype)type, 1 + (uint32_t)i % 5, 16, entries[i], 0);
}

/* Multiples of 8, whole vectors or not; others; the widest. */
static void test_head_dim(void **state)
{
    static const uint32_t d[] = {1,  2,  3,  4,  7,  8,  9,  12,  15,  17,  24,  31, 32,
                                 33, 40, 64, 65, 72, 80, 96, 100, 128, 250, 255, 256};

    (void)state;
    for (size_t i = 0; i < sizeof d / sizeof d[0]; i++)
        for (int type = SMG_F32; type <= SMG_BF16; type++)
            check_dense((enum smg_dtype)type, 1 + (uint32_t)i % 4, d[i], 70, 0);
}

static void test_group(void **state)
{
    (void)state;
    for (uint32_t group = 1; group <= 19; group++)
        check_dense((enum smg_dtype)(group % 3), group, 24, 77, group % 3);
}

static void test_splits(void **state)
{
    static const uint32_t splits[] = {1, 2, 3, 4, 5, 6, 7, 100, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++)
        check_dense(SMG_BF16, 2, 32, 64 * 6 - 5, splits[i]);
}

/* Property (g): all entries selected, so many that parts have three tiles: 44 parts. */
static void test_full_selection(void **state)
{
    (void)state;
    check_dense(SMG_F32, 5, 8, 64 * 64 * 2 + 65, 0);
}

/* Requests of different length, also none, in runs whose memory holds NaN where no entry is. */
static void test_ragged(void **state)
{
    static const uint32_t length[8] = {0, 1, 200, 64, 65, 0, 0, 129};

    (void)state;
    for (int type = SMG_F32; type <= SMG_BF16; type++) {
        uint32_t seed = 5;
        struct sequences s = make(&seed, (enum smg_dtype)type, 4, 2, 3, 20, 200);
        struct result expected = result_of(&s), got = result_of(&s);
        memcpy(s.length, length, sizeof length);
        dense(&s, expected.out, expected.lse);
        for (uint32_t q = 0; q < 3; q++)
            assert_true(expected.lse[q] == -INFINITY && expected.out[q * s.d] == 0);
        FOR_EACH_BACKEND(f)
        {
            attend(f, &s, &whole, 0, got.out, got.lse);
            close_to(f, &s, &got, &expected);
        }
        drop_result(&expected);
        drop_result(&got);
        drop(&s);
    }
}

/* ---- Only the sequence matters ---- */

static void same(struct kernel_fixture *f, const struct sequences *s, const struct result *got, const struct result *expected)
{
    kf_same(f, got->out, expected->out, outputs_of(s) * sizeof(float));
    kf_same(f, got->lse, expected->lse, (size_t)rows_of(s) * s->group * sizeof(float));
}

static int by_size(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static struct cut random_cut(uint32_t *seed, uint32_t runs, uint32_t most)
{
    struct cut cut = {runs, {0}};

    for (uint32_t i = 1; i < runs; i++)
        cut.at[i] = kf_random(seed) % (most + 1);
    qsort(cut.at + 1, runs - 1, sizeof cut.at[0], by_size);
    cut.at[runs] = UINT32_MAX;
    return cut;
}

/* The same entries in 1 to 4 runs, cut anywhere, laid out either way, with max_length larger than needed: equal bits. */
static void test_cut_of_runs(void **state)
{
    static const uint32_t length[4] = {333, 64, 1, 300};

    (void)state;
    for (int type = SMG_F32; type <= SMG_BF16; type++) {
        uint32_t seed = 11 + (uint32_t)type;
        struct sequences s = make(&seed, (enum smg_dtype)type, 2, 2, 5, type == SMG_F16 ? 20 : 24, 333);
        struct result one = result_of(&s), got = result_of(&s);
        memcpy(s.length, length, sizeof length);
        FOR_EACH_BACKEND(f)
        {
            for (uint32_t i = 0; i < 12; i++) {
                struct cut cut = random_cut(&seed, 2 + i % 3, s.most);
                uint32_t splits = i < 6 ? 0 : 3;
                if (i % 6 == 0)
                    attend(f, &s, &whole, splits, one.out, one.lse);
                attend(f, &s, &cut, splits, got.out, got.lse);
                same(f, &s, &got, &one);
            }
        }
        drop_result(&one);
        drop_result(&got);
        drop(&s);
    }
}

/* A row alone gives the bits that it gives beside longer ones. */
static void test_other_rows(void **state)
{
    uint32_t seed = 3;
    struct sequences s = make(&seed, SMG_F32, 3, 2, 4, 16, 500), alone;
    struct result all = result_of(&s), got;

    (void)state;
    s.length[2] = 150;
    alone = s;
    alone.requests = alone.kv_heads = 1;
    alone.length = &s.length[2];
    alone.q = (float *)s.q + 2 * s.group * s.d;
    alone.k = (float *)s.k + (size_t)2 * s.most * s.d;
    alone.v = (float *)s.v + (size_t)2 * s.most * s.d;
    got = result_of(&alone);
    FOR_EACH_BACKEND(f)
    {
        for (uint32_t splits = 0; splits < 4; splits++) {
            attend(f, &s, &whole, splits, all.out, all.lse);
            attend(f, &alone, &whole, splits, got.out, got.lse);
            kf_same(f, got.out, all.out + 2 * s.group * s.d, s.group * s.d * sizeof(float));
            kf_same(f, got.lse, all.lse + 2 * s.group, s.group * sizeof(float));
        }
    }
    drop_result(&got);
    drop_result(&all);
    drop(&s);
}

#ifndef SMG_KERNEL_TEST_CUDA_ONLY
static void test_threads(void **state)
{
    uint32_t seed = 21;
    struct sequences s = make(&seed, SMG_BF16, 2, 3, 5, 40, 400);
    struct result one = result_of(&s), got = result_of(&s);

    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        const struct smg_kernels_options options = {.threads = threads};
        struct kernel_fixture f = {0};
        struct smg_diag diag;
        assert_int_equal(smg_kernels_open("cpu", &options, &f.k, &diag), SMG_OK);
        attend(&f, &s, &whole, 0, threads == 1 ? one.out : got.out, threads == 1 ? one.lse : got.lse);
        if (threads > 1)
            same(&f, &s, &got, &one);
        smg_kernels_close(f.k);
    }
    drop_result(&one);
    drop_result(&got);
    drop(&s);
}
#endif

/* Another order of entries: rounding alone, on both sides of the expected value. */
static void test_permutation(void **state)
{
    uint32_t seed = 31;
    struct sequences s = make(&seed, SMG_F16, 1, 1, 4, 32, 300);
    const size_t bytes = s.d * smg_dtype_bytes(s.type);
    struct result expected = result_of(&s), got = result_of(&s);
    char swap[64];

    (void)state;
    assert_true(bytes <= sizeof swap);
    dense(&s, expected.out, expected.lse);
    for (uint32_t j = s.most - 1; j; j--) { /* Fisher and Yates */
        uint32_t i = kf_random(&seed) % (j + 1);
        for (int side = 0; side < 2; side++) {
            char *x = side ? s.k : s.v;
            memcpy(swap, x + i * bytes, bytes);
            memcpy(x + i * bytes, x + j * bytes, bytes);
            memcpy(x + j * bytes, swap, bytes);
        }
    }
    FOR_EACH_BACKEND(f)
    {
        attend(f, &s, &whole, 0, got.out, got.lse);
        close_to(f, &s, &got, &expected);
    }
    drop_result(&expected);
    drop_result(&got);
    drop(&s);
}

/* Two calls on parts of the sequence, merged as smg_attend.h says. */
static void test_merge_by_lse(void **state)
{
    uint32_t seed = 41;
    struct sequences s = make(&seed, SMG_F32, 1, 2, 3, 16, 210);
    struct result expected = result_of(&s), first = result_of(&s), second = result_of(&s);

    (void)state;
    dense(&s, expected.out, expected.lse);
    for (uint32_t at = 0; at <= 210; at += 70) {
        const struct cut head = {1, {0, at}}, tail = {1, {at, UINT32_MAX}};
        FOR_EACH_BACKEND(f)
        {
            attend(f, &s, &head, 0, first.out, first.lse);
            attend(f, &s, &tail, 0, second.out, second.lse);
            for (size_t i = 0; i < outputs_of(&s); i++) {
                double a = exp((double)first.lse[i / s.d]), b = exp((double)second.lse[i / s.d]);
                first.out[i] = (float)((a * (double)first.out[i] + b * (double)second.out[i]) / (a + b));
            }
            kf_close(f, first.out, expected.out, outputs_of(&s), TOLERANCE, 0);
        }
    }
    drop_result(&expected);
    drop_result(&first);
    drop_result(&second);
    drop(&s);
}

/* ---- Sizes ---- */

static void test_nothing_to_do(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        float *out = kf_out(f, 64 * sizeof *out), *lse = kf_out(f, 8 * sizeof *lse), got[64];
        struct smg_attention_args a = {.q_heads = 4, .kv_heads = 2, .head_dim = 8, .out = out, .lse = lse};
        kf_ok(f, smg_attention(f->k, &a, NULL)); /* no request */
        a.requests = 2;
        a.q_heads = a.kv_heads = 0;
        kf_ok(f, smg_attention(f->k, &a, NULL));
        a.q_heads = a.kv_heads = 4;
        a.head_dim = 0;
        kf_ok(f, smg_attention(f->k, &a, NULL));
        kf_get(f, got, out, sizeof got);
        for (int i = 0; i < 64; i++)
            assert_true(isnan(got[i]));
        a.head_dim = 8; /* no run: zeros */
        a.q = out;
        a.lse = NULL;
        kf_ok(f, smg_attention(f->k, &a, NULL));
        kf_get(f, got, out, sizeof got);
        for (int i = 0; i < 64; i++)
            assert_true(got[i] == 0);
    }
}

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_attention_args good = {.requests = 1, .q_heads = 4, .kv_heads = 2, .head_dim = 8, .n_runs = 1}, a;
        const char *const why[] = {"type", "head_dim 257", "5 runs", "multiple of kv_heads", "multiple", "entries", "too many"};
        for (size_t i = 0; i < sizeof why / sizeof why[0]; i++) {
            a = good;
            switch (i) {
            case 0:
                a.type = (enum smg_dtype)3;
                break;
            case 1:
                a.head_dim = 257;
                break;
            case 2:
                a.n_runs = 5;
                break;
            case 3:
                a.kv_heads = 3;
                break;
            case 4:
                a.kv_heads = 0;
                break;
            case 5:
                a.n_runs = 2;
                a.run[0].max_length = a.run[1].max_length = 0x40000000;
                break;
            default:
                a.requests = 0x20000000;
                a.run[0].max_length = 1000;
            }
            assert_int_equal(smg_attention(f->k, &a, NULL), SMG_ERR_INVALID);
            assert_non_null(strstr(smg_kernels_diag(f->k), "attention: "));
            assert_non_null(strstr(smg_kernels_diag(f->k), why[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),     cmocka_unit_test(test_head_dim),       cmocka_unit_test(test_group),
        cmocka_unit_test(test_splits),      cmocka_unit_test(test_full_selection), cmocka_unit_test(test_ragged),
        cmocka_unit_test(test_cut_of_runs), cmocka_unit_test(test_other_rows),
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_merge_by_lse),   cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_refused),
#ifndef SMG_KERNEL_TEST_CUDA_ONLY
        cmocka_unit_test(test_threads),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
