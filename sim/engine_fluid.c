/* Max-min fair fluid network by progressive filling.
 *
 * Progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): all rates grow together; when a link is
 * full its flows keep their rate and the others go on. Done here link by link, smallest fair share first. Taking a frozen flow
 * off a link can only raise the share of what is left on it, so a heap of shares may hold stale keys that are too low: they are
 * corrected when they come up.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_fluid.h"

/* Rate of a flow while its component is being solved. */
#define RATE_OPEN (-1.0)

struct fluid_flow {
    double remaining_bytes; /* at since_s */
    double since_s;         /* last change of rate */
    double rate_Bps;
    double solved_Bps; /* rate being worked out */
    uint64_t tag;
    uint64_t epoch; /* of the last component that held the flow */
    uint32_t n_links;
    uint32_t link[SMG_FLUID_LINKS_MAX];
    uint32_t slot[SMG_FLUID_LINKS_MAX]; /* place in the list of that link */
    uint32_t heap_at;                   /* place in the heap of ends; next free flow when unused */
};

struct fluid_link {
    double cap_Bps;
    double left_Bps; /* while solving: not given to frozen flows */
    uint64_t epoch;
    uint32_t *flows; /* [alloc], n in use */
    uint32_t n, alloc;
    uint32_t open; /* while solving: flows not frozen yet */
    bool dirty;    /* its set of flows changed since the last solution */
};

struct fluid_end {
    double at_s;
    uint32_t flow;
};

struct fluid_share {
    double Bps;
    uint32_t link;
};

struct smg_fluid {
    struct fluid_link *links;   /* [links_alloc] */
    struct fluid_flow *flows;   /* [flows_alloc] */
    struct fluid_end *ends;     /* [flows_alloc] heap, earliest first; its size is the number of flows alive */
    uint32_t *comp_flows;       /* [flows_alloc] flows of the components being solved */
    uint32_t *comp_links;       /* [links_alloc] */
    uint32_t *dirty;            /* [links_alloc] */
    struct fluid_share *shares; /* [links_alloc] heap, smallest share first */
    uint64_t epoch;
    uint32_t n_links, links_alloc;
    uint32_t n_flows, flows_alloc; /* n_flows: ever used */
    uint32_t n_ends, n_comp_flows, n_comp_links, n_dirty;
    uint32_t free_flow;
};

int smg_fluid_create(struct smg_fluid **out)
{
    struct smg_fluid *f = calloc(1, sizeof(*f));

    if (!f)
        return SMG_ERR_NOMEM;
    f->free_flow = SMG_FLUID_NONE;
    *out = f;
    return SMG_OK;
}

void smg_fluid_destroy(struct smg_fluid *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_links; i++)
        free(f->links[i].flows);
    free(f->links);
    free(f->flows);
    free(f->ends);
    free(f->comp_flows);
    free(f->comp_links);
    free(f->dirty);
    free(f->shares);
    free(f);
}

/* Grows *array to n elements of `size` bytes; *array is unchanged on error. */
static bool array_grow(void *array, size_t n, size_t size)
{
    void *old, *grown;

    memcpy(&old, array, sizeof(old));
    grown = realloc(old, n * size);
    if (grown)
        memcpy(array, &grown, sizeof(grown));
    return grown != NULL;
}

/* ---- Heap of ends ---- */

static void end_place(struct smg_fluid *f, uint32_t at, struct fluid_end end)
{
    f->ends[at] = end;
    f->flows[end.flow].heap_at = at;
}

static void end_sift_down(struct smg_fluid *f, uint32_t at)
{
    struct fluid_end end = f->ends[at];

    for (uint32_t child = 2 * at + 1; child < f->n_ends; child = 2 * at + 1) {
        if (child + 1 < f->n_ends && f->ends[child + 1].at_s < f->ends[child].at_s)
            child++;
        if (f->ends[child].at_s >= end.at_s)
            break;
        end_place(f, at, f->ends[child]);
        at = child;
    }
    end_place(f, at, end);
}

static void end_sift_up(struct smg_fluid *f, uint32_t at)
{
    struct fluid_end end = f->ends[at];

    for (; at > 0 && end.at_s < f->ends[(at - 1) / 2].at_s; at = (at - 1) / 2)
        end_place(f, at, f->ends[(at - 1) / 2]);
    end_place(f, at, end);
}

static void end_fix(struct smg_fluid *f, uint32_t at)
{
    if (at > 0 && f->ends[at].at_s < f->ends[(at - 1) / 2].at_s)
        end_sift_up(f, at);
    else
        end_sift_down(f, at);
}

static void end_remove(struct smg_fluid *f, uint32_t at)
{
    f->n_ends--;
    if (at == f->n_ends)
        return;
    end_place(f, at, f->ends[f->n_ends]);
    end_fix(f, at);
}

static void end_rebuild(struct smg_fluid *f)
{
    for (uint32_t at = f->n_ends / 2; at-- > 0;)
        end_sift_down(f, at);
}

/* ---- Links and flows ---- */

static int links_grow(struct smg_fluid *f)
{
    uint32_t alloc = f->links_alloc ? 2 * f->links_alloc : 64;

    if (alloc < f->links_alloc)
        return SMG_ERR_CAPACITY;
    if (!array_grow(&f->links, alloc, sizeof(*f->links)) || !array_grow(&f->comp_links, alloc, sizeof(*f->comp_links)) ||
        !array_grow(&f->dirty, alloc, sizeof(*f->dirty)) || !array_grow(&f->shares, alloc, sizeof(*f->shares)))
        return SMG_ERR_NOMEM;
    f->links_alloc = alloc;
    return SMG_OK;
}

int smg_fluid_link(struct smg_fluid *f, double cap_Bps, uint32_t *out)
{
    if (f->n_links == f->links_alloc) {
        int status = links_grow(f);

        if (status != SMG_OK)
            return status;
    }
    f->links[f->n_links] = (struct fluid_link){.cap_Bps = cap_Bps};
    *out = f->n_links++;
    return SMG_OK;
}

static int flows_grow(struct smg_fluid *f)
{
    uint32_t alloc = f->flows_alloc ? 2 * f->flows_alloc : 64;

    if (alloc < f->flows_alloc)
        return SMG_ERR_CAPACITY;
    if (!array_grow(&f->flows, alloc, sizeof(*f->flows)) || !array_grow(&f->ends, alloc, sizeof(*f->ends)) ||
        !array_grow(&f->comp_flows, alloc, sizeof(*f->comp_flows)))
        return SMG_ERR_NOMEM;
    f->flows_alloc = alloc;
    return SMG_OK;
}

/* Room for one more flow in the lists of its links. */
static int lists_reserve(struct smg_fluid *f, const uint32_t *links, uint32_t n_links)
{
    for (uint32_t i = 0; i < n_links; i++) {
        struct fluid_link *l = &f->links[links[i]];
        uint32_t alloc = l->alloc ? 2 * l->alloc : 4;

        if (l->n < l->alloc)
            continue;
        if (!array_grow(&l->flows, alloc, sizeof(*l->flows)))
            return SMG_ERR_NOMEM;
        l->alloc = alloc;
    }
    return SMG_OK;
}

/* A flow slot, given back or new; flows_alloc leaves room. */
static uint32_t flow_take(struct smg_fluid *f)
{
    uint32_t id = f->free_flow;

    if (id == SMG_FLUID_NONE)
        return f->n_flows++;
    f->free_flow = f->flows[id].heap_at;
    return id;
}

static void link_mark(struct smg_fluid *f, uint32_t link)
{
    if (!f->links[link].dirty)
        f->dirty[f->n_dirty++] = link;
    f->links[link].dirty = true;
}

static void flow_attach(struct smg_fluid *f, uint32_t id)
{
    struct fluid_flow *flow = &f->flows[id];

    for (uint32_t i = 0; i < flow->n_links; i++) {
        struct fluid_link *l = &f->links[flow->link[i]];

        flow->slot[i] = l->n;
        l->flows[l->n++] = id;
        link_mark(f, flow->link[i]);
    }
}

/* The last flow of a link's list moves into the hole; a link occurs once in a route, so its slot is found by search. */
static void flow_detach(struct smg_fluid *f, uint32_t id)
{
    struct fluid_flow *flow = &f->flows[id];

    for (uint32_t i = 0; i < flow->n_links; i++) {
        uint32_t link = flow->link[i];
        struct fluid_link *l = &f->links[link];
        uint32_t last = l->flows[--l->n];
        uint32_t k = 0;

        l->flows[flow->slot[i]] = last;
        while (f->flows[last].link[k] != link)
            k++;
        f->flows[last].slot[k] = flow->slot[i];
        link_mark(f, link);
    }
}

int smg_fluid_start(struct smg_fluid *f, double now_s, const uint32_t *links, uint32_t n_links, double bytes, uint64_t tag)
{
    struct fluid_flow flow = {.remaining_bytes = bytes, .since_s = now_s, .tag = tag, .n_links = n_links};
    uint32_t id;
    int status = lists_reserve(f, links, n_links);

    if (status != SMG_OK)
        return status;
    if (f->free_flow == SMG_FLUID_NONE && f->n_flows == f->flows_alloc) {
        status = flows_grow(f);
        if (status != SMG_OK)
            return status;
    }
    for (uint32_t i = 0; i < n_links; i++)
        flow.link[i] = links[i];
    id = flow_take(f);
    f->flows[id] = flow;
    flow_attach(f, id);
    /* no rate yet: last in the heap until the next solution */
    end_place(f, f->n_ends++, (struct fluid_end){INFINITY, id});
    return SMG_OK;
}

/* ---- Components and their solution ---- */

static void comp_add_link(struct smg_fluid *f, uint32_t link)
{
    struct fluid_link *l = &f->links[link];

    if (l->epoch == f->epoch || l->n == 0)
        return;
    l->epoch = f->epoch;
    l->left_Bps = l->cap_Bps;
    l->open = l->n;
    f->comp_links[f->n_comp_links++] = link;
}

static void comp_add_flow(struct smg_fluid *f, uint32_t id)
{
    struct fluid_flow *flow = &f->flows[id];

    if (flow->epoch == f->epoch)
        return;
    flow->epoch = f->epoch;
    flow->solved_Bps = RATE_OPEN;
    f->comp_flows[f->n_comp_flows++] = id;
    for (uint32_t i = 0; i < flow->n_links; i++)
        comp_add_link(f, flow->link[i]);
}

/* Breadth first from the links whose set of flows changed: all that can get another rate. */
static void comp_gather(struct smg_fluid *f)
{
    f->epoch++;
    f->n_comp_flows = f->n_comp_links = 0;
    for (uint32_t i = 0; i < f->n_dirty; i++) {
        f->links[f->dirty[i]].dirty = false;
        comp_add_link(f, f->dirty[i]);
    }
    f->n_dirty = 0;
    for (uint32_t i = 0; i < f->n_comp_links; i++) {
        const struct fluid_link *l = &f->links[f->comp_links[i]];

        for (uint32_t k = 0; k < l->n; k++)
            comp_add_flow(f, l->flows[k]);
    }
}

static void share_sift_down(struct fluid_share *shares, uint32_t n, uint32_t at)
{
    struct fluid_share share = shares[at];

    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && shares[child + 1].Bps < shares[child].Bps)
            child++;
        if (shares[child].Bps >= share.Bps)
            break;
        shares[at] = shares[child];
        at = child;
    }
    shares[at] = share;
}

static void link_freeze(struct smg_fluid *f, uint32_t link, double share_Bps)
{
    const struct fluid_link *l = &f->links[link];

    for (uint32_t k = 0; k < l->n; k++) {
        struct fluid_flow *flow = &f->flows[l->flows[k]];

        if (flow->solved_Bps != RATE_OPEN)
            continue;
        flow->solved_Bps = share_Bps;
        for (uint32_t i = 0; i < flow->n_links; i++) {
            f->links[flow->link[i]].left_Bps -= share_Bps;
            f->links[flow->link[i]].open--;
        }
    }
}

static void comp_solve(struct smg_fluid *f)
{
    struct fluid_share *shares = f->shares;
    uint32_t n = f->n_comp_links;

    for (uint32_t i = 0; i < n; i++) {
        const struct fluid_link *l = &f->links[f->comp_links[i]];

        shares[i] = (struct fluid_share){l->left_Bps / l->open, f->comp_links[i]};
    }
    for (uint32_t at = n / 2; at-- > 0;)
        share_sift_down(shares, n, at);
    while (n > 0) {
        const struct fluid_link *l = &f->links[shares[0].link];
        double share_Bps = l->open ? l->left_Bps / l->open : 0;

        if (l->open && share_Bps > shares[0].Bps) {
            shares[0].Bps = share_Bps;
        } else {
            link_freeze(f, shares[0].link, share_Bps);
            shares[0] = shares[--n];
        }
        share_sift_down(shares, n, 0);
    }
}

/* Moves one flow on to its new rate; returns when it ends now. */
static double flow_reprice(struct fluid_flow *flow, double now_s)
{
    flow->remaining_bytes = fmax(0, flow->remaining_bytes - flow->rate_Bps * (now_s - flow->since_s));
    flow->since_s = now_s;
    flow->rate_Bps = flow->solved_Bps;
    return now_s + flow->remaining_bytes / flow->rate_Bps;
}

/* Many changes: one rebuild of the heap costs less than a sift each. */
static void comp_apply(struct smg_fluid *f, double now_s)
{
    bool rebuild = f->n_comp_flows > 8 && f->n_comp_flows > f->n_ends / 4;

    for (uint32_t i = 0; i < f->n_comp_flows; i++) {
        struct fluid_flow *flow = &f->flows[f->comp_flows[i]];

        if (flow->solved_Bps == flow->rate_Bps)
            continue;
        f->ends[flow->heap_at].at_s = flow_reprice(flow, now_s);
        if (!rebuild)
            end_fix(f, flow->heap_at);
    }
    if (rebuild)
        end_rebuild(f);
}

double smg_fluid_next_s(struct smg_fluid *f, double now_s)
{
    if (f->n_dirty > 0) {
        comp_gather(f);
        comp_solve(f);
        comp_apply(f, now_s);
    }
    return f->n_ends ? f->ends[0].at_s : INFINITY;
}

void smg_fluid_end(struct smg_fluid *f, double until_s, struct smg_ready *ready)
{
    while (f->n_ends > 0 && f->ends[0].at_s <= until_s) {
        uint32_t id = f->ends[0].flow;

        smg_ready_push(ready, f->flows[id].tag);
        end_remove(f, 0);
        flow_detach(f, id);
        f->flows[id].heap_at = f->free_flow;
        f->free_flow = id;
    }
}
