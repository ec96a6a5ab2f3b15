/* Joining queue pairs. Each has a TCP connection of its own:
 *
 *     dialler: INIT, hello ->            accepter
 *                         <- hello       INIT, RTR, RTS
 *     RTR, RTS, one byte ->              up
 *     up
 *
 * so nobody sends before the other can receive. Afterwards nothing comes over the connection but its end. */
#include "config.h"

#include "emu/fabric_port.h"

#ifdef HAVE_VERBS

#include "emu/verbs.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACKLOG   512
#define READY     0x5a
#define TIMEOUT   17 /* 4.096 us << 17 = 0.54 s without an acknowledgement, */
#define RETRIES   6  /* so often (7 means for ever on soft-RoCE): 3.8 s, so a link may be down for 2 s, */
#define RNR       7  /* and for ever while the peer has posted no receive, */
#define RNR_10_US 1  /* which is tried again after 10 us (0 would be 655 ms) */
#define HOPS      64
/* A host that vanished is noticed after some 10 s. */
#define KEEP_IDLE_S  5
#define KEEP_EVERY_S 1
#define KEEP_PROBES  5

/* ---- States of a queue pair ---- */

static int to_receive(struct verbs_fabric *v, struct verbs_qp *q, const struct smg_verbs_hello *h)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = h->mtu < (uint8_t)v->port.active_mtu ? (enum ibv_mtu)h->mtu : v->port.active_mtu,
                            .dest_qp_num = h->qpn,
                            .rq_psn = h->psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = RNR_10_US};
    a.ah_attr.port_num = v->port_number;
    a.ah_attr.dlid = h->lid;
    if (h->link == SMG_VERBS_ETHERNET) {
        a.ah_attr.is_global = 1;
        a.ah_attr.grh.sgid_index = v->gid_index;
        a.ah_attr.grh.hop_limit = HOPS;
        memcpy(a.ah_attr.grh.dgid.raw, h->gid, sizeof(h->gid));
    }
    return ibv_modify_qp(q->ibv, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct verbs_qp *q)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = TIMEOUT,
                            .retry_cnt = RETRIES,
                            .rnr_retry = RNR,
                            .sq_psn = q->psn,
                            .max_rd_atomic = 1};
    return ibv_modify_qp(q->ibv, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

static int to_ready(struct verbs_fabric *v, struct verbs_qp *q, const struct smg_verbs_hello *h)
{
    int error = to_receive(v, q, h);
    return error ? error : to_send(q);
}

void smg_verbs_qp_down(struct smg_qp *qp, int cause)
{
    struct verbs_qp *q = qp->impl;
    if (q->link) {
        struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
        smg_verbs_link_close(q->link); /* the peer hears of it */
        q->link = NULL;
        (void)ibv_modify_qp(q->ibv, &a, IBV_QP_STATE); /* it may be there already */
    }
    smg_port_down(qp, cause);
}

void smg_verbs_disconnect(struct smg_qp *qp)
{
    if (qp->impl) {
        smg_verbs_qp_down(qp, 0);
    }
}

/* ---- Connections ---- */

void smg_verbs_link_close(struct verbs_link *link)
{
    if (link) {
        (void)close(link->watch.fd); /* leaves the epoll set by itself */
        free(link);
    }
}

static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } option[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                  {SOL_SOCKET, SO_KEEPALIVE, 1},
                  {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
                  {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
                  {IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES}};
    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
        (void)setsockopt(fd, option[i].level, option[i].name, &option[i].value, sizeof(option[i].value)); /* works without */
    }
}

int smg_verbs_listen(struct verbs_fabric *v, struct smg_diag *diag)
{
    struct sockaddr_storage here;
    socklen_t bytes = sizeof(here);
    int error = 0, fd = socket(v->node.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    v->listener = (struct verbs_watch){VERBS_WATCH_LISTENER, fd};
    if (fd < 0) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "socket", errno);
    }
    if (bind(fd, (struct sockaddr *)&v->node, v->node_bytes) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&here, &bytes)) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "listening at the device's address", errno);
    }
    error = smg_verbs_watch_add(v, &v->listener, EPOLLIN);
    if (error) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "epoll_ctl", error);
    }
    smg_verbs_address_encode(&here, &v->base.address);
    return SMG_OK;
}

static struct verbs_link *link_create(struct verbs_fabric *v, int fd, enum verbs_link_state state, uint32_t events)
{
    struct verbs_link *link = calloc(1, sizeof(*link));
    if (!link) {
        (void)close(fd);
        return NULL;
    }
    link->watch = (struct verbs_watch){VERBS_WATCH_LINK, fd};
    link->state = state;
    if (smg_verbs_watch_add(v, &link->watch, events)) {
        smg_verbs_link_close(link);
        return NULL;
    }
    return link;
}

static int dial(struct verbs_fabric *v, const struct sockaddr_storage *to, socklen_t bytes, int *fd_out)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;
    if (fd < 0) {
        return errno;
    }
    set_options(fd);
    /* From the device's own address, so that the two connections take one way and break together. */
    if ((v->node.ss_family == to->ss_family && bind(fd, (const struct sockaddr *)&v->node, v->node_bytes)) ||
        (connect(fd, (const struct sockaddr *)to, bytes) && errno != EINPROGRESS)) {
        error = errno;
        (void)close(fd);
        return error;
    }
    *fd_out = fd;
    return 0;
}

int smg_verbs_connect(struct smg_qp *qp, const struct smg_fabric_address *address, struct smg_diag *diag)
{
    struct verbs_fabric *v = verbs_of(qp->fabric);
    struct sockaddr_storage to;
    socklen_t bytes;
    int fd = -1, error;
    if (smg_verbs_address_decode(address, &to, &bytes)) {
        return smg_fabric_fail(diag, SMG_ERR_PROTOCOL, "verbs: the address of peer %u is not one of this fabric",
                               qp->peer->instance);
    }
    int status = smg_verbs_qp_create(v, qp, diag);
    if (status) {
        return status;
    }
    error = dial(v, &to, bytes, &fd);
    if (error) {
        return smg_fabric_fail(diag, SMG_ERR_LOST, "verbs: connection to peer %u %s: %s", qp->peer->instance,
                               smg_queue_name(qp->queue), strerror(error));
    }
    struct verbs_link *link = link_create(v, fd, VERBS_LINK_DIALLING, EPOLLOUT);
    if (!link) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "verbs: out of memory for a connection");
    }
    struct verbs_qp *q = qp->impl;
    q->link = link;
    link->qp = qp;
    return SMG_OK;
}

/* Strangers are few and short-lived; one that says nothing makes room for the next. */
void smg_verbs_accept(struct verbs_fabric *v)
{
    int fd = accept4(v->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return; /* it has gone again */
    }
    set_options(fd);
    struct verbs_link *link = link_create(v, fd, VERBS_LINK_HEARING, EPOLLIN);
    if (!link) {
        return;
    }
    if (v->n_strangers == VERBS_STRANGERS) {
        smg_verbs_link_close(v->strangers[0]);
        memmove(v->strangers, v->strangers + 1, --v->n_strangers * sizeof(v->strangers[0]));
    }
    v->strangers[v->n_strangers++] = link;
}

static void forget_stranger(struct verbs_fabric *v, const struct verbs_link *link)
{
    size_t i = 0;
    while (i < v->n_strangers && v->strangers[i] != link) {
        i++;
    }
    if (i < v->n_strangers) {
        v->n_strangers--;
        memmove(v->strangers + i, v->strangers + i + 1, (v->n_strangers - i) * sizeof(v->strangers[0]));
    }
}

/* ---- What is said ---- */

/* The socket's buffer is empty: a hello fits, or the connection is broken. */
static int say(const struct verbs_link *link, const void *bytes, size_t n)
{
    ssize_t sent = send(link->watch.fd, bytes, n, MSG_NOSIGNAL);
    return sent == (ssize_t)n ? 0 : sent < 0 ? errno : EPIPE;
}

static int say_hello(struct verbs_fabric *v, const struct verbs_link *link)
{
    const struct verbs_qp *q = link->qp->impl;
    int ethernet = v->port.link_layer == IBV_LINK_LAYER_ETHERNET;
    struct smg_verbs_hello h = {.instance = v->base.self,
                                .queue = link->qp->queue,
                                .qpn = q->ibv->qp_num,
                                .psn = q->psn,
                                .lid = ethernet ? 0 : v->port.lid,
                                .mtu = (uint8_t)v->port.active_mtu,
                                .link = ethernet ? SMG_VERBS_ETHERNET : SMG_VERBS_INFINIBAND};
    uint8_t bytes[SMG_VERBS_HELLO_BYTES];
    memcpy(h.gid, v->gid.raw, sizeof(h.gid));
    smg_verbs_hello_encode(&h, bytes);
    return say(link, bytes, sizeof(bytes));
}

/* Reads on until `want` bytes are there. 0: not yet, 1: they are, -1: the connection is over, *error_out says why. */
static int hear(struct verbs_link *link, size_t want, int *error_out)
{
    ssize_t n = recv(link->watch.fd, link->heard + link->n_heard, want - link->n_heard, 0);
    *error_out = n < 0 ? errno : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    link->n_heard += n > 0 ? (size_t)n : 0;
    return n <= 0 ? -1 : link->n_heard == want;
}

/* Whether the queue pair can reach who said this. */
static int fits(const struct verbs_fabric *v, const struct smg_verbs_hello *h)
{
    return (h->link == SMG_VERBS_ETHERNET) == (v->port.link_layer == IBV_LINK_LAYER_ETHERNET);
}

/* ---- Steps of a connection. Each returns an error number that ends it, or 0. ---- */

static int dialled(struct verbs_fabric *v, struct verbs_link *link)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &link->watch};
    int error = 0;
    socklen_t bytes = sizeof(error);
    if (getsockopt(link->watch.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) || error) {
        return error ? error : errno;
    }
    if (epoll_ctl(v->epoll, EPOLL_CTL_MOD, link->watch.fd, &e)) {
        return errno;
    }
    link->state = VERBS_LINK_SAID;
    return say_hello(v, link);
}

/* The dialled listener says who it is: an address that was mixed up on the way must not pass for another peer. */
static int answered(struct verbs_fabric *v, struct verbs_link *link)
{
    static const uint8_t ready = READY;
    struct smg_verbs_hello h;
    if (smg_verbs_hello_decode(link->heard, &h) || h.instance != link->qp->peer->instance || h.queue != link->qp->queue ||
        !fits(v, &h)) {
        return EPROTO;
    }
    int error = to_ready(v, link->qp->impl, &h);
    error = error ? error : say(link, &ready, 1);
    if (!error) {
        link->state = VERBS_LINK_UP;
        smg_port_up(link->qp);
    }
    return error;
}

/* A stranger that is nobody expected is hung up on and forgotten: it must not be able to stop the run. */
static int introduced(struct verbs_fabric *v, struct verbs_link *link)
{
    struct smg_verbs_hello h;
    struct smg_qp *qp = smg_verbs_hello_decode(link->heard, &h) ? NULL : smg_port_expected(&v->base, h.instance, h.queue);
    if (!qp || !fits(v, &h)) {
        return EPROTO;
    }
    if (smg_verbs_qp_create(v, qp, NULL)) {
        smg_port_down(qp, VERBS_CAUSE_ERRNO + ENOMEM);
        return ENOMEM;
    }
    struct verbs_qp *q = qp->impl;
    forget_stranger(v, link);
    link->qp = qp;
    q->link = link;
    link->state = VERBS_LINK_ANSWERED;
    link->n_heard = 0;
    int error = to_ready(v, q, &h);
    return error ? error : say_hello(v, link);
}

static int step(struct verbs_fabric *v, struct verbs_link *link)
{
    size_t want = link->state == VERBS_LINK_ANSWERED || link->state == VERBS_LINK_UP ? 1 : SMG_VERBS_HELLO_BYTES;
    int error = 0, heard;
    if (link->state == VERBS_LINK_DIALLING) {
        return dialled(v, link);
    }
    link->n_heard = link->state == VERBS_LINK_UP ? 0 : link->n_heard;
    heard = hear(link, want, &error);
    if (heard < 0) {
        return error ? error : EPIPE;
    }
    if (!heard) {
        return 0;
    }
    switch (link->state) {
    case VERBS_LINK_SAID:
        return answered(v, link);
    case VERBS_LINK_HEARING:
        return introduced(v, link);
    case VERBS_LINK_ANSWERED:
        if (link->heard[0] != READY) {
            return EPROTO;
        }
        link->state = VERBS_LINK_UP;
        smg_port_up(link->qp);
        return 0;
    default:
        return EPROTO; /* nothing may come any more */
    }
}

void smg_verbs_link_ready(struct verbs_fabric *v, struct verbs_link *link)
{
    int error = step(v, link);
    if (!error) {
        return;
    }
    if (link->qp) {
        smg_verbs_qp_down(link->qp, error == EPIPE ? 0 : VERBS_CAUSE_ERRNO + error);
    } else {
        forget_stranger(v, link);
        smg_verbs_link_close(link);
    }
}

#endif
