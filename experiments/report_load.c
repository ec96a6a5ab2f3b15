/* What the report shows, read back from record folders and fig11.csv. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/csv.h"
#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "traces/text.h"

const char *const smg_report_schemes[SMG_REPORT_SCHEMES] = {"full", "partial", "smartgen"};
const char *const smg_report_families[SMG_REPORT_FAMILIES] = {"sim", "emu-sim", "emu"};

/* The same in fig11.csv, which has two of smartgen. */
static const char *const figure_schemes[SMG_REPORT_SCHEMES] = {"full", "partial", "smartgen-infinigen"};

static int exists(const char *path)
{
    struct stat st;

    return !stat(path, &st);
}

static double number(const json_t *j, const char *key)
{
    const json_t *value = json_object_get(j, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double mean(const json_t *summary, const char *key)
{
    return number(json_object_get(summary, key), "mean");
}

static void copy_text(char *to, size_t bytes, const json_t *value)
{
    snprintf(to, bytes, "%s", json_is_string(value) ? json_string_value(value) : "");
}

static void take_summary(const json_t *j, struct smg_report_row *out)
{
    out->ttft_s = mean(j, "ttft_s");
    out->ttst_s = mean(j, "ttst_s");
    out->tbt_s = mean(j, "tbt_request_mean_s");
    out->on_demand_ratio = number(j, "on_demand_ratio");
    out->batch = (uint32_t)json_integer_value(json_object_get(json_object_get(j, "requests"), "count"));
    for (int p = 0; p < SMG_PATHS; p++)
        out->bytes[p] = number(json_object_get(json_object_get(j, "paths"), smg_path_name((enum smg_path)p)), "received_bytes");
    copy_text(out->digest, sizeof out->digest, json_object_get(j, "digest"));
}

/* What a person wants to know of the scenario. */
static void take_scenario(const json_t *j, struct smg_report_row *out)
{
    const json_t *workload = json_object_get(j, "workload"), *prefill = json_object_get(j, "prefill");
    const json_t *kind = json_object_get(workload, "kind");

    copy_text(out->model, sizeof out->model, json_object_get(j, "model"));
    copy_text(out->prefill_gpu, sizeof out->prefill_gpu, json_object_get(prefill, "gpu"));
    out->is_batch = json_is_string(kind) && !strcmp(json_string_value(kind), "batch");
    out->prompt_tokens = number(workload, "prompt_tokens");
    out->output_tokens = number(workload, "output_tokens");
    out->decode_gbps = number(json_object_get(j, "decode"), "link_gbps");
    out->has_timeline = json_is_true(json_object_get(json_object_get(j, "records"), "timeline"));
}

static void take_run(const json_t *j, struct smg_report_row *out)
{
    const json_t *synthetic = json_object_get(j, "synthetic"), *first = json_array_get(json_object_get(j, "inputs"), 0);
    const json_t *input = json_object_get(first, "input");

    copy_text(out->driver, sizeof out->driver, json_object_get(j, "driver"));
    copy_text(out->engine, sizeof out->engine, json_object_get(j, "engine"));
    copy_text(out->version, sizeof out->version, json_object_get(j, "version"));
    out->seed = (uint64_t)json_integer_value(json_object_get(j, "seed"));
    out->labelled = 1;
    out->synthetic_importance = json_is_true(json_object_get(synthetic, "importance"));
    out->synthetic_selection = json_is_true(json_object_get(synthetic, "selection"));
    out->synthetic_workload = json_is_true(json_object_get(synthetic, "workload"));
    if (json_is_string(input) && !strcmp(json_string_value(input), "scenario")) {
        copy_text(out->scenario_path, sizeof out->scenario_path, json_object_get(first, "name"));
        copy_text(out->scenario_digest, sizeof out->scenario_digest, json_object_get(first, "fnv1a64"));
    }
    take_scenario(json_object_get(j, "scenario"), out);
}

/* Reads OUT_DIR/FAMILY-SCHEME; a folder without run.json is not there. */
static int load_folder(const char *out_dir, const char *family, const char *scheme, struct smg_report_row *out,
                       struct smg_diag *diag)
{
    char name[SMG_NAME_MAX], folder[SMG_PATH_MAX], run[SMG_PATH_MAX], summary[SMG_PATH_MAX];
    json_t *j = NULL;
    int status;

    snprintf(name, sizeof name, "%s-%s", family, scheme);
    if (smg_path_join(out_dir, name, folder) || smg_path_join(folder, "run.json", run) ||
        smg_path_join(folder, "summary.json", summary))
        return smg_diag_set(diag, SMG_ERR_RANGE, "%s: name is too long", out_dir);
    if (!exists(run))
        return SMG_OK;
    status = smg_file_json(run, &j, diag);
    if (status)
        return status;
    take_run(j, out);
    json_decref(j);
    status = smg_file_json(summary, &j, diag);
    if (status)
        return status;
    take_summary(j, out);
    json_decref(j);
    snprintf(out->folder, sizeof out->folder, "%s", name);
    out->present = 1;
    return SMG_OK;
}

/* ---- fig11.csv ---- */

static int field(const struct smg_csv *c, size_t row, const char *name, double *out, struct smg_diag *diag)
{
    size_t column = 0;
    int status = smg_csv_column(c, name, &column, diag);

    return status ? status : smg_csv_number(c, row, column, out, diag);
}

static int take_figure_row(const struct smg_csv *c, size_t row, struct smg_report_row *out, struct smg_diag *diag)
{
    char name[SMG_NAME_MAX];
    double batch = 0;
    int status = field(c, row, "batch", &batch, diag);

    if (status || !(batch > out->batch))
        return status;
    status = field(c, row, "ttft_s", &out->ttft_s, diag);
    if (!status)
        status = field(c, row, "ttst_s", &out->ttst_s, diag);
    if (!status)
        status = field(c, row, "tbt_s", &out->tbt_s, diag);
    if (!status)
        status = field(c, row, "on_demand_ratio", &out->on_demand_ratio, diag);
    for (int p = 0; p < SMG_PATHS && !status; p++) {
        snprintf(name, sizeof name, "%s_bytes", smg_path_name((enum smg_path)p));
        status = field(c, row, name, &out->bytes[p], diag);
    }
    out->batch = batch < UINT32_MAX ? (uint32_t)batch : UINT32_MAX;
    out->present = !status;
    return status;
}

/* The points of the largest batch are the default scenario. */
static int load_figure(struct smg_report *r, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_csv c;
    size_t scheme = 0;
    int status = smg_path_join(r->out_dir, "fig11.csv", path);

    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", r->out_dir);
    if (!exists(path))
        return SMG_OK;
    status = smg_csv_read(path, &c, diag);
    if (status)
        return status;
    status = smg_csv_column(&c, "scheme", &scheme, diag);
    for (size_t i = 0; i < c.rows && !status; i++)
        for (size_t s = 0; s < SMG_REPORT_SCHEMES && !status; s++)
            if (!strcmp(smg_csv_cell(&c, i, scheme), figure_schemes[s]))
                status = take_figure_row(&c, i, &r->scheme[s], diag);
    smg_csv_free(&c);
    r->scheme_from_figure = !status;
    return status;
}

static int same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

int smg_report_same_scenario(const struct smg_report_row *a, const struct smg_report_row *b)
{
    if (strcmp(a->scenario_digest, b->scenario_digest))
        return 0;
    if (!a->labelled || !b->labelled)
        return 1;
    /* One file, but perhaps other keys by --set. */
    return a->batch == b->batch && a->is_batch == b->is_batch && !strcmp(a->model, b->model) &&
           !strcmp(a->prefill_gpu, b->prefill_gpu) && same_number(a->prompt_tokens, b->prompt_tokens) &&
           same_number(a->output_tokens, b->output_tokens) && same_number(a->decode_gbps, b->decode_gbps);
}

static void clear_row(struct smg_report_row *row)
{
    memset(row, 0, sizeof *row);
    row->prompt_tokens = row->output_tokens = row->decode_gbps = NAN;
}

int smg_report_load(const char *out_dir, struct smg_report *out, struct smg_diag *diag)
{
    struct smg_report *r = out;
    int status = SMG_OK, all = 1;

    r->out_dir = out_dir;
    r->scheme_from_figure = 0;
    for (size_t i = 0; i < SMG_REPORT_FAMILIES * SMG_REPORT_SCHEMES && !status; i++) {
        size_t family = i / SMG_REPORT_SCHEMES, s = i % SMG_REPORT_SCHEMES;
        clear_row(&r->run[family][s]);
        status = load_folder(out_dir, smg_report_families[family], smg_report_schemes[s], &r->run[family][s], diag);
        all &= family != SMG_REPORT_SIM || r->run[family][s].present;
    }
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        clear_row(&r->scheme[s]);
        if (all) /* one source for the whole table */
            r->scheme[s] = r->run[SMG_REPORT_SIM][s];
    }
    return status || all ? status : load_figure(r, diag);
}
