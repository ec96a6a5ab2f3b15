/* The end of a run: what the parent says of it to its children, and what a user wants while the cluster comes up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h> /* pthread_sigmask as well */
#include <sys/socket.h>
#include <unistd.h>

#include "emu/harness_priv.h"
#include "emu/pipe.h"

/* ---- What is said ---- */

struct ending {
    uint32_t kind;
    struct smg_harness_ending how;
};

/* Nothing is said after that. A child that is gone is found by collect. */
void smg_harness_stop(struct smg_harness *h, const struct smg_harness_ending *ending)
{
    const struct ending e = {SMG_HARNESS_STOP, *ending};

    for (uint32_t i = 1; i < h->instances; i++) {
        (void)smg_pipe_put(h->fd[i], &e, sizeof e, 0);
        (void)shutdown(h->fd[i], SHUT_WR);
    }
}

int smg_harness_stopped(struct smg_harness *h, double seconds)
{
    struct pollfd p = {h->fd[0], POLLIN, 0};
    int ready = poll(&p, 1, (int)(seconds * 1e3));

    return ready > 0; /* a message says stop, an end of file that the parent is gone; neither is ever taken away */
}

/* A part of the message may be there before the rest, or before the end of the connection. */
enum smg_harness_word smg_harness_told(const struct smg_harness *h, double seconds, struct smg_harness_ending *out)
{
    double end_s = smg_pipe_now_s() + seconds;
    struct ending e;

    for (;;) {
        ssize_t n = recv(h->fd[0], &e, sizeof e, MSG_PEEK | MSG_DONTWAIT);
        int begun = n >= (ssize_t)sizeof e.kind && e.kind == SMG_HARNESS_STOP;
        if (begun && n == (ssize_t)sizeof e) {
            *out = e.how;
            out->why[sizeof out->why - 1] = '\0';
            return SMG_HARNESS_TOLD;
        }
        if (!n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            return SMG_HARNESS_GONE;
        if (smg_pipe_now_s() > end_s)
            return begun ? SMG_HARNESS_GONE : SMG_HARNESS_SILENT;
        poll(NULL, 0, 1);
    }
}

/* ---- While the cluster comes up ----
 * The process that a user started may be in a library for seconds: as many children as there are instances want the same few
 * processors. A thread looks in its place whether the run shall end, and ends the children. */

/* Between two looks, ms. */
enum { LOOK_MS = 50 };

/* The pipe's end tells that it is over. */
static void *look(void *arg)
{
    const struct smg_harness_guard *g = arg;
    struct pollfd over = {g->pipe[0], POLLIN, 0};

    while (poll(&over, 1, LOOK_MS) <= 0) {
        if (!g->harness->stop())
            continue;
        for (uint32_t i = 1; i < g->harness->instances; i++)
            smg_harness_end(g->harness, (uint16_t)i);
        break;
    }
    return NULL;
}

/* Signals are for the thread that is here. Without another one the end is only seen later. */
void smg_harness_guard_begin(struct smg_harness *h, struct smg_harness_guard *g)
{
    sigset_t all, before;

    g->harness = h;
    g->runs = 0;
    if (h->self || !h->pulse || !h->stop || pipe2(g->pipe, O_CLOEXEC))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    g->runs = !pthread_create(&g->thread, NULL, look, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (g->runs)
        return;
    close(g->pipe[0]);
    close(g->pipe[1]);
}

void smg_harness_guard_end(struct smg_harness_guard *g)
{
    if (!g->runs)
        return;
    close(g->pipe[1]);
    pthread_join(g->thread, NULL);
    close(g->pipe[0]);
}
