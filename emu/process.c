/* The loop of one emulated process: completions and timers become events, events step the agent, actions go to lanes
 * (process_execute.c). */
#include "emu/process.h"

#include <stdarg.h>
#include <stdio.h>
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
    return status ? status : smg_process_submit(p);
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
        return smg_process_completed(p, op);
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
        status = smg_process_timer(p, p->world->requests[p->next_arrival].arrival_s, NULL, 1);
    return status;
}

static int fire(struct smg_process *p, const struct smg_timer *t)
{
    struct smg_event e;

    if (t->arrival)
        return arrivals(p);
    if (t->op)
        return smg_process_resume(p, t->op);
    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_TIMER;
    return smg_process_event(p, &e);
}

static int fire_due(struct smg_process *p)
{
    double now_s = smg_harness_now(p->harness);
    int status = SMG_OK;

    while (!status && p->n_timers && p->timer[0].due_s <= now_s) {
        struct smg_timer t = smg_process_timer_pop(p);
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
int smg_process_loop(struct smg_process *p)
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
