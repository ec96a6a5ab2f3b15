#include "core/lanes.h"

#include <stdlib.h>
#include <string.h>

struct smg_lane_queue {
    struct smg_op *head, **tail;
    struct smg_op *running;
    struct smg_lane_queue *check_next;
    int checking;                /* on the list of lanes to look at */
};

struct smg_lanes {
    uint16_t instance;
    uint32_t peers;
    struct smg_lane_queue *lane; /* [SMG_LANES][peers]; lanes without peers use column 0 */
    struct smg_lane_queue *check;
    uint32_t *open;              /* numbers of operations queued or running, unordered */
    size_t n_open, cap_open;
    size_t blocked;              /* lanes whose head waits for an `after` edge */
};

int smg_lanes_create(uint16_t instance, uint32_t peers, struct smg_lanes **out)
{
    struct smg_lanes *l = calloc(1, sizeof *l);

    if (!l)
        return SMG_ERR_NOMEM;
    l->instance = instance;
    l->peers = peers;
    l->lane = calloc((size_t)SMG_LANES * peers, sizeof *l->lane);
    if (!l->lane) {
        free(l);
        return SMG_ERR_NOMEM;
    }
    for (size_t i = 0; i < (size_t)SMG_LANES * peers; i++)
        l->lane[i].tail = &l->lane[i].head;
    *out = l;
    return SMG_OK;
}

static void op_free(struct smg_op *op)
{
    if (!op)
        return;
    free(op->items);
    free(op);
}

void smg_lanes_destroy(struct smg_lanes *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < (size_t)SMG_LANES * l->peers; i++) {
        struct smg_op *op = l->lane[i].head;
        while (op) {
            struct smg_op *next = op->next;
            op_free(op);
            op = next;
        }
        op_free(l->lane[i].running);
    }
    free(l->lane);
    free(l->open);
    free(l);
}

static void check_later(struct smg_lanes *l, struct smg_lane_queue *q)
{
    if (q->checking)
        return;
    q->checking = 1;
    q->check_next = l->check;
    l->check = q;
}

static int open_add(struct smg_lanes *l, uint32_t op)
{
    if (l->n_open == l->cap_open) {
        size_t cap = l->cap_open ? 2 * l->cap_open : 64;
        uint32_t *grown = realloc(l->open, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        l->open = grown;
        l->cap_open = cap;
    }
    l->open[l->n_open++] = op;
    return SMG_OK;
}

static int is_open(const struct smg_lanes *l, uint32_t op)
{
    for (size_t i = 0; op && i < l->n_open; i++)
        if (l->open[i] == op)
            return 1;
    return 0;
}

static void open_remove(struct smg_lanes *l, uint32_t op)
{
    for (size_t i = 0; i < l->n_open; i++) {
        if (l->open[i] != op)
            continue;
        l->open[i] = l->open[--l->n_open];
        return;
    }
}

static int has_peer(uint16_t lane)
{
    return lane == SMG_LANE_PUSH || lane == SMG_LANE_REPLY || lane == SMG_LANE_CTL;
}

int smg_lanes_submit(struct smg_lanes *l, const struct smg_action *a, const struct smg_item *items)
{
    uint32_t peer = has_peer(a->lane) ? a->peer : 0;
    struct smg_lane_queue *q;
    struct smg_op *op;

    if (a->lane == SMG_LANE_NONE || a->lane >= SMG_LANES || peer >= l->peers)
        return SMG_ERR_INVALID;
    op = calloc(1, sizeof *op);
    if (!op)
        return SMG_ERR_NOMEM;
    op->action = *a;
    op->instance = l->instance;
    if (a->n_items) {
        op->items = malloc(a->n_items * sizeof *op->items);
        if (!op->items)
            goto err_op;
        memcpy(op->items, items, a->n_items * sizeof *op->items);
    }
    if (open_add(l, a->op))
        goto err_op;
    q = &l->lane[(size_t)a->lane * l->peers + peer];
    op->lane = q;
    *q->tail = op;
    q->tail = &op->next;
    check_later(l, q);
    return SMG_OK;

err_op:
    op_free(op);
    return SMG_ERR_NOMEM;
}

static int may_start(const struct smg_lanes *l, const struct smg_op *op)
{
    const uint32_t *after = op->action.after;

    return !is_open(l, after[0]) && !is_open(l, after[1]) && !is_open(l, after[2]);
}

struct smg_op *smg_lanes_start(struct smg_lanes *l)
{
    while (l->check) {
        struct smg_lane_queue *q = l->check;
        struct smg_op *op = q->head;
        l->check = q->check_next;
        q->checking = 0;
        if (!op || q->running)
            continue;
        if (!may_start(l, op)) {
            l->blocked++; /* an upper bound: any completion looks at every lane again */
            continue;
        }
        q->head = op->next;
        if (!q->head)
            q->tail = &q->head;
        op->next = NULL;
        q->running = op;
        return op;
    }
    return NULL;
}

void smg_lanes_release(struct smg_lanes *l, struct smg_op *op)
{
    struct smg_lane_queue *q = op->lane;

    if (q->running != op)
        return;
    q->running = NULL;
    check_later(l, q);
}

void smg_lanes_complete(struct smg_lanes *l, struct smg_op *op)
{
    smg_lanes_release(l, op);
    open_remove(l, op->action.op);
    if (l->blocked) {
        l->blocked = 0;
        for (size_t i = 0; i < (size_t)SMG_LANES * l->peers; i++)
            if (l->lane[i].head && !l->lane[i].running)
                check_later(l, &l->lane[i]);
    }
    op_free(op);
}

size_t smg_lanes_pending(const struct smg_lanes *l)
{
    return l->n_open;
}
