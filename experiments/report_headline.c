/* The first screen of the report: what selective transfer buys, as one sentence and as bars. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "experiments/report_priv.h"

/* A difference below this is no difference: one part in fifty. */
static const double same = 1.02;

static int is_sooner(double ours, double theirs)
{
    return theirs / ours > same;
}

/* "3.5 times sooner than" (or later); near enough to equal is said so. */
static void compare(FILE *f, double ours, double theirs)
{
    double ratio = theirs / ours;

    if (ratio > same)
        fprintf(f, "%.2g times sooner than", ratio);
    else if (ratio < 1 / same)
        fprintf(f, "%.2g times later than", 1 / ratio);
    else
        fputs("at the same time as", f);
}

/* Against full, by the second token and by the later ones. */
static const char *verdict(const struct smg_report_row *ours, const struct smg_report_row *full)
{
    int gains = is_sooner(ours->ttst_s, full->ttst_s) + is_sooner(ours->tbt_s, full->tbt_s);
    int losses = is_sooner(full->ttst_s, ours->ttst_s) + is_sooner(full->tbt_s, ours->tbt_s);

    if (gains && losses)
        return "Selective transfer is a trade here";
    if (gains)
        return "Selective transfer pays here";
    return losses ? "Selective transfer does not pay here" : "Selective transfer changes nothing here";
}

int smg_report_headline(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    const struct smg_report_row *run = r->scheme;
    const struct smg_report_row *full = &run[SMG_REPORT_FULL], *partial = &run[SMG_REPORT_PARTIAL],
                                *ours = &run[SMG_REPORT_SMARTGEN];

    (void)diag;
    if (!full->present || !partial->present || !ours->present) {
        fputs("Nothing has been simulated yet.", f);
        return SMG_OK;
    }
    if (!isfinite(full->ttst_s + partial->ttst_s + ours->ttst_s)) {
        fputs("These runs have no second token, so that there is no hand-off to compare.", f);
        return SMG_OK;
    }
    fprintf(f,
            "<strong>%s.</strong> In simulation with a batch of %" PRIu32
            ", smartgen makes the second token %.3g s after the first: ",
            verdict(ours, full), ours->batch, ours->ttst_s);
    compare(f, ours->ttst_s, full->ttst_s);
    fprintf(f, " full transfer (%.3g s), and ", full->ttst_s);
    compare(f, ours->ttst_s, partial->ttst_s);
    fprintf(f, " partial transfer (%.3g s).", partial->ttst_s);
    if (isfinite(full->tbt_s + partial->tbt_s + ours->tbt_s))
        fprintf(f, " Later tokens come every %.3g s, against %.3g s and %.3g s.", ours->tbt_s, full->tbt_s, partial->tbt_s);
    return SMG_OK;
}

/* ---- Bars ---- */

struct metric {
    const char *name, *what;
    double value_s[SMG_REPORT_SCHEMES];
};

static void print_ratio(FILE *f, double value, double full)
{
    double ratio = full / value;

    if (!isfinite(ratio))
        fputs("<span class=\"ratio\"></span>", f);
    else if (ratio > same)
        fprintf(f, "<span class=\"ratio gain\">%.2f&times; sooner</span>", ratio);
    else if (ratio < 1 / same)
        fprintf(f, "<span class=\"ratio loss\">%.2f&times; later</span>", 1 / ratio);
    else
        fputs("<span class=\"ratio\">as full</span>", f);
}

static void print_bar(FILE *f, const struct metric *m, size_t s, double most)
{
    double value = m->value_s[s];

    fprintf(f, "<li class=\"%s\"><b>%s</b> ", smg_report_schemes[s], smg_report_schemes[s]);
    if (isfinite(value))
        fprintf(f, "<span class=\"value\">%.3g s</span> ", value);
    else
        fputs("<span class=\"value\">&ndash;</span> ", f);
    if (s == SMG_REPORT_FULL)
        fputs("<span class=\"ratio\">reference</span>", f);
    else
        print_ratio(f, value, m->value_s[SMG_REPORT_FULL]);
    fprintf(f, "<i style=\"width:%.2f%%\"></i></li>\n", isfinite(value) && most > 0 ? 100 * value / most : 0);
}

static void print_bars(FILE *f, const struct metric *m)
{
    double most = 0;

    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++)
        most = m->value_s[s] > most ? m->value_s[s] : most;
    fprintf(f, "<section class=\"metric\">\n<h3>%s <small>%s</small></h3>\n", m->name, m->what);
    fprintf(f, "<ul class=\"bars\" aria-label=\"%s of each scheme, and against full\">\n", m->name);
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++)
        print_bar(f, m, s, most);
    fputs("</ul>\n</section>\n", f);
}

static void print_synthetic(FILE *f, const struct smg_report_row *row)
{
    const char *const word[] = {row->synthetic_importance ? "importance" : NULL, row->synthetic_selection ? "selection" : NULL,
                                row->synthetic_workload ? "workload" : NULL};
    const char *before = "<li><em>synthetic</em>: ";

    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        if (!word[i])
            continue;
        fprintf(f, "%s%s", before, word[i]);
        before = ", ";
    }
    fputs(before[0] == ',' ? "</li>" : "", f);
}

/* What was run, in a line. */
static void print_facts(FILE *f, const struct smg_report_row *row)
{
    fprintf(f, "<ul class=\"facts\"><li>simulated%s", row->engine[0] ? " (" : "");
    smg_html_text(f, row->engine);
    fprintf(f, "%s</li><li>%" PRIu32 " requests", row->engine[0] ? ")" : "", row->batch);
    if (row->is_batch && isfinite(row->prompt_tokens) && isfinite(row->output_tokens))
        fprintf(f, " at once, %.0f prompt and %.0f output tokens each", row->prompt_tokens, row->output_tokens);
    fputs("</li>", f);
    if (row->model[0]) {
        fputs("<li>model ", f);
        smg_html_text(f, strchr(row->model, '/') ? "from a file" : row->model);
        fputs("</li>", f);
    }
    if (row->prefill_gpu[0] && !strchr(row->prefill_gpu, '/')) {
        fputs("<li>prefill on ", f);
        smg_html_text(f, row->prefill_gpu);
        fputs("</li>", f);
    }
    if (isfinite(row->decode_gbps))
        fprintf(f, "<li>decode link %g Gbit/s</li>", row->decode_gbps);
    print_synthetic(f, row);
    fputs("</ul>\n", f);
}

int smg_report_bars(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    struct metric metric[] = {
        {"TTFT", "arrival to first token", {0}},
        {"TTST", "first to second token", {0}},
        {"TBT", "between later tokens", {0}},
    };
    const struct smg_report_row *run = r->scheme;

    (void)diag;
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        if (!run[s].present) {
            smg_html_missing(f, "To simulate the three schemes and make this page again", "smartgen figures -o OUT");
            return SMG_OK;
        }
        metric[0].value_s[s] = run[s].ttft_s;
        metric[1].value_s[s] = run[s].ttst_s;
        metric[2].value_s[s] = run[s].tbt_s;
    }
    fputs("<div class=\"metrics\">\n", f);
    for (size_t i = 0; i < sizeof metric / sizeof metric[0]; i++)
        print_bars(f, &metric[i]);
    fputs("</div>\n<p class=\"note\">Shorter is better. Means over requests.</p>\n", f);
    print_facts(f, &run[SMG_REPORT_SMARTGEN]);
    return SMG_OK;
}
