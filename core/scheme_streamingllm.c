#include "core/scheme.h"

/* Sinks and a recent window within the budget of Kr blocks; all that is present is attended to, without a selector. */
static void streamingllm_features(const struct smg_scenario *s, struct smg_features *out)
{
    (void)s;
    *out = (struct smg_features){.parallel = 1, .reorder = 1, .evict = 1, .attend_present = 1, .ranking = "streamingllm"};
}

const struct smg_scheme smg_scheme_streamingllm = {
    .name = "streamingllm",
    .doc = "attention sinks and the most recent window, the rest evicted (accuracy baseline)",
    .features = streamingllm_features,
};
