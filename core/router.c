/* Router agent: admits requests, chooses instances, decides Kr (Eq. 2) when a prefill starts, and keeps the records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/agent_priv.h"
#include "core/cost.h"
#include "core/record.h"

struct router {
    struct smg_agent base;
    struct smg_records records;
    uint32_t *queue;            /* ring of waiting request ids in order of arrival, [n_requests] */
    uint32_t head, tail;
    uint8_t *summaries;         /* [n_requests] summaries still missing */
    uint8_t *in_transition;     /* [n_requests] prefill started, hand-off not complete */
    uint8_t *busy;              /* [instances] a prefill instance computes one prompt at a time */
    uint32_t idle;              /* prefill instances that are not busy */
    uint32_t *active;           /* [instances] requests assigned and not finished */
    uint32_t *transition;       /* [nodes] requests in transition towards a decode node's NIC */
    uint32_t *starting;         /* [n_requests] scratch: requests dispatched at this instant */
    uint32_t decoding;          /* requests that will need decode and have not failed */
    uint32_t ready;
    int timer_pending, started;
};

static struct router *router_of(struct smg_agent *a)
{
    return (struct router *)a;
}

static void router_destroy(struct smg_agent *a)
{
    struct router *r = router_of(a);

    smg_records_free(&r->records);
    free(r->queue);
    free(r->summaries);
    free(r->in_transition);
    free(r->busy);
    free(r->active);
    free(r->transition);
    free(r->starting);
    free(r);
}

static int router_allocate(struct router *r, const struct smg_world *w)
{
    size_t n = w->n_requests ? w->n_requests : 1, instances = smg_world_instances(w);

    r->queue = calloc(n, sizeof *r->queue);
    r->starting = calloc(n, sizeof *r->starting);
    r->summaries = calloc(n, 1);
    r->in_transition = calloc(n, 1);
    r->idle = w->prefill_instances;
    r->busy = calloc(instances, 1);
    r->active = calloc(instances, sizeof *r->active);
    r->transition = calloc(smg_world_nodes(w), sizeof *r->transition);
    if (!r->queue || !r->starting || !r->summaries || !r->in_transition || !r->busy || !r->active || !r->transition)
        return SMG_ERR_NOMEM;
    return smg_records_init(&r->records, w->n_requests);
}

static int router_create(const struct smg_world *w, struct smg_agent **out)
{
    struct router *r = calloc(1, sizeof *r);
    int status;

    if (!r)
        return SMG_ERR_NOMEM;
    status = router_allocate(r, w);
    if (status) {
        router_destroy(&r->base);
        return status;
    }
    for (uint32_t i = 0; i < w->n_requests; i++) {
        r->records.request[i].arrival_s = w->requests[i].arrival_s;
        r->records.request[i].prompt_tokens = w->requests[i].prompt_tokens;
        r->records.request[i].output_tokens = w->requests[i].output_tokens;
        r->decoding += w->requests[i].output_tokens > 1;
    }
    *out = &r->base;
    return SMG_OK;
}

/* ---- Choosing instances ---- */

static uint16_t least_active(const struct router *r, uint32_t first, uint32_t count)
{
    uint32_t best = first;

    for (uint32_t i = first + 1; i < first + count; i++)
        if (r->active[i] < r->active[best])
            best = i;
    return (uint16_t)best;
}

/* An idle prefill instance for a request, 0 when it has to wait. */
static uint16_t pick_prefill(const struct router *r, uint32_t request)
{
    const struct smg_world *w = r->base.world;

    if (w->scenario.routing == SMG_ROUTING_ROUND_ROBIN) {
        uint32_t i = 1 + request % w->prefill_instances;
        return r->busy[i] ? 0 : (uint16_t)i;
    }
    for (uint32_t i = 1; i <= w->prefill_instances; i++)
        if (!r->busy[i])
            return (uint16_t)i;
    return 0;
}

static uint16_t pick_decode(const struct router *r, uint32_t request)
{
    const struct smg_world *w = r->base.world;
    uint32_t first = 1 + w->prefill_instances;

    if (w->scenario.routing == SMG_ROUTING_ROUND_ROBIN)
        return (uint16_t)(first + request % w->decode_instances);
    return least_active(r, first, w->decode_instances);
}

/* ---- Dispatch ---- */

static void queue_push(struct router *r, uint32_t request)
{
    r->queue[r->tail++ % r->records.n_requests] = request;
}

/* Takes the first request that an idle instance accepts; with round-robin a later one may overtake one whose instance is busy. */
static int queue_take(struct router *r, uint32_t *request, uint16_t *instance)
{
    uint32_t n = r->records.n_requests;

    for (uint32_t i = r->head; i != r->tail && r->idle; i++) {
        uint16_t p = pick_prefill(r, r->queue[i % n]);
        if (!p && r->base.world->scenario.routing == SMG_ROUTING_LEAST_LOADED)
            return 0;
        if (!p)
            continue;
        *request = r->queue[i % n];
        *instance = p;
        for (uint32_t j = i; j != r->head; j--)
            r->queue[j % n] = r->queue[(j - 1) % n];
        r->head++;
        return 1;
    }
    return 0;
}

static void assign(struct router *r, uint32_t request, uint16_t prefill)
{
    const struct smg_world *w = r->base.world;
    struct smg_request_record *q = &r->records.request[request];

    q->status = SMG_REQUEST_RUNNING;
    q->prefill_instance = prefill;
    r->busy[prefill] = 1;
    r->idle--;
    r->active[prefill]++;
    r->summaries[request] = 1;
    if (q->output_tokens == 1)
        return; /* the prefill node makes the only token: nothing to hand off */
    q->decode_instance = pick_decode(r, request);
    r->active[q->decode_instance]++;
    r->summaries[request] = 2;
    r->in_transition[request] = 1;
    r->transition[smg_world_node(w, q->decode_instance)]++;
}

static int send_assignment(struct router *r, struct smg_actions *out, uint16_t to, uint16_t partner, enum smg_message_kind kind,
                           uint32_t request)
{
    struct smg_action *act = smg_agent_send(&r->base, out, to, kind, request);
    const struct smg_request_record *q = &r->records.request[request];

    if (!act)
        return SMG_ERR_NOMEM;
    act->duration_s = r->base.world->scenario.network.dispatch_us * 1e-6;
    act->msg.u.assign.arrival_s = q->arrival_s;
    act->msg.u.assign.prompt_tokens = q->prompt_tokens;
    act->msg.u.assign.output_tokens = q->output_tokens;
    act->msg.u.assign.hit_tokens = r->base.world->requests[request].hit_tokens;
    act->msg.u.assign.kr_blocks = q->kr_blocks;
    act->msg.u.assign.total_blocks = q->total_blocks;
    act->msg.u.assign.mode = q->mode;
    act->msg.u.assign.partner = partner;
    return SMG_OK;
}

/* Eq. 2 with what is known now: requests that start at the same instant all count each other. */
static int launch(struct router *r, uint32_t request, struct smg_actions *out)
{
    const struct smg_world *w = r->base.world;
    struct smg_request_record *q = &r->records.request[request];
    struct smg_budget_result b;
    uint32_t node;

    if (!q->decode_instance)
        return send_assignment(r, out, q->prefill_instance, 0, SMG_MSG_PREFILL, request);
    node = smg_world_node(w, q->decode_instance);
    smg_budget_decide(w, &w->requests[request], node, r->transition[node], &b);
    q->kr_blocks = b.kr_blocks;
    q->total_blocks = b.total_blocks;
    q->mode = b.full ? SMG_MODE_FULL : SMG_MODE_SELECTIVE;
    if (send_assignment(r, out, q->decode_instance, q->prefill_instance, SMG_MSG_DECODE, request))
        return SMG_ERR_NOMEM;
    return send_assignment(r, out, q->prefill_instance, q->decode_instance, SMG_MSG_PREFILL, request);
}

static int dispatch(struct router *r, struct smg_actions *out)
{
    uint32_t n = 0, request;
    uint16_t prefill;
    int status = SMG_OK;

    while (queue_take(r, &request, &prefill)) {
        assign(r, request, prefill);
        r->starting[n++] = request;
    }
    for (uint32_t i = 0; i < n && !status; i++)
        status = launch(r, r->starting[i], out);
    return status;
}

/* ---- Events ---- */

/* Arrivals of one instant are dispatched together, by a timer that fires after all of them. */
static int on_arrive(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    queue_push(r, e->request);
    if (r->timer_pending)
        return SMG_OK;
    r->timer_pending = 1;
    return smg_agent_act(&r->base, out, SMG_ACT_TIMER, SMG_LANE_NONE, 0, SMG_FOR_DISPATCH, 0) ? SMG_OK : SMG_ERR_NOMEM;
}

static int barrier_open(struct router *r, struct smg_actions *out)
{
    const struct smg_world *w = r->base.world;

    if (r->started || !smg_world_barrier(w) || r->ready < r->decoding)
        return SMG_OK;
    r->started = 1;
    for (uint32_t i = 1 + w->prefill_instances; i < smg_world_instances(w); i++)
        if (!smg_agent_send(&r->base, out, (uint16_t)i, SMG_MSG_START, 0))
            return SMG_ERR_NOMEM;
    return SMG_OK;
}

static void leave_transition(struct router *r, uint32_t request)
{
    if (!r->in_transition[request])
        return;
    r->in_transition[request] = 0;
    r->transition[smg_world_node(r->base.world, r->records.request[request].decode_instance)]--;
}

static int on_ready(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    if (r->records.request[e->msg.request].status != SMG_REQUEST_RUNNING)
        return SMG_OK;
    r->records.request[e->msg.request].ready_s = e->now_s;
    leave_transition(r, e->msg.request);
    r->ready++;
    return barrier_open(r, out);
}

static void settle(struct router *r, uint32_t request)
{
    struct smg_request_record *q = &r->records.request[request];

    if (q->status != SMG_REQUEST_RUNNING || r->summaries[request] || q->tokens < q->output_tokens)
        return;
    q->status = SMG_REQUEST_FINISHED;
    r->records.finished++;
    r->active[q->prefill_instance]--;
    if (q->decode_instance)
        r->active[q->decode_instance]--;
}

/* The GPU of a prefill instance is free for the next prompt. */
static int prefill_free(struct router *r, uint16_t prefill, struct smg_actions *out)
{
    if (r->busy[prefill])
        r->idle++;
    r->busy[prefill] = 0;
    return dispatch(r, out);
}

/* Tokens from 2 on come from another instance than the first, and on a real network may overtake it. */
static int next_token(const struct smg_request_record *q, uint32_t token)
{
    uint32_t first = !isnan(q->first_token_s);

    return token == 1 ? !first : token == q->tokens - first + 2;
}

static int on_token(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_request_record *q = &r->records.request[e->msg.request];
    struct smg_token_record t = {e->msg.request,
                                 e->msg.u.token.token,
                                 e->now_s,
                                 e->msg.u.token.selected_entries,
                                 e->msg.u.token.remote_entries,
                                 e->msg.u.token.on_demand_bytes,
                                 e->msg.u.token.speculative_bytes};

    if (q->status != SMG_REQUEST_RUNNING) /* of a request that failed meanwhile nothing is recorded any more */
        return t.token == 1 ? prefill_free(r, e->peer, out) : SMG_OK;
    if (!next_token(q, t.token))
        return SMG_ERR_PROTOCOL;
    q->tokens++;
    if (t.token == 1)
        q->first_token_s = q->prefill_end_s = e->now_s;
    if (t.token == 2)
        q->second_token_s = e->now_s;
    if (t.token == q->output_tokens)
        q->finish_s = e->now_s;
    if (r->base.world->scenario.records.tokens && smg_records_token(&r->records, &t))
        return SMG_ERR_NOMEM;
    settle(r, e->msg.request);
    return t.token == 1 ? prefill_free(r, e->peer, out) : SMG_OK;
}

static void on_summary(struct router *r, const struct smg_event *e)
{
    struct smg_request_record *q = &r->records.request[e->msg.request];

    q->messages += e->msg.u.summary.messages;
    if (smg_world_is_prefill(r->base.world, e->peer)) {
        q->metadata_bytes = e->msg.u.summary.metadata_bytes;
        q->proactive_bytes = e->msg.u.summary.proactive_bytes;
        q->speculative_bytes = e->msg.u.summary.speculative_bytes;
        q->on_demand_sent_bytes = e->msg.u.summary.on_demand_bytes;
    } else {
        q->on_demand_bytes = e->msg.u.summary.on_demand_bytes;
        q->selected_entries = e->msg.u.summary.selected_entries;
        q->remote_entries = e->msg.u.summary.remote_entries;
    }
    if (r->summaries[e->msg.request])
        r->summaries[e->msg.request]--;
    settle(r, e->msg.request);
}

/* A request failed somewhere: record why, and tell its other instance to drop it. From a prefill instance the word also says that
 * its GPU does not (or no longer) compute the prompt; it comes once more when the failure was another instance's. */
static int on_failed(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_request_record *q = &r->records.request[e->msg.request];
    uint16_t other = e->peer == q->prefill_instance ? q->decode_instance : q->prefill_instance;
    struct smg_action *act;

    if (q->status != SMG_REQUEST_RUNNING)
        return e->peer == q->prefill_instance ? prefill_free(r, e->peer, out) : SMG_OK;
    q->status = SMG_REQUEST_FAILED;
    q->reason = e->msg.u.failed.status;
    r->records.failed++;
    r->active[q->prefill_instance]--;
    if (q->decode_instance) {
        r->active[q->decode_instance]--;
        leave_transition(r, e->msg.request);
        r->decoding--;
        r->ready -= !isnan(q->ready_s);
    }
    if (other) {
        act = smg_agent_send(&r->base, out, other, SMG_MSG_FAILED, e->msg.request);
        if (!act)
            return SMG_ERR_NOMEM;
        act->msg.u.failed.status = q->reason;
    }
    if (barrier_open(r, out))
        return SMG_ERR_NOMEM;
    return e->peer == q->prefill_instance ? prefill_free(r, e->peer, out) : SMG_OK;
}

static int on_message(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_request_record *q;

    if (e->msg.request >= r->records.n_requests)
        return SMG_ERR_PROTOCOL;
    q = &r->records.request[e->msg.request];
    switch (e->msg.kind) {
    case SMG_MSG_STARTED:
        q->prefill_start_s = e->now_s;
        return SMG_OK;
    case SMG_MSG_TOKEN:
        return on_token(r, e, out);
    case SMG_MSG_READY:
        return on_ready(r, e, out);
    case SMG_MSG_JOINED:
        q->decode_join_s = e->now_s;
        return SMG_OK;
    case SMG_MSG_PUSHED:
        q->push_done_s = e->now_s;
        return SMG_OK;
    case SMG_MSG_SUMMARY:
        on_summary(r, e);
        return SMG_OK;
    case SMG_MSG_FAILED:
        return on_failed(r, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int router_step(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    struct router *r = router_of(a);

    switch (e->kind) {
    case SMG_EV_ARRIVE:
        return e->request < r->records.n_requests ? on_arrive(r, e, out) : SMG_ERR_PROTOCOL;
    case SMG_EV_TIMER:
        r->timer_pending = 0;
        return dispatch(r, out);
    case SMG_EV_MSG:
        return on_message(r, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static const struct smg_records *router_records(const struct smg_agent *a)
{
    return &((const struct router *)a)->records;
}

const struct smg_agent_type smg_router_agent = {"router", router_create, router_destroy, router_step, router_records};
