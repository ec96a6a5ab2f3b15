#include "core/scheme.h"

/* Quantised KV stays on the decode GPU: nothing is selected, nothing is fetched. */
static void hack_features(const struct smg_scenario *s, struct smg_features *out)
{
    (void)s;
    *out = (struct smg_features){.always_full = 1, .on_gpu = 1, .ranking = "sequential"};
}

const struct smg_scheme smg_scheme_hack = {
    .name = "hack",
    .doc = "the whole KV cache as 2-bit codes, kept and used on the decode GPU",
    .features = hack_features,
};
