/* Native engine: a heap of timers beside the fluid network. The oracle of the SimGrid engine, and the one for very large runs. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "sim/engine_fluid.h"
#include "sim/engine_priv.h"

/* Links of an endpoint; SMG_FLUID_NONE where the rate is infinite: such a link never binds, so it is not modelled. */
struct native_endpoint {
    uint32_t tx, rx;
};

struct native_engine {
    struct smg_engine base;
    double now_s;
    struct native_endpoint *endpoints; /* [alloc], base.endpoints in use */
    size_t alloc;
    double core_Bps;
    uint32_t core; /* SMG_FLUID_NONE: no core */
    struct smg_fluid *fluid;
    struct smg_timer_heap timers;
    struct smg_ready ready;
};

static struct native_engine *native(struct smg_engine *e)
{
    return (struct native_engine *)e;
}

static int native_create(struct smg_engine **out)
{
    struct native_engine *n = calloc(1, sizeof(*n));

    if (!n)
        return SMG_ERR_NOMEM;
    if (smg_fluid_create(&n->fluid) != SMG_OK) {
        free(n);
        return SMG_ERR_NOMEM;
    }
    n->core_Bps = INFINITY;
    n->core = SMG_FLUID_NONE;
    *out = &n->base;
    return SMG_OK;
}

static void native_destroy(struct smg_engine *e)
{
    struct native_engine *n = native(e);

    smg_ready_fini(&n->ready);
    smg_timer_heap_fini(&n->timers);
    smg_fluid_destroy(n->fluid);
    free(n->endpoints);
    free(n);
}

static int native_link(struct native_engine *n, double Bps, uint32_t *out)
{
    *out = SMG_FLUID_NONE;
    return isfinite(Bps) ? smg_fluid_link(n->fluid, Bps, out) : SMG_OK;
}

static int native_endpoint(struct smg_engine *e, double tx_Bps, double rx_Bps, uint32_t *out)
{
    struct native_engine *n = native(e);
    struct native_endpoint endpoint;
    int status;

    if (e->endpoints == n->alloc) {
        size_t alloc = n->alloc ? 2 * n->alloc : 16;
        struct native_endpoint *grown = realloc(n->endpoints, alloc * sizeof(*grown));

        if (!grown)
            return SMG_ERR_NOMEM;
        n->endpoints = grown;
        n->alloc = alloc;
    }
    status = native_link(n, tx_Bps, &endpoint.tx);
    if (status != SMG_OK)
        return status;
    status = native_link(n, rx_Bps, &endpoint.rx);
    if (status != SMG_OK)
        return status;
    n->endpoints[e->endpoints] = endpoint;
    *out = e->endpoints;
    return SMG_OK;
}

static int native_core(struct smg_engine *e, double Bps)
{
    native(e)->core_Bps = Bps;
    return SMG_OK;
}

static int native_run(struct smg_engine *e, smg_engine_body_fn body, void *arg)
{
    int status = native_link(native(e), native(e)->core_Bps, &native(e)->core);

    return status == SMG_OK ? body(e, arg) : status;
}

static double native_now(struct smg_engine *e)
{
    return native(e)->now_s;
}

static int native_timer(struct smg_engine *e, double delay_s, uint64_t tag)
{
    struct native_engine *n = native(e);
    int status = smg_ready_reserve(&n->ready);

    if (status != SMG_OK)
        return status;
    status = smg_timer_heap_push(&n->timers, n->now_s + delay_s, tag);
    if (status != SMG_OK)
        smg_ready_release(&n->ready);
    return status;
}

static int native_flow(struct smg_engine *e, uint32_t src, uint32_t dst, double bytes, uint64_t tag)
{
    struct native_engine *n = native(e);
    const uint32_t route[] = {n->endpoints[src].tx, n->core, n->endpoints[dst].rx};
    uint32_t links[SMG_FLUID_LINKS_MAX], n_links = 0;
    int status;

    for (size_t i = 0; i < sizeof(route) / sizeof(route[0]); i++)
        if (route[i] != SMG_FLUID_NONE)
            links[n_links++] = route[i];
    if (bytes == 0 || n_links == 0)
        return native_timer(e, 0, tag);
    status = smg_ready_reserve(&n->ready);
    if (status != SMG_OK)
        return status;
    status = smg_fluid_start(n->fluid, n->now_s, links, n_links, bytes, tag);
    if (status != SMG_OK)
        smg_ready_release(&n->ready);
    return status;
}

static int native_next(struct smg_engine *e, uint64_t *tags, size_t cap, size_t *n_out)
{
    struct native_engine *n = native(e);

    if (n->ready.n == 0) {
        double next_s = fmin(smg_timer_heap_next_s(&n->timers), smg_fluid_next_s(n->fluid, n->now_s));

        if (isfinite(next_s)) {
            n->now_s = fmax(n->now_s, next_s);
            smg_ready_push_timers(&n->ready, &n->timers, n->now_s + SMG_ENGINE_TIE_S);
            smg_fluid_end(n->fluid, n->now_s + SMG_ENGINE_TIE_S, &n->ready);
            smg_ready_sort(&n->ready);
        }
    }
    *n_out = smg_ready_take(&n->ready, tags, cap);
    return SMG_OK;
}

const struct smg_engine_type smg_engine_native = {
    .name = "native",
    .doc = "binary heap of timers and a max-min fair fluid network; exact and fast",
    .create = native_create,
    .destroy = native_destroy,
    .endpoint = native_endpoint,
    .core = native_core,
    .run = native_run,
    .now = native_now,
    .timer = native_timer,
    .flow = native_flow,
    .next = native_next,
};
