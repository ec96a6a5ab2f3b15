#include "emu/pipe.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "core/status.h"

double smg_pipe_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* SMG_ERR_DEADLOCK: the time came first. */
static int await(int fd, short what, double end_s)
{
    struct pollfd p = {fd, what, 0};

    for (;;) {
        double left_s = end_s - smg_pipe_now_s();
        int ready = poll(&p, 1, left_s > 1e6 ? -1 : left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        if (ready > 0)
            return SMG_OK;
        if (ready < 0 && errno != EINTR)
            return SMG_ERR_LOST;
        if (!ready && left_s <= 0)
            return SMG_ERR_DEADLOCK;
    }
}

static int interrupted(ssize_t n)
{
    return n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK);
}

int smg_pipe_put(int fd, const void *data, size_t bytes, double end_s)
{
    const char *p = data;

    while (bytes) {
        ssize_t n;
        int status = await(fd, POLLOUT, end_s);
        if (status)
            return status;
        n = send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (interrupted(n))
            continue;
        if (n <= 0)
            return SMG_ERR_LOST;
        p += n;
        bytes -= (size_t)n;
    }
    return SMG_OK;
}

int smg_pipe_get(int fd, void *data, size_t bytes, double end_s)
{
    char *p = data;

    while (bytes) {
        ssize_t n;
        int status = await(fd, POLLIN, end_s);
        if (status)
            return status;
        n = recv(fd, p, bytes, MSG_DONTWAIT);
        if (interrupted(n))
            continue;
        if (n <= 0)
            return SMG_ERR_LOST;
        p += n;
        bytes -= (size_t)n;
    }
    return SMG_OK;
}

int smg_pipe_put_kind(int fd, uint32_t kind, double end_s)
{
    return smg_pipe_put(fd, &kind, sizeof kind, end_s);
}

int smg_pipe_get_kind(int fd, uint32_t wanted, double end_s)
{
    uint32_t kind = 0;
    ssize_t n = 0;

    while (n < (ssize_t)sizeof kind) {
        int status = await(fd, POLLIN, end_s);
        if (status)
            return status;
        n = recv(fd, &kind, sizeof kind, MSG_PEEK | MSG_DONTWAIT);
        if (!n || (n < 0 && !interrupted(n)))
            return SMG_ERR_LOST;
        if (n < (ssize_t)sizeof kind && smg_pipe_now_s() > end_s)
            return SMG_ERR_DEADLOCK;
        if (n < (ssize_t)sizeof kind)
            poll(NULL, 0, 1); /* a part of it is there, so the socket is readable all the time */
    }
    return kind == wanted ? smg_pipe_get(fd, &kind, sizeof kind, end_s) : SMG_ERR_LOST;
}
