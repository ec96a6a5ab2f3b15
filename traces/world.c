/* From a scenario to a resolved world. */
#include "traces/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/importance.h"
#include "core/plugin.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "traces/importance_auto.h"
#include "traces/importance_file.h"
#include "traces/plugin.h"
#include "traces/scenario.h"
#include "traces/selection_recording.h"
#include "traces/text.h"
#include "traces/workload.h"

/* What the key table accepts because it is in the contract, but nothing implements yet. */
static int not_available(struct smg_diag *diag, const char *key, const char *value, const char *instead)
{
    return smg_diag_set(diag, SMG_ERR_UNSUPPORTED, "key '%s': '%.100s' is not available yet; %s", key, value, instead);
}

/* An unknown name, or a file that cannot be opened, is the fault of the key that names it; what is wrong inside a file begins
 * with that file. A message that names a key itself knows better. */
static int blame(const char *key, int status, struct smg_diag *diag)
{
    struct smg_diag found;

    if (diag != NULL && diag->text[0] != '\0' && strncmp(diag->text, "key '", 5) != 0 &&
        (status == SMG_ERR_NOT_FOUND || status == SMG_ERR_IO)) {
        found = *diag;
        return smg_diag_set(diag, status, "key '%s': %.460s", key, found.text);
    }
    return status;
}

static int check_scheme(const struct smg_scenario *s, struct smg_diag *diag)
{
    if (smg_scheme_find(s->scheme) == NULL) {
        return not_available(diag, "scheme", s->scheme, "`smartgen list schemes` names them");
    }
    return SMG_OK;
}

/* A code is stored in whole bytes. */
static int check_hash(const struct smg_scenario *s, struct smg_diag *diag)
{
    if (s->selector != SMG_SELECTOR_HATA || s->selection.hash_bits % 8 == 0) {
        return SMG_OK;
    }
    return smg_diag_set(diag, SMG_ERR_INVALID, "key 'selection.hash_bits': expected a multiple of 8, found '%u'",
                        s->selection.hash_bits);
}

static size_t add_names(const char **names, size_t n, size_t cap, const struct smg_rank_type *const *types)
{
    for (; types != NULL && *types != NULL && n + 1 < cap; types++) {
        names[n++] = (*types)->name;
    }
    names[n] = NULL;
    return n;
}

static int check_ranking(const struct smg_world *w, struct smg_diag *diag)
{
    const char *wanted = w->scenario.proactive.ranking, *names[64];
    char known[200], hint[160];
    size_t n;

    if (smg_world_ranking(w, wanted) != NULL) {
        return SMG_OK;
    }
    n = add_names(names, 0, sizeof(names) / sizeof(names[0]), w->plugin != NULL ? w->plugin->rankings : NULL);
    add_names(names, n, sizeof(names) / sizeof(names[0]), smg_rank_types);
    smg_text_hint(wanted, names, hint, sizeof(hint));
    smg_text_join(names, known, sizeof(known));
    return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "key 'proactive.ranking': expected one of %s, found '%.60s'%s", known, wanted,
                        hint);
}

/* A plug-in's scheme may name a ranking of its own. */
static int check_features(const struct smg_world *w, struct smg_diag *diag)
{
    struct smg_features features;

    smg_scheme_features(w, &features);
    if (smg_world_ranking(w, features.ranking) == NULL) {
        return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "key 'policy': scheme '%s' asks for ranking '%.60s', which is not there",
                            w->scheme->name, features.ranking);
    }
    return SMG_OK;
}

/* Groups of HACK run along channels on one side: they must fill a head. */
static int check_hack(const struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;

    if (strcmp(w->scheme->name, "hack") != 0) {
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

/* The plug-in, if any, and the scheme. */
static int choose_policy(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    int status = check_scheme(s, diag);

    if (status == SMG_OK && s->policy[0] != '\0') {
        status = blame("policy", smg_plugin_open(s->policy, &w->plugin, &w->plugin_handle, diag), diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    w->scheme = w->plugin != NULL && w->plugin->scheme != NULL ? w->plugin->scheme : smg_scheme_find(s->scheme);
    status = check_ranking(w, diag);
    return status == SMG_OK ? check_features(w, diag) : status;
}

static int check_available(const struct smg_scenario *s, struct smg_diag *diag)
{
    if (s->decode_start == SMG_START_LAYER) {
        return not_available(diag, "decode.start", "layer", "use ready or pushed");
    }
    if (s->prefill_chunk_tokens != 0) {
        return not_available(diag, "prefill.chunk_tokens", "chunked prefill", "use 0, the whole prompt");
    }
    if (strcmp(s->emu.token, "none") != 0) {
        return not_available(diag, "emu.token", s->emu.token, "use none");
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
        status = smg_diag_set(diag, SMG_ERR_RANGE, "key '%s.nodes': %u prefill and %u decode instances: at most %u in all",
                              w->prefill_instances > w->decode_instances ? "prefill" : "decode", w->prefill_instances,
                              w->decode_instances, UINT16_MAX - 1u);
    }
    return status;
}

static int load_hardware(struct smg_world *w, struct smg_diag *diag)
{
    int status = blame("prefill.instance", smg_instance_apply(&w->scenario.prefill, diag), diag);

    if (status == SMG_OK) {
        status = blame("decode.instance", smg_instance_apply(&w->scenario.decode, diag), diag);
    }
    if (status == SMG_OK) {
        status = blame("prefill.gpu", smg_gpu_load(w->scenario.prefill.gpu, &w->prefill_gpu, diag), diag);
    }
    if (status == SMG_OK) {
        status = blame("decode.gpu", smg_gpu_load(w->scenario.decode.gpu, &w->decode_gpu, diag), diag);
    }
    if (status == SMG_OK) {
        status = blame("network.nic", smg_nic_load(w->scenario.network.nic, &w->nic, diag), diag);
    }
    return status == SMG_OK ? blame("host", smg_host_load(w->scenario.host, &w->host, diag), diag) : status;
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

/* A plug-in's ranking scores the first prompt once before anything runs, so that what it cannot do is told here. */
static int try_ranking(const struct smg_world *w, const struct smg_rank_type *type, struct smg_diag *diag)
{
    struct smg_grid grid;
    struct smg_rank_input in = {&grid, w->importance, w->scenario.seed, 0};
    float *score;
    uint32_t layer, block;
    int status = SMG_OK;

    smg_scheme_grid(w, w->requests[0].prompt_tokens, &grid);
    score = calloc(grid.blocks, sizeof(*score));
    if (score == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (layer = SMG_DENSE_LAYERS; layer < w->model.layers && status == SMG_OK; layer++) {
        status = type->score(&in, layer, score);
        if (status != SMG_OK) {
            status = smg_diag_set(diag, SMG_ERR_INVALID, "%s: ranking '%s', layer %u: the score function returned %d (%s)",
                                  w->scenario.policy, type->name, layer, status, smg_status_string(status));
        }
        for (block = 0; block < grid.blocks && status == SMG_OK; block++) {
            if (isnan(score[block])) {
                status = smg_diag_set(diag, SMG_ERR_INVALID, "%s: ranking '%s', layer %u, block %u: the score is not a number",
                                      w->scenario.policy, type->name, layer, block);
            }
        }
    }
    free(score);
    return status;
}

/* A file is read whatever the ranking: when it was captured, expected counts come from it too. */
static int make_importance(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_rank_type *ranking;
    struct smg_features features;
    int status = SMG_OK;

    smg_scheme_features(w, &features);
    ranking = smg_world_ranking(w, features.ranking);
    if (strcmp(w->scenario.proactive.importance, "auto") != 0) {
        status = blame("proactive.importance", read_importance(w, diag), diag);
    } else if (ranking != NULL && ranking->needs_importance) {
        status = smg_importance_auto(w, &w->importance, diag);
    }
    if (status == SMG_OK && ranking == &smg_rank_optimal) {
        status = smg_importance_add_requests(w->importance, w, diag);
    }
    if (status == SMG_OK && ranking != NULL && smg_rank_find(ranking->name) != ranking) {
        status = try_ranking(w, ranking, diag);
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
    status = blame("selection.file", smg_recording_open(w->scenario.selection.file, &r, diag), diag);
    if (status == SMG_OK) {
        status = smg_recording_fits(r, w, diag);
        w->synthetic_selection = smg_recording_synthetic(r);
        smg_recording_close(r);
    }
    return status;
}

static int fill(struct smg_world *w, struct smg_diag *diag)
{
    int status = choose_policy(w, diag);

    if (status == SMG_OK) {
        status = check_available(&w->scenario, diag);
    }
    if (status == SMG_OK) {
        status = blame("model", smg_model_load(w->scenario.model, &w->model, diag), diag);
    }
    if (status == SMG_OK) {
        status = check_hack(w, diag);
    }
    if (status == SMG_OK) {
        status = check_hash(&w->scenario, diag);
    }
    if (status == SMG_OK) {
        status = load_hardware(w, diag);
    }
    if (status == SMG_OK) {
        status = make_instances(w, diag);
    }
    if (status == SMG_OK) {
        status = blame(w->scenario.workload.kind == SMG_WORKLOAD_TRACE ? "workload.file" : "workload.dataset",
                       smg_workload_make(w, diag), diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    if (w->scenario.faults.instance >= smg_world_instances(w)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "key 'faults.instance': there are %u instances (0: none dies), found %u",
                            w->prefill_instances + w->decode_instances, w->scenario.faults.instance);
    }
    count_over_length(w);
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
    smg_plugin_close(w->plugin_handle);
    memset(w, 0, sizeof(*w));
}
