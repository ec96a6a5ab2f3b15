/* Speed of the fabric on loopback beside a plain stream socket, alternating in one run because shared cores are noisy: two
 * processes, 32 posts outstanding, every 8th delivered; the target polls as an instance does. Numbers are for people, not for
 * tests. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/fabric_port.h"

#define ROUNDS      3
#define TRIPS       2000
#define WINDOW      32u
#define SIGNAL_EACH 8u
#define MAX_BYTES   (1u << 20)

struct board {
    struct smg_fabric_address address[2];
    struct smg_remote remote[2];
    atomic_int steps[2];
    in_port_t port;
};

struct side {
    struct smg_fabric *fabric;
    struct smg_mr *mr;
    uint8_t *memory;
    int socket;
    int self;
    int step;
    int polls;
};

static struct board *board;
static struct smg_diag diag;

static void need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_fabric: %s: %s\n", what, diag.text);
        exit(1);
    }
}

/* Both sides meet; who is a target of writes keeps the data moving while it waits. */
static void meet(struct side *s)
{
    struct smg_completion c;
    size_t n;
    atomic_store(&board->steps[s->self], ++s->step);
    while (atomic_load(&board->steps[!s->self]) < s->step) {
        if (s->polls) {
            need(!smg_fabric_poll(s->fabric, &c, 1, 2e-3, &n, &diag), "poll");
        } else {
            usleep(100);
        }
    }
}

static int collect(struct smg_fabric *f)
{
    struct smg_completion c[WINDOW];
    size_t n = 0;
    while (!n) {
        need(!smg_fabric_poll(f, c, WINDOW, 1, &n, &diag), "poll");
    }
    for (size_t i = 0; i < n; i++) {
        need(!c[i].status, "completion");
    }
    return (int)n;
}

static void fabric_stream(struct side *s, size_t bytes, unsigned posts)
{
    struct smg_qp *qp = smg_fabric_qp(s->fabric, 1, SMG_QUEUE_PUSH);
    struct smg_piece piece = {s->memory, bytes, s->mr};
    int signaled = 0;
    for (unsigned i = 1; i <= posts && s->self == 0; i++) {
        int signal = i % SIGNAL_EACH == 0 || i == posts;
        while (signaled >= (int)(WINDOW / SIGNAL_EACH)) {
            signaled -= collect(s->fabric);
        }
        need(!smg_fabric_write(qp, &piece, 1, &board->remote[1], 0, i, signal ? SMG_POST_DELIVERED : 0, &diag), "write");
        signaled += signal;
    }
    while (signaled) {
        signaled -= collect(s->fabric);
    }
    s->polls = 1;
    meet(s);
    s->polls = 0;
}

static void socket_stream(struct side *s, size_t bytes, unsigned posts)
{
    for (unsigned i = 0; i < posts; i++) {
        for (size_t done = 0; done < bytes;) {
            ssize_t n = s->self == 0 ? send(s->socket, s->memory + done, bytes - done, 0)
                                     : recv(s->socket, s->memory + done, bytes - done, 0);
            need(n > 0, "stream socket");
            done += (size_t)n;
        }
    }
    meet(s);
}

static double gbytes_per_s(struct side *s, void (*stream)(struct side *, size_t, unsigned), size_t bytes)
{
    unsigned posts = (unsigned)((bytes < 65536 ? 64u : 512u) * (size_t)MAX_BYTES / bytes);
    meet(s);
    double start_s = smg_fabric_now_s();
    stream(s, bytes, posts);
    return 1e-9 * (double)bytes * posts / (smg_fabric_now_s() - start_s);
}

static void await_message(struct smg_fabric *f)
{
    struct smg_completion c = {0};
    size_t n = 0;
    while (!n || c.kind != SMG_DONE_RECV) {
        need(!smg_fabric_poll(f, &c, 1, 1, &n, &diag), "poll");
        need(!n || !c.status, "completion");
    }
}

/* Side 0 begins each trip; the receive for the next one is posted before the answer that lets it start. */
static double round_trip_s(struct side *s, size_t bytes)
{
    struct smg_qp *qp = smg_fabric_qp(s->fabric, (uint16_t)!s->self, SMG_QUEUE_CTL);
    struct smg_piece out = {s->memory, bytes, s->mr}, in = {s->memory + MAX_BYTES / 2, bytes, s->mr};
    need(!smg_fabric_recv(qp, &in, 1, 0, &diag), "receive");
    meet(s);
    double start_s = smg_fabric_now_s();
    for (unsigned i = 1; i <= TRIPS; i++) {
        unsigned flags = SMG_POST_INJECT | (i % SIGNAL_EACH ? 0 : SMG_POST_SIGNALED);
        need(s->self == 1 || !smg_fabric_send(qp, &out, 1, 0, flags, &diag), "send");
        await_message(s->fabric);
        need(i == TRIPS || !smg_fabric_recv(qp, &in, 1, 0, &diag), "receive");
        need(s->self == 0 || !smg_fabric_send(qp, &out, 1, 0, flags, &diag), "send");
    }
    double trip_s = (smg_fabric_now_s() - start_s) / TRIPS;
    meet(s);
    return trip_s;
}

static void open_fabric(struct side *s)
{
    struct smg_fabric_config config = {.self = (uint16_t)s->self, .max_outstanding = 2 * WINDOW};
    need(!smg_fabric_open(smg_fabric_find("ofi"), &config, &s->fabric, &diag), "open");
    smg_fabric_address(s->fabric, &board->address[s->self]);
    meet(s);
    struct smg_fabric_peer peer = {.instance = (uint16_t)!s->self, .queues = SMG_QUEUE_ALL, .address = board->address[!s->self]};
    need(!smg_fabric_connect(s->fabric, &peer, 1, 10, &diag), "connect");
    s->memory = calloc(1, MAX_BYTES);
    need(s->memory && !smg_fabric_register(s->fabric, s->memory, MAX_BYTES, &s->mr, &diag), "memory");
    board->remote[s->self] = smg_mr_remote(s->mr);
    meet(s);
}

/* Instance 1 listens. */
static void open_socket(struct side *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(a);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    need(fd >= 0, "socket");
    if (s->self == 1) {
        need(!bind(fd, (struct sockaddr *)&a, bytes) && !listen(fd, 1) && !getsockname(fd, (struct sockaddr *)&a, &bytes),
             "listen");
        board->port = a.sin_port;
    }
    meet(s);
    a.sin_port = board->port;
    if (s->self == 1) {
        s->socket = accept(fd, NULL, NULL);
        close(fd);
    } else {
        s->socket = connect(fd, (struct sockaddr *)&a, bytes) ? -1 : fd;
    }
    need(s->socket >= 0 && !setsockopt(s->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "connect");
}

static void run(int self)
{
    static const size_t sizes[] = {4096, 65536, MAX_BYTES};
    struct side s = {.self = self};
    open_fabric(&s);
    open_socket(&s);
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            double fabric = gbytes_per_s(&s, fabric_stream, sizes[i]);
            double plain = gbytes_per_s(&s, socket_stream, sizes[i]);
            if (self == 0) {
                printf("%8zu bytes  fabric %6.2f GB/s  stream socket %6.2f GB/s\n", sizes[i], fabric, plain);
            }
        }
        double trip_s = round_trip_s(&s, 64);
        if (self == 0) {
            printf("      64 bytes  round trip %6.1f us\n", 1e6 * trip_s);
        }
    }
    close(s.socket);
    smg_mr_close(s.mr);
    smg_fabric_close(s.fabric);
    free(s.memory);
}

static pid_t start(int self)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        run(self);
        exit(0);
    }
    return pid;
}

int main(void)
{
    int status, bad = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!smg_fabric_find("ofi")) {
        printf("skip: built without libfabric\n");
        return 0;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || start(0) < 0 || start(1) < 0) {
        perror("bench_fabric");
        return 1;
    }
    while (wait(&status) > 0) {
        bad |= status;
    }
    return bad ? 1 : 0;
}
