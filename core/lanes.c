#include "core/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "core/reserve.h"

struct smg_lane_queue {
    uint32_t key;                /* of lane and peer */
    struct smg_op *head, **tail;
    struct smg_op *running;
    struct smg_lane_queue *check_next, *blocked_next;
    int checking;                /* on the list of lanes to look at */
    int blocked;                 /* on the list of lanes whose head waits for an `after` edge */
};

/* Few of the possible (lane, peer) pairs are ever used: an open-addressing table holds those that are. */
struct smg_lanes {
    uint16_t instance;
    uint32_t peers;
    struct smg_lane_queue **slot; /* [cap], NULL: free */
    size_t cap, used;
    struct smg_lane_queue *check, *blocked;
    struct smg_op *open;          /* all operations queued or running, newest first */
    size_t n_open;
    struct smg_store store;       /* of lanes, operations and their items */
};

enum { FIRST_SLOTS = 16 };

int smg_lanes_create(uint16_t instance, uint32_t peers, struct smg_lanes **out)
{
    struct smg_lanes *l = calloc(1, sizeof *l);

    if (!l)
        return SMG_ERR_NOMEM;
    l->instance = instance;
    l->peers = peers;
    l->cap = FIRST_SLOTS;
    l->slot = calloc(l->cap, sizeof(struct smg_lane_queue *));
    if (!l->slot) {
        free(l);
        return SMG_ERR_NOMEM;
    }
    *out = l;
    return SMG_OK;
}

static void op_free(struct smg_lanes *l, struct smg_op *op)
{
    smg_store_give(&l->store, op->items);
    smg_store_give(&l->store, op);
}

void smg_lanes_destroy(struct smg_lanes *l)
{
    if (!l)
        return;
    while (l->open) {
        struct smg_op *op = l->open;
        l->open = op->open_next;
        op_free(l, op);
    }
    for (size_t i = 0; i < l->cap; i++)
        smg_store_give(&l->store, l->slot[i]);
    smg_store_free(&l->store);
    free(l->slot);
    free(l);
}

/* ---- The table of lanes in use ---- */

static int has_peer(uint16_t lane)
{
    return lane == SMG_LANE_PUSH || lane == SMG_LANE_REPLY || lane == SMG_LANE_CTL;
}

static uint32_t key_of(uint16_t lane, uint16_t peer)
{
    return (uint32_t)lane << 16 | (has_peer(lane) ? peer : 0u);
}

/* Slot of a key, or the free slot where it belongs. The table always has a free slot. */
static struct smg_lane_queue **slot_of(struct smg_lane_queue **slot, size_t cap, uint32_t key)
{
    size_t i = key * UINT32_C(2654435761) & (cap - 1);

    while (slot[i] && slot[i]->key != key)
        i = (i + 1) & (cap - 1);
    return &slot[i];
}

static int grow(struct smg_lanes *l, size_t cap)
{
    struct smg_lane_queue **slot = calloc(cap, sizeof(struct smg_lane_queue *));

    if (!slot)
        return SMG_ERR_NOMEM;
    for (size_t i = 0; i < l->cap; i++)
        if (l->slot[i])
            *slot_of(slot, cap, l->slot[i]->key) = l->slot[i];
    free(l->slot);
    l->slot = slot;
    l->cap = cap;
    return SMG_OK;
}

static int lane_get(struct smg_lanes *l, uint32_t key, struct smg_lane_queue **out)
{
    struct smg_lane_queue *q = *slot_of(l->slot, l->cap, key);

    if (!q) {
        if (2 * (l->used + 1) > l->cap && grow(l, 2 * l->cap))
            return SMG_ERR_NOMEM;
        q = smg_store_take(&l->store, sizeof *q);
        if (!q)
            return SMG_ERR_NOMEM;
        q->key = key;
        q->tail = &q->head;
        *slot_of(l->slot, l->cap, key) = q;
        l->used++;
    }
    *out = q;
    return SMG_OK;
}

int smg_lanes_reserve(struct smg_lanes *l, uint64_t ops, uint64_t lists_bytes)
{
    size_t lanes = SMG_LANES + 3 * (size_t)l->peers, cap = l->cap;

    while (cap < 2 * (lanes + 1))
        cap *= 2;
    if (cap > l->cap && grow(l, cap))
        return SMG_ERR_NOMEM;
    return smg_store_reserve(&l->store, lanes * smg_store_cost(sizeof(struct smg_lane_queue)) +
                                            ops * smg_store_cost(sizeof(struct smg_op)) + lists_bytes);
}

/* ---- Operations ---- */

static void check_later(struct smg_lanes *l, struct smg_lane_queue *q)
{
    if (q->checking)
        return;
    q->checking = 1;
    q->check_next = l->check;
    l->check = q;
}

static int is_open(const struct smg_lanes *l, uint32_t op)
{
    for (const struct smg_op *o = l->open; op && o; o = o->open_next)
        if (o->action.op == op)
            return 1;
    return 0;
}

static void open_add(struct smg_lanes *l, struct smg_op *op)
{
    op->open_next = l->open;
    op->open_link = &l->open;
    if (l->open)
        l->open->open_link = &op->open_next;
    l->open = op;
    l->n_open++;
}

static void open_remove(struct smg_lanes *l, struct smg_op *op)
{
    *op->open_link = op->open_next;
    if (op->open_next)
        op->open_next->open_link = op->open_link;
    l->n_open--;
}

int smg_lanes_submit(struct smg_lanes *l, const struct smg_action *a, const struct smg_item *items)
{
    struct smg_lane_queue *q;
    struct smg_op *op;
    uint32_t key;

    if (a->lane == SMG_LANE_NONE || a->lane >= SMG_LANES)
        return SMG_ERR_INVALID;
    key = key_of(a->lane, a->peer);
    if ((key & UINT16_MAX) >= l->peers)
        return SMG_ERR_INVALID;
    if (lane_get(l, key, &q))
        return SMG_ERR_NOMEM;
    op = smg_store_take(&l->store, sizeof *op);
    if (!op)
        return SMG_ERR_NOMEM;
    op->action = *a;
    op->instance = l->instance;
    if (a->n_items) {
        op->items = smg_store_take_raw(&l->store, a->n_items * sizeof *op->items);
        if (!op->items) {
            op_free(l, op);
            return SMG_ERR_NOMEM;
        }
        memcpy(op->items, items, a->n_items * sizeof *op->items);
    }
    open_add(l, op);
    op->lane = q;
    *q->tail = op;
    q->tail = &op->next;
    check_later(l, q);
    return SMG_OK;
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
            if (!q->blocked) {
                q->blocked = 1;
                q->blocked_next = l->blocked;
                l->blocked = q;
            }
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

struct smg_op *smg_lanes_running(const struct smg_lanes *l, enum smg_lane lane, uint16_t peer)
{
    const struct smg_lane_queue *q = *slot_of(l->slot, l->cap, key_of((uint16_t)lane, peer));

    return q ? q->running : NULL;
}

void smg_lanes_release(struct smg_lanes *l, struct smg_op *op)
{
    struct smg_lane_queue *q = op->lane;

    if (q->running != op)
        return;
    q->running = NULL;
    check_later(l, q);
}

/* Any completion may be what a blocked lane waits for: all of them are looked at again. */
void smg_lanes_complete(struct smg_lanes *l, struct smg_op *op)
{
    smg_lanes_release(l, op);
    open_remove(l, op);
    while (l->blocked) {
        struct smg_lane_queue *q = l->blocked;
        l->blocked = q->blocked_next;
        q->blocked = 0;
        check_later(l, q);
    }
    op_free(l, op);
}

struct smg_op *smg_lanes_to(const struct smg_lanes *l, uint16_t peer)
{
    struct smg_op *first = NULL;

    for (struct smg_op *op = l->open; op; op = op->open_next)
        if (has_peer(op->action.lane) && op->action.peer == peer && (!first || op->action.op < first->action.op))
            first = op;
    return first;
}

void smg_lanes_drop(struct smg_lanes *l, struct smg_op *op)
{
    struct smg_lane_queue *q = op->lane;
    struct smg_op **at = &q->head;

    while (*at && *at != op)
        at = &(*at)->next;
    if (*at) {
        *at = op->next;
        if (q->tail == &op->next)
            q->tail = at;
    }
    smg_lanes_complete(l, op);
}

size_t smg_lanes_pending(const struct smg_lanes *l)
{
    return l->n_open;
}
