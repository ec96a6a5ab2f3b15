/* Algorithm 1 (golden vector 1, and its properties over random cases) and the scatter plan. Everything here is exact. */
#include "tests/world_fixture.h"

#include "core/ledger.h"
#include "core/split.h"

#define ROW_MAX 64u
#define WIDTH_MAX 256u

struct split {
    int32_t row[ROW_MAX], remote[ROW_MAX], local[ROW_MAX];
    uint32_t n_remote, n_local;
};

static struct split split_of(const int32_t *index, uint32_t k, const int8_t *mask, uint32_t width, const uint64_t *kept,
                             int reorder)
{
    struct split s;

    memset(&s, 0x55, sizeof(s));
    smg_split_row(index, k, mask, width, kept, reorder, s.row, s.remote, &s.n_remote, s.local, &s.n_local);
    return s;
}

static void test_golden(void **state)
{
    static const int8_t mask[12] = {1, 1, 2, 1, 2, 2, 1, 1, 2, 1, 2, 1};
    static const int32_t index[2][6] = {{7, 1, 4, 8, 9, 11}, {5, 2, 0, 10, 3, 8}};
    static const int32_t reordered[2][6] = {{4, 8, 7, 1, 9, 11}, {5, 2, 10, 8, 0, 3}};
    static const uint32_t n_remote[2] = {2, 4};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct split s = split_of(index[i], 6, mask, 12, NULL, 1);

        assert_memory_equal(s.row, reordered[i], sizeof(reordered[i]));
        assert_int_equal(s.n_remote, n_remote[i]);
        assert_int_equal(s.n_local, 6 - n_remote[i]);
        assert_memory_equal(s.remote, reordered[i], n_remote[i] * sizeof(int32_t));
        assert_memory_equal(s.local, reordered[i] + n_remote[i], s.n_local * sizeof(int32_t));
        s = split_of(index[i], 6, mask, 12, NULL, 0);
        assert_memory_equal(s.row, index[i], sizeof(index[i]));
    }
}

static void test_generator(void **state)
{
    static const uint32_t expected[] = {270369, 67634689, 2647435461u, 307599695};
    static const float floats[] = {-0.9998741149902344f, -0.9685051441192627f, 0.23280811309814453f, -0.8567627668380737f};
    uint32_t a = 1, b = 1;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fixture_xorshift32(&a), expected[i]);
        assert_true(fixture_float(&b) == floats[i]);
    }
}

static void test_drops(void **state)
{
    static const int8_t mask[5] = {0, 1, 2, 7, -3};   /* values that are no mask value count as padding */
    static const int32_t index[] = {-1, 0, 2, 5, 1000000, 3, 1, 4, INT32_MIN};

    (void)state;
    for (int reorder = 0; reorder < 2; reorder++) {
        struct split s = split_of(index, 9, mask, 5, NULL, reorder);

        assert_true(s.n_remote == 1 && s.remote[0] == 2 && s.n_local == 1 && s.local[0] == 1);
        assert_true(s.row[0] == 2 && s.row[1] == 1);
        for (int i = 2; i < 9; i++) {
            assert_int_equal(s.row[i], -1);
        }
    }
    assert_int_equal(split_of(index, 0, mask, 5, NULL, 1).n_remote, 0);
}

static void test_kept(void **state)
{
    int8_t mask[130];
    uint64_t kept[3] = {0};
    const int32_t index[] = {63, 64, 128, 129, 5};
    struct split s;

    (void)state;
    memset(mask, SMG_MASK_REMOTE, sizeof(mask));
    mask[5] = SMG_MASK_PAD;   /* a kept bit does not bring back padding */
    kept[0] = UINT64_C(1) << 63 | UINT64_C(1) << 5;
    kept[2] = 1;
    s = split_of(index, 5, mask, 130, kept, 1);
    assert_true(s.n_remote == 2 && s.remote[0] == 64 && s.remote[1] == 129);
    assert_true(s.n_local == 2 && s.local[0] == 63 && s.local[1] == 128);
    mask[129] = SMG_MASK_LOCAL;   /* generated token, beyond the bitmap */
    assert_int_equal(split_of(index, 5, mask, 130, kept, 1).n_remote, 1);
}

struct random_case {
    int8_t mask[WIDTH_MAX];
    uint64_t kept[WIDTH_MAX / 64];
    int32_t index[ROW_MAX];
    uint32_t k, width;
    int use_kept;
};

/* Distinct tokens in random order, some replaced by padding. */
static void draw_index(struct random_case *c, uint32_t *rng)
{
    int32_t pool[WIDTH_MAX];

    for (uint32_t i = 0; i < c->width; i++) {
        pool[i] = (int32_t)i;
    }
    for (uint32_t i = 0; i < c->k; i++) {
        uint32_t j = i + fixture_xorshift32(rng) % (c->width - i);
        int32_t t = pool[j];

        pool[j] = pool[i];
        pool[i] = t;
        c->index[i] = fixture_xorshift32(rng) % 16 == 0 ? -1 : t;
    }
}

static void draw_case(struct random_case *c, uint32_t *rng)
{
    c->width = 1 + fixture_xorshift32(rng) % WIDTH_MAX;
    c->k = fixture_xorshift32(rng) % (1 + (c->width < ROW_MAX ? c->width : ROW_MAX));
    c->use_kept = fixture_xorshift32(rng) % 2 == 0;
    for (uint32_t i = 0; i < WIDTH_MAX; i++) {
        uint32_t r = fixture_xorshift32(rng) % 8;
        c->mask[i] = r == 0 ? SMG_MASK_PAD : r < 4 ? SMG_MASK_LOCAL : SMG_MASK_REMOTE;
    }
    for (uint32_t i = 0; i < WIDTH_MAX / 64; i++) {
        c->kept[i] = (uint64_t)fixture_xorshift32(rng) << 32 | fixture_xorshift32(rng);
    }
    draw_index(c, rng);
}

/* What the definition says about one entry. */
static int expected_value(const struct random_case *c, int32_t token)
{
    if (token < 0) {
        return SMG_MASK_PAD;
    }
    if (c->mask[token] == SMG_MASK_REMOTE && c->use_kept && (c->kept[token / 64] >> (token % 64) & 1)) {
        return SMG_MASK_LOCAL;
    }
    return c->mask[token];
}

/* Brute force: a filter per value, in input order. Covers union, disjointness, counts, stability, dropping and the bitmap at
 * once. */
static uint32_t filter(const struct random_case *c, int value, int32_t *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->k; i++) {
        if (expected_value(c, c->index[i]) == value) {
            out[n++] = c->index[i];
        }
    }
    return n;
}

static void check_case(const struct random_case *c)
{
    const uint64_t *kept = c->use_kept ? c->kept : NULL;
    struct split on = split_of(c->index, c->k, c->mask, c->width, kept, 1);
    struct split off = split_of(c->index, c->k, c->mask, c->width, kept, 0);
    int32_t remote[ROW_MAX], local[ROW_MAX];
    uint32_t n_remote = filter(c, SMG_MASK_REMOTE, remote), n_local = filter(c, SMG_MASK_LOCAL, local), at = 0;

    assert_true(on.n_remote == n_remote && on.n_local == n_local);
    assert_true(off.n_remote == n_remote && off.n_local == n_local);
    assert_memory_equal(on.remote, remote, n_remote * sizeof(int32_t));
    assert_memory_equal(on.local, local, n_local * sizeof(int32_t));
    assert_memory_equal(off.remote, remote, n_remote * sizeof(int32_t));
    assert_memory_equal(off.local, local, n_local * sizeof(int32_t));
    assert_memory_equal(on.row, remote, n_remote * sizeof(int32_t));
    assert_memory_equal(on.row + n_remote, local, n_local * sizeof(int32_t));
    for (uint32_t i = 0; i < c->k; i++) {
        if (expected_value(c, c->index[i]) != SMG_MASK_PAD) {
            assert_int_equal(off.row[at++], c->index[i]);
        }
    }
    assert_int_equal(at, n_remote + n_local);
    for (uint32_t i = at; i < c->k; i++) {
        assert_true(on.row[i] == -1 && off.row[i] == -1);
    }
    for (uint32_t i = c->k; i < ROW_MAX; i++) {
        assert_true(on.row[i] == 0x55555555 && off.row[i] == 0x55555555);   /* nothing is written behind the row */
    }
}

static void test_random_cases(void **state)
{
    uint32_t rng = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct random_case c;

        draw_case(&c, &rng);
        check_case(&c);
    }
}

static void test_optional_outputs(void **state)
{
    static const int8_t mask[3] = {1, 2, 2};
    static const int32_t index[3] = {0, 1, 2};
    uint32_t n_remote, n_local;

    (void)state;
    smg_split_row(index, 3, mask, 3, NULL, 1, NULL, NULL, &n_remote, NULL, &n_local);
    assert_true(n_remote == 2 && n_local == 1);
}

/* Lands a reply by its plan and compares: every byte of the reply once, at the row's place, in at most `limit` segments a
 * receive. */
static void check_plan(const uint32_t *rows, uint32_t heads, uint64_t half, uint64_t stride, uint32_t limit)
{
    struct smg_scatter_plan p;
    uint64_t v_offset = heads * stride, landed[2 * 8 * 256] = {0}, source = 0;
    uint32_t segments = 0, at = 0;

    assert_int_equal(smg_scatter_plan(rows, heads, half, stride, v_offset, limit, &p), SMG_OK);
    for (uint32_t i = 0; i < p.n_segments; i++) {
        assert_int_equal(p.segment[i].source_offset, source);
        for (uint64_t b = 0; b < p.segment[i].bytes; b++) {
            assert_true(p.segment[i].offset + b < 2 * v_offset);
            assert_int_equal(landed[p.segment[i].offset + b], 0);
            landed[p.segment[i].offset + b] = ++source;   /* number of the byte in the reply, from 1 */
        }
    }
    assert_int_equal(p.bytes, source);
    for (uint32_t half_at = 0; half_at < 2; half_at++) {   /* the reply is all K rows, then all V rows */
        for (uint32_t h = 0; h < heads; h++) {
            segments += rows[h] > 0;
            for (uint64_t b = 0; b < stride; b++) {
                uint64_t got = landed[half_at * v_offset + h * stride + b];
                assert_int_equal(got, b < rows[h] * half ? ++at : 0);
            }
        }
    }
    assert_int_equal(at, source);
    assert_int_equal(p.n_segments, segments);
    assert_int_equal(p.n_receives, segments / limit + (segments % limit > 0));
    assert_int_equal(p.n_receives, smg_scatter_receives(segments, limit));
    assert_int_equal(p.first[0], 0);
    assert_int_equal(p.first[p.n_receives], p.n_segments);
    for (uint32_t i = 0; i < p.n_receives; i++) {
        assert_true(p.first[i + 1] > p.first[i] && p.first[i + 1] - p.first[i] <= limit);
    }
    smg_scatter_free(&p);
    assert_null(p.segment);
}

static void test_scatter_plan(void **state)
{
    uint32_t rng = 3;

    (void)state;
    for (uint32_t limit = 1; limit <= 20; limit++) {
        for (int i = 0; i < 30; i++) {
            uint32_t rows[8], heads = 1 + fixture_xorshift32(&rng) % 8;

            for (uint32_t h = 0; h < heads; h++) {
                rows[h] = fixture_xorshift32(&rng) % 3 == 0 ? 0 : fixture_xorshift32(&rng) % 11;
            }
            check_plan(rows, heads, 16, 10 * 16 + fixture_xorshift32(&rng) % 97, limit);
        }
    }
    check_plan((const uint32_t[8]){0}, 8, 16, 160, 20);
}

/* ceil(2H/20): one receive for a layer of 8 heads, against one for every entry. */
static void test_scatter_receives(void **state)
{
    (void)state;
    assert_int_equal(smg_scatter_receives(2 * 8, 20), 1);
    assert_int_equal(smg_scatter_receives(2 * 11, 20), 2);
    assert_int_equal(smg_scatter_receives(2 * 32, 20), 4);
    assert_int_equal(smg_scatter_receives(0, 20), 0);
    assert_int_equal(smg_scatter_receives(UINT32_MAX, 1), UINT32_MAX);
}

static void test_scatter_refuses(void **state)
{
    struct smg_scatter_plan p;
    const uint32_t rows[] = {3, 5};

    (void)state;
    assert_int_equal(smg_scatter_plan(rows, 2, 16, 80, 160, 0, &p), SMG_ERR_INVALID);
    assert_int_equal(smg_scatter_plan(rows, 2, 16, 79, 160, 20, &p), SMG_ERR_RANGE);   /* 5 entries do not fit a row */
    assert_int_equal(smg_scatter_plan(rows, 2, UINT64_MAX / 2, 80, 160, 20, &p), SMG_ERR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_generator),
        cmocka_unit_test(test_drops),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_random_cases),
        cmocka_unit_test(test_optional_outputs),
        cmocka_unit_test(test_scatter_plan),
        cmocka_unit_test(test_scatter_receives),
        cmocka_unit_test(test_scatter_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
