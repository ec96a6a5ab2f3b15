/* Pools: first come, first served; what can never fit is refused at once; a small request does not overtake a large one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/pool.h"
#include "core/status.h"

static void assert_next(struct smg_pool *p, uint32_t request, uint32_t op, uint64_t bytes)
{
    uint32_t got_request, got_op;
    uint64_t got_bytes;

    assert_int_equal(smg_pool_next(p, &got_request, &got_op, &got_bytes), 1);
    assert_int_equal(got_request, request);
    assert_int_equal(got_op, op);
    assert_int_equal(got_bytes, bytes);
}

static void assert_nobody(struct smg_pool *p)
{
    uint32_t request, op;
    uint64_t bytes;

    assert_int_equal(smg_pool_next(p, &request, &op, &bytes), 0);
}

static void test_grants_until_full(void **state)
{
    struct smg_pool p;

    (void)state;
    smg_pool_init(&p, 100);
    assert_int_equal(smg_pool_ask(&p, 0, 1, 60), SMG_OK);
    assert_int_equal(smg_pool_ask(&p, 1, 2, 40), SMG_OK);
    assert_int_equal(p.used_bytes, 100);
    assert_int_equal(smg_pool_ask(&p, 2, 3, 1), SMG_ERR_RANGE);
    assert_nobody(&p);
    smg_pool_give(&p, 60);
    assert_next(&p, 2, 3, 1);
    assert_int_equal(p.used_bytes, 41);
    assert_nobody(&p);
    smg_pool_free(&p);
}

static void test_refuses_what_never_fits(void **state)
{
    struct smg_pool p;

    (void)state;
    smg_pool_init(&p, 100);
    assert_int_equal(smg_pool_ask(&p, 0, 1, 101), SMG_ERR_CAPACITY);
    assert_int_equal(smg_pool_ask(&p, 1, 2, UINT64_MAX), SMG_ERR_CAPACITY);
    assert_int_equal(smg_pool_ask(&p, 2, 3, 100), SMG_OK);
    assert_int_equal(p.used_bytes, 100);
    smg_pool_free(&p);
}

/* Request 2 would fit beside request 0, and waits for request 1 all the same. */
static void test_first_come_first_served(void **state)
{
    struct smg_pool p;

    (void)state;
    smg_pool_init(&p, 100);
    assert_int_equal(smg_pool_ask(&p, 0, 7, 50), SMG_OK);
    assert_int_equal(smg_pool_ask(&p, 1, 8, 90), SMG_ERR_RANGE);
    assert_int_equal(smg_pool_ask(&p, 2, 9, 10), SMG_ERR_RANGE);
    assert_int_equal(smg_pool_ask(&p, 3, 10, 101), SMG_ERR_CAPACITY);
    assert_nobody(&p);
    smg_pool_give(&p, 50);
    assert_next(&p, 1, 8, 90);
    assert_next(&p, 2, 9, 10);
    assert_nobody(&p);
    /* The queue is usable again after it was emptied. */
    assert_int_equal(smg_pool_ask(&p, 4, 11, 5), SMG_ERR_RANGE);
    smg_pool_give(&p, 10);
    assert_next(&p, 4, 11, 5);
    smg_pool_give(&p, 95);
    assert_int_equal(p.used_bytes, 0);
    smg_pool_free(&p);
}

static void test_free_drops_who_waits(void **state)
{
    struct smg_pool p;

    (void)state;
    smg_pool_init(&p, 1);
    assert_int_equal(smg_pool_ask(&p, 0, 1, 1), SMG_OK);
    for (uint32_t i = 1; i < 10; i++)
        assert_int_equal(smg_pool_ask(&p, i, 1 + i, 1), SMG_ERR_RANGE);
    smg_pool_free(&p);
    assert_nobody(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grants_until_full),
        cmocka_unit_test(test_refuses_what_never_fits),
        cmocka_unit_test(test_first_come_first_served),
        cmocka_unit_test(test_free_drops_who_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
