/* What a plan means, in words; and its numbers in units that people read. */
#ifndef SMG_CLI_PLAN_WORDS_H
#define SMG_CLI_PLAN_WORDS_H

#include <stddef.h>
#include <stdio.h>

#include "core/plan.h"

/* "1.147 GB", "458.5 ms"; "-" for what does not exist. */
void smg_plan_bytes(double bytes, char *out, size_t out_bytes);
void smg_plan_seconds(double seconds, char *out, size_t out_bytes);

/* Whether grants of speculation need the decode link longer than a step lasts, so that the closed form of TBT is too low. */
int smg_plan_is_behind(const struct smg_plan *p);

/* One line: is selective transfer on and why, what it changes against full transfer, what limits. All by the closed forms of
 * core/plan.h, evaluated again for the other scheme and with each part of the hardware twice as fast. */
void smg_plan_conclude(const struct smg_world *w, const struct smg_plan *p, FILE *f);

#endif
