/* Lanes: order inside a lane, edges between lanes, release against completion, and random work against a model in the plainest
 * terms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lanes.h"
#include "core/status.h"

enum { PEERS = 5 };

static struct smg_lanes *lanes(void)
{
    struct smg_lanes *l = NULL;

    assert_int_equal(smg_lanes_create(3, PEERS, &l), SMG_OK);
    return l;
}

static int submit(struct smg_lanes *l, uint32_t op, enum smg_lane lane, uint16_t peer, uint32_t after)
{
    struct smg_action a;

    memset(&a, 0, sizeof a);
    a.kind = SMG_ACT_COPY;
    a.op = op;
    a.lane = (uint16_t)lane;
    a.peer = peer;
    a.after[1] = after;
    return smg_lanes_submit(l, &a, NULL);
}

static struct smg_op *assert_starts(struct smg_lanes *l, uint32_t op)
{
    struct smg_op *o = smg_lanes_start(l);

    assert_non_null(o);
    assert_int_equal(o->action.op, op);
    assert_int_equal(o->instance, 3);
    return o;
}

static void assert_idle(struct smg_lanes *l)
{
    assert_null(smg_lanes_start(l));
}

static void test_order_in_a_lane(void **state)
{
    struct smg_lanes *l = lanes();
    struct smg_op *op;

    (void)state;
    assert_idle(l);
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(submit(l, i, SMG_LANE_H2D, 0, 0), SMG_OK);
    assert_int_equal(smg_lanes_pending(l), 3);
    for (uint32_t i = 1; i <= 3; i++) {
        op = assert_starts(l, i);
        assert_idle(l);
        assert_ptr_equal(smg_lanes_running(l, SMG_LANE_H2D, 0), op);
        smg_lanes_complete(l, op);
    }
    assert_idle(l);
    assert_null(smg_lanes_running(l, SMG_LANE_H2D, 0));
    assert_null(smg_lanes_running(l, SMG_LANE_REPLY, 4));
    assert_int_equal(smg_lanes_pending(l), 0);
    smg_lanes_destroy(l);
    smg_lanes_destroy(NULL);
}

/* Lanes with peers are one queue per peer; the others are one queue whatever the peer says. */
static void test_peers(void **state)
{
    struct smg_lanes *l = lanes();
    struct smg_op *a, *b;

    (void)state;
    assert_int_equal(submit(l, 1, SMG_LANE_PUSH, 1, 0), SMG_OK);
    assert_int_equal(submit(l, 2, SMG_LANE_PUSH, 2, 0), SMG_OK);
    a = smg_lanes_start(l);
    b = smg_lanes_start(l);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->action.op + b->action.op, 3);
    assert_int_equal(submit(l, 3, SMG_LANE_CPU_GATHER, 1, 0), SMG_OK);
    assert_int_equal(submit(l, 4, SMG_LANE_CPU_GATHER, 2, 0), SMG_OK);
    assert_starts(l, 3);
    assert_idle(l);
    assert_int_equal(submit(l, 5, SMG_LANE_PUSH, PEERS, 0), SMG_ERR_INVALID);
    assert_int_equal(submit(l, 6, SMG_LANE_NONE, 0, 0), SMG_ERR_INVALID);
    assert_int_equal(submit(l, 7, SMG_LANES, 0, 0), SMG_ERR_INVALID);
    assert_int_equal(smg_lanes_pending(l), 4);
    smg_lanes_destroy(l); /* with three running and one queued */
}

/* An edge waits for completion, not for release; what is not open (any more) holds nobody up. */
static void test_after_edges(void **state)
{
    struct smg_lanes *l = lanes();
    struct smg_op *first, *second;

    (void)state;
    assert_int_equal(submit(l, 1, SMG_LANE_CPU_GATHER, 0, 0), SMG_OK);
    assert_int_equal(submit(l, 2, SMG_LANE_H2D, 0, 1), SMG_OK);
    assert_int_equal(submit(l, 3, SMG_LANE_H2D, 0, 0), SMG_OK);
    assert_int_equal(submit(l, 4, SMG_LANE_D2H, 0, 99), SMG_OK);
    first = smg_lanes_start(l);
    second = smg_lanes_start(l);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(first->action.op + second->action.op, 5);
    if (first->action.op != 1) {
        struct smg_op *swap = first;
        first = second;
        second = swap;
    }
    assert_idle(l);
    smg_lanes_release(l, first);
    assert_idle(l);
    smg_lanes_complete(l, second);
    assert_idle(l);
    smg_lanes_complete(l, first);
    first = assert_starts(l, 2);
    assert_idle(l);
    smg_lanes_complete(l, first);
    smg_lanes_complete(l, assert_starts(l, 3));
    assert_int_equal(smg_lanes_pending(l), 0);
    smg_lanes_destroy(l);
}

static void test_release_lets_the_lane_go_on(void **state)
{
    struct smg_lanes *l = lanes();
    struct smg_op *op[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(submit(l, 1 + i, SMG_LANE_PUSH, 4, 0), SMG_OK);
    for (uint32_t i = 0; i < 3; i++) {
        op[i] = assert_starts(l, 1 + i);
        assert_idle(l);
        smg_lanes_release(l, op[i]);
        smg_lanes_release(l, op[i]); /* a second time is harmless */
    }
    assert_int_equal(smg_lanes_pending(l), 3);
    assert_int_equal(submit(l, 4, SMG_LANE_PUSH, 4, 0), SMG_OK);
    smg_lanes_complete(l, op[1]); /* in any order */
    assert_starts(l, 4);
    smg_lanes_complete(l, op[0]);
    assert_idle(l);
    smg_lanes_destroy(l); /* op 3 released and not complete, op 4 running: both are freed */
}

static void test_items_are_copied(void **state)
{
    struct smg_lanes *l = lanes();
    struct smg_item items[2] = {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}};
    struct smg_action a;
    struct smg_op *op;

    (void)state;
    memset(&a, 0, sizeof a);
    a.op = 1;
    a.lane = SMG_LANE_PUSH;
    a.n_items = 2;
    assert_int_equal(smg_lanes_submit(l, &a, items), SMG_OK);
    memset(items, 0, sizeof items);
    op = assert_starts(l, 1);
    assert_int_equal(op->items[0].request, 1);
    assert_int_equal(op->items[1].count, 10);
    smg_lanes_destroy(l);
}

/* ---- Random work against a model ---- */

enum { OPS = 3000, WINDOW = 40 };

struct model_op {
    int lane;                        /* index of lane and peer */
    uint32_t after;
    enum { QUEUED, RUNNING, RELEASED, COMPLETE } is;
    struct smg_op *op;
};

struct model {
    struct model_op op[OPS + 1];     /* by number, from 1 */
    uint32_t n;
};

static uint32_t next_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    return *x ^= *x << 5;
}

/* May start: oldest queued of its lane, nothing running in it, edge complete. */
static int model_may_start(const struct model *m, uint32_t i)
{
    const struct model_op *o = &m->op[i];

    if (o->is != QUEUED || (o->after && m->op[o->after].is != COMPLETE))
        return 0;
    for (uint32_t j = 1; j <= m->n; j++) {
        if (m->op[j].lane != o->lane)
            continue;
        if (m->op[j].is == RUNNING || (j < i && m->op[j].is == QUEUED))
            return 0;
    }
    return 1;
}

static void start_all(struct smg_lanes *l, struct model *m)
{
    struct smg_op *op;

    while ((op = smg_lanes_start(l))) {
        uint32_t i = op->action.op;
        assert_true(model_may_start(m, i));
        m->op[i].is = RUNNING;
        m->op[i].op = op;
    }
    for (uint32_t i = 1; i <= m->n; i++)
        assert_false(model_may_start(m, i));
}

static void submit_one(struct smg_lanes *l, struct model *m, uint32_t *seed)
{
    static const enum smg_lane kinds[] = {SMG_LANE_GPU_MAIN, SMG_LANE_H2D, SMG_LANE_PUSH, SMG_LANE_REPLY, SMG_LANE_CTL};
    uint32_t kind = next_random(seed) % 5, peer = next_random(seed) % PEERS, i = ++m->n;
    struct model_op *o = &m->op[i];

    o->lane = (int)(kind < 2 ? kind : kind * PEERS + peer);
    o->after = next_random(seed) % 3 || i == 1 ? 0 : 1 + next_random(seed) % (i - 1);
    o->is = QUEUED;
    assert_int_equal(submit(l, i, kinds[kind], (uint16_t)peer, o->after), SMG_OK);
}

/* Completes or releases one operation that runs. */
static void end_one(struct smg_lanes *l, struct model *m, uint32_t *seed)
{
    uint32_t from = next_random(seed) % m->n;

    for (uint32_t k = 0; k < m->n; k++) {
        struct model_op *o = &m->op[1 + (from + k) % m->n];
        if (o->is != RUNNING && o->is != RELEASED)
            continue;
        if (o->is == RUNNING && next_random(seed) % 2) {
            smg_lanes_release(l, o->op);
            o->is = RELEASED;
        } else {
            smg_lanes_complete(l, o->op);
            o->is = COMPLETE;
        }
        return;
    }
    fail_msg("nothing runs and something waits");
}

static uint32_t pending(const struct model *m)
{
    uint32_t n = 0;

    for (uint32_t i = 1; i <= m->n; i++)
        n += m->op[i].is != COMPLETE;
    return n;
}

static void test_random_work(void **state)
{
    struct smg_lanes *l = lanes();
    struct model *m = calloc(1, sizeof *m);
    uint32_t seed = 1;

    (void)state;
    assert_non_null(m);
    while (m->n < OPS || pending(m)) {
        if (m->n < OPS && pending(m) < WINDOW && next_random(&seed) % 3)
            submit_one(l, m, &seed);
        else if (pending(m))
            end_one(l, m, &seed);
        start_all(l, m);
        assert_int_equal(smg_lanes_pending(l), pending(m));
    }
    smg_lanes_destroy(l);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_in_a_lane),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_after_edges),
        cmocka_unit_test(test_release_lets_the_lane_go_on),
        cmocka_unit_test(test_items_are_copied),
        cmocka_unit_test(test_random_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
