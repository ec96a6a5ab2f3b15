/* Pieces of a store: without a reserve each is the heap's; with one they are cut from it, reused by size, and do not overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/status.h"
#include "core/store.h"

static int all_are(const uint8_t *piece, size_t bytes, uint8_t value)
{
    for (size_t i = 0; i < bytes; i++)
        if (piece[i] != value)
            return 0;
    return 1;
}

static int within(const struct smg_store *s, const void *piece)
{
    return (const uint8_t *)piece >= s->base && (const uint8_t *)piece < s->base + s->bytes;
}

static void test_heap(void **state)
{
    struct smg_store s = {0};
    uint8_t *a = smg_store_take(NULL, 100), *b = smg_store_take(&s, 100);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_true(all_are(a, 100, 0) && all_are(b, 100, 0));
    memset(a, 1, 100);
    a = smg_store_fit(NULL, a, 10);
    assert_true(all_are(a, 10, 1));
    smg_store_give(NULL, a);
    smg_store_give(&s, b);
    smg_store_give(&s, NULL);
    assert_null(smg_store_take(&s, UINT64_MAX));
    smg_store_free(&s);
}

static void test_reuse(void **state)
{
    struct smg_store s = {0};
    uint8_t *a, *b;

    (void)state;
    assert_int_equal(smg_store_reserve(&s, smg_store_cost(1000) + smg_store_cost(10)), SMG_OK);
    a = smg_store_take(&s, 1000);
    memset(a, 0xff, 1000);
    b = smg_store_take_raw(&s, 10);
    assert_true(within(&s, a) && within(&s, b));
    assert_int_equal(s.used, s.bytes);
    smg_store_give(&s, a);
    a = smg_store_take(&s, 990); /* of the same size */
    assert_true(within(&s, a) && all_are(a, 990, 0));
    smg_store_give(&s, b);
    smg_store_give(&s, a);
    smg_store_free(&s);
    assert_null(s.base);
}

/* What the reserve has no room for is the heap's. */
static void test_more(void **state)
{
    struct smg_store s = {0};
    uint8_t *a, *b;

    (void)state;
    assert_int_equal(smg_store_reserve(&s, smg_store_cost(40)), SMG_OK);
    a = smg_store_take(&s, 40);
    b = smg_store_take(&s, 40);
    assert_true(within(&s, a) && !within(&s, b) && all_are(b, 40, 0));
    smg_store_give(&s, a);
    smg_store_give(&s, b);
    a = smg_store_take(&s, 40);
    assert_true(within(&s, a));
    smg_store_give(&s, a);
    smg_store_free(&s);
}

static void test_fit(void **state)
{
    struct smg_store s = {0};
    uint8_t *a, *b;

    (void)state;
    assert_int_equal(smg_store_reserve(&s, smg_store_cost(1000) + smg_store_cost(20)), SMG_OK);
    a = smg_store_take(&s, 1000);
    memset(a, 7, 1000);
    b = smg_store_fit(&s, a, 20);
    assert_true(within(&s, b) && b != a && all_are(b, 20, 7));
    assert_ptr_equal(smg_store_fit(&s, b, 19), b);
    assert_ptr_equal(smg_store_take_raw(&s, 900), a);
    smg_store_free(&s);
}

/* The sum of what all pieces cost lasts, whatever is given back in between. */
static void test_sum_lasts(void **state)
{
    enum { PIECES = 400 };
    static uint8_t *piece[PIECES];
    static size_t bytes[PIECES];
    struct smg_store s = {0};
    uint64_t sum = 0;

    (void)state;
    for (size_t i = 0; i < PIECES; i++) {
        bytes[i] = 1 + smg_hash2(i, 3) % 5000;
        sum += smg_store_cost(bytes[i]);
    }
    assert_int_equal(smg_store_reserve(&s, sum), SMG_OK);
    for (size_t i = 0; i < PIECES; i++) {
        size_t other = i ? smg_hash2(i, 5) % i : 0;
        piece[i] = smg_store_take_raw(&s, bytes[i]);
        assert_true(within(&s, piece[i]));
        assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
        memset(piece[i], (int)(i % 251), bytes[i]);
        if (i % 3 == 0 && piece[other]) {
            assert_true(all_are(piece[other], bytes[other], (uint8_t)(other % 251)));
            smg_store_give(&s, piece[other]);
            piece[other] = NULL;
        }
    }
    for (size_t i = 0; i < PIECES; i++)
        if (piece[i])
            assert_true(all_are(piece[i], bytes[i], (uint8_t)(i % 251)));
    smg_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap), cmocka_unit_test(test_reuse),     cmocka_unit_test(test_more),
        cmocka_unit_test(test_fit),  cmocka_unit_test(test_sum_lasts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
