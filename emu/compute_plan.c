/* What selectors know beforehand, layer by layer, from the calibration request of the planted tensors: InfiniGen's basis and
 * columns. HATA's weights are untrained: training takes a minute a layer, more than a whole emulation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cost.h"
#include "core/rng.h"
#include "emu/compute_priv.h"
#include "kernels/smg_offline.h"

/* Tokens of the calibration request: enough for a basis of 128 columns, and 20 ms a KV head and layer. */
enum { CALIBRATION_TOKENS = 256 };

static int refuse(struct smg_diag *diag, const char *key, const char *what)
{
    snprintf(diag->text, sizeof diag->text, "key '%s': emu.compute: kernels %s", key, what);
    return SMG_ERR_UNSUPPORTED;
}

/* A key of the model's file, as the reader names those. */
static int refuse_model(const struct smg_world *w, struct smg_diag *diag, const char *key, const char *expected, uint32_t found)
{
    snprintf(diag->text, sizeof diag->text, "key 'model': %.300s: key '%s': emu.compute: kernels expects %s, found %u",
             w->scenario.model, key, expected, found);
    return SMG_ERR_UNSUPPORTED;
}

static int check(const struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_model *m = &w->model;

    if (m->value_bytes != 2)
        return refuse_model(w, diag, "dtype", "2 bytes a number (bf16)", m->value_bytes);
    if (m->head_dim < SMG_COMPUTE_MIN_DIM || m->head_dim > SMG_COMPUTE_MAX_DIM || m->head_dim % 2)
        return refuse_model(w, diag, "head_dim", "an even number in [6, 256]", m->head_dim);
    if (m->q_heads > SMG_COMPUTE_MAX_HEADS)
        return refuse_model(w, diag, "num_attention_heads", "at most 1024", m->q_heads);
    if (w->scenario.selector == SMG_SELECTOR_INFINIGEN && smg_metadata_token_bytes(w) == 0)
        return refuse(diag, "selection.partial_ratio", "needs at least one column");
    if (w->scenario.selector == SMG_SELECTOR_HATA &&
        (w->scenario.selection.hash_bits % 32 || w->scenario.selection.hash_bits > 1024))
        return refuse(diag, "selection.hash_bits", "needs a multiple of 32, at most 1024");
    return SMG_OK;
}

/* ---- InfiniGen ---- */

static int make_skew(struct smg_compute_plan *p, uint32_t layer, void *q, void *k, struct smg_diag *diag)
{
    const struct smg_planted *t = &p->planted;
    struct smg_compute_layer *l = &p->layer[layer];
    struct smg_calibration c = {CALIBRATION_TOKENS, t->q_heads, t->kv_heads, t->head_dim, p->type, q, k};
    int status;

    l->basis = malloc((size_t)t->kv_heads * t->head_dim * t->head_dim * sizeof *l->basis);
    l->columns = malloc((size_t)t->kv_heads * p->width);
    if (!l->basis || !l->columns)
        return SMG_ERR_NOMEM;
    smg_planted_fill(t, SMG_PLANTED_QUERY, SMG_PLANTED_CALIBRATION, layer, 0, CALIBRATION_TOKENS, p->type, q);
    smg_planted_fill(t, SMG_PLANTED_KEY, SMG_PLANTED_CALIBRATION, layer, 0, CALIBRATION_TOKENS, p->type, k);
    status = smg_skew_basis(&c, l->basis, diag);
    return status ? status : smg_skew_columns(&c, l->basis, SMG_SKEW_QK_SUM, p->width, l->columns, diag);
}

static int make_skews(struct smg_compute_plan *p, struct smg_diag *diag)
{
    const struct smg_planted *t = &p->planted;
    size_t row = t->head_dim * smg_dtype_bytes(p->type);
    void *q = malloc(CALIBRATION_TOKENS * t->q_heads * row), *k = malloc(CALIBRATION_TOKENS * t->kv_heads * row);
    int status = q && k ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t l = 0; l < p->world->model.layers && !status; l++)
        if (smg_model_layer_selects(&p->world->model, l))
            status = make_skew(p, l, q, k, diag);
    free(q);
    free(k);
    return status;
}

/* ---- HATA ---- */

static int make_hashes(struct smg_compute_plan *p)
{
    const struct smg_planted *t = &p->planted;
    uint32_t bits = p->world->scenario.selection.hash_bits;

    for (uint32_t l = 0; l < p->world->model.layers; l++) {
        if (!smg_model_layer_selects(&p->world->model, l))
            continue;
        p->layer[l].hash = malloc((size_t)t->kv_heads * t->head_dim * bits * sizeof(float));
        if (!p->layer[l].hash)
            return SMG_ERR_NOMEM;
        smg_hata_untrained(smg_hash2(p->world->scenario.seed, l), t->kv_heads, t->head_dim, bits, p->layer[l].hash);
    }
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
    p->type = SMG_BF16;
    /* As many columns as the metadata counts. */
    p->width = (uint32_t)(smg_metadata_token_bytes(w) / (2 * w->model.kv_heads));
    smg_planted_defaults(&p->planted, w->scenario.seed, w->model.q_heads, w->model.kv_heads, w->model.head_dim);
    status = smg_planted_check(&p->planted, diag);
    if (!status && w->scenario.selector == SMG_SELECTOR_INFINIGEN)
        status = make_skews(p, diag);
    if (!status && w->scenario.selector == SMG_SELECTOR_HATA)
        status = make_hashes(p);
    if (status) {
        smg_compute_plan_destroy(p);
        return status;
    }
    *out = p;
    return SMG_OK;
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
