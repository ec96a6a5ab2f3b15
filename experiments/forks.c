#include "experiments/forks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "traces/text.h"

/* What a child sends ahead of its result. */
struct verdict {
    int status;
    struct smg_diag diag;
};

struct child {
    pid_t pid; /* 0: free */
    int from;  /* read end of its pipe */
    size_t task;
};

/* How often stop is asked while children work: a signal may come between the question and the wait. */
enum { STOP_MS = 100 };

struct crew {
    const struct smg_forks *f;
    struct child *child; /* [jobs] */
    struct pollfd *poll; /* [jobs] */
    size_t jobs, next, done, running;
    char *results;
};

static int write_all(int fd, const void *data, size_t bytes)
{
    const char *p = data;

    while (bytes) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno != EINTR)
            return SMG_ERR_IO;
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return SMG_OK;
}

static int read_all(int fd, void *data, size_t bytes)
{
    char *p = data;

    while (bytes) {
        ssize_t n = read(fd, p, bytes);
        if (!n || (n < 0 && errno != EINTR))
            return SMG_ERR_IO;
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return SMG_OK;
}

/* The child's life. It leaves by _exit: what the parent has buffered and registered is the parent's to flush and to run. */
static void live(const struct smg_forks *f, size_t task, int to, pid_t parent)
{
    struct verdict v = {SMG_OK, {""}};
    void *result = calloc(1, f->result_bytes);
    int failed;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    v.status = result ? f->task(f->task_arg, task, result, &v.diag) : SMG_ERR_NOMEM;
    failed = write_all(to, &v, sizeof v) || (result && write_all(to, result, f->result_bytes));
    free(result); /* a child that leaks nothing can be watched for leaks */
    _exit(failed);
}

static int start(struct crew *c, struct child *child, struct smg_diag *diag)
{
    int ends[2];
    pid_t parent = getpid(), pid;

    if (pipe(ends))
        return smg_diag_set(diag, SMG_ERR_IO, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid = fork();
    if (!pid) {
        close(ends[0]);
        live(c->f, c->next, ends[1], parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return smg_diag_set(diag, SMG_ERR_IO, "fork: %s", strerror(errno));
    }
    *child = (struct child){pid, ends[0], c->next++};
    c->running++;
    return SMG_OK;
}

static void bury(struct crew *c, struct child *child, int *how)
{
    while (waitpid(child->pid, how, 0) < 0 && errno == EINTR)
        ;
    close(child->from);
    child->pid = 0;
    c->running--;
}

static int collect(struct crew *c, struct child *child, struct smg_diag *diag)
{
    struct verdict v;
    size_t task = child->task;
    int how = 0, lost = read_all(child->from, &v, sizeof v);

    if (!lost)
        lost = read_all(child->from, c->results + task * c->f->result_bytes, c->f->result_bytes);
    bury(c, child, &how);
    if (lost && WIFSIGNALED(how))
        return smg_diag_set(diag, SMG_ERR_LOST, "task %zu: ended by signal %d", task, WTERMSIG(how));
    if (lost)
        return smg_diag_set(diag, SMG_ERR_LOST, "task %zu: ended without a result", task);
    if (v.status) {
        *diag = v.diag;
        return v.status;
    }
    c->done++;
    if (c->f->progress)
        c->f->progress(c->f->progress_arg, c->done, c->f->tasks);
    return SMG_OK;
}

static int wait_some(struct crew *c, struct smg_diag *diag)
{
    int status = SMG_OK;

    for (size_t i = 0; i < c->jobs; i++)
        c->poll[i] = (struct pollfd){c->child[i].pid ? c->child[i].from : -1, POLLIN, 0};
    if (poll(c->poll, c->jobs, c->f->stop ? STOP_MS : -1) < 0)
        return errno == EINTR ? SMG_OK : smg_diag_set(diag, SMG_ERR_IO, "poll: %s", strerror(errno));
    for (size_t i = 0; i < c->jobs && !status; i++)
        if (c->child[i].pid && c->poll[i].revents)
            status = collect(c, &c->child[i], diag);
    return status;
}

static int work(struct crew *c, struct smg_diag *diag)
{
    int status = SMG_OK;

    while (!status && c->done < c->f->tasks) {
        if (c->f->stop && c->f->stop())
            return SMG_ERR_INTERRUPTED;
        for (size_t i = 0; i < c->jobs && c->next < c->f->tasks && !status; i++)
            if (!c->child[i].pid)
                status = start(c, &c->child[i], diag);
        if (!status)
            status = wait_some(c, diag);
    }
    return status;
}

static void end_all(struct crew *c)
{
    for (size_t i = 0; i < c->jobs; i++) {
        int how;
        if (!c->child[i].pid)
            continue;
        kill(c->child[i].pid, SIGKILL);
        bury(c, &c->child[i], &how);
    }
}

int smg_forks_run(const struct smg_forks *f, void *results, struct smg_diag *diag)
{
    size_t jobs = !f->jobs ? 1 : f->jobs < f->tasks ? f->jobs : f->tasks;
    struct crew c = {f, calloc(jobs + 1, sizeof *c.child), calloc(jobs + 1, sizeof *c.poll), jobs, 0, 0, 0, results};
    struct smg_diag found = {""};
    int status = SMG_ERR_NOMEM;

    if (c.child && c.poll) {
        status = work(&c, &found);
        end_all(&c);
    }
    free(c.child);
    free(c.poll);
    return status ? smg_diag_set(diag, status, "%s", found.text[0] ? found.text : smg_status_string(status)) : SMG_OK;
}
