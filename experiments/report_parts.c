/* The parts of the report: headline, figure, tables, provenance. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "traces/text.h"

enum { FULL, PARTIAL, SMARTGEN };

void smg_html_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

void smg_html_bytes(FILE *f, double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    size_t i = 0;

    if (!isfinite(bytes)) {
        fputs("&ndash;", f);
        return;
    }
    while (bytes >= 999.5 && i + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1000;
        i++;
    }
    fprintf(f, "%.3g %s", bytes, unit[i]);
}

/* ---- Tables ---- */

static void head_cell(FILE *f, const char *text)
{
    fputs("<th scope=\"col\">", f);
    smg_html_text(f, text);
    fputs("</th>", f);
}

void smg_html_begin_table(FILE *f, const char *const *heads)
{
    fputs("<div class=\"scroll\"><table>\n<thead><tr>", f);
    for (; *heads; heads++)
        head_cell(f, *heads);
    fputs("</tr></thead>\n<tbody>\n", f);
}

void smg_html_end_table(FILE *f)
{
    fputs("</tbody>\n</table></div>\n", f);
}

void smg_html_number_cell(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, "<td>%.3g</td>", x);
    else
        fputs("<td>&ndash;</td>", f);
}

static void bytes_cell(FILE *f, double x)
{
    fputs("<td>", f);
    smg_html_bytes(f, x);
    fputs("</td>", f);
}

void smg_html_missing(FILE *f, const char *what, const char *command)
{
    fputs("<p class=\"note\">", f);
    smg_html_text(f, what);
    fputs(": <code>", f);
    smg_html_text(f, command);
    fputs("</code></p>\n", f);
}

static int print_schemes(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    static const char *const heads[] = {"scheme",      "TTFT (s)",  "TTST (s)", "TBT (s)",         "metadata", "proactive",
                                        "speculative", "on demand", "control",  "on-demand ratio", NULL};

    (void)diag;
    if (!r->scheme[SMARTGEN].present) {
        smg_html_missing(f, "Not simulated yet", "smartgen figures fig11");
        return SMG_OK;
    }
    smg_html_begin_table(f, heads);
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        const struct smg_report_row *row = &r->scheme[s];
        if (!row->present)
            continue;
        fprintf(f, "<tr><td>%s</td>", smg_report_schemes[s]);
        smg_html_number_cell(f, row->ttft_s);
        smg_html_number_cell(f, row->ttst_s);
        smg_html_number_cell(f, row->tbt_s);
        for (int p = 0; p < SMG_PATHS; p++)
            bytes_cell(f, row->bytes[p]);
        smg_html_number_cell(f, row->on_demand_ratio);
        fputs("</tr>\n", f);
    }
    smg_html_end_table(f);
    fprintf(f,
            "<p class=\"note\">Means over %" PRIu32
            " requests; bytes over the whole run. On-demand ratio: remote over selected entries.</p>\n",
            r->scheme[SMARTGEN].batch);
    return SMG_OK;
}

static void emulation_row(FILE *f, const char *scheme, const char *what, const struct smg_report_row *row)
{
    if (!row->present)
        return;
    fprintf(f, "<tr><td>%s</td><td>%s", scheme, what);
    if (row->engine[0]) {
        fputs(" (", f);
        smg_html_text(f, row->engine);
        fputc(')', f);
    }
    fputs("</td>", f);
    smg_html_number_cell(f, row->ttft_s);
    smg_html_number_cell(f, row->ttst_s);
    smg_html_number_cell(f, row->tbt_s);
    fputs("<td>", f);
    if (row->digest[0])
        smg_html_text(f, row->digest);
    else
        fputs("&ndash;", f);
    fputs("</td></tr>\n", f);
}

/* Every run whose digest is known read the same entries, or not; nothing to say about fewer than two. */
static void print_digests(FILE *f, const struct smg_report *r)
{
    const char *first = NULL;
    int known = 0, equal = 1;

    for (size_t s = 0; s < 2 * SMG_REPORT_SCHEMES; s++) {
        const struct smg_report_row *row = s < SMG_REPORT_SCHEMES ? &r->emu[s] : &r->emu_sim[s - SMG_REPORT_SCHEMES];
        if (!row->present || !row->digest[0])
            continue;
        known++;
        first = first ? first : row->digest;
        equal &= !strcmp(first, row->digest);
    }
    if (known >= 2)
        fprintf(f, "<p>Entries read by attention are equal in all %d runs that digest them: <strong>%s</strong>.</p>\n", known,
                equal ? "yes" : "no");
}

static int print_emulation(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    static const char *const heads[] = {"scheme", "run", "TTFT (s)", "TTST (s)", "TBT (s)", "digest of entries", NULL};
    int any = 0;

    (void)diag;
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++)
        any |= r->emu[s].present || r->emu_sim[s].present;
    if (!any) {
        smg_html_missing(f, "Not run yet, for each scheme", "smartgen emu SCENARIO --set scheme=full -o OUT/emu-full");
        return SMG_OK;
    }
    smg_html_begin_table(f, heads);
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        emulation_row(f, smg_report_schemes[s], "sim", &r->emu_sim[s]);
        emulation_row(f, smg_report_schemes[s], "emu", &r->emu[s]);
    }
    smg_html_end_table(f);
    print_digests(f, r);
    return SMG_OK;
}

/* ---- Headline ---- */

/* "3.5 times sooner than" (or later); near enough to equal is said so. */
static void compare(FILE *f, double ours, double theirs)
{
    double ratio = theirs / ours;

    if (ratio > 1.02)
        fprintf(f, "%.2g times sooner than", ratio);
    else if (ratio < 1 / 1.02)
        fprintf(f, "%.2g times later than", 1 / ratio);
    else
        fputs("at the same time as", f);
}

static int print_headline(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    const struct smg_report_row *full = &r->scheme[FULL], *partial = &r->scheme[PARTIAL], *ours = &r->scheme[SMARTGEN];

    (void)diag;
    if (!full->present || !partial->present || !ours->present) {
        fputs("Nothing has been simulated yet.", f);
        return SMG_OK;
    }
    fprintf(f, "In simulation with a batch of %" PRIu32 ", smartgen makes the second token %.3g s after the first: ", ours->batch,
            ours->ttst_s);
    compare(f, ours->ttst_s, full->ttst_s);
    fprintf(f, " full transfer (%.3g s), and ", full->ttst_s);
    compare(f, ours->ttst_s, partial->ttst_s);
    fprintf(f, " partial transfer (%.3g s). Later tokens come every %.3g s, against %.3g s and %.3g s.", partial->ttst_s,
            ours->tbt_s, full->tbt_s, partial->tbt_s);
    return SMG_OK;
}

/* ---- Provenance ---- */

static void print_labels(FILE *f, const char *what, const struct smg_report_row *row)
{
    static const char *const word[] = {"recorded", "<em>synthetic</em>"};

    if (!row->present || !row->labelled)
        return;
    fprintf(f, "<li>%s: seed %" PRIu64 "; importance %s, selection %s, workload %s", what, row->seed,
            word[row->synthetic_importance], word[row->synthetic_selection], word[row->synthetic_workload]);
    if (row->scenario_path[0]) {
        fputs("; scenario <code>", f);
        smg_html_text(f, row->scenario_path);
        fputs("</code>", f);
    }
    fputs("</li>\n", f);
}

static void print_command(FILE *f, const char *what, const char *command, const char *scenario, const char *rest)
{
    fprintf(f, "<li>%s: <code>%s", what, command);
    smg_html_text(f, scenario);
    fprintf(f, "%s</code></li>\n", rest);
}

static int print_provenance(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    const struct smg_report_row *emu = r->emu[SMARTGEN].present ? &r->emu[SMARTGEN] : &r->emu[FULL];
    const char *scenario = emu->scenario_path[0] ? emu->scenario_path : "SCENARIO";

    (void)diag;
    fputs("<p>All latencies of the schemes are simulated, with hardware constants from the data files. <em>Synthetic</em> marks "
          "inputs that were "
          "generated, not recorded.</p>\n<ul>\n",
          f);
    if (r->scheme_from_figure)
        fputs("<li>Schemes: the points of the largest batch of fig11; seed and inputs as in its caption</li>\n", f);
    print_labels(f, "Schemes", &r->scheme[SMARTGEN]);
    print_labels(f, "Simulation of the scaled scenario", &r->emu_sim[SMARTGEN]);
    print_labels(f, "Transfer engine", emu);
    fputs(
        "<li>Figures: seeds, inputs and what is calibrated or predicted stand in each caption; the validation table labels each "
        "row</li>\n<li>Transfer engine: real bytes over a real fabric on one host, but its links are shaped in software to the "
        "scenario's rates and compute is paced (waited for, not done), so its times show the engine's protocol and not a network "
        "or a GPU</li>\n",
        f);
    fputs("</ul>\n<p>To make each part again:</p>\n<ul>\n", f);
    print_command(f, "figures and validation", "smartgen figures -o OUT", "", "");
    print_command(f, "schemes, each", "smartgen sim SCENARIO --set scheme=SCHEME -o OUT/sim-SCHEME", "", "");
    print_command(f, "scaled scenario, simulated", "smartgen sim ", scenario, " --set scheme=SCHEME -o OUT/emu-sim-SCHEME");
    print_command(f, "scaled scenario, transfer engine", "smartgen emu ", scenario, " --set scheme=SCHEME -o OUT/emu-SCHEME");
    fputs("</ul>\n", f);
    return SMG_OK;
}

const struct smg_report_part smg_report_parts[] = {
    {"headline", print_headline},
    {"figures", smg_report_figures},
    {"schemes", print_schemes},
    {"emulation", print_emulation},
    {"validation", smg_report_validation},
    {"provenance", print_provenance},
    {NULL, NULL},
};
