/* Router agent: admits requests, chooses instances, decides Kr (Eq. 2) when a prefill starts, and keeps the records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/agent_priv.h"
#include "core/cost.h"
#include "core/record.h"
#include "core/reserve.h"

/* An instance that another one has lost may be lost, or that one is: it gets new requests where there is no better one. */
enum trust { UNUSABLE, DOUBTED, TRUSTED };

struct router {
    struct smg_agent base;
    struct smg_records records;
    uint32_t *queue; /* ring of waiting request ids in order of arrival, [n_requests] */
    uint32_t head, tail;
    uint8_t *summaries;     /* [n_requests] whose summaries are still awaited, SMG_UNCOUNTED_ bits */
    uint8_t *in_transition; /* [n_requests] prefill started, hand-off not complete */
    uint8_t *usable;        /* [instances] enum trust: new requests go to those with the most of it */
    uint32_t usable_prefill, usable_decode;
    uint32_t *computing;  /* [instances] request + 1: a prefill instance computes one prompt at a time; 0: idle */
    uint32_t idle;        /* usable prefill instances that are idle */
    uint32_t *active;     /* [instances] requests assigned and not finished */
    uint32_t *transition; /* [nodes] requests in transition towards a decode node's NIC */
    uint32_t *starting;   /* [n_requests] scratch: requests dispatched at this instant */
    uint32_t decoding;    /* requests that will need decode and have not failed */
    uint32_t ready;
    int timer_pending, started;
    int32_t lost_status; /* of the instance that was lost last, and which it was */
    uint16_t lost_instance;
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
    free(r->usable);
    free(r->computing);
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
    r->idle = r->usable_prefill = w->prefill_instances;
    r->usable_decode = w->decode_instances;
    r->usable = malloc(instances);
    r->computing = calloc(instances, sizeof *r->computing);
    r->active = calloc(instances, sizeof *r->active);
    r->transition = calloc(smg_world_nodes(w), sizeof *r->transition);
    if (!r->queue || !r->starting || !r->summaries || !r->in_transition || !r->usable || !r->computing || !r->active ||
        !r->transition)
        return SMG_ERR_NOMEM;
    memset(r->usable, TRUSTED, instances);
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

static int router_reserve(struct smg_agent *a)
{
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < a->world->n_requests; i++)
        tokens += a->world->requests[i].output_tokens;
    return smg_records_reserve(&router_of(a)->records, tokens);
}

/* ---- Choosing instances ---- */

/* 0: none is usable. */
static uint16_t least_active(const struct router *r, uint32_t first, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = first; i < first + count; i++)
        if (r->usable[i] &&
            (!best || r->usable[i] > r->usable[best] || (r->usable[i] == r->usable[best] && r->active[i] < r->active[best])))
            best = i;
    return (uint16_t)best;
}

/* A request's turn; when its instance is not usable, the next one's. 0: none is usable. */
static uint16_t round_robin(const struct router *r, uint32_t request, uint32_t first, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t turn = first + (request + i) % count;
        if (r->usable[turn] && (!best || r->usable[turn] > r->usable[best]))
            best = turn;
    }
    return (uint16_t)best;
}

/* An idle prefill instance for a request, 0 when it has to wait. */
static uint16_t pick_prefill(const struct router *r, uint32_t request)
{
    const struct smg_world *w = r->base.world;
    uint16_t best = 0;

    if (w->scenario.routing == SMG_ROUTING_ROUND_ROBIN) {
        uint16_t i = round_robin(r, request, 1, w->prefill_instances);
        return r->computing[i] ? 0 : i;
    }
    for (uint32_t i = 1; i <= w->prefill_instances; i++)
        if (r->usable[i] && !r->computing[i] && (!best || r->usable[i] > r->usable[best]))
            best = (uint16_t)i;
    return best;
}

static uint16_t pick_decode(const struct router *r, uint32_t request)
{
    const struct smg_world *w = r->base.world;
    uint32_t first = 1 + w->prefill_instances;

    if (w->scenario.routing == SMG_ROUTING_ROUND_ROBIN)
        return round_robin(r, request, first, w->decode_instances);
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
    r->computing[prefill] = request + 1;
    r->idle--;
    r->active[prefill]++;
    r->summaries[request] = SMG_UNCOUNTED_PREFILL;
    if (q->output_tokens == 1)
        return; /* the prefill node makes the only token: nothing to hand off */
    q->decode_instance = pick_decode(r, request);
    r->active[q->decode_instance]++;
    r->summaries[request] = SMG_UNCOUNTED_PREFILL | SMG_UNCOUNTED_DECODE;
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

static int barrier_open(struct router *r, struct smg_actions *out)
{
    const struct smg_world *w = r->base.world;

    if (r->started || !smg_world_barrier(w) || r->ready < r->decoding)
        return SMG_OK;
    r->started = 1;
    for (uint32_t i = 1 + w->prefill_instances; i < smg_world_instances(w); i++)
        if (!r->base.lost[i] && !smg_agent_send(&r->base, out, (uint16_t)i, SMG_MSG_START, 0))
            return SMG_ERR_NOMEM;
    return SMG_OK;
}

static int servable(const struct router *r, uint32_t request)
{
    return r->usable_prefill && (r->usable_decode || r->records.request[request].output_tokens == 1);
}

/* Waiting requests that no instance is left for fail. */
static int drop_waiting(struct router *r, struct smg_actions *out)
{
    uint32_t n = r->records.n_requests, kept = r->head;

    for (uint32_t i = r->head; i != r->tail; i++) {
        struct smg_request_record *q = &r->records.request[r->queue[i % n]];
        if (servable(r, r->queue[i % n])) {
            r->queue[kept++ % n] = r->queue[i % n];
            continue;
        }
        q->status = SMG_REQUEST_FAILED;
        q->reason = r->lost_status;
        q->culprit = r->lost_instance;
        r->records.failed++;
        r->decoding -= q->output_tokens > 1;
    }
    r->tail = kept;
    return barrier_open(r, out);
}

static int dispatch(struct router *r, struct smg_actions *out)
{
    uint32_t n = 0, request;
    uint16_t prefill;
    int status = r->usable_prefill && r->usable_decode ? SMG_OK : drop_waiting(r, out);

    if (status)
        return status;
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
    if (!isnan(r->records.request[e->msg.request].ready_s))
        return SMG_ERR_PROTOCOL;
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

/* The GPU of a prefill instance is free for the next prompt, if this is the request that it worked for. */
static int prefill_free(struct router *r, uint16_t prefill, uint32_t request, struct smg_actions *out)
{
    if (r->computing[prefill] != request + 1)
        return SMG_OK;
    r->computing[prefill] = 0;
    r->idle += r->usable[prefill] != UNUSABLE;
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
        return t.token == 1 ? prefill_free(r, e->peer, t.request, out) : SMG_OK;
    if (t.token > q->output_tokens || (t.token == 1) != (e->peer == q->prefill_instance) || !next_token(q, t.token))
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
    return t.token == 1 ? prefill_free(r, e->peer, t.request, out) : SMG_OK;
}

static uint8_t part_of(const struct router *r, uint16_t instance)
{
    return smg_world_is_prefill(r->base.world, instance) ? SMG_UNCOUNTED_PREFILL : SMG_UNCOUNTED_DECODE;
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
    r->summaries[e->msg.request] &= (uint8_t)~part_of(r, e->peer);
    settle(r, e->msg.request);
}

/* An instance's counts of a request will not come; the request may be finished without them. */
static void do_without(struct router *r, uint32_t request, uint16_t instance)
{
    uint8_t missing = r->summaries[request] & part_of(r, instance);

    r->summaries[request] &= (uint8_t)~missing;
    r->records.request[request].uncounted |= missing;
    settle(r, request);
}

static int all_tokens(const struct smg_request_record *q)
{
    return q->tokens == q->output_tokens;
}

static int send_failed(struct router *r, uint32_t request, uint16_t to, struct smg_actions *out)
{
    const struct smg_request_record *q = &r->records.request[request];
    struct smg_action *act;

    if (!to || r->base.lost[to])
        return SMG_OK;
    act = smg_agent_send(&r->base, out, to, SMG_MSG_FAILED, request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->msg.u.failed.status = q->reason;
    act->msg.u.failed.instance = q->culprit;
    return SMG_OK;
}

/* Records why a running request fails, and tells its instances but the one that it is known from. */
static int fail(struct router *r, uint32_t request, int status, uint16_t culprit, uint16_t known_from, struct smg_actions *out)
{
    struct smg_request_record *q = &r->records.request[request];
    int told = SMG_OK;

    q->status = SMG_REQUEST_FAILED;
    q->reason = status;
    q->culprit = culprit;
    r->records.failed++;
    r->active[q->prefill_instance]--;
    if (q->decode_instance) {
        r->active[q->decode_instance]--;
        leave_transition(r, request);
        r->decoding--;
        r->ready -= !isnan(q->ready_s);
    }
    if (q->prefill_instance != known_from)
        told = send_failed(r, request, q->prefill_instance, out);
    if (!told && q->decode_instance != known_from)
        told = send_failed(r, request, q->decode_instance, out);
    return told;
}

/* No new request goes to this instance. */
static void give_up(struct router *r, uint16_t instance, int status)
{
    if (!r->usable[instance])
        return;
    r->usable[instance] = UNUSABLE;
    r->records.lost++;
    r->lost_status = status;
    r->lost_instance = instance;
    if (smg_world_is_prefill(r->base.world, instance)) {
        r->usable_prefill--;
        r->idle -= !r->computing[instance];
    } else {
        r->usable_decode--;
    }
}

static void doubt(struct router *r, uint32_t instance)
{
    if (r->usable[instance] == TRUSTED)
        r->usable[instance] = DOUBTED;
}

/* After a failure: the barrier may open, and there may be instances, or none, for those that wait. Arrivals of this instant wait
 * for their timer. */
static int go_on(struct router *r, struct smg_actions *out)
{
    int status = barrier_open(r, out);

    return status || r->timer_pending ? status : dispatch(r, out);
}

/* An instance that was cut off may say first that it has lost the one that did so. */
static void blame(struct smg_request_record *q, uint16_t culprit)
{
    q->reason = SMG_ERR_PROTOCOL;
    q->culprit = culprit;
}

/* A request failed somewhere. From a prefill instance the word also says that its GPU does not (or no longer) compute the prompt,
 * unless it says that it is busy; it comes once more when the failure was another instance's. An instance whose partner has cut
 * it off gets no new requests. */
static int on_failed(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    uint32_t request = e->msg.request, culprit = e->msg.u.failed.instance;
    const struct smg_request_record *q = &r->records.request[request];
    int cut = e->msg.u.failed.status == SMG_ERR_PROTOCOL, status = SMG_OK;

    if (!e->msg.u.failed.status || (culprit && culprit != q->prefill_instance && culprit != q->decode_instance) ||
        (culprit && culprit == e->peer))
        return SMG_ERR_PROTOCOL;
    if (cut && culprit)
        give_up(r, (uint16_t)culprit, SMG_ERR_PROTOCOL);
    else if (culprit)
        doubt(r, culprit);
    if (q->status == SMG_REQUEST_RUNNING && all_tokens(q))
        do_without(r, request, e->peer);
    else if (q->status == SMG_REQUEST_FAILED && cut && q->reason == SMG_ERR_LOST && q->culprit == e->peer)
        blame(&r->records.request[request], (uint16_t)culprit);
    else if (q->status == SMG_REQUEST_RUNNING)
        status = fail(r, request, e->msg.u.failed.status, (uint16_t)culprit, e->peer, out);
    if (!status)
        status = barrier_open(r, out);
    if (!status && e->peer == q->prefill_instance && !e->msg.u.failed.busy)
        status = prefill_free(r, e->peer, request, out);
    return status || !(cut && culprit) ? status : go_on(r, out);
}

/* Whether a request can do without a lost instance: it has all its tokens, or it was handed off and fetches nothing. Whether the
 * hand-off was complete the decode instance knows, and says FAILED when it was not. */
static int can_spare(const struct router *r, const struct smg_request_record *q, uint16_t lost)
{
    if (all_tokens(q))
        return 1;
    return lost == q->prefill_instance && q->decode_instance && !r->base.lost[q->decode_instance] && !isnan(q->first_token_s) &&
           smg_agent_needs_nothing(&r->base, q->mode);
}

static int on_peer_lost(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    int status = SMG_OK;

    give_up(r, e->peer, e->status);
    r->computing[e->peer] = 0;
    for (uint32_t i = 0; i < r->records.n_requests && !status; i++) {
        const struct smg_request_record *q = &r->records.request[i];
        if (q->status != SMG_REQUEST_RUNNING || (q->prefill_instance != e->peer && q->decode_instance != e->peer))
            continue;
        if (can_spare(r, q, e->peer))
            do_without(r, i, e->peer);
        else
            status = fail(r, i, e->status, e->peer, e->peer, out);
    }
    return status ? status : go_on(r, out);
}

/* Whether a message may be about this request: it comes from one of the instances that serve it. */
static int serves(const struct smg_request_record *q, uint16_t instance)
{
    return q->status != SMG_REQUEST_WAITING && (instance == q->prefill_instance || instance == q->decode_instance);
}

static int on_message(struct router *r, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_request_record *q;

    q = &r->records.request[e->msg.request];
    if (!serves(q, e->peer))
        return SMG_ERR_PROTOCOL;
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
    case SMG_EV_PEER_LOST:
        return on_peer_lost(r, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static const struct smg_records *router_records(const struct smg_agent *a)
{
    return &((const struct router *)a)->records;
}

const struct smg_agent_type smg_router_agent = {"router",    router_create,  router_destroy,
                                                router_step, router_records, router_reserve};
