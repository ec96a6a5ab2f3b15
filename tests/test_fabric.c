/* Every backend of the fabric that opens here runs the same cases: ofi over loopback, verbs over the RDMA devices of this machine
 * (SMG_TEST_VERBS_DEVICES="rxa,rxb" gives instances 0, 2 the first and instance 1 the second; without it, the first active one).
 * Each case forks its instances. What children need to know of each other (addresses, regions, progress) lies on a shared board,
 * as the process harness would carry it through pipes. */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/fabric_port.h"
#include "emu/gpu_memory.h"
#include "emu/verbs_hello.h"

#define MAX_INSTANCES 3
#define CHILD_ALARM_S 20 /* ends a test that hangs; SMG_TEST_ALARM_S is for machines that are very slow */
#define MESH_S        10.0
#define KIB           ((size_t)1024)

struct board {
    struct smg_fabric_address address[MAX_INSTANCES];
    struct smg_remote remote[MAX_INSTANCES];
    atomic_int steps[MAX_INSTANCES]; /* last step each instance announced */
};

static struct board *board;

struct backend {
    const char *name;
    char device[2][64]; /* of even and of odd instances; "": the backend's default */
    unsigned min_iov;   /* pieces it takes at least, and tcp exactly */
    int adapter_places; /* WRITEs land whether the peer's process looks or not */
};

static struct backend backends[] = {{.name = "ofi", .min_iov = 4}, {.name = "verbs", .min_iov = 4, .adapter_places = 1}};
static const struct backend *backend; /* that the cases run on now */

/* ---- Children: a failed check ends the child, the parent fails the test ---- */

static void check_failed(int line, const char *text, const char *detail)
{
    fprintf(stderr, "test_fabric.c:%d: process %d: %s%s%s\n", line, (int)getpid(), text, *detail ? ": " : "", detail);
    _exit(1);
}

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            check_failed(__LINE__, #condition, "");                                                                              \
        }                                                                                                                        \
    } while (0)

#define CHECK_OK(call)                                                                                                           \
    do {                                                                                                                         \
        if (call) {                                                                                                              \
            check_failed(__LINE__, #call, diag.text);                                                                            \
        }                                                                                                                        \
    } while (0)

#define CHECK_REFUSED(expected, call)                                                                                            \
    do {                                                                                                                         \
        diag.text[0] = '\0';                                                                                                     \
        int status_ = (call);                                                                                                    \
        if (status_ != (expected) || !diag.text[0]) {                                                                            \
            check_failed(__LINE__, #call, smg_status_string(status_));                                                           \
        }                                                                                                                        \
    } while (0)

static struct smg_diag diag;

static void announce(uint16_t self, int step)
{
    atomic_store(&board->steps[self], step);
}

/* Waits for a step of another instance. With a fabric it keeps the data moving, and no completion may be due. */
static void await(uint16_t instance, int step, struct smg_fabric *f)
{
    struct smg_completion c;
    size_t n = 0;
    while (atomic_load(&board->steps[instance]) < step) {
        if (f) {
            CHECK_OK(smg_fabric_poll(f, &c, 1, 200e-6, &n, &diag));
            CHECK(n == 0);
        } else {
            usleep(200);
        }
    }
}

static void await_all(int n, int step, struct smg_fabric *f)
{
    for (uint16_t i = 0; i < n; i++) {
        await(i, step, f);
    }
}

/* One completion, or the child's alarm. */
static struct smg_completion next(struct smg_fabric *f)
{
    struct smg_completion c;
    size_t n = 0;
    while (!n) {
        CHECK_OK(smg_fabric_poll(f, &c, 1, 0.01, &n, &diag));
    }
    return c;
}

static struct smg_fabric_config config_of(uint16_t self, uint32_t max_outstanding)
{
    const char *device = backend->device[self % 2];
    return (struct smg_fabric_config){.self = self, .max_outstanding = max_outstanding, .provider = *device ? device : NULL};
}

static struct smg_fabric *open_fabric(uint16_t self, uint32_t max_outstanding)
{
    struct smg_fabric_config config = config_of(self, max_outstanding);
    struct smg_fabric *f = NULL;
    CHECK_OK(smg_fabric_open(smg_fabric_find(backend->name), &config, &f, &diag));
    smg_fabric_address(f, &board->address[self]);
    announce(self, 1);
    return f;
}

static struct smg_fabric_peer peer_of(uint16_t instance, unsigned queues)
{
    return (struct smg_fabric_peer){.instance = instance, .queues = (uint16_t)queues, .address = board->address[instance]};
}

/* A fabric joined with the only other instance. */
static struct smg_fabric *open_pair(uint16_t self, uint32_t max_outstanding)
{
    struct smg_fabric *f = open_fabric(self, max_outstanding);
    await_all(2, 1, NULL);
    struct smg_fabric_peer other = peer_of(!self, SMG_QUEUE_ALL);
    CHECK_OK(smg_fabric_connect(f, &other, 1, MESH_S, &diag));
    return f;
}

/* Registered memory of this instance, with its remote side on the board. Freed by free_memory. */
static uint8_t *memory(struct smg_fabric *f, uint16_t self, size_t bytes, struct smg_mr **mr_out)
{
    uint8_t *m = calloc(1, bytes);
    CHECK(m);
    CHECK_OK(smg_fabric_register(f, m, bytes, mr_out, &diag));
    board->remote[self] = smg_mr_remote(*mr_out);
    return m;
}

static void free_memory(uint8_t *m, struct smg_mr *mr)
{
    smg_mr_close(mr);
    free(m);
}

/* Both sides are through with everything they wanted from each other. */
static void part(struct smg_fabric *f, uint16_t self, int n)
{
    announce(self, 1000);
    await_all(n, 1000, NULL); /* not polling: who closes first is lost to the others */
    smg_fabric_close(f);
}

/* ---- Parent ---- */

typedef void (*child_fn)(uint16_t self);

static pid_t start(child_fn child, uint16_t self)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char *patience = getenv("SMG_TEST_ALARM_S");
        alarm(patience ? (unsigned)atoi(patience) : CHILD_ALARM_S);
        child(self);
        exit(0); /* not _exit: leak checkers report here */
    }
    return pid;
}

/* Runs n instances; each must end with success, or by the signal `killed` names for the last one. */
static void run_instances(child_fn child, uint16_t n, int last_signal)
{
    pid_t pid[MAX_INSTANCES];
    int bad = 0;
    memset(board, 0, sizeof(*board));
    for (uint16_t i = 0; i < n; i++) {
        pid[i] = start(child, i);
        assert_true(pid[i] > 0);
    }
    for (uint16_t i = 0; i < n; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        int want_signal = i == n - 1 ? last_signal : 0;
        int fine =
            want_signal ? WIFSIGNALED(status) && WTERMSIG(status) == want_signal : WIFEXITED(status) && !WEXITSTATUS(status);
        if (!fine) {
            fprintf(stderr, "instance %u ended with wait status %#x\n", i, status);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

/* ---- Mesh of three: a router (0, control only), a prefill (1) and a decode (2) instance ---- */

static unsigned queues_between(uint16_t a, uint16_t b)
{
    return a == 0 || b == 0 ? SMG_QUEUE_BIT(SMG_QUEUE_CTL) : SMG_QUEUE_ALL;
}

/* One message per queue pair: sender, receiver, queue. */
static void greet_all(struct smg_fabric *f, uint16_t self, uint8_t *m, struct smg_mr *mr)
{
    size_t slot = 0;
    for (uint16_t peer = 0; peer < 3; peer++) {
        for (unsigned q = 0; q < SMG_QUEUES && peer != self; q++) {
            struct smg_qp *qp = smg_fabric_qp(f, peer, (enum smg_queue)q);
            CHECK(!qp == !(queues_between(self, peer) & SMG_QUEUE_BIT(q)));
            if (qp) {
                uint8_t text[3] = {(uint8_t)self, (uint8_t)peer, (uint8_t)q};
                struct smg_piece in = {m + 8 * slot, 8, mr}, out = {text, 3, NULL};
                CHECK(smg_qp_peer(qp) == peer && smg_qp_queue(qp) == q);
                CHECK_OK(smg_fabric_recv(qp, &in, 1, slot++, &diag));
                CHECK_OK(smg_fabric_send(qp, &out, 1, 99, SMG_POST_INJECT, &diag));
            }
        }
    }
}

static void mesh_child(uint16_t self)
{
    struct smg_fabric_peer peers[2];
    struct smg_mr *mr;
    struct smg_fabric *f = open_fabric(self, 0);
    await_all(3, 1, NULL);
    for (uint16_t i = 0, n = 0; i < 3; i++) {
        if (i != self) {
            peers[n++] = peer_of(i, queues_between(self, i));
        }
    }
    CHECK_OK(smg_fabric_connect(f, peers, 2, MESH_S, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_connect(f, peers, 2, MESH_S, &diag));
    CHECK(!smg_fabric_qp(f, self, SMG_QUEUE_CTL) && !smg_fabric_qp(f, 7, SMG_QUEUE_CTL));
    uint8_t *m = memory(f, self, 64, &mr);
    greet_all(f, self, m, mr);
    for (unsigned i = 0; i < (self == 0 ? 2 : 4); i++) {
        struct smg_completion c = next(f);
        const uint8_t *text = m + 8 * c.context;
        CHECK(c.kind == SMG_DONE_RECV && c.status == SMG_OK && c.bytes == 3);
        CHECK(text[0] == c.peer && text[1] == self && text[2] == c.queue);
    }
    free_memory(m, mr);
    part(f, self, 3);
}

static void mesh_of_three(void **state)
{
    (void)state;
    run_instances(mesh_child, 3, 0);
}

/* ---- A mesh that cannot come up says what is missing ---- */

static void mesh_errors_child(uint16_t self)
{
    struct smg_fabric *f = open_fabric(self, 0);
    struct smg_fabric_peer other;
    struct smg_completion c;
    size_t n;
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_poll(f, &c, 1, 0, &n, &diag));
    await_all(3, 1, NULL);
    if (self == 0) {
        other = peer_of(1, SMG_QUEUE_ALL); /* 1 never dials; 2 does, and is not wanted */
        CHECK_REFUSED(SMG_ERR_LOST, smg_fabric_connect(f, &other, 1, 0.3, &diag));
        CHECK(strstr(diag.text, "1 PUSH") && strstr(diag.text, "1 REPLY") && strstr(diag.text, "1 CTL"));
    } else if (self == 1) {
        other = peer_of(1, SMG_QUEUE_ALL);
        CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_connect(f, &other, 1, 0.3, &diag));
    } else {
        other = peer_of(0, SMG_QUEUE_BIT(SMG_QUEUE_CTL));
        CHECK_REFUSED(SMG_ERR_LOST, smg_fabric_connect(f, &other, 1, 5, &diag));
        CHECK(strstr(diag.text, "peer 0 CTL"));
    }
    smg_fabric_close(f);
}

static void mesh_errors(void **state)
{
    (void)state;
    run_instances(mesh_errors_child, 3, 0);
}

/* ---- A flag written after data is never ahead of it ---- */

#define PAIRS       1000
#define ORDER_SLOTS 16
#define ORDER_BYTES (64 * KIB)

/* Memory of both sides: data[ORDER_SLOTS][ORDER_BYTES], then flags[ORDER_SLOTS], then the source of the flags [PAIRS + 1]. */
static size_t flag_at(unsigned slot)
{
    return ORDER_SLOTS * ORDER_BYTES + 8 * slot;
}

static void order_fill(uint8_t *data, uint64_t value)
{
    for (size_t i = 0; i < ORDER_BYTES; i += 8) {
        memcpy(data + i, &value, 8);
    }
}

/* Numbers of signaled pairs that are complete, at least `want`. */
static void order_collect(struct smg_fabric *f, uint64_t *done, uint64_t want)
{
    while (*done < want) {
        struct smg_completion c = next(f);
        CHECK(c.kind == SMG_DONE_WRITE && c.status == SMG_OK && c.context > *done);
        *done = c.context;
    }
}

static void order_writer(struct smg_fabric *f, uint8_t *m, struct smg_mr *mr)
{
    struct smg_qp *qp = smg_fabric_qp(f, 1, SMG_QUEUE_PUSH);
    struct smg_remote to = board->remote[1];
    uint64_t done = 0;
    for (uint64_t i = 1; i <= PAIRS; i++) {
        unsigned slot = i % ORDER_SLOTS;
        size_t source = flag_at(ORDER_SLOTS) + 8 * i;
        struct smg_piece data = {m + slot * ORDER_BYTES, ORDER_BYTES, mr}, flag = {m + source, 8, mr};
        if (i > ORDER_SLOTS / 2) {
            order_collect(f, &done, i - ORDER_SLOTS / 2); /* the source of this slot is free again */
        }
        order_fill(data.data, i);
        memcpy(m + source, &i, 8);
        CHECK_OK(smg_fabric_write(qp, &data, 1, &to, slot * ORDER_BYTES, 0, SMG_POST_MORE, &diag));
        unsigned flags = i == PAIRS ? SMG_POST_DELIVERED : i % 4 == 0 ? SMG_POST_SIGNALED : 0;
        CHECK_OK(smg_fabric_write(qp, &flag, 1, &to, flag_at(slot), i, flags, &diag));
    }
    order_collect(f, &done, PAIRS);
}

/* Later pairs overwrite data while it is looked at, so "not older than the flag" is what must hold. */
static uint64_t order_look(const uint8_t *m)
{
    uint64_t newest = 0;
    for (unsigned slot = 0; slot < ORDER_SLOTS; slot++) {
        const volatile uint64_t *flag = (const volatile void *)(m + flag_at(slot));
        uint64_t seen = *flag;
        atomic_thread_fence(memory_order_acquire);
        for (size_t i = 0; i < ORDER_BYTES; i += ORDER_BYTES - 8) {
            CHECK(*(const volatile uint64_t *)(const volatile void *)(m + slot * ORDER_BYTES + i) >= seen);
        }
        newest = seen > newest ? seen : newest;
    }
    return newest;
}

static void order_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_completion c;
    size_t n;
    struct smg_fabric *f = open_pair(self, 0);
    CHECK(smg_fabric_limits(f)->waw_ordered && smg_fabric_limits(f)->max_order_waw_bytes >= ORDER_BYTES);
    uint8_t *m = memory(f, self, flag_at(ORDER_SLOTS) + 8 * (PAIRS + 1), &mr);
    announce(self, 2);
    await_all(2, 2, f);
    if (self == 0) {
        order_writer(f, m, mr);
    } else {
        for (uint64_t before = 0, now = 0; now < PAIRS; before = now) {
            now = order_look(m);
            CHECK_OK(smg_fabric_poll(f, &c, 1, now > before ? 0 : 100e-6, &n, &diag)); /* leave the core to the writer */
            CHECK(n == 0);
        }
    }
    announce(self, 3);
    await_all(2, 3, f);
    free_memory(m, mr);
    part(f, self, 2);
}

static void write_order(void **state)
{
    (void)state;
    run_instances(order_child, 2, 0);
}

/* ---- Gather and scatter, refusals ---- */

#define SCATTER_BYTES 12000u /* divisible by 1, 2, 3, 4 */

static void split(uint8_t *m, struct smg_mr *mr, unsigned n, struct smg_piece *pieces)
{
    /* Pieces lie apart and out of order, so that a contiguous copy would be noticed. */
    for (unsigned i = 0; i < n; i++) {
        pieces[i] = (struct smg_piece){m + (n - 1 - i) * (SCATTER_BYTES / n + 64), SCATTER_BYTES / n, mr};
    }
}

static uint8_t pattern(unsigned round, size_t i)
{
    return (uint8_t)(i * 7 + i / 251 + round);
}

static void scatter_round(struct smg_fabric *f, uint16_t self, uint8_t *m, struct smg_mr *mr, unsigned round)
{
    struct smg_qp *qp = smg_fabric_qp(f, !self, SMG_QUEUE_REPLY);
    unsigned n = self == 0 ? 1 + round % 4 : 1 + round / 4;
    struct smg_piece pieces[4];
    split(m, mr, n, pieces);
    if (self == 0) {
        for (size_t i = 0; i < SCATTER_BYTES; i++) {
            ((uint8_t *)pieces[i / (SCATTER_BYTES / n)].data)[i % (SCATTER_BYTES / n)] = pattern(round, i);
        }
        await(1, 10 + (int)round, f);
        CHECK_OK(smg_fabric_send(qp, pieces, n, round, SMG_POST_SIGNALED, &diag));
    } else {
        CHECK_OK(smg_fabric_recv(qp, pieces, n, round, &diag));
        announce(self, 10 + (int)round);
    }
    struct smg_completion c = next(f);
    CHECK(c.status == SMG_OK && c.context == round && c.bytes == SCATTER_BYTES && c.queue == SMG_QUEUE_REPLY);
    CHECK(c.kind == (self == 0 ? SMG_DONE_SEND : SMG_DONE_RECV) && c.peer == !self);
    for (size_t i = 0; i < SCATTER_BYTES && self == 1; i++) {
        CHECK(((uint8_t *)pieces[i / (SCATTER_BYTES / n)].data)[i % (SCATTER_BYTES / n)] == pattern(round, i));
    }
}

static void refusals(struct smg_fabric *f, uint16_t peer, uint8_t *m, struct smg_mr *mr)
{
    const struct smg_fabric_limits *l = smg_fabric_limits(f);
    struct smg_qp *qp = smg_fabric_qp(f, peer, SMG_QUEUE_PUSH);
    struct smg_piece many[32], bare = {m, 8, NULL}, empty = {m, 0, mr}, tail = {m + mr->bytes - 4, 8, mr}, big = {m, 4096, mr};
    struct smg_remote to = board->remote[peer];
    for (unsigned i = 0; i < 32; i++) {
        many[i] = (struct smg_piece){m + 8 * i, 8, mr};
    }
    CHECK(l->send_iov >= 1 && l->send_iov < 32 && l->recv_iov >= 1 && l->recv_iov < 32);
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_send(qp, many, l->send_iov + 1, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_recv(qp, many, l->recv_iov + 1, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_write(qp, many, l->send_iov + 1, &to, 0, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_write(qp, many, 0, &to, 0, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_send(qp, &bare, 1, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_send(qp, &empty, 1, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_RANGE, smg_fabric_send(qp, &tail, 1, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_RANGE, smg_fabric_write(qp, many, 1, &to, to.bytes - 7, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_RANGE, smg_fabric_write(qp, many, 1, &to, UINT64_MAX - 2, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_INVALID, smg_fabric_send(qp, &big, 1, 0, SMG_POST_INJECT, &diag));
    CHECK(smg_qp_send_room(qp) == l->max_outstanding && smg_qp_recv_room(qp) == l->max_outstanding);
}

static void scatter_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, SCATTER_BYTES + 256, &mr);
    announce(self, 2);
    await_all(2, 2, f);
    CHECK(smg_fabric_limits(f)->send_iov >= backend->min_iov && smg_fabric_limits(f)->recv_iov >= backend->min_iov);
    refusals(f, !self, m, mr);
    for (unsigned round = 0; round < 16; round++) {
        scatter_round(f, self, m, mr, round);
    }
    free_memory(m, mr);
    part(f, self, 2);
}

static void gather_and_scatter(void **state)
{
    (void)state;
    run_instances(scatter_child, 2, 0);
}

/* ---- A message longer than its receive ---- */

static void truncated_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, 256, &mr);
    struct smg_qp *qp = smg_fabric_qp(f, !self, SMG_QUEUE_CTL);
    struct smg_piece small = {m, 16, mr}, large = {m, 64, mr};
    if (self == 1) {
        CHECK_OK(smg_fabric_recv(qp, &small, 1, 5, &diag));
    }
    announce(self, 2);
    await_all(2, 2, NULL);
    if (self == 0) {
        CHECK_OK(smg_fabric_send(qp, &large, 1, 6, SMG_POST_SIGNALED, &diag));
        struct smg_completion c = next(f);
        CHECK(c.kind == SMG_DONE_SEND);
        await(1, 3, NULL);
    } else {
        struct smg_completion c = next(f);
        CHECK(c.kind == SMG_DONE_RECV && c.context == 5 && c.status == SMG_ERR_CAPACITY);
        CHECK(*smg_fabric_cause(f, c.cause));
        announce(self, 3);
    }
    free_memory(m, mr);
    smg_fabric_close(f);
}

static void truncated_receive(void **state)
{
    (void)state;
    run_instances(truncated_child, 2, 0);
}

/* ---- A peer that dies ---- */

#define DEAD_POSTS 5

static void dead_posts(struct smg_fabric *f, uint8_t *m, struct smg_mr *mr)
{
    struct smg_qp *push = smg_fabric_qp(f, 1, SMG_QUEUE_PUSH), *reply = smg_fabric_qp(f, 1, SMG_QUEUE_REPLY);
    struct smg_piece large = {m, 64 * KIB, mr}, small = {m, 8, mr};
    struct smg_remote to = board->remote[1];
    CHECK_OK(smg_fabric_recv(reply, &small, 1, 1, &diag));
    CHECK_OK(smg_fabric_recv(reply, &small, 1, 2, &diag));
    CHECK_OK(smg_fabric_write(push, &large, 1, &to, 0, 3, SMG_POST_DELIVERED, &diag));
    CHECK_OK(smg_fabric_write(push, &small, 1, &to, 0, 4, SMG_POST_DELIVERED | SMG_POST_INJECT, &diag));
    CHECK_OK(smg_fabric_send(reply, &small, 1, 5, SMG_POST_DELIVERED | SMG_POST_INJECT, &diag));
}

static void survivor(struct smg_fabric *f, uint8_t *m, struct smg_mr *mr)
{
    struct smg_completion c;
    struct smg_piece small = {m, 8, mr};
    size_t n;
    unsigned seen = 0;
    dead_posts(f, m, mr);
    announce(0, 3); /* the peer, which has not polled since, kills itself now */
    for (unsigned i = 0; i < DEAD_POSTS; i++) {
        c = next(f);
        int placed = backend->adapter_places && c.kind == SMG_DONE_WRITE && c.status == SMG_OK; /* the peer still lived */
        CHECK(c.kind != SMG_DONE_PEER_LOST && c.peer == 1 && (c.status == SMG_ERR_LOST || placed));
        CHECK(c.context >= 1 && c.context <= DEAD_POSTS && !(seen & 1u << c.context));
        seen |= 1u << c.context;
    }
    c = next(f);
    CHECK(c.kind == SMG_DONE_PEER_LOST && c.peer == 1 && c.status == SMG_ERR_LOST);
    for (unsigned i = 0; i < 20; i++) {
        CHECK_OK(smg_fabric_poll(f, &c, 1, 0.01, &n, &diag));
        CHECK(n == 0);
    }
    CHECK_REFUSED(SMG_ERR_LOST, smg_fabric_send(smg_fabric_qp(f, 1, SMG_QUEUE_CTL), &small, 1, 0, 0, &diag));
}

static void dead_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, 64 * KIB, &mr);
    announce(self, 2);
    await_all(2, 2, NULL);
    if (self == 1) {
        await(0, 3, NULL);
        raise(SIGKILL);
    }
    survivor(f, m, mr);
    free_memory(m, mr);
    smg_fabric_close(f);
}

static void dead_peer(void **state)
{
    (void)state;
    run_instances(dead_child, 2, SIGKILL);
}

/* ---- What a peer said before it left comes before the news that it left ---- */

#define LAST_WORDS 8u

static void last_words_speaker(struct smg_fabric *f, uint8_t *m, struct smg_mr *mr)
{
    struct smg_piece piece = {m, 8, mr};
    for (unsigned i = 0; i < LAST_WORDS; i++) {
        CHECK_OK(smg_fabric_send(smg_fabric_qp(f, 0, SMG_QUEUE_CTL), &piece, 1, i, SMG_POST_DELIVERED, &diag));
        CHECK_OK(smg_fabric_send(smg_fabric_qp(f, 0, SMG_QUEUE_REPLY), &piece, 1, i, SMG_POST_DELIVERED, &diag));
    }
    for (unsigned i = 0; i < 2 * LAST_WORDS; i++) {
        CHECK(next(f).status == SMG_OK);
    }
}

static void last_words_child(uint16_t self)
{
    unsigned heard[SMG_QUEUES] = {0};
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, 64, &mr);
    struct smg_piece piece = {m, 8, mr};
    for (unsigned i = 0; i < LAST_WORDS && self == 0; i++) {
        CHECK_OK(smg_fabric_recv(smg_fabric_qp(f, 1, SMG_QUEUE_CTL), &piece, 1, i, &diag));
        CHECK_OK(smg_fabric_recv(smg_fabric_qp(f, 1, SMG_QUEUE_REPLY), &piece, 1, i, &diag));
    }
    announce(self, 2);
    await_all(2, 2, NULL);
    if (self == 1) {
        last_words_speaker(f, m, mr);
    }
    for (unsigned i = 0; i < 2 * LAST_WORDS && self == 0; i++) {
        struct smg_completion c = next(f);
        CHECK(c.kind == SMG_DONE_RECV && c.status == SMG_OK && c.context == heard[c.queue]++);
    }
    CHECK(self == 1 || next(f).kind == SMG_DONE_PEER_LOST);
    free_memory(m, mr);
    smg_fabric_close(f);
}

static void last_words(void **state)
{
    (void)state;
    run_instances(last_words_child, 2, 0);
}

/* ---- A peer that only one queue pair lost, by a write with a key it never gave ---- */

static void bad_key_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, 4096, &mr);
    announce(self, 2);
    await_all(2, 2, NULL); /* the peer may already be at it: what is due must not be polled here */
    if (self == 0) {
        struct smg_piece piece = {m, 64, mr};
        struct smg_remote wrong = board->remote[1];
        wrong.key += 77;
        CHECK_OK(smg_fabric_write(smg_fabric_qp(f, 1, SMG_QUEUE_PUSH), &piece, 1, &wrong, 0, 9, SMG_POST_DELIVERED, &diag));
        struct smg_completion c = next(f);
        CHECK(c.kind == SMG_DONE_WRITE && c.context == 9 && c.status == SMG_ERR_LOST && c.cause);
    }
    struct smg_completion c = next(f);
    CHECK(c.kind == SMG_DONE_PEER_LOST && c.peer == !self);
    free_memory(m, mr);
    smg_fabric_close(f);
}

static void bad_key(void **state)
{
    (void)state;
    run_instances(bad_key_child, 2, 0);
}

/* ---- A peer that is cut off: both sides lose each other ---- */

static void cut_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 0);
    uint8_t *m = memory(f, self, 4096, &mr);
    struct smg_piece piece = {m, 64, mr};
    CHECK_OK(smg_fabric_recv(smg_fabric_qp(f, !self, SMG_QUEUE_REPLY), &piece, 1, 7, &diag));
    announce(self, 2);
    await_all(2, 2, NULL); /* as above */
    if (self == 0) {
        smg_fabric_cut(f, 1);
        smg_fabric_cut(f, 1);
        CHECK_REFUSED(SMG_ERR_LOST, smg_fabric_send(smg_fabric_qp(f, 1, SMG_QUEUE_CTL), &piece, 1, 0, 0, &diag));
    }
    struct smg_completion c = next(f);
    CHECK(c.kind == SMG_DONE_RECV && c.context == 7 && c.status == SMG_ERR_LOST);
    c = next(f);
    CHECK(c.kind == SMG_DONE_PEER_LOST && c.peer == !self);
    smg_fabric_cut(f, !self);
    free_memory(m, mr);
    smg_fabric_close(f);
}

static void cut_off(void **state)
{
    (void)state;
    run_instances(cut_child, 2, 0);
}

/* ---- Credits ---- */

#define CREDITS 8u

static void credits_writer(struct smg_fabric *f, uint8_t *m, struct smg_mr *mr)
{
    struct smg_qp *qp = smg_fabric_qp(f, 1, SMG_QUEUE_PUSH);
    struct smg_piece piece = {m, 64, mr};
    struct smg_remote to = board->remote[1];
    for (unsigned i = 0; i < CREDITS; i++) {
        CHECK(smg_qp_send_room(qp) == CREDITS - i);
        CHECK_OK(smg_fabric_write(qp, &piece, 1, &to, 0, i, i + 1 == CREDITS ? SMG_POST_DELIVERED : 0, &diag));
    }
    CHECK_REFUSED(SMG_ERR_CAPACITY, smg_fabric_write(qp, &piece, 1, &to, 0, 0, 0, &diag));
    CHECK_REFUSED(SMG_ERR_CAPACITY, smg_fabric_send(qp, &piece, 1, 0, 0, &diag));
    CHECK(smg_qp_recv_room(qp) == CREDITS && smg_qp_send_room(smg_fabric_qp(f, 1, SMG_QUEUE_REPLY)) == CREDITS);
    announce(0, 3); /* only now does the peer poll */
    struct smg_completion c = next(f);
    CHECK(c.context == CREDITS - 1 && c.status == SMG_OK && c.bytes == 64);
    CHECK(smg_qp_send_room(qp) == CREDITS);
}

static void credits_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, CREDITS);
    uint8_t *m = memory(f, self, 4096, &mr);
    announce(self, 2);
    await_all(2, 2, NULL);
    if (self == 0) {
        credits_writer(f, m, mr);
        announce(0, 4);
    } else {
        await(0, 3, NULL);
        await(0, 4, f);
    }
    free_memory(m, mr);
    part(f, self, 2);
}

static void credits(void **state)
{
    (void)state;
    run_instances(credits_child, 2, 0);
}

/* ---- Waiting ---- */

static void *wake_soon(void *fabric)
{
    usleep(20000);
    smg_fabric_wake(fabric);
    return NULL;
}

static void waits_child(uint16_t self)
{
    static const double timeouts_s[] = {0, 100e-6, 900e-6, 3.5e-3, 40e-3};
    struct smg_fabric *f = open_pair(self, 0);
    struct smg_completion c;
    pthread_t waker;
    size_t n = 9;
    for (unsigned i = 0; i < sizeof(timeouts_s) / sizeof(*timeouts_s); i++) {
        double start_s = smg_fabric_now_s();
        CHECK_OK(smg_fabric_poll(f, &c, 1, timeouts_s[i], &n, &diag));
        CHECK(n == 0 && smg_fabric_now_s() - start_s >= timeouts_s[i]);
    }
    double start_s = smg_fabric_now_s();
    CHECK(pthread_create(&waker, NULL, wake_soon, f) == 0);
    CHECK_OK(smg_fabric_poll(f, &c, 1, 15, &n, &diag));
    CHECK(n == 0 && smg_fabric_now_s() - start_s < 14);
    CHECK(pthread_join(waker, NULL) == 0);
    part(f, self, 2);
}

static void waits(void **state)
{
    (void)state;
    run_instances(waits_child, 2, 0);
}

/* ---- What needs no connection ---- */

static void lists(void **state)
{
    (void)state;
    const struct smg_fabric_type *type = smg_fabric_find(backend->name);
    assert_string_equal(smg_fabric_type_name(type), backend->name);
    assert_true(strlen(smg_fabric_type_doc(type)) > 0);
    assert_null(smg_fabric_find("carrier-pigeon"));
    smg_fabric_close(NULL);
    smg_mr_close(NULL);
}

static void hello(void **state)
{
    (void)state;
    uint8_t bytes[SMG_HELLO_BYTES];
    uint16_t instance, queue;
    smg_hello_encode(513, 2, bytes);
    assert_int_equal(smg_hello_decode(bytes, sizeof(bytes), &instance, &queue), SMG_OK);
    assert_int_equal(instance, 513);
    assert_int_equal(queue, 2);
    assert_int_equal(smg_hello_decode(bytes, sizeof(bytes) - 1, &instance, &queue), SMG_ERR_PROTOCOL);
    bytes[7]++;
    assert_int_equal(smg_hello_decode(bytes, sizeof(bytes), &instance, &queue), SMG_ERR_PROTOCOL);
}

static void unknown_provider_child(uint16_t self)
{
    struct smg_fabric_config config = {.self = self, .provider = "no-such-provider"};
    struct smg_fabric *f = NULL;
    CHECK_REFUSED(SMG_ERR_UNSUPPORTED, smg_fabric_open(smg_fabric_find(backend->name), &config, &f, &diag));
    CHECK(!f && strstr(diag.text, "no-such-provider"));
}

static void unknown_provider(void **state)
{
    (void)state;
    run_instances(unknown_provider_child, 1, 0);
}

/* ---- Memory of a GPU: what is no dma-buf, or is offered to a device that takes none, is refused with the reason ---- */

static void foreign_dmabuf_child(uint16_t self)
{
    const struct smg_gpu_memory memory = {.address = 2u << 20, .bytes = 2u << 20, .dmabuf = 0}; /* standard input */
    struct smg_fabric *f = open_fabric(self, 0);
    struct smg_mr *mr = NULL;
    CHECK_REFUSED(SMG_ERR_UNSUPPORTED, smg_fabric_register_gpu(f, &memory, &mr, &diag));
    CHECK(!mr && strstr(diag.text, "memory of a GPU"));
    smg_fabric_close(f);
}

static void foreign_dmabuf(void **state)
{
    (void)state;
    run_instances(foreign_dmabuf_child, 1, 0);
}

/* ---- A chain that nobody ends goes out with the next poll; one longer than what a backend keeps back goes out in parts ---- */

#define CHAIN 100u

static void chain_child(uint16_t self)
{
    struct smg_mr *mr;
    struct smg_fabric *f = open_pair(self, 2 * CHAIN);
    uint8_t *m = memory(f, self, 4096, &mr);
    announce(self, 2);
    await_all(2, 2, f);
    if (self == 0) {
        struct smg_qp *qp = smg_fabric_qp(f, 1, SMG_QUEUE_PUSH);
        struct smg_remote to = board->remote[1];
        for (unsigned i = 0; i < CHAIN; i++) {
            struct smg_piece piece = {m + i, 1, mr};
            m[i] = (uint8_t)(i + 1);
            CHECK_OK(
                smg_fabric_write(qp, &piece, 1, &to, i, i, SMG_POST_MORE | (i + 1 == CHAIN ? SMG_POST_DELIVERED : 0), &diag));
        }
        struct smg_completion c = next(f);
        CHECK(c.context == CHAIN - 1 && c.status == SMG_OK && smg_qp_send_room(qp) == 2 * CHAIN);
        announce(0, 3);
    } else {
        await(0, 3, f);
        for (unsigned i = 0; i < CHAIN; i++) {
            CHECK(((volatile uint8_t *)m)[i] == i + 1);
        }
    }
    free_memory(m, mr);
    part(f, self, 2);
}

static void open_chain(void **state)
{
    (void)state;
    run_instances(chain_child, 2, 0);
}

/* ---- Strangers at the listener: silence, rubbish, and a hello cut short must not disturb a mesh ---- */

/* Connects to the TCP listener of an instance of backend verbs and says n bytes; the connection stays open. */
static void intrude(uint16_t instance, size_t n)
{
    struct sockaddr_storage to;
    socklen_t bytes;
    uint8_t rubbish[SMG_VERBS_HELLO_BYTES];
    memset(rubbish, 0x5a, sizeof(rubbish));
    CHECK(smg_verbs_address_decode(&board->address[instance], &to, &bytes) == SMG_OK);
    int fd = socket(to.ss_family, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, bytes) == 0);
    CHECK(!n || send(fd, rubbish, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void strangers_child(uint16_t self)
{
    struct smg_fabric *f = open_fabric(self, 0);
    struct smg_fabric_peer other;
    await_all(2, 1, NULL);
    for (unsigned i = 0; i < 40 && self == 1; i++) {
        intrude(0, i % 3 == 0 ? 0 : i % 3 == 1 ? 10 : SMG_VERBS_HELLO_BYTES);
    }
    other = peer_of(!self, SMG_QUEUE_ALL);
    CHECK_OK(smg_fabric_connect(f, &other, 1, MESH_S, &diag));
    part(f, self, 2);
}

static void strangers(void **state)
{
    (void)state;
    if (strcmp(backend->name, "verbs") != 0) {
        return; /* the listener is the library's */
    }
    run_instances(strangers_child, 2, 0);
}

/* ---- Can it run here? Asked in a child: libraries must not be initialised before the tests fork. ---- */

static void probe_child(uint16_t self)
{
    struct smg_fabric_config config = config_of(self, 0);
    struct smg_fabric *f = NULL;
    int status = smg_fabric_open(smg_fabric_find(backend->name), &config, &f, &diag);
    if (status) {
        printf("%s%s\n", status == SMG_ERR_UNSUPPORTED ? "skip: " : "", diag.text);
        fflush(stdout);
        _exit(status == SMG_ERR_UNSUPPORTED ? 77 : 1);
    }
    smg_fabric_close(f);
}

static int probe(void)
{
    int status = 0;
    pid_t pid;
    if (!smg_fabric_find(backend->name)) {
        printf("skip: built without fabric %s\n", backend->name);
        return 77;
    }
    pid = start(probe_child, 0);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return 1;
    }
    return WEXITSTATUS(status);
}

static void name_devices(void)
{
    const char *text = getenv("SMG_TEST_VERBS_DEVICES");
    if (text && sscanf(text, "%63[^,],%63s", backends[1].device[0], backends[1].device[1]) < 2) {
        memcpy(backends[1].device[1], backends[1].device[0], sizeof(backends[1].device[0]));
    }
}

/* A backend that is not here is a skipped case of its own, beside the cases of the others. */
static void verbs_not_here(void **state)
{
    (void)state;
    skip();
}

static void ofi_not_here(void **state)
{
    (void)state;
    skip();
}

static int run_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(hello),
        cmocka_unit_test(unknown_provider),
        cmocka_unit_test(foreign_dmabuf),
        cmocka_unit_test(mesh_of_three),
        cmocka_unit_test(mesh_errors),
        cmocka_unit_test(write_order),
        cmocka_unit_test(gather_and_scatter),
        cmocka_unit_test(truncated_receive),
        cmocka_unit_test(dead_peer),
        cmocka_unit_test(last_words),
        cmocka_unit_test(bad_key),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(credits),
        cmocka_unit_test(waits),
        cmocka_unit_test(open_chain),
        cmocka_unit_test(strangers),
    };
    printf("fabric %s\n", backend->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SMG_TEST_FABRIC: only the backend of this name, which must open. */
int main(void)
{
    const struct CMUnitTest absent[] = {cmocka_unit_test(ofi_not_here), cmocka_unit_test(verbs_not_here)};
    const char *only = getenv("SMG_TEST_FABRIC");
    int failed = 0, ran = 0;
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    name_devices();
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        backend = &backends[i];
        if (only && strcmp(only, backend->name) != 0) {
            continue;
        }
        int unable = probe();
        if (unable == 77 && !only) {
            failed |= _cmocka_run_group_tests(backend->name, &absent[i], 1, NULL, NULL);
            continue;
        }
        failed |= unable ? unable : run_cases();
        ran++;
    }
    return failed ? failed : ran ? 0 : 77;
}
