/* Closed forms: what a run will look like, before anything runs. One representative request (the workload's mean prompt), all
 * requests of a batch alike, no contention beyond the shares stated here (docs/model.md, "Plan"). */
#ifndef SMG_CORE_PLAN_H
#define SMG_CORE_PLAN_H

#include <stdint.h>

#include "core/cost.h"
#include "core/world.h"

#pragma GCC visibility push(default)

struct smg_plan {
    uint32_t prompt_tokens, output_tokens; /* representative request */
    uint32_t sharers;                      /* requests in transition on one decode NIC */
    uint32_t batch;                        /* requests decoded together */
    uint64_t kv_bytes_per_token;
    struct smg_budget_result budget;         /* tp_s, tt_s, window, metadata, Kr raw and clipped */
    uint64_t proactive_bytes;                /* of the Kr set */
    uint64_t on_demand_bytes_step;           /* per request and decode step, right after hand-off */
    uint64_t speculative_bytes;              /* what is left for the trickle */
    double absent_ratio;                     /* expected share of the selected entries outside the Kr set */
    double on_demand_ratio;                  /* the same, or 0 where absent entries are left out */
    uint32_t present_tokens[SMG_MAX_LAYERS]; /* of the Kr set, per layer */
    int evicts;                              /* absent entries are left out: nothing is on demand */
    double ttft_s, ttst_s, tbt_s;            /* ttst_s, tbt_s: NAN where the output has no such token */
    /* What a step's grants and on-demand replies need of the decode link, how many steps have grants, and the mean TBT when such
     * a step takes that long; grants_tbt_s is tbt_s where the link keeps up. The closed form of tbt_s is no answer where it is
     * more. */
    double grants_step_s, grants_tbt_s;
    uint32_t grants_steps;
    /* Share of each pool's capacity that the workload asks for; NAN for a batch, which has no rate. */
    double prefill_gpu, prefill_link, decode_link, decode_lane;
    /* Share of an instance's memory that `batch` requests in decode hold, and that they hold on the prefill side. */
    double decode_memory, prefill_memory;
    int decode_too_large, prefill_too_large; /* one request alone does not fit: it will fail */
};

int smg_plan_make(const struct smg_world *w, struct smg_plan *out);

#pragma GCC visibility pop

#endif
