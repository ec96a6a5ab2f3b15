/* What a fabric backend implements and may use. The generic half (emu/fabric.c, fabric_post.c, fabric_poll.c) checks arguments,
 * counts credits, joins the mesh and decides when a peer is lost; a backend only moves bytes and reports what happened. */
#ifndef SMG_EMU_FABRIC_PORT_H
#define SMG_EMU_FABRIC_PORT_H

#include <stdatomic.h>
#include <time.h>

#include "emu/fabric.h"

enum smg_qp_state { SMG_QP_CONNECTING, SMG_QP_UP, SMG_QP_DOWN };

enum smg_slot_state {
    SMG_SLOT_FREE,
    SMG_SLOT_WATCHED, /* will make a completion */
    SMG_SLOT_SILENT,  /* makes one only if it fails */
    SMG_SLOT_FAILED   /* silent, and its failure is reported already */
};

/* One post in flight; its address is the backend's work id. */
struct smg_slot {
    struct smg_qp *qp;
    struct smg_slot *next; /* in the free or in the silent list */
    uint64_t context;
    uint64_t sequence; /* order of posting in its direction */
    size_t bytes;
    uint16_t kind;  /* enum smg_completion_kind */
    uint16_t state; /* enum smg_slot_state */
};

/* The posts of one direction of a queue pair. */
struct smg_slots {
    struct smg_slot *slot; /* [max_outstanding] */
    struct smg_slot *free;
    struct smg_slot *silent_first, *silent_last; /* by sequence */
    uint64_t next_sequence;
    uint32_t busy;
};

struct smg_peer;

struct smg_qp {
    struct smg_fabric *fabric;
    struct smg_peer *peer;
    void *impl;                  /* backend's endpoint */
    struct smg_slots send, recv; /* writes count as sends */
    int cause;                   /* why it is down, 0: the peer closed it */
    uint16_t queue;              /* enum smg_queue */
    uint16_t state;              /* enum smg_qp_state */
};

struct smg_peer {
    struct smg_qp qp[SMG_QUEUES]; /* those in queues */
    double suspect_since_s;       /* when the first queue pair went down */
    uint16_t instance;
    uint16_t queues;
    uint16_t suspect; /* a queue pair is down */
    uint16_t lost;    /* PEER_LOST is reported */
};

/* Backends embed this as their first member. */
struct smg_fabric {
    const struct smg_fabric_type *type;
    struct smg_fabric_limits limits;   /* set by open; max_outstanding only where the device has less than was asked for */
    struct smg_fabric_address address; /* set by open */
    struct smg_peer *peers;            /* [n_peers], NULL before smg_fabric_connect() */
    size_t n_peers;
    size_t suspects; /* peers suspect but not lost */
    int settling;    /* a queue pair went down: its failed posts are still to be collected */
    unsigned looks;  /* between two sleeps of a poll */
    atomic_int woken;
    uint16_t self;
    int (*stop)(void *arg); /* NULL: never */
    void *stop_arg;
};

struct smg_mr {
    struct smg_fabric *fabric;
    void *base;
    size_t bytes;
    struct smg_remote remote; /* set by register_memory */
    void *desc;               /* what posts hand to the device */
    void *impl;
};

/* A checked post. Pieces are within limits and inside their regions. */
struct smg_work {
    const struct smg_piece *pieces;
    size_t n_pieces;
    uint64_t address, key; /* WRITE: target */
    struct smg_slot *slot;
    unsigned flags; /* SMG_POST_* */
};

/* Where a progress call puts completions: at most cap - n more. */
struct smg_sink {
    struct smg_completion *out;
    size_t cap, n;
};

/* All entries but load and register_dmabuf are filled; all run on the owner's thread except wake. */
struct smg_fabric_type {
    const char *name;
    const char *doc;
    /* Loads the libraries the backend needs; called before open, any number of times. NULL: they are linked. */
    int (*load)(struct smg_diag *diag);
    /* Allocates the backend's fabric, listens, fills limits and address. */
    int (*open)(const struct smg_fabric_config *config, struct smg_fabric **out, struct smg_diag *diag);
    /* Releases everything, queue pairs included. */
    void (*close)(struct smg_fabric *f);
    /* Starts to connect qp to the listener at address and returns; the outcome is smg_port_up() or smg_port_down(). */
    int (*connect)(struct smg_qp *qp, const struct smg_fabric_address *address, struct smg_diag *diag);
    /* Moves data and connections without blocking. Collects completions until the sink is full or none is left: a sink with room
     * afterwards means that every completion written before the call has been taken. Serves connections also with a full sink. */
    int (*progress)(struct smg_fabric *f, struct smg_sink *sink, struct smg_diag *diag);
    /* Blocks for at most wait_s, or less if the backend likes; may collect one completion (the sink has room). */
    int (*wait)(struct smg_fabric *f, struct smg_sink *sink, double wait_s, struct smg_diag *diag);
    /* From any thread: cuts wait short. */
    void (*wake)(struct smg_fabric *f);
    /* Breaks the connection; failed posts show up in the next progress. The endpoint itself lives until close. */
    void (*disconnect)(struct smg_qp *qp);
    int (*post)(struct smg_qp *qp, const struct smg_work *work, struct smg_diag *diag);
    int (*register_memory)(struct smg_mr *mr, struct smg_diag *diag);
    /* mr->base is an address of the GPU; dmabuf stays the caller's. NULL: the backend takes no memory of a GPU. */
    int (*register_dmabuf)(struct smg_mr *mr, int dmabuf, struct smg_diag *diag);
    void (*deregister)(struct smg_mr *mr);
    const char *(*cause)(int cause);
};

extern const struct smg_fabric_type smg_fabric_ofi;   /* in builds with libfabric */
extern const struct smg_fabric_type smg_fabric_verbs; /* in builds with libibverbs */

/* What a connection request says about its sender. */
#define SMG_HELLO_BYTES 12
void smg_hello_encode(uint16_t instance, uint16_t queue, uint8_t hello_out[SMG_HELLO_BYTES]);
/* SMG_ERR_PROTOCOL: not a hello of this version. */
int smg_hello_decode(const uint8_t *hello, size_t bytes, uint16_t *instance_out, uint16_t *queue_out);

/* The queue pair an incoming connection is for; NULL: refuse it (stranger, duplicate, or a peer that should be dialled). */
struct smg_qp *smg_port_expected(const struct smg_fabric *f, uint16_t instance, uint16_t queue);
void smg_port_up(struct smg_qp *qp);
/* Idempotent. The backend has flushed the posts of qp: progress can take their failures at once. */
void smg_port_down(struct smg_qp *qp, int cause);
/* A post ended. bytes counts for receives. Ignored for a slot that is not in flight. */
void smg_port_complete(struct smg_slot *slot, int status, int cause, size_t bytes, struct smg_sink *sink);

/* Reports every watched post of qp that the device forgot as lost, until the sink is full. Nonzero: none is left. */
int smg_port_abandon(struct smg_qp *qp, struct smg_sink *sink);

/* [max] slots, all free. SMG_ERR_NOMEM. */
int smg_slots_init(struct smg_slots *s, struct smg_qp *qp, uint32_t max);
void smg_slots_free(struct smg_slots *s);

/* Writes the text if diag is not NULL and returns status. */
int smg_fabric_fail(struct smg_diag *diag, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

const char *smg_queue_name(uint16_t queue);

static inline double smg_fabric_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void smg_fabric_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

#endif
