/* smartgen sim, emu: run, write the record folder, say what came out. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "core/scheme.h"
#include "core/stats.h"
#include "emu/emu.h"
#include "experiments/run.h"
#include "experiments/timeline.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* ---- Output ---- */

static double mean(const struct smg_records *r, double (*f)(const struct smg_request_record *))
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        double x = f(&r->request[i]);
        if (isnan(x) || r->request[i].status != SMG_REQUEST_FINISHED)
            continue;
        sum += x;
        n++;
    }
    return n ? sum / n : NAN;
}

/* "0.42 s", or "-" where the quantity does not exist. */
static void print_seconds(const char *name, double seconds)
{
    if (isnan(seconds))
        printf("%s -", name);
    else
        printf("%s %.4g s", name, seconds);
}

/* Failed requests are an outcome that is never silent. */
static void name_failures(const struct smg_run *run)
{
    const struct smg_records *r = run->records;
    uint32_t named = 0;

    for (uint32_t i = 0; i < r->n_requests && named < 8; i++) {
        const struct smg_request_record *q = &r->request[i];
        if (q->status != SMG_REQUEST_FAILED)
            continue;
        named++;
        fprintf(stderr, "smartgen: request %u (%u + %u tokens, instances %u and %u) failed: %s%s\n", i, q->prompt_tokens,
                q->output_tokens, q->prefill_instance, q->decode_instance, smg_status_string(q->reason),
                q->reason == SMG_ERR_CAPACITY ? "; its KV cache is larger than an instance's host memory (host_memory_gib)" : "");
    }
    if (r->failed > named)
        fprintf(stderr, "smartgen: and %u more\n", r->failed - named);
}

static void print_outcome(const struct smg_run *run, const char *output)
{
    const struct smg_records *r = run->records;
    const struct smg_world *w = run->world;
    double ratio = mean(r, smg_record_on_demand_ratio);

    printf("%s, %s on %s: %u finished, %u failed; ", w->scheme->name, run->driver, run->engine, r->finished, r->failed);
    print_seconds("mean TTFT", mean(r, smg_record_ttft_s));
    print_seconds(", TTST", mean(r, smg_record_ttst_s));
    print_seconds(", TBT", mean(r, smg_record_tbt_mean_s));
    if (!isnan(ratio))
        printf("; on-demand ratio %.3f", ratio);
    printf("\n  received MB:");
    for (int p = 0; p < SMG_PATHS; p++)
        printf(" %s %.4g", smg_path_name((enum smg_path)p), (double)run->stats->received_bytes[p] * 1e-6);
    printf("\n");
    if (w->synthetic_importance || w->synthetic_selection || w->synthetic_workload)
        printf("  synthetic:%s%s%s\n", w->synthetic_importance ? " importance" : "", w->synthetic_selection ? " selection" : "",
               w->synthetic_workload ? " workload" : "");
    if (output)
        printf("  records in %s\n", output);
}

/* ---- A record folder with its logs ---- */

struct recorder {
    struct smg_interrupt_guard guard;
    struct smg_outdir dir;
    struct smg_log_writer log;
    struct smg_timeline *timeline;
    struct smg_observer inner; /* of this process of an emulation */
    int active, logging, tracing;
    struct smg_progress progress;
    const struct smg_args *args; /* emu: for the progress of the router */
    const struct smg_world *world;
};

static int file_in(const struct recorder *rec, const char *name, char path[SMG_PATH_MAX])
{
    return smg_outdir_file(&rec->dir, name, path);
}

/* Opens the folder and, when wanted, the logs that this process writes. suffix: "" or ".<instance>". */
static int open_logs(struct recorder *rec, const char *suffix, struct smg_diag *diag)
{
    char name[64], events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status;

    snprintf(name, sizeof name, "events%s.bin", suffix);
    status = file_in(rec, name, events);
    snprintf(name, sizeof name, "actions%s.bin", suffix);
    if (!status)
        status = file_in(rec, name, actions);
    if (!status)
        status = smg_log_create(events, actions, &rec->log, diag);
    return status;
}

static int wants_log(const struct smg_scenario *s)
{
    return s->records.events || s->records.decisions;
}

static int recorder_open(struct recorder *rec, const char *output, const struct smg_scenario *s, int one_process,
                         struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status;

    memset(rec, 0, sizeof *rec);
    if (!output)
        return SMG_OK;
    status = smg_outdir_claim(output, diag);
    if (!status)
        status = smg_outdir_begin(output, &rec->dir, diag);
    if (status)
        return status;
    rec->active = 1;
    if (one_process && wants_log(s)) {
        status = open_logs(rec, "", diag);
        rec->logging = !status;
    }
    if (!status && one_process && s->records.timeline) {
        status = file_in(rec, "timeline.json", path);
        if (!status)
            status = smg_timeline_create(path, &rec->timeline, diag);
    }
    return status;
}

static void remove_logs(const struct recorder *rec, const char *suffix)
{
    static const char *const kinds[] = {"events", "actions"};
    char name[64], path[SMG_PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s.bin", kinds[i], suffix);
        if (!file_in(rec, name, path))
            unlink(path);
    }
}

/* Writes the records and moves the folder into place; also after a failed run, whose records tell what happened. */
static int recorder_commit(struct recorder *rec, const struct smg_run *run, struct smg_diag *diag)
{
    const struct smg_scenario *s = &run->world->scenario;
    int status = SMG_OK, law;

    if (rec->logging)
        status = smg_log_close(&rec->log, diag);
    rec->logging = 0;
    if (rec->timeline && !status)
        status = smg_timeline_close(rec->timeline, diag);
    rec->timeline = NULL;
    if (!rec->active)
        return status;
    law = status ? status : smg_run_write(&rec->dir, run, diag);
    if (law && law != SMG_ERR_CONSERVATION)
        return law;
    if (wants_log(s) && !s->records.events)
        remove_logs(rec, "");
    status = smg_outdir_commit(&rec->dir, diag);
    rec->active = !!status;
    return status ? status : law;
}

static void recorder_abort(struct recorder *rec)
{
    struct smg_diag unused;

    if (rec->logging)
        smg_log_close(&rec->log, &unused);
    if (rec->timeline)
        smg_timeline_close(rec->timeline, &unused);
    if (rec->active)
        smg_outdir_abort(&rec->dir);
}

/* Nothing ran: there is no place for the records. A folder that could be begun and not be written to is no bad input: the disk is
 * full, most likely. */
static int refuse(struct recorder *rec, int status, const struct smg_diag *diag)
{
    int begun = rec->active, code = smg_cli_fail(status, diag);

    recorder_abort(rec);
    return begun ? SMG_EXIT_FAILED : code;
}

/* A log that cannot be written ends the run: the disk is full, most likely. Everything else says itself what it is. */
static int run_failed(const struct recorder *rec, int status, int error, const struct smg_diag *run_diag)
{
    struct smg_diag diag = *run_diag;

    if (status == SMG_ERR_IO && rec->dir.path[0])
        snprintf(diag.text, sizeof diag.text, "%.400s: the event log cannot be written: %s", rec->dir.path, strerror(error));
    return smg_cli_fail(status == SMG_ERR_IO ? SMG_ERR_LOST : status, &diag);
}

/* The end of sim and emu: what the run said comes before what writing said. */
static int finish(struct recorder *rec, const struct smg_run *run, const struct smg_args *a, int status,
                  const struct smg_diag *run_diag)
{
    struct smg_diag diag = {""};
    int error = errno; /* of a log that could not be written */
    int written = run->records ? recorder_commit(rec, run, &diag) : SMG_OK;

    recorder_abort(rec);
    if (status)
        return run_failed(rec, status, error, run_diag);
    if (written) {
        smg_cli_fail(written, &diag);
        return SMG_EXIT_FAILED; /* the input was good */
    }
    if (!a->quiet)
        print_outcome(run, a->output);
    name_failures(run);
    return run->records->failed ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

/* ---- sim ---- */

static int simulate(const struct smg_args *a, const struct smg_world *w, const struct smg_engine_type *engine)
{
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_diag diag = {""};
    struct recorder rec;
    struct smg_observer observer = {NULL, NULL, NULL}, guarded;
    struct smg_interrupt_guard guard;
    struct smg_run run = {w, NULL, NULL, "sim", engine->name, a->n_operands ? a->operand[0] : NULL};
    int status, code;

    smg_interrupt_watch();
    status = recorder_open(&rec, a->output, &w->scenario, 1, &diag);

    if (status)
        return refuse(&rec, status, &diag);
    if (rec.logging || rec.timeline)
        status = smg_recorder_observer(rec.logging ? &rec.log : NULL, rec.timeline, &observer);
    smg_interrupt_observer(&guard, &observer, &guarded);
    smg_progress_observe(&rec.progress, a, "sim", w, &guarded);
    if (!status)
        status = smg_selection_create(w, &selection);
    if (!status)
        status = smg_sim_create(w, engine, selection, &guarded, &sim);
    if (!status)
        status = smg_sim_run(sim, &diag);
    smg_progress_end(&rec.progress);
    if (sim && status != SMG_ERR_INTERRUPTED) {
        run.records = smg_sim_records(sim);
        run.stats = smg_sim_stats(sim);
    }
    code = finish(&rec, &run, a, status, &diag);
    smg_recorder_observer_free(&observer);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    return code;
}

static int unknown_engine(const char *name, const char *const *names)
{
    const char *near = smg_nearest(name, names);

    fprintf(stderr, "smartgen: --engine %s: expected simgrid or native%s%s%s\n", name, near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

int smg_cmd_sim(const struct smg_args *a)
{
    static const char *const names[] = {"simgrid", "native", NULL};
    struct smg_scenario s;
    struct smg_world w;
    char engine_set[SMG_NAME_MAX + 16], *engine = NULL;
    const struct smg_engine_type *type;
    int code;

    if (a->engine) {
        if (strcmp(a->engine, names[0]) && strcmp(a->engine, names[1]))
            return unknown_engine(a->engine, names);
        snprintf(engine_set, sizeof engine_set, "engine=%s", a->engine);
        engine = engine_set;
    }
    code = smg_cli_world(a, engine, &s, &w);
    if (code)
        return code;
    if (a->timeline)
        w.scenario.records.timeline = 1;
    type = smg_engine_find(names[w.scenario.engine]);
    if (type) {
        code = simulate(a, &w, type);
    } else {
        fprintf(stderr, "smartgen: this program was built without engine '%s'; use --engine native\n", names[w.scenario.engine]);
        code = SMG_EXIT_USAGE;
    }
    smg_world_free(&w);
    return code;
}

/* ---- emu ---- */

/* The part of the timeline that the process of an instance writes. */
static int part_of(const struct recorder *rec, unsigned instance, char path[SMG_PATH_MAX])
{
    char name[64];

    snprintf(name, sizeof name, "timeline.%u.part", instance);
    return file_in(rec, name, path);
}

/* Each process logs to files of its own; the parent joins them. */
static int observe(void *arg, uint16_t instance, struct smg_observer *out)
{
    struct recorder *rec = arg;
    struct smg_diag diag;
    char suffix[16], path[SMG_PATH_MAX];
    int status = SMG_OK;

    snprintf(suffix, sizeof suffix, ".%u", instance);
    if (rec->logging)
        status = open_logs(rec, suffix, &diag);
    if (!status && rec->tracing) {
        status = part_of(rec, instance, path);
        if (!status)
            status = smg_timeline_create_part(path, &rec->timeline, &diag);
    }
    if (!status && (rec->logging || rec->tracing))
        status = smg_recorder_observer(rec->logging ? &rec->log : NULL, rec->timeline, &rec->inner);
    if (!status)
        smg_interrupt_observer(&rec->guard, &rec->inner, out);
    if (!status && instance == SMG_ROUTER)
        smg_progress_observe(&rec->progress, rec->args, "emu", rec->world, out);
    return status;
}

static int observed(void *arg, uint16_t instance, struct smg_observer *observer)
{
    struct recorder *rec = arg;
    struct smg_diag diag;
    int status = SMG_OK, closed = SMG_OK;

    (void)instance;
    if (observer->arg && rec->logging)
        status = smg_log_close(&rec->log, &diag);
    if (rec->timeline)
        closed = smg_timeline_close(rec->timeline, &diag);
    rec->timeline = NULL;
    smg_recorder_observer_free(&rec->inner);
    return status ? status : closed;
}

/* The parts of all processes, in one file that recorder_commit closes. */
static int join_timeline(struct recorder *rec, uint32_t instances, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status = file_in(rec, "timeline.json", path);

    if (!status)
        status = smg_timeline_create(path, &rec->timeline, diag);
    for (uint32_t i = 0; i < instances && !status; i++) {
        status = part_of(rec, i, path);
        if (!status)
            status = smg_timeline_append(rec->timeline, path, diag);
        unlink(path);
    }
    return status;
}

static int join_logs(struct recorder *rec, uint32_t instances, struct smg_diag *diag)
{
    struct smg_log_writer all;
    char suffix[16], name[64], events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status = open_logs(rec, "", diag), closed;

    if (status)
        return status;
    all = rec->log;
    for (uint32_t i = 0; i < instances && !status; i++) {
        snprintf(suffix, sizeof suffix, ".%u", i);
        snprintf(name, sizeof name, "events%s.bin", suffix);
        status = file_in(rec, name, events);
        snprintf(name, sizeof name, "actions%s.bin", suffix);
        if (!status)
            status = file_in(rec, name, actions);
        if (!status)
            status = smg_log_append(&all, events, actions, diag);
    }
    closed = smg_log_close(&all, diag);
    for (uint32_t i = 0; i < instances; i++) {
        snprintf(suffix, sizeof suffix, ".%u", i);
        remove_logs(rec, suffix);
    }
    return status ? status : closed;
}

static const struct smg_selection_type *entry_source(void)
{
    for (size_t i = 0; smg_selection_types[i]; i++)
        if (!strcmp(smg_selection_types[i]->name, "entry"))
            return smg_selection_types[i];
    return NULL;
}

/* The joined logs of a run that may have failed. Instances that were ended from outside leave none that can be joined: then the
 * other records are kept, without decisions.csv, which is made of the logs. */
static int take_logs(struct recorder *rec, int failed, struct smg_world *w, struct smg_diag *diag)
{
    struct smg_diag unused;
    int status = join_logs(rec, smg_world_instances(w), failed ? &unused : diag);

    if (!status)
        return SMG_OK;
    remove_logs(rec, "");
    w->scenario.records.decisions = 0;
    return failed ? SMG_OK : status;
}

/* A failed run has no timeline: its processes may have ended in the middle of an event. */
static int take_timeline(struct recorder *rec, int failed, uint32_t instances, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];

    if (!failed)
        return join_timeline(rec, instances, diag);
    for (uint32_t i = 0; i < instances; i++)
        if (!part_of(rec, i, path))
            unlink(path);
    return failed;
}

static int emulate(const struct smg_args *a, struct smg_world *w)
{
    struct smg_emu_config config = {a->fabric ? a->fabric : "ofi", a->device, entry_source(), NULL, NULL, NULL, a->timeout_s};
    struct smg_run run = {w, NULL, NULL, "emu", a->device ? a->device : "tcp", a->n_operands ? a->operand[0] : NULL};
    struct smg_records records;
    struct smg_run_stats stats;
    struct smg_diag diag = {""};
    struct recorder rec;
    int status, code, logs;

    smg_interrupt_watch();
    status = recorder_open(&rec, a->output, &w->scenario, 0, &diag);
    memset(&records, 0, sizeof records);
    memset(&stats, 0, sizeof stats);
    if (status)
        return refuse(&rec, status, &diag);
    logs = rec.logging = rec.active && wants_log(&w->scenario);
    rec.tracing = rec.active && w->scenario.records.timeline;
    config.observe = observe;
    config.observed = observed;
    config.arg = &rec;
    rec.args = a;
    rec.world = w;
    status = smg_emu_run(w, &config, &records, &stats, &diag);
    smg_progress_end(&rec.progress);
    rec.logging = 0; /* each process has closed its own */
    if (logs && status != SMG_ERR_INTERRUPTED) {
        int joined = take_logs(&rec, status, w, &diag);
        status = status ? status : joined;
    }
    if (rec.tracing)
        status = take_timeline(&rec, status, smg_world_instances(w), &diag);
    /* Without an event nothing ran. */
    if (records.request && stats.events && status != SMG_ERR_INTERRUPTED && status != SMG_ERR_IO) {
        run.records = &records;
        run.stats = &stats;
    }
    code = finish(&rec, &run, a, status, &diag);
    smg_records_free(&records);
    smg_run_stats_free(&stats);
    return code;
}

int smg_cmd_emu(const struct smg_args *a)
{
    struct smg_scenario s;
    struct smg_world w;
    int code;

    if (a->role && strcmp(a->role, "all")) {
        fprintf(stderr, "smartgen emu: role '%s' is not available yet; --role all runs every instance on this host\n", a->role);
        return SMG_EXIT_USAGE;
    }
    code = smg_cli_scenario(a, NULL, &s);
    if (code)
        return code;
    if (!smg_cli_given("selection.source"))
        s.selection.source = SMG_SOURCE_ENTRY; /* real bytes need real index lists */
    code = smg_cli_resolve(&s, &w);
    if (code)
        return code;
    smg_cli_warn(&s);
    if (a->timeline)
        w.scenario.records.timeline = 1;
    code = emulate(a, &w);
    smg_world_free(&w);
    return code;
}
