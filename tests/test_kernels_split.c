/* Algorithm 1 on every backend: golden vector, the properties of a split, and row by row the same as core/split.h. All exact. */
#include "core/split.h"
#include "tests/kernel_fixture.h"

/* One call; entries of the three outputs per row. kept_words 0: no bitmap. */
struct split_case {
    uint32_t rows, heads, k, width, kept_words;
    int32_t *index;
    int8_t *mask;
    uint64_t *kept;
};

struct split_out {
    int32_t *index;
    uint32_t *n_remote, *n_local;
    uint8_t *remote;
};

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 1);

    assert_non_null(p);
    return p;
}

static struct split_out out_room(const struct split_case *c)
{
    const size_t n = (size_t)c->rows * c->k;

    return (struct split_out){room(n * 4), room(c->rows * 4), room(c->rows * 4), room(n)};
}

static void out_free(struct split_out *o)
{
    free(o->index);
    free(o->n_remote);
    free(o->n_local);
    free(o->remote);
}

/* What core says, and the flags that follow from it. */
static void expect(const struct split_case *c, int reorder, struct split_out *o)
{
    int32_t *remote = room(c->k * 4);

    for (uint32_t r = 0; r < c->rows; r++) {
        const size_t at = (size_t)r * c->k;
        uint32_t next = 0;
        smg_split_row(c->index + at, c->k, c->mask + (size_t)(r / c->heads) * c->width, c->width,
                      c->kept_words ? c->kept + (size_t)r * c->kept_words : NULL, reorder, o->index + at, remote, &o->n_remote[r],
                      NULL, &o->n_local[r]);
        /* Ids may come more than once, then all are alike; remote[] is a subsequence of the output. */
        for (uint32_t i = 0; i < c->k; i++) {
            o->remote[at + i] = next < o->n_remote[r] && o->index[at + i] == remote[next];
            next += o->remote[at + i];
        }
        assert_int_equal(next, o->n_remote[r]);
    }
    free(remote);
}

/* Nothing lost, nothing made up, order kept: walks the input once beside both parts of the output. */
static void check_properties(const struct split_case *c, const struct split_out *o)
{
    for (uint32_t r = 0; r < c->rows; r++) {
        const int32_t *in = c->index + (size_t)r * c->k, *out = o->index + (size_t)r * c->k;
        const int8_t *mask = c->mask + (size_t)(r / c->heads) * c->width;
        uint32_t remote = 0, local = 0;
        for (uint32_t i = 0; i < c->k; i++) {
            int kept;
            if (in[i] < 0 || in[i] >= (int64_t)c->width || (mask[in[i]] != 1 && mask[in[i]] != 2))
                continue; /* dropped */
            kept = c->kept_words && (c->kept[(size_t)r * c->kept_words + (uint32_t)in[i] / 64] >> (in[i] % 64) & 1);
            if (mask[in[i]] == 2 && !kept)
                assert_int_equal(out[remote++], in[i]);
            else
                assert_int_equal(out[o->n_remote[r] + local++], in[i]);
        }
        assert_int_equal(remote, o->n_remote[r]);
        assert_int_equal(local, o->n_local[r]);
        for (uint32_t i = remote + local; i < c->k; i++)
            assert_int_equal(out[i], -1);
    }
}

static void run(struct kernel_fixture *f, const struct split_case *c, int reorder, int flags, struct split_out *got)
{
    const size_t n = (size_t)c->rows * c->k;
    struct smg_split_args a = {.rows = c->rows,
                               .heads = c->heads,
                               .k = c->k,
                               .width = c->width,
                               .index = kf_in(f, c->index, n * 4),
                               .mask = kf_in(f, c->mask, (size_t)c->rows / c->heads * c->width),
                               .kept = c->kept_words ? kf_in(f, c->kept, (size_t)c->rows * c->kept_words * 8) : NULL,
                               .kept_words = c->kept_words,
                               .reorder = reorder,
                               .out_index = kf_out(f, n * 4),
                               .n_remote = kf_out(f, c->rows * 4),
                               .n_local = kf_out(f, c->rows * 4),
                               .remote = flags ? kf_out(f, n) : NULL};

    kf_ok(f, smg_split(f->k, &a, NULL));
    kf_get(f, got->index, a.out_index, n * 4);
    kf_get(f, got->n_remote, a.n_remote, c->rows * 4);
    kf_get(f, got->n_local, a.n_local, c->rows * 4);
    if (flags)
        kf_get(f, got->remote, a.remote, n);
}

static void check(const struct split_case *c)
{
    const size_t n = (size_t)c->rows * c->k;
    struct split_out expected = out_room(c), got = out_room(c);

    for (int how = 0; how < 4; how++) {
        expect(c, how & 1, &expected);
        if (how & 1)
            check_properties(c, &expected);
        FOR_EACH_BACKEND(f)
        {
            run(f, c, how & 1, how & 2, &got);
            kf_same(f, got.n_remote, expected.n_remote, c->rows * 4);
            kf_same(f, got.n_local, expected.n_local, c->rows * 4);
            kf_same(f, got.index, expected.index, n * 4);
            if (how & 2)
                kf_same(f, got.remote, expected.remote, n);
        }
    }
    out_free(&expected);
    out_free(&got);
}

/* ---- Cases ---- */

static void test_golden(void **state)
{
    static int8_t mask[12] = {1, 1, 2, 1, 2, 2, 1, 1, 2, 1, 2, 1};
    static int32_t index[2][6] = {{7, 1, 4, 8, 9, 11}, {5, 2, 0, 10, 3, 8}};
    static const int32_t expected[2][6] = {{4, 8, 7, 1, 9, 11}, {5, 2, 10, 8, 0, 3}};
    static const uint8_t flags[2][6] = {{1, 1, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0}};
    static const uint32_t n_remote[2] = {2, 4}, n_local[2] = {4, 2};
    struct split_case c = {.rows = 2, .heads = 2, .k = 6, .width = 12, .index = index[0], .mask = mask};
    struct split_out got = out_room(&c);

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        run(f, &c, 1, 1, &got);
        kf_same(f, got.index, expected, sizeof expected);
        kf_same(f, got.remote, flags, sizeof flags);
        kf_same(f, got.n_remote, n_remote, sizeof n_remote);
        kf_same(f, got.n_local, n_local, sizeof n_local);
    }
    out_free(&got);
    check(&c);
}

/* Which entries are where: a bit each of absent, local, remote. */
enum { ABSENT = 1, LOCAL = 2, REMOTE = 4, ODD = 8 };

/* How ids are drawn: any, also out of range and twice; or each at most once. */
static void random_case(uint32_t *seed, uint32_t rows, uint32_t heads, uint32_t k, uint32_t width, int masks, int kept, int wild)
{
    const uint32_t words = kept ? (width + 63) / 64 + kept - 1 : 0, requests = rows / heads;
    struct split_case c = {
        rows, heads, k, width, words, room((size_t)rows * k * 4), room((size_t)requests * width), room((size_t)rows * words * 8)};

    for (size_t i = 0; i < (size_t)requests * width; i++) {
        static const int8_t value[] = {0, 1, 2, 3};
        int which;
        do
            which = (int)(kf_random(seed) % 4);
        while (!(masks >> which & 1));
        c.mask[i] = which == 3 ? (int8_t)(kf_random(seed) % 250 + 3) : value[which]; /* 3 .. 252: none of the three */
    }
    for (size_t i = 0; i < (size_t)rows * words; i++)
        c.kept[i] = (uint64_t)kf_random(seed) << 32 | kf_random(seed);
    for (size_t i = 0; i < (size_t)rows * k; i++) {
        uint32_t x = kf_random(seed) >> 8;
        c.index[i] = wild && x % 7 == 0  ? (int32_t[]){-1, INT32_MIN, INT32_MAX, (int32_t)width}[x / 7 % 4]
                     : wild || k > width ? (width ? (int32_t)(x % width) : 0)
                                         : (int32_t)((i % k * 7919 + i / k) % width);
    }
    check(&c);
    free(c.index);
    free(c.mask);
    free(c.kept);
}

/* Lengths around a vector, a warp, and the largest block of threads; widths around a word of the mask. */
static void test_random(void **state)
{
    static const uint32_t ks[] = {0, 1, 3, 7, 8, 9, 15, 17, 31, 32, 33, 100, 255, 257};
    static const uint32_t widths[] = {0, 1, 2, 3, 4, 5, 63, 64, 65, 300};
    uint32_t seed = 3;

    (void)state;
    for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            random_case(&seed, 2, 1 + k % 2, ks[k], widths[w], ABSENT | LOCAL | REMOTE | ODD, (int)(k + w) % 3, 1);
}

static void test_large_rows(void **state)
{
    static const uint32_t ks[] = {991, 993, 1023, 1024, 1025, 2049};
    uint32_t seed = 4;

    (void)state;
    for (int k = 0; k < 6; k++)
        random_case(&seed, 3, 3, ks[k], 4099, LOCAL | REMOTE, k % 2, k / 3);
}

/* One kind only: the other part is empty, or all is padding. */
static void test_one_kind(void **state)
{
    uint32_t seed = 6;

    (void)state;
    random_case(&seed, 4, 2, 40, 50, ABSENT, 0, 0);
    random_case(&seed, 4, 2, 40, 50, LOCAL, 0, 0);
    random_case(&seed, 4, 2, 40, 50, REMOTE, 0, 0);
    random_case(&seed, 4, 4, 40, 50, REMOTE, 1, 0);
    random_case(&seed, 4, 4, 40, 50, ODD, 2, 0);
}

/* Enough rows for all threads of the cpu backend, in pieces of several rows. */
static void test_many_rows(void **state)
{
    uint32_t seed = 8;

    (void)state;
    random_case(&seed, 24, 2, 2000, 40, LOCAL | REMOTE | ABSENT, 0, 1); /* 9 rows a piece */
    random_case(&seed, 600, 3, 15, 40, LOCAL | REMOTE | ABSENT, 1, 1);
}

static void test_refused(void **state)
{
    int32_t index[4] = {0};
    uint64_t kept[1] = {0};

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_split_args a = {.rows = 4, .heads = 3, .k = 1, .width = 65, .index = index};
        assert_int_equal(smg_split(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "split: 4 rows are no multiple of 3 heads");
        a.heads = 0;
        assert_int_equal(smg_split(f->k, &a, NULL), SMG_ERR_INVALID);
        a.heads = 4;
        a.kept = kept;
        a.kept_words = 1;
        assert_int_equal(smg_split(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "split: 1 words of kept entries are too few for 65 tokens");
        a.kept_words = 2;
        a.out_index = index;
        assert_int_equal(smg_split(f->k, &a, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "split: out_index may not be index");
        a.rows = 0;
        kf_ok(f, smg_split(f->k, &a, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),   cmocka_unit_test(test_random),    cmocka_unit_test(test_large_rows),
        cmocka_unit_test(test_one_kind), cmocka_unit_test(test_many_rows), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
