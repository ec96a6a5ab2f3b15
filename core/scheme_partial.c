#include "core/scheme.h"

/* Vanilla on-demand transfer. Only an explicit `on_demand.reuse: true` keeps fetched entries (the KV-reuse series). */
static void partial_features(const struct smg_scenario *s, struct smg_features *out)
{
    *out = (struct smg_features){.metadata = 1, .reuse = s->on_demand.reuse == SMG_TRUE, .ranking = "sequential"};
}

const struct smg_scheme smg_scheme_partial = {
    .name = "partial",
    .doc = "the first Kr blocks in memory order during prefill, missing entries on demand, serially",
    .features = partial_features,
};
