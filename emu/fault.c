#include "emu/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/process.h"

static const char *const acts[] = {"none",       "kill",     "stop",          "garbage", "bad-index",
                                   "bad-cookie", "too-long", "slow-receiver", NULL};
static const char *const whens[] = {"start", "write", "handoff", "token", "reply", NULL};

/* Index of a word of `bytes` characters, -1: unknown. */
static int find(const char *const *names, const char *word, size_t bytes)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == bytes && !memcmp(names[i], word, bytes))
            return i;
    return -1;
}

/* A decimal number that ends with `end`; 0: there is none, or it is too large. */
static uint32_t number(const char *text, char end)
{
    uint32_t n = 0;

    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = 10 * n + (uint32_t)(*text - '0');
    return *text == end ? n : 0;
}

int smg_fault_parse(const char *text, uint32_t instances, struct smg_fault *out, struct smg_diag *diag)
{
    const char *act, *when, *n;
    int a = -1, w = -1;

    memset(out, 0, sizeof *out);
    if (!strcmp(text, "none"))
        return SMG_OK;
    act = strchr(text, ':');
    when = act ? strchr(act + 1, ':') : NULL;
    n = when ? strchr(when + 1, ':') : NULL;
    if (n) {
        a = find(acts, act + 1, (size_t)(when - act - 1));
        w = find(whens, when + 1, (size_t)(n - when - 1));
        out->instance = number(text, ':');
        out->n = number(n + 1, '\0');
    }
    if (a > 0 && w >= 0 && out->instance && out->instance < instances && out->n) {
        out->act = (enum smg_fault_act)a;
        out->when = (enum smg_fault_when)w;
        return SMG_OK;
    }
    snprintf(diag->text, sizeof diag->text,
             "key 'emu.fault': expected none or INSTANCE:ACT:WHEN:N, with INSTANCE 1 to %u, ACT kill, stop, garbage, bad-index, "
             "bad-cookie, too-long or slow-receiver, WHEN start, write, handoff, token or reply, N from 1; found '%.60s'",
             instances - 1, text);
    return SMG_ERR_INVALID;
}

int smg_fault_at(struct smg_process *p, enum smg_fault_when when)
{
    struct smg_fault *f = &p->fault;

    if (f->act == SMG_FAULT_NONE || f->instance != p->self || f->when != when || ++f->seen != f->n)
        return SMG_OK;
    switch (f->act) {
    case SMG_FAULT_KILL:
        raise(SIGKILL);
        return SMG_OK;
    case SMG_FAULT_STOP:
        raise(SIGSTOP);
        return SMG_OK;
    case SMG_FAULT_GARBAGE:
    case SMG_FAULT_TOO_LONG:
        return smg_ctl_nonsense(p, f->act == SMG_FAULT_TOO_LONG ? p->ctl_bytes + SMG_ARENA_ALIGN : 3 * SMG_ARENA_ALIGN);
    default:
        f->armed = 1;
        return SMG_OK;
    }
}

int smg_fault_due(struct smg_process *p, enum smg_fault_act act)
{
    struct smg_fault *f = &p->fault;

    if (f->act != act || !f->armed)
        return 0;
    f->armed = act == SMG_FAULT_SLOW_RECEIVER;
    return 1;
}
