/* Ctrl-C and SIGTERM end a run between two events, so that nothing half-written stays behind; a second one ends it at once. */
#ifndef SMG_CLI_INTERRUPT_H
#define SMG_CLI_INTERRUPT_H

#include "core/observer.h"

/* Catches SIGINT and SIGTERM from now on (not where they are ignored). */
void smg_interrupt_watch(void);
int smg_interrupted(void);

/* An observer that ends the run with SMG_ERR_INTERRUPTED when a signal came, and passes everything on to `inner` (which may have
 * no functions). */
struct smg_interrupt_guard {
    struct smg_observer inner;
};
void smg_interrupt_observer(struct smg_interrupt_guard *g, const struct smg_observer *inner, struct smg_observer *out);

#endif
