/* fig11: TTFT, TTST, TBT against batch size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/distribution.h"
#include "experiments/figure_draw.h"
#include "experiments/figures.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/scenario.h"
#include "traces/text.h"

static const char *const schemes[] = {"full", "partial", "smartgen"};

enum { SCHEMES = sizeof schemes / sizeof schemes[0], BATCHES = 6, POINTS = SCHEMES * BATCHES };

static const char *scheme_of(size_t point)
{
    return schemes[point / BATCHES];
}

static uint32_t batch_of(size_t point)
{
    return (uint32_t)(point % BATCHES) + 1;
}

/* The default scenario with as many requests as prefill GPUs in use: DP = batch. */
static void scenario_of(size_t point, struct smg_scenario *out)
{
    smg_scenario_default(out);
    snprintf(out->scheme, sizeof out->scheme, "%s", scheme_of(point));
    out->workload.requests = batch_of(point);
}

static int run_one(void *arg, size_t point, void *result, struct smg_diag *diag)
{
    const struct smg_figure_job *job = arg;
    struct smg_scenario s;
    struct smg_diag found = {""};
    int status;

    scenario_of(point, &s);
    status = job->run_point(job->run_arg, &s, result, &found);
    if (!status)
        return SMG_OK;
    return smg_diag_set(diag, status, "fig11, %s, batch %" PRIu32 ": %s", scheme_of(point), batch_of(point),
                        found.text[0] ? found.text : smg_status_string(status));
}

/* ---- Files ---- */

static void cell(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, ",%.9g", x);
    else
        fputc(',', f);
}

static int write_data(const struct smg_outdir *o, const struct smg_point_result *p, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    FILE *f = NULL;
    int status = smg_outdir_file(o, "fig11.csv", path);

    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    fputs("scheme,batch,ttft_s,ttst_s,tbt_s,ttft_p95_s,ttst_p95_s,tbt_p95_s,on_demand_ratio", f);
    for (int k = 0; k < SMG_PATHS; k++)
        fprintf(f, ",%s_bytes", smg_path_name((enum smg_path)k));
    fputc('\n', f);
    for (size_t i = 0; i < POINTS; i++) {
        const double value[] = {p[i].ttft_s,     p[i].ttst_s,    p[i].tbt_s,          p[i].ttft_p95_s,
                                p[i].ttst_p95_s, p[i].tbt_p95_s, p[i].on_demand_ratio};
        fprintf(f, "%s,%" PRIu32, scheme_of(i), batch_of(i));
        for (size_t k = 0; k < sizeof value / sizeof value[0]; k++)
            cell(f, value[k]);
        for (int k = 0; k < SMG_PATHS; k++)
            fprintf(f, ",%" PRIu64, p[i].bytes[k]);
        fputc('\n', f);
    }
    return smg_output_close(f, path, SMG_OK, diag);
}

static const char *origin(int synthetic)
{
    return synthetic ? "synthetic" : "recorded";
}

/* The constants of the cost model were derived from TBT at batch 1 and 6 and TTST at batch 6: those points show a fit, not a
 * prediction. */
static int write_caption(const struct smg_outdir *o, const struct smg_point_result *p, struct smg_diag *diag)
{
    struct smg_scenario s;
    char path[SMG_PATH_MAX];
    FILE *f = NULL;
    int status = smg_outdir_file(o, "fig11.txt", path);

    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    scenario_of(0, &s);
    fprintf(f, "fig11. TTFT, TTST and TBT against batch size (mean over requests), one prompt per prefill GPU (DP = batch).\n");
    fprintf(f,
            "Inputs: %s, %s, %" PRIu32 " prompt and %" PRIu32
            " output tokens per request, %s, decode link %g Gbit/s, prefix hit %g.\n",
            s.model, s.workload.dataset, s.workload.prompt_tokens, s.workload.output_tokens, s.prefill.gpu, s.decode.link_gbps,
            s.prefix_hit);
    fprintf(f, "Seed %" PRIu64 ". Importance: %s. Selection: %s. Workload: %s.\n", s.seed, origin(p->synthetic_importance),
            origin(p->synthetic_selection), origin(p->synthetic_workload));
    fprintf(f, "Calibrated: TBT at batch 1 and 6, TTST at batch 6. Predicted: every other point.\n");
    return smg_output_close(f, path, SMG_OK, diag);
}

static int write_all(const struct smg_outdir *o, const struct smg_point_result *p, struct smg_diag *diag)
{
    int status = write_data(o, p, diag);

    if (!status)
        status = write_caption(o, p + POINTS - 1, diag);
    if (!status)
        status = smg_gnuplot(o, "fig11.gp", "fig11.csv", "fig11.svg", "wide", diag);
    if (!status)
        status = smg_gnuplot(o, "fig11.gp", "fig11.csv", "fig11-narrow.svg", "narrow", diag);
    return status ? status : smg_gnuplot(o, "fig11.gp", "fig11.csv", "fig11.png", "wide", diag);
}

int smg_figure_fig11(const struct smg_figure_job *job, struct smg_diag *diag)
{
    struct smg_figure_job copy = *job;
    struct smg_forks forks = {run_one,          &copy, POINTS, job->jobs, sizeof(struct smg_point_result), job->progress,
                              job->progress_arg};
    struct smg_point_result *points = calloc(POINTS, sizeof *points);
    struct smg_outdir o;
    int status = points ? smg_forks_run(&forks, points, diag) : smg_diag_set(diag, SMG_ERR_NOMEM, "fig11: out of memory");

    if (status)
        goto free_points;
    status = smg_outdir_begin(job->outdir, &o, diag);
    if (status)
        goto free_points;
    status = write_all(&o, points, diag);
    if (!status)
        status = smg_outdir_add(&o, diag);
    smg_outdir_abort(&o);
free_points:
    free(points);
    return status;
}

/* ---- A point from a run ---- */

static int describe(const struct smg_records *r, double (*of)(const struct smg_request_record *), double *mean, double *p95)
{
    struct smg_sample s = {0};
    double field[SMG_SAMPLE_FIELDS];
    int failed;

    for (uint32_t i = 0; i < r->n_requests; i++)
        smg_sample_add(&s, of(&r->request[i]));
    smg_sample_describe(&s, field);
    *mean = field[0];
    *p95 = field[3];
    failed = s.failed;
    smg_sample_free(&s);
    return failed ? SMG_ERR_NOMEM : SMG_OK;
}

int smg_point_of_run(const struct smg_world *w, const struct smg_records *r, const struct smg_run_stats *s,
                     struct smg_point_result *out)
{
    struct smg_point_result p = {0};
    double selected = 0, remote = 0;

    if (describe(r, smg_record_ttft_s, &p.ttft_s, &p.ttft_p95_s) || describe(r, smg_record_ttst_s, &p.ttst_s, &p.ttst_p95_s) ||
        describe(r, smg_record_tbt_mean_s, &p.tbt_s, &p.tbt_p95_s))
        return SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < r->n_requests; i++) {
        selected += (double)r->request[i].selected_entries;
        remote += (double)r->request[i].remote_entries;
    }
    p.on_demand_ratio = selected > 0 ? remote / selected : NAN;
    memcpy(p.bytes, s->received_bytes, sizeof p.bytes);
    p.synthetic_importance = w->synthetic_importance;
    p.synthetic_selection = w->synthetic_selection;
    p.synthetic_workload = w->synthetic_workload;
    *out = p;
    return SMG_OK;
}
