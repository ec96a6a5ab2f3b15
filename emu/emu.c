/* A run: the router in this process, every other instance in a child. */
#include "emu/emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/join.h"
#include "emu/pipe.h"
#include "emu/process.h"

static int wants_end(const struct smg_emu_config *config)
{
    return config->stop && config->stop();
}

/* Whatever fails after somebody wanted the end, that is the reason. */
static int set_up(struct smg_process *p)
{
    struct smg_harness_guard guard;
    int status;

    smg_harness_guard_begin(p->harness, &guard);
    status = smg_process_set_up(p);
    smg_harness_guard_end(&guard);
    return status && wants_end(p->config) ? SMG_ERR_INTERRUPTED : status;
}

static int run(struct smg_process *p)
{
    int status = p->config->observe ? p->config->observe(p->config->arg, p->self, &p->observer) : SMG_OK, closed = SMG_OK;

    if (!status)
        status = set_up(p);
    if (!status)
        status = smg_process_loop(p);
    if (status == SMG_ERR_INTERRUPTED || (status && !p->diag.text[0]))
        smg_process_fail(p, status, "%s", smg_status_string(status));
    if (p->config->observed)
        closed = p->config->observed(p->config->arg, p->self, &p->observer);
    return status ? status : closed;
}

struct child_arg {
    const struct smg_world *world;
    const struct smg_emu_config *config;
    struct smg_links *links;       /* NULL: not shaped */
    struct smg_compute_plan *plan; /* NULL: paced */
    struct smg_fault fault;
    struct smg_diag *diag;         /* of an instance that has joined, which tells its user, too; NULL: the report is enough */
};

static void process_init(struct smg_process *p, const struct child_arg *c, struct smg_harness *h)
{
    const struct smg_world *w = c->world;

    memset(p, 0, sizeof *p);
    p->world = w;
    p->config = c->config;
    p->links = c->links;
    p->plan = c->plan;
    p->fault = c->fault;
    p->harness = h;
    p->self = h->self;
    p->instances = smg_world_instances(w);
    smg_scheme_features(w, &p->features);
}

static int child(void *arg, struct smg_harness *h)
{
    const struct child_arg *c = arg;
    struct smg_process p;
    int status;

    process_init(&p, c, h);
    status = run(&p);
    if (p.stats.digest)
        (void)smg_harness_report(h, status, &p.stats, &p.diag); /* a parent that is gone wants no report */
    if (c->diag)
        *c->diag = p.diag;
    smg_process_tear_down(&p);
    return status;
}

static int copy_records(const struct smg_records *from, struct smg_records *to)
{
    int status = smg_records_init(to, from->n_requests);

    if (status)
        return status;
    memcpy(to->request, from->request, from->n_requests * sizeof *to->request);
    to->finished = from->finished;
    to->failed = from->failed;
    to->lost = from->lost;
    for (size_t i = 0; i < from->n_tokens && !status; i++)
        status = smg_records_token(to, &from->token[i]);
    return status;
}

static int check_device(const char *both, struct smg_diag *diag)
{
    const char *second = both ? strchr(both, ',') : NULL;

    if (!second ? !both || strlen(both) < SMG_DEVICE_BYTES
                : second > both && second - both < SMG_DEVICE_BYTES && second[1] && strlen(second + 1) < SMG_DEVICE_BYTES &&
                      !strchr(second + 1, ','))
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "device '%.120s': expected NAME, or NAME,NAME for prefill and decode instances",
             both);
    return SMG_ERR_INVALID;
}

static int check_world(const struct smg_world *w, int cluster, struct smg_diag *diag)
{
    const char *what = NULL;

    if (w->scenario.detail != SMG_DETAIL_LAYER)
        what = "key 'detail': the emulation works layer by layer, set detail: layer";
    else if (strcmp(w->scheme->name, "hack") == 0)
        what = "key 'scheme': hack keeps codes on a GPU, which the emulation does not have yet; simulate it";
    else if (cluster && w->scenario.emu.link == SMG_LINK_SHAPED)
        what = "key 'emu.link': links are shaped among processes of one host only, set emu.link: free";
    else if (w->scenario.selection.source != SMG_SOURCE_ENTRY)
        what = "key 'selection.source': the emulation needs real index lists, set selection.source: entry";
    if (!what)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "%s", what);
    return SMG_ERR_UNSUPPORTED;
}

static void say(int status, struct smg_diag *diag)
{
    snprintf(diag->text, sizeof diag->text, "%s", smg_status_string(status));
}

/* What a child failed of explains why the router lost it, and one that gives no report why nothing went on. */
static int explain(const struct smg_process *p, int status, int children, const struct smg_diag *theirs, struct smg_diag *diag)
{
    *diag = p->diag;
    if (status == SMG_ERR_INTERRUPTED)
        say(status, diag); /* here: no instance is to be named */
    if (children && (!status || status == SMG_ERR_LOST)) {
        *diag = *theirs;
        return children;
    }
    if (children == SMG_ERR_LOST && status == SMG_ERR_DEADLOCK && strstr(p->diag.text, "no progress"))
        snprintf(diag->text, sizeof diag->text, "%.400s; %.100s", p->diag.text, theirs->text);
    return status;
}

/* Every request is settled: an instance that gives no report any more costs its counts and nothing else. */
static int lost_at_the_end(struct smg_emu_losses *losses, const struct smg_diag *theirs)
{
    size_t n = strlen(losses->text);

    snprintf(losses->text + n, sizeof losses->text - n, "%s%.200s", n ? ", " : "", theirs->text);
    return SMG_OK;
}

/* How long the children have for their reports. After a failure those that can answer do so at once. */
enum { GRACE_S = 10, FAILED_GRACE_S = 4 };

/* What an interrupted run leaves is thrown away. */
static double grace_s(int status)
{
    return status == SMG_ERR_INTERRUPTED ? 0.5 : status ? FAILED_GRACE_S : GRACE_S;
}

/* Each instance is a process: far more of them than processors do nothing but run into time-outs. */
enum { PROCESSES_PER_CORE = 64 };

static int check_count(const struct smg_world *w, const struct smg_emu_config *config, struct smg_diag *diag)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), instances = (long)smg_world_instances(w);

    if (config->cluster || cores < 1 || instances <= PROCESSES_PER_CORE * cores)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text,
             "%ld instances would be as many processes on this host: expected at most %d for each of its %ld cores; simulate "
             "them, or spread "
             "them over hosts (--role)",
             instances, PROCESSES_PER_CORE, cores);
    return SMG_ERR_INVALID;
}

/* What a process needs before it is started, or joins. */
static int prepare(struct child_arg *arg, struct smg_diag *diag)
{
    const struct smg_world *w = arg->world;
    const struct smg_emu_config *config = arg->config;
    const struct smg_fabric_type *type = smg_fabric_find(config->fabric);
    int status = check_world(w, config->cluster != NULL, diag);

    if (!status)
        status = check_count(w, config, diag);
    if (!status)
        status = check_device(config->provider, diag);
    if (!status)
        status = smg_fault_parse(w->scenario.emu.fault, smg_world_instances(w), &arg->fault, diag);
    if (!status && !type)
        status = smg_fabric_unknown(config->fabric, diag);
    if (!status)
        status = smg_fabric_load(type, diag); /* before the fork, so that it is loaded once */
    if (!status && w->scenario.emu.compute == SMG_EMU_KERNELS)
        status = smg_compute_plan_create(w, &arg->plan, diag);
    if (!status && w->scenario.emu.link == SMG_LINK_SHAPED)
        status = smg_links_create(w, &arg->links);
    return status;
}

static void drop(struct child_arg *arg)
{
    smg_links_destroy(arg->links);
    smg_compute_plan_destroy(arg->plan);
}

/* Those that have joined a run that does not begin are told why. */
static void dismiss(uint32_t instances, const int *fd, int status, const struct smg_diag *diag)
{
    struct smg_harness_ending e = {.status = status};
    struct smg_harness h;

    snprintf(e.why, sizeof e.why, "the router ended the run: %.200s", diag->text[0] ? diag->text : smg_status_string(status));
    if (!smg_harness_of_router(instances, fd, &h)) {
        smg_harness_stop(&h, &e);
        smg_harness_close(&h);
        return;
    }
    for (uint32_t i = 1; i < instances; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

/* Waits for the instances of a cluster. */
static int gather(const struct smg_emu_config *config, uint32_t instances, struct smg_harness *h, struct smg_diag *diag)
{
    const struct smg_emu_cluster *c = config->cluster;
    int *fd = malloc(instances * sizeof *fd), listening = -1, status = fd ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t i = 0; i < instances && fd; i++)
        fd[i] = -1;
    if (!status)
        status = smg_join_listen(c->router, &listening, diag);
    if (!status && c->listens)
        c->listens(config->arg, smg_join_port(listening));
    if (!status)
        status = smg_join_gather(listening, instances, &c->token, c->geometry, config->stall_timeout_s, config->stop, fd, diag);
    if (!status)
        status = smg_harness_of_router(instances, fd, h);
    if (status && fd)
        dismiss(instances, fd, status, diag);
    if (listening >= 0)
        close(listening);
    free(fd);
    return status;
}

/* What the instances of a cluster leave: taken in any case, so that nobody is kept waiting; one that fails costs its own. */
static void take_files(const struct smg_emu_config *config, struct smg_harness *h, struct smg_emu_losses *losses)
{
    char path[SMG_EMU_PATH_BYTES];

    for (uint32_t i = 1; i < h->instances && config->cluster && config->file; i++)
        for (unsigned k = 0; h->lost[i] < 2 && config->file(config->arg, (uint16_t)i, k, path, sizeof path); k++)
            if (smg_harness_get_file(h, (uint16_t)i, path, smg_pipe_now_s() + GRACE_S)) {
                losses->silent[i] = 1;
                break;
            }
}

/* For what the router may still have to say, s. */
static const double last_word_s = 1;

/* Why the run is over, where the instance did not find that out by itself. */
static int over(const struct smg_harness *h, int status, struct smg_diag *diag)
{
    struct smg_harness_ending ending;

    if (status == SMG_ERR_INTERRUPTED)
        say(status, diag); /* here: no instance is to be named */
    if (status && status != SMG_ERR_LOST)
        return status;
    switch (smg_harness_told(h, last_word_s, &ending)) {
    case SMG_HARNESS_TOLD:
        if (!ending.status)
            return status;
        snprintf(diag->text, sizeof diag->text, "instance %u: %s", h->self, ending.why);
        break;
    case SMG_HARNESS_GONE:
        snprintf(diag->text, sizeof diag->text, "instance %u: the router is gone before the run was over", h->self);
        break;
    case SMG_HARNESS_SILENT:
        break;
    }
    return SMG_ERR_LOST;
}

int smg_emu_join(const struct smg_world *w, const struct smg_emu_config *config, struct smg_diag *diag)
{
    const struct smg_emu_cluster *c = config->cluster;
    const struct smg_join_hello hello = {c->self, c->geometry, c->token};
    struct child_arg arg = {.world = w, .config = config, .diag = diag};
    char path[SMG_EMU_PATH_BYTES];
    struct smg_harness h;
    int fd = -1, sent = SMG_OK, status = prepare(&arg, diag);

    if (!status)
        status = smg_join_dial(c->router, &hello, config->stall_timeout_s, config->stop, &fd, diag);
    if (!status)
        status = smg_harness_of_instance(smg_world_instances(w), c->self, fd, &h);
    if (status) {
        if (fd >= 0)
            close(fd);
        drop(&arg);
        return status;
    }
    h.stop = config->stop;
    status = over(&h, child(&arg, &h), diag);
    for (unsigned k = 0; !sent && config->file && config->file(config->arg, c->self, k, path, sizeof path); k++)
        sent = smg_harness_put_file(&h, path);
    smg_harness_close(&h);
    drop(&arg);
    return status;
}

/* How the run ended, for the instances of other processes: well, or why not. */
static void tell(struct smg_harness *h, const struct smg_process *p, int status, const struct smg_emu_losses *losses)
{
    const struct smg_records *r = p->agent ? smg_agent_records(p->agent) : NULL;
    struct smg_harness_ending e = {.status = status};

    if (status) {
        snprintf(e.why, sizeof e.why, "the router ended the run: %.200s",
                 status == SMG_ERR_INTERRUPTED || !p->diag.text[0] ? smg_status_string(status) : p->diag.text);
    } else if (r && r->failed) {
        e.status = SMG_ERR_LOST;
        snprintf(e.why, sizeof e.why, "%u of %u requests failed%s%.180s", r->failed, r->n_requests, losses->text[0] ? ": " : "",
                 losses->text);
    }
    smg_harness_stop(h, &e);
}

int smg_emu_run(const struct smg_world *w, const struct smg_emu_config *config, struct smg_records *records,
                struct smg_run_stats *stats, struct smg_diag *diag)
{
    struct child_arg arg = {.world = w, .config = config};
    struct smg_emu_losses losses;
    struct smg_harness h;
    struct smg_process p;
    struct smg_diag theirs;
    int status, children;

    memset(records, 0, sizeof *records);
    memset(stats, 0, sizeof *stats);
    memset(&theirs, 0, sizeof theirs);
    memset(&losses, 0, sizeof losses);
    status = prepare(&arg, diag);
    if (!status)
        status = smg_run_stats_init(stats, w->n_requests);
    if (status == SMG_ERR_NOMEM)
        say(status, diag);
    if (!status && wants_end(config))
        say(status = SMG_ERR_INTERRUPTED, diag);
    if (!status && config->cluster)
        status = gather(config, smg_world_instances(w), &h, diag);
    else if (!status)
        status = smg_harness_fork(smg_world_instances(w), child, &arg, config->stop, &h, diag);
    if (status) {
        drop(&arg);
        return status;
    }
    h.stop = config->stop; /* of a router whose instances have joined, too */
    process_init(&p, &arg, &h);
    status = run(&p);
    if (p.agent && !status)
        smg_process_losses(&p, losses.text, sizeof losses.text);
    tell(&h, &p, status, &losses);
    children = smg_harness_collect(&h, grace_s(status), stats, &theirs);
    if (!status && children == SMG_ERR_LOST)
        children = lost_at_the_end(&losses, &theirs);
    if (p.stats.digest)
        smg_run_stats_add(stats, &p.stats);
    if (p.agent && copy_records(smg_agent_records(p.agent), records) && !status)
        status = SMG_ERR_NOMEM;
    if (losses.text[0] && !records->lost)
        records->lost = 1;
    for (uint32_t i = 1; i < h.instances; i++)
        losses.silent[i] = h.lost[i] > 1;
    take_files(config, &h, &losses);
    if (config->losses)
        *config->losses = losses;
    status = explain(&p, status, children, &theirs, diag);
    if (status && !diag->text[0])
        say(status, diag);
    smg_process_tear_down(&p);
    smg_harness_close(&h);
    drop(&arg);
    return status;
}
