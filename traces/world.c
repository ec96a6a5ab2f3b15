/* From a scenario to a resolved world. */
#include "traces/world.h"

#include <stdlib.h>
#include <string.h>

#include "core/importance.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "traces/importance_auto.h"
#include "traces/importance_file.h"
#include "traces/scenario.h"
#include "traces/selection_recording.h"
#include "traces/text.h"
#include "traces/workload.h"

/* What the key table accepts because it is in the contract, but nothing implements yet. */
static int not_available(struct smg_diag *diag, const char *key, const char *value, const char *instead)
{
    return smg_diag_set(diag, SMG_ERR_UNSUPPORTED, "key '%s': '%.100s' is not available yet; %s", key, value, instead);
}

static int check_scheme(const struct smg_scenario *s, struct smg_diag *diag)
{
    if (s->policy[0] != '\0') {
        return not_available(diag, "policy", s->policy, "leave it empty and choose a scheme");
    }
    if (smg_scheme_find(s->scheme) == NULL) {
        return not_available(diag, "scheme", s->scheme, "`smartgen list schemes` names them");
    }
    return SMG_OK;
}

static int check_ranking(const struct smg_scenario *s, struct smg_diag *diag)
{
    const char *names[32];
    char hint[160];
    size_t n;

    if (smg_rank_find(s->proactive.ranking) != NULL) {
        return SMG_OK;
    }
    for (n = 0; n + 1 < sizeof(names) / sizeof(names[0]) && smg_rank_types[n] != NULL; n++) {
        names[n] = smg_rank_types[n]->name;
    }
    names[n] = NULL;
    smg_text_hint(s->proactive.ranking, names, hint, sizeof(hint));
    return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "key 'proactive.ranking': no ranking is called '%.60s'%s", s->proactive.ranking,
                        hint);
}

/* Groups of HACK run along channels on one side: they must fill a head. */
static int check_hack(const struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;

    if (strcmp(s->scheme, "hack") != 0) {
        return SMG_OK;
    }
    if (s->hack.bits != 2 && s->hack.bits != 4 && s->hack.bits != 8) {
        return smg_diag_set(diag, SMG_ERR_RANGE, "key 'hack.bits': expected 2, 4 or 8, found %u", s->hack.bits);
    }
    if (w->model.head_dim % s->hack.group != 0) {
        return smg_diag_set(diag, SMG_ERR_RANGE,
                            "key 'hack.group': expected a divisor of the model's head dimension %u, found %u", w->model.head_dim,
                            s->hack.group);
    }
    return SMG_OK;
}

static int check_available(const struct smg_scenario *s, struct smg_diag *diag)
{
    int status = check_scheme(s, diag);

    if (status == SMG_OK) {
        status = check_ranking(s, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    if (s->decode_start == SMG_START_LAYER) {
        return not_available(diag, "decode.start", "layer", "use ready or pushed");
    }
    if (s->prefill_chunk_tokens != 0) {
        return not_available(diag, "prefill.chunk_tokens", "chunked prefill", "use 0, the whole prompt");
    }
    if (s->emu.compute == SMG_EMU_KERNELS) {
        return not_available(diag, "emu.compute", "kernels", "use paced");
    }
    return SMG_OK;
}

static int count_instances(const struct smg_pool_config *p, const char *pool, uint32_t *out, struct smg_diag *diag)
{
    if (p->gpus_per_node % p->tp != 0) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "key '%s.tp': %u must divide %s.gpus_per_node, which is %u", pool, p->tp, pool,
                            p->gpus_per_node);
    }
    *out = p->nodes * (p->gpus_per_node / p->tp);
    return SMG_OK;
}

/* Peers are numbered in 16 bits. */
static int make_instances(struct smg_world *w, struct smg_diag *diag)
{
    int status = count_instances(&w->scenario.prefill, "prefill", &w->prefill_instances, diag);

    if (status == SMG_OK) {
        status = count_instances(&w->scenario.decode, "decode", &w->decode_instances, diag);
    }
    if (status == SMG_OK && w->prefill_instances + w->decode_instances > UINT16_MAX - 1u) {
        status = smg_diag_set(diag, SMG_ERR_RANGE, "%u prefill and %u decode instances: at most %u in all", w->prefill_instances,
                              w->decode_instances, UINT16_MAX - 1u);
    }
    return status;
}

static int load_hardware(struct smg_world *w, struct smg_diag *diag)
{
    int status = smg_gpu_load(w->scenario.prefill.gpu, &w->prefill_gpu, diag);

    if (status == SMG_OK) {
        status = smg_gpu_load(w->scenario.decode.gpu, &w->decode_gpu, diag);
    }
    if (status == SMG_OK) {
        status = smg_nic_load(w->scenario.network.nic, &w->nic, diag);
    }
    return status == SMG_OK ? smg_host_load("default", &w->host, diag) : status;
}

static void count_over_length(struct smg_world *w)
{
    uint32_t i;

    for (i = 0; w->model.max_positions != 0 && i < w->n_requests; i++) {
        w->over_length += w->requests[i].prompt_tokens > w->model.max_positions;
    }
}

static int read_importance(struct smg_world *w, struct smg_diag *diag)
{
    const char *path = w->scenario.proactive.importance;
    struct smg_importance_info *info = malloc(sizeof(*info));
    int status = info != NULL ? smg_importance_read(path, &w->importance, info, diag) : SMG_ERR_NOMEM;

    if (status == SMG_OK) {
        status = smg_importance_fits(path, w->importance, info, &w->model, diag);
    }
    free(info);
    return status;
}

/* A file is read whatever the ranking: when it was captured, expected counts come from it too. */
static int make_importance(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_rank_type *ranking;
    struct smg_features features;
    int status = SMG_OK;

    w->scheme->features(&w->scenario, &features);
    ranking = smg_rank_find(features.ranking);
    if (strcmp(w->scenario.proactive.importance, "auto") != 0) {
        status = read_importance(w, diag);
    } else if (ranking != NULL && ranking->needs_importance) {
        status = smg_importance_auto(w, &w->importance, diag);
    }
    if (status == SMG_OK && ranking == &smg_rank_optimal) {
        status = smg_importance_add_requests(w->importance, w, diag);
    }
    w->synthetic_importance = w->importance != NULL && w->importance->synthetic;
    if (w->importance != NULL && w->scenario.selection.source == SMG_SOURCE_LAYER &&
        smg_importance_tells_selection(w->importance, features.reuse)) {
        w->synthetic_selection = 0;
    }
    if (status != SMG_OK && diag != NULL && diag->text[0] == '\0') {
        smg_diag_set(diag, status, "importance %.100s: %s", w->scenario.proactive.importance, smg_status_string(status));
    }
    return status;
}

/* Expected counts have no rows to read from. */
static int check_recording(struct smg_world *w, struct smg_diag *diag)
{
    struct smg_recording *r;
    int status;

    w->synthetic_selection = 1;
    if (w->scenario.selection.file[0] == '\0') {
        return SMG_OK;
    }
    if (w->scenario.selection.source != SMG_SOURCE_ENTRY) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "key 'selection.file': recorded selections need selection.source: entry");
    }
    status = smg_recording_open(w->scenario.selection.file, &r, diag);
    if (status == SMG_OK) {
        status = smg_recording_fits(r, w, diag);
        w->synthetic_selection = smg_recording_synthetic(r);
        smg_recording_close(r);
    }
    return status;
}

static int fill(struct smg_world *w, struct smg_diag *diag)
{
    int status = check_available(&w->scenario, diag);

    if (status == SMG_OK) {
        status = smg_model_load(w->scenario.model, &w->model, diag);
    }
    if (status == SMG_OK) {
        status = check_hack(w, diag);
    }
    if (status == SMG_OK) {
        status = load_hardware(w, diag);
    }
    if (status == SMG_OK) {
        status = make_instances(w, diag);
    }
    if (status == SMG_OK) {
        status = smg_workload_make(w, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    count_over_length(w);
    w->scheme = smg_scheme_find(w->scenario.scheme);
    status = check_recording(w, diag);
    return status == SMG_OK ? make_importance(w, diag) : status;
}

int smg_world_load(const struct smg_scenario *s, struct smg_world *out, struct smg_diag *diag)
{
    int status;

    memset(out, 0, sizeof(*out));
    out->scenario = *s;
    /* The default depends on the kind; the resolved scenario states it. */
    out->scenario.workload.batch_barrier = smg_world_barrier(out);
    out->scenario.workload.batch_barrier_set = 1;
    status = fill(out, diag);
    if (status != SMG_OK) {
        smg_world_free(out);
    }
    return status;
}

void smg_world_free(struct smg_world *w)
{
    if (w == NULL) {
        return;
    }
    free(w->requests);
    smg_importance_destroy(w->importance);
    memset(w, 0, sizeof(*w));
}
