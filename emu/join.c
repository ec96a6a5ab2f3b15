/* Joining a cluster over TCP: the router listens and gathers, an instance dials. */
#include "emu/join.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "emu/pipe.h"

/* Strangers that may be heard at a time, and how long each has for its hello, s. */
enum { PENDING = 64 };
static const double hello_s = 5, answer_s = 5, redial_s = 0.1;
static const struct timeval dial_limit = {5, 0};

static const char *const reasons[SMG_JOIN_ANSWERS] = {
    [SMG_JOIN_STRANGER] = "the token is not that of the run (SMARTGEN_TOKEN, --token-file)",
    [SMG_JOIN_GEOMETRY] = "it runs another scenario, model or workload, or another version of the program",
    [SMG_JOIN_INSTANCE] = "the run has no such instance",
    [SMG_JOIN_TAKEN] = "that instance has joined already",
};

/* ---- Ctrl-C ---- */

static int stopped(int (*stop)(void))
{
    return stop && stop();
}

static int interrupted(struct smg_diag *diag)
{
    snprintf(diag->text, sizeof diag->text, "%s", smg_status_string(SMG_ERR_INTERRUPTED));
    return SMG_ERR_INTERRUPTED;
}

/* ---- Addresses ---- */

/* Splits "HOST:PORT". host "" stands for every address. */
static int split(const char *address, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;
    const char *begin = address;

    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) >= port_bytes ||
        atol(colon + 1) > UINT16_MAX)
        return SMG_ERR_INVALID;
    if (n > 2 && address[0] == '[' && address[n - 1] == ']') {
        begin++;
        n -= 2;
    } else if (memchr(address, ':', n)) {
        return SMG_ERR_INVALID; /* which colon? */
    }
    if (n >= host_bytes)
        return SMG_ERR_INVALID;
    memcpy(host, begin, n);
    host[n] = '\0';
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return SMG_OK;
}

static int look_up(const char *address, int passive, struct addrinfo **out, struct smg_diag *diag)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
    char host[256], port[8];
    int error;

    if (split(address, host, sizeof host, port, sizeof port) || (!passive && !host[0])) {
        snprintf(diag->text, sizeof diag->text, "address '%.120s': expected %sHOST:PORT", address,
                 passive ? "[HOST]:PORT or " : "");
        return SMG_ERR_INVALID;
    }
    if (!passive && !atol(port)) { /* only who listens may leave the choice to the system */
        snprintf(diag->text, sizeof diag->text, "address '%.120s': expected a port from 1 to 65535", address);
        return SMG_ERR_INVALID;
    }
    error = getaddrinfo(host[0] ? host : NULL, port, &hints, out);
    if (!error)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "address '%.120s': %s", address, gai_strerror(error));
    return SMG_ERR_INVALID;
}

int smg_join_listen(const char *address, int *fd_out, struct smg_diag *diag)
{
    struct addrinfo *list;
    int on = 1, fd = -1, status = look_up(address, 1, &list, diag);

    if (status)
        return status;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, a->ai_addr, a->ai_addrlen) ||
                        listen(fd, PENDING))) {
            int error = errno;
            close(fd);
            fd = -1;
            errno = error;
        }
    }
    if (fd < 0)
        snprintf(diag->text, sizeof diag->text, "cannot listen at '%.120s': %s", address, strerror(errno));
    freeaddrinfo(list);
    *fd_out = fd;
    return fd < 0 ? SMG_ERR_IO : SMG_OK;
}

uint16_t smg_join_port(int fd)
{
    struct sockaddr_storage a;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    socklen_t bytes = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &bytes))
        return 0;
    memcpy(&v4, &a, sizeof v4);
    memcpy(&v6, &a, sizeof v6);
    return ntohs(a.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
}

/* Small messages that others wait for, and the end of a host that cannot say so. */
static void tune(int fd)
{
    int on = 1, idle_s = 5, every_s = 1, probes = 5;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* ---- Router ---- */

struct pending {
    int fd;
    double until_s;
    size_t have;
    uint8_t bytes[SMG_JOIN_HELLO_BYTES];
};

struct gathering {
    int listening;
    uint32_t instances, joined;
    const struct smg_token *token;
    uint64_t geometry;
    uint8_t *here; /* [instances] */
    int *fd;
    struct pending pending[PENDING];
    size_t n;
    char refusal[160]; /* the last one, for a person */
};

static void let_go(struct gathering *g, size_t i)
{
    close(g->pending[i].fd);
    g->pending[i] = g->pending[--g->n];
}

static void heard(struct gathering *g, size_t i)
{
    struct smg_join_hello h;
    uint8_t bytes[SMG_JOIN_ANSWER_BYTES];
    enum smg_join_answer answer;
    int fd = g->pending[i].fd;

    if (smg_join_hello_decode(g->pending[i].bytes, &h)) {
        snprintf(g->refusal, sizeof g->refusal, "a connection was refused: not a hello of this version");
        let_go(g, i);
        return;
    }
    answer = smg_join_judge(&h, g->token, g->geometry, g->instances, g->here);
    smg_join_answer_encode(answer, bytes);
    if (smg_pipe_put(fd, bytes, sizeof bytes, smg_pipe_now_s()) && answer == SMG_JOIN_WELCOME)
        snprintf(g->refusal, sizeof g->refusal, "instance %u went away while it joined", h.instance);
    else if (answer != SMG_JOIN_WELCOME)
        snprintf(g->refusal, sizeof g->refusal, "instance %u was refused: %s", h.instance, reasons[answer]);
    else {
        tune(fd);
        g->fd[h.instance] = fd;
        g->here[h.instance] = 1;
        g->joined++;
        g->pending[i] = g->pending[--g->n];
        return;
    }
    let_go(g, i);
}

/* Takes what there is of a hello. */
static void hear(struct gathering *g, size_t i)
{
    struct pending *p = &g->pending[i];
    ssize_t n = recv(p->fd, p->bytes + p->have, sizeof p->bytes - p->have, MSG_DONTWAIT);

    if (n > 0)
        p->have += (size_t)n;
    if (p->have == sizeof p->bytes)
        heard(g, i);
    else if (!n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        let_go(g, i);
}

static void admit(struct gathering *g)
{
    int fd = accept4(g->listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (g->n == PENDING) /* the oldest has waited for its turn long enough */
        let_go(g, 0);
    g->pending[g->n].fd = fd;
    g->pending[g->n].have = 0;
    g->pending[g->n++].until_s = smg_pipe_now_s() + hello_s;
}

static void listen_once(struct gathering *g)
{
    struct pollfd p[PENDING + 1] = {{g->listening, POLLIN, 0}};
    size_t n = g->n;

    for (size_t i = 0; i < n; i++)
        p[i + 1] = (struct pollfd){g->pending[i].fd, POLLIN, 0};
    if (poll(p, n + 1, 100) < 0)
        return;
    for (size_t i = n; i--;) /* from the end: one that goes is replaced by a later one, which was seen */
        if (p[i + 1].revents)
            hear(g, i);
        else if (g->pending[i].until_s < smg_pipe_now_s())
            let_go(g, i);
    if (p[0].revents)
        admit(g);
}

static void say_missing(const struct gathering *g, double seconds, struct smg_diag *diag)
{
    int n = snprintf(diag->text, sizeof diag->text, "%u of %u instances have joined within %.3g s; missing:", g->joined,
                     g->instances - 1, seconds);

    for (uint32_t i = 1, named = 0; i < g->instances && named < 16; i++) {
        if (g->here[i])
            continue;
        named++;
        n += snprintf(diag->text + n, sizeof diag->text - (size_t)n, " %u", i);
    }
    if (g->refusal[0])
        snprintf(diag->text + n, sizeof diag->text - (size_t)n, "; %s", g->refusal);
}

int smg_join_gather(int listening, uint32_t instances, const struct smg_token *token, uint64_t geometry, double seconds,
                    int (*stop)(void), int *fd, struct smg_diag *diag)
{
    double end_s = smg_pipe_now_s() + seconds;
    struct gathering *g = calloc(1, sizeof *g);
    int status = SMG_OK;

    if (g)
        *g = (struct gathering){.listening = listening, .instances = instances, .token = token, .geometry = geometry, .fd = fd};
    if (!g || !(g->here = calloc(instances, 1))) {
        free(g);
        return SMG_ERR_NOMEM;
    }
    while (g->joined + 1 < instances && smg_pipe_now_s() < end_s && !stopped(stop))
        listen_once(g);
    if (stopped(stop)) {
        status = interrupted(diag);
    } else if (g->joined + 1 < instances) {
        say_missing(g, seconds, diag);
        status = SMG_ERR_DEADLOCK;
    }
    while (g->n)
        let_go(g, 0);
    free(g->here);
    free(g);
    return status;
}

/* ---- Instance ---- */

/* -1: nobody is there, or not yet. */
static int dial_once(const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &dial_limit, sizeof dial_limit) &&
            !connect(fd, a->ai_addr, a->ai_addrlen))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static int introduce(int fd, const struct smg_join_hello *hello, enum smg_join_answer *answer)
{
    uint8_t bytes[SMG_JOIN_HELLO_BYTES], back[SMG_JOIN_ANSWER_BYTES];
    double end_s = smg_pipe_now_s() + answer_s;
    int status;

    smg_join_hello_encode(hello, bytes);
    status = smg_pipe_put(fd, bytes, sizeof bytes, end_s);
    if (!status)
        status = smg_pipe_get(fd, back, sizeof back, end_s);
    return status ? status : smg_join_answer_decode(back, answer);
}

int smg_join_dial(const char *address, const struct smg_join_hello *hello, double seconds, int (*stop)(void), int *fd_out,
                  struct smg_diag *diag)
{
    double end_s = smg_pipe_now_s() + seconds;
    enum smg_join_answer answer = SMG_JOIN_ANSWERS;
    struct addrinfo *list;
    int fd, status = look_up(address, 0, &list, diag);

    if (status)
        return status;
    while ((fd = dial_once(list)) < 0 && smg_pipe_now_s() < end_s && !stopped(stop))
        poll(NULL, 0, (int)(redial_s * 1e3));
    freeaddrinfo(list);
    if (fd < 0 && stopped(stop))
        return interrupted(diag);
    if (fd < 0) {
        snprintf(diag->text, sizeof diag->text, "no router answers at '%.120s' within %.3g s", address, seconds);
        return SMG_ERR_DEADLOCK;
    }
    status = introduce(fd, hello, &answer);
    if (!status && answer == SMG_JOIN_WELCOME) {
        tune(fd);
        *fd_out = fd;
        return SMG_OK;
    }
    close(fd);
    if (status)
        snprintf(diag->text, sizeof diag->text, "what listens at '%.120s' is no router of this version", address);
    else
        snprintf(diag->text, sizeof diag->text, "the router refused instance %u: %s", hello->instance, reasons[answer]);
    return status ? SMG_ERR_LOST : SMG_ERR_INVALID;
}
