/* The loop of the simulated driver: engine completions become events, events step agents, actions go to lanes. */
#include "sim/driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_priv.h"

/* ---- Set-up ---- */

/* Instances of one node share its CPU: their gathers are flows over one endpoint. An oversubscribed core link is crossed by every
 * flow of the engine, which a gather must not do: then each instance has its fixed share of the CPU and gathers are timers. */
static void share_cpu(struct smg_sim *s, uint16_t i)
{
    const struct smg_world *w = s->world;
    struct smg_instance *in = &s->instance[i];
    uint32_t node = smg_world_node(w, i), n = 1;

    for (uint32_t j = i; j-- > 1 && smg_world_node(w, j) == node;)
        n++;
    for (uint32_t j = i + 1u; j < s->n_instances && smg_world_node(w, j) == node; j++)
        n++;
    if (w->scenario.network.oversubscription > 1)
        in->gather_Bps /= n;
    else
        in->shared_cpu = n > 1;
}

static int add_instance(struct smg_sim *s, uint16_t i, const uint32_t *nic, const uint32_t *cpu)
{
    const struct smg_world *w = s->world;
    struct smg_instance *in = &s->instance[i];
    int status = smg_agent_create(w, i, &in->agent);

    if (!status)
        status = smg_lanes_create(i, s->n_instances, &in->lanes);
    if (status)
        return status;
    smg_pool_init(&in->pool, i == SMG_ROUTER ? 0 : smg_world_pool_bytes(w, i));
    if (i == SMG_ROUTER)
        return SMG_OK;
    in->nic = nic[smg_world_node(w, i)];
    in->cpu = cpu[smg_world_node(w, i)];
    in->gather_Bps = smg_world_gather_Bps(w, smg_world_node(w, i));
    in->pcie_Bps = (smg_world_is_prefill(w, i) ? w->prefill_gpu : w->decode_gpu).pcie_Bps;
    if (w->host.copy_Bps > 0 && smg_world_is_decode(w, i))
        in->pcie_Bps = w->host.copy_Bps;
    share_cpu(s, i);
    return SMG_OK;
}

static int add_nodes(struct smg_sim *s, uint32_t *nic, uint32_t *cpu)
{
    const struct smg_world *w = s->world;
    uint32_t nodes = smg_world_nodes(w);
    double total_Bps = 0;
    int status = SMG_OK;

    for (uint32_t n = 0; n < nodes && !status; n++) {
        double Bps = smg_world_link_Bps(w, n);
        total_Bps += n < w->scenario.prefill.nodes ? Bps : 0;
        status = smg_engine_endpoint(s->engine, Bps, Bps, &nic[n]);
        if (!status)
            status = smg_engine_endpoint(s->engine, smg_world_gather_Bps(w, n), INFINITY, &cpu[n]);
    }
    if (!status)
        status = smg_engine_endpoint(s->engine, INFINITY, INFINITY, &s->sink);
    if (!status && w->scenario.network.oversubscription > 1)
        status = smg_engine_core(s->engine, total_Bps / w->scenario.network.oversubscription);
    return status;
}

static int set_up(struct smg_sim *s)
{
    const struct smg_world *w = s->world;
    size_t nodes = smg_world_nodes(w), n = w->n_requests ? w->n_requests : 1;
    uint32_t *nic = calloc(nodes, sizeof *nic), *cpu = calloc(nodes, sizeof *cpu);
    int status = SMG_ERR_NOMEM;

    s->n_instances = smg_world_instances(w);
    s->instance = calloc(s->n_instances, sizeof *s->instance);
    s->ledger = calloc(n, sizeof(struct smg_ledger *));
    s->reserved_bytes[0] = calloc(n, sizeof(uint64_t));
    s->reserved_bytes[1] = calloc(n, sizeof(uint64_t));
    if (nic && cpu && s->instance && s->ledger && s->reserved_bytes[0] && s->reserved_bytes[1])
        status = smg_run_stats_init(&s->stats, w->n_requests);
    if (!status)
        status = add_nodes(s, nic, cpu);
    for (uint32_t i = 0; i < s->n_instances && !status; i++)
        status = add_instance(s, (uint16_t)i, nic, cpu);
    free(nic);
    free(cpu);
    return status;
}

int smg_sim_create(const struct smg_world *w, const struct smg_engine_type *type, struct smg_selection *selection,
                   const struct smg_observer *observer, struct smg_sim **out)
{
    struct smg_sim *s = calloc(1, sizeof *s);
    int status;

    if (!s)
        return SMG_ERR_NOMEM;
    s->world = w;
    s->selection = selection;
    s->free_pending = UINT32_MAX;
    s->latency_s = w->nic.latency_s > 0 ? w->nic.latency_s : w->scenario.network.latency_us * 1e-6;
    if (observer)
        s->observer = *observer;
    smg_scheme_features(w, &s->features);
    status = smg_engine_create(type, &s->engine);
    if (!status)
        status = set_up(s);
    if (status) {
        smg_sim_destroy(s);
        return status;
    }
    *out = s;
    return SMG_OK;
}

static void instance_destroy(struct smg_instance *in)
{
    smg_pool_free(&in->pool);
    smg_lanes_destroy(in->lanes);
    smg_agent_destroy(in->agent);
}

void smg_sim_destroy(struct smg_sim *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->instance && i < s->n_instances; i++)
        instance_destroy(&s->instance[i]);
    for (uint32_t r = 0; s->ledger && r < s->world->n_requests; r++) {
        if (s->ledger[r])
            s->selection->type->close(s->selection, r);
        smg_ledger_destroy(s->ledger[r]);
    }
    smg_engine_destroy(s->engine);
    smg_actions_free(&s->actions);
    smg_run_stats_free(&s->stats);
    free(s->instance);
    free(s->ledger);
    free(s->reserved_bytes[0]);
    free(s->reserved_bytes[1]);
    free(s->pending);
    free(s->event);
    free(s->round);
    free(s);
}

/* ---- Events ---- */

int smg_sim_event(struct smg_sim *s, uint16_t instance, const struct smg_event *e)
{
    if (s->instance[instance].dead)
        return SMG_OK;
    if (s->n_events == s->cap_events) {
        size_t cap = s->cap_events ? 2 * s->cap_events : 64;
        struct smg_sim_event *grown = realloc(s->event, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        s->event = grown;
        s->cap_events = cap;
    }
    s->event[s->n_events] = (struct smg_sim_event){instance, s->sequence++, *e};
    s->event[s->n_events++].event.now_s = smg_engine_now(s->engine);
    return SMG_OK;
}

/* A slot for something pending; its index is the engine's tag, so that order never depends on addresses. */
int smg_sim_pending(struct smg_sim *s, enum smg_pending_kind kind, uint16_t instance, struct smg_op *op, uint64_t *tag)
{
    uint32_t slot = s->free_pending;

    if (slot == UINT32_MAX && s->n_pending == s->cap_pending) {
        uint32_t cap = s->cap_pending ? 2 * s->cap_pending : 256;
        struct smg_pending *grown = realloc(s->pending, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        s->pending = grown;
        s->cap_pending = cap;
    }
    if (slot == UINT32_MAX)
        slot = s->n_pending++;
    else
        s->free_pending = s->pending[slot].next_free;
    s->pending[slot] = (struct smg_pending){kind, instance, op, UINT32_MAX};
    *tag = slot;
    return SMG_OK;
}

static int by_order(const void *a, const void *b)
{
    const struct smg_sim_event *x = a, *y = b;
    int c = (x->instance > y->instance) - (x->instance < y->instance);

    if (!c)
        c = smg_event_compare(&x->event, &y->event);
    return c ? c : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static int step(struct smg_sim *s, const struct smg_sim_event *q)
{
    struct smg_instance *in = &s->instance[q->instance];
    int status;

    if (in->dead)
        return SMG_OK;
    status = smg_agent_step(in->agent, &q->event, &s->actions);
    in->told |= q->event.kind == SMG_EV_PEER_LOST;
    s->stats.events++;
    s->stats.actions += s->actions.n;
    if (status) {
        snprintf(s->diag.text, sizeof s->diag.text, "instance %u refused event %s (request %u) at %.9g s: %s", q->instance,
                 smg_event_name(q->event.kind), q->event.request, q->event.now_s, smg_status_string(status));
        return status;
    }
    if (s->observer.step)
        status = s->observer.step(s->observer.arg, q->instance, &q->event, &s->actions);
    return status ? status : smg_sim_submit(s, q->instance, &s->actions);
}

/* Delivers the events of this instant in their order; those they cause form the next round. */
static int deliver_rounds(struct smg_sim *s)
{
    int status = SMG_OK;

    while (s->n_events && !status) {
        struct smg_sim_event *swap = s->round;
        size_t n = s->n_events, cap = s->cap_round;
        s->round = s->event;
        s->cap_round = s->cap_events;
        s->event = swap;
        s->cap_events = cap;
        s->n_events = 0;
        if (n > 1)
            qsort(s->round, n, sizeof *s->round, by_order);
        for (size_t i = 0; i < n && !status; i++)
            status = step(s, &s->round[i]);
    }
    return status;
}

/* ---- Arrivals ---- */

static int schedule_arrivals(struct smg_sim *s)
{
    uint64_t tag;
    double delay;
    int status;

    if (s->next_arrival >= s->world->n_requests)
        return SMG_OK;
    delay = s->world->requests[s->next_arrival].arrival_s - smg_engine_now(s->engine);
    status = smg_sim_pending(s, SMG_PENDING_ARRIVALS, SMG_ROUTER, NULL, &tag);
    return status ? status : smg_engine_timer(s->engine, delay > 0 ? delay : 0, tag);
}

static int arrive(struct smg_sim *s)
{
    double now_s = smg_engine_now(s->engine) + SMG_ENGINE_TIE_S;
    int status = SMG_OK;

    while (!status && s->next_arrival < s->world->n_requests && s->world->requests[s->next_arrival].arrival_s <= now_s) {
        struct smg_event e;
        memset(&e, 0, sizeof e);
        e.kind = SMG_EV_ARRIVE;
        e.request = s->next_arrival++;
        status = smg_sim_event(s, SMG_ROUTER, &e);
    }
    return status ? status : schedule_arrivals(s);
}

static int fire_timer(struct smg_sim *s, uint16_t instance)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_TIMER;
    return smg_sim_event(s, instance, &e);
}

/* ---- Run ---- */

static int complete(struct smg_sim *s, uint64_t tag)
{
    struct smg_pending p = s->pending[tag];

    s->pending[tag].kind = SMG_PENDING_FREE;
    s->pending[tag].next_free = s->free_pending;
    s->free_pending = (uint32_t)tag;
    if (p.kind < SMG_PENDING_DEATH)
        s->stats.end_s = smg_engine_now(s->engine);
    switch (p.kind) {
    case SMG_PENDING_ARRIVALS:
        return arrive(s);
    case SMG_PENDING_OP:
        return s->instance[p.instance].dead ? SMG_OK : smg_sim_op_phase(s, p.instance, p.op);
    case SMG_PENDING_DELIVER:
        return smg_sim_deliver(s, p.instance, p.op);
    case SMG_PENDING_EARLY:
        return smg_sim_early(s, p.instance, p.op);
    case SMG_PENDING_CONFIRM:
        return smg_sim_confirm(s, p.instance, p.op);
    case SMG_PENDING_TIMER:
        return fire_timer(s, p.instance);
    case SMG_PENDING_DEATH:
        return smg_sim_death(s);
    case SMG_PENDING_NOTICE:
        return smg_sim_notice(s);
    case SMG_PENDING_LOST:
        return SMG_OK;
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int body(struct smg_engine *engine, void *arg)
{
    struct smg_sim *s = arg;
    uint64_t tags[256];
    size_t n = 1;
    int status = schedule_arrivals(s);

    if (!status)
        status = smg_sim_plan_death(s);
    while (!status && n) {
        status = smg_engine_next(engine, tags, sizeof tags / sizeof tags[0], &n);
        for (size_t i = 0; i < n && !status; i++)
            status = complete(s, tags[i]);
        if (!status)
            status = deliver_rounds(s);
    }
    return status;
}

/* Deadlock is an error that names who waits. */
static int check_settled(struct smg_sim *s)
{
    const struct smg_records *r = smg_sim_records(s);
    uint32_t waiting = r->n_requests - r->finished - r->failed, named = 0;
    size_t at;

    if (!waiting)
        return SMG_OK;
    at = (size_t)snprintf(s->diag.text, sizeof s->diag.text, "deadlock at %.9g s: %u of %u requests wait:", s->stats.end_s,
                          waiting, r->n_requests);
    for (uint32_t i = 0; i < r->n_requests && named < 16 && at < sizeof s->diag.text; i++) {
        if (r->request[i].status == SMG_REQUEST_FINISHED || r->request[i].status == SMG_REQUEST_FAILED)
            continue;
        named++;
        at += (size_t)snprintf(s->diag.text + at, sizeof s->diag.text - at, " %u (%u of %u tokens)", i, r->request[i].tokens,
                               r->request[i].output_tokens);
    }
    for (uint32_t i = 1; i < s->n_instances && at < sizeof s->diag.text; i++)
        if (s->instance[i].pool.waiting)
            at += (size_t)snprintf(
                s->diag.text + at, sizeof s->diag.text - at, "; instance %u has no memory for request %u%s", i,
                s->instance[i].pool.waiting->request,
                smg_world_barrier(s->world) ? ", and workload.batch_barrier lets nobody start before all have it" : "");
    return SMG_ERR_DEADLOCK;
}

int smg_sim_run(struct smg_sim *s, struct smg_diag *diag)
{
    int status = smg_engine_run(s->engine, body, s);

    if (!status)
        status = check_settled(s);
    if (status && !s->diag.text[0])
        snprintf(s->diag.text, sizeof s->diag.text, "simulation failed: %s", smg_status_string(status));
    if (status && diag)
        *diag = s->diag;
    return status;
}

const struct smg_records *smg_sim_records(const struct smg_sim *s)
{
    return smg_agent_records(s->instance[SMG_ROUTER].agent);
}

uint64_t smg_sim_used_bytes(const struct smg_sim *s, uint32_t instance)
{
    return s->instance[instance].pool.used_bytes;
}

const struct smg_run_stats *smg_sim_stats(const struct smg_sim *s)
{
    return &s->stats;
}
