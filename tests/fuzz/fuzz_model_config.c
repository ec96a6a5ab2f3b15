/* Model configurations (config.json). */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "traces/world.h"

static void check(const struct smg_model *m)
{
    fuzz_must(m->layers >= 1 && m->layers <= SMG_MAX_LAYERS);
    fuzz_must(m->hidden && m->kv_heads && m->head_dim && m->intermediate && m->vocab && m->value_bytes);
    fuzz_must(m->q_heads && m->q_heads % m->kv_heads == 0);
    for (uint32_t l = 0; l < m->layers; l++)
        fuzz_must(!m->sliding[l] || m->window_tokens);
    fuzz_must(smg_model_token_bytes(m) / m->layers == smg_model_token_layer_bytes(m));
    fuzz_must(smg_model_prompt_bytes(m, 4096) >= smg_model_token_bytes(m));
    fuzz_must(smg_model_params(m) >= smg_model_body_params(m) && smg_model_body_params(m) > 0);
    fuzz_must(isfinite(smg_model_prefill_flop(m, 128, 4096)) && smg_model_prefill_flop(m, 128, 4096) > 0);
    fuzz_must(smg_model_selecting_layers(m) <= m->layers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_diag diag = {""};
    struct smg_model m;
    int status = smg_model_load(fuzz_file(0, data, bytes), &m, &diag);

    fuzz_told(status, &diag);
    if (!status)
        check(&m);
    return 0;
}
