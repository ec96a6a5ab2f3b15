/* smartgen emu: run on the transfer engine, write the record folder, say what came out. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/emu_role.h"
#include "cli/interrupt.h"
#include "cli/outcome.h"
#include "cli/plan_words.h"
#include "cli/progress.h"
#include "core/plan.h"
#include "core/stats.h"
#include "emu/emu.h"
#include "experiments/sweep.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* Why a log or a timeline could not be written: what the first process met that met something. */
struct unwritten {
    atomic_flag taken;
    struct smg_diag diag;
};

/* What the processes of an emulation share by fork; each has its own copy. */
struct emu_run {
    struct smg_run_folder folder;
    struct smg_interrupt_guard guard;
    struct smg_observer inner; /* of this process */
    int tracing;
    struct smg_progress progress; /* of the router */
    const struct smg_args *args;
    const struct smg_world *world;
    struct unwritten *unwritten; /* shared by all processes, NULL: no folder */
    struct smg_emu_losses losses;
    int logs; /* each process writes its own */
};

static int report(const struct emu_run *rec, int status, const struct smg_diag *diag)
{
    if (status && rec->unwritten && !atomic_flag_test_and_set(&rec->unwritten->taken))
        rec->unwritten->diag = *diag;
    return status;
}

/* The part of the timeline that the process of an instance writes. */
static int part_of(const struct emu_run *rec, unsigned instance, char path[SMG_PATH_MAX])
{
    char name[64];

    snprintf(name, sizeof name, "timeline.%u.part", instance);
    return smg_run_folder_file(&rec->folder, name, path);
}

/* Each process logs to files of its own; the parent joins them. */
static int observe(void *arg, uint16_t instance, struct smg_observer *out)
{
    struct emu_run *rec = arg;
    struct smg_diag diag = {""};
    char suffix[16], path[SMG_PATH_MAX];
    int status = SMG_OK;

    snprintf(suffix, sizeof suffix, ".%u", instance);
    if (rec->folder.logging)
        status = smg_run_folder_open_logs(&rec->folder, suffix, &diag);
    if (!status && rec->tracing) {
        status = part_of(rec, instance, path);
        if (!status)
            status = smg_timeline_create_part(path, &rec->folder.timeline, &diag);
    }
    report(rec, status, &diag);
    if (!status && (rec->folder.logging || rec->tracing))
        status = smg_recorder_observer(rec->folder.logging ? &rec->folder.log : NULL, rec->folder.timeline, &rec->inner);
    if (!status)
        smg_interrupt_observer(&rec->guard, &rec->inner, out);
    if (!status && instance == SMG_ROUTER)
        smg_progress_observe(&rec->progress, rec->args, "emu", rec->world, out);
    return status;
}

static int observed(void *arg, uint16_t instance, struct smg_observer *observer)
{
    struct emu_run *rec = arg;
    struct smg_diag diag = {""};
    int status = SMG_OK, closed = SMG_OK;

    (void)instance;
    if (observer->arg && rec->folder.logging)
        status = report(rec, smg_run_folder_close_log(&rec->folder, &rec->folder.log, &diag), &diag);
    if (rec->folder.timeline)
        closed = report(rec, smg_timeline_close(rec->folder.timeline, &diag), &diag);
    rec->folder.timeline = NULL;
    smg_recorder_observer_free(&rec->inner);
    return status ? status : closed;
}

/* The parts of all processes, in one file that smg_run_folder_commit closes. */
static int join_timeline(struct emu_run *rec, uint32_t instances, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status = smg_run_folder_file(&rec->folder, "timeline.json", path);

    if (!status)
        status = smg_timeline_create(path, &rec->folder.timeline, diag);
    for (uint32_t i = 0; i < instances && !status; i++) {
        status = part_of(rec, i, path);
        if (!status && !rec->losses.silent[i]) /* such a part may end in the middle of an event */
            status = smg_timeline_append(rec->folder.timeline, path, diag);
        unlink(path);
    }
    return status;
}

static int join_logs(struct emu_run *rec, uint32_t instances, struct smg_diag *diag)
{
    struct smg_log_writer all;
    struct smg_diag unused;
    char suffix[16], events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status = smg_run_folder_open_logs(&rec->folder, "", diag), closed;

    if (status)
        return status;
    all = rec->folder.log;
    for (uint32_t i = 0; i < instances && !status; i++) {
        snprintf(suffix, sizeof suffix, ".%u", i);
        status = smg_run_folder_log_paths(&rec->folder, suffix, events, actions);
        if (!status)
            status = smg_log_append(&all, events, actions, diag);
        if (rec->losses.silent[i]) /* its log may end anywhere: what there is of it replays */
            status = SMG_OK;
    }
    closed = smg_run_folder_close_log(&rec->folder, &all, status ? &unused : diag);
    for (uint32_t i = 0; i < instances; i++) {
        snprintf(suffix, sizeof suffix, ".%u", i);
        smg_run_folder_remove_logs(&rec->folder, suffix);
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
static int take_logs(struct emu_run *rec, int failed, struct smg_world *w, struct smg_diag *diag)
{
    struct smg_diag unused;
    int status = join_logs(rec, smg_world_instances(w), failed ? &unused : diag);

    if (!status)
        return SMG_OK;
    smg_run_folder_remove_logs(&rec->folder, "");
    w->scenario.records.decisions = 0;
    return failed ? SMG_OK : status;
}

/* A failed run has no timeline: its processes may have ended in the middle of an event. */
static int take_timeline(struct emu_run *rec, int failed, uint32_t instances, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];

    if (!failed)
        return join_timeline(rec, instances, diag);
    for (uint32_t i = 0; i < instances; i++)
        if (!part_of(rec, i, path))
            unlink(path);
    return failed;
}

/* NULL: not wanted, or no memory; then a message lacks its reason. */
static struct unwritten *share_unwritten(int wanted)
{
    void *at =
        wanted ? mmap(NULL, sizeof(struct unwritten), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    struct unwritten *u = at == MAP_FAILED ? NULL : at;

    if (u)
        atomic_flag_clear(&u->taken);
    return u;
}

/* The files that an instance leaves: its two logs and its part of the timeline, where they are written here. */
static int left(void *arg, uint16_t instance, unsigned k, char *path, size_t path_bytes)
{
    const struct emu_run *rec = arg;
    char events[SMG_PATH_MAX] = "", actions[SMG_PATH_MAX] = "", part[SMG_PATH_MAX] = "", suffix[16];
    const char *of[3] = {events, actions, part};

    if (k >= 3)
        return 0;
    snprintf(suffix, sizeof suffix, ".%u", instance);
    if (rec->logs && smg_run_folder_log_paths(&rec->folder, suffix, events, actions))
        events[0] = actions[0] = '\0';
    if (rec->tracing && part_of(rec, instance, part))
        part[0] = '\0';
    snprintf(path, path_bytes, "%s", of[k]);
    return 1;
}

static void listens(void *arg, uint16_t port)
{
    const struct emu_run *rec = arg;

    if (!rec->args->quiet)
        fprintf(stderr, "smartgen emu: the router waits for %u instances at port %u\n", smg_world_instances(rec->world) - 1,
                port);
}

/* All but arg and losses. */
static struct smg_emu_config config_of(const struct smg_args *a, const struct smg_emu_cluster *cluster)
{
    return (struct smg_emu_config){.fabric = a->fabric ? a->fabric : "ofi",
                                   .provider = a->device,
                                   .selection = entry_source(),
                                   .observe = observe,
                                   .observed = observed,
                                   .stall_timeout_s = a->timeout_s,
                                   .cluster = cluster,
                                   .stop = smg_interrupted,
                                   .file = left};
}

/* *status_out: how the run itself ended; SMG_ERR_LOST also where it went on without an instance. */
static int emulate(const struct smg_args *a, struct smg_world *w, const struct smg_emu_cluster *cluster, int *status_out)
{
    struct smg_emu_config config = config_of(a, cluster);
    const char *provider = a->device ? a->device : strcmp(config.fabric, "ofi") ? config.fabric : "tcp";
    struct smg_run run = {w, NULL, NULL, "emu", provider, a->n_operands ? a->operand[0] : NULL, NULL};
    struct smg_records records;
    struct smg_run_stats stats;
    struct smg_diag diag = {""};
    static struct emu_run rec;
    int status, code, logs;

    memset(&rec, 0, sizeof rec);
    rec.args = a;
    rec.world = w;
    status = smg_run_folder_open(&rec.folder, a->output, &w->scenario, 0, &diag);
    memset(&records, 0, sizeof records);
    memset(&stats, 0, sizeof stats);
    if (status)
        return smg_outcome_refuse(&rec.folder, status, &diag);
    logs = rec.logs = rec.folder.logging = rec.folder.active && smg_run_folder_wants_log(&w->scenario);
    rec.tracing = rec.folder.active && w->scenario.records.timeline;
    rec.unwritten = share_unwritten(rec.folder.active);
    config.arg = &rec;
    config.losses = &rec.losses;
    status = smg_emu_run(w, &config, &records, &stats, &diag);
    *status_out = !status && rec.losses.text[0] ? SMG_ERR_LOST : status;
    smg_progress_end(&rec.progress);
    rec.folder.logging = 0; /* each process has closed its own */
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
        run.losses = rec.losses.text[0] ? rec.losses.text : NULL;
    }
    if (status == SMG_ERR_IO && rec.unwritten && rec.unwritten->diag.text[0])
        diag = rec.unwritten->diag;
    code = smg_outcome_finish(&rec.folder, &run, a, status, &diag);
    if (rec.unwritten)
        munmap(rec.unwritten, sizeof *rec.unwritten);
    smg_records_free(&records);
    smg_run_stats_free(&stats);
    return code;
}

/* An instance of a run over several hosts. Its logs go to the router, so they lie in a folder that ends with it. */
static int be_instance(const struct smg_args *a, struct smg_world *w, const struct smg_emu_cluster *cluster, int *status_out)
{
    struct smg_emu_config config = config_of(a, cluster);
    const char *base = getenv("TMPDIR");
    char folder[SMG_PATH_MAX];
    struct smg_diag diag = {""};
    static struct emu_run rec;
    int status, n;

    memset(&rec, 0, sizeof rec);
    rec.args = a;
    rec.world = w;
    n = snprintf(folder, sizeof folder, "%s/smartgen-instance-XXXXXX", base && *base ? base : "/tmp");
    if (n >= (int)sizeof folder || !mkdtemp(folder)) {
        snprintf(diag.text, sizeof diag.text, "%.400s: no folder for logs can be made there", folder);
        return smg_cli_fail(*status_out = SMG_ERR_IO, &diag);
    }
    status = smg_run_folder_open(&rec.folder, folder, &w->scenario, 0, &diag);
    rec.logs = rec.folder.logging = rec.tracing = !status; /* the router takes what it wants */
    config.arg = &rec;
    if (!status)
        status = smg_emu_join(w, &config, &diag);
    rec.folder.logging = 0; /* closed */
    smg_run_folder_abort(&rec.folder);
    rmdir(folder);
    *status_out = status;
    if (status)
        return smg_cli_fail(status, &diag);
    if (!a->quiet)
        printf("smartgen, instance %u (%s): the run is over; its records are the router's\n", cluster->self,
               smg_emu_role_name(w, cluster->self));
    return SMG_EXIT_OK;
}

/* One process of a run over several hosts. */
static int take_part(const struct smg_args *a, struct smg_world *w, int *status_out)
{
    struct smg_emu_cluster cluster;
    int code = smg_emu_role(a, w, &cluster);

    cluster.listens = listens;
    if (code)
        return code;
    if (!cluster.self)
        return emulate(a, w, &cluster, status_out);
    if (a->output && strcmp(a->role, "auto")) { /* one command line for all ranks */
        fprintf(stderr, "smartgen emu: --output: the router writes the record folder, not instance %u\n", cluster.self);
        return SMG_EXIT_USAGE;
    }
    return be_instance(a, w, &cluster, status_out);
}

/* Real bytes take real time: a scenario made for the simulation may ask for more than a host moves while others wait. */
#define MANY_BYTES 2e9

/* What a run sends at least, by the closed forms: on demand, of the first step only. */
static double least_bytes(const struct smg_world *w)
{
    struct smg_plan p;

    if (smg_plan_make(w, &p))
        return 0;
    return (double)w->n_requests * ((double)p.budget.metadata_bytes + (double)p.proactive_bytes + (double)p.on_demand_bytes_step +
                                    (double)p.speculative_bytes);
}

static void print_many(const char *before, double bytes, const char *after)
{
    char text[32];

    smg_plan_bytes(bytes, text, sizeof text);
    fprintf(stderr, "smartgen: %sat least %s %s; %s/emu-small.yaml is a small scenario, made for this\n", before, text, after,
            smg_sweeps_dir());
}

/* A bare word that is no file there: bench or measure, misspelt? */
static int misspelt(const char *word)
{
    static const char *const actions[] = {"bench", "measure", NULL};
    const char *near = strpbrk(word, "./") || !access(word, F_OK) ? NULL : smg_nearest(word, actions);

    if (near)
        fprintf(stderr, "smartgen emu: '%s' is neither a scenario file nor an action; did you mean '%s'?\n", word, near);
    return near != NULL;
}

int smg_cmd_emu(const struct smg_args *a)
{
    struct smg_scenario s;
    struct smg_world w;
    double bytes;
    int code, cluster, status = SMG_OK;

    smg_interrupt_watch();
    if (smg_cli_fabric(a->fabric)) /* before a word about what the run would do */
        return SMG_EXIT_USAGE;
    if (a->n_operands && !strcmp(a->operand[0], "bench"))
        return smg_emu_bench(a);
    if (a->n_operands && !strcmp(a->operand[0], "measure"))
        return smg_emu_measure_files(a);
    if (a->n_operands && misspelt(a->operand[0]))
        return SMG_EXIT_USAGE;
    if (a->json || a->block || a->batch || a->queues || a->entries || a->entry_bytes || a->depth || a->places || a->memory ||
        a->samples || a->seconds > 0) {
        fprintf(stderr, "smartgen emu: --json and the options of the bench are for smartgen emu bench and measure\n");
        return SMG_EXIT_USAGE;
    }
    cluster = smg_emu_role_given(a, &code);
    if (code)
        return code;
    code = smg_cli_scenario(a, NULL, &s);
    if (code)
        return code;
    if (!smg_cli_given("selection.source"))
        s.selection.source = SMG_SOURCE_ENTRY; /* real bytes need real index lists */
    if (cluster && !smg_cli_given("emu.link"))
        s.emu.link = SMG_LINK_FREE; /* hosts have links of their own */
    code = smg_cli_resolve(&s, &w);
    if (code)
        return code;
    smg_cli_warn(&s, &w);
    smg_cli_timeline(a, &w);
    bytes = least_bytes(&w);
    if (bytes > MANY_BYTES)
        print_many("warning: ", bytes, "are to be moved and verified on this host");
    code = cluster ? take_part(a, &w, &status) : emulate(a, &w, NULL, &status);
    /* No answer within the time, from whichever side it was seen. */
    if (bytes > MANY_BYTES && (status == SMG_ERR_DEADLOCK || status == SMG_ERR_LOST))
        print_many("", bytes, "were to be moved: a longer --timeout gives them more time");
    smg_world_free(&w);
    return code;
}
