/* SimGrid engine: the only file that sees SimGrid.
 *
 * Platform: one Cluster zone, whose hosts have a link up and a link down each, and a backbone for the core: O(endpoints), where a
 * Full zone would need a route for every pair. (SimGrid 3.32 implements Cluster as a star; its XML has no Star.)
 *
 * Actors: the body runs in the driver. A flow runs in a worker of a pool that grows to the most flows ever in flight: the C API
 * has no asynchronous one-sided transfer. Contexts are switched by one thread, so actors share memory without locks.
 * AddressSanitizer warns once that it does not know such stacks; it and ThreadSanitizer find nothing else.
 */
#include "config.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/semaphore.h>
#include <xbt/config.h>

#include "sim/engine_priv.h"

/* Stacks: a worker only sends; the body is arbitrary code. Pages that are not touched cost nothing. */
#define WORKER_STACK_KIB 64
#define DRIVER_STACK_KIB 8192
/* 3.32 takes a size as a double and cuts it to a whole number of bytes, which would be off by up to a byte a flow. So bytes and
 * rates are both multiplied by a power of two: times stay the same, and sizes are kept to 2^-24 byte. */
#define SIZE_SCALE 0x1p23
/* The scaled size must fit into 63 bits: longer flows go in pieces. */
#define PIECE_BYTES_MAX 0x1p39
/* An infinite link that must have a name in the platform. FATPIPE: its flows do not share it. */
#define UNBOUNDED_BPS 1e30

struct sg_endpoint {
    double tx_Bps, rx_Bps;
    sg_host_t host;
};

struct sg_worker {
    struct sg_worker *next; /* in the list of all workers */
    struct sg_worker *next_idle;
    struct sg_engine *engine;
    sg_sem_t start;
    uint32_t src, dst;
    double bytes;
    uint64_t tag;
};

struct sg_engine {
    struct smg_engine base;
    struct sg_endpoint *endpoints; /* [alloc], base.endpoints in use */
    size_t alloc;
    double core_Bps;
    struct sg_worker *workers, *idle;
    size_t in_flight;
    sg_sem_t completion;
    bool waiting; /* the driver wants a release of `completion` */
    struct smg_timer_heap timers;
    struct smg_ready ready;
    smg_engine_body_fn body;
    void *body_arg;
    int body_status;
};

/* SimGrid's state is global and cannot be reset. */
static bool simgrid_used;
/* The driver's code gets no pointer from the C API. */
static struct sg_engine *running;

static struct sg_engine *sg(struct smg_engine *e)
{
    return (struct sg_engine *)e;
}

/* Exact fluid arithmetic: no TCP model (slow start, window, cross traffic), and a precision below any duration of interest. */
static void simgrid_configure(void)
{
    sg_cfg_set_string("network/model", "CM02");
    sg_cfg_set_boolean("network/crosstraffic", "no");
    sg_cfg_set_double("network/TCP-gamma", 1e20);
    sg_cfg_set_double("surf/precision", SMG_ENGINE_TIE_S);
}

static int simgrid_create(struct smg_engine **out)
{
    struct sigaction interrupt;
    static char program[] = "smartgen", quiet[] = "--log=root.thres:error";
    static char *argv[] = {program, quiet, NULL};
    int argc = 2;
    struct sg_engine *s;

    if (simgrid_used)
        return SMG_ERR_UNSUPPORTED;
    s = calloc(1, sizeof(*s));
    if (!s)
        return SMG_ERR_NOMEM;
    simgrid_used = true;
    sigaction(SIGINT, NULL, &interrupt);
    simgrid_init(&argc, argv);
    sigaction(SIGINT, &interrupt, NULL); /* SimGrid's own handler would end the process */
    simgrid_configure();
    s->core_Bps = INFINITY;
    *out = &s->base;
    return SMG_OK;
}

static void simgrid_destroy(struct smg_engine *e)
{
    struct sg_engine *s = sg(e);

    if (s->completion)
        sg_sem_destroy(s->completion);
    while (s->workers) {
        struct sg_worker *next = s->workers->next;

        sg_sem_destroy(s->workers->start);
        free(s->workers);
        s->workers = next;
    }
    smg_ready_fini(&s->ready);
    smg_timer_heap_fini(&s->timers);
    free(s->endpoints);
    free(s);
}

static int simgrid_endpoint(struct smg_engine *e, double tx_Bps, double rx_Bps, uint32_t *out)
{
    struct sg_engine *s = sg(e);

    if (e->endpoints == s->alloc) {
        size_t alloc = s->alloc ? 2 * s->alloc : 16;
        struct sg_endpoint *grown = realloc(s->endpoints, alloc * sizeof(*grown));

        if (!grown)
            return SMG_ERR_NOMEM;
        s->endpoints = grown;
        s->alloc = alloc;
    }
    s->endpoints[e->endpoints] = (struct sg_endpoint){.tx_Bps = tx_Bps, .rx_Bps = rx_Bps};
    *out = e->endpoints;
    return SMG_OK;
}

static int simgrid_core(struct smg_engine *e, double Bps)
{
    sg(e)->core_Bps = Bps;
    return SMG_OK;
}

/* ---- Platform ---- */

static void link_write(FILE *xml, uint32_t id, const char *direction, double Bps)
{
    fprintf(xml, "<link id=\"%s%u\" bandwidth=\"%.17gBps\" latency=\"0s\" sharing_policy=\"%s\"/>\n", direction, id,
            isfinite(Bps) ? Bps * SIZE_SCALE : UNBOUNDED_BPS, isfinite(Bps) ? "SHARED" : "FATPIPE");
}

/* A host without links has routes without links, which no flow uses; but with a core it needs some to reach itself by. */
static bool endpoint_has_links(const struct sg_engine *s, const struct sg_endpoint *p)
{
    return isfinite(p->tx_Bps) || isfinite(p->rx_Bps) || isfinite(s->core_Bps);
}

static void platform_write(FILE *xml, const struct sg_engine *s)
{
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
          "<zone id=\"net\" routing=\"Cluster\">\n<host id=\"driver\" speed=\"1f\"/>\n",
          xml);
    for (uint32_t i = 0; i < s->base.endpoints; i++) {
        const struct sg_endpoint *p = &s->endpoints[i];

        fprintf(xml, "<host id=\"h%u\" speed=\"1f\"/>\n", i);
        if (!endpoint_has_links(s, p))
            continue;
        link_write(xml, i, "tx", p->tx_Bps);
        link_write(xml, i, "rx", p->rx_Bps);
        fprintf(xml, "<host_link id=\"h%u\" up=\"tx%u\" down=\"rx%u\"/>\n", i, i, i);
    }
    if (isfinite(s->core_Bps))
        fprintf(xml, "<backbone id=\"core\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", s->core_Bps * SIZE_SCALE);
    fputs("</zone>\n</platform>\n", xml);
}

/* The parser wants a file name, so the platform is a file in memory. */
static int platform_load(const struct sg_engine *s)
{
    char path[64];
    int status = SMG_ERR_IO;
    int fd = memfd_create("platform", MFD_CLOEXEC);
    FILE *xml;

    if (fd < 0)
        return SMG_ERR_IO;
    xml = fdopen(fd, "w");
    if (!xml) {
        close(fd);
        return SMG_ERR_IO;
    }
    platform_write(xml, s);
    if (fflush(xml) != 0 || ferror(xml))
        goto close_xml;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    simgrid_load_platform(path);
    status = SMG_OK;
close_xml:
    fclose(xml);
    return status;
}

static void hosts_find(struct sg_engine *s)
{
    char name[32];

    for (uint32_t i = 0; i < s->base.endpoints; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        s->endpoints[i].host = sg_host_by_name(name);
    }
}

/* ---- Actors ---- */

/* Blocks until it has arrived. Never 0 bytes, which SimGrid is not to be trusted with. */
static void piece_send(sg_host_t src, sg_host_t dst, double bytes)
{
    sg_host_sendto(src, dst, fmax(1, round(bytes * SIZE_SCALE)));
}

static void worker_main(int argc, char **argv)
{
    struct sg_worker *w = sg_actor_self_get_data();
    struct sg_engine *s = w->engine;

    (void)argc;
    (void)argv;
    for (;;) {
        sg_sem_acquire(w->start);
        for (double left = w->bytes; left > 0; left -= PIECE_BYTES_MAX)
            piece_send(s->endpoints[w->src].host, s->endpoints[w->dst].host, fmin(left, PIECE_BYTES_MAX));
        smg_ready_push(&s->ready, w->tag);
        s->in_flight--;
        w->next_idle = s->idle;
        s->idle = w;
        if (s->waiting) {
            s->waiting = false;
            sg_sem_release(s->completion);
        }
    }
}

static struct sg_worker *worker_new(struct sg_engine *s)
{
    struct sg_worker *w = calloc(1, sizeof(*w));
    sg_actor_t actor;

    if (!w)
        return NULL;
    w->engine = s;
    w->start = sg_sem_init(0);
    w->next = s->workers;
    s->workers = w;
    actor = sg_actor_init("worker", sg_host_by_name("driver"));
    sg_actor_set_data(actor, w);
    sg_actor_start(actor, worker_main, 0, NULL);
    /* a worker never ends by itself: the run is over when the driver is. 3.32 crashes when this comes before the start */
    sg_actor_daemonize(actor);
    return w;
}

/* An idle worker, or a new one; NULL without memory. */
static struct sg_worker *worker_take(struct sg_engine *s)
{
    struct sg_worker *w = s->idle;

    if (!w)
        return worker_new(s);
    s->idle = w->next_idle;
    return w;
}

static void driver_main(int argc, char **argv)
{
    struct sg_engine *s = running;

    (void)argc;
    (void)argv;
    s->body_status = s->body(&s->base, s->body_arg);
}

static int simgrid_run_body(struct smg_engine *e, smg_engine_body_fn body, void *arg)
{
    struct sg_engine *s = sg(e);
    int status = platform_load(s);

    if (status != SMG_OK)
        return status;
    hosts_find(s);
    s->body = body;
    s->body_arg = arg;
    s->body_status = SMG_ERR_DEADLOCK;
    s->completion = sg_sem_init(0);
    running = s;
    /* by the option and not by sg_actor_set_stacksize, which 3.32 honours in the size but not in the allocation */
    sg_cfg_set_int("contexts/stack-size", DRIVER_STACK_KIB);
    sg_actor_create("driver", sg_host_by_name("driver"), driver_main, 0, NULL);
    sg_cfg_set_int("contexts/stack-size", WORKER_STACK_KIB);
    simgrid_run();
    running = NULL;
    return s->body_status;
}

/* ---- Inside the body ---- */

static double simgrid_now(struct smg_engine *e)
{
    (void)e;
    return simgrid_get_clock();
}

static int simgrid_timer(struct smg_engine *e, double delay_s, uint64_t tag)
{
    struct sg_engine *s = sg(e);
    int status = smg_ready_reserve(&s->ready);

    if (status != SMG_OK)
        return status;
    status = smg_timer_heap_push(&s->timers, simgrid_get_clock() + delay_s, tag);
    if (status != SMG_OK)
        smg_ready_release(&s->ready);
    return status;
}

/* What takes no time. SimGrid refuses a route without links. */
static bool flow_is_instant(const struct sg_engine *s, uint32_t src, uint32_t dst, double bytes)
{
    return bytes == 0 || !(isfinite(s->endpoints[src].tx_Bps) || isfinite(s->endpoints[dst].rx_Bps) || isfinite(s->core_Bps));
}

static int simgrid_flow(struct smg_engine *e, uint32_t src, uint32_t dst, double bytes, uint64_t tag)
{
    struct sg_engine *s = sg(e);
    struct sg_worker *w;
    int status;

    if (flow_is_instant(s, src, dst, bytes))
        return simgrid_timer(e, 0, tag);
    status = smg_ready_reserve(&s->ready);
    if (status != SMG_OK)
        return status;
    w = worker_take(s);
    if (!w) {
        smg_ready_release(&s->ready);
        return SMG_ERR_NOMEM;
    }
    w->src = src;
    w->dst = dst;
    w->bytes = bytes;
    w->tag = tag;
    s->in_flight++;
    sg_sem_release(w->start);
    return SMG_OK;
}

/* Blocks until a flow completes or the clock reaches until_s (INFINITY: never); false when until_s was reached. A release that
 * raced with a time-out stays in the semaphore: callers must be ready for a return without a completion. */
static bool completion_wait(struct sg_engine *s, double until_s)
{
    int timed_out = 0;

    s->waiting = true;
    if (isfinite(until_s))
        timed_out = sg_sem_acquire_timeout(s->completion, until_s - simgrid_get_clock());
    else
        sg_sem_acquire(s->completion);
    s->waiting = false;
    /* lets every worker that this instant has woken note its completion */
    if (s->in_flight > 0)
        sg_actor_yield();
    return !timed_out;
}

static int simgrid_next(struct smg_engine *e, uint64_t *tags, size_t cap, size_t *n_out)
{
    struct sg_engine *s = sg(e);
    double due_s = simgrid_get_clock();

    if (s->ready.n == 0) {
        smg_ready_push_timers(&s->ready, &s->timers, due_s + SMG_ENGINE_TIE_S);
        while (s->ready.n == 0 && (s->in_flight > 0 || s->timers.n > 0)) {
            double timer_s = smg_timer_heap_next_s(&s->timers);
            bool completed = completion_wait(s, timer_s);

            /* the clock may stop one rounding short of the time asked for */
            due_s = completed ? simgrid_get_clock() : fmax(timer_s, simgrid_get_clock());
            smg_ready_push_timers(&s->ready, &s->timers, due_s + SMG_ENGINE_TIE_S);
        }
        smg_ready_sort(&s->ready);
    }
    *n_out = smg_ready_take(&s->ready, tags, cap);
    return SMG_OK;
}

const struct smg_engine_type smg_engine_simgrid = {
    .name = "simgrid",
    .doc = "SimGrid's fluid network, set to exact max-min sharing; one run in the life of a process",
    .create = simgrid_create,
    .destroy = simgrid_destroy,
    .endpoint = simgrid_endpoint,
    .core = simgrid_core,
    .run = simgrid_run_body,
    .now = simgrid_now,
    .timer = simgrid_timer,
    .flow = simgrid_flow,
    .next = simgrid_next,
};
