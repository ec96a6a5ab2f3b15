#include "experiments/summarize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/csv.h"
#include "experiments/distribution.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

static const char *const columns[] = {"ttft_s", "ttst_s", "tbt_mean_s", "on_demand_ratio"};

enum { COLUMNS = sizeof columns / sizeof columns[0], CELL_WIDTH = 20, NAMED_MAX = 6, LABEL_BYTES = 256 };

/* What a line says. */
struct line {
    size_t requests, failed, waiting;
    double mean[COLUMNS], half_width[COLUMNS];
};

struct run {
    const char *dir;
    dev_t device;
    ino_t inode;
    struct line line;
    json_t *settings, *synthetic; /* synthetic may be NULL */
    uint64_t seed, records;       /* records: a digest of requests.csv */
    size_t like;                  /* the first run with the same settings */
    size_t n_alike;               /* first of its settings: how many have them */
    struct line all;              /* first of its settings: over the runs that have them */
};

/* ---- Reading ---- */

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

static int read_states(const struct smg_csv *c, struct line *line, struct smg_diag *diag)
{
    size_t state = 0;
    int status = smg_csv_column(c, "status", &state, diag);

    for (size_t i = 0; i < c->rows && !status; i++) {
        line->failed += !strcmp(smg_csv_cell(c, i, state), "failed");
        line->waiting += !strcmp(smg_csv_cell(c, i, state), "waiting");
    }
    return status;
}

static int read_requests(const char *path, uint32_t requests, struct line *line, uint64_t *digest, struct smg_diag *diag)
{
    struct smg_csv c;
    int status = smg_csv_read(path, &c, diag);

    if (status)
        return status;
    *digest = c.digest;
    line->requests = c.rows;
    status = smg_requests_check(&c, requests, diag);
    if (!status)
        status = read_states(&c, line, diag);
    for (size_t i = 0; i < COLUMNS && !status; i++)
        status = read_column(&c, columns[i], &line->mean[i], &line->half_width[i], diag);
    smg_csv_free(&c);
    return status;
}

static int read_run(const char *dir, struct run *run, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    uint32_t requests = 0;
    struct stat st;
    int status = smg_path_join(dir, "requests.csv", path);

    run->dir = dir;
    if (!stat(dir, &st)) {
        run->device = st.st_dev;
        run->inode = st.st_ino;
    }
    if (status)
        return smg_diag_set(diag, status, "%.100s...: name is too long", dir);
    status = smg_run_settings(dir, &run->settings, &requests, &run->seed, &run->synthetic, diag);
    return status ? status : read_requests(path, requests, &run->line, &run->records, diag);
}

/* ---- Which runs are one experiment ---- */

static void find_alike(struct run *run, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run[i].like = 0;
        while (!json_equal(run[run[i].like].settings, run[i].settings))
            run[i].like++;
        run[run[i].like].n_alike++;
    }
}

/* The mean of the means of the runs like run[which], as if each were one observation. */
static int pool(struct run *run, size_t n, size_t which)
{
    struct line *all = &run[which].all;
    int failed = 0;

    for (size_t c = 0; c < COLUMNS; c++) {
        struct smg_sample s = {0};
        for (size_t i = 0; i < n; i++)
            if (run[i].like == which)
                smg_sample_add(&s, run[i].line.mean[c]);
        all->mean[c] = mean_of(&s);
        all->half_width[c] = smg_sample_half_width(&s);
        failed |= s.failed;
        smg_sample_free(&s);
    }
    for (size_t i = 0; i < n; i++) {
        all->requests += run[i].like == which ? run[i].line.requests : 0;
        all->failed += run[i].like == which ? run[i].line.failed : 0;
    }
    return failed ? SMG_ERR_NOMEM : SMG_OK;
}

/* Whether some run has another value than the first. */
static int varies(const struct run *run, size_t n, const char *key)
{
    for (size_t i = 1; i < n; i++)
        if (!json_equal(json_object_get(run[0].settings, key), json_object_get(run[i].settings, key)))
            return 1;
    return 0;
}

static size_t append(char *text, size_t used, const char *format, const char *a, const char *b)
{
    int n = used < LABEL_BYTES ? snprintf(text + used, LABEL_BYTES - used, format, a, b) : 0;

    return used + (size_t)(n > 0 ? n : 0);
}

/* The settings in which runs differ: their names, or with their values in one of the runs. */
static void name_differences(const struct run *run, size_t n, const json_t *values, char text[LABEL_BYTES])
{
    const char *key;
    json_t *unused;
    size_t named = 0, used = 0;
    char more[32];

    text[0] = '\0';
    json_object_foreach(run[0].settings, key, unused)
    {
        json_t *value = json_object_get(values, key);
        char *dumped = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        if (varies(run, n, key) && named++ < NAMED_MAX)
            used = append(text, used, values && strcmp(key, "inputs") ? " %s=%s" : " %s", key, dumped ? dumped : "?");
        free(dumped);
    }
    if (named > NAMED_MAX) {
        snprintf(more, sizeof more, " and %zu more", named - NAMED_MAX);
        append(text, used < LABEL_BYTES - sizeof more ? used : LABEL_BYTES - sizeof more, "%s%s", more, "");
    }
}

/* ---- The table ---- */

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

/* Name of the line over the runs like run[which]; "" when it has no other like it. */
static void label_of(const struct run *run, size_t n, size_t which, char label[LABEL_BYTES + 32])
{
    char differences[LABEL_BYTES];

    label[0] = '\0';
    if (run[which].n_alike < 2)
        return;
    name_differences(run, n, run[which].settings, differences);
    if (differences[0])
        snprintf(label, LABEL_BYTES + 32, "mean of %zu runs%s", run[which].n_alike, differences);
    else
        snprintf(label, LABEL_BYTES + 32, "mean of runs");
}

/* What was generated in any of the runs. */
static void print_synthetic(FILE *out, const struct run *run, size_t n)
{
    static const char *const what[] = {"importance", "selection", "workload", "tensors"};
    int any = 0;
    size_t silent = 0;

    for (size_t k = 0; k < sizeof what / sizeof what[0]; k++) {
        size_t runs = 0;
        for (size_t i = 0; i < n; i++)
            runs += json_is_true(json_object_get(run[i].synthetic, what[k]));
        if (!runs)
            continue;
        fprintf(out, "%s %s", any ? "" : "synthetic:", what[k]);
        if (runs < n)
            fprintf(out, " (%zu of %zu runs)", runs, n);
        any = 1;
    }
    for (size_t i = 0; i < n; i++)
        silent += !json_is_object(run[i].synthetic);
    if (silent)
        fprintf(out, "%snot said by %zu of %zu runs", any ? "; " : "synthetic: ", silent, n);
    if (any || silent)
        fputc('\n', out);
}

static void print_table(FILE *out, const struct run *run, size_t n)
{
    char label[LABEL_BYTES + 32], differences[LABEL_BYTES];
    int width = (int)strlen("run");

    for (size_t i = 0; i < n; i++) {
        label_of(run, n, i, label);
        width = (int)strlen(run[i].dir) > width ? (int)strlen(run[i].dir) : width;
        width = (int)strlen(label) > width ? (int)strlen(label) : width;
    }
    fprintf(out, "%-*s %9s %7s", width, "run", "requests", "failed");
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, " %*s", CELL_WIDTH, columns[i]);
    fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        print_line(out, width, run[i].dir, &run[i].line);
    for (size_t i = 0; i < n; i++) {
        label_of(run, n, i, label);
        if (label[0])
            print_line(out, width, label, &run[i].all);
    }
    print_synthetic(out, run, n);
    fputs("Mean +- half of the 95% confidence interval (Student's t) over requests; in a mean of runs over those runs.\n", out);
    name_differences(run, n, NULL, differences);
    if (differences[0])
        fprintf(out, "No mean over runs that differ in more than their seed; these differ in%s.\n", differences);
}

/* ---- What to know of a run before its numbers are used ---- */

static int breaks_a_law(const char *dir)
{
    char path[SMG_PATH_MAX];
    json_t *root = NULL, *law;
    size_t i;
    int broken = 0;

    /* The summary is not needed: that it is missing or unreadable is nothing to say here. */
    if (smg_path_join(dir, "summary.json", path) || smg_file_regular(path, NULL) || smg_file_json(path, &root, NULL))
        return 0;
    json_array_foreach(json_object_get(root, "conservation"), i, law) broken |= json_is_false(json_object_get(law, "holds"));
    json_decref(root);
    return broken;
}

static void warn_of(const struct run *run, smg_warn_fn warn, void *arg)
{
    const struct line *l = &run->line;
    char text[SMG_PATH_MAX + 128];

    if (l->waiting) {
        snprintf(text, sizeof text, "%s: %zu of %zu requests neither finished nor failed: the run broke off", run->dir,
                 l->waiting, l->requests);
        warn(arg, text);
    }
    if (breaks_a_law(run->dir)) {
        snprintf(text, sizeof text, "%s: a conservation law does not hold: see summary.json", run->dir);
        warn(arg, text);
    }
}

static void free_run(struct run *run)
{
    json_decref(run->settings);
    json_decref(run->synthetic);
}

/* A run that is named twice would count as two, and narrow every interval. */
static int check_twice(const struct run *run, size_t n, struct smg_diag *diag)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (run[i].device == run[j].device && run[i].inode == run[j].inode)
                return smg_diag_set(diag, SMG_ERR_INVALID, "%s: the same folder as %s: a run counts once", run[i].dir,
                                    run[j].dir);
    return SMG_OK;
}

static int is_simulation(const struct run *run)
{
    const char *driver = json_string_value(json_object_get(run->settings, "driver"));

    return driver && !strcmp(driver, "sim");
}

/* A simulation is decided by settings and seed; a mean over two that agree in both is no mean over independent runs. The times of
 * emulations vary to the last digit, unless one is a copy. */
static const char *why_copy(const struct run *a, const struct run *b)
{
    if (a->like != b->like || a->seed != b->seed)
        return NULL;
    if (is_simulation(a))
        return "has the seed and the scenario of";
    return a->records == b->records && a->line.requests ? "has the very records of" : NULL;
}

static void warn_of_copies(const struct run *run, size_t n, smg_warn_fn warn, void *arg)
{
    char text[2 * SMG_PATH_MAX + 128];

    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const char *why = why_copy(&run[i], &run[j]);
            if (!why)
                continue;
            snprintf(text, sizeof text, "%s: %s %s: the two are not independent", run[i].dir, why, run[j].dir);
            warn(arg, text);
            break;
        }
}

int smg_summarize(const char *const *dirs, size_t n, FILE *out, smg_warn_fn warn, void *arg, struct smg_diag *diag)
{
    struct run *run = calloc(n + 1, sizeof *run);
    int status = run ? SMG_OK : smg_diag_set(diag, SMG_ERR_NOMEM, "summarize: out of memory");

    for (size_t i = 0; i < n && !status; i++)
        status = read_run(dirs[i], &run[i], diag);
    if (!status)
        status = check_twice(run, n, diag);
    if (!status)
        find_alike(run, n);
    for (size_t i = 0; i < n && !status; i++)
        if (run[i].n_alike && pool(run, n, i))
            status = smg_diag_set(diag, SMG_ERR_NOMEM, "summarize: out of memory");
    for (size_t i = 0; i < n && !status && warn; i++)
        warn_of(&run[i], warn, arg);
    if (!status && warn)
        warn_of_copies(run, n, warn, arg);
    if (!status)
        print_table(out, run, n);
    for (size_t i = 0; run && i < n; i++)
        free_run(&run[i]);
    free(run);
    return status;
}
