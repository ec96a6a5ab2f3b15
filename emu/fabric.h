/* Fabric: queue pairs, registered memory and completions between the processes of one emulated cluster.
 *
 * One process per instance opens one fabric: one listening address, one completion queue for everything. Each pair of peers is
 * joined by up to three queue pairs (PUSH, REPLY, CTL): order holds inside a queue pair, never between two, and receives match
 * sends in order, so control never consumes a data receive. Backends (libfabric, verbs) implement the table in emu/fabric_port.h.
 *
 * Life of a process:
 *     smg_fabric_open -> smg_fabric_address -> (harness swaps addresses) -> smg_fabric_connect -> smg_fabric_register, receives
 *     -> (harness swaps smg_remote) -> write/send/recv + poll -> smg_fabric_close
 *
 * Rules that hold for every backend:
 *  - One thread owns a fabric; only smg_fabric_wake() may be called from another. Never use a fabric across fork().
 *  - The target of WRITEs must keep calling smg_fabric_poll(): over ofi data lands only while it polls (over verbs it lands by
 *    itself), and a landed WRITE makes no completion there. Who waits for memory to change polls with a short timeout (some
 *    100 us): only completions end a wait.
 *  - A peer sends only after the receiver has posted a receive (keep receives posted ahead on CTL). An unmatched send stalls its
 *    queue pair until there is one, and waits turn into busy loops meanwhile.
 *  - After a receive that was too small for its message the queue pair must not be used any more.
 *  - Buffers belong to the fabric from the post to its completion, except with SMG_POST_INJECT.
 *  - Each signaled post and each receive completes exactly once, with an error if the peer is lost; a post that is not signaled
 *    completes only if it fails. Posts that were refused (status other than SMG_OK) never complete.
 *  - Without SMG_POST_DELIVERED a completion means only that the buffer is free again: a WRITE to a dead peer may succeed.
 */
#ifndef SMG_EMU_FABRIC_H
#define SMG_EMU_FABRIC_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum smg_queue { SMG_QUEUE_PUSH, SMG_QUEUE_REPLY, SMG_QUEUE_CTL, SMG_QUEUES };

/* Sets of queues, for struct smg_fabric_peer. */
#define SMG_QUEUE_BIT(queue) (1u << (queue))
#define SMG_QUEUE_ALL        ((1u << SMG_QUEUES) - 1u)

struct smg_fabric;      /* one per process */
struct smg_fabric_type; /* a backend; complete in emu/fabric_port.h */
struct smg_qp;          /* one queue pair; owned by its fabric */
struct smg_mr;          /* registered memory; owned by the caller until smg_mr_close() */

struct smg_fabric_config {
    /* The backend's own name of a device or provider. ofi: PROVIDER[@ADDRESS], NULL: "tcp"; ADDRESS is where to listen. verbs:
     * NAME[:PORT[:GID_INDEX]], NULL: the first device with an active port. */
    const char *provider;
    /* Local address to listen on. ofi, NULL: 127.0.0.1. verbs: the GID is the one of this address; NULL: the port's first IPv4.
     */
    const char *node;
    uint32_t max_outstanding; /* posts per queue pair and direction before SMG_ERR_CAPACITY; 0: 128; a device may have less */
    uint16_t self;            /* this instance */
    int (*stop)(void *arg);   /* non-zero: smg_fabric_connect() shall end with SMG_ERR_INTERRUPTED; NULL: no */
    void *stop_arg;
};

/* What the opened device promises. Posts beyond a limit are refused, never tried. */
struct smg_fabric_limits {
    uint32_t send_iov;        /* pieces of one send or of the local side of one write */
    uint32_t recv_iov;        /* pieces of one receive */
    uint32_t rma_iov;         /* remote pieces of one write the device could do; smg_fabric_write() uses one */
    uint32_t max_outstanding; /* as configured, or what the device has if that is less */
    size_t inject_bytes;      /* most bytes with SMG_POST_INJECT */
    size_t max_message_bytes;
    int waw_ordered;            /* a write never becomes visible before an earlier write of its queue pair */
    size_t max_order_waw_bytes; /* ... for writes of up to this size; SIZE_MAX: any */
};

/* Where peers connect to: plain bytes, to be carried by the harness (pipe, file). Valid while the fabric is open. */
struct smg_fabric_address {
    uint32_t bytes;
    uint8_t data[124];
};

struct smg_fabric_peer {
    uint16_t instance;
    uint16_t queues; /* SMG_QUEUE_BIT()s; both sides must name the same set */
    struct smg_fabric_address address;
};

/* Remote memory as its owner exports it: plain numbers, to be carried by the harness. base is 0 where the device addresses a
 * region by offsets and the owner's pointer where it wants virtual addresses: users only add offsets. */
struct smg_remote {
    uint64_t base;
    uint64_t key;
    uint64_t bytes; /* size of the region: a write past it is refused here instead of breaking the connection */
};

/* One piece of a gather or scatter list, inside the registered memory mr. With SMG_POST_INJECT mr may be NULL. */
struct smg_piece {
    void *data;
    size_t bytes;
    const struct smg_mr *mr;
};

enum smg_post_flag {
    SMG_POST_SIGNALED = 1u,  /* report a completion */
    SMG_POST_DELIVERED = 2u, /* complete only when placed in the peer's memory (verbs: acknowledged by the peer's adapter, so in
                              * its domain of memory); implies SIGNALED; a lost peer is an error */
    SMG_POST_INJECT = 4u,    /* bytes are copied before the call returns (up to inject_bytes) */
    SMG_POST_MORE = 8u       /* another post on this queue pair follows at once: one doorbell for the chain */
};

enum smg_completion_kind {
    SMG_DONE_WRITE,
    SMG_DONE_SEND,
    SMG_DONE_RECV,
    SMG_DONE_PEER_LOST /* once per peer, after its last completion; queue, context and bytes are 0 */
};

struct smg_completion {
    uint64_t context; /* as given to the post */
    size_t bytes;     /* RECV: as sent by the peer; else as posted */
    uint16_t kind;    /* enum smg_completion_kind */
    uint16_t peer;
    uint16_t queue; /* enum smg_queue */
    uint16_t pad;
    int32_t status; /* SMG_OK, SMG_ERR_LOST (connection gone), SMG_ERR_CAPACITY (receive too small), SMG_ERR_IO */
    int32_t cause;  /* device's error number, 0 if none: smg_fabric_cause() */
};

/* Backends built in, NULL-terminated; possibly empty. */
extern const struct smg_fabric_type *const smg_fabric_types[];
/* NULL: not built in. */
const struct smg_fabric_type *smg_fabric_find(const char *name);
/* Says that there is no such backend, and what it was built without; returns SMG_ERR_UNSUPPORTED. */
int smg_fabric_unknown(const char *name, struct smg_diag *diag);
const char *smg_fabric_type_name(const struct smg_fabric_type *type);
const char *smg_fabric_type_doc(const struct smg_fabric_type *type);

/* Loads what the backend needs from this machine; smg_fabric_open() does it too. Worth a call before processes are forked: they
 * share what is loaded. SMG_ERR_UNSUPPORTED: it is not there. */
int smg_fabric_load(const struct smg_fabric_type *type, struct smg_diag *diag);
/* Opens the device and listens. SMG_ERR_UNSUPPORTED: this machine offers no such provider or device. *out is set only on success;
 * the caller owns it. In all functions diag may be NULL. */
int smg_fabric_open(const struct smg_fabric_type *type, const struct smg_fabric_config *config, struct smg_fabric **out,
                    struct smg_diag *diag);
/* Disconnects, closes queue pairs and the device. All memory must be closed before. NULL is allowed. Peers see PEER_LOST. Sent
 * bytes that are not yet DELIVERED may be lost. */
void smg_fabric_close(struct smg_fabric *f);
const struct smg_fabric_limits *smg_fabric_limits(const struct smg_fabric *f);
void smg_fabric_address(const struct smg_fabric *f, struct smg_fabric_address *address_out);

/* Joins this instance with all n peers (self not among them) and returns when every queue pair is up, or with SMG_ERR_LOST after
 * timeout_s, naming the missing peers. Every peer must call it at about the same time; it cannot deadlock: the lower instance
 * number listens, the higher one connects, and both sides serve both directions while they wait. May be called once. */
int smg_fabric_connect(struct smg_fabric *f, const struct smg_fabric_peer *peers, size_t n, double timeout_s,
                       struct smg_diag *diag);
/* The queue pair to a peer; NULL if there is none. Valid until smg_fabric_close(), also when the peer is lost. */
struct smg_qp *smg_fabric_qp(const struct smg_fabric *f, uint16_t peer, enum smg_queue queue);

/* Registers [base, base + bytes) as source and destination of sends, receives, writes, and as target of peers' writes. The memory
 * stays the caller's and must outlive *out. */
int smg_fabric_register(struct smg_fabric *f, void *base, size_t bytes, struct smg_mr **out, struct smg_diag *diag);
/* The same for memory of a GPU (emu/gpu_memory.h). SMG_ERR_UNSUPPORTED: the backend, the device or its driver takes none; diag says
 * so. Pieces in it are given by addresses of the device. */
struct smg_gpu_memory;
int smg_fabric_register_gpu(struct smg_fabric *f, const struct smg_gpu_memory *memory, struct smg_mr **out, struct smg_diag *diag);
/* NULL is allowed. No post may be using it. */
void smg_mr_close(struct smg_mr *mr);
struct smg_remote smg_mr_remote(const struct smg_mr *mr);

/* Posts. flags are SMG_POST_* bits; receives are always signaled. Returned without effect:
 *   SMG_ERR_INVALID   no piece, more pieces than the limit, a message or an inject beyond its limit
 *   SMG_ERR_RANGE     a piece outside its mr, or a write past the end of the remote region
 *   SMG_ERR_CAPACITY  max_outstanding posts are in flight: poll, then try again. A silent post (not signaled) stays in flight
 *                     until a later signaled one of its queue pair has succeeded: signal at least every max_outstanding / 2
 *   SMG_ERR_LOST      the queue pair is down
 *   SMG_ERR_IO        the device refused
 * pieces[n] itself is copied. */
int smg_fabric_write(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, const struct smg_remote *remote,
                     uint64_t offset_bytes, uint64_t context, unsigned flags, struct smg_diag *diag);
int smg_fabric_send(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, unsigned flags,
                    struct smg_diag *diag);
int smg_fabric_recv(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, struct smg_diag *diag);
/* Posts of each direction that may still be made before SMG_ERR_CAPACITY. */
uint32_t smg_qp_send_room(const struct smg_qp *qp);
uint32_t smg_qp_recv_room(const struct smg_qp *qp);
uint16_t smg_qp_peer(const struct smg_qp *qp);
enum smg_queue smg_qp_queue(const struct smg_qp *qp);

/* Moves data and collects up to cap completions into out[]. Returns as soon as there is one, after smg_fabric_wake(), or when
 * timeout_s has passed (0: one look), with *n_out = 0. A failed post is a completion; an error of the call itself means that the
 * fabric is unusable. Spins a little, then sleeps: many processes may share few cores. */
int smg_fabric_poll(struct smg_fabric *f, struct smg_completion *out, size_t cap, double timeout_s, size_t *n_out,
                    struct smg_diag *diag);
/* From any thread: ends the poll that is waiting, or the next one. Not from a signal handler. */
void smg_fabric_wake(struct smg_fabric *f);

/* Breaks every queue pair with a peer, for good: what is in flight completes with SMG_ERR_LOST, then PEER_LOST is reported. The
 * peer sees the same. */
void smg_fabric_cut(struct smg_fabric *f, uint16_t peer);

/* What the device calls an error number of a completion; "" for 0. Never NULL; static storage. */
const char *smg_fabric_cause(const struct smg_fabric *f, int cause);

#endif
