/* Private to the verbs backend of the fabric: reliable connected queue pairs of libibverbs.
 *
 * fabric_verbs.c opens and closes, verbs_device.c finds the device, its port and address, verbs_connect.c joins queue pairs over
 * TCP, verbs_post.c posts, verbs_progress.c collects completions and waits.
 *
 * One protection domain, one completion channel, and as few completion queues as hold what every queue pair may have in flight:
 * none can overflow. Each queue pair keeps the TCP connection that joined it: its end is the news that the peer is gone, which
 * RDMA itself tells only to who sends. A completed WRITE was acknowledged by the peer's adapter: it is in that adapter's domain
 * of memory, whether the peer's process looks or not; it is not a promise about GPU memory behind another PCIe path. */
#ifndef SMG_EMU_VERBS_H
#define SMG_EMU_VERBS_H

#include <infiniband/verbs.h>

#include "emu/fabric_port.h"
#include "emu/verbs_hello.h"

#define VERBS_SEND_IOV  8u
#define VERBS_RECV_IOV  20u
#define VERBS_INLINE    256u /* bytes asked for; the device may give less */
#define VERBS_CHAIN     32u  /* posts handed over with one doorbell */
#define VERBS_DEPTH     4096u
#define VERBS_STRANGERS 32u /* connections that have not said yet who they are */

/* Causes of completions and of queue pairs that went down: a work completion's status, an errno, or an asynchronous event. */
#define VERBS_CAUSE_ERRNO 1000
#define VERBS_CAUSE_EVENT 2000

enum verbs_watch_kind { VERBS_WATCH_LISTENER, VERBS_WATCH_CHANNEL, VERBS_WATCH_ASYNC, VERBS_WATCH_WAKE, VERBS_WATCH_LINK };

/* A descriptor that the fabric waits for. */
struct verbs_watch {
    enum verbs_watch_kind kind;
    int fd;
};

enum verbs_link_state {
    VERBS_LINK_DIALLING, /* connect() is under way */
    VERBS_LINK_SAID,     /* dialled: hello sent, the other's is awaited */
    VERBS_LINK_HEARING,  /* accepted: nobody known yet */
    VERBS_LINK_ANSWERED, /* accepted: hello sent, the other's word that it is ready is awaited */
    VERBS_LINK_UP        /* nothing may come but the end */
};

/* The TCP connection beside a queue pair. */
struct verbs_link {
    struct verbs_watch watch;
    struct smg_qp *qp; /* NULL: a stranger */
    enum verbs_link_state state;
    uint8_t heard[SMG_VERBS_HELLO_BYTES];
    size_t n_heard;
};

struct verbs_cq {
    struct ibv_cq *cq;
    uint32_t room; /* entries not promised to a queue pair */
};

/* A queue pair; impl of struct smg_qp. */
struct verbs_qp {
    struct smg_qp *port;
    struct ibv_qp *ibv;
    struct verbs_link *link; /* NULL: broken */
    struct verbs_qp *next_chained;
    uint32_t psn;
    unsigned n_chain; /* posts that wait for the one without SMG_POST_MORE */
    struct ibv_send_wr wr[VERBS_CHAIN];
    struct ibv_sge sge[VERBS_CHAIN][VERBS_SEND_IOV];
};

struct verbs_fabric {
    struct smg_fabric base; /* first: the generic half knows only this */
    struct ibv_context *context;
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    uint8_t port_number;
    uint8_t gid_index;
    union ibv_gid gid;
    struct sockaddr_storage node; /* to listen at and to dial from; port 0 */
    socklen_t node_bytes;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct verbs_cq *cqs; /* [n_cqs] */
    size_t n_cqs, first_cq;
    struct verbs_qp *chained; /* queue pairs with posts not handed over */
    int epoll;
    struct verbs_watch listener, events, async, wake;
    struct verbs_link *strangers[VERBS_STRANGERS];
    size_t n_strangers;
    unsigned passes;
};

static inline struct verbs_fabric *verbs_of(struct smg_fabric *f)
{
    return (struct verbs_fabric *)f;
}

/* diag: "verbs: what: text of the error number". */
int smg_verbs_fail(struct smg_diag *diag, int status, const char *what, int error);

/* ---- verbs_device.c ---- */

/* Opens NAME[:PORT[:GID_INDEX]] (NULL: the first device with an active port) and fills device, port, gid and node. */
int smg_verbs_device_open(struct verbs_fabric *v, const char *name, const char *node, struct smg_diag *diag);

/* ---- fabric_verbs.c ---- */

/* A completion queue with room for everything that one more queue pair may have in flight. */
int smg_verbs_cq_take(struct verbs_fabric *v, struct ibv_cq **out, struct smg_diag *diag);
int smg_verbs_watch_add(struct verbs_fabric *v, struct verbs_watch *watch, uint32_t events);
/* Queue pair and state of qp, INIT reached. */
int smg_verbs_qp_create(struct verbs_fabric *v, struct smg_qp *port, struct smg_diag *diag);

/* ---- verbs_connect.c ---- */

int smg_verbs_listen(struct verbs_fabric *v, struct smg_diag *diag);
int smg_verbs_connect(struct smg_qp *qp, const struct smg_fabric_address *address, struct smg_diag *diag);
void smg_verbs_accept(struct verbs_fabric *v);
/* Something may be read from, or written to, the connection. */
void smg_verbs_link_ready(struct verbs_fabric *v, struct verbs_link *link);
void smg_verbs_link_close(struct verbs_link *link); /* NULL is allowed */
/* The queue pair is of no use any more: flushes its posts, hangs up, and tells the generic half. */
void smg_verbs_qp_down(struct smg_qp *qp, int cause);
void smg_verbs_disconnect(struct smg_qp *qp);

/* ---- verbs_post.c ---- */

int smg_verbs_post(struct smg_qp *qp, const struct smg_work *work, struct smg_diag *diag);
/* Hands over every chain that nobody has ended. */
void smg_verbs_flush(struct verbs_fabric *v);

/* ---- verbs_progress.c ---- */

int smg_verbs_progress(struct smg_fabric *f, struct smg_sink *sink, struct smg_diag *diag);
int smg_verbs_wait(struct smg_fabric *f, struct smg_sink *sink, double wait_s, struct smg_diag *diag);
void smg_verbs_wake(struct smg_fabric *f);
const char *smg_verbs_cause(int cause);

#endif
