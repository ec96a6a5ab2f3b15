#include "core/scheme.h"

#include <string.h>

#include "core/grid.h"
#include "core/hack.h"

/* A new scheme is a file core/scheme_NAME.c, its declaration here, and its line in the table. */
extern const struct smg_scheme smg_scheme_full;
extern const struct smg_scheme smg_scheme_partial;
extern const struct smg_scheme smg_scheme_smartgen;
extern const struct smg_scheme smg_scheme_hack;
extern const struct smg_scheme smg_scheme_proactive_only;
extern const struct smg_scheme smg_scheme_streamingllm;

const struct smg_scheme *const smg_schemes[] = {
    &smg_scheme_full,
    &smg_scheme_partial,
    &smg_scheme_smartgen,
    &smg_scheme_hack,
    &smg_scheme_proactive_only,
    &smg_scheme_streamingllm,
    NULL,
};

const struct smg_scheme *smg_scheme_find(const char *name)
{
    for (const struct smg_scheme *const *s = smg_schemes; *s != NULL; s++) {
        if (strcmp((*s)->name, name) == 0) {
            return *s;
        }
    }
    return NULL;
}

void smg_scheme_features(const struct smg_world *w, struct smg_features *out)
{
    memset(out, 0, sizeof(*out));
    w->scheme->features(&w->scenario, out);
    out->ranking[sizeof(out->ranking) - 1] = '\0';
}

void smg_scheme_grid(const struct smg_world *w, uint32_t prompt_tokens, struct smg_grid *out)
{
    struct smg_features f;
    struct smg_hack_layout l;
    uint64_t heads = w->model.kv_heads;

    smg_grid_init(out, &w->model, prompt_tokens, w->scenario.blocks_per_layer, w->scenario.min_block_tokens);
    smg_scheme_features(w, &f);
    if (!f.on_gpu) {
        return;
    }
    smg_hack_layout(w, prompt_tokens, &l);
    out->token_layer_bytes = heads * l.coded_bytes;
    out->head_extra_bytes = heads * l.sink_tokens * l.sink_extra_bytes;
    out->tail_extra_bytes = heads * l.tail_tokens * l.tail_extra_bytes;
}
