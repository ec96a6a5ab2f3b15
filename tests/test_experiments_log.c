/* Event and action logs: what is read is what was written, and damage is found. */
#include "tests/folder_fixture.h"

#include "experiments/log.h"

struct step {
    uint16_t instance;
    struct smg_event e;
    struct smg_actions actions;
};

static void make_step(struct step *s, uint16_t instance, uint32_t n_actions)
{
    memset(s, 0, sizeof *s);
    s->instance = instance;
    s->e.now_s = 0.125 * instance;
    s->e.kind = SMG_EV_MSG;
    s->e.msg.u.summary.remote_entries = instance; /* the last field: nothing can be cut */
    for (uint32_t i = 0; i < n_actions; i++) {
        struct smg_action *a = smg_actions_add(&s->actions, SMG_ACT_WRITE);
        assert_non_null(a);
        a->op = i + 1;
        a->bytes = UINT64_MAX - i;
        for (uint32_t j = 0; j < i; j++) {
            struct smg_item item = {7, 3, 0, j, 1};
            assert_int_equal(smg_actions_item(&s->actions, &item), SMG_OK);
        }
    }
}

static void write_steps(const char *folder, const char *events, const char *actions, uint32_t n)
{
    struct smg_log_writer w;
    struct step s;

    assert_int_equal(smg_log_create(file_in(folder, events), file_in(folder, actions), &w, NULL), SMG_OK);
    for (uint32_t i = 0; i < n; i++) {
        make_step(&s, (uint16_t)(i % 3), i % 4);
        assert_int_equal(smg_log_step(&w, s.instance, &s.e, &s.actions), SMG_OK);
        smg_actions_free(&s.actions);
    }
    assert_int_equal(smg_log_close(&w, NULL), SMG_OK);
}

static void assert_step(const struct step *s, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    assert_int_equal(instance, s->instance);
    assert_memory_equal(e, &s->e, sizeof *e);
    assert_int_equal(actions->n, s->actions.n);
    assert_int_equal(actions->n_items, s->actions.n_items);
    for (size_t i = 0; i < actions->n; i++)
        assert_memory_equal(&actions->action[i], &s->actions.action[i], sizeof *actions->action);
    for (size_t i = 0; i < actions->n_items; i++)
        assert_memory_equal(&actions->items[i], &s->actions.items[i], sizeof *actions->items);
}

static void test_round_trip(void **state)
{
    struct smg_log_reader r;
    struct smg_actions actions = {0};
    struct smg_event e;
    uint16_t instance;
    int more = 1;

    write_steps(*state, "e", "a", 9);
    assert_int_equal(smg_log_open(file_in(*state, "e"), file_in(*state, "a"), &r, NULL), SMG_OK);
    for (uint32_t i = 0; i < 9; i++) {
        struct step s;
        make_step(&s, (uint16_t)(i % 3), i % 4);
        assert_int_equal(smg_log_next(&r, &instance, &e, &actions, &more), SMG_OK);
        assert_int_equal(more, 1);
        assert_step(&s, instance, &e, &actions);
        smg_actions_free(&s.actions);
    }
    assert_int_equal(smg_log_next(&r, &instance, &e, &actions, &more), SMG_OK);
    assert_int_equal(more, 0);
    smg_log_reader_close(&r);
    smg_actions_free(&actions);
}

static int read_all(const char *events, const char *actions_path, uint32_t *n)
{
    struct smg_log_reader r;
    struct smg_actions actions = {0};
    struct smg_event e;
    struct smg_diag diag;
    uint16_t instance;
    int more = 1, status = smg_log_open(events, actions_path, &r, &diag);

    *n = 0;
    if (status)
        return status;
    while (!status && more) {
        status = smg_log_next(&r, &instance, &e, &actions, &more);
        *n += !status && more;
    }
    smg_log_reader_close(&r);
    smg_actions_free(&actions);
    return status;
}

static void test_append(void **state)
{
    struct smg_log_writer w;
    uint32_t n;

    write_steps(*state, "e1", "a1", 5);
    write_steps(*state, "e2", "a2", 3);
    assert_int_equal(smg_log_create(file_in(*state, "e"), file_in(*state, "a"), &w, NULL), SMG_OK);
    assert_int_equal(smg_log_append(&w, file_in(*state, "e1"), file_in(*state, "a1"), NULL), SMG_OK);
    assert_int_equal(smg_log_append(&w, file_in(*state, "e2"), file_in(*state, "a2"), NULL), SMG_OK);
    assert_int_equal(smg_log_close(&w, NULL), SMG_OK);
    assert_int_equal(read_all(file_in(*state, "e"), file_in(*state, "a"), &n), SMG_OK);
    assert_int_equal(n, 8);
}

static void test_truncation(void **state)
{
    struct stat whole;
    uint32_t n;

    write_steps(*state, "e", "a", 4);
    assert_int_equal(stat(file_in(*state, "a"), &whole), 0);
    for (off_t bytes = whole.st_size - 1; bytes >= 0; bytes--) {
        assert_int_equal(truncate(file_in(*state, "a"), bytes), 0);
        assert_int_equal(read_all(file_in(*state, "e"), file_in(*state, "a"), &n), SMG_ERR_PARSE);
    }
    assert_int_equal(read_all(file_in(*state, "a"), file_in(*state, "e"), &n), SMG_ERR_PARSE);
    assert_int_equal(read_all(file_in(*state, "missing"), file_in(*state, "e"), &n), SMG_ERR_PARSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_append, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_truncation, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
