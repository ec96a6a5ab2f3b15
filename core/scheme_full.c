#include "core/scheme.h"

/* No metadata: the decode node derives it from the keys, which all arrive. Nothing is fetched, so the on-demand switches mean
 * nothing. */
static void full_features(const struct smg_scenario *s, struct smg_features *out)
{
    (void)s;
    *out = (struct smg_features){.always_full = 1, .ranking = "sequential"};
}

const struct smg_scheme smg_scheme_full = {
    .name = "full",
    .doc = "the whole KV cache, layer by layer, during and after prefill",
    .features = full_features,
};
