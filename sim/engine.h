/* Engine port: virtual time, timers and fluid flows. Two engines stand behind it: SimGrid and the native one.
 *
 * The network is a star: every endpoint has one transmit and one receive link; a flow crosses the transmit link of its source and
 * the receive link of its destination (and the core link when one is set). Concurrent flows share links max-min fairly with equal
 * weights. There is no latency here: whoever drives the port adds it as timers, so that no RTT bias can arise.
 */
#ifndef SMG_SIM_ENGINE_H
#define SMG_SIM_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#pragma GCC visibility push(default)

struct smg_engine;

/* Two completions closer than this (s) count as simultaneous. */
#define SMG_ENGINE_TIE_S 1e-12

/* The body of a simulation: called once by smg_engine_run; every other call on the engine is made from inside it. */
typedef int (*smg_engine_body_fn)(struct smg_engine *e, void *arg);

struct smg_engine_type {
    const char *name;
    const char *doc;
    int (*create)(struct smg_engine **out);
    void (*destroy)(struct smg_engine *e);
    int (*endpoint)(struct smg_engine *e, double tx_Bps, double rx_Bps, uint32_t *out);
    int (*core)(struct smg_engine *e, double Bps);
    int (*run)(struct smg_engine *e, smg_engine_body_fn body, void *arg);
    double (*now)(struct smg_engine *e);
    int (*timer)(struct smg_engine *e, double delay_s, uint64_t tag);
    int (*flow)(struct smg_engine *e, uint32_t src, uint32_t dst, double bytes, uint64_t tag);
    int (*next)(struct smg_engine *e, uint64_t *tags, size_t cap, size_t *n_out);
};

/* Engines built into this program: NULL-terminated table; SimGrid is absent when configured without. */
extern const struct smg_engine_type *const smg_engine_types[];
/* NULL when there is no such engine. */
const struct smg_engine_type *smg_engine_find(const char *name);

/* Creates an engine. A process can run at most one SimGrid simulation in its life (SMG_ERR_UNSUPPORTED for the second). */
int smg_engine_create(const struct smg_engine_type *type, struct smg_engine **out);
void smg_engine_destroy(struct smg_engine *e);
/* Before run: adds an endpoint with link rates in bytes/s (> 0; INFINITY: never a bottleneck). Ids count from 0. */
int smg_engine_endpoint(struct smg_engine *e, double tx_Bps, double rx_Bps, uint32_t *out);
/* Before run: a link that every flow crosses (oversubscribed core). Without this call there is none. */
int smg_engine_core(struct smg_engine *e, double Bps);
/* Runs body to its end and returns its value. */
int smg_engine_run(struct smg_engine *e, smg_engine_body_fn body, void *arg);
/* Inside body: the current time in s, from 0. */
double smg_engine_now(struct smg_engine *e);
/* Inside body: completes after delay_s >= 0 (0: at this instant, in a later call of next). */
int smg_engine_timer(struct smg_engine *e, double delay_s, uint64_t tag);
/* Inside body: moves bytes >= 0 from src to dst; 0 bytes complete at this instant, in a later call of next. */
int smg_engine_flow(struct smg_engine *e, uint32_t src, uint32_t dst, double bytes, uint64_t tag);
/* Inside body: advances to the next completion and returns the tags of all that complete then (within SMG_ENGINE_TIE_S), sorted
 * ascending; the rest comes with the next call at the same time when cap is too small. *n_out = 0: nothing is pending. */
int smg_engine_next(struct smg_engine *e, uint64_t *tags, size_t cap, size_t *n_out);

#pragma GCC visibility pop

#endif
