/* A world that is made once: two requests of a small model on one prefill and one decode node. */
#ifndef SMG_TESTS_FUZZ_WORLD_H
#define SMG_TESTS_FUZZ_WORLD_H

#include "core/scheme.h"
#include "tests/fuzz/fuzz.h"
#include "traces/scenario.h"

static inline const struct smg_world *fuzz_world(void)
{
    static struct smg_request_spec requests[] = {{0, 700, 4, 0}, {0.25, 300, 3, 100}};
    static struct smg_world w;

    if (w.n_requests)
        return &w;
    w.model = (struct smg_model){
        .name = "fuzz",
        .layers = 4,
        .hidden = 64,
        .q_heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .intermediate = 128,
        .vocab = 1000,
        .value_bytes = 2,
    };
    smg_scenario_default(&w.scenario);
    w.scenario.prefill.nodes = w.scenario.decode.nodes = 1;
    w.scenario.prefill.gpus_per_node = w.scenario.decode.gpus_per_node = 1;
    w.scenario.blocks_per_layer = 8;
    w.scheme = smg_scheme_find("smartgen");
    fuzz_must(w.scheme);
    w.prefill_instances = w.decode_instances = 1;
    w.requests = requests;
    w.n_requests = 2;
    return &w;
}

#endif
