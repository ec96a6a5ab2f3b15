/* smartgen kernels measure: times the kernels of this machine, and writes hardware files that a simulation takes. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cmd_kernels.h"
#include "cli/interrupt.h"
#include "cli/kernels_measure.h"
#include "cli/progress.h"
#include "experiments/files.h"
#include "kernels/smg_kernels.h"
#include "traces/world.h"

/* Residuals above this say more about the machine's other work than about its kernels. */
#define SCATTER 0.10

/* ---- For people ---- */

static void print_series(const struct smg_measurement *m)
{
    printf("%-10s %-16s %7s %6s  %-32s %8s %8s\n", "what", "kernel", "threads", "points", "fit of t, x in bytes", "R2",
           "residual");
    for (size_t i = 0; i < m->n; i++) {
        const struct smg_measure_series *s = &m->series[i];
        char threads[16] = "", fit[48];
        if (s->skipped) {
            printf("%-10s %-16s %7s %6s  %s\n", smg_measured_name(s->what), s->kernel, "", "none", s->skipped);
            continue;
        }
        if (s->threads)
            snprintf(threads, sizeof threads, "%u", s->threads);
        snprintf(fit, sizeof fit, "%.4g us + x / %.4g GB/s", 1e6 * s->fit.intercept, 1e-9 / s->fit.slope);
        printf("%-10s %-16s %7s %6zu  %-32s %8.4f %6.1f %%\n", smg_measured_name(s->what), s->kernel, threads, s->n, fit,
               s->fit.r2, 100 * s->fit.rms);
    }
}

static void print_values(const struct smg_measure_value *v, size_t n)
{
    printf("\n%-24s %12s %12s %8s  %s\n", "value", "measured", "now", "ratio", "");
    for (size_t i = 0; i < n; i++) {
        char now[32], value[32] = "-", ratio[32] = "-";
        snprintf(now, sizeof now, "%.4g", v[i].present);
        if (!v[i].series->skipped)
            snprintf(value, sizeof value, "%.4g", v[i].value);
        if (!v[i].series->skipped && v[i].present > 0)
            snprintf(ratio, sizeof ratio, "%.4g", v[i].value / v[i].present);
        printf("%-24s %12s %12s %8s  %s", v[i].field->key, value, now, ratio, v[i].field->unit);
        if (v[i].present_key)
            printf("; now: %s", v[i].present_key);
        printf("%s%s\n", v[i].kept ? "; not written: " : "", v[i].kept ? v[i].kept : "");
    }
}

static void print_text(const struct smg_measurement *m, const struct smg_measure_value *v, size_t n,
                       const struct smg_measure_origin *origin, const char *output)
{
    printf("%s; %s; gather: %s\n\n", origin->machine, m->where, m->host_where);
    print_series(m);
    print_values(v, n);
    if (output)
        printf("\nwritten; to simulate with them: --set decode.gpu=%s%s/gpu.json --set host=%s%s/host.json\n",
               strchr(output, '/') ? "" : "./", output, strchr(output, '/') ? "" : "./", output);
}

/* A machine that does other work meanwhile shows in the residuals. */
static void warn_scatter(const struct smg_measurement *m)
{
    char text[160];

    for (size_t i = 0; i < m->n; i++) {
        const struct smg_measure_series *s = &m->series[i];
        if (s->skipped || s->fit.rms <= SCATTER)
            continue;
        snprintf(text, sizeof text, "%s: times are %.0f %% off the line: is the machine idle?", smg_measured_name(s->what),
                 100 * s->fit.rms);
        smg_cli_warning(NULL, text);
    }
}

/* ---- For scripts ---- */

static json_t *series_json(const struct smg_measure_series *s)
{
    json_t *points = json_array();

    for (size_t i = 0; i < s->n; i++) {
        const struct smg_measure_point *p = &s->point[i];
        json_array_append_new(points,
                              json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "requests", (json_int_t)p->requests, "tokens",
                                        (json_int_t)p->tokens, "rows", (json_int_t)p->rows, "k", (json_int_t)p->k, "bytes",
                                        p->bytes, "seconds", p->seconds, "error_s", p->error_s));
    }
    if (s->skipped)
        return json_pack("{s:s, s:s, s:s, s:o}", "what", smg_measured_name(s->what), "kernel", s->kernel, "skipped", s->skipped,
                         "points", points);
    return json_pack("{s:s, s:s, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "what", smg_measured_name(s->what), "kernel",
                     s->kernel, "threads", (json_int_t)s->threads, "points", points, "intercept_s", s->fit.intercept,
                     "intercept_error_s", s->fit.intercept_error, "slope_s_per_byte", s->fit.slope, "slope_error_s_per_byte",
                     s->fit.slope_error, "r2", s->fit.r2, "residual", s->fit.rms, "largest_residual", s->fit.worst,
                     "through_origin", s->fit.origin);
}

static json_t *value_json(const struct smg_measure_value *v)
{
    double value = v->series->skipped ? NAN : v->value;

    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:b}", "file", v->host ? "host.json" : "gpu.json", "key", v->field->key,
                     "unit", v->field->unit, "value", smg_json_real(value), "now", smg_json_real(v->present), "now_key",
                     v->present_key ? v->present_key : v->field->key, "ratio",
                     smg_json_real(v->present > 0 ? value / v->present : NAN), "written", !v->kept);
}

static int print_json(const struct smg_measurement *m, const struct smg_measure_value *v, size_t n,
                      const struct smg_measure_origin *origin)
{
    json_t *series = json_array(), *values = json_array(), *j;
    int bad = !series || !values;

    for (size_t i = 0; i < m->n && !bad; i++)
        bad = json_array_append_new(series, series_json(&m->series[i]));
    for (size_t i = 0; i < n && !bad; i++)
        bad = json_array_append_new(values, value_json(&v[i]));
    j = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "machine", origin->machine, "where", m->where, "host_where", m->host_where,
                  "source", origin->source, "series", series, "values", values);
    bad = bad || !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || printf("\n") < 0;
    json_decref(j);
    return bad ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

/* ---- The command ---- */

/* Not the input is wrong, the machine is. */
static int failed(int status, const struct smg_diag *diag)
{
    int code = smg_cli_fail(status, status == SMG_ERR_INTERRUPTED ? NULL : diag);

    return status == SMG_ERR_RANGE || status == SMG_ERR_IO ? SMG_EXIT_FAILED : code;
}

static int report(const struct smg_args *a, const struct smg_world *w, const struct smg_measure_plan *plan,
                  const struct smg_measurement *m, struct smg_outdir *dir)
{
    struct smg_measure_value values[SMG_MEASURE_VALUES];
    struct smg_measure_origin origin;
    struct smg_diag diag = {""};
    size_t n;
    int status = SMG_OK;

    smg_measure_origin(plan, m, &origin);
    n = smg_measure_values(w, plan, m, values);
    if (a->output)
        status = smg_measure_write(dir, w, m, values, n, &origin, &diag);
    if (!status && a->output)
        status = smg_outdir_commit(dir, &diag);
    if (status) {
        smg_outdir_explain(dir, &diag);
        return failed(status, &diag);
    }
    warn_scatter(m);
    if (a->json)
        return print_json(m, values, n, &origin);
    if (!a->quiet)
        print_text(m, values, n, &origin, a->output);
    return SMG_EXIT_OK;
}

static int measure(const struct smg_args *a, const struct smg_world *w, struct smg_outdir *dir)
{
    struct smg_progress progress;
    struct smg_measure_plan plan = {a->backend ? a->backend : "cpu", a->quick, smg_interrupted, smg_progress_requests, &progress};
    struct smg_measurement m;
    struct smg_diag diag = {""};
    int status;

    smg_progress_begin(&progress, a, "kernels", "measurements", 0);
    status = smg_measure_run(w, &plan, &m, &diag);
    smg_progress_end(&progress);
    return status ? failed(status, &diag) : report(a, w, &plan, &m, dir);
}

/* Whether there is such a backend here, asked before anything is read or made. */
static int try_backend(const struct smg_args *a)
{
    struct smg_kernels *k = NULL;
    int code = smg_kernels_backend(a->backend ? a->backend : "cpu", &k);

    smg_kernels_close(k);
    return code;
}

int smg_kernels_measure(const struct smg_args *a)
{
    struct smg_outdir dir = {.path = ""};
    struct smg_diag diag = {""};
    struct smg_scenario s;
    struct smg_world w;
    int code, status;

    smg_interrupt_watch();
    code = try_backend(a);
    if (code)
        return code;
    status = a->output ? smg_measure_claim(a->output, &diag) : SMG_OK;
    if (status)
        return smg_cli_fail(status, &diag);
    code = smg_cli_scenario(a, "proactive.ranking=sequential", &s); /* no importance is made */
    if (!code)
        code = smg_cli_resolve(&s, &w);
    if (code)
        return code;
    if (a->output)
        status = smg_outdir_begin(a->output, &dir, &diag);
    code = status ? smg_cli_fail(status, &diag) : measure(a, &w, &dir);
    smg_outdir_abort(&dir);
    smg_world_free(&w);
    return code;
}
