/* The validation table of the report, from validation.csv. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/csv.h"
#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "traces/text.h"

enum { ID, QUANTITY, CONDITION, RELATION, PAPER, OURS, ERROR, LABEL, MAXIMUM, REASON, COLUMNS };

static const char *const names[COLUMNS] = {"id",   "quantity",      "condition", "relation", "paper",
                                           "ours", "error_percent", "label",     "maximum",  "reason"};

static int find_columns(const struct smg_csv *c, size_t column[COLUMNS], struct smg_diag *diag)
{
    int status = SMG_OK;

    for (size_t i = 0; i < COLUMNS && !status; i++)
        status = smg_csv_column(c, names[i], &column[i], diag);
    return status;
}

static void error_cell(FILE *f, const char *relation, double paper, double ours, double error)
{
    if (isfinite(error))
        fprintf(f, "<td>%+.1f %%</td>", error);
    else if (isfinite(paper) && isfinite(ours) && relation[0] == '<')
        fprintf(f, "<td>%s</td>", ours <= paper ? "holds" : "fails");
    else
        fputs("<td>&ndash;</td>", f);
}

static void remarks_cell(FILE *f, const char *maximum, const char *reason)
{
    fputs("<td class=\"long\">", f);
    smg_html_text(f, maximum);
    fputs(maximum[0] && reason[0] ? "; " : "", f);
    smg_html_text(f, reason);
    fputs("</td>", f);
}

static int print_row(FILE *f, const struct smg_csv *c, size_t row, const size_t column[COLUMNS], struct smg_diag *diag)
{
    const char *cell[COLUMNS];
    double paper = NAN, ours = NAN, error = NAN;
    int status = smg_csv_number(c, row, column[PAPER], &paper, diag);

    if (!status)
        status = smg_csv_number(c, row, column[OURS], &ours, diag);
    if (!status)
        status = smg_csv_number(c, row, column[ERROR], &error, diag);
    if (status)
        return status;
    for (size_t i = 0; i < COLUMNS; i++)
        cell[i] = smg_csv_cell(c, row, column[i]);
    fputs(fabs(error) > 10 ? "<tr class=\"miss\">" : "<tr>", f);
    smg_html_text_cell(f, "id", cell[ID]);
    smg_html_text_cell(f, "text", cell[QUANTITY]);
    smg_html_text_cell(f, "text", cell[CONDITION]);
    smg_html_number_cell(f, paper);
    smg_html_number_cell(f, ours);
    error_cell(f, cell[RELATION], paper, ours, error);
    smg_html_text_cell(f, "text", cell[LABEL]);
    remarks_cell(f, cell[MAXIMUM], cell[REASON]);
    fputs("</tr>\n", f);
    return SMG_OK;
}

static int print_table(FILE *f, const struct smg_csv *c, struct smg_diag *diag)
{
    static const char *const heads[] = {"<id", "<quantity", "<condition", "paper", "ours", "error", "<label", "<remarks", NULL};
    size_t column[COLUMNS];
    int status = find_columns(c, column, diag);

    if (status)
        return status;
    fputs("<p class=\"note\"><em>Calibrated</em>: constants were derived from this number. <em>Predicted</em>: they were not; "
          "without a paper's number there is nothing to compare with yet. Inputs are synthetic.",
          f);
    fprintf(f, " %zu rows.</p>\n", c->rows);
    smg_html_begin_table(f, "the paper's numbers beside ours", "sortable", heads);
    for (size_t i = 0; i < c->rows && !status; i++)
        status = print_row(f, c, i, column, diag);
    smg_html_end_table(f);
    smg_html_again(f, "smartgen figures validation -o OUT");
    return status;
}

int smg_report_validation(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_csv c;
    struct stat info;
    int status = smg_path_join(r->out_dir, "validation.csv", path);

    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", r->out_dir);
    if (stat(path, &info)) {
        smg_html_missing(f, "Not computed yet", "smartgen figures validation -o OUT");
        return SMG_OK;
    }
    status = smg_csv_read(path, &c, diag);
    if (status)
        return status;
    status = print_table(f, &c, diag);
    smg_csv_free(&c);
    return status;
}
