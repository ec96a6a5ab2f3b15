#include "experiments/summarize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/csv.h"
#include "experiments/distribution.h"
#include "experiments/files.h"
#include "traces/text.h"

static const char *const columns[] = {"ttft_s", "ttst_s", "tbt_mean_s", "on_demand_ratio"};

enum { COLUMNS = sizeof columns / sizeof columns[0], CELL_WIDTH = 20 };

/* What a line says. */
struct line {
    size_t requests, failed;
    double mean[COLUMNS], half_width[COLUMNS];
};

static double mean_of(const struct smg_sample *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += s->value[i];
    return s->n ? sum / (double)s->n : NAN;
}

static int read_column(const struct smg_csv *c, const char *name, double *mean, double *half_width, struct smg_diag *diag)
{
    struct smg_sample s = {0};
    size_t column = 0;
    double x;
    int status = smg_csv_column(c, name, &column, diag);

    for (size_t i = 0; i < c->rows && !status; i++) {
        status = smg_csv_number(c, i, column, &x, diag);
        if (!status)
            smg_sample_add(&s, x);
    }
    if (!status && s.failed)
        status = smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", c->path);
    *mean = mean_of(&s);
    *half_width = smg_sample_half_width(&s);
    smg_sample_free(&s);
    return status;
}

static int count_failed(const struct smg_csv *c, size_t *out, struct smg_diag *diag)
{
    size_t column = 0, n = 0;
    int status = smg_csv_column(c, "status", &column, diag);

    for (size_t i = 0; i < c->rows && !status; i++)
        n += !strcmp(smg_csv_cell(c, i, column), "failed");
    *out = n;
    return status;
}

static int read_line(const char *dir, struct line *line, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_csv c;
    int status = smg_path_join(dir, "requests.csv", path);

    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", dir);
    status = smg_csv_read(path, &c, diag);
    if (status)
        return status;
    line->requests = c.rows;
    status = count_failed(&c, &line->failed, diag);
    for (size_t i = 0; i < COLUMNS && !status; i++)
        status = read_column(&c, columns[i], &line->mean[i], &line->half_width[i], diag);
    smg_csv_free(&c);
    return status;
}

/* The mean of the lines' means, as if each line were one observation. */
static int pool(const struct line *lines, size_t n, struct line *all)
{
    int failed = 0;

    memset(all, 0, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all->requests += lines[i].requests;
        all->failed += lines[i].failed;
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        struct smg_sample s = {0};
        for (size_t i = 0; i < n; i++)
            smg_sample_add(&s, lines[i].mean[c]);
        all->mean[c] = mean_of(&s);
        all->half_width[c] = smg_sample_half_width(&s);
        failed |= s.failed;
        smg_sample_free(&s);
    }
    return failed ? SMG_ERR_NOMEM : SMG_OK;
}

static void print_line(FILE *out, int width, const char *name, const struct line *line)
{
    fprintf(out, "%-*s %9zu %7zu", width, name, line->requests, line->failed);
    for (size_t i = 0; i < COLUMNS; i++) {
        char cell[64] = "-";
        if (isfinite(line->mean[i]))
            snprintf(cell, sizeof cell, isfinite(line->half_width[i]) ? "%.4g +- %.2g" : "%.4g", line->mean[i],
                     line->half_width[i]);
        fprintf(out, " %*s", CELL_WIDTH, cell);
    }
    fputc('\n', out);
}

static void print_table(FILE *out, const char *const *dirs, const struct line *lines, size_t n, const struct line *all)
{
    int width = (int)strlen("mean of runs");

    for (size_t i = 0; i < n; i++)
        width = (int)strlen(dirs[i]) > width ? (int)strlen(dirs[i]) : width;
    fprintf(out, "%-*s %9s %7s", width, "run", "requests", "failed");
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, " %*s", CELL_WIDTH, columns[i]);
    fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        print_line(out, width, dirs[i], &lines[i]);
    if (n > 1)
        print_line(out, width, "mean of runs", all);
    fputs("Mean +- half of the 95% confidence interval (Student's t) over requests; in the last line over runs.\n", out);
}

int smg_summarize(const char *const *dirs, size_t n, FILE *out, struct smg_diag *diag)
{
    struct line *lines = calloc(n + 1, sizeof *lines);
    int status = lines ? SMG_OK : smg_diag_set(diag, SMG_ERR_NOMEM, "summarize: out of memory");

    for (size_t i = 0; i < n && !status; i++)
        status = read_line(dirs[i], &lines[i], diag);
    if (!status && pool(lines, n, &lines[n]))
        status = smg_diag_set(diag, SMG_ERR_NOMEM, "summarize: out of memory");
    if (!status)
        print_table(out, dirs, lines, n, &lines[n]);
    free(lines);
    return status;
}
