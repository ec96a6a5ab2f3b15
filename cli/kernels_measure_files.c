/* The folder of a measurement: gpu.json, host.json, measurements.csv. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/kernels_measure.h"
#include "experiments/files.h"
#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

#define CSV        "measurements.csv"
#define CSV_HEADER "what,kernel,threads,requests,tokens,rows,k,bytes,seconds,error_s,fitted_s,samples,calls\n"
#define UNTOUCHED  "not measured here; from "

/* ---- The folder ---- */

/* A folder is one of these when it has a file of measurements. */
static int is_ours(const char *path)
{
    char file[SMG_PATH_MAX], line[sizeof CSV_HEADER];
    int yes;
    FILE *f;

    if (smg_path_join(path, CSV, file) || smg_file_regular(file, NULL) || !(f = fopen(file, "r")))
        return 0;
    yes = fgets(line, sizeof line, f) && !strcmp(line, CSV_HEADER);
    fclose(f);
    return yes;
}

int smg_measure_claim(const char *path, struct smg_diag *diag)
{
    struct dirent *entry;
    DIR *folder = opendir(path);
    int others = 0;

    if (!folder)
        return SMG_OK; /* absent, or making it will say what it is */
    while (!others && (entry = readdir(folder)))
        others = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(folder);
    if (!others || is_ours(path))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_INVALID,
                        "%s: not empty, and not a folder of measurements (it has no " CSV "): choose another", path);
}

/* ---- Hardware files ---- */

static const struct smg_measure_value *find(const struct smg_measure_value *values, size_t n, const char *key, int host)
{
    for (size_t i = 0; i < n; i++)
        if (values[i].host == host && !strcmp(values[i].field->key, key))
            return &values[i];
    return NULL;
}

static json_t *measured(const struct smg_measure_value *v, const char *source)
{
    return json_pack("{s:f, s:s, s:s, s:s}", "value", v->value, "unit", v->field->unit, "source", source, "derivation",
                     v->derivation);
}

/* The value that the scenario's file has, and why it is still there. v: its measurement, that could not be used; or NULL. */
static json_t *kept(const json_t *old, const struct smg_measure_value *v, const char *noun, const char *name)
{
    const char *was = json_string_value(json_object_get(old, "derivation"));
    char text[1024], why[160] = "";
    json_t *value = json_deep_copy(old);

    if (v && v->series->skipped)
        snprintf(why, sizeof why, "not measured (%.110s); from ", v->kept);
    else if (v)
        snprintf(why, sizeof why, "measured %.4g %s, outside [%g, %g] of this key; from ", v->value, v->field->unit, v->field->lo,
                 v->field->hi);
    if (!v && was && !strncmp(was, UNTOUCHED, strlen(UNTOUCHED)))
        return value; /* it says already where it comes from */
    snprintf(text, sizeof text, "%s%s '%s'%s%.700s", v ? why : UNTOUCHED, noun, name, was ? ": " : "", was ? was : "");
    if (value && json_object_set_new(value, "derivation", json_string(text))) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* Every key of the kind in the order of its table. */
static json_t *make(const struct smg_value_field *fields, const json_t *old, const struct smg_measure_value *values, size_t n,
                    int host, const char *name, const char *source)
{
    json_t *j = json_object();

    for (; fields->key && j; fields++) {
        const struct smg_measure_value *v = find(values, n, fields->key, host);
        const json_t *was = json_object_get(old, fields->key);
        json_t *value = NULL;
        if (v && !v->kept)
            value = measured(v, source);
        else if (was)
            value = kept(was, v, host ? "host" : "GPU", name);
        else
            continue;
        if (!value || json_object_set_new(j, fields->key, value)) {
            json_decref(j);
            j = NULL;
        }
    }
    return j;
}

/* What a file of the scenario holds. */
static int read_old(const char *kind, const char *noun, const char *name_or_path, json_t **out, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status = smg_data_resolve(kind, noun, name_or_path, path, diag);

    return status ? status : smg_file_json(path, out, diag);
}

static int write_gpu(const char *path, const struct smg_world *w, const struct smg_measure_value *values, size_t n,
                     const struct smg_measure_origin *origin, struct smg_diag *diag)
{
    struct smg_gpu gpu;
    json_t *old = NULL;
    int status = read_old("gpus", "GPU", w->scenario.decode.gpu, &old, diag);

    if (status)
        return status;
    status = smg_json_write(make(smg_gpu_value_fields, old, values, n, 0, w->decode_gpu.name, origin->source), path, diag);
    json_decref(old);
    return status ? status : smg_gpu_load(path, &gpu, diag);
}

static int write_host(const char *path, const struct smg_world *w, const struct smg_measure_value *values, size_t n,
                      const struct smg_measure_origin *origin, struct smg_diag *diag)
{
    struct smg_host host;
    json_t *old = NULL;
    int status = read_old("hosts", "host", w->scenario.host, &old, diag);

    if (status)
        return status;
    status = smg_json_write(make(smg_host_value_fields, old, values, n, 1, w->host.name, origin->host_source), path, diag);
    json_decref(old);
    return status ? status : smg_host_load(path, &host, diag);
}

/* ---- Points ---- */

static void print_point(FILE *f, const struct smg_measure_series *s, const struct smg_measure_point *p)
{
    fprintf(f, "%s,%s,", smg_measured_name(s->what), s->kernel);
    if (s->threads)
        fprintf(f, "%u", s->threads);
    fprintf(f, ",%u,%u,%u,", p->requests, p->tokens, p->rows);
    if (p->k)
        fprintf(f, "%u", p->k);
    fprintf(f, ",%.9g,%.9g,%.9g,%.9g,%u,%u\n", p->bytes, p->seconds, p->error_s, s->fit.intercept + s->fit.slope * p->bytes,
            p->samples, p->calls);
}

static int write_points(const char *path, const struct smg_measurement *m, struct smg_diag *diag)
{
    FILE *f = NULL;
    int status = smg_output_open(path, &f, diag);

    if (status)
        return status;
    fputs(CSV_HEADER, f);
    for (size_t i = 0; i < m->n; i++)
        for (size_t p = 0; p < m->series[i].n; p++)
            print_point(f, &m->series[i], &m->series[i].point[p]);
    return smg_output_close(f, path, SMG_OK, diag);
}

int smg_measure_write(const struct smg_outdir *dir, const struct smg_world *w, const struct smg_measurement *m,
                      const struct smg_measure_value *values, size_t n, const struct smg_measure_origin *origin,
                      struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status = smg_outdir_file(dir, CSV, path);

    if (!status)
        status = write_points(path, m, diag);
    if (!status)
        status = smg_outdir_file(dir, "gpu.json", path);
    if (!status)
        status = write_gpu(path, w, values, n, origin, diag);
    if (!status)
        status = smg_outdir_file(dir, "host.json", path);
    return status ? status : write_host(path, w, values, n, origin, diag);
}
