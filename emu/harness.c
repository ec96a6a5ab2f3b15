#include "emu/harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double monotonic_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double smg_harness_now(const struct smg_harness *h)
{
    return monotonic_s() - h->start_s;
}

/* ---- Whole messages over stream sockets ---- */

static int put(int fd, const void *data, size_t bytes)
{
    const char *p = data;

    while (bytes) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return SMG_ERR_LOST;
        p += n;
        bytes -= (size_t)n;
    }
    return SMG_OK;
}

static int get(int fd, void *data, size_t bytes)
{
    char *p = data;

    while (bytes) {
        ssize_t n = recv(fd, p, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return SMG_ERR_LOST;
        p += n;
        bytes -= (size_t)n;
    }
    return SMG_OK;
}

/* Each message begins with its kind, so that the report of a child that failed early is not taken for what was expected. */
enum kind { KIND_PUBLICATION = 0x50554221, KIND_READY, KIND_REPORT };

static int put_kind(int fd, uint32_t kind)
{
    return put(fd, &kind, sizeof kind);
}

/* Takes the next message's kind; one that is not wanted is left where it is. */
static int get_kind(int fd, uint32_t wanted)
{
    uint32_t kind = 0;
    ssize_t n;

    do
        n = recv(fd, &kind, sizeof kind, MSG_PEEK | MSG_WAITALL);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof kind || kind != wanted)
        return SMG_ERR_LOST;
    return get(fd, &kind, sizeof kind);
}

/* ---- Forking ---- */

static void become_child(struct smg_harness *h, uint16_t self, int fd)
{
    for (uint32_t i = 1; i < h->instances; i++)
        if (h->fd[i] >= 0)
            close(h->fd[i]);
    h->self = self;
    h->fd[0] = fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the parent decides */
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

int smg_harness_fork(uint32_t instances, int (*child)(void *, struct smg_harness *), void *arg, struct smg_harness *out,
                     struct smg_diag *diag)
{
    struct smg_harness h = {.instances = instances};
    int status = SMG_OK;

    h.pid = calloc(instances, sizeof *h.pid);
    h.fd = malloc(instances * sizeof *h.fd);
    if (!h.pid || !h.fd) {
        free(h.pid);
        free(h.fd);
        return SMG_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < instances; i++)
        h.fd[i] = -1;
    for (uint32_t i = 1; i < instances && !status; i++)
        status = fork_one(&h, (uint16_t)i, child, arg);
    if (status) {
        snprintf(diag->text, sizeof diag->text, "cannot start the instances: %s", strerror(errno));
        smg_harness_close(&h);
        return status;
    }
    *out = h;
    return SMG_OK;
}

/* ---- Exchange ---- */

static int parent_swap(struct smg_harness *h, struct smg_publication *all)
{
    int status = SMG_OK;

    for (uint32_t i = 1; i < h->instances && !status; i++) {
        status = get_kind(h->fd[i], KIND_PUBLICATION);
        if (!status)
            status = get(h->fd[i], &all[i], sizeof all[i]);
    }
    for (uint32_t i = 1; i < h->instances && !status; i++)
        status = put(h->fd[i], all, h->instances * sizeof *all);
    return status;
}

int smg_harness_swap(struct smg_harness *h, const struct smg_publication *own, struct smg_publication *all, struct smg_diag *diag)
{
    int status;

    all[h->self] = *own;
    if (!h->self) {
        status = parent_swap(h, all);
    } else {
        status = put_kind(h->fd[0], KIND_PUBLICATION);
        if (!status)
            status = put(h->fd[0], own, sizeof *own);
        if (!status)
            status = get(h->fd[0], all, h->instances * sizeof *all);
    }
    if (status)
        snprintf(diag->text, sizeof diag->text, "an instance ended before the cluster was up");
    return status;
}

int smg_harness_start(struct smg_harness *h, struct smg_diag *diag)
{
    int status = SMG_OK;

    for (uint32_t i = 1; !h->self && i < h->instances && !status; i++)
        status = get_kind(h->fd[i], KIND_READY);
    if (!h->self) {
        h->start_s = monotonic_s();
        for (uint32_t i = 1; i < h->instances && !status; i++)
            status = put(h->fd[i], &h->start_s, sizeof h->start_s);
    } else {
        status = put_kind(h->fd[0], KIND_READY);
        if (!status)
            status = get(h->fd[0], &h->start_s, sizeof h->start_s);
    }
    if (status)
        snprintf(diag->text, sizeof diag->text, "an instance ended before the run started");
    return status;
}

/* Nothing is said after that: a child that still waits for the cluster to come up gets an end of file. A child that is gone is
 * found by collect. */
void smg_harness_stop(struct smg_harness *h)
{
    for (uint32_t i = 1; i < h->instances; i++) {
        (void)put(h->fd[i], "s", 1);
        (void)shutdown(h->fd[i], SHUT_WR);
    }
}

int smg_harness_stopped(struct smg_harness *h, double seconds)
{
    struct pollfd p = {h->fd[0], POLLIN, 0};
    int ready = poll(&p, 1, (int)(seconds * 1e3));

    return ready > 0; /* a byte says stop, an end of file that the parent is gone; neither is ever taken away */
}

/* ---- Reports ---- */

struct report {
    int32_t status;
    uint32_t n_requests;
    struct smg_run_stats stats;  /* pointers are meaningless here */
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
    sent = put_kind(h->fd[0], KIND_REPORT);
    if (!sent)
        sent = put(h->fd[0], &r, sizeof r);
    if (!sent)
        sent = put(h->fd[0], stats->duplicate_bytes, stats->n_requests * sizeof(uint64_t));
    return sent ? sent : put(h->fd[0], stats->digest, stats->n_requests * sizeof(uint64_t));
}

/* What a child said before its report was meant for a cluster that did not come up. */
static int skip_to_report(int fd)
{
    struct smg_publication unused;
    int status = get_kind(fd, KIND_REPORT);

    if (status && !get_kind(fd, KIND_PUBLICATION))
        status = get(fd, &unused, sizeof unused) ? SMG_ERR_LOST : get_kind(fd, KIND_REPORT);
    if (status && !get_kind(fd, KIND_READY))
        status = get_kind(fd, KIND_REPORT);
    return status;
}

static int collect_one(struct smg_harness *h, uint32_t i, struct smg_run_stats *stats, struct report *r)
{
    struct smg_run_stats theirs;
    int status;

    if (skip_to_report(h->fd[i]) || get(h->fd[i], r, sizeof *r) || r->n_requests != stats->n_requests)
        return SMG_ERR_LOST;
    status = smg_run_stats_init(&theirs, r->n_requests);
    if (status)
        return status;
    if (get(h->fd[i], theirs.duplicate_bytes, r->n_requests * sizeof(uint64_t)) ||
        get(h->fd[i], theirs.digest, r->n_requests * sizeof(uint64_t))) {
        status = SMG_ERR_LOST;
    } else {
        r->stats.duplicate_bytes = theirs.duplicate_bytes;
        r->stats.digest = theirs.digest;
        smg_run_stats_add(stats, &r->stats);
    }
    smg_run_stats_free(&theirs);
    return status;
}

/* Waits for the children; those that have not ended after 5 s are killed. */
static void reap(struct smg_harness *h)
{
    double end_s = monotonic_s() + 5;

    for (uint32_t i = 1; i < h->instances; i++) {
        pid_t ended = h->pid[i] > 0 ? 0 : -1;
        while (!ended || (ended < 0 && h->pid[i] > 0 && errno == EINTR)) {
            ended = waitpid(h->pid[i], NULL, WNOHANG);
            if (ended)
                continue;
            if (monotonic_s() > end_s)
                kill(h->pid[i], SIGKILL);
            poll(NULL, 0, 2);
        }
        h->pid[i] = 0;
    }
}

int smg_harness_collect(struct smg_harness *h, double seconds, struct smg_run_stats *stats, struct smg_diag *diag)
{
    double end_s = monotonic_s() + seconds;
    int worst = SMG_OK;

    for (uint32_t i = 1; i < h->instances; i++) {
        struct pollfd p = {h->fd[i], POLLIN, 0};
        struct report r;
        int left_ms = (int)((end_s - monotonic_s()) * 1e3), status = SMG_ERR_LOST;
        memset(&r, 0, sizeof r);
        if (poll(&p, 1, left_ms > 0 ? left_ms : 0) == 1)
            status = collect_one(h, i, stats, &r);
        if (status) {
            snprintf(r.diag.text, sizeof r.diag.text, "instance %u ended without a report", i);
            kill(h->pid[i], SIGKILL);
        } else {
            status = r.status;
        }
        if (status && (!worst || worst == SMG_ERR_LOST)) { /* losing a peer is the consequence, what it failed of is the cause */
            worst = status;
            *diag = r.diag;
        }
    }
    reap(h);
    return worst;
}

int smg_harness_trouble(struct smg_harness *h)
{
    for (uint32_t i = 1; i < h->instances; i++) {
        struct pollfd p = {h->fd[i], POLLIN, 0};
        if (poll(&p, 1, 0) == 1)
            return 1;
    }
    return 0;
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
    free(h->pid);
    free(h->fd);
    h->pid = NULL;
    h->fd = NULL;
    h->instances = 0;
}
