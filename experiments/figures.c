/* Which figures to make, and the order of the work: read all sweeps, run what is wanted once, write. */
#include "experiments/figures.h"

#include <stdio.h>
#include <string.h>

#include "experiments/figure_draw.h"
#include "experiments/files.h"
#include "experiments/validation.h"
#include "traces/text.h"

const char *const smg_figure_ids[] = {"fig02", "fig03", "fig05", "fig11", "fig12", "fig13", "fig14", "fig15", "validation", NULL};

enum { SWEEPS = 8 };

static const char validation[] = "validation";

static int is_wanted(const char *id, const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(ids[i], id))
            return 1;
    return !n;
}

static int check_ids(const char *const *ids, size_t n, struct smg_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        char hint[160];
        if (is_wanted(ids[i], smg_figure_ids, sizeof smg_figure_ids / sizeof smg_figure_ids[0] - 1))
            continue;
        smg_text_hint(ids[i], smg_figure_ids, hint, sizeof hint);
        return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "unknown figure '%.60s'%s", ids[i], hint);
    }
    return SMG_OK;
}

static int read_sweeps(struct smg_book *b, struct smg_diag *diag)
{
    int status = SMG_OK;

    for (size_t i = 0; i < SWEEPS && !status; i++) {
        char path[SMG_PATH_MAX], name[SMG_NAME_MAX];
        struct smg_sweep s;
        snprintf(name, sizeof name, "%s.yaml", smg_figure_ids[i]);
        if (smg_path_join(smg_sweeps_dir(), name, path))
            return smg_diag_set(diag, SMG_ERR_RANGE, "%s: name is too long", smg_sweeps_dir());
        status = smg_sweep_read(path, &s, diag);
        if (!status && strcmp(s.id, smg_figure_ids[i]))
            status = smg_diag_set(diag, SMG_ERR_PARSE, "%s: key 'figure': expected %s, found %s", path, smg_figure_ids[i], s.id);
        if (!status)
            status = smg_book_add(b, &s, diag);
    }
    return status;
}

static int want_figures(struct smg_book *b, const char *const *ids, size_t n, struct smg_diag *diag)
{
    int status = SMG_OK;

    for (size_t i = 0; i < SWEEPS; i++) {
        if (!is_wanted(b->sweep[i].id, ids, n) || b->sweep[i].run == SMG_SWEEP_HEAT)
            continue;
        for (size_t p = 0; p < smg_sweep_points(&b->sweep[i]) && !status; p++)
            status = smg_book_want(b, i, p, diag);
    }
    return status;
}

/* Keeps the first failure. */
static void note(int status, const struct smg_diag *found, int *first, struct smg_diag *diag)
{
    if (status && !*first)
        *first = smg_diag_set(diag, status, "%s", found->text[0] ? found->text : smg_status_string(status));
}

static int write_figures(const struct smg_book *b, const struct smg_figure_job *job, const char *const *ids, size_t n,
                         struct smg_diag *diag)
{
    int first = SMG_OK;

    for (size_t i = 0; i < SWEEPS; i++) {
        struct smg_diag found = {""};
        if (!is_wanted(b->sweep[i].id, ids, n))
            continue;
        note(b->sweep[i].run == SMG_SWEEP_HEAT ? smg_figure_heat(&b->sweep[i], job, &found)
                                               : smg_figure_write(b, i, job->outdir, &found),
             &found, &first, diag);
    }
    return first;
}

int smg_figures_run(const struct smg_figure_job *job, const char *const *ids, size_t n, struct smg_diag *diag)
{
    struct smg_validation v = {NULL, 0};
    struct smg_book b = {NULL, NULL, 0, NULL, 0, NULL};
    struct smg_diag found = {""};
    int status = check_ids(ids, n, diag), first;

    if (!status)
        status = read_sweeps(&b, diag);
    if (!status && is_wanted(validation, ids, n)) {
        status = smg_validation_read(smg_sweeps_dir(), &b, &v, diag);
        if (!status)
            status = smg_validation_want(&v, &b, diag);
    }
    if (!status)
        status = want_figures(&b, ids, n, diag);
    if (!status)
        status = smg_book_run(&b, job, diag);
    if (status)
        goto free_all;
    first = write_figures(&b, job, ids, n, diag);
    if (v.rows)
        note(smg_validation_write(&v, &b, job->outdir, &found), &found, &first, diag);
    status = first;
free_all:
    smg_validation_free(&v);
    smg_book_free(&b);
    return status;
}
