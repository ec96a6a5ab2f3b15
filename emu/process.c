/* The loop of one emulated process: completions and timers become events, events step the agent, actions go to lanes and become
 * real work. */
#include "emu/process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int smg_process_fail(struct smg_process *p, int status, const char *format, ...)
{
    va_list args;
    int n = snprintf(p->diag.text, sizeof p->diag.text, "instance %u: ", p->self);

    va_start(args, format);
    vsnprintf(p->diag.text + n, sizeof p->diag.text - (size_t)n, format, args);
    va_end(args);
    return status;
}

uint8_t *smg_process_at(const struct smg_process *p, uint64_t offset)
{
    return smg_arena_base(p->arena) + offset;
}

struct smg_piece smg_process_piece(const struct smg_process *p, uint64_t offset, uint64_t bytes)
{
    return (struct smg_piece){smg_process_at(p, offset), bytes, p->mr};
}

uint64_t smg_context(const void *pointer, unsigned kind)
{
    return (uint64_t)(uintptr_t)pointer | kind;
}

/* ---- Contents ---- */

int smg_process_half_is(struct smg_process *p, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v,
                        uint64_t bytes, const uint8_t *data)
{
    uint8_t expected[4 * SMG_COMPUTE_MAX_DIM];

    if (!p->compute)
        return smg_content_is(p->world->scenario.seed, request, layer, head, token, v, bytes, data);
    smg_compute_half(p->compute, request, layer, head, token, v, expected);
    return !memcmp(expected, data, bytes);
}

int smg_process_compute(struct smg_process *p, uint32_t request, int status)
{
    return status ? smg_process_fail(p, status, "request %u: %s", request, smg_compute_diag(p->compute)) : SMG_OK;
}

/* ---- Events and timers ---- */

int smg_process_event(struct smg_process *p, const struct smg_event *e)
{
    if (p->n_events == p->cap_events) {
        size_t cap = p->cap_events ? 2 * p->cap_events : 64;
        struct smg_event *grown = malloc(cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        for (size_t i = 0; i < p->n_events; i++)
            grown[i] = p->event[(p->event_head + i) % p->cap_events];
        free(p->event);
        p->event = grown;
        p->event_head = 0;
        p->cap_events = cap;
    }
    p->event[(p->event_head + p->n_events++) % p->cap_events] = *e;
    return SMG_OK;
}

static int sooner(const struct smg_timer *a, const struct smg_timer *b)
{
    return a->due_s < b->due_s || (!(b->due_s < a->due_s) && a->sequence < b->sequence);
}

static int timer_add(struct smg_process *p, double due_s, struct smg_op *op, int arrival)
{
    size_t i;

    if (p->n_timers == p->cap_timers) {
        size_t cap = p->cap_timers ? 2 * p->cap_timers : 64;
        struct smg_timer *grown = realloc(p->timer, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        p->timer = grown;
        p->cap_timers = cap;
    }
    i = p->n_timers++;
    p->timer[i] = (struct smg_timer){due_s, p->sequence++, op, arrival};
    for (; i && sooner(&p->timer[i], &p->timer[(i - 1) / 2]); i = (i - 1) / 2) {
        struct smg_timer t = p->timer[i];
        p->timer[i] = p->timer[(i - 1) / 2];
        p->timer[(i - 1) / 2] = t;
    }
    return SMG_OK;
}

static struct smg_timer timer_pop(struct smg_process *p)
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

/* ---- Operations ---- */

int smg_process_done(struct smg_process *p, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    struct smg_event e;
    int status = SMG_OK;

    if (p->observer.operation)
        p->observer.operation(p->observer.arg, op, op->start_s, smg_harness_now(p->harness));
    if (a->flags & SMG_ACT_NOTIFY) {
        smg_event_done(a, &e);
        status = smg_process_event(p, &e);
    }
    smg_lanes_complete(p->lanes, op);
    return status;
}

/* Paced compute: the lane is held for the modelled time, while the bytes it makes or reads are made or checked. */
static int start_compute(struct smg_process *p, struct smg_op *op)
{
    const struct smg_action *a = &op->action;
    double due_s = op->start_s + a->duration_s * p->world->scenario.emu.time_scale;
    int status = SMG_OK;

    if (a->purpose == SMG_FOR_PREFILL_LAYER)
        status = smg_prefill_fill(p, a->request, a->layer_lo);
    if (a->purpose == SMG_FOR_ATTENTION)
        status = smg_decode_attention(p, a);
    return status ? status : timer_add(p, due_s, op, 0);
}

/* A shaped transfer is posted when its last byte would be through the link; its lane is held until then. */
static int shaped(struct smg_process *p, struct smg_op *op, double *due_s)
{
    const struct smg_action *a = &op->action;

    if (!p->links || a->kind == SMG_ACT_RECV)
        return 0;
    *due_s = smg_links_take(p->links, smg_world_node(p->world, p->self), smg_world_node(p->world, a->peer),
                            (double)(a->bytes + a->mask_bytes), smg_harness_now(p->harness));
    return 1;
}

/* Posts and lets the lane go on: the queue pair keeps the order. */
static int post_now(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.kind == SMG_ACT_WRITE)
        status = smg_prefill_write(p, op);
    else if (op->action.kind == SMG_ACT_REPLY)
        status = smg_prefill_reply(p, op);
    else
        status = smg_decode_receive(p, op);
    if (!status)
        smg_lanes_release(p->lanes, op);
    return status;
}

static int start_posted(struct smg_process *p, struct smg_op *op)
{
    double due_s;

    return shaped(p, op, &due_s) ? timer_add(p, due_s, op, 0) : post_now(p, op);
}

static int start_now(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.kind == SMG_ACT_SPLIT)
        status = smg_decode_split(p, op);
    else if (op->action.purpose == SMG_FOR_REPLY_GATHER)
        status = smg_prefill_gather(p, op);
    else
        status = smg_decode_move(p, op);
    return status ? status : smg_process_done(p, op);
}

/* A message whose slots are all in flight keeps its lane and is tried again. */
static int start_send(struct smg_process *p, struct smg_op *op)
{
    int status;

    if (op->action.duration_s > 0 && !op->phase) {
        op->phase = 1; /* a fixed time ahead of the message */
        return timer_add(p, op->start_s + op->action.duration_s, op, 0);
    }
    status = smg_ctl_send(p, op);
    if (status == SMG_ERR_CAPACITY)
        return timer_add(p, smg_harness_now(p->harness) + 20e-6, op, 0);
    if (!status)
        smg_lanes_release(p->lanes, op);
    return status;
}

static int start(struct smg_process *p, struct smg_op *op)
{
    op->start_s = smg_harness_now(p->harness);
    switch (op->action.kind) {
    case SMG_ACT_COMPUTE:
        return start_compute(p, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
    case SMG_ACT_RECV:
        return start_posted(p, op);
    case SMG_ACT_SEND:
        return start_send(p, op);
    default:
        return start_now(p, op);
    }
}

int smg_process_kick(struct smg_process *p)
{
    struct smg_op *op;
    int status = SMG_OK;

    while (!status && (op = smg_lanes_start(p->lanes)))
        status = start(p, op);
    return status;
}

/* ---- Memory ---- */

static int reserved(struct smg_process *p, uint32_t request, uint32_t op, uint64_t bytes, int outcome)
{
    struct smg_event e;
    int status = SMG_OK;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_RESERVED;
    e.request = request;
    e.op = op;
    e.status = outcome;
    p->reserved_bytes[request] = outcome ? 0 : bytes;
    if (!outcome && smg_world_is_prefill(p->world, p->self))
        status = smg_prefill_open(p, request);
    else if (!outcome)
        status = smg_decode_open(p, request, e.cookie);
    return status ? status : smg_process_event(p, &e);
}

static int reserve(struct smg_process *p, const struct smg_action *a)
{
    int status = smg_pool_ask(&p->pool, a->request, a->op, a->bytes);

    if (status == SMG_OK || status == SMG_ERR_CAPACITY)
        return reserved(p, a->request, a->op, a->bytes, status);
    return status == SMG_ERR_RANGE ? SMG_OK : status;
}

static int release(struct smg_process *p, const struct smg_action *a)
{
    uint32_t request, op;
    uint64_t bytes;
    int status = SMG_OK;

    if (smg_world_is_prefill(p->world, p->self))
        smg_prefill_close(p, a->request);
    else
        status = smg_decode_close(p, a->request);
    smg_pool_give(&p->pool, p->reserved_bytes[a->request]);
    while (!status && smg_pool_next(&p->pool, &request, &op, &bytes))
        status = reserved(p, request, op, bytes, SMG_OK);
    return status;
}

static int execute_now(struct smg_process *p, const struct smg_action *a)
{
    switch (a->kind) {
    case SMG_ACT_RESERVE:
        return reserve(p, a);
    case SMG_ACT_RELEASE:
        return release(p, a);
    case SMG_ACT_TIMER:
        return timer_add(p, smg_harness_now(p->harness) + a->duration_s, NULL, 0);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int submit(struct smg_process *p)
{
    int status = SMG_OK;

    for (size_t i = 0; i < p->actions.n && !status; i++) {
        const struct smg_action *a = &p->actions.action[i];
        if (a->lane == SMG_LANE_NONE)
            status = execute_now(p, a);
        else
            status = smg_lanes_submit(p->lanes, a, a->n_items ? p->actions.items + a->item_first : NULL);
    }
    return status ? status : smg_process_kick(p);
}

/* ---- The loop ---- */

static int step(struct smg_process *p)
{
    struct smg_event e = p->event[p->event_head];
    int status;

    p->event_head = (p->event_head + 1) % p->cap_events;
    p->n_events--;
    e.now_s = smg_harness_now(p->harness);
    if (e.kind == SMG_EV_MSG && e.msg.kind == SMG_MSG_DECODE) {
        p->kr_blocks[e.msg.request] = e.msg.u.assign.kr_blocks;
        p->full[e.msg.request] = e.msg.u.assign.mode == SMG_MODE_FULL;
    }
    if (e.kind == SMG_EV_MSG && e.msg.kind == SMG_MSG_HANDOFF)
        p->handed_off[e.msg.request] = 1;
    status = smg_agent_step(p->agent, &e, &p->actions);
    p->stats.events++;
    p->stats.actions += p->actions.n;
    if (status)
        return smg_process_fail(p, status, "event %s (message %s, request %u) was refused: %s", smg_event_name(e.kind),
                                smg_message_name(e.msg.kind), e.request, smg_status_string(status));
    if (p->observer.step)
        status = p->observer.step(p->observer.arg, p->self, &e, &p->actions);
    return status ? status : submit(p);
}

static int op_completed(struct smg_process *p, struct smg_op *op)
{
    int complete = 1, status = SMG_OK;

    if (op->action.kind == SMG_ACT_WRITE) {
        status = smg_prefill_write_done(p, op, &complete);
    } else if (op->action.kind == SMG_ACT_RECV) {
        complete = !--op->phase;
        if (complete)
            status = smg_decode_received(p, op);
    } else {
        smg_prefill_reply_done(p, &op->action);
    }
    return status || !complete ? status : smg_process_done(p, op);
}

/* At the end of a run peers close in any order: a lost peer is trouble only when nobody says stop. */
static int lost(struct smg_process *p, uint16_t peer)
{
    if (p->stopping || (p->self && smg_harness_stopped(p->harness, 1))) {
        p->stopping = 1;
        return SMG_OK;
    }
    return smg_process_fail(p, SMG_ERR_LOST, "lost instance %u", peer);
}

static int completed(struct smg_process *p, const struct smg_completion *c)
{
    struct smg_op *op = (struct smg_op *)(uintptr_t)(c->context & ~(uint64_t)SMG_CONTEXT_MASK);

    if (c->kind == SMG_DONE_PEER_LOST)
        return lost(p, c->peer);
    if (c->status && (p->stopping || (c->status == SMG_ERR_LOST && p->self && !lost(p, c->peer))))
        return SMG_OK;
    if (c->status)
        return smg_process_fail(p, c->status, "transfer with instance %u failed: %s (%s)", c->peer, smg_status_string(c->status),
                                smg_fabric_cause(p->fabric, c->cause));
    switch (c->context & SMG_CONTEXT_MASK) {
    case SMG_CONTEXT_OP:
        return op_completed(p, op);
    case SMG_CONTEXT_RECEIVE:
        return smg_ctl_received(p, c);
    case SMG_CONTEXT_SEND:
        return smg_ctl_sent(p, c->context >> 3);
    default:
        return SMG_OK;
    }
}

static int arrivals(struct smg_process *p)
{
    double now_s = smg_harness_now(p->harness);
    int status = SMG_OK;

    while (!status && p->next_arrival < p->world->n_requests && p->world->requests[p->next_arrival].arrival_s <= now_s) {
        struct smg_event e;
        memset(&e, 0, sizeof e);
        e.kind = SMG_EV_ARRIVE;
        e.request = p->next_arrival++;
        status = smg_process_event(p, &e);
    }
    if (!status && p->next_arrival < p->world->n_requests)
        status = timer_add(p, p->world->requests[p->next_arrival].arrival_s, NULL, 1);
    return status;
}

static int resume(struct smg_process *p, struct smg_op *op)
{
    switch (op->action.kind) {
    case SMG_ACT_SEND:
        return start_send(p, op);
    case SMG_ACT_WRITE:
    case SMG_ACT_REPLY:
        return post_now(p, op);
    default:
        return smg_process_done(p, op);
    }
}

static int fire(struct smg_process *p, const struct smg_timer *t)
{
    struct smg_event e;

    if (t->arrival)
        return arrivals(p);
    if (t->op)
        return resume(p, t->op);
    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_TIMER;
    return smg_process_event(p, &e);
}

static int fire_due(struct smg_process *p)
{
    double now_s = smg_harness_now(p->harness);
    int status = SMG_OK;

    while (!status && p->n_timers && p->timer[0].due_s <= now_s) {
        struct smg_timer t = timer_pop(p);
        status = fire(p, &t);
    }
    return status ? status : smg_process_kick(p);
}

/* Longest wait between looks at the harness, s. */
static const double look_s = 0.02;

static int wait_some(struct smg_process *p, int *idle)
{
    struct smg_completion c[64];
    double timeout_s = look_s;
    size_t n = 0;
    int status;

    if (p->n_timers && p->timer[0].due_s - smg_harness_now(p->harness) < timeout_s)
        timeout_s = p->timer[0].due_s - smg_harness_now(p->harness);
    status = smg_fabric_poll(p->fabric, c, sizeof c / sizeof c[0], timeout_s > 0 ? timeout_s : 0, &n, &p->diag);
    for (size_t i = 0; i < n && !status; i++)
        status = completed(p, &c[i]);
    *idle = !n;
    return status ? status : fire_due(p);
}

static int settled(const struct smg_process *p)
{
    const struct smg_records *r = smg_agent_records(p->agent);

    return r && r->finished + r->failed == r->n_requests;
}

/* Nothing happens because nothing is there to do before the next request arrives. */
static int waits_for_arrival(const struct smg_process *p)
{
    const struct smg_records *r = smg_agent_records(p->agent);

    return r && r->finished + r->failed == p->next_arrival && p->next_arrival < r->n_requests;
}

static int stalled(struct smg_process *p)
{
    const struct smg_records *r = smg_agent_records(p->agent);
    size_t at;
    uint32_t named = 0;

    smg_process_fail(p, SMG_ERR_DEADLOCK, "no progress for %.3g s; waiting requests:", p->config->stall_timeout_s);
    at = strlen(p->diag.text);
    for (uint32_t i = 0; i < r->n_requests && named < 16 && at < sizeof p->diag.text; i++) {
        if (r->request[i].status == SMG_REQUEST_FINISHED || r->request[i].status == SMG_REQUEST_FAILED)
            continue;
        named++;
        at += (size_t)snprintf(p->diag.text + at, sizeof p->diag.text - at, " %u (%u of %u tokens)", i, r->request[i].tokens,
                               r->request[i].output_tokens);
    }
    return SMG_ERR_DEADLOCK;
}

/* A stopped instance need not keep the others from going on, for a while. */
static int check_halted(struct smg_process *p, double *since_s)
{
    double now_s = smg_harness_now(p->harness);
    uint32_t halted = smg_harness_halted(p->harness);

    if (!halted)
        *since_s = now_s;
    if (now_s - *since_s <= p->config->stall_timeout_s)
        return SMG_OK;
    snprintf(p->diag.text, sizeof p->diag.text, "instance %u has been stopped by a signal for %.3g s", halted,
             p->config->stall_timeout_s);
    return SMG_ERR_DEADLOCK;
}

/* Until the router has settled every request, or a child is told to stop. */
static int loop(struct smg_process *p)
{
    double last_s = 0, awake_s = 0;
    uint64_t seen = 0;
    int status = p->self ? SMG_OK : arrivals(p), idle = 0;

    while (!status) {
        while (!status && p->n_events)
            status = step(p);
        if (status || settled(p))
            break;
        status = wait_some(p, &idle);
        if (p->stopping)
            break;
        if (!idle || status || p->n_events)
            continue;
        if (p->self && smg_harness_stopped(p->harness, 0))
            break;
        if (!p->self && smg_harness_trouble(p->harness))
            status = smg_process_fail(p, SMG_ERR_LOST, "another instance failed");
        if (p->stats.events != seen || waits_for_arrival(p)) {
            seen = p->stats.events;
            last_s = smg_harness_now(p->harness);
        }
        if (!p->self && !status && smg_harness_now(p->harness) - last_s > p->config->stall_timeout_s)
            status = stalled(p);
        if (!p->self && !status)
            status = check_halted(p, &awake_s);
    }
    p->stats.end_s = smg_harness_now(p->harness);
    return status;
}

/* ---- Set-up ---- */

/* Room for every request at once: memory that is not touched costs nothing. */
uint64_t smg_process_arena_need(const struct smg_process *p)
{
    uint64_t n = 0, longest = 0;

    for (uint32_t r = 0; r < p->world->n_requests; r++) {
        if (smg_world_is_prefill(p->world, p->self))
            n += smg_prefill_need(p, r);
        else if (p->self)
            n += smg_decode_need(p, r);
        if (p->world->requests[r].prompt_tokens > longest)
            longest = p->world->requests[r].prompt_tokens;
    }
    return n + longest + p->ctl_bytes * (SMG_CTL_SENDS + (uint64_t)SMG_CTL_RECEIVES * p->instances) + 8 * SMG_ARENA_ALIGN;
}

static int set_up_memory(struct smg_process *p)
{
    uint64_t mask = 0;
    int status;

    p->ctl_bytes = smg_ctl_bytes(p->world);
    for (uint32_t r = 0; r < p->world->n_requests; r++)
        mask = p->world->requests[r].prompt_tokens > mask ? p->world->requests[r].prompt_tokens : mask;
    status = smg_arena_create(smg_process_arena_need(p), &p->arena);
    if (!status)
        status = smg_arena_take(p->arena, p->ctl_bytes * SMG_CTL_SENDS, &p->ctl_send);
    if (!status)
        status = smg_arena_take(p->arena, p->ctl_bytes * SMG_CTL_RECEIVES * p->instances, &p->ctl_receive);
    if (!status)
        status = smg_arena_take(p->arena, mask, &p->ones);
    if (status)
        return status;
    memset(smg_process_at(p, p->ones), SMG_MASK_LOCAL, mask);
    return smg_fabric_register(p->fabric, smg_arena_base(p->arena), smg_arena_bytes(p->arena), &p->mr, &p->diag);
}

static int set_up_tables(struct smg_process *p)
{
    size_t n = p->world->n_requests ? p->world->n_requests : 1;
    int status = smg_run_stats_init(&p->stats, p->world->n_requests);

    p->peer = calloc(p->instances, sizeof *p->peer);
    p->reserved_bytes = calloc(n, sizeof *p->reserved_bytes);
    p->prefill = calloc(n, sizeof(struct smg_prefill_data *));
    p->decode = calloc(n, sizeof(struct smg_decode_data *));
    p->cookie = calloc(n, sizeof *p->cookie);
    p->kr_blocks = calloc(n, sizeof *p->kr_blocks);
    p->full = calloc(n, 1);
    p->handed_off = calloc(n, 1);
    if (!status && (!p->peer || !p->reserved_bytes || !p->prefill || !p->decode || !p->cookie || !p->kr_blocks || !p->full ||
                    !p->handed_off))
        status = SMG_ERR_NOMEM;
    if (!status)
        status = smg_agent_create(p->world, p->self, &p->agent);
    if (!status)
        status = smg_lanes_create(p->self, p->instances, &p->lanes);
    if (!status && smg_world_is_decode(p->world, p->self))
        status = p->config->selection->create(p->world, &p->selection);
    if (!status && p->plan && p->self != SMG_ROUTER)
        status = smg_compute_create(p->world, p->plan, &p->compute, &p->diag);
    smg_pool_init(&p->pool, p->self ? smg_world_pool_bytes(p->world, p->self) : 0);
    return status;
}

/* Router and instances talk control; prefill and decode instances have all three queues. */
static int join_peers(struct smg_process *p)
{
    struct smg_fabric_peer *peers = calloc(p->instances, sizeof *peers);
    size_t n = 0;
    int status;

    if (!peers)
        return SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < p->instances; i++) {
        int across = smg_world_is_prefill(p->world, p->self)
                         ? smg_world_is_decode(p->world, i)
                         : smg_world_is_decode(p->world, p->self) && smg_world_is_prefill(p->world, i);
        if (i == p->self || (!across && i && p->self))
            continue;
        peers[n].instance = (uint16_t)i;
        peers[n].queues = across ? SMG_QUEUE_ALL : SMG_QUEUE_BIT(SMG_QUEUE_CTL);
        peers[n++].address = p->peer[i].address;
    }
    status = smg_fabric_connect(p->fabric, peers, n, p->config->stall_timeout_s, &p->diag);
    free(peers);
    return status;
}

static int set_up(struct smg_process *p)
{
    struct smg_fabric_config fc = {p->config->provider, NULL, 16384, p->self};
    const struct smg_fabric_type *type = smg_fabric_find(p->config->fabric);
    struct smg_publication own;
    int status = set_up_tables(p);

    if (status)
        return status;
    if (!type)
        return smg_process_fail(p, SMG_ERR_UNSUPPORTED, "this program has no fabric '%s'", p->config->fabric);
    status = smg_fabric_open(type, &fc, &p->fabric, &p->diag);
    if (!status)
        status = set_up_memory(p);
    if (status)
        return status;
    p->limits = *smg_fabric_limits(p->fabric);
    memset(&own, 0, sizeof own);
    smg_fabric_address(p->fabric, &own.address);
    own.memory = smg_mr_remote(p->mr);
    status = smg_harness_swap(p->harness, p->config->stall_timeout_s, &own, p->peer, &p->diag);
    if (!status)
        status = join_peers(p);
    if (!status)
        status = smg_ctl_post_receives(p);
    return status ? status : smg_harness_start(p->harness, p->config->stall_timeout_s, &p->diag);
}

static void tear_down(struct smg_process *p)
{
    for (uint32_t r = 0; r < p->world->n_requests; r++) {
        if (p->prefill && p->prefill[r])
            smg_prefill_close(p, r);
        if (p->decode && p->decode[r])
            smg_decode_free(p, r);
    }
    smg_mr_close(p->mr);
    smg_fabric_close(p->fabric);
    smg_arena_destroy(p->arena);
    if (p->selection)
        p->selection->type->destroy(p->selection);
    smg_compute_destroy(p->compute);
    smg_lanes_destroy(p->lanes);
    smg_agent_destroy(p->agent);
    smg_actions_free(&p->actions);
    smg_pool_free(&p->pool);
    smg_run_stats_free(&p->stats);
    free(p->peer);
    free(p->reserved_bytes);
    free(p->prefill);
    free(p->decode);
    free(p->cookie);
    free(p->kr_blocks);
    free(p->full);
    free(p->handed_off);
    free(p->timer);
    free(p->event);
}

static int run(struct smg_process *p)
{
    int status = p->config->observe ? p->config->observe(p->config->arg, p->self, &p->observer) : SMG_OK, closed = SMG_OK;

    if (!status)
        status = set_up(p);
    if (!status)
        status = loop(p);
    if (status && !p->diag.text[0])
        smg_process_fail(p, status, "%s", smg_status_string(status));
    if (p->config->observed)
        closed = p->config->observed(p->config->arg, p->self, &p->observer);
    return status ? status : closed;
}

/* ---- The two kinds of process ---- */

struct child_arg {
    const struct smg_world *world;
    const struct smg_emu_config *config;
    struct smg_links *links;     /* NULL: not shaped */
    struct smg_compute_plan *plan; /* NULL: paced */
};

static void process_init(struct smg_process *p, const struct child_arg *c, struct smg_harness *h)
{
    const struct smg_world *w = c->world;

    memset(p, 0, sizeof *p);
    p->world = w;
    p->config = c->config;
    p->links = c->links;
    p->plan = c->plan;
    p->harness = h;
    p->self = h->self;
    p->instances = smg_world_instances(w);
    smg_scheme_features(w, &p->features);
}

static int child(void *arg, struct smg_harness *h)
{
    const struct child_arg *c = arg;
    struct smg_process p;
    int status;

    process_init(&p, c, h);
    status = run(&p);
    if (p.stats.digest)
        (void)smg_harness_report(h, status, &p.stats, &p.diag); /* a parent that is gone wants no report */
    tear_down(&p);
    return status;
}

static int copy_records(const struct smg_records *from, struct smg_records *to)
{
    int status = smg_records_init(to, from->n_requests);

    if (status)
        return status;
    memcpy(to->request, from->request, from->n_requests * sizeof *to->request);
    to->finished = from->finished;
    to->failed = from->failed;
    for (size_t i = 0; i < from->n_tokens && !status; i++)
        status = smg_records_token(to, &from->token[i]);
    return status;
}

static int check_world(const struct smg_world *w, struct smg_diag *diag)
{
    const char *what = NULL;

    if (w->scenario.detail != SMG_DETAIL_LAYER)
        what = "key 'detail': the emulation works layer by layer, set detail: layer";
    else if (strcmp(w->scheme->name, "hack") == 0)
        what = "key 'scheme': hack keeps codes on a GPU, which the emulation does not have yet; simulate it";
    else if (w->scenario.selection.source != SMG_SOURCE_ENTRY)
        what = "key 'selection.source': the emulation needs real index lists, set selection.source: entry";
    if (!what)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "%s", what);
    return SMG_ERR_UNSUPPORTED;
}

/* What a child failed of explains why the router lost it, and one that gives no report why nothing went on. */
static int explain(const struct smg_process *p, int status, int children, const struct smg_diag *theirs, struct smg_diag *diag)
{
    *diag = p->diag;
    if (children && (!status || status == SMG_ERR_LOST)) {
        *diag = *theirs;
        return children;
    }
    if (children == SMG_ERR_LOST && status == SMG_ERR_DEADLOCK && strstr(p->diag.text, "no progress"))
        snprintf(diag->text, sizeof diag->text, "%.400s; %.100s", p->diag.text, theirs->text);
    return status;
}

/* How long the children have for their reports. After a failure those that can answer do so at once. */
enum { GRACE_S = 10, FAILED_GRACE_S = 4 };

int smg_emu_run(const struct smg_world *w, const struct smg_emu_config *config, struct smg_records *records,
                struct smg_run_stats *stats, struct smg_diag *diag)
{
    const struct smg_fabric_type *type = smg_fabric_find(config->fabric);
    struct child_arg arg = {w, config, NULL, NULL};
    struct smg_harness h;
    struct smg_process p;
    struct smg_diag theirs;
    int status = check_world(w, diag), children;

    memset(records, 0, sizeof *records);
    memset(stats, 0, sizeof *stats);
    memset(&theirs, 0, sizeof theirs);
    if (!status && !type) {
        snprintf(diag->text, sizeof diag->text, "this program has no fabric '%.60s'%s", config->fabric,
                 smg_fabric_types[0] ? "" : ": it was built without libfabric (libfabric-dev)");
        status = SMG_ERR_UNSUPPORTED;
    }
    if (!status)
        status = smg_fabric_load(type, diag); /* before the fork, so that it is loaded once */
    if (!status)
        status = smg_run_stats_init(stats, w->n_requests);
    if (!status && w->scenario.emu.compute == SMG_EMU_KERNELS)
        status = smg_compute_plan_create(w, &arg.plan, diag);
    if (!status && w->scenario.emu.link == SMG_LINK_SHAPED)
        status = smg_links_create(w, &arg.links);
    if (!status)
        status = smg_harness_fork(smg_world_instances(w), child, &arg, &h, diag);
    if (status) {
        smg_links_destroy(arg.links);
        smg_compute_plan_destroy(arg.plan);
        return status;
    }
    process_init(&p, &arg, &h);
    status = run(&p);
    smg_harness_stop(&h);
    children = smg_harness_collect(&h, status ? FAILED_GRACE_S : GRACE_S, stats, &theirs);
    if (p.stats.digest)
        smg_run_stats_add(stats, &p.stats);
    if (p.agent && copy_records(smg_agent_records(p.agent), records) && !status)
        status = SMG_ERR_NOMEM;
    status = explain(&p, status, children, &theirs, diag);
    tear_down(&p);
    smg_harness_close(&h);
    smg_links_destroy(arg.links);
    smg_compute_plan_destroy(arg.plan);
    return status;
}
