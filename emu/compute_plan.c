/* What selectors know beforehand, layer by layer, from the calibration request of the planted tensors: InfiniGen's basis and columns,
 * HATA's hash weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/compute_priv.h"

static int refuse(struct smg_diag *diag, const char *key, const char *what)
{
    snprintf(diag->text, sizeof diag->text, "key '%s': emu.compute: kernels %s", key, what);
    return SMG_ERR_UNSUPPORTED;
}

static int check(const struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_model *m = &w->model;

    if (m->value_bytes != 2 && m->value_bytes != 4)
        return refuse(diag, "model", "computes in bf16 or fp32; this model's KV has another width");
    if (m->head_dim > SMG_COMPUTE_MAX_DIM || m->head_dim % 2)
        return refuse(diag, "model", "takes an even head_dim up to 256");
    if (m->q_heads > SMG_COMPUTE_MAX_HEADS)
        return refuse(diag, "model", "takes up to 1024 query heads");
    if (w->scenario.selector == SMG_SELECTOR_HATA && (w->scenario.selection.hash_bits % 32 || w->scenario.selection.hash_bits > 1024))
        return refuse(diag, "selection.hash_bits", "needs a multiple of 32, at most 1024");
    return SMG_OK;
}

int smg_compute_plan_create(const struct smg_world *w, struct smg_compute_plan **out, struct smg_diag *diag)
{
    struct smg_compute_plan *p;
    int status = check(w, diag);

    if (status)
        return status;
    p = calloc(1, sizeof *p);
    if (!p)
        return SMG_ERR_NOMEM;
    p->world = w;
    p->type = w->model.value_bytes == 4 ? SMG_F32 : SMG_BF16;
    smg_planted_defaults(&p->planted, w->scenario.seed, w->model.q_heads, w->model.kv_heads, w->model.head_dim);
    *out = p;
    return status;
}

void smg_compute_plan_destroy(struct smg_compute_plan *p)
{
    if (!p)
        return;
    for (uint32_t l = 0; l < SMG_MAX_LAYERS; l++) {
        free(p->layer[l].basis);
        free(p->layer[l].columns);
        free(p->layer[l].hash);
    }
    free(p);
}
