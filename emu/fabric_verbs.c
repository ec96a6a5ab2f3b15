/* Fabric over libibverbs: opening and closing, memory, queue pairs. emu/verbs.h says which file does what. */
#include "config.h"

#include "emu/fabric_port.h"

#ifdef HAVE_VERBS

#include "emu/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define CQ_QPS 8u /* queue pairs that one completion queue is made for, if the device's are large enough */

int smg_verbs_fail(struct smg_diag *diag, int status, const char *what, int error)
{
    return smg_fabric_fail(diag, status, "verbs: %s: %s", what, strerror(error));
}

/* ---- Queues ---- */

static int cq_add(struct verbs_fabric *v, struct smg_diag *diag)
{
    uint32_t one = 2 * v->base.limits.max_outstanding;
    uint32_t entries = one * CQ_QPS < (uint32_t)v->device.max_cqe ? one * CQ_QPS : (uint32_t)v->device.max_cqe;
    struct verbs_cq *grown = realloc(v->cqs, (v->n_cqs + 1) * sizeof(*grown));
    if (!grown) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "verbs: out of memory for a completion queue");
    }
    v->cqs = grown;
    struct ibv_cq *cq = ibv_create_cq(v->context, (int)entries, NULL, v->channel, 0);
    if (!cq) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "ibv_create_cq", errno);
    }
    v->cqs[v->n_cqs++] = (struct verbs_cq){cq, entries};
    return SMG_OK;
}

int smg_verbs_cq_take(struct verbs_fabric *v, struct ibv_cq **out, struct smg_diag *diag)
{
    uint32_t need = 2 * v->base.limits.max_outstanding;
    if (!v->n_cqs || v->cqs[v->n_cqs - 1].room < need) {
        int status = cq_add(v, diag);
        if (status) {
            return status;
        }
    }
    v->cqs[v->n_cqs - 1].room -= need;
    *out = v->cqs[v->n_cqs - 1].cq;
    return SMG_OK;
}

static struct ibv_qp *make_qp(const struct verbs_fabric *v, struct ibv_cq *cq, void *context, struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr a = {.qp_context = context, .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = *cap};
    struct ibv_qp *qp = ibv_create_qp(v->pd, &a);
    if (qp) {
        *cap = a.cap;
    }
    return qp;
}

/* What a queue pair may have is known only when one was made: asks for less until the device agrees. */
static int probe(struct verbs_fabric *v, struct ibv_cq *cq, uint32_t *depth, struct smg_diag *diag)
{
    struct smg_fabric_limits *l = &v->base.limits;
    for (; *depth; *depth /= 2) {
        for (uint32_t bytes = VERBS_INLINE;; bytes = bytes > 32 ? bytes / 2 : 0) {
            struct ibv_qp_cap cap = {*depth, *depth, l->send_iov, l->recv_iov, bytes};
            struct ibv_qp *qp = make_qp(v, cq, NULL, &cap);
            if (qp) {
                l->inject_bytes = cap.max_inline_data < VERBS_INLINE ? cap.max_inline_data : VERBS_INLINE;
                (void)ibv_destroy_qp(qp);
                return SMG_OK;
            }
            if (!bytes) {
                break;
            }
        }
    }
    return smg_verbs_fail(diag, SMG_ERR_IO, "ibv_create_qp", errno);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int read_limits(struct verbs_fabric *v, uint32_t max_outstanding, struct smg_diag *diag)
{
    struct smg_fabric_limits *l = &v->base.limits;
    uint32_t depth =
        least(least(max_outstanding, VERBS_DEPTH), least((uint32_t)v->device.max_qp_wr, (uint32_t)v->device.max_cqe / 2));
    l->send_iov = least((uint32_t)v->device.max_sge, VERBS_SEND_IOV);
    l->recv_iov = least((uint32_t)v->device.max_sge, VERBS_RECV_IOV);
    l->rma_iov = 1;
    l->max_message_bytes = v->port.max_msg_sz;
    l->waw_ordered = 1; /* memory is registered without relaxed ordering */
    l->max_order_waw_bytes = SIZE_MAX;
    struct ibv_cq *cq = ibv_create_cq(v->context, 1, NULL, NULL, 0);
    if (!cq) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "ibv_create_cq", errno);
    }
    int status = probe(v, cq, &depth, diag);
    (void)ibv_destroy_cq(cq);
    l->max_outstanding = depth;
    return status;
}

int smg_verbs_qp_create(struct verbs_fabric *v, struct smg_qp *port, struct smg_diag *diag)
{
    const struct smg_fabric_limits *l = &v->base.limits;
    struct ibv_qp_cap cap = {l->max_outstanding, l->max_outstanding, l->send_iov, l->recv_iov, (uint32_t)l->inject_bytes};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = v->port_number,
                            .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    struct ibv_cq *cq;
    struct verbs_qp *q = calloc(1, sizeof(*q));
    int error, status = q ? smg_verbs_cq_take(v, &cq, diag)
                          : smg_fabric_fail(diag, SMG_ERR_NOMEM, "verbs: out of memory for a queue pair");
    if (status) {
        goto free_q;
    }
    q->port = port;
    q->ibv = make_qp(v, cq, port, &cap);
    if (!q->ibv) {
        status = smg_verbs_fail(diag, SMG_ERR_IO, "ibv_create_qp", errno);
        goto free_q;
    }
    error = ibv_modify_qp(q->ibv, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error) {
        status = smg_verbs_fail(diag, SMG_ERR_IO, "ibv_modify_qp to INIT", error);
        goto destroy_qp;
    }
    if (getrandom(&q->psn, sizeof(q->psn), GRND_NONBLOCK) != (ssize_t)sizeof(q->psn)) {
        q->psn = (uint32_t)(1e6 * smg_fabric_now_s()); /* differs from the last connection's: all that matters */
    }
    q->psn &= 0xffffff;
    port->impl = q;
    return SMG_OK;

destroy_qp:
    (void)ibv_destroy_qp(q->ibv);
free_q:
    free(q);
    return status;
}

/* ---- Open and close ---- */

int smg_verbs_watch_add(struct verbs_fabric *v, struct verbs_watch *watch, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = watch};
    return epoll_ctl(v->epoll, EPOLL_CTL_ADD, watch->fd, &e) ? errno : 0;
}

static int watch_device(struct verbs_fabric *v, struct verbs_watch *watch, enum verbs_watch_kind kind, int fd)
{
    int flags = fcntl(fd, F_GETFL);
    *watch = (struct verbs_watch){kind, fd};
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : smg_verbs_watch_add(v, watch, EPOLLIN);
}

static int open_events(struct verbs_fabric *v, struct smg_diag *diag)
{
    v->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (v->epoll < 0) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "epoll_create1", errno);
    }
    v->wake = (struct verbs_watch){VERBS_WATCH_WAKE, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    if (v->wake.fd < 0) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "eventfd", errno);
    }
    v->channel = ibv_create_comp_channel(v->context);
    if (!v->channel) {
        return smg_verbs_fail(diag, SMG_ERR_IO, "ibv_create_comp_channel", errno);
    }
    int error = smg_verbs_watch_add(v, &v->wake, EPOLLIN);
    error = error ? error : watch_device(v, &v->events, VERBS_WATCH_CHANNEL, v->channel->fd);
    error = error ? error : watch_device(v, &v->async, VERBS_WATCH_ASYNC, v->context->async_fd);
    return error ? smg_verbs_fail(diag, SMG_ERR_IO, "epoll_ctl", error) : SMG_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* nothing is left to do about a failure, here and below */
    }
}

static void verbs_release(struct verbs_fabric *v)
{
    for (size_t i = 0; i < v->n_strangers; i++) {
        smg_verbs_link_close(v->strangers[i]);
    }
    for (size_t i = 0; i < v->n_cqs; i++) {
        (void)ibv_destroy_cq(v->cqs[i].cq);
    }
    free(v->cqs);
    if (v->channel) {
        (void)ibv_destroy_comp_channel(v->channel);
    }
    if (v->pd) {
        (void)ibv_dealloc_pd(v->pd);
    }
    if (v->context) {
        (void)ibv_close_device(v->context);
    }
    close_fd(v->listener.fd);
    close_fd(v->wake.fd);
    close_fd(v->epoll);
    free(v);
}

static int verbs_open(const struct smg_fabric_config *config, struct smg_fabric **out, struct smg_diag *diag)
{
    struct verbs_fabric *v = calloc(1, sizeof(*v));
    if (!v) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "verbs: out of memory for a fabric");
    }
    v->epoll = v->wake.fd = v->listener.fd = -1;
    int status = smg_verbs_device_open(v, config->provider, config->node, diag);
    if (status) {
        goto release_fabric;
    }
    v->pd = ibv_alloc_pd(v->context);
    status = v->pd ? open_events(v, diag) : smg_verbs_fail(diag, SMG_ERR_IO, "ibv_alloc_pd", errno);
    if (!status) {
        status = read_limits(v, config->max_outstanding, diag);
    }
    if (!status) {
        status = smg_verbs_listen(v, diag);
    }
    if (status) {
        goto release_fabric;
    }
    *out = &v->base;
    return SMG_OK;

release_fabric:
    verbs_release(v);
    return status;
}

static void verbs_close(struct smg_fabric *f)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        for (unsigned k = 0; k < SMG_QUEUES; k++) {
            struct verbs_qp *q = f->peers[i].qp[k].impl;
            if (q) {
                (void)ibv_destroy_qp(q->ibv);
                smg_verbs_link_close(q->link);
                free(q);
            }
        }
    }
    verbs_release(verbs_of(f));
}

/* ---- Memory ---- */

static int verbs_register(struct smg_mr *mr, struct smg_diag *diag)
{
    struct ibv_mr *m =
        ibv_reg_mr(verbs_of(mr->fabric)->pd, mr->base, mr->bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!m) {
        return smg_fabric_fail(diag, SMG_ERR_IO, "verbs: ibv_reg_mr of %zu bytes: %s%s", mr->bytes, strerror(errno),
                               errno == ENOMEM ? "; registered memory is locked: ulimit -l" : "");
    }
    mr->impl = m;
    mr->remote.base = (uint64_t)(uintptr_t)mr->base;
    mr->remote.key = m->rkey;
    return SMG_OK;
}

/* The address that the GPU has for it is the one that posts and peers use. */
static int verbs_register_dmabuf(struct smg_mr *mr, int dmabuf, struct smg_diag *diag)
{
    struct verbs_fabric *v = verbs_of(mr->fabric);
    struct ibv_mr *m = ibv_reg_dmabuf_mr(v->pd, 0, mr->bytes, (uint64_t)(uintptr_t)mr->base, dmabuf,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!m && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: device %s takes no memory of a GPU (ibv_reg_dmabuf_mr: %s)",
                               ibv_get_device_name(v->context->device), strerror(errno));
    }
    if (!m) {
        return smg_fabric_fail(diag, SMG_ERR_IO, "verbs: ibv_reg_dmabuf_mr of %zu bytes: %s", mr->bytes, strerror(errno));
    }
    mr->impl = m;
    mr->remote.base = (uint64_t)(uintptr_t)mr->base;
    mr->remote.key = m->rkey;
    return SMG_OK;
}

static void verbs_deregister(struct smg_mr *mr)
{
    (void)ibv_dereg_mr(mr->impl);
}

const struct smg_fabric_type smg_fabric_verbs = {
    .name = "verbs",
    .doc = "RDMA queue pairs of libibverbs; the first active device unless NAME[:PORT[:GID_INDEX]] is given",
    .open = verbs_open,
    .close = verbs_close,
    .connect = smg_verbs_connect,
    .progress = smg_verbs_progress,
    .wait = smg_verbs_wait,
    .wake = smg_verbs_wake,
    .disconnect = smg_verbs_disconnect,
    .post = smg_verbs_post,
    .register_memory = verbs_register,
    .register_dmabuf = verbs_register_dmabuf,
    .deregister = verbs_deregister,
    .cause = smg_verbs_cause,
};

#endif
