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

/* What this process must know of a message that the agent has taken. */
static int note(struct smg_process *p, const struct smg_message *m)
{
    if (m->kind == SMG_MSG_PREFILL || m->kind == SMG_MSG_DECODE)
        p->partner[m->request] = m->u.assign.partner;
    if (m->kind == SMG_MSG_DECODE) {
        p->kr_blocks[m->request] = m->u.assign.kr_blocks;
        p->full[m->request] = m->u.assign.mode == SMG_MODE_FULL;
    }
    if (m->kind == SMG_MSG_HANDOFF)
        p->handed_off[m->request] = 1;
    if (m->kind == SMG_MSG_FAILED && p->self)
        p->dropped[m->request] = 1;
    if (m->kind == SMG_MSG_PREFILL && p->cookie_from[m->request] && p->cookie_from[m->request] != m->u.assign.partner)
        return smg_process_cut(p, p->cookie_from[m->request], SMG_ERR_PROTOCOL);
    return SMG_OK;
}

/* An INDEX may cross the router's word that its request has failed, when its sender has given this instance up. */
int smg_process_too_late(const struct smg_process *p, const struct smg_message *m)
{
    return m->kind == SMG_MSG_INDEX && p->dropped[m->request];
}

/* What a peer may not say, or not now, costs the peer and not the run. */
static int refused(struct smg_process *p, const struct smg_event *e, int status)
{
    if (status == SMG_ERR_PROTOCOL && e->kind == SMG_EV_MSG && e->peer != SMG_ROUTER)
        return smg_process_cut(p, e->peer, SMG_ERR_PROTOCOL);
    return smg_process_fail(p, status, "event %s (message %s, request %u) was refused: %s", smg_event_name(e->kind),
                            smg_message_name(e->msg.kind), e->request, smg_status_string(status));
}

static int step(struct smg_process *p)
{
    struct smg_event e = p->event[p->event_head];
    int status;

    p->event_head = (p->event_head + 1) % p->cap_events;
    p->n_events--;
    if (e.kind == SMG_EV_MSG && (p->told[e.peer] || smg_process_too_late(p, &e.msg)))
        return SMG_OK;
    e.now_s = smg_harness_now(p->harness);
    status = smg_agent_step(p->agent, &e, &p->actions);
    if (status)
        return refused(p, &e, status);
    p->stats.events++;
    p->stats.actions += p->actions.n;
    if (e.kind == SMG_EV_MSG)
        status = note(p, &e.msg);
    if (!status && p->observer.step)
        status = p->observer.step(p->observer.arg, p->self, &e, &p->actions);
    if (!status)
        status = smg_process_submit(p);
    return status || e.kind != SMG_EV_PEER_LOST ? status : smg_process_told(p, e.peer);
}

static int completed(struct smg_process *p, const struct smg_completion *c)
{
    struct smg_op *op = (struct smg_op *)(uintptr_t)(c->context & ~(uint64_t)SMG_CONTEXT_MASK);

    if (c->kind == SMG_DONE_PEER_LOST)
        return smg_process_lost(p, c->peer);
    if (c->status)
        return smg_process_failed(p, c);
    switch (c->context & SMG_CONTEXT_MASK) {
    case SMG_CONTEXT_OP:
        return smg_process_completed(p, op, c->bytes);
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
        return t->arrival < 0 ? SMG_OK : arrivals(p);
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

static int check_stall(struct smg_process *p, uint64_t *seen, double *last_s)
{
    if (p->stats.events != *seen || waits_for_arrival(p)) {
        *seen = p->stats.events;
        *last_s = smg_harness_now(p->harness);
    }
    if (smg_harness_now(p->harness) - *last_s <= p->config->stall_timeout_s || smg_process_someone_quiet(p))
        return SMG_OK;
    return stalled(p);
}

/* Until the router has settled every request, or a child is told to stop. */
int smg_process_loop(struct smg_process *p)
{
    double last_s = 0;
    uint64_t seen = 0;
    int status = p->self ? SMG_OK : arrivals(p), idle = 0;

    if (!status)
        status = smg_fault_at(p, SMG_FAULT_START);
    while (!status) {
        while (!status && p->n_events)
            status = step(p);
        if (status || settled(p))
            break;
        smg_harness_beat(p->harness);
        status = wait_some(p, &idle);
        if (p->stopping)
            break;
        if (!p->self && !status)
            status = smg_process_watch(p);
        if (!status && p->config->stop && p->config->stop())
            status = SMG_ERR_INTERRUPTED;
        if (!idle || status || p->n_events)
            continue;
        if (p->self && smg_harness_stopped(p->harness, 0))
            break;
        if (!p->self)
            status = check_stall(p, &seen, &last_s);
    }
    p->stats.end_s = smg_harness_now(p->harness);
    return status;
}
