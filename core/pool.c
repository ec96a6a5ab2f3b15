#include "core/pool.h"

#include <stdlib.h>

#include "core/reserve.h"
#include "core/status.h"

void smg_pool_init(struct smg_pool *p, uint64_t total_bytes)
{
    p->total_bytes = total_bytes;
    p->used_bytes = 0;
    p->waiting = p->room = p->spare = NULL;
    p->tail = &p->waiting;
}

int smg_pool_reserve(struct smg_pool *p, uint32_t waiting)
{
    p->room = calloc(waiting ? waiting : 1, sizeof *p->room);
    if (!p->room)
        return SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < waiting; i++) {
        p->room[i].reserved = 1;
        p->room[i].next = p->spare;
        p->spare = &p->room[i];
    }
    return SMG_OK;
}

static struct smg_pool_wait *wait_take(struct smg_pool *p)
{
    struct smg_pool_wait *w = p->spare;

    if (!w)
        return calloc(1, sizeof *w);
    p->spare = w->next;
    return w;
}

static void wait_give(struct smg_pool *p, struct smg_pool_wait *w)
{
    if (!w->reserved) {
        free(w);
        return;
    }
    w->next = p->spare;
    p->spare = w;
}

void smg_pool_free(struct smg_pool *p)
{
    while (p->waiting) {
        struct smg_pool_wait *next = p->waiting->next;
        wait_give(p, p->waiting);
        p->waiting = next;
    }
    p->tail = &p->waiting;
    free(p->room);
    p->room = p->spare = NULL;
}

static int fits(const struct smg_pool *p, uint64_t bytes)
{
    return bytes <= p->total_bytes - p->used_bytes;
}

int smg_pool_ask(struct smg_pool *p, uint32_t request, uint32_t op, uint64_t bytes)
{
    struct smg_pool_wait *w;

    if (bytes > p->total_bytes)
        return SMG_ERR_CAPACITY;
    if (!p->waiting && fits(p, bytes)) {
        p->used_bytes += bytes;
        return SMG_OK;
    }
    w = wait_take(p);
    if (!w)
        return SMG_ERR_NOMEM;
    *w = (struct smg_pool_wait){NULL, request, op, bytes, w->reserved};
    *p->tail = w;
    p->tail = &w->next;
    return SMG_ERR_RANGE;
}

void smg_pool_give(struct smg_pool *p, uint64_t bytes)
{
    p->used_bytes -= bytes;
}

int smg_pool_next(struct smg_pool *p, uint32_t *request, uint32_t *op, uint64_t *bytes)
{
    struct smg_pool_wait *w = p->waiting;

    if (!w || !fits(p, w->bytes))
        return 0;
    *request = w->request;
    *op = w->op;
    *bytes = w->bytes;
    p->used_bytes += w->bytes;
    p->waiting = w->next;
    if (!p->waiting)
        p->tail = &p->waiting;
    wait_give(p, w);
    return 1;
}
