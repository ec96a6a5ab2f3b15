/* Action and item arrays, names, and the order of simultaneous events. */
#include "tests/world_fixture.h"

#include "core/agent.h"

static void test_actions_grow(void **state)
{
    struct smg_actions a = {0};

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        struct smg_action *act = smg_actions_add(&a, SMG_ACT_WRITE);

        assert_non_null(act);
        act->op = i + 1;
        for (uint32_t j = 0; j < i % 4; j++) {
            struct smg_item item = {.request = i, .layer = (uint16_t)j, .first = 10 * i, .count = j};
            assert_int_equal(smg_actions_item(&a, &item), SMG_OK);
        }
    }
    assert_int_equal(a.n, 1000);
    assert_int_equal(a.n_items, 1500);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(a.action[i].kind == SMG_ACT_WRITE && a.action[i].op == i + 1 && a.action[i].n_items == i % 4);
        for (uint32_t j = 0; j < i % 4; j++) {
            assert_true(a.items[a.action[i].item_first + j].request == i && a.items[a.action[i].item_first + j].layer == j);
        }
    }
    smg_actions_free(&a);
    assert_true(a.action == NULL && a.items == NULL && a.cap == 0);
    smg_actions_free(&a);
}

/* A reused array gives actions without a trace of earlier steps, padding included. */
static void test_actions_are_zeroed(void **state)
{
    struct smg_actions a = {0};
    struct smg_action zero;

    (void)state;
    memset(&zero, 0, sizeof(zero));
    zero.kind = SMG_ACT_SEND;
    assert_non_null(smg_actions_add(&a, SMG_ACT_COPY));
    memset(a.action, 0xab, sizeof(*a.action));
    a.n = 0;
    assert_non_null(smg_actions_add(&a, SMG_ACT_SEND));
    assert_memory_equal(&a.action[0], &zero, sizeof(zero));
    smg_actions_free(&a);
}

static void test_item_needs_an_action(void **state)
{
    struct smg_actions a = {0};
    struct smg_item item = {0};

    (void)state;
    assert_int_equal(smg_actions_item(&a, &item), SMG_ERR_INVALID);
    assert_null(a.items);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(smg_event_name(SMG_EV_KV_READY), "kv_ready");
    assert_string_equal(smg_action_name(SMG_ACT_FAIL), "fail");
    assert_string_equal(smg_purpose_name(SMG_FOR_LOCAL_GATHER), "local_gather");
    assert_string_equal(smg_message_name(SMG_MSG_FAILED), "failed");
    for (uint32_t i = 0; i <= SMG_EV_CANCEL; i++) {
        assert_string_not_equal(smg_event_name(i), "unknown");
    }
    for (uint32_t i = 0; i <= SMG_ACT_FAIL; i++) {
        assert_string_not_equal(smg_action_name(i), "unknown");
    }
    for (uint32_t i = 0; i <= SMG_FOR_DISPATCH; i++) {
        assert_string_not_equal(smg_purpose_name(i), "unknown");
    }
    for (uint32_t i = 0; i <= SMG_MSG_FAILED; i++) {
        assert_string_not_equal(smg_message_name(i), "unknown");
    }
    assert_string_equal(smg_event_name(SMG_EV_CANCEL + 1), "unknown");
    assert_string_equal(smg_action_name(UINT32_MAX), "unknown");
    assert_string_equal(smg_purpose_name(SMG_FOR_DISPATCH + 1), "unknown");
    assert_string_equal(smg_message_name(SMG_MSG_FAILED + 1), "unknown");
}

/* Each event differs from the next in one key, the others pull the other way. */
static void test_event_order(void **state)
{
    const struct smg_event e[] = {
        {.kind = SMG_EV_ARRIVE, .peer = 9, .request = 9, .layer_lo = 9, .op = UINT32_MAX},
        {.kind = SMG_EV_OP_DONE, .peer = 1, .request = 9, .layer_lo = 9, .op = 9},
        {.kind = SMG_EV_OP_DONE, .peer = 2, .request = 1, .layer_lo = 9, .op = 9},
        {.kind = SMG_EV_OP_DONE, .peer = 2, .request = 2, .layer_lo = 1, .op = 9},
        {.kind = SMG_EV_OP_DONE, .peer = 2, .request = 2, .layer_lo = 2, .op = 1},
        {.kind = SMG_EV_OP_DONE, .peer = 2, .request = 2, .layer_lo = 2, .op = UINT32_MAX},
    };
    const int n = sizeof(e) / sizeof(e[0]);

    (void)state;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int c = smg_event_compare(&e[i], &e[j]);
            assert_int_equal((c > 0) - (c < 0), (i > j) - (i < j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_actions_grow),
        cmocka_unit_test(test_actions_are_zeroed),
        cmocka_unit_test(test_item_needs_an_action),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_event_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
