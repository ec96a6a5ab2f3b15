#include "config.h"

#include "emu/fabric_port.h"
#include "emu/gpu_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_OUTSTANDING 128u
#define MESH_STEP_S             100e-6

const struct smg_fabric_type *const smg_fabric_types[] = {
#ifdef HAVE_LIBFABRIC
    &smg_fabric_ofi,
#endif
#ifdef HAVE_VERBS
    &smg_fabric_verbs,
#endif
    NULL,
};

const struct smg_fabric_type *smg_fabric_find(const char *name)
{
    for (const struct smg_fabric_type *const *t = smg_fabric_types; *t; t++) {
        if (!strcmp((*t)->name, name)) {
            return *t;
        }
    }
    return NULL;
}

int smg_fabric_unknown(const char *name, struct smg_diag *diag)
{
    const char *why = !strcmp(name, "ofi")     ? ": it was built without libfabric (libfabric-dev)"
                      : !strcmp(name, "verbs") ? ": it was built without libibverbs (libibverbs-dev)"
                                               : "";
    return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "this program has no fabric '%.60s'%s", name, why);
}

const char *smg_fabric_type_name(const struct smg_fabric_type *type)
{
    return type->name;
}

const char *smg_fabric_type_doc(const struct smg_fabric_type *type)
{
    return type->doc;
}

int smg_fabric_fail(struct smg_diag *diag, int status, const char *format, ...)
{
    va_list args;
    if (diag) {
        va_start(args, format);
        vsnprintf(diag->text, sizeof(diag->text), format, args);
        va_end(args);
    }
    return status;
}

const char *smg_queue_name(uint16_t queue)
{
    static const char *const name[SMG_QUEUES] = {"PUSH", "REPLY", "CTL"};
    return queue < SMG_QUEUES ? name[queue] : "?";
}

/* ---- Open and close ---- */

int smg_fabric_load(const struct smg_fabric_type *type, struct smg_diag *diag)
{
    return type->load ? type->load(diag) : SMG_OK;
}

int smg_fabric_open(const struct smg_fabric_type *type, const struct smg_fabric_config *config, struct smg_fabric **out,
                    struct smg_diag *diag)
{
    struct smg_fabric_config c = *config;
    struct smg_fabric *f;
    c.max_outstanding = c.max_outstanding ? c.max_outstanding : DEFAULT_MAX_OUTSTANDING;
    int status = smg_fabric_load(type, diag);
    if (!status) {
        status = type->open(&c, &f, diag);
    }
    if (status) {
        return status;
    }
    f->type = type;
    f->self = c.self;
    f->stop = c.stop;
    f->stop_arg = c.stop_arg;
    if (!f->limits.max_outstanding || f->limits.max_outstanding > c.max_outstanding) {
        f->limits.max_outstanding = c.max_outstanding;
    }
    atomic_init(&f->woken, 0);
    *out = f;
    return SMG_OK;
}

static void peer_free_slots(struct smg_peer *p)
{
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        smg_slots_free(&p->qp[q].send);
        smg_slots_free(&p->qp[q].recv);
    }
}

void smg_fabric_close(struct smg_fabric *f)
{
    if (!f) {
        return;
    }
    struct smg_peer *peers = f->peers;
    size_t n_peers = f->n_peers;
    f->type->close(f);
    for (size_t i = 0; i < n_peers; i++) {
        peer_free_slots(&peers[i]);
    }
    free(peers);
}

const struct smg_fabric_limits *smg_fabric_limits(const struct smg_fabric *f)
{
    return &f->limits;
}

void smg_fabric_address(const struct smg_fabric *f, struct smg_fabric_address *address_out)
{
    *address_out = f->address;
}

const char *smg_fabric_cause(const struct smg_fabric *f, int cause)
{
    return cause ? f->type->cause(cause) : "";
}

/* ---- Memory ---- */

/* dmabuf: -1: memory of the host. */
static int register_any(struct smg_fabric *f, void *base, size_t bytes, int dmabuf, struct smg_mr **out, struct smg_diag *diag)
{
    if (!base || !bytes) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: cannot register %zu bytes at %p", bytes, base);
    }
    struct smg_mr *mr = calloc(1, sizeof(*mr));
    if (!mr) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "fabric: out of memory for a memory region");
    }
    mr->fabric = f;
    mr->base = base;
    mr->bytes = bytes;
    int status = dmabuf < 0 ? f->type->register_memory(mr, diag) : f->type->register_dmabuf(mr, dmabuf, diag);
    if (status) {
        goto free_mr;
    }
    mr->remote.bytes = bytes;
    *out = mr;
    return SMG_OK;

free_mr:
    free(mr);
    return status;
}

int smg_fabric_register(struct smg_fabric *f, void *base, size_t bytes, struct smg_mr **out, struct smg_diag *diag)
{
    return register_any(f, base, bytes, -1, out, diag);
}

int smg_fabric_register_gpu(struct smg_fabric *f, const struct smg_gpu_memory *memory, struct smg_mr **out, struct smg_diag *diag)
{
    if (!f->type->register_dmabuf) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "fabric %s takes no memory of a GPU; --fabric verbs may",
                               f->type->name);
    }
    return register_any(f, (void *)(uintptr_t)memory->address, memory->bytes, memory->dmabuf, out, diag);
}

void smg_mr_close(struct smg_mr *mr)
{
    if (mr) {
        mr->fabric->type->deregister(mr);
        free(mr);
    }
}

struct smg_remote smg_mr_remote(const struct smg_mr *mr)
{
    return mr->remote;
}

/* ---- Hello ---- */

static const uint8_t hello_magic[8] = {'S', 'M', 'G', 'F', 'A', 'B', 0, 1}; /* last byte: version */

void smg_hello_encode(uint16_t instance, uint16_t queue, uint8_t hello_out[SMG_HELLO_BYTES])
{
    memcpy(hello_out, hello_magic, sizeof(hello_magic));
    hello_out[8] = (uint8_t)(instance & 0xff);
    hello_out[9] = (uint8_t)(instance >> 8);
    hello_out[10] = (uint8_t)(queue & 0xff);
    hello_out[11] = (uint8_t)(queue >> 8);
}

int smg_hello_decode(const uint8_t *hello, size_t bytes, uint16_t *instance_out, uint16_t *queue_out)
{
    if (bytes < SMG_HELLO_BYTES || memcmp(hello, hello_magic, sizeof(hello_magic))) {
        return SMG_ERR_PROTOCOL;
    }
    *instance_out = (uint16_t)(hello[8] | hello[9] << 8);
    *queue_out = (uint16_t)(hello[10] | hello[11] << 8);
    return SMG_OK;
}

/* ---- Mesh ---- */

static struct smg_peer *peer_find(const struct smg_fabric *f, uint16_t instance)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        if (f->peers[i].instance == instance) {
            return &f->peers[i];
        }
    }
    return NULL;
}

struct smg_qp *smg_fabric_qp(const struct smg_fabric *f, uint16_t peer, enum smg_queue queue)
{
    struct smg_peer *p = peer_find(f, peer);
    return p && queue < SMG_QUEUES && (p->queues & SMG_QUEUE_BIT(queue)) ? &p->qp[queue] : NULL;
}

struct smg_qp *smg_port_expected(const struct smg_fabric *f, uint16_t instance, uint16_t queue)
{
    struct smg_qp *qp = queue < SMG_QUEUES ? smg_fabric_qp(f, instance, (enum smg_queue)queue) : NULL;
    return qp && instance > f->self && qp->state == SMG_QP_CONNECTING && !qp->impl ? qp : NULL;
}

void smg_port_up(struct smg_qp *qp)
{
    if (qp->state == SMG_QP_CONNECTING) {
        qp->state = SMG_QP_UP;
    }
}

void smg_port_down(struct smg_qp *qp, int cause)
{
    struct smg_peer *p = qp->peer;
    if (qp->state == SMG_QP_DOWN) {
        return;
    }
    qp->state = SMG_QP_DOWN;
    qp->cause = cause;
    qp->fabric->settling = 1;
    if (!p->suspect) {
        p->suspect = 1;
        p->suspect_since_s = smg_fabric_now_s();
        qp->fabric->suspects++;
    }
}

static int peer_check(const struct smg_fabric *f, const struct smg_fabric_peer *want, struct smg_diag *diag)
{
    if (want->instance == f->self || peer_find(f, want->instance)) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: instance %u named twice among the peers of %u", want->instance,
                               f->self);
    }
    if (!want->queues || (want->queues & ~SMG_QUEUE_ALL)) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: peer %u has no valid set of queues: %#x", want->instance,
                               want->queues);
    }
    return SMG_OK;
}

static int peer_init(struct smg_fabric *f, const struct smg_fabric_peer *want, struct smg_diag *diag)
{
    struct smg_peer *p = &f->peers[f->n_peers];
    int status = peer_check(f, want, diag);
    if (status) {
        return status;
    }
    p->instance = want->instance;
    p->queues = want->queues;
    f->n_peers++; /* from here on smg_fabric_close() frees what is allocated below */
    for (uint16_t q = 0; q < SMG_QUEUES; q++) {
        struct smg_qp *qp = &p->qp[q];
        qp->fabric = f;
        qp->peer = p;
        qp->queue = q;
        if ((p->queues & SMG_QUEUE_BIT(q)) && (smg_slots_init(&qp->send, qp, f->limits.max_outstanding) ||
                                               smg_slots_init(&qp->recv, qp, f->limits.max_outstanding))) {
            return smg_fabric_fail(diag, SMG_ERR_NOMEM, "fabric: out of memory for peer %u", p->instance);
        }
    }
    return SMG_OK;
}

static int peers_init(struct smg_fabric *f, const struct smg_fabric_peer *want, size_t n, struct smg_diag *diag)
{
    f->peers = calloc(n + 1, sizeof(*f->peers)); /* + 1: never NULL, which says "not connected" */
    if (!f->peers) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "fabric: out of memory for %zu peers", n);
    }
    for (size_t i = 0; i < n; i++) {
        int status = peer_init(f, &want[i], diag);
        if (status) {
            return status;
        }
    }
    return SMG_OK;
}

/* One side of each pair dials, so that no two requests for one queue pair can cross. */
static int peers_dial(struct smg_fabric *f, const struct smg_fabric_peer *want, struct smg_diag *diag)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        struct smg_peer *p = &f->peers[i];
        for (unsigned q = 0; q < SMG_QUEUES && p->instance < f->self; q++) {
            int status = p->queues & SMG_QUEUE_BIT(q) ? f->type->connect(&p->qp[q], &want[i].address, diag) : SMG_OK;
            if (status) {
                return status;
            }
        }
    }
    return SMG_OK;
}

/* Queue pairs not up; *down_out: one that failed, or NULL. */
static size_t mesh_missing(const struct smg_fabric *f, const struct smg_qp **down_out)
{
    size_t missing = 0;
    *down_out = NULL;
    for (size_t i = 0; i < f->n_peers; i++) {
        for (unsigned q = 0; q < SMG_QUEUES; q++) {
            const struct smg_qp *qp = &f->peers[i].qp[q];
            if ((f->peers[i].queues & SMG_QUEUE_BIT(q)) && qp->state != SMG_QP_UP) {
                missing++;
                *down_out = qp->state == SMG_QP_DOWN ? qp : *down_out;
            }
        }
    }
    return missing;
}

static int mesh_timed_out(const struct smg_fabric *f, double timeout_s, struct smg_diag *diag)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < f->n_peers; i++) {
        for (uint16_t q = 0; q < SMG_QUEUES && used < sizeof(list); q++) {
            const struct smg_qp *qp = &f->peers[i].qp[q];
            if ((f->peers[i].queues & SMG_QUEUE_BIT(q)) && qp->state != SMG_QP_UP) {
                int n = snprintf(list + used, sizeof(list) - used, "%s%u %s", used ? ", " : "", f->peers[i].instance,
                                 smg_queue_name(q));
                used += n > 0 ? (size_t)n : 0;
            }
        }
    }
    return smg_fabric_fail(diag, SMG_ERR_LOST, "fabric: instance %u: after %g s still no connection with peer %s", f->self,
                           timeout_s, list);
}

static int mesh_await(struct smg_fabric *f, double timeout_s, struct smg_diag *diag)
{
    double deadline_s = smg_fabric_now_s() + timeout_s;
    struct smg_sink none = {NULL, 0, 0};
    const struct smg_qp *down;
    for (;;) {
        int status = f->type->progress(f, &none, diag);
        if (status) {
            return status;
        }
        if (!mesh_missing(f, &down)) {
            return SMG_OK;
        }
        if (down) {
            return smg_fabric_fail(diag, SMG_ERR_LOST, "fabric: instance %u: connection with peer %u %s failed: %s", f->self,
                                   down->peer->instance, smg_queue_name(down->queue),
                                   down->cause ? f->type->cause(down->cause) : "closed by the peer");
        }
        if (f->stop && f->stop(f->stop_arg)) {
            return smg_fabric_fail(diag, SMG_ERR_INTERRUPTED, "%s", smg_status_string(SMG_ERR_INTERRUPTED));
        }
        if (smg_fabric_now_s() > deadline_s) {
            return mesh_timed_out(f, timeout_s, diag);
        }
        smg_fabric_sleep(MESH_STEP_S);
    }
}

int smg_fabric_connect(struct smg_fabric *f, const struct smg_fabric_peer *peers, size_t n, double timeout_s,
                       struct smg_diag *diag)
{
    if (f->peers) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "fabric: instance %u is connected already", f->self);
    }
    int status = peers_init(f, peers, n, diag);
    if (!status) {
        status = peers_dial(f, peers, diag);
    }
    return status ? status : mesh_await(f, timeout_s, diag);
}
