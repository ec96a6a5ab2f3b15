#include "experiments/validation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

enum { REMARK_BYTES = 1200 };

/* A miss wants a reason. */
static const double MISS_PERCENT = 10;
/* A reason was written for this value, give or take. */
static const double SAME_PERCENT = 3;

int smg_validation_want(const struct smg_validation *v, struct smg_book *b, struct smg_diag *diag)
{
    struct smg_diag found = {""};
    double unused;

    for (size_t i = 0; i < v->rows; i++) {
        int status = smg_expression(v->row[i].ours, b, &unused, &found);
        if (status)
            return smg_diag_set(diag, status, "validation.yaml: row %s: %s", v->row[i].row, found.text);
    }
    return SMG_OK;
}

static void compute(struct smg_validation *v, const struct smg_book *b)
{
    struct smg_book run = *b; /* not changed: it has been run */

    for (size_t i = 0; i < v->rows; i++) {
        struct smg_validation_row *r = &v->row[i];
        r->value = NAN;
        r->status = smg_expression(r->ours, &run, &r->value, &r->why);
    }
}

static double error_percent(const struct smg_validation_row *r)
{
    return r->relation == '=' ? 100 * (r->value / r->paper - 1) : NAN;
}

static int misses(const struct smg_validation_row *r)
{
    if (isnan(r->paper) || isnan(r->value))
        return 0;
    return r->relation == '<' ? !(r->value <= r->paper) : fabs(error_percent(r)) > MISS_PERCENT;
}

static int is_stale(const struct smg_validation_row *r)
{
    return r->reason[0] && !isnan(r->value) && fabs(r->value - r->reason_ours) > SAME_PERCENT / 100 * fabs(r->reason_ours);
}

/* What is said about a row, beside its numbers. */
static void remark_of(const struct smg_validation_row *r, char *out, size_t bytes)
{
    if (r->status)
        snprintf(out, bytes, "no value: %s", r->why.text);
    else if (is_stale(r))
        snprintf(out, bytes, "(written for %.3g) %s", r->reason_ours, r->reason);
    else
        snprintf(out, bytes, "%s", r->reason[0] ? r->reason : misses(r) ? "no reason given yet" : "");
}

/* ---- validation.csv ---- */

static void cell(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, ",%.6g", x);
    else
        fputc(',', f);
}

/* Text that was not written for the table may hold commas. */
static void text_cell(FILE *f, const char *text)
{
    fputc(',', f);
    for (; *text; text++)
        fputc(*text == ',' ? ';' : *text == '"' ? '\'' : *text, f);
}

static void print_csv(FILE *f, const struct smg_validation *v)
{
    fputs("id,row,quantity,condition,relation,paper,ours,error_percent,label,maximum,reason\n", f);
    for (size_t i = 0; i < v->rows; i++) {
        const struct smg_validation_row *r = &v->row[i];
        char remark[REMARK_BYTES];
        fprintf(f, "%s,%s,%s,%s,%s", r->id, r->row, r->quantity, r->condition,
                isnan(r->paper)      ? ""
                : r->relation == '<' ? "<"
                                     : "=");
        cell(f, r->paper);
        cell(f, r->value);
        cell(f, error_percent(r));
        fprintf(f, ",%s,%s", r->label, r->maximum);
        remark_of(r, remark, sizeof remark);
        text_cell(f, remark);
        fputc('\n', f);
    }
}

/* ---- validation.txt ---- */

static void print_number(FILE *f, double x, int width)
{
    if (isfinite(x))
        fprintf(f, " %*.*g", width, 3, x);
    else
        fprintf(f, " %*s", width, "-");
}

static void print_row(FILE *f, const struct smg_validation_row *r)
{
    double error = error_percent(r);
    char remark[REMARK_BYTES];

    fprintf(f, "%-5s %-57s %-50s %s", r->id[0] ? r->id : "-", r->quantity, r->condition, r->relation == '<' ? "<" : " ");
    print_number(f, r->paper, 6);
    print_number(f, r->value, 8);
    if (isfinite(error))
        fprintf(f, " %+7.1f%%", error);
    else
        fprintf(f, " %8s", isnan(r->paper) || isnan(r->value) ? "-" : misses(r) ? "fails" : "holds");
    fprintf(f, "  %s\n", r->label);
    if (r->maximum[0])
        fprintf(f, "       up to: %s\n", r->maximum);
    remark_of(r, remark, sizeof remark);
    if (remark[0])
        fprintf(f, "       %s\n", remark);
}

static void print_counts(FILE *f, const struct smg_validation *v)
{
    size_t compared = 0, missed = 0, open = 0, lost = 0;

    for (size_t i = 0; i < v->rows; i++) {
        const struct smg_validation_row *r = &v->row[i];
        lost += r->status != SMG_OK;
        open += isnan(r->paper) && !r->status;
        compared += !isnan(r->paper) && !r->status;
        missed += misses(r) != 0;
    }
    fprintf(
        f,
        "%zu rows: %zu compared with the paper, %zu of them more than %g %% off; %zu predicted without comparison; %zu without a "
        "value.\n",
        v->rows, compared, missed, MISS_PERCENT, open, lost);
}

static void print_text(FILE *f, const struct smg_validation *v)
{
    fputs("Validation: the SmartGen paper's numbers beside ours. Calibrated: constants were derived from this number. Predicted: "
          "they "
          "were not.\nImportance and selections are synthetic. Nothing is fitted to this table; misses carry their arithmetic.\n",
          f);
    print_counts(f, v);
    fprintf(f, "\n%-5s %-57s %-50s   %6s %8s %8s  %s\n", "id", "quantity", "condition", "paper", "ours", "error", "label");
    for (size_t i = 0; i < v->rows; i++)
        print_row(f, &v->row[i]);
}

static int write_file(const struct smg_outdir *o, const struct smg_validation *v, const char *name,
                      void (*print)(FILE *, const struct smg_validation *), struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    FILE *f = NULL;
    int status = smg_outdir_file(o, name, path);

    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    print(f, v);
    return smg_output_close(f, path, SMG_OK, diag);
}

static int first_failure(const struct smg_validation *v, struct smg_diag *diag)
{
    for (size_t i = 0; i < v->rows; i++)
        if (v->row[i].status)
            return smg_diag_set(diag, v->row[i].status, "validation: row %s: %s", v->row[i].row, v->row[i].why.text);
    return SMG_OK;
}

int smg_validation_write(struct smg_validation *v, const struct smg_book *b, const char *outdir, struct smg_diag *diag)
{
    struct smg_outdir o;
    int status;

    compute(v, b);
    status = smg_outdir_begin_shared(outdir, &o, diag);
    if (status)
        return status;
    status = write_file(&o, v, "validation.csv", print_csv, diag);
    if (!status)
        status = write_file(&o, v, "validation.txt", print_text, diag);
    status = smg_outdir_finish(&o, status, diag);
    return status ? status : first_failure(v, diag);
}
