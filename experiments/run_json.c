/* run.json: everything a run depended on. Two runs of the same simulation write the same bytes: no date, no process, no duration.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"
#include "core/agent.h"
#include "core/scheme.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/data_dir.h"
#include "traces/importance_bytes.h"
#include "traces/scenario.h"
#include "traces/text.h"

enum { INPUT_BYTES_MAX = 1 << 30 };

static int add_digest(json_t *list, const char *what, const char *name, const char *path, struct smg_diag *diag)
{
    size_t bytes = 0;
    char *data = NULL;
    int status = smg_file_read(path, INPUT_BYTES_MAX, &data, &bytes, diag);

    if (status)
        return status;
    if (json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:o}", "input", what, "name", name, "bytes", (json_int_t)bytes,
                                              "fnv1a64", smg_json_hex(smg_fnv1a64(SMG_FNV1A64_START, data, bytes)))))
        status = smg_diag_set(diag, SMG_ERR_NOMEM, "run.json: out of memory");
    free(data);
    return status;
}

/* A scenario that came through a pipe cannot be read again; what it said is in "scenario". */
static int add_scenario(json_t *list, const char *path, struct smg_diag *diag)
{
    int standard_input = !strcmp(path, "-");
    struct stat info;

    if (!standard_input && (stat(path, &info) || S_ISREG(info.st_mode)))
        return add_digest(list, "scenario", path, path, diag);
    if (json_array_append_new(list, json_pack("{s:s, s:s}", "input", "scenario", "name", standard_input ? "<stdin>" : path)))
        return smg_diag_set(diag, SMG_ERR_NOMEM, "run.json: out of memory");
    return SMG_OK;
}

/* A built-in name or a path, as the readers resolve it. */
static int add_resolved(json_t *list, const char *what, const char *kind, const char *noun, const char *name,
                        struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status = smg_data_resolve(kind, noun, name, path, diag);

    return status ? status : add_digest(list, what, name, path, diag);
}

static int add_files(json_t *list, const struct smg_run *run, struct smg_diag *diag)
{
    const struct smg_scenario *s = &run->world->scenario;
    int status = SMG_OK;

    if (run->scenario_path)
        status = add_scenario(list, run->scenario_path, diag);
    if (!status && s->workload.kind == SMG_WORKLOAD_TRACE)
        status = add_digest(list, "workload.file", s->workload.file, s->workload.file, diag);
    if (!status && s->proactive.importance[0] && strcmp(s->proactive.importance, "auto"))
        status = add_digest(list, "proactive.importance", s->proactive.importance, s->proactive.importance, diag);
    if (!status && s->selection.file[0])
        status = add_digest(list, "selection.file", s->selection.file, s->selection.file, diag);
    if (!status && s->policy[0])
        status = add_digest(list, "policy", s->policy, s->policy, diag);
    return status;
}

static int add_inputs(json_t *list, const struct smg_run *run, struct smg_diag *diag)
{
    const struct smg_scenario *s = &run->world->scenario;
    int status = add_files(list, run, diag);

    if (!status)
        status = add_resolved(list, "model", "models", "model", s->model, diag);
    if (!status)
        status = add_resolved(list, "prefill.gpu", "gpus", "GPU", s->prefill.gpu, diag);
    if (!status)
        status = add_resolved(list, "decode.gpu", "gpus", "GPU", s->decode.gpu, diag);
    if (!status && s->prefill.instance[0])
        status = add_resolved(list, "prefill.instance", "instances", "instance type", s->prefill.instance, diag);
    if (!status && s->decode.instance[0])
        status = add_resolved(list, "decode.instance", "instances", "instance type", s->decode.instance, diag);
    if (!status)
        status = add_resolved(list, "network.nic", "nics", "NIC", s->network.nic, diag);
    return status ? status : add_resolved(list, "host", "hosts", "host", s->host, diag);
}

static json_t *host_json(void)
{
    struct utsname u;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (uname(&u))
        return json_null();
    return json_pack("{s:s, s:s, s:I}", "system", u.sysname, "machine", u.machine, "cores", (json_int_t)cores);
}

json_t *smg_synthetic_json(const struct smg_run *run)
{
    const struct smg_world *w = run->world;

    return json_pack("{s:b, s:b, s:b, s:b}", "importance", w->synthetic_importance, "selection", w->synthetic_selection,
                     "workload", w->synthetic_workload, "tensors", run->stats && run->stats->attention_outputs);
}

int smg_write_run_json(const struct smg_run *run, const char *path, struct smg_diag *diag)
{
    const struct smg_world *w = run->world;
    json_t *j = json_object(), *inputs = json_array();
    int bad = !j || !inputs, status = bad ? SMG_OK : add_inputs(inputs, run, diag);

    if (status)
        goto drop;
    if (!bad)
        bad = json_object_set_new(j, "program", json_string("smartgen")) ||
              json_object_set_new(j, "version", json_string(PACKAGE_VERSION)) ||
              json_object_set_new(j, "driver", json_string(run->driver)) ||
              json_object_set_new(j, "engine", json_string(run->engine)) ||
              json_object_set_new(j, "scheme", json_string(w->scheme->name)) ||
              json_object_set_new(j, "seed", json_integer((json_int_t)w->scenario.seed)) ||
              json_object_set_new(j, "requests", json_integer(w->n_requests)) ||
              json_object_set_new(j, "over_length", json_integer(w->over_length)) ||
              json_object_set_new(j, "synthetic", smg_synthetic_json(run)) || json_object_set(j, "inputs", inputs) ||
              json_object_set_new(j, "host", host_json()) || json_object_set_new(j, "scenario", smg_scenario_json(&w->scenario));
    if (bad)
        goto drop;
    json_decref(inputs);
    return smg_json_write(j, path, diag);
drop:
    json_decref(inputs);
    json_decref(j);
    return status ? status : smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);
}

/* ---- Digest of what all processes of a run must agree about ---- */

/* Files may lie elsewhere on each host: what is in them counts, and their name. */
static void shorten_paths(json_t *j)
{
    const char *key;
    json_t *value;

    json_object_foreach(j, key, value)
    {
        const char *slash = json_is_string(value) ? strrchr(json_string_value(value), '/') : NULL;
        if (slash)
            json_string_set(value, slash + 1);
        else
            shorten_paths(value);
    }
}

static uint64_t mix_inputs(uint64_t hash, const json_t *inputs)
{
    size_t i;
    json_t *input;

    json_array_foreach(inputs, i, input)
    {
        const char *what = json_string_value(json_object_get(input, "input"));
        const char *digest = json_string_value(json_object_get(input, "fnv1a64"));
        if (!what || !digest || !strcmp(what, "scenario")) /* what a scenario says counts, not how */
            continue;
        hash = smg_fnv1a64(hash, what, strlen(what) + 1);
        hash = smg_fnv1a64(hash, digest, strlen(digest) + 1);
    }
    return hash;
}

int smg_run_geometry(const struct smg_world *w, uint64_t *out, struct smg_diag *diag)
{
    const struct smg_run run = {.world = w, .scenario_path = "-"};
    const size_t sizes[] = {sizeof(void *), sizeof(struct smg_message), sizeof(struct smg_run_stats)};
    uint64_t hash = smg_fnv1a64(SMG_FNV1A64_START, PACKAGE_VERSION, sizeof PACKAGE_VERSION);
    json_t *inputs = json_array(), *scenario = smg_scenario_json(&w->scenario);
    char *text = NULL;
    int status = inputs && scenario ? add_inputs(inputs, &run, diag) : SMG_ERR_NOMEM;

    if (!status) {
        json_object_del(scenario, "records"); /* each process keeps what it likes */
        shorten_paths(scenario);
        text = json_dumps(scenario, JSON_COMPACT | JSON_SORT_KEYS);
        status = text ? SMG_OK : SMG_ERR_NOMEM;
    }
    if (!status) {
        hash = mix_inputs(smg_fnv1a64(smg_fnv1a64(hash, sizes, sizeof sizes), text, strlen(text)), inputs);
        for (uint32_t i = 0; i < w->n_requests; i++) {
            const struct smg_request_spec *q = &w->requests[i];
            const uint32_t lengths[] = {q->prompt_tokens, q->output_tokens, q->hit_tokens};
            hash = smg_fnv1a64(smg_fnv1a64(hash, &q->arrival_s, sizeof q->arrival_s), lengths, sizeof lengths);
        }
        *out = hash;
    }
    free(text);
    json_decref(inputs);
    json_decref(scenario);
    return status;
}
