/* The router looks after the processes of the other instances: one that has ended, or gives no sign of life while requests wait
 * for it, is lost, and the others go on. */
#include "emu/process.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Between two looks, s. A longer time than this between two looks is not held against the children: this process slept, too. */
static const double look_s = 0.02, awake_s = 0.1;
/* The fabric tells of a process's end by itself; past this time the connection is broken from here. */
static const double patience_s = 0.3;

/* Requests wait for this instance. */
static int wanted(const struct smg_process *p, uint32_t instance)
{
    const struct smg_records *r = smg_agent_records(p->agent);

    for (uint32_t i = 0; i < r->n_requests; i++)
        if (r->request[i].status == SMG_REQUEST_RUNNING &&
            (r->request[i].prefill_instance == instance || r->request[i].decode_instance == instance))
            return 1;
    return 0;
}

/* SMG_ERR_LOST: it says that it failed of something else than a lost peer or no memory, which is trouble for the run. */
static int look_at(struct smg_process *p, uint16_t i)
{
    struct smg_watch *w = &p->watch[i];
    int reported = SMG_OK;

    switch (smg_harness_child(p->harness, i, &reported, w->how[0] ? NULL : w->how, sizeof w->how)) {
    case SMG_CHILD_RUNS:
        return SMG_OK;
    case SMG_CHILD_REPORTED:
        if (reported && reported != SMG_ERR_LOST && reported != SMG_ERR_NOMEM) {
            snprintf(p->diag.text, sizeof p->diag.text, "instance %u failed: %s", i, smg_status_string(reported));
            return SMG_ERR_LOST;
        }
        break;
    case SMG_CHILD_GONE:
        break;
    }
    w->gone = 1;
    w->gone_s = smg_harness_now(p->harness);
    smg_harness_lose(p->harness, i);
    return SMG_OK;
}

static void listen_to(struct smg_process *p, uint16_t i, double passed_s)
{
    struct smg_watch *w = &p->watch[i];
    uint32_t beats = smg_harness_beats(p->harness, i);

    w->quiet_s = beats == w->beats ? w->quiet_s + passed_s : 0;
    w->beats = beats;
    if (w->quiet_s <= p->config->stall_timeout_s || w->how[0] || !wanted(p, i))
        return;
    snprintf(w->how, sizeof w->how, "%s for %.3g s", smg_harness_halted(p->harness, i) ? "stopped by a signal" : "silent",
             w->quiet_s);
    smg_harness_end(p->harness, i);
}

int smg_process_watch(struct smg_process *p)
{
    double now_s = smg_harness_now(p->harness), passed_s = now_s - p->watched_s;
    int status = SMG_OK;

    if (passed_s < look_s)
        return SMG_OK;
    p->watched_s = now_s;
    for (uint16_t i = 1; i < p->instances && !status; i++) {
        if (!p->watch[i].gone)
            status = look_at(p, i);
        if (!p->watch[i].gone)
            listen_to(p, i, passed_s < awake_s ? passed_s : awake_s);
        else if (now_s - p->watch[i].gone_s > patience_s)
            status = smg_process_cut(p, i, SMG_ERR_LOST);
    }
    return status;
}

int smg_process_someone_quiet(const struct smg_process *p)
{
    for (uint32_t i = 1; i < p->instances; i++)
        if (!p->watch[i].gone && p->watch[i].quiet_s > 0.5 * p->config->stall_timeout_s && wanted(p, i))
            return 1;
    return 0;
}

/* Requests failed for this reason, and it is to blame. */
static int blamed(const struct smg_records *r, uint32_t instance, int reason)
{
    for (uint32_t i = 0; i < r->n_requests; i++)
        if (r->request[i].status == SMG_REQUEST_FAILED && r->request[i].reason == reason && r->request[i].culprit == instance)
            return 1;
    return 0;
}

/* Of a peer whose connections broke: its process is ending, and how is seen in a moment. */
static void end_of(struct smg_process *p, uint16_t i)
{
    struct smg_watch *w = &p->watch[i];
    double until_s = smg_harness_now(p->harness) + patience_s;
    int unused;

    while (!w->gone && smg_harness_now(p->harness) < until_s) {
        w->gone = smg_harness_child(p->harness, i, &unused, w->how[0] ? NULL : w->how, sizeof w->how) != SMG_CHILD_RUNS;
        if (!w->gone)
            poll(NULL, 0, 2);
    }
}

void smg_process_losses(struct smg_process *p, char *text, size_t text_bytes)
{
    const struct smg_records *r = smg_agent_records(p->agent);
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 1; i < p->instances && p->lost && at < text_bytes; i++) {
        struct smg_watch *w = &p->watch[i];
        if (p->lost[i] == SMG_ERR_PROTOCOL || blamed(r, i, SMG_ERR_PROTOCOL)) {
            at += (size_t)snprintf(text + at, text_bytes - at, "%sinstance %u broke the protocol", at ? ", " : "", i);
            continue;
        }
        if (!p->lost[i] && !w->gone && !w->how[0] && !blamed(r, i, SMG_ERR_LOST))
            continue;
        smg_harness_lose(p->harness, (uint16_t)i);
        end_of(p, (uint16_t)i);
        at += (size_t)snprintf(text + at, text_bytes - at, "%slost instance %u%s%s%s", at ? ", " : "", i, w->how[0] ? " (" : "",
                               w->how, w->how[0] ? ")" : "");
    }
}
