/* Where the numbers of the report come from: folder or file, command, digest, inputs, version. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "experiments/figures.h"
#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "traces/importance_bytes.h"
#include "traces/text.h"

enum { DATA_BYTES_MAX = 1 << 28 };

static const char *const part_names[SMG_REPORT_FAMILIES] = {"schemes, headline", "scaled scenario, simulated",
                                                            "scaled scenario, transfer engine"};

/* What was generated; of an input that the run did not need nothing is said. */
static void print_inputs(FILE *f, const struct smg_report_row *row)
{
    const char *const word[] = {row->synthetic_importance ? "importance" : NULL, row->synthetic_selection ? "selection" : NULL,
                                row->synthetic_workload ? "workload" : NULL};
    const char *before = "; <em>synthetic</em> ";

    fprintf(f, "<td class=\"text\">seed %" PRIu64, row->seed);
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        if (!word[i])
            continue;
        fprintf(f, "%s%s", before, word[i]);
        before = ", ";
    }
    fputs("</td>", f);
}

static void print_run(FILE *f, const struct smg_report_row *row, int family, const char *scheme)
{
    smg_html_text_cell(f, "text", part_names[family]);
    fputs("<td class=\"text\"><code>", f);
    smg_html_text(f, row->folder);
    fputs("</code></td><td class=\"text wide-cell\"><code>", f);
    smg_report_run_command(f, row, family, scheme);
    fputs("</code></td>", f);
    smg_html_text_cell(f, "text", row->scenario_digest);
    print_inputs(f, row);
    smg_html_text_cell(f, "text", row->version);
}

static void print_runs(FILE *f, const struct smg_report *r)
{
    static const char *const heads[] = {"<part", "<record folder", "<command", "<scenario digest", "<inputs", "<version", NULL};
    int any = 0;

    for (int k = 0; k < SMG_REPORT_FAMILIES; k++)
        for (int s = 0; s < SMG_REPORT_SCHEMES; s++)
            any |= r->run[k][s].present && r->run[k][s].labelled;
    if (!any)
        return;
    fputs("<h3>Runs</h3>\n", f);
    smg_html_begin_table(f, "record folders", "", heads);
    for (int k = 0; k < SMG_REPORT_FAMILIES; k++)
        for (int s = 0; s < SMG_REPORT_SCHEMES; s++) {
            if (!r->run[k][s].present || !r->run[k][s].labelled)
                continue;
            fputs("<tr>", f);
            print_run(f, &r->run[k][s], k, smg_report_schemes[s]);
            fputs("</tr>\n", f);
        }
    smg_html_end_table(f);
    fputs("<p class=\"note\">Scenario digest: FNV-1a, 64 bits, of the scenario file; a dash where the built-in defaults were "
          "used. A "
          "run may have had more <code>--set</code> than its command shows: <code>run.json</code> in its folder has every "
          "key.</p>\n",
          f);
}

/* ---- Figures ---- */

/* Digest of a data file of the output folder. *present: it is there. */
static int digest_of(const struct smg_report *r, const char *name, char out[32], int *present)
{
    char path[SMG_PATH_MAX], *data = NULL;
    size_t bytes;

    *present = 0;
    if (smg_path_join(r->out_dir, name, path) || smg_file_read(path, DATA_BYTES_MAX, &data, &bytes, NULL))
        return SMG_OK;
    snprintf(out, 32, "%016" PRIx64, smg_fnv1a64(SMG_FNV1A64_START, data, bytes));
    free(data);
    *present = 1;
    return SMG_OK;
}

static int print_figure_rows(FILE *f, const struct smg_report *r)
{
    char name[SMG_NAME_MAX + 8], digest[32];
    int status = SMG_OK, present;

    for (const char *const *id = smg_figure_ids; *id && !status; id++) {
        snprintf(name, sizeof name, "%.40s.csv", *id);
        status = digest_of(r, name, digest, &present);
        if (status || !present)
            continue;
        fprintf(f,
                "<tr><td>%s</td><td class=\"text\"><code>%s</code></td><td class=\"text\">%s</td><td class=\"text wide-cell\">"
                "<code>smartgen figures %s -o OUT</code></td><td class=\"text\"><code>experiments/%s.yaml</code></td></tr>\n",
                *id, name, digest, *id, *id);
    }
    return status;
}

int smg_report_provenance(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    static const char *const heads[] = {"<part", "<data file", "<digest", "<command", "<points", NULL};
    int status;

    (void)diag;
    fputs("<p>All latencies of the schemes are simulated, with hardware constants from the data files. <em>Synthetic</em> marks "
          "inputs that were generated, not recorded. <code>OUT</code> is the folder of this page; any <code>smartgen "
          "figures</code> "
          "makes the page again.</p>\n",
          f);
    if (r->scheme_from_figure)
        fputs("<p>Headline and schemes: the points of the largest batch of fig11; seed and inputs as in its caption. "
              "Record folders <code>OUT/sim-SCHEME</code> take their place.</p>\n",
              f);
    print_runs(f, r);
    fputs("<h3>Figures and validation</h3>\n", f);
    smg_html_begin_table(f, "data files", "", heads);
    status = print_figure_rows(f, r);
    smg_html_end_table(f);
    fprintf(f,
            "<p class=\"note\">Seeds, inputs and what is calibrated or predicted stand in each caption; the validation table "
            "labels each "
            "row. Digest: FNV-1a, 64 bits, of the data file. Page written by smartgen %s.</p>\n",
            PACKAGE_VERSION);
    return status;
}
