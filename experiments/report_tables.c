/* Tables of runs: the schemes, and simulation beside the transfer engine. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "experiments/report_priv.h"

static void bytes_cell(FILE *f, double x)
{
    fputs("<td>", f);
    smg_html_bytes(f, x);
    fputs("</td>", f);
}

/* The command that makes a family of runs, all schemes. */
static void print_again(FILE *f, const struct smg_report_row *row, int family)
{
    fputs("<p class=\"again\">To make this part again: <code>for s in full partial smartgen; do ", f);
    smg_report_run_command(f, row, family, "$s");
    fputs("; done; smartgen figures -o OUT</code></p>\n", f);
}

int smg_report_scheme_table(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    static const char *const heads[] = {"<scheme",     "TTFT (s)",  "TTST (s)", "TBT (s)",         "metadata", "proactive",
                                        "speculative", "on demand", "control",  "on-demand ratio", NULL};
    const struct smg_report_row *run = r->scheme, *ours = &run[SMG_REPORT_SMARTGEN];

    (void)diag;
    if (!ours->present) {
        smg_html_missing(f, "Not simulated yet", "smartgen figures fig11 -o OUT");
        return SMG_OK;
    }
    smg_html_begin_table(f, "schemes", "", heads);
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        const struct smg_report_row *row = &run[s];
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
            ours->batch);
    if (r->scheme_from_figure)
        smg_html_again(f, "smartgen figures fig11 -o OUT");
    else
        print_again(f, ours, SMG_REPORT_SIM);
    return SMG_OK;
}

/* Above this a time of the engine tells of the host and not of the scenario. */
static const double off = 1.5;

/* Times of the engine over those of the simulation; sim NULL: this is the simulation. */
static void ratio_cell(FILE *f, const struct smg_report_row *row, const struct smg_report_row *sim)
{
    if (!sim || !sim->present || !smg_report_same_scenario(row, sim)) {
        smg_html_text_cell(f, "long", "");
        return;
    }
    const double ratio[] = {row->ttft_s / sim->ttft_s, row->ttst_s / sim->ttst_s, row->tbt_s / sim->tbt_s};
    static const char *const name[] = {"TTFT", "TTST", "TBT"};
    int is_off = 0;
    fputs("<td class=\"long\">", f);
    for (size_t i = 0; i < sizeof ratio / sizeof ratio[0]; i++) {
        fprintf(f, "%s%s ", i ? ", " : "", name[i]);
        if (isfinite(ratio[i]))
            fprintf(f, "%.2f", ratio[i]);
        else
            fputs("&ndash;", f);
        is_off |= isfinite(ratio[i]) && ratio[i] > off;
    }
    fputs(is_off ? "; <strong>host was busy or too slow for this scenario</strong></td>" : "</td>", f);
}

static void emulation_row(FILE *f, const char *scheme, const char *what, const struct smg_report_row *row,
                          const struct smg_report_row *sim)
{
    if (!row->present)
        return;
    fprintf(f, "<tr><td>%s</td><td class=\"text\">%s", scheme, what);
    if (row->engine[0]) {
        fputs(" (", f);
        smg_html_text(f, row->engine);
        fputc(')', f);
    }
    fputs("</td>", f);
    smg_html_number_cell(f, row->ttft_s);
    smg_html_number_cell(f, row->ttst_s);
    smg_html_number_cell(f, row->tbt_s);
    ratio_cell(f, row, sim);
    smg_html_text_cell(f, "text", row->digest);
    fputs("</tr>\n", f);
}

/* Every run whose digest is known read the same entries, or not; nothing to say about fewer than two. */
static void print_digests(FILE *f, const struct smg_report *r)
{
    const char *first = NULL;
    int known = 0, equal = 1;

    for (size_t s = 0; s < 2 * SMG_REPORT_SCHEMES; s++) {
        const struct smg_report_row *row =
            &r->run[s < SMG_REPORT_SCHEMES ? SMG_REPORT_EMU : SMG_REPORT_EMU_SIM][s % SMG_REPORT_SCHEMES];
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

int smg_report_emulation(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    static const char *const heads[] = {"<scheme", "<run",       "TTFT (s)",           "TTST (s)",
                                        "TBT (s)", "<emu / sim", "<digest of entries", NULL};
    const struct smg_report_row *known = NULL;

    (void)diag;
    for (size_t i = 0; i < 2 * SMG_REPORT_SCHEMES; i++) {
        const struct smg_report_row *row =
            &r->run[i < SMG_REPORT_SCHEMES ? SMG_REPORT_EMU : SMG_REPORT_EMU_SIM][i % SMG_REPORT_SCHEMES];
        known = known || !row->present ? known : row;
    }
    if (!known) {
        smg_html_missing(f, "Not run yet, for each scheme",
                         "smartgen emu SCENARIO --set scheme=full -o OUT/emu-full; smartgen sim SCENARIO --set scheme=full -o "
                         "OUT/emu-sim-full; smartgen figures -o OUT");
        return SMG_OK;
    }
    smg_html_begin_table(f, "simulation beside the transfer engine", "", heads);
    for (size_t s = 0; s < SMG_REPORT_SCHEMES; s++) {
        emulation_row(f, smg_report_schemes[s], "sim", &r->run[SMG_REPORT_EMU_SIM][s], NULL);
        emulation_row(f, smg_report_schemes[s], "emu", &r->run[SMG_REPORT_EMU][s], &r->run[SMG_REPORT_EMU_SIM][s]);
    }
    smg_html_end_table(f);
    print_digests(f, r);
    fputs(
        "<p class=\"note\">Transfer engine: real bytes over a real fabric on one host, but its links are shaped in software to "
        "the "
        "scenario's rates and compute is paced (waited for, not done), so its times show the engine's protocol and not a network "
        "or a GPU. They vary from run to run and with whatever else the host does, by several times when it is busy: a row with "
        "a "
        "remark says nothing about its scheme's times; run it again on an idle host.</p>\n",
        f);
    print_again(f, known, SMG_REPORT_EMU_SIM);
    print_again(f, known, SMG_REPORT_EMU);
    return SMG_OK;
}
