/* Private to the harness: what it says over a socket to an instance on another host beside what it says to a child. */
#ifndef SMG_EMU_HARNESS_PRIV_H
#define SMG_EMU_HARNESS_PRIV_H

#include "emu/harness.h"

/* Kinds of the messages that are a sign of life, and the word of the end, in the numbering of harness.c. */
enum { SMG_HARNESS_BEAT = 0x42454154, SMG_HARNESS_STOP = 0x53544f50 };

/* An empty harness: no pids, no sockets. smg_harness_close gives it back. SMG_ERR_NOMEM. */
int smg_harness_make(uint32_t instances, uint16_t self, struct smg_harness *out);
/* Child: says so, not more often than needed. Parent: takes those that have come. */
void smg_harness_send_beat(struct smg_harness *h);
void smg_harness_take_beats(struct smg_harness *h, uint16_t instance);

#endif
