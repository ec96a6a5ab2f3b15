/* Heap of timers and list of completed tags, shared by the engines. */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sim/engine_priv.h"

static bool timer_before(const struct smg_timer *a, const struct smg_timer *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->tag < b->tag);
}

void smg_timer_heap_fini(struct smg_timer_heap *h)
{
    free(h->heap);
    *h = (struct smg_timer_heap){0};
}

static int timer_heap_grow(struct smg_timer_heap *h)
{
    size_t cap = h->cap ? 2 * h->cap : 64;
    struct smg_timer *heap = realloc(h->heap, cap * sizeof(*heap));

    if (!heap)
        return SMG_ERR_NOMEM;
    h->heap = heap;
    h->cap = cap;
    return SMG_OK;
}

int smg_timer_heap_push(struct smg_timer_heap *h, double at_s, uint64_t tag)
{
    struct smg_timer timer = {at_s, tag};
    size_t at = h->n;

    if (h->n == h->cap && timer_heap_grow(h) != SMG_OK)
        return SMG_ERR_NOMEM;
    h->n++;
    for (; at > 0 && timer_before(&timer, &h->heap[(at - 1) / 2]); at = (at - 1) / 2)
        h->heap[at] = h->heap[(at - 1) / 2];
    h->heap[at] = timer;
    return SMG_OK;
}

double smg_timer_heap_next_s(const struct smg_timer_heap *h)
{
    return h->n ? h->heap[0].at_s : INFINITY;
}

uint64_t smg_timer_heap_pop(struct smg_timer_heap *h)
{
    uint64_t tag = h->heap[0].tag;
    struct smg_timer last = h->heap[--h->n];
    size_t at = 0;

    for (size_t child = 1; child < h->n; child = 2 * at + 1) {
        if (child + 1 < h->n && timer_before(&h->heap[child + 1], &h->heap[child]))
            child++;
        if (!timer_before(&h->heap[child], &last))
            break;
        h->heap[at] = h->heap[child];
        at = child;
    }
    h->heap[at] = last;
    return tag;
}

void smg_ready_fini(struct smg_ready *r)
{
    free(r->tags);
    *r = (struct smg_ready){0};
}

int smg_ready_reserve(struct smg_ready *r)
{
    if (r->n + r->reserved == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        uint64_t *tags = realloc(r->tags, cap * sizeof(*tags));

        if (!tags)
            return SMG_ERR_NOMEM;
        r->tags = tags;
        r->cap = cap;
    }
    r->reserved++;
    return SMG_OK;
}

void smg_ready_release(struct smg_ready *r)
{
    r->reserved--;
}

void smg_ready_push(struct smg_ready *r, uint64_t tag)
{
    r->tags[r->n++] = tag;
    r->reserved--;
}

static int tag_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void smg_ready_sort(struct smg_ready *r)
{
    if (r->n - r->taken > 1)
        qsort(r->tags + r->taken, r->n - r->taken, sizeof(*r->tags), tag_compare);
}

size_t smg_ready_take(struct smg_ready *r, uint64_t *tags, size_t cap)
{
    size_t n = r->n - r->taken < cap ? r->n - r->taken : cap;

    for (size_t i = 0; i < n; i++)
        tags[i] = r->tags[r->taken + i];
    r->taken += n;
    if (r->taken == r->n)
        r->taken = r->n = 0;
    return n;
}

void smg_ready_push_timers(struct smg_ready *r, struct smg_timer_heap *h, double until_s)
{
    while (smg_timer_heap_next_s(h) <= until_s)
        smg_ready_push(r, smg_timer_heap_pop(h));
}
