/* Max-min fair fluid network: links with a capacity, flows that cross up to three of them.
 *
 * Rates are piecewise constant: they change only when a flow starts or ends, and only in the connected component of links that
 * the flow touches. A flow stores what remained at its last change of rate, so nothing accumulates while time passes.
 */
#ifndef SMG_SIM_ENGINE_FLUID_H
#define SMG_SIM_ENGINE_FLUID_H

#include "sim/engine_priv.h"

#define SMG_FLUID_LINKS_MAX 3
#define SMG_FLUID_NONE      UINT32_MAX

struct smg_fluid;

int smg_fluid_create(struct smg_fluid **out);
void smg_fluid_destroy(struct smg_fluid *f);
/* Adds a link of a finite capacity (B/s). Ids count from 0. */
int smg_fluid_link(struct smg_fluid *f, double cap_Bps, uint32_t *out);
/* Starts a flow of bytes > 0 over n_links >= 1 distinct links at now_s. Unchanged on error. */
int smg_fluid_start(struct smg_fluid *f, double now_s, const uint32_t *links, uint32_t n_links, double bytes, uint64_t tag);
/* Brings the rates up to date at now_s; returns when the next flow ends, INFINITY when there is none. */
double smg_fluid_next_s(struct smg_fluid *f, double now_s);
/* Ends the flows that finish at until_s or before and pushes their tags. Rates must be up to date. */
void smg_fluid_end(struct smg_fluid *f, double until_s, struct smg_ready *ready);

#endif
