/* What the engines share behind the port: the base object, the heap of timers and the list of completed tags. */
#ifndef SMG_SIM_ENGINE_PRIV_H
#define SMG_SIM_ENGINE_PRIV_H

#include "sim/engine.h"

enum smg_engine_phase { SMG_ENGINE_SETUP, SMG_ENGINE_RUNNING, SMG_ENGINE_ENDED };

/* First member of every engine. engine.c keeps it, so engines see only valid arguments in the right phase. */
struct smg_engine {
    const struct smg_engine_type *type;
    uint32_t endpoints;
    enum smg_engine_phase phase;
};

extern const struct smg_engine_type smg_engine_native;
extern const struct smg_engine_type smg_engine_simgrid;

/* ---- Timers: binary heap, earliest first, then lowest tag. All zero: empty. ---- */
struct smg_timer {
    double at_s;
    uint64_t tag;
};

struct smg_timer_heap {
    struct smg_timer *heap; /* [cap], n in use */
    size_t n, cap;
};

void smg_timer_heap_fini(struct smg_timer_heap *h);
/* Unchanged on error. */
int smg_timer_heap_push(struct smg_timer_heap *h, double at_s, uint64_t tag);
/* INFINITY when empty. */
double smg_timer_heap_next_s(const struct smg_timer_heap *h);
/* Removes the earliest timer of a heap that is not empty; returns its tag. */
uint64_t smg_timer_heap_pop(struct smg_timer_heap *h);

/* ---- Tags that are complete and not delivered yet. All zero: empty. ---- */
struct smg_ready {
    uint64_t *tags; /* [cap], n in use, the first `taken` of them delivered */
    size_t n, cap, taken;
    size_t reserved; /* pushes still to come */
};

void smg_ready_fini(struct smg_ready *r);
/* Announces one more push, which then cannot fail: completions happen where no error can be returned. */
int smg_ready_reserve(struct smg_ready *r);
/* Takes one announcement back. */
void smg_ready_release(struct smg_ready *r);
void smg_ready_push(struct smg_ready *r, uint64_t tag);
void smg_ready_sort(struct smg_ready *r);
/* Moves up to cap tags out, in order. */
size_t smg_ready_take(struct smg_ready *r, uint64_t *tags, size_t cap);
/* Pushes the tags of all timers due at until_s or before. */
void smg_ready_push_timers(struct smg_ready *r, struct smg_timer_heap *h, double until_s);

#endif
