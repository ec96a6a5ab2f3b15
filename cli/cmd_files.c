/* smartgen replay, summarize, figures: commands that work on record folders. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "core/stats.h"
#include "experiments/figures.h"
#include "experiments/files.h"
#include "experiments/report.h"
#include "experiments/run.h"
#include "experiments/summarize.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

int smg_cmd_replay(const struct smg_args *a)
{
    struct smg_diag diag = {""};
    uint64_t steps = 0;
    int status = smg_replay(a->operand[0], &steps, &diag);

    if (status)
        return smg_cli_fail(status, &diag);
    if (!a->quiet)
        printf("%s: %llu steps replayed, actions byte-equal\n", a->operand[0], (unsigned long long)steps);
    return SMG_EXIT_OK;
}

int smg_cmd_summarize(const struct smg_args *a)
{
    struct smg_diag diag = {""};
    int status = smg_summarize(a->operand, a->n_operands, stdout, smg_cli_warning, NULL, &diag);

    if (status)
        return smg_cli_fail(status, &diag);
    return SMG_EXIT_OK;
}

/* A point with a failed request or a broken law has no place in a figure. */
static int check_point(const struct smg_sim *sim, struct smg_diag *diag)
{
    const struct smg_records *r = smg_sim_records(sim);
    struct smg_law laws[SMG_LAWS];
    size_t n = 0;
    int status = smg_conservation_check(r, smg_sim_stats(sim), laws, &n);

    if (r->failed) {
        snprintf(diag->text, sizeof diag->text, "%u of %u requests failed", r->failed, r->n_requests);
        return SMG_ERR_LOST;
    }
    for (size_t i = 0; status && i < n; i++)
        if (!laws[i].holds)
            snprintf(diag->text, sizeof diag->text, "conservation: %s: %g against %g", laws[i].name, laws[i].left, laws[i].right);
    return status;
}

/* One point of a figure: simulated here, in a child process. */
static int run_point(void *arg, const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    const char *engine = arg;
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_world w;
    int status = smg_world_load(s, &w, diag);

    if (status)
        return status;
    status = smg_selection_create(&w, &selection);
    if (!status)
        status = smg_sim_create(&w, smg_engine_find(engine), selection, NULL, &sim);
    if (!status)
        status = smg_sim_run(sim, diag);
    if (!status)
        status = check_point(sim, diag);
    if (!status)
        status = smg_point_of_run(&w, smg_sim_records(sim), smg_sim_stats(sim), out);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    smg_world_free(&w);
    return status;
}

static int known_figure(const char *id)
{
    for (const char *const *known = smg_figure_ids; *known; known++)
        if (!strcmp(*known, id))
            return 1;
    return 0;
}

static int check_figures(const struct smg_args *a)
{
    for (size_t i = 0; i < a->n_operands; i++) {
        const char *near;
        if (known_figure(a->operand[i]))
            continue;
        fprintf(stderr, "smartgen figures: expected");
        for (const char *const *known = smg_figure_ids; *known; known++)
            fprintf(stderr, "%s%s", known == smg_figure_ids ? " " : known[1] ? ", " : " or ", *known);
        near = smg_nearest(a->operand[i], smg_figure_ids);
        fprintf(stderr, ", found '%s'%s%s%s\n", a->operand[i], near ? "; did you mean '" : "", near ? near : "",
                near ? "'?" : "");
        return SMG_ERR_INVALID;
    }
    return SMG_OK;
}

/* Output that does not reach the disk is no bad input. */
static int unwritten(int status, const struct smg_diag *diag)
{
    int code = smg_cli_fail(status, diag);

    return status == SMG_ERR_IO ? SMG_EXIT_FAILED : code;
}

/* Finished figures stay, a new folder without any does not. Whatever failed after the signal, it is the reason: a terminal sends
 * it to gnuplot too. */
static int interrupted(const char *outdir, int is_new)
{
    if (is_new)
        rmdir(outdir);
    return smg_cli_fail(SMG_ERR_INTERRUPTED, NULL);
}

/* Whether a file of that name lies there. */
static int is_there(const char *outdir, const char *name)
{
    char path[SMG_PATH_MAX];

    return !smg_path_join(outdir, name, path) && !access(path, F_OK);
}

/* Whether such a file has the text near its beginning. */
static int says(const char *outdir, const char *name, const char *text)
{
    char path[SMG_PATH_MAX], start[512];
    size_t n = 0;
    FILE *f = smg_path_join(outdir, name, path) ? NULL : fopen(path, "r");

    if (f) {
        n = fread(start, 1, sizeof start - 1, f);
        fclose(f);
    }
    start[n] = '\0';
    return strstr(start, text) != NULL;
}

static int refuse_foreign(const char *outdir, const char *name, const char *why, struct smg_diag *diag)
{
    snprintf(diag->text, sizeof diag->text, "%.250s/%s: exists and is none of this command's (%.100s); choose another folder",
             outdir, name, why);
    return SMG_ERR_INVALID;
}

/* A figure's files lie beside its caption, "figNN. Title."; without one they are somebody's. */
static int check_figure(const char *outdir, const char *id, struct smg_diag *diag)
{
    static const char *const endings[] = {".csv", "-tokens.csv", ".svg", "-narrow.svg", ".png", ".txt"};
    char name[SMG_NAME_MAX + 16], caption[SMG_NAME_MAX + 16], begins[SMG_NAME_MAX + 16], why[SMG_NAME_MAX + 64];

    snprintf(caption, sizeof caption, "%s.txt", id);
    snprintf(begins, sizeof begins, "%s. ", id);
    if (says(outdir, caption, begins))
        return SMG_OK;
    snprintf(why, sizeof why, "no %s beside it says so", caption);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(name, sizeof name, "%s%s", id, endings[i]);
        if (is_there(outdir, name))
            return refuse_foreign(outdir, name, why, diag);
    }
    return SMG_OK;
}

/* What the report is, and what it is made from. */
static int check_report(const char *outdir, struct smg_diag *diag)
{
    static const struct {
        const char *name, *text, *why;
    } files[] = {{"report.html", "<title>SmartGen", "it is no report"},
                 {"validation.csv", "id,row,quantity,condition,", "it has other columns"},
                 {"validation.txt", "Validation: ", "it is no such table"}};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (is_there(outdir, files[i].name) && !says(outdir, files[i].name, files[i].text))
            return refuse_foreign(outdir, files[i].name, files[i].why, diag);
    return SMG_OK;
}

/* A record folder is the result of one run; figures go beside it. */
static int check_folder(const char *outdir, const struct smg_args *a, struct smg_diag *diag)
{
    int status = SMG_OK;

    if (is_there(outdir, "run.json")) {
        snprintf(diag->text, sizeof diag->text, "%.300s: a record folder (it has a run.json); choose another for figures",
                 outdir);
        return SMG_ERR_INVALID;
    }
    for (const char *const *id = smg_figure_ids; *id && !status; id++) {
        int wanted = !a->n_operands;
        for (size_t i = 0; i < a->n_operands; i++)
            wanted |= !strcmp(a->operand[i], *id);
        if (wanted && !strncmp(*id, "fig", 3)) /* the validation is checked with the report */
            status = check_figure(outdir, *id, diag);
    }
    return status ? status : check_report(outdir, diag);
}

/* The report is made from what there is, also when a figure failed. */
int smg_cmd_figures(const struct smg_args *a)
{
    const char *engine = a->engine ? a->engine : smg_engine_find("simgrid") ? "simgrid" : "native";
    struct smg_figure_job job = {run_point,      (void *)(uintptr_t)engine, a->jobs, a->output ? a->output : "out", NULL, NULL,
                                 smg_interrupted};
    struct smg_diag diag = {""}, report = {""};
    struct smg_progress progress;
    int status, reported, is_new = access(job.outdir, F_OK) != 0;

    smg_interrupt_watch();
    if (check_figures(a))
        return SMG_EXIT_USAGE;
    if (smg_cli_engine(engine))
        return SMG_EXIT_USAGE;
    status = check_folder(job.outdir, a, &diag);
    if (!status)
        status = smg_folder_probe(job.outdir, &diag);
    if (!status)
        status = smg_folder_lock(job.outdir, &diag);
    if (status)
        return smg_cli_fail(status, &diag);
    smg_progress_begin(&progress, a, "figures", "points", 0);
    job.progress = smg_progress_points;
    job.progress_arg = &progress;
    status = smg_figures_run(&job, a->operand, a->n_operands, &diag);
    smg_progress_end(&progress);
    if (status && smg_interrupted())
        return interrupted(job.outdir, is_new);
    reported = smg_report_write(job.outdir, &report);
    if (status)
        return unwritten(status, &diag);
    if (reported)
        return unwritten(reported, &report);
    if (!a->quiet)
        printf("figures and report.html in %s\n", job.outdir);
    return SMG_EXIT_OK;
}
