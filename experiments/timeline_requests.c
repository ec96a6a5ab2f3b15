/* The requests of a timeline: stages and push of each, as the router's events tell them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/timeline_priv.h"

static struct smg_timeline_request *request_of(struct smg_timeline *t, uint32_t id)
{
    if (id >= t->requests) {
        uint32_t n = id < 64 ? 64 : 2 * id;
        struct smg_timeline_request *grown = realloc(t->request, n * sizeof *grown);
        if (!grown) {
            t->status = SMG_ERR_NOMEM;
            return NULL;
        }
        memset(grown + t->requests, 0, (n - t->requests) * sizeof *grown);
        for (uint32_t i = t->requests; i < n; i++)
            grown[i].pushing_ns = -1;
        t->request = grown;
        t->requests = n;
    }
    return &t->request[id];
}

/* Instances are named when the router first gives them work; the router and the requests with the first arrival. */
static void name_process(struct smg_timeline *t, uint32_t pid, const char *name)
{
    char text[32];

    if (!smg_timeline_first(t, pid))
        return;
    snprintf(text, sizeof text, pid == SMG_TIMELINE_REQUESTS || pid == SMG_ROUTER ? "%s" : "%s %u", name, pid);
    smg_timeline_name(t, pid, 0, text, pid == SMG_TIMELINE_REQUESTS ? 0 : pid + 1);
}

static uint32_t stage_track(uint32_t id)
{
    return 2 * id + 1;
}

static void arrive(struct smg_timeline *t, uint32_t id, int64_t now_ns)
{
    struct smg_timeline_request *q = request_of(t, id);
    char name[48];

    if (!q || q->stage != SMG_STAGE_NONE)
        return;
    name_process(t, SMG_TIMELINE_REQUESTS, "requests");
    name_process(t, SMG_ROUTER, "router");
    snprintf(name, sizeof name, "request %u", id);
    smg_timeline_name(t, SMG_TIMELINE_REQUESTS, stage_track(id), name, stage_track(id));
    q->stage = SMG_STAGE_QUEUED;
    q->since_ns = now_ns;
}

static void print_assignment(FILE *f, const struct smg_message *m)
{
    fprintf(f, ",\"prompt_tokens\":%u,\"output_tokens\":%u,\"mode\":\"%s\",\"kr_blocks\":%u,\"total_blocks\":%u",
            m->u.assign.prompt_tokens, m->u.assign.output_tokens, m->u.assign.mode == SMG_MODE_FULL ? "full" : "selective",
            m->u.assign.kr_blocks, m->u.assign.total_blocks);
}

static void print_token(FILE *f, const struct smg_message *m)
{
    fprintf(f,
            ",\"selected_entries\":%" PRIu64 ",\"remote_entries\":%" PRIu64 ",\"on_demand_bytes\":%" PRIu64
            ",\"speculative_bytes\":%" PRIu64,
            m->u.token.selected_entries, m->u.token.remote_entries, m->u.token.on_demand_bytes, m->u.token.speculative_bytes);
}

/* The stage that ends now, and the one that begins; m: the message that says so, NULL at the end of the run. */
static void enter(struct smg_timeline *t, uint32_t id, enum smg_timeline_stage next, const struct smg_message *m, int64_t now_ns)
{
    static const char *const names[] = {"", "queued", "prefill", "hand-off", "join", "token"};
    static const char *const category[] = {"", "queue", "prefill", "handoff", "join", "decode"};
    struct smg_timeline_request *q = &t->request[id];
    int64_t ns[2] = {q->since_ns, now_ns};
    char name[32];

    if (q->stage != SMG_STAGE_NONE && q->stage != SMG_STAGE_ENDED) {
        snprintf(name, sizeof name, q->stage == SMG_STAGE_DECODE ? "%s %u" : "%s", names[q->stage], q->token);
        smg_timeline_begin(t, name, category[q->stage], SMG_TIMELINE_REQUESTS, stage_track(id), ns);
        fprintf(t->f, "\"request\":%u", id);
        if (q->stage == SMG_STAGE_PREFILL)
            print_assignment(t->f, &q->assigned);
        if (q->stage == SMG_STAGE_DECODE && m && m->kind == SMG_MSG_TOKEN)
            print_token(t->f, m);
        if (!m)
            fputs(",\"unfinished\":true", t->f);
        smg_timeline_end(t);
    }
    q->stage = next;
    q->since_ns = now_ns;
}

static void end_push(struct smg_timeline *t, uint32_t id, int64_t now_ns)
{
    struct smg_timeline_request *q = &t->request[id];
    int64_t ns[2] = {q->pushing_ns, now_ns};
    char name[48];

    if (q->pushing_ns < 0)
        return;
    snprintf(name, sizeof name, "request %u: push", id);
    smg_timeline_name(t, SMG_TIMELINE_REQUESTS, stage_track(id) + 1, name, stage_track(id) + 1);
    smg_timeline_begin(t, "push", "push", SMG_TIMELINE_REQUESTS, stage_track(id) + 1, ns);
    fprintf(t->f, "\"request\":%u,\"kr_blocks\":%u", id, q->assigned.u.assign.kr_blocks);
    smg_timeline_end(t);
    q->pushing_ns = -1;
}

/* Messages of two instances may overtake each other on a real network: a stage is never entered backwards. */
static void on_message(struct smg_timeline *t, const struct smg_message *m, int64_t now_ns)
{
    struct smg_timeline_request *q = request_of(t, m->request);
    uint32_t id = m->request;

    if (!q)
        return;
    if (m->kind == SMG_MSG_STARTED && q->stage < SMG_STAGE_PREFILL) {
        enter(t, id, SMG_STAGE_PREFILL, m, now_ns);
        q->pushing_ns = q->assigned.u.assign.kr_blocks ? now_ns : -1;
    } else if (m->kind == SMG_MSG_TOKEN && m->u.token.token == 1) {
        if (q->stage < SMG_STAGE_HANDOFF)
            enter(t, id, q->assigned.u.assign.output_tokens > 1 ? SMG_STAGE_HANDOFF : SMG_STAGE_ENDED, m, now_ns);
    } else if (m->kind == SMG_MSG_READY && q->stage < SMG_STAGE_JOIN) {
        enter(t, id, SMG_STAGE_JOIN, m, now_ns);
    } else if (m->kind == SMG_MSG_JOINED && q->stage < SMG_STAGE_DECODE) {
        enter(t, id, SMG_STAGE_DECODE, m, now_ns);
        q->token = 2;
    } else if (m->kind == SMG_MSG_TOKEN && q->stage != SMG_STAGE_ENDED) {
        q->token = m->u.token.token;
        enter(t, id, m->u.token.token < q->assigned.u.assign.output_tokens ? SMG_STAGE_DECODE : SMG_STAGE_ENDED, m, now_ns);
        q->token++;
    } else if (m->kind == SMG_MSG_PUSHED) {
        end_push(t, id, now_ns);
    } else if (m->kind == SMG_MSG_FAILED) {
        enter(t, id, SMG_STAGE_ENDED, m, now_ns);
        end_push(t, id, now_ns);
    }
}

static void on_assign(struct smg_timeline *t, const struct smg_action *a)
{
    struct smg_timeline_request *q;

    if (a->kind != SMG_ACT_SEND || (a->msg.kind != SMG_MSG_PREFILL && a->msg.kind != SMG_MSG_DECODE))
        return;
    name_process(t, a->peer, a->msg.kind == SMG_MSG_PREFILL ? "prefill" : "decode");
    q = request_of(t, a->msg.request);
    if (q && a->msg.kind == SMG_MSG_PREFILL)
        q->assigned = a->msg;
}

void smg_timeline_step(struct smg_timeline *t, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    if (instance != SMG_ROUTER)
        return;
    if (e->kind == SMG_EV_ARRIVE)
        arrive(t, e->request, smg_timeline_ns(e->now_s));
    if (e->kind == SMG_EV_MSG)
        on_message(t, &e->msg, smg_timeline_ns(e->now_s));
    for (size_t i = 0; i < actions->n; i++)
        on_assign(t, &actions->action[i]);
}

void smg_timeline_end_requests(struct smg_timeline *t)
{
    for (uint32_t i = 0; i < t->requests; i++) {
        const struct smg_timeline_request *q = &t->request[i];
        enter(t, i, SMG_STAGE_ENDED, NULL, t->last_ns > q->since_ns ? t->last_ns : q->since_ns);
        end_push(t, i, t->last_ns > q->pushing_ns ? t->last_ns : q->pushing_ns);
    }
}
