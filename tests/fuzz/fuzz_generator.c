/* Parameters of the generator (generator.json), and rows made with what was accepted. */
#include <math.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/generator.h"

enum { TOKENS = 96, K = 16 };

static const struct smg_model model = {
    .name = "fuzz",
    .layers = 6,
    .hidden = 64,
    .q_heads = 4,
    .kv_heads = 2,
    .head_dim = 16,
    .intermediate = 128,
    .vocab = 1000,
    .value_bytes = 2,
    .window_tokens = 32,
    .sliding = {0, 0, 0, 1, 0, 0},
};

static void row(const struct smg_generator *g, uint32_t layer, struct smg_generator_scratch *scratch)
{
    struct smg_generator_weight weight[TOKENS];
    int32_t index[K];
    uint32_t k = smg_generator_k(g, layer, K);

    fuzz_must(k >= 1 && k <= K);
    smg_generator_weights(g, 1, layer, TOKENS, 1, weight);
    for (uint32_t i = 0; i < TOKENS; i++)
        fuzz_must(!isnan(weight[i].universal) && isfinite(weight[i].context));
    smg_generator_row(g, 1, layer, 1, 3, weight, TOKENS, k, scratch, index);
    for (uint32_t i = 0; i < k; i++)
        fuzz_must(index[i] > (i ? index[i - 1] : -1) && index[i] < TOKENS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_generator_scratch scratch;
    struct smg_generator_params p;
    struct smg_generator *g;
    struct smg_diag diag = {""};
    int status;

    fuzz_folder_put(0, "generator.json", data, bytes);
    setenv("SMARTGEN_DATA", fuzz_folder(), 1);
    status = smg_generator_params_load(&p, &diag);
    fuzz_told(status, &diag);
    if (status || smg_generator_make(&p, &model, 7, 0.5, &g))
        return 0;
    if (!smg_generator_scratch_create(TOKENS, &scratch)) {
        for (uint32_t layer = SMG_DENSE_LAYERS; layer < model.layers; layer++)
            if (smg_model_layer_selects(&model, layer))
                row(g, layer, &scratch);
        smg_generator_scratch_destroy(&scratch);
    }
    smg_generator_destroy(g);
    return 0;
}
