#include "cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "core/status.h"

/* Not sig_atomic_t: other threads ask, too. Lock-free, so a handler may set it. */
static atomic_int came;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler sets it");

static void on_signal(int number)
{
    (void)number;
    came = 1;
}

/* SA_RESETHAND: the second signal has its default effect. */
static void watch(int number)
{
    struct sigaction now, act;

    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    act.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&act.sa_mask);
    if (!sigaction(number, NULL, &now) && now.sa_handler != SIG_IGN)
        sigaction(number, &act, NULL);
}

void smg_interrupt_watch(void)
{
    watch(SIGINT);
    watch(SIGTERM);
}

int smg_interrupted(void)
{
    return came != 0;
}

static int on_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct smg_interrupt_guard *g = arg;

    if (came)
        return SMG_ERR_INTERRUPTED;
    return g->inner.step ? g->inner.step(g->inner.arg, instance, e, actions) : SMG_OK;
}

static void on_operation(void *arg, const struct smg_op *op, double start_s, double end_s)
{
    struct smg_interrupt_guard *g = arg;

    g->inner.operation(g->inner.arg, op, start_s, end_s);
}

void smg_interrupt_observer(struct smg_interrupt_guard *g, const struct smg_observer *inner, struct smg_observer *out)
{
    g->inner = *inner;
    out->arg = g;
    out->step = on_step;
    out->operation = inner->operation ? on_operation : NULL;
}
