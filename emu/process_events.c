/* What waits in one emulated process: events to be delivered, in order, and timers. */
#include "emu/process.h"

#include <stdlib.h>

static int grow_events(struct smg_process *p, size_t cap)
{
    struct smg_event *grown = malloc(cap * sizeof *grown);

    if (!grown)
        return SMG_ERR_NOMEM;
    for (size_t i = 0; i < p->n_events; i++)
        grown[i] = p->event[(p->event_head + i) % p->cap_events];
    free(p->event);
    p->event = grown;
    p->event_head = 0;
    p->cap_events = cap;
    return SMG_OK;
}

static int grow_timers(struct smg_process *p, size_t cap)
{
    struct smg_timer *grown = realloc(p->timer, cap * sizeof *grown);

    if (!grown)
        return SMG_ERR_NOMEM;
    p->timer = grown;
    p->cap_timers = cap;
    return SMG_OK;
}

int smg_process_reserve_queues(struct smg_process *p, uint64_t events, uint64_t timers)
{
    return grow_events(p, events) || grow_timers(p, timers) ? SMG_ERR_NOMEM : SMG_OK;
}

int smg_process_event(struct smg_process *p, const struct smg_event *e)
{
    if (p->n_events == p->cap_events && grow_events(p, p->cap_events ? 2 * p->cap_events : 64))
        return SMG_ERR_NOMEM;
    if (!p->n_events)
        p->event_head = 0; /* what is used of the ring stays in the cache */
    p->event[(p->event_head + p->n_events++) % p->cap_events] = *e;
    return SMG_OK;
}

static int sooner(const struct smg_timer *a, const struct smg_timer *b)
{
    return a->due_s < b->due_s || (!(b->due_s < a->due_s) && a->sequence < b->sequence);
}

int smg_process_timer(struct smg_process *p, double due_s, struct smg_op *op, int arrival)
{
    size_t i;

    if (p->n_timers == p->cap_timers && grow_timers(p, p->cap_timers ? 2 * p->cap_timers : 64))
        return SMG_ERR_NOMEM;
    i = p->n_timers++;
    p->timer[i] = (struct smg_timer){due_s, p->sequence++, op, arrival};
    for (; i && sooner(&p->timer[i], &p->timer[(i - 1) / 2]); i = (i - 1) / 2) {
        struct smg_timer t = p->timer[i];
        p->timer[i] = p->timer[(i - 1) / 2];
        p->timer[(i - 1) / 2] = t;
    }
    return SMG_OK;
}

void smg_process_timer_forget(struct smg_process *p, const struct smg_op *op)
{
    for (size_t i = 0; i < p->n_timers; i++) {
        if (p->timer[i].op == op) {
            p->timer[i].op = NULL;
            p->timer[i].arrival = -1;
        }
    }
}

struct smg_timer smg_process_timer_pop(struct smg_process *p)
{
    struct smg_timer top = p->timer[0];
    size_t i = 0;

    p->timer[0] = p->timer[--p->n_timers];
    for (;;) {
        size_t child = 2 * i + 1;
        struct smg_timer t;
        if (child >= p->n_timers)
            return top;
        if (child + 1 < p->n_timers && sooner(&p->timer[child + 1], &p->timer[child]))
            child++;
        if (!sooner(&p->timer[child], &p->timer[i]))
            return top;
        t = p->timer[i];
        p->timer[i] = p->timer[child];
        p->timer[child] = t;
        i = child;
    }
}
