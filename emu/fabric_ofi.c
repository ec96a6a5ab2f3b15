/* Fabric over libfabric, connection-oriented endpoints (FI_EP_MSG), provider tcp by default. Checked against libfabric 1.17. */
#include "config.h"

#include "emu/fabric_port.h"
#include "emu/ofi_library.h"

#ifdef HAVE_LIBFABRIC

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define API_VERSION     FI_VERSION(1, 17)
#define CQ_ENTRIES      4096
#define CQ_BATCH        32
#define MAX_IOV         8 /* limits reported beyond it are clamped */
#define NAP_S           50e-6
#define SREAD_MIN_S     1e-3 /* fi_cq_sread() counts in milliseconds */
#define SREAD_MAX_S     5e-3 /* a broken connection shows up on the event queue, which fi_cq_sread() does not watch */
#define EQ_EVERY_PASSES 16   /* the event queue is read at least this often while completions keep coming */
#define KNOWN_MR_MODE   (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

struct ofi_fabric {
    struct smg_fabric base; /* first: the generic half knows only this */
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_eq *eq;
    struct fid_pep *pep;
    struct fid_domain *domain;
    struct fid_cq *cq;
    uint64_t next_key;
    unsigned passes;
};

static const struct smg_ofi_library *lib; /* set by ofi_load(), which comes before everything else */

static int ofi_load(struct smg_diag *diag)
{
    return smg_ofi_load(&lib, diag);
}

static struct ofi_fabric *ofi(struct smg_fabric *f)
{
    return (struct ofi_fabric *)f;
}

/* ret: negative error number of libfabric. */
static int fail(struct smg_diag *diag, int status, const char *what, long ret)
{
    return smg_fabric_fail(diag, status, "libfabric: %s: %s", what, lib->strerror((int)-ret));
}

/* ---- Open ---- */

/* provider NULL: any. */
static struct fi_info *hints_create(const char *provider)
{
    struct fi_info *h = lib->dupinfo(NULL);
    if (!h) {
        return NULL;
    }
    h->fabric_attr->prov_name = provider ? strdup(provider) : NULL;
    h->ep_attr->type = FI_EP_MSG;
    h->caps = FI_MSG | FI_RMA;
    h->tx_attr->msg_order = FI_ORDER_WAW;
    h->domain_attr->mr_mode = KNOWN_MR_MODE; /* what we can serve, not what we want */
    h->domain_attr->threading = FI_THREAD_DOMAIN;
    if (provider && !h->fabric_attr->prov_name) {
        lib->freeinfo(h);
        return NULL;
    }
    return h;
}

/* "; there are tcp, verbs": those that would do at node. */
static void name_providers(const char *node, char *text, size_t bytes)
{
    struct fi_info *hints = hints_create(NULL), *list = NULL;
    size_t used = 0;
    text[0] = '\0';
    if (hints && lib->getinfo(API_VERSION, node, "0", FI_SOURCE, hints, &list)) {
        list = NULL;
    }
    for (const struct fi_info *i = list, *last = NULL; i && used < bytes; last = i, i = i->next) {
        if (!last || strcmp(last->fabric_attr->prov_name, i->fabric_attr->prov_name) != 0) { /* each has its entries together */
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "; there are ", i->fabric_attr->prov_name);
        }
    }
    if (list) {
        lib->freeinfo(list);
    }
    if (hints) {
        lib->freeinfo(hints);
    }
}

/* "PROVIDER[@ADDRESS]": the address is in front of the one of the configuration, and of 127.0.0.1. */
static int find_provider(struct ofi_fabric *o, const struct smg_fabric_config *config, struct smg_diag *diag)
{
    const char *named = config->provider ? config->provider : "tcp", *at = strchr(named, '@');
    const char *node = at ? at + 1 : config->node ? config->node : "127.0.0.1";
    char provider[64];
    int n = at ? (int)(at - named) : (int)strlen(named);
    if (!n || n >= (int)sizeof(provider) || (at && !at[1])) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "libfabric: device '%.100s': expected PROVIDER or PROVIDER@ADDRESS",
                               named);
    }
    snprintf(provider, sizeof(provider), "%.*s", n, named);
    struct fi_info *hints = hints_create(provider);
    if (!hints) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "libfabric: out of memory for fi_info");
    }
    int ret = lib->getinfo(API_VERSION, node, "0", FI_SOURCE, hints, &o->info);
    lib->freeinfo(hints);
    if (ret) {
        char others[256];
        name_providers(node, others, sizeof(others));
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED,
                               "libfabric: fi_getinfo: no provider '%s' with message endpoints on %s: %s%s", provider, node,
                               lib->strerror(-ret), others);
    }
    return SMG_OK;
}

static uint32_t clamp_iov(size_t limit)
{
    return limit < MAX_IOV ? (uint32_t)limit : MAX_IOV;
}

static void read_limits(const struct fi_info *info, struct smg_fabric_limits *l)
{
    l->send_iov = clamp_iov(info->tx_attr->iov_limit);
    l->recv_iov = clamp_iov(info->rx_attr->iov_limit);
    l->rma_iov = clamp_iov(info->tx_attr->rma_iov_limit);
    l->inject_bytes = info->tx_attr->inject_size;
    l->max_message_bytes = info->ep_attr->max_msg_size;
    l->waw_ordered = (info->tx_attr->msg_order & FI_ORDER_WAW) && info->ep_attr->max_order_waw_size > 0;
    l->max_order_waw_bytes = l->waw_ordered ? info->ep_attr->max_order_waw_size : 0;
}

static int open_queues(struct ofi_fabric *o, struct smg_diag *diag)
{
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_cq_attr cq_attr = {.size = CQ_ENTRIES, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
    int ret = lib->fabric(o->info->fabric_attr, &o->fabric, NULL);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_fabric", ret);
    }
    ret = fi_eq_open(o->fabric, &eq_attr, &o->eq, NULL);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_eq_open", ret);
    }
    ret = fi_domain(o->fabric, o->info, &o->domain, NULL);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_domain", ret);
    }
    ret = fi_cq_open(o->domain, &cq_attr, &o->cq, NULL);
    return ret ? fail(diag, SMG_ERR_IO, "fi_cq_open", ret) : SMG_OK;
}

static int listen_here(struct ofi_fabric *o, struct smg_diag *diag)
{
    struct smg_fabric_address *a = &o->base.address;
    size_t bytes = sizeof(a->data);
    int ret = fi_passive_ep(o->fabric, o->info, &o->pep, NULL);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_passive_ep", ret);
    }
    ret = fi_pep_bind(o->pep, &o->eq->fid, 0);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_pep_bind", ret);
    }
    ret = fi_listen(o->pep);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_listen", ret);
    }
    ret = fi_getname(&o->pep->fid, a->data, &bytes);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_getname", ret);
    }
    a->bytes = (uint32_t)bytes;
    return SMG_OK;
}

static void close_fid(struct fid *fid)
{
    if (fid) {
        (void)fi_close(fid); /* nothing is left to do about a failure */
    }
}

static void ofi_release(struct ofi_fabric *o)
{
    close_fid(o->pep ? &o->pep->fid : NULL);
    close_fid(o->cq ? &o->cq->fid : NULL);
    close_fid(o->domain ? &o->domain->fid : NULL);
    close_fid(o->eq ? &o->eq->fid : NULL);
    close_fid(o->fabric ? &o->fabric->fid : NULL);
    if (o->info) {
        lib->freeinfo(o->info);
    }
    free(o);
}

static int ofi_open(const struct smg_fabric_config *config, struct smg_fabric **out, struct smg_diag *diag)
{
    struct ofi_fabric *o = calloc(1, sizeof(*o));
    if (!o) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "libfabric: out of memory for a fabric");
    }
    int status = find_provider(o, config, diag);
    if (!status) {
        read_limits(o->info, &o->base.limits);
        status = open_queues(o, diag);
    }
    if (!status) {
        status = listen_here(o, diag);
    }
    if (status) {
        goto release_fabric;
    }
    *out = &o->base;
    return SMG_OK;

release_fabric:
    ofi_release(o);
    return status;
}

static void peer_close(struct smg_peer *p)
{
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        struct fid_ep *ep = p->qp[q].impl;
        if (ep) {
            (void)fi_shutdown(ep, 0);
            close_fid(&ep->fid);
        }
    }
}

/* Requests that nobody has answered are refused: left alone, their sockets would stay open for as long as the process lives. Each
 * look takes in a part of one that is arriving; one that arrives later than these looks stays the library's. */
enum { CLOSE_LOOKS = 4 };

static void refuse_pending(struct ofi_fabric *o)
{
    union {
        struct fi_eq_cm_entry entry;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 256];
    } buffer;
    struct fi_eq_err_entry e;
    uint32_t event;
    for (int empty = 0; empty < CLOSE_LOOKS;) {
        ssize_t ret = fi_eq_read(o->eq, &event, &buffer, sizeof(buffer), 0);
        if (ret == -FI_EAVAIL) {
            memset(&e, 0, sizeof(e));
            ret = fi_eq_readerr(o->eq, &e, 0);
        } else if (ret > 0 && event == FI_CONNREQ) {
            (void)fi_reject(o->pep, buffer.entry.info->handle, NULL, 0);
            lib->freeinfo(buffer.entry.info);
        }
        empty += ret <= 0;
    }
}

static void ofi_close(struct smg_fabric *f)
{
    refuse_pending(ofi(f));
    for (size_t i = 0; i < f->n_peers; i++) {
        peer_close(&f->peers[i]);
    }
    ofi_release(ofi(f));
}

/* ---- Connections ---- */

static int bind_endpoint(struct ofi_fabric *o, struct fid_ep *ep, struct smg_diag *diag)
{
    int ret = fi_ep_bind(ep, &o->eq->fid, 0);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_ep_bind of the event queue", ret);
    }
    ret = fi_ep_bind(ep, &o->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_ep_bind for transmit", ret);
    }
    ret = fi_ep_bind(ep, &o->cq->fid, FI_RECV);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_ep_bind for receive", ret);
    }
    ret = fi_enable(ep);
    return ret ? fail(diag, SMG_ERR_IO, "fi_enable", ret) : SMG_OK;
}

/* On success qp owns the endpoint. */
static int open_endpoint(struct ofi_fabric *o, struct smg_qp *qp, struct fi_info *info, struct smg_diag *diag)
{
    struct fid_ep *ep;
    int ret = fi_endpoint(o->domain, info, &ep, qp);
    if (ret) {
        return fail(diag, SMG_ERR_IO, "fi_endpoint", ret);
    }
    int status = bind_endpoint(o, ep, diag);
    if (status) {
        goto close_endpoint;
    }
    qp->impl = ep;
    return SMG_OK;

close_endpoint:
    close_fid(&ep->fid);
    return status;
}

static int ofi_connect(struct smg_qp *qp, const struct smg_fabric_address *address, struct smg_diag *diag)
{
    struct ofi_fabric *o = ofi(qp->fabric);
    uint8_t hello[SMG_HELLO_BYTES];
    int status = open_endpoint(o, qp, o->info, diag);
    if (status) {
        return status;
    }
    smg_hello_encode(o->base.self, qp->queue, hello);
    int ret = fi_connect(qp->impl, address->data, hello, sizeof(hello));
    if (ret) {
        return smg_fabric_fail(diag, SMG_ERR_LOST, "libfabric: fi_connect to peer %u %s: %s", qp->peer->instance,
                               smg_queue_name(qp->queue), lib->strerror(-ret));
    }
    return SMG_OK;
}

/* A stranger is refused and forgotten: it must not be able to stop the run. */
static int answer_request(struct ofi_fabric *o, struct fi_info *info, const uint8_t *hello, size_t bytes, struct smg_diag *diag)
{
    uint16_t instance = 0, queue = 0;
    uint8_t mine[SMG_HELLO_BYTES];
    struct smg_qp *qp = NULL;
    if (smg_hello_decode(hello, bytes, &instance, &queue) == SMG_OK) {
        qp = smg_port_expected(&o->base, instance, queue);
    }
    if (!qp) {
        (void)fi_reject(o->pep, info->handle, NULL, 0);
        return SMG_OK;
    }
    int status = open_endpoint(o, qp, info, diag);
    if (status) {
        return status;
    }
    smg_hello_encode(o->base.self, queue, mine);
    int ret = fi_accept(qp->impl, mine, sizeof(mine));
    return ret ? fail(diag, SMG_ERR_IO, "fi_accept", ret) : SMG_OK;
}

/* The dialled listener says who it is: an address that was mixed up on the way must not pass for another peer. */
static void greet(struct smg_qp *qp, const uint8_t *hello, size_t bytes)
{
    uint16_t instance, queue;
    int dialled = qp->peer->instance < qp->fabric->self;
    if (dialled && (smg_hello_decode(hello, bytes, &instance, &queue) || instance != qp->peer->instance || queue != qp->queue)) {
        (void)fi_shutdown(qp->impl, 0);
        smg_port_down(qp, FI_EADDRNOTAVAIL);
        return;
    }
    smg_port_up(qp);
}

static int read_event_error(struct ofi_fabric *o, struct smg_diag *diag)
{
    struct fi_eq_err_entry e = {0};
    ssize_t ret = fi_eq_readerr(o->eq, &e, 0);
    if (ret < 0) {
        return ret == -FI_EAGAIN ? SMG_OK : fail(diag, SMG_ERR_IO, "fi_eq_readerr", ret);
    }
    if (e.fid && e.fid->fclass == FI_CLASS_EP) {
        smg_port_down(e.fid->context, e.err);
        return SMG_OK;
    }
    return smg_fabric_fail(diag, SMG_ERR_IO, "libfabric: event queue: %s", lib->strerror(e.err));
}

/* Handles one event; *more_out = 0: there was none. */
static int read_event(struct ofi_fabric *o, int *more_out, struct smg_diag *diag)
{
    union {
        struct fi_eq_cm_entry entry;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 256];
    } buffer;
    uint32_t event = 0;
    int status = SMG_OK;
    ssize_t ret = fi_eq_read(o->eq, &event, &buffer, sizeof(buffer), 0);
    *more_out = ret != -FI_EAGAIN;
    if (ret == -FI_EAVAIL) {
        return read_event_error(o, diag);
    }
    if (ret < 0) {
        return ret == -FI_EAGAIN ? SMG_OK : fail(diag, SMG_ERR_IO, "fi_eq_read", ret);
    }
    size_t n_data = (size_t)ret > sizeof(buffer.entry) ? (size_t)ret - sizeof(buffer.entry) : 0;
    if (event == FI_CONNREQ) {
        status = answer_request(o, buffer.entry.info, buffer.entry.data, n_data, diag);
        lib->freeinfo(buffer.entry.info);
    } else if (event == FI_CONNECTED) {
        greet(buffer.entry.fid->context, buffer.entry.data, n_data);
    } else if (event == FI_SHUTDOWN) {
        smg_port_down(buffer.entry.fid->context, 0);
    }
    return status;
}

static void ofi_disconnect(struct smg_qp *qp)
{
    if (qp->impl) {
        (void)fi_shutdown(qp->impl, 0);
    }
}

/* ---- Completions ---- */

static int read_failure(struct ofi_fabric *o, struct smg_sink *sink, struct smg_diag *diag)
{
    struct fi_cq_err_entry e = {0};
    ssize_t ret = fi_cq_readerr(o->cq, &e, 0);
    if (ret < 0) {
        return ret == -FI_EAGAIN ? SMG_OK : fail(diag, SMG_ERR_IO, "fi_cq_readerr", ret);
    }
    if (!e.op_context) {
        return smg_fabric_fail(diag, SMG_ERR_IO, "libfabric: completion queue: %s", lib->strerror(e.err));
    }
    int status = e.err == FI_ETRUNC ? SMG_ERR_CAPACITY : e.err == FI_EFAULT || e.err == FI_EINVAL ? SMG_ERR_IO : SMG_ERR_LOST;
    smg_port_complete(e.op_context, status, e.err, e.len, sink);
    return SMG_OK;
}

/* Takes the result of fi_cq_read or fi_cq_sread. */
static int take(struct ofi_fabric *o, ssize_t ret, const struct fi_cq_msg_entry *entries, struct smg_sink *sink,
                struct smg_diag *diag)
{
    if (ret == -FI_EAGAIN || ret == -FI_EINTR || ret == -FI_ECANCELED) {
        return SMG_OK;
    }
    if (ret == -FI_EAVAIL) {
        return read_failure(o, sink, diag);
    }
    if (ret < 0) {
        return fail(diag, SMG_ERR_IO, "fi_cq_read", ret);
    }
    for (ssize_t i = 0; i < ret; i++) {
        if (entries[i].op_context) {
            smg_port_complete(entries[i].op_context, SMG_OK, 0, entries[i].len, sink);
        }
    }
    return SMG_OK;
}

static int drain(struct ofi_fabric *o, struct smg_sink *sink, struct smg_diag *diag)
{
    struct fi_cq_msg_entry entries[CQ_BATCH];
    int status = SMG_OK;
    while (!status && sink->n < sink->cap) {
        size_t room = sink->cap - sink->n;
        ssize_t ret = fi_cq_read(o->cq, entries, room < CQ_BATCH ? room : CQ_BATCH);
        if (ret == -FI_EAGAIN) {
            break;
        }
        status = take(o, ret, entries, sink, diag);
    }
    return status;
}

static int ofi_progress(struct smg_fabric *f, struct smg_sink *sink, struct smg_diag *diag)
{
    struct ofi_fabric *o = ofi(f);
    int status = drain(o, sink, diag);
    int more = !sink->n || ++o->passes % EQ_EVERY_PASSES == 0;
    while (!status && more) {
        status = read_event(o, &more, diag);
    }
    return status;
}

static int ofi_wait(struct smg_fabric *f, struct smg_sink *sink, double wait_s, struct smg_diag *diag)
{
    struct ofi_fabric *o = ofi(f);
    struct fi_cq_msg_entry entry;
    if (wait_s < SREAD_MIN_S) {
        smg_fabric_sleep(wait_s < NAP_S ? wait_s : NAP_S);
        return SMG_OK;
    }
    ssize_t ret = fi_cq_sread(o->cq, &entry, 1, NULL, (int)(1e3 * (wait_s < SREAD_MAX_S ? wait_s : SREAD_MAX_S)));
    return take(o, ret, &entry, sink, diag);
}

static void ofi_wake(struct smg_fabric *f)
{
    (void)fi_cq_signal(ofi(f)->cq);
}

/* ---- Posts ---- */

static uint64_t post_flags(const struct smg_work *work)
{
    return (work->flags & SMG_POST_SIGNALED ? FI_COMPLETION : 0) | (work->flags & SMG_POST_DELIVERED ? FI_DELIVERY_COMPLETE : 0) |
           (work->flags & SMG_POST_INJECT ? FI_INJECT : 0) | (work->flags & SMG_POST_MORE ? FI_MORE : 0);
}

static ssize_t post_write(struct fid_ep *ep, const struct smg_work *work, const struct iovec *iov, void **desc)
{
    struct fi_rma_iov remote = {.addr = work->address, .len = work->slot->bytes, .key = work->key};
    struct fi_msg_rma msg = {
        .msg_iov = iov, .desc = desc, .iov_count = work->n_pieces, .rma_iov = &remote, .rma_iov_count = 1, .context = work->slot};
    return fi_writemsg(ep, &msg, post_flags(work));
}

static ssize_t post_message(struct fid_ep *ep, const struct smg_work *work, const struct iovec *iov, void **desc)
{
    struct fi_msg msg = {.msg_iov = iov, .desc = desc, .iov_count = work->n_pieces, .context = work->slot};
    return work->slot->kind == SMG_DONE_RECV ? fi_recvmsg(ep, &msg, FI_COMPLETION) : fi_sendmsg(ep, &msg, post_flags(work));
}

static int ofi_post(struct smg_qp *qp, const struct smg_work *work, struct smg_diag *diag)
{
    struct iovec iov[MAX_IOV];
    void *desc[MAX_IOV];
    for (size_t i = 0; i < work->n_pieces; i++) {
        const struct smg_piece *p = &work->pieces[i];
        iov[i] = (struct iovec){.iov_base = p->data, .iov_len = p->bytes};
        desc[i] = p->mr ? p->mr->desc : NULL;
    }
    int write = work->slot->kind == SMG_DONE_WRITE;
    ssize_t ret = write ? post_write(qp->impl, work, iov, desc) : post_message(qp->impl, work, iov, desc);
    if (ret == -FI_EAGAIN) {
        return fail(diag, SMG_ERR_CAPACITY, "post", (long)ret);
    }
    if (ret) {
        return smg_fabric_fail(diag, SMG_ERR_IO, "libfabric: post to peer %u %s: %s", qp->peer->instance,
                               smg_queue_name(qp->queue), lib->strerror((int)-ret));
    }
    return SMG_OK;
}

/* ---- Memory ---- */

static int ofi_register(struct smg_mr *mr, struct smg_diag *diag)
{
    struct ofi_fabric *o = ofi(mr->fabric);
    struct fid_mr *fid;
    uint64_t access = FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
    int ret = fi_mr_reg(o->domain, mr->base, mr->bytes, access, 0, o->next_key, 0, &fid, NULL);
    if (ret) {
        return smg_fabric_fail(diag, SMG_ERR_IO, "libfabric: fi_mr_reg of %zu bytes: %s", mr->bytes, lib->strerror(-ret));
    }
    o->next_key++;
    mr->impl = fid;
    mr->desc = fi_mr_desc(fid);
    mr->remote.key = fi_mr_key(fid);
    mr->remote.base = o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)mr->base : 0;
    return SMG_OK;
}

static void ofi_deregister(struct smg_mr *mr)
{
    struct fid_mr *fid = mr->impl;
    close_fid(&fid->fid);
}

static const char *ofi_cause(int cause)
{
    return lib->strerror(cause);
}

const struct smg_fabric_type smg_fabric_ofi = {
    .name = "ofi",
    .doc = "libfabric message endpoints; provider tcp unless another is named",
    .load = ofi_load,
    .open = ofi_open,
    .close = ofi_close,
    .connect = ofi_connect,
    .progress = ofi_progress,
    .wait = ofi_wait,
    .wake = ofi_wake,
    .disconnect = ofi_disconnect,
    .post = ofi_post,
    .register_memory = ofi_register,
    .deregister = ofi_deregister,
    .cause = ofi_cause,
};

#endif
