#include <string.h>

#include "core/scheme.h"

/* Factor steps switch paths off one by one; only the complete scheme keeps fetched entries by default. */
static int is_complete(const struct smg_scenario *s)
{
    return strcmp(s->proactive.ranking, "profile") == 0 && s->on_demand.parallel && s->speculative.enabled;
}

static int keeps_fetched(const struct smg_scenario *s)
{
    switch (s->on_demand.reuse) {
    case SMG_TRUE:
        return 1;
    case SMG_AUTO:
        return is_complete(s);
    case SMG_FALSE:
        break;
    }
    return 0;
}

/* Reordering serves the parallel lane's scatter receives: without that lane there is nothing to reorder for, and the scheme
 * with all factors off is exactly partial. */
static void smartgen_features(const struct smg_scenario *s, struct smg_features *out)
{
    *out = (struct smg_features){
        .metadata = 1,
        .parallel = s->on_demand.parallel != 0,
        .reorder = s->on_demand.parallel && s->on_demand.reorder,
        .reuse = keeps_fetched(s),
        .speculative = s->speculative.enabled != 0,
    };
    memcpy(out->ranking, s->proactive.ranking, strlen(s->proactive.ranking));
}

const struct smg_scheme smg_scheme_smartgen = {
    .name = "smartgen",
    .doc = "important blocks during prefill, missing entries on demand in parallel, the rest speculatively",
    .features = smartgen_features,
};
