#include "emu/harness.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/harness_priv.h"
#include "emu/pipe.h"

/* Each message begins with its kind, so that the report of a child that failed early, or the word that the run is over, is not
 * taken for what was expected. */
enum kind {
    KIND_PUBLICATION = 0x50554221,
    KIND_READY,
    KIND_REPORT,
    KIND_ALL,
    KIND_START,
    KIND_STOP = SMG_HARNESS_STOP,
    KIND_BEAT = SMG_HARNESS_BEAT
};

/* Between two looks at whether the run shall end, s. */
static const double look_s = 0.1;

struct smg_pulse {
    size_t bytes;
    _Atomic uint32_t beats[]; /* [instances] */
};

double smg_harness_now(const struct smg_harness *h)
{
    return smg_pipe_now_s() - h->start_s;
}

/* ---- Forking ---- */

int smg_harness_make(uint32_t instances, uint16_t self, struct smg_harness *out)
{
    struct smg_harness h = {.instances = instances, .self = self};

    h.pid = calloc(instances, sizeof *h.pid);
    h.fd = malloc(instances * sizeof *h.fd);
    h.lost = calloc(instances, 1);
    h.beats = calloc(instances, sizeof *h.beats);
    if (!h.pid || !h.fd || !h.lost || !h.beats) {
        free(h.pid);
        free(h.fd);
        free(h.lost);
        free(h.beats);
        return SMG_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < instances; i++)
        h.fd[i] = -1;
    *out = h;
    return SMG_OK;
}

static void become_child(struct smg_harness *h, uint16_t self, int fd)
{
    for (uint32_t i = 1; i < h->instances; i++)
        if (h->fd[i] >= 0)
            close(h->fd[i]);
    h->self = self;
    h->fd[0] = fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGTERM, SIG_IGN);
}

static int fork_one(struct smg_harness *h, uint16_t i, int (*child)(void *, struct smg_harness *), void *arg)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return SMG_ERR_IO;
    fflush(NULL); /* buffered output must not be written twice */
    h->pid[i] = fork();
    if (h->pid[i] < 0) {
        close(pair[0]);
        close(pair[1]);
        return SMG_ERR_IO;
    }
    if (!h->pid[i]) {
        int status;
        close(pair[0]);
        become_child(h, i, pair[1]);
        status = child(arg, h);
        close(pair[1]);
        fflush(NULL);
        _exit(status ? 1 : 0);
    }
    close(pair[1]);
    h->fd[i] = pair[0];
    return SMG_OK;
}

int smg_harness_fork(uint32_t instances, int (*child)(void *, struct smg_harness *), void *arg, int (*stop)(void),
                     struct smg_harness *out, struct smg_diag *diag)
{
    struct smg_harness h;
    size_t bytes = sizeof(struct smg_pulse) + instances * sizeof(_Atomic uint32_t);
    void *pulse = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = pulse == MAP_FAILED ? SMG_ERR_NOMEM : smg_harness_make(instances, 0, &h);

    if (status) {
        snprintf(diag->text, sizeof diag->text, "cannot start the instances: %s", smg_status_string(status));
        if (pulse != MAP_FAILED)
            munmap(pulse, bytes);
        return status;
    }
    h.pulse = pulse;
    h.pulse->bytes = bytes;
    for (uint32_t i = 1; i < instances && !status; i++)
        status = stop && stop() ? SMG_ERR_INTERRUPTED : fork_one(&h, (uint16_t)i, child, arg);
    if (status) {
        if (status == SMG_ERR_INTERRUPTED)
            snprintf(diag->text, sizeof diag->text, "%s", smg_status_string(status));
        else
            snprintf(diag->text, sizeof diag->text, "cannot start the instances: %s", strerror(errno));
        for (uint32_t i = 1; i < instances; i++)
            smg_harness_end(&h, (uint16_t)i);
        smg_harness_close(&h);
        return status;
    }
    h.stop = stop;
    *out = h;
    return SMG_OK;
}

/* ---- Exchange ---- */

/* instance: who kept the parent waiting, or is gone. */
static int not_up(int status, uint32_t instance, double seconds, const char *before, struct smg_diag *diag)
{
    if (status == SMG_ERR_INTERRUPTED)
        snprintf(diag->text, sizeof diag->text, "%s", smg_status_string(status));
    else if (status == SMG_ERR_DEADLOCK)
        snprintf(diag->text, sizeof diag->text, "instance %u does not answer: nothing from it for %.3g s, before %s", instance,
                 seconds, before);
    else if (status && instance)
        snprintf(diag->text, sizeof diag->text, "instance %u ended before %s", instance, before);
    else if (status)
        snprintf(diag->text, sizeof diag->text, "another instance ended before %s", before);
    return status;
}

/* Looks at stop() now and then. */
static int get_kind(struct smg_harness *h, uint32_t i, uint32_t kind, double end_s)
{
    for (;;) {
        double now_s = smg_pipe_now_s(), until_s = now_s + look_s < end_s ? now_s + look_s : end_s;
        int status = smg_pipe_get_kind(h->fd[i], kind, until_s);
        if (status != SMG_ERR_DEADLOCK || until_s >= end_s)
            return status;
        if (h->stop && h->stop())
            return SMG_ERR_INTERRUPTED;
    }
}

static int put_kind(struct smg_harness *h, uint32_t i, uint32_t kind, const void *data, size_t bytes, double end_s)
{
    int status = smg_pipe_put_kind(h->fd[i], kind, end_s);

    return status ? status : smg_pipe_put(h->fd[i], data, bytes, end_s);
}

static int parent_swap(struct smg_harness *h, double seconds, struct smg_publication *all, uint32_t *instance)
{
    double end_s = smg_pipe_now_s() + seconds;
    int status = SMG_OK;

    for (uint32_t i = 1; i < h->instances && !status; i++) {
        *instance = i;
        status = get_kind(h, i, KIND_PUBLICATION, end_s);
        if (!status)
            status = smg_pipe_get(h->fd[i], &all[i], sizeof all[i], end_s);
    }
    for (uint32_t i = 1; i < h->instances && !status; i++) {
        *instance = i;
        status = put_kind(h, i, KIND_ALL, all, h->instances * sizeof *all, smg_pipe_now_s() + seconds);
    }
    return status;
}

int smg_harness_swap(struct smg_harness *h, double seconds, const struct smg_publication *own, struct smg_publication *all,
                     struct smg_diag *diag)
{
    uint32_t instance = 0;
    int status;

    all[h->self] = *own;
    if (!h->self) {
        status = parent_swap(h, seconds, all, &instance);
    } else {
        status = put_kind(h, 0, KIND_PUBLICATION, own, sizeof *own, INFINITY);
        if (!status)
            status = get_kind(h, 0, KIND_ALL, INFINITY);
        if (!status)
            status = smg_pipe_get(h->fd[0], all, h->instances * sizeof *all, INFINITY);
    }
    return not_up(status, instance, seconds, "the cluster was up", diag);
}

static int parent_start(struct smg_harness *h, double seconds, uint32_t *instance)
{
    double end_s = smg_pipe_now_s() + seconds;
    int status = SMG_OK;

    for (uint32_t i = 1; i < h->instances && !status; i++) {
        *instance = i;
        status = get_kind(h, i, KIND_READY, end_s);
    }
    h->start_s = smg_pipe_now_s();
    for (uint32_t i = 1; i < h->instances && !status; i++) {
        *instance = i;
        status = put_kind(h, i, KIND_START, &h->start_s, sizeof h->start_s, smg_pipe_now_s() + seconds);
    }
    return status;
}

int smg_harness_start(struct smg_harness *h, double seconds, struct smg_diag *diag)
{
    uint32_t instance = 0;
    int status;

    if (!h->self) {
        status = parent_start(h, seconds, &instance);
    } else {
        status = smg_pipe_put_kind(h->fd[0], KIND_READY, INFINITY);
        if (!status)
            status = get_kind(h, 0, KIND_START, INFINITY);
        if (!status)
            status = smg_pipe_get(h->fd[0], &h->start_s, sizeof h->start_s, INFINITY);
        if (!h->pulse)
            h->start_s = smg_pipe_now_s(); /* another host, another clock */
    }
    return not_up(status, instance, seconds, "the run started", diag);
}

/* ---- Reports ---- */

struct report {
    int32_t status;
    uint32_t n_requests;
    struct smg_run_stats stats; /* pointers are meaningless here */
    struct smg_diag diag;
};

int smg_harness_report(struct smg_harness *h, int status, const struct smg_run_stats *stats, const struct smg_diag *diag)
{
    struct report r;
    int sent;

    memset(&r, 0, sizeof r);
    r.status = status;
    r.n_requests = stats->n_requests;
    r.stats = *stats;
    r.diag = *diag;
    sent = smg_pipe_put_kind(h->fd[0], KIND_REPORT, INFINITY);
    if (!sent)
        sent = smg_pipe_put(h->fd[0], &r, sizeof r, INFINITY);
    if (!sent)
        sent = smg_pipe_put(h->fd[0], stats->duplicate_bytes, stats->n_requests * sizeof(uint64_t), INFINITY);
    return sent ? sent : smg_pipe_put(h->fd[0], stats->digest, stats->n_requests * sizeof(uint64_t), INFINITY);
}

/* What a child said before its report was meant for a cluster that did not come up, or was a sign of life. */
static int skip_to_report(int fd, double end_s)
{
    struct smg_publication unused;
    int status = smg_pipe_get_kind(fd, KIND_REPORT, end_s);

    if (status == SMG_ERR_LOST && !smg_pipe_get_kind(fd, KIND_PUBLICATION, end_s)) {
        status = smg_pipe_get(fd, &unused, sizeof unused, end_s);
        status = status ? status : smg_pipe_get_kind(fd, KIND_REPORT, end_s);
    }
    if (status == SMG_ERR_LOST && !smg_pipe_get_kind(fd, KIND_READY, end_s))
        status = smg_pipe_get_kind(fd, KIND_REPORT, end_s);
    while (status == SMG_ERR_LOST && !smg_pipe_get_kind(fd, KIND_BEAT, end_s))
        status = smg_pipe_get_kind(fd, KIND_REPORT, end_s);
    return status;
}

static int collect_one(struct smg_harness *h, uint32_t i, double end_s, struct smg_run_stats *stats, struct report *r)
{
    struct smg_run_stats theirs;
    int status = skip_to_report(h->fd[i], end_s);

    if (!status)
        status = smg_pipe_get(h->fd[i], r, sizeof *r, end_s);
    if (!status && r->n_requests != stats->n_requests)
        status = SMG_ERR_LOST;
    if (status)
        return status;
    status = smg_run_stats_init(&theirs, r->n_requests);
    if (status)
        return status;
    status = smg_pipe_get(h->fd[i], theirs.duplicate_bytes, r->n_requests * sizeof(uint64_t), end_s);
    if (!status)
        status = smg_pipe_get(h->fd[i], theirs.digest, r->n_requests * sizeof(uint64_t), end_s);
    if (!status) {
        r->stats.duplicate_bytes = theirs.duplicate_bytes;
        r->stats.digest = theirs.digest;
        smg_run_stats_add(stats, &r->stats);
    }
    smg_run_stats_free(&theirs);
    return status;
}

/* Waits for the children; those that have not ended after 5 s are killed, of a run that somebody wants to end sooner. */
static void reap(struct smg_harness *h)
{
    double end_s = smg_pipe_now_s() + (h->stop && h->stop() ? 0.5 : 5);

    for (uint32_t i = 1; i < h->instances; i++) {
        pid_t ended = h->pid[i] > 0 ? 0 : -1;
        while (!ended || (ended < 0 && h->pid[i] > 0 && errno == EINTR)) {
            ended = waitpid(h->pid[i], NULL, WNOHANG);
            if (ended)
                continue;
            if (smg_pipe_now_s() > end_s)
                kill(h->pid[i], SIGKILL);
            poll(NULL, 0, 2);
        }
        h->pid[i] = 0;
    }
}

/* What a child failed of explains more than that it gave no report, and that more than that it lost another one. */
enum blame { FINE, LOST_ANOTHER, NO_REPORT, FAILED };

static enum blame blame_of(struct smg_harness *h, uint32_t i, double end_s, struct smg_run_stats *stats, struct report *r)
{
    int status, given_up;

    memset(r, 0, sizeof *r);
    status = collect_one(h, i, end_s, stats, r);
    if (!status && h->lost[i] && (r->status == SMG_ERR_LOST || r->status == SMG_ERR_NOMEM))
        return FINE;
    if (!status)
        return !r->status ? FINE : r->status == SMG_ERR_LOST ? LOST_ANOTHER : FAILED;
    smg_harness_end(h, (uint16_t)i);
    given_up = h->lost[i];
    h->lost[i] = 2;
    if (given_up)
        return FINE;
    memset(r, 0, sizeof *r);
    r->status = SMG_ERR_LOST;
    snprintf(r->diag.text, sizeof r->diag.text,
             status == SMG_ERR_DEADLOCK ? "instance %u does not answer" : "instance %u ended without a report", i);
    return NO_REPORT;
}

int smg_harness_collect(struct smg_harness *h, double seconds, struct smg_run_stats *stats, struct smg_diag *diag)
{
    double end_s = smg_pipe_now_s() + seconds;
    enum blame worst = FINE;
    int status = SMG_OK;

    for (uint32_t i = 1; i < h->instances; i++) {
        struct report r;
        enum blame found = blame_of(h, i, end_s, stats, &r);
        if (found <= worst)
            continue;
        worst = found;
        status = r.status;
        *diag = r.diag;
    }
    reap(h);
    return status;
}

/* ---- What becomes of the children ---- */

void smg_harness_beat(struct smg_harness *h)
{
    if (h->pulse)
        atomic_fetch_add_explicit(&h->pulse->beats[h->self], 1, memory_order_relaxed);
    else if (h->self)
        smg_harness_send_beat(h);
}

uint32_t smg_harness_beats(const struct smg_harness *h, uint32_t instance)
{
    return h->pulse ? atomic_load_explicit(&h->pulse->beats[instance], memory_order_relaxed) : h->beats[instance];
}

/* How long the end of a process, whose socket is closed already, may take to be seen, s. */
static const double ending_s = 0.2;

static void tell_end(struct smg_harness *h, uint16_t instance, char *how, size_t how_bytes)
{
    double until_s = smg_pipe_now_s() + ending_s;
    siginfo_t info = {.si_pid = 0};

    while (h->pid[instance] > 0 && !waitid(P_PID, (id_t)h->pid[instance], &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid &&
           smg_pipe_now_s() < until_s)
        poll(NULL, 0, 1);
    if (info.si_pid && info.si_code == CLD_EXITED)
        snprintf(how, how_bytes, "ended with status %d", info.si_status);
    else if (info.si_pid)
        snprintf(how, how_bytes, "signal %d", info.si_status);
    else
        snprintf(how, how_bytes, h->pulse ? "ended" : "connection closed");
}

enum smg_child smg_harness_child(struct smg_harness *h, uint16_t instance, int *status, char *how, size_t how_bytes)
{
    struct {
        uint32_t kind;
        int32_t status;
    } head = {0, 0};
    siginfo_t info = {.si_pid = 0};
    ssize_t n;
    int ended;

    if (!h->pulse)
        smg_harness_take_beats(h, instance);
    n = recv(h->fd[instance], &head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    ended = h->pid[instance] > 0 && !waitid(P_PID, (id_t)h->pid[instance], &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;

    if (n == (ssize_t)sizeof head && head.kind == KIND_REPORT) {
        *status = head.status;
        return SMG_CHILD_REPORTED;
    }
    if (n && !ended)
        return SMG_CHILD_RUNS;
    if (how)
        tell_end(h, instance, how, how_bytes);
    return SMG_CHILD_GONE;
}

void smg_harness_end(struct smg_harness *h, uint16_t instance)
{
    if (h->pid[instance] > 0)
        kill(h->pid[instance], SIGKILL);
    else if (!h->pulse)
        (void)shutdown(h->fd[instance], SHUT_RDWR);
}

void smg_harness_lose(struct smg_harness *h, uint16_t instance)
{
    h->lost[instance] |= 1;
}

int smg_harness_halted(struct smg_harness *h, uint32_t instance)
{
    siginfo_t info = {.si_pid = 0};

    return h->pid[instance] > 0 && !waitid(P_PID, (id_t)h->pid[instance], &info, WSTOPPED | WNOHANG | WNOWAIT) && info.si_pid;
}

void smg_harness_close(struct smg_harness *h)
{
    for (uint32_t i = 1; !h->self && i < h->instances; i++)
        if (h->fd[i] < 0 && h->pid[i] > 0)
            kill(h->pid[i], SIGKILL);
    for (uint32_t i = 0; i < h->instances; i++)
        if (h->fd[i] >= 0)
            close(h->fd[i]);
    if (!h->self)
        reap(h);
    if (h->pulse)
        munmap(h->pulse, h->pulse->bytes);
    free(h->pid);
    free(h->fd);
    free(h->lost);
    free(h->beats);
    h->beats = NULL;
    h->pulse = NULL;
    h->lost = NULL;
    h->pid = NULL;
    h->fd = NULL;
    h->instances = 0;
}
