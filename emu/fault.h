/* Test only (scenario key emu.fault): what an instance does to itself, so that the others can be seen to go on. */
#ifndef SMG_EMU_FAULT_H
#define SMG_EMU_FAULT_H

#include <stdint.h>

#include "core/status.h"

enum smg_fault_act {
    SMG_FAULT_NONE,
    SMG_FAULT_KILL,         /* SIGKILL */
    SMG_FAULT_STOP,         /* SIGSTOP */
    SMG_FAULT_GARBAGE,      /* bytes that are no message, to every peer */
    SMG_FAULT_BAD_INDEX,    /* decode: the next INDEX asks for a token that the prompt does not have */
    SMG_FAULT_BAD_COOKIE,   /* decode: the next POOL names memory that does not exist */
    SMG_FAULT_TOO_LONG,     /* a message larger than any receive, to every peer */
    SMG_FAULT_SLOW_RECEIVER /* decode: from now on receives of replies are posted late */
};

enum smg_fault_when {
    SMG_FAULT_START,   /* the clock of the run starts */
    SMG_FAULT_WRITE,   /* prefill: a WRITE is about to be posted */
    SMG_FAULT_HANDOFF, /* prefill: HANDOFF is about to be sent; decode: it was received */
    SMG_FAULT_TOKEN,   /* a token is about to be sent */
    SMG_FAULT_REPLY    /* prefill: a reply is about to be posted; decode: one was received */
};

struct smg_fault {
    enum smg_fault_act act;
    enum smg_fault_when when;
    uint32_t instance;
    uint32_t n; /* at the n-th such moment */
    uint32_t seen;
    int armed; /* it has come to that, and the act waits for its chance or goes on */
};

/* "none", or INSTANCE:ACT:WHEN:N with 1 <= INSTANCE < instances and N >= 1. SMG_ERR_INVALID: diag says what is expected. */
int smg_fault_parse(const char *text, uint32_t instances, struct smg_fault *out, struct smg_diag *diag);

struct smg_process;
/* Such a moment has come in this process: the fault may happen now. */
int smg_fault_at(struct smg_process *p, enum smg_fault_when when);
/* Whether an armed act of this kind is to happen now; it happens once (but a slow receiver stays slow). */
int smg_fault_due(struct smg_process *p, enum smg_fault_act act);

#endif
