/* decisions.csv: which rows a log gives, in which order, and that chunks do not show. */
#include "tests/folder_fixture.h"

#include "experiments/log.h"
#include "experiments/run_priv.h"

/* 1000 tokens in 100 blocks: 10 tokens of 4,096 bytes a block. */
static void small_world(struct smg_world *w, struct smg_request_spec spec[2])
{
    fixture_world(w);
    w->scenario.blocks_per_layer = 100;
    spec[0] = spec[1] = fixture_request(1000);
    w->requests = spec;
    w->n_requests = 2;
}

static void put_write(struct smg_log_writer *w, enum smg_purpose purpose, uint16_t layer, uint64_t bytes,
                      const struct smg_item *items, size_t n)
{
    struct smg_actions actions = {0};
    struct smg_event e = {.kind = SMG_EV_OP_DONE};
    struct smg_action *a = smg_actions_add(&actions, SMG_ACT_WRITE);

    assert_non_null(a);
    a->purpose = (uint16_t)purpose;
    a->request = 1;
    a->layer_lo = layer;
    a->bytes = bytes;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(smg_actions_item(&actions, &items[i]), SMG_OK);
    assert_int_equal(smg_log_step(w, 1, &e, &actions), SMG_OK);
    smg_actions_free(&actions);
}

static void put_send(struct smg_log_writer *w, uint16_t instance, const struct smg_message *m)
{
    struct smg_actions actions = {0};
    struct smg_event e = {.kind = SMG_EV_TIMER};
    struct smg_action *a = smg_actions_add(&actions, SMG_ACT_SEND);

    assert_non_null(a);
    a->msg = *m;
    assert_int_equal(smg_log_step(w, instance, &e, &actions), SMG_OK);
    smg_actions_free(&actions);
}

static void put_split(struct smg_log_writer *w)
{
    struct smg_actions none = {0};
    struct smg_event e = {
        .kind = SMG_EV_SPLIT_DONE, .request = 1, .step = 1, .layer_lo = 2, .entries_local = 60, .entries_remote = 40};

    assert_int_equal(smg_log_step(w, 7, &e, &none), SMG_OK);
}

/* Pushes blocks 0..9 and 20..24 of layer 5, cut at `cut`. */
static void put_pushes(struct smg_log_writer *w, uint32_t cut)
{
    const struct smg_item tail[] = {{1, 5, 0, cut, 10 - cut}, {1, 5, 0, 20, 5}}, head = {1, 5, 0, 0, cut};

    put_write(w, SMG_FOR_PUSH, 5, 0, tail, 2);
    put_write(w, SMG_FOR_PUSH, 5, 0, &head, 1);
}

static void decisions(const char *folder, const char *out, uint32_t cut)
{
    const struct smg_item spec[] = {{1, 9, 0, 3, 1}, {1, 9, 0, 4, 1}};
    struct smg_message assign = {.kind = SMG_MSG_PREFILL, .request = 1}, token = {.kind = SMG_MSG_TOKEN, .request = 1, .step = 1},
                       done = {.kind = SMG_MSG_DONE, .request = 1},
                       grant = {.kind = SMG_MSG_IDLE, .request = 1, .step = 1, .layer_lo = 2, .layer_hi = 3},
                       index = {.kind = SMG_MSG_INDEX, .request = 1, .step = 1, .layer_lo = 2, .layer_hi = 3};
    struct smg_request_spec requests[2];
    struct smg_log_writer w;
    struct smg_world world;

    assign.u.assign.kr_blocks = 15;
    token.u.token.token = 2;
    grant.u.grant.blocks = 2;
    index.u.index.entries = 40;
    index.u.index.bytes = 20480;
    small_world(&world, requests);
    assert_int_equal(smg_log_create(file_in(folder, "e"), file_in(folder, "a"), &w, NULL), SMG_OK);
    put_send(&w, 7, &done);
    put_write(&w, SMG_FOR_METADATA, 2, 30, NULL, 0);
    put_pushes(&w, cut);
    put_write(&w, SMG_FOR_METADATA, 2, 12, NULL, 0);
    put_write(&w, SMG_FOR_SPECULATIVE, 9, 0, spec, 2);
    put_send(&w, 7, &token);
    put_send(&w, 7, &index);
    put_send(&w, 7, &grant);
    put_split(&w);
    put_send(&w, 0, &assign);
    put_send(&w, 1, &done); /* the echo is no decision */
    assert_int_equal(smg_log_close(&w, NULL), SMG_OK);
    assert_int_equal(smg_write_decisions_csv(&world, file_in(folder, "e"), file_in(folder, "a"), file_in(folder, out), NULL),
                     SMG_OK);
}

static void test_rows(void **state)
{
    decisions(*state, "d.csv", 4);
    assert_file_is(file_in(*state, "d.csv"),
                   "seq,instance,action,request,step,layer,block_first,blocks,entries_local,entries_remote,bytes\n"
                   "0,0,assign,1,0,,,15,,,\n"
                   "0,1,metadata,1,0,2,,,,,42\n"
                   "1,1,push,1,0,5,0,10,,,409600\n"
                   "2,1,push,1,0,5,20,5,,,204800\n"
                   "3,1,speculative,1,0,9,3,1,,,40960\n"
                   "4,1,speculative,1,0,9,4,1,,,40960\n"
                   "0,7,finish,1,0,,,,,,\n"
                   "1,7,grant,1,1,2,,2,,,\n"
                   "2,7,index,1,1,2,,,,40,20480\n"
                   "3,7,split,1,1,2,,,60,40,\n"
                   "4,7,emit,1,2,,,,,,\n");
}

static void test_chunks_do_not_show(void **state)
{
    char *other;

    decisions(*state, "d.csv", 4);
    decisions(*state, "other.csv", 9);
    other = file_text(file_in(*state, "other.csv"));
    assert_file_is(file_in(*state, "d.csv"), other);
    free(other);
}

static void test_damaged_log(void **state)
{
    const struct smg_item wild = {1, 5, 0, 99, 2};
    struct smg_request_spec requests[2];
    struct smg_diag diag = {""};
    struct smg_log_writer w;
    struct smg_world world;

    small_world(&world, requests);
    assert_int_equal(smg_log_create(file_in(*state, "e"), file_in(*state, "a"), &w, NULL), SMG_OK);
    put_write(&w, SMG_FOR_PUSH, 5, 0, &wild, 1);
    assert_int_equal(smg_log_close(&w, NULL), SMG_OK);
    assert_int_equal(smg_write_decisions_csv(&world, file_in(*state, "e"), file_in(*state, "a"), file_in(*state, "d.csv"), &diag),
                     SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "step 1"));
    assert_false(file_exists(file_in(*state, "d.csv")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_chunks_do_not_show, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_log, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
