/* Heat maps of selection frequency: layer by relative token position, counted from index lists of a sample of requests. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger.h"
#include "core/selection.h"
#include "experiments/figure_draw.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"
#include "traces/world.h"

/* Steps are a stride apart, so that they say more than neighbours would. */
enum { BINS = 100, LAYERS = 64, STEPS = 2, STRIDE = 24 };

/* Per request and over requests; no pointers: it crosses a pipe. */
struct heat {
    uint32_t layers, requests, tokens, heads, k;
    int synthetic;
    uint8_t selects[LAYERS];
    float mean[LAYERS][BINS], error[LAYERS][BINS]; /* error: standard error over requests, NAN with one */
};

struct count {
    const struct smg_world *w;
    struct smg_selection *selection;
    struct heat *heat;
    int32_t *index; /* [heads][k_cap] */
    uint32_t k_cap;
    double (*sum)[BINS], (*square)[BINS]; /* [layers] of a request's frequency */
};

static uint32_t bin_tokens(uint32_t tokens, uint32_t bin)
{
    return (uint32_t)((uint64_t)(bin + 1) * tokens / BINS - (uint64_t)bin * tokens / BINS);
}

/* Selections of one layer, step after step, into counts[BINS]. */
static int count_layer(struct count *c, uint32_t request, uint32_t layer, double counts[BINS])
{
    uint32_t tokens = c->w->requests[request].prompt_tokens, k = 0;
    int status = SMG_OK;

    for (uint32_t s = 0; s < STEPS && !status; s++) {
        status = c->selection->type->entries(c->selection, request, 1 + s * STRIDE, layer, c->index, c->k_cap, &k);
        for (uint32_t h = 0; h < c->w->model.kv_heads && !status; h++)
            for (uint32_t i = 0; i < k; i++) {
                int32_t token = c->index[(size_t)h * c->k_cap + i];
                if (token >= 0)
                    counts[(uint64_t)token * BINS / tokens]++;
            }
    }
    c->heat->k = k > c->heat->k ? k : c->heat->k;
    return status;
}

static int count_request(struct count *c, uint32_t request)
{
    uint32_t tokens = c->w->requests[request].prompt_tokens;
    double per_token = 1.0 / STEPS / c->w->model.kv_heads;
    int status = SMG_OK;

    for (uint32_t l = 0; l < c->w->model.layers && !status; l++) {
        double counts[BINS] = {0};
        if (!c->heat->selects[l])
            continue;
        status = count_layer(c, request, l, counts);
        for (uint32_t b = 0; b < BINS && !status; b++) {
            double frequency = bin_tokens(tokens, b) ? counts[b] * per_token / bin_tokens(tokens, b) : 0;
            c->sum[l][b] += frequency;
            c->square[l][b] += frequency * frequency;
        }
    }
    return status;
}

static int count_open(struct count *c, uint32_t request)
{
    const struct smg_request_spec *r = &c->w->requests[request];
    struct smg_ledger *ledger = NULL;
    struct smg_grid g;
    int status;

    smg_grid_init(&g, &c->w->model, r->prompt_tokens, c->w->scenario.blocks_per_layer, c->w->scenario.min_block_tokens);
    status = smg_ledger_create(&g, r->output_tokens, 0, NULL, &ledger);
    if (status)
        return status;
    status = c->selection->type->open(c->selection, request, ledger);
    if (!status) {
        status = count_request(c, request);
        c->selection->type->close(c->selection, request);
    }
    smg_ledger_destroy(ledger);
    return status;
}

static void finish(struct count *c)
{
    double n = c->w->n_requests;

    for (uint32_t l = 0; l < c->w->model.layers; l++)
        for (uint32_t b = 0; b < BINS; b++) {
            double mean = c->sum[l][b] / n, spread = c->square[l][b] / n - mean * mean;
            c->heat->mean[l][b] = (float)mean;
            c->heat->error[l][b] = n > 1 ? (float)sqrt((spread > 0 ? spread : 0) / (n - 1)) : NAN;
        }
}

static int count_all(struct count *c)
{
    const struct smg_world *w = c->w;
    int status = SMG_OK;

    for (uint32_t i = 0; i < w->n_requests; i++)
        c->k_cap = w->requests[i].prompt_tokens > c->k_cap ? w->requests[i].prompt_tokens : c->k_cap;
    c->index = calloc((size_t)w->model.kv_heads * c->k_cap, sizeof *c->index);
    c->sum = calloc(LAYERS, sizeof *c->sum);
    c->square = calloc(LAYERS, sizeof *c->square);
    if (!c->index || !c->sum || !c->square)
        status = SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < w->n_requests && !status; i++)
        status = count_open(c, i);
    if (!status)
        finish(c);
    free(c->index);
    free(c->sum);
    free(c->square);
    return status;
}

static int heat_of_world(const struct smg_world *w, struct heat *out)
{
    struct count c = {.w = w, .heat = out};
    int status;

    if (w->model.layers > LAYERS)
        return SMG_ERR_RANGE;
    out->layers = w->model.layers;
    out->requests = w->n_requests;
    out->tokens = w->requests[0].prompt_tokens;
    out->heads = w->model.kv_heads;
    out->synthetic = w->synthetic_selection;
    for (uint32_t l = 0; l < w->model.layers; l++)
        out->selects[l] = smg_model_layer_selects(&w->model, l) != 0;
    status = smg_selection_create(w, &c.selection);
    if (status)
        return status;
    status = count_all(&c);
    smg_selection_destroy(c.selection);
    return status;
}

static int run_one(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    const struct smg_sweep *s = arg;
    struct smg_scenario scenario;
    struct smg_world w;
    int status = smg_sweep_scenario(s, i, &scenario, diag);

    if (status)
        return status;
    scenario.selection.source = SMG_SOURCE_ENTRY;
    status = smg_world_load(&scenario, &w, diag);
    if (status)
        return status;
    status = heat_of_world(&w, result);
    smg_world_free(&w);
    return status;
}

/* ---- Files ---- */

static void print_long(FILE *f, const struct smg_sweep *s, const struct heat *h)
{
    for (size_t a = 0; a < s->axes; a++)
        fprintf(f, "%s,", s->axis[a].name);
    fputs("layer,position,frequency,standard_error\n", f);
    for (size_t i = 0; i < smg_sweep_points(s); i++)
        for (uint32_t l = 0; l < h[i].layers; l++)
            for (uint32_t b = 0; b < BINS && h[i].selects[l]; b++) {
                for (size_t a = 0; a < s->axes; a++)
                    fprintf(f, "%s,", smg_sweep_at(s, i, a)->name);
                fprintf(f, "%" PRIu32 ",%.9g,%.9g,", l, (b + 0.5) / BINS, (double)h[i].mean[l][b]);
                fprintf(f, isnan(h[i].error[l][b]) ? "\n" : "%.9g\n", (double)h[i].error[l][b]);
            }
}

/* One block of lines per point, named in its first line, for gnuplot's index. */
static void print_panels(FILE *f, const struct smg_sweep *s, const struct heat *h)
{
    for (size_t i = 0; i < smg_sweep_points(s); i++) {
        char name[SMG_SWEEP_NAME * (SMG_SWEEP_AXES + 1)];
        smg_sweep_name(s, i, name, sizeof name);
        fprintf(f, "%s\"%s\"\n", i ? "\n\n" : "", strchr(name, '/') + 1);
        for (uint32_t l = 0; l < h[i].layers; l++)
            for (uint32_t b = 0; b < BINS && h[i].selects[l]; b++)
                fprintf(f, "%.9g,%" PRIu32 ",%.9g\n", (b + 0.5) / BINS, l, (double)h[i].mean[l][b]);
    }
}

static void print_error(FILE *f, const struct smg_sweep *s, const struct heat *h)
{
    double worst = 0, sum = 0, n = 0;
    const struct heat *last = h + smg_sweep_points(s);

    for (const struct heat *at = h; at < last; at++)
        for (uint32_t l = 0; l < at->layers; l++)
            for (uint32_t b = 0; b < BINS && at->selects[l] && at->requests > 1; b++) {
                worst = fmax(worst, at->error[l][b]);
                sum += at->error[l][b];
                n++;
            }
    fprintf(f, "Sampled: %" PRIu32 " requests, %d decode steps %d apart, all KV heads, %d positions; ", h->requests, STEPS,
            STRIDE, BINS);
    if (n > 0)
        fprintf(f, "standard error over requests %.3f on average, at most %.3f.\n", sum / n, worst);
    else
        fputs("one request: no error can be stated.\n", f);
}

static void print_caption(FILE *f, const struct smg_sweep *s, const struct heat *h)
{
    smg_caption_begin(f, s);
    print_error(f, s, h);
    fprintf(f, "Selection: %s. %s\n", smg_origin(h->synthetic), s->labels[0] ? s->labels : "Predicted.");
}

static int write_file(const struct smg_outdir *o, const struct smg_sweep *s, const struct heat *h, const char *suffix,
                      void (*print)(FILE *, const struct smg_sweep *, const struct heat *), struct smg_diag *diag)
{
    char path[SMG_PATH_MAX], name[SMG_NAME_MAX + 16];
    FILE *f = NULL;
    int status;

    snprintf(name, sizeof name, "%s%s", s->id, suffix);
    status = smg_outdir_file(o, name, path);
    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    print(f, s, h);
    return smg_output_close(f, path, SMG_OK, diag);
}

static int write_all(const struct smg_outdir *o, const struct smg_sweep *s, const struct heat *h, struct smg_diag *diag)
{
    char data[SMG_NAME_MAX + 16];
    int status = write_file(o, s, h, ".csv", print_long, diag);

    snprintf(data, sizeof data, "%s-panels.csv", s->id);
    if (!status)
        status = write_file(o, s, h, "-panels.csv", print_panels, diag);
    if (!status)
        status = write_file(o, s, h, ".txt", print_caption, diag);
    return status ? status : smg_figure_images(o, s->id, data, diag);
}

int smg_figure_heat(const struct smg_sweep *s, const struct smg_figure_job *job, struct smg_diag *diag)
{
    struct smg_sweep copy = *s;
    struct smg_forks forks = {run_one,          &copy, smg_sweep_points(s), job->jobs, sizeof(struct heat), job->progress,
                              job->progress_arg, job->stop};
    struct heat *h = calloc(smg_sweep_points(s) + 1, sizeof *h);
    struct smg_outdir o;
    int status = h ? smg_forks_run(&forks, h, diag) : smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", s->id);

    if (status)
        goto free_heat;
    status = smg_outdir_begin_shared(job->outdir, &o, diag);
    if (status)
        goto free_heat;
    status = smg_outdir_finish(&o, write_all(&o, s, h, diag), diag);
free_heat:
    free(h);
    return status;
}
