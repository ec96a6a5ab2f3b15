/* run.json read back: what two runs must share to be runs of one experiment. */
#include <string.h>

#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/scenario.h"
#include "traces/scenario_keys.h"
#include "traces/text.h"

static int of_the_experiment(const char *key)
{
    return strcmp(key, "seed") && strncmp(key, "records.", 8) && strncmp(key, "slo.", 4);
}

static int add_scenario(const json_t *root, json_t *to, const char *path, struct smg_diag *diag)
{
    struct smg_scenario s;
    struct smg_diag found = {""};
    const struct smg_key *keys;
    size_t n;
    int status = smg_scenario_from_json(json_object_get(root, "scenario"), &s, &found);

    if (status)
        return smg_diag_set(diag, status, "%s: %s", path, found.text);
    keys = smg_keys(&n);
    for (size_t i = 0; i < n; i++)
        if (of_the_experiment(keys[i].path) && json_object_set_new(to, keys[i].path, smg_key_json(&keys[i], &s)))
            return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);
    return SMG_OK;
}

static int add_word(const json_t *root, const char *name, json_t *to, const char *path, struct smg_diag *diag)
{
    json_t *word = json_object_get(root, name);

    if (!json_is_string(word))
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s': expected a text", path, name);
    return json_object_set(to, name, word) ? smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path) : SMG_OK;
}

/* The files the run read: the same name may have meant other bytes. */
static int add_inputs(const json_t *root, json_t *to, const char *path, struct smg_diag *diag)
{
    json_t *kept = json_array(), *input;
    int bad = !kept;
    size_t i;

    json_array_foreach(json_object_get(root, "inputs"), i, input)
    {
        const char *what = json_string_value(json_object_get(input, "input"));
        if (!bad && what && strcmp(what, "scenario"))
            bad = json_array_append(kept, input);
    }
    bad = json_object_set_new(to, "inputs", kept) || bad;
    return bad ? smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path) : SMG_OK;
}

static int add_all(const json_t *root, json_t *to, const char *path, struct smg_diag *diag)
{
    static const char *const words[] = {"driver", "engine", "version"};
    int status = to ? add_scenario(root, to, path, diag) : smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);

    /* The engine that ran takes the place of the scenario's: an emulation has its fabric's provider there. */
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !status; i++)
        status = add_word(root, words[i], to, path, diag);
    return status ? status : add_inputs(root, to, path, diag);
}

int smg_run_settings(const char *dir, json_t **settings_out, uint32_t *requests_out, uint64_t *seed_out, json_t **synthetic_out,
                     struct smg_diag *diag)
{
    json_t *root = NULL, *settings, *requests;
    char path[SMG_PATH_MAX];
    int status = smg_path_join(dir, "run.json", path);

    if (status)
        return smg_diag_set(diag, status, "%.100s...: name is too long", dir);
    status = smg_file_regular(path, diag);
    if (!status)
        status = smg_file_json(path, &root, diag);
    if (status)
        return status;
    settings = json_object();
    status = add_all(root, settings, path, diag);
    requests = json_object_get(root, "requests");
    if (!status && (!json_is_integer(requests) || json_integer_value(requests) < 0 || json_integer_value(requests) > UINT32_MAX))
        status = smg_diag_set(diag, SMG_ERR_PARSE, "%s: key 'requests': expected the number of requests", path);
    if (!status) {
        *requests_out = (uint32_t)json_integer_value(requests);
        *seed_out = (uint64_t)json_integer_value(json_object_get(json_object_get(root, "scenario"), "seed"));
        *settings_out = json_incref(settings);
        *synthetic_out = json_incref(json_object_get(root, "synthetic"));
    }
    json_decref(settings);
    json_decref(root);
    return status;
}
