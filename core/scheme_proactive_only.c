#include <string.h>

#include "core/scheme.h"

/* What was not pushed is evicted: the selector chooses as ever, absent entries are left out. */
static void proactive_only_features(const struct smg_scenario *s, struct smg_features *out)
{
    *out = (struct smg_features){.metadata = 1, .parallel = 1, .reorder = 1, .evict = 1};
    memcpy(out->ranking, s->proactive.ranking, strlen(s->proactive.ranking));
}

const struct smg_scheme smg_scheme_proactive_only = {
    .name = "proactive-only",
    .doc = "only the pushed blocks, the rest evicted (accuracy baseline)",
    .features = proactive_only_features,
};
