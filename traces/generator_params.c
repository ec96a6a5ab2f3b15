/* Parameters of the synthetic selections: a data file whose values carry unit, source and derivation. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/world.h"
#include "traces/data_dir.h"
#include "traces/generator.h"
#include "traces/text.h"
#include "traces/world.h"

struct param {
    const char *name, *unit;
    size_t offset;
    double lo, hi;
};

#define PARAM(name_, unit_, lo_, hi_)                                                                                            \
    {                                                                                                                            \
#name_, unit_, offsetof(struct smg_generator_params, name_), lo_, hi_                                                    \
    }

static const struct param params[] = {
    PARAM(universal_gain, "1", 0, 100),
    PARAM(context_gain, "1", 0, 100),
    PARAM(persistence, "1", 0, 1),
    PARAM(rotation_steps, "steps", 1, 1e6),
    PARAM(rotation_spread, "1", 0, 0.9),
    PARAM(boundary_rate, "1/step", 0, 1),
    PARAM(head_universal_spread, "1", 0, 10),
    PARAM(head_context_spread, "1", 0, 10),
    PARAM(floor_weight, "1", 1e-6, 1e6),
    PARAM(sink_tokens, "tokens", 0, 1e6),
    PARAM(sink_weight, "1", 0, 1e6),
    PARAM(near_weight, "1", 0, 1e6),
    PARAM(near_tokens, "tokens", 1e-3, 1e9),
    PARAM(plateau_weight, "1", 0, 1e6),
    PARAM(plateau_mean, "1", 0, 1),
    PARAM(plateau_swing, "1", 0, 1),
    PARAM(plateau_peak, "1", 0, 1),
    PARAM(plateau_start, "1", 0, 1),
    PARAM(plateau_edge, "1", 1e-6, 1),
    PARAM(dip_depth, "1", 0, 1),
    PARAM(dip_width, "1", 1e-6, 10),
    PARAM(dip_plateau, "1", 0, 1),
    PARAM(dip_selected, "1", 0, 0.99),
    PARAM(clusters_min, "1", 0, 8),
    PARAM(clusters_max, "1", 0, 8),
    PARAM(cluster_width_min, "1", 1e-6, 1),
    PARAM(cluster_width_max, "1", 1e-6, 1),
    PARAM(cluster_weight_min, "1", 0, 1e6),
    PARAM(cluster_weight_max, "1", 0, 1e6),
    PARAM(context_per_token, "1/token", 0, 1),
    PARAM(context_tokens, "tokens", 1e-3, 1e4),
    PARAM(context_strength_min, "1", 0, 1e6),
    PARAM(context_strength_max, "1", 0, 1e6),
};

#define PARAMS (sizeof(params) / sizeof(params[0]))

static int only_known(const json_t *root, const char *path, struct smg_diag *diag)
{
    const char *name, *names[PARAMS + 1];
    char hint[160];
    json_t *value;
    size_t i;

    for (i = 0; i < PARAMS; i++) {
        names[i] = params[i].name;
    }
    names[PARAMS] = NULL;
    json_object_foreach((json_t *)root, name, value)
    {
        for (i = 0; i < PARAMS && strcmp(name, names[i]) != 0; i++) {
        }
        if (i == PARAMS) {
            smg_text_hint(name, names, hint, sizeof(hint));
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%.60s': unknown key%s", path, name, hint);
        }
    }
    return SMG_OK;
}

static int read_param(const json_t *root, const struct param *p, const char *path, struct smg_generator_params *out,
                      struct smg_diag *diag)
{
    const json_t *entry = json_object_get(root, p->name), *value = json_object_get(entry, "value");
    const char *unit = json_string_value(json_object_get(entry, "unit"));
    double number = json_number_value(value);

    if (entry == NULL) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s' is missing", path, p->name);
    }
    if (!json_is_number(value) || !(number >= p->lo && number <= p->hi)) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s': 'value': expected a number between %g and %g", path, p->name,
                            p->lo, p->hi);
    }
    if (unit == NULL || strcmp(unit, p->unit) != 0) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s': 'unit': expected \"%s\"", path, p->name, p->unit);
    }
    if (!json_is_string(json_object_get(entry, "source"))) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s': 'source' is missing: where does the value come from?", path,
                            p->name);
    }
    memcpy((char *)out + p->offset, &number, sizeof(number));
    return SMG_OK;
}

int smg_generator_params_load(struct smg_generator_params *out, struct smg_diag *diag)
{
    struct smg_generator_params found;
    char path[SMG_PATH_MAX];
    json_t *root;
    size_t i;
    int status;

    snprintf(path, sizeof(path), "%s/generator.json", smg_data_dir());
    status = smg_file_json(path, &root, diag);
    if (status != SMG_OK) {
        return status;
    }
    status = only_known(root, path, diag);
    for (i = 0; i < PARAMS && status == SMG_OK; i++) {
        status = read_param(root, &params[i], path, &found, diag);
    }
    json_decref(root);
    if (status == SMG_OK && found.clusters_min > found.clusters_max) {
        return smg_diag_set(diag, SMG_ERR_RANGE, "%s: key 'clusters_min': more than clusters_max", path);
    }
    if (status == SMG_OK) {
        *out = found;
    }
    return status;
}
