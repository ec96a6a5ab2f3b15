/* The files of a figure: data, token series, caption, images. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "experiments/figure_draw.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

/* What every file of a figure is made from. */
struct source {
    const struct smg_book *book;
    size_t sweep_index;
    const struct smg_sweep *sweep;
    size_t points;
};

static const struct smg_point_result *result_of(const struct source *s, size_t point)
{
    return &smg_book_outcome(s->book, s->sweep_index, point)->result;
}

static void cell(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, x == floor(x) && fabs(x) < 1e15 ? ",%.0f" : ",%.9g", x);
    else
        fputc(',', f);
}

static void head_axes(FILE *f, const struct smg_sweep *s)
{
    for (size_t a = 0; a < s->axes; a++)
        fprintf(f, "%s%s", a ? "," : "", s->axis[a].name);
}

static void cell_axes(FILE *f, const struct smg_sweep *s, size_t point)
{
    for (size_t a = 0; a < s->axes; a++)
        fprintf(f, "%s%s", a ? "," : "", smg_sweep_at(s, point, a)->name);
}

static void print_points(FILE *f, const struct source *s)
{
    int speedup = s->sweep->speedup_axis >= 0;

    head_axes(f, s->sweep);
    for (const struct smg_metric *m = smg_metrics; m->name; m++)
        fprintf(f, ",%s", m->name);
    fputs(speedup ? ",ttst_speedup,tbt_speedup\n" : "\n", f);
    for (size_t i = 0; i < s->points; i++) {
        const struct smg_point_result *p = result_of(s, i), *over = speedup ? result_of(s, smg_sweep_reference(s->sweep, i)) : p;
        cell_axes(f, s->sweep, i);
        for (const struct smg_metric *m = smg_metrics; m->name; m++)
            cell(f, smg_metric_of(m, p));
        if (speedup) {
            cell(f, over->ttst_s / p->ttst_s);
            cell(f, over->tbt_s / p->tbt_s);
        }
        fputc('\n', f);
    }
}

static void print_tokens(FILE *f, const struct source *s)
{
    head_axes(f, s->sweep);
    fputs(",token,gap_s,on_demand_ratio\n", f);
    for (size_t i = 0; i < s->points; i++) {
        const struct smg_point_result *p = result_of(s, i);
        for (uint32_t t = 2; t <= s->sweep->tokens && t <= p->tokens; t++) {
            cell_axes(f, s->sweep, i);
            fprintf(f, ",%" PRIu32, t);
            cell(f, p->gap_s[t - 1]);
            cell(f, p->token_ratio[t - 1]);
            fputc('\n', f);
        }
    }
}

/* ---- Caption ---- */

const char *smg_origin(int synthetic)
{
    return synthetic ? "synthetic" : "recorded";
}

/* An axis of cases has names that say nothing without the file of the sweep. */
static void print_axis(FILE *f, const struct smg_sweep_axis *a)
{
    if (!strcmp(a->name, "case"))
        return;
    fprintf(f, "%s:", a->name);
    for (size_t i = 0; i < a->n; i++)
        fprintf(f, "%s %s", i ? "," : "", a->value[i].name);
    fputs(". ", f);
}

void smg_caption_begin(FILE *f, const struct smg_sweep *s)
{
    fprintf(f, "%s. %s.\n", s->id, s->title[0] ? s->title : "No title");
    if (s->caption[0])
        fprintf(f, "%s\n", s->caption);
    fputs("Inputs: ", f);
    for (size_t a = 0; a < s->axes; a++)
        print_axis(f, &s->axis[a]);
    for (size_t i = 0; i < s->base.n; i++)
        fprintf(f, "%s%s", i ? ", " : "Same for all: ", s->base.text[i]);
    if (!isnan(s->base.kr_share))
        fprintf(f, "%sKr %g of all blocks", s->base.n ? ", " : "Same for all: ", s->base.kr_share);
    fputs(s->base.n ? "; all else as in the default scenario.\n" : "All else as in the default scenario.\n", f);
}

/* Flags over all points: one synthetic input makes the figure so. */
static void print_origins(FILE *f, const struct source *s)
{
    int importance = 0, selection = 0, workload = 0;

    for (size_t i = 0; i < s->points; i++) {
        importance |= result_of(s, i)->synthetic_importance;
        selection |= result_of(s, i)->synthetic_selection;
        workload |= result_of(s, i)->synthetic_workload;
    }
    if (s->sweep->run != SMG_SWEEP_PLAN)
        fprintf(f, "Importance: %s. Selection: %s. ", smg_origin(importance), smg_origin(selection));
    fprintf(f, "Workload: %s.\n", smg_origin(workload));
}

static void print_seeds(FILE *f, const struct source *s)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (size_t i = 0; i < s->points; i++) {
        uint64_t seed = s->book->point[s->book->index[s->sweep_index][i]].scenario.seed;
        low = seed < low ? seed : low;
        high = seed > high ? seed : high;
    }
    if (low == high)
        fprintf(f, "Seed %" PRIu64 ". ", low);
    else
        fprintf(f, "Seeds %" PRIu64 " to %" PRIu64 ". ", low, high);
}

static void print_caption(FILE *f, const struct source *s)
{
    smg_caption_begin(f, s->sweep);
    print_seeds(f, s);
    print_origins(f, s);
    fputs(s->sweep->run == SMG_SWEEP_PLAN ? "Closed forms, nothing simulated. " : "Simulated; means over requests. ", f);
    fprintf(f, "%s\n", s->sweep->labels[0] ? s->sweep->labels : "Predicted.");
}

/* ---- All of it ---- */

static int write_file(const struct smg_outdir *o, const struct source *s, const char *suffix,
                      void (*print)(FILE *, const struct source *), struct smg_diag *diag)
{
    char path[SMG_PATH_MAX], name[SMG_NAME_MAX + 16];
    FILE *f = NULL;
    int status;

    snprintf(name, sizeof name, "%s%s", s->sweep->id, suffix);
    status = smg_outdir_file(o, name, path);
    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    print(f, s);
    return smg_output_close(f, path, SMG_OK, diag);
}

static int write_all(const struct smg_outdir *o, const struct source *s, struct smg_diag *diag)
{
    char data[SMG_NAME_MAX + 16];
    int status = write_file(o, s, ".csv", print_points, diag);

    snprintf(data, sizeof data, "%s.csv", s->sweep->id);
    if (!status && s->sweep->tokens)
        status = write_file(o, s, "-tokens.csv", print_tokens, diag);
    if (!status)
        status = write_file(o, s, ".txt", print_caption, diag);
    return status ? status : smg_figure_images(o, s->sweep->id, data, diag);
}

int smg_figure_write(const struct smg_book *b, size_t sweep, const char *outdir, struct smg_diag *diag)
{
    struct source s = {b, sweep, &b->sweep[sweep], smg_sweep_points(&b->sweep[sweep])};
    struct smg_outdir o;
    int status;

    for (size_t i = 0; i < s.points; i++) {
        const struct smg_point_outcome *out = smg_book_outcome(b, sweep, i);
        if (out->status)
            return smg_diag_set(diag, out->status, "%s", out->diag.text);
    }
    status = smg_outdir_begin_shared(outdir, &o, diag);
    if (status)
        return status;
    return smg_outdir_finish(&o, write_all(&o, &s, diag), diag);
}
