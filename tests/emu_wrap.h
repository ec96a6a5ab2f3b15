/* The real engine in this process and its children, with a hand on what our code calls. The linker's --wrap (tests/local.mk)
 * sends allocations, posts, registrations and polls through the functions below: each is counted in its process, and the n-th
 * of a kind in one process can fail. Calls that libraries make are not seen. For one program: this header defines functions. */
#ifndef SMG_TESTS_EMU_WRAP_H
#define SMG_TESTS_EMU_WRAP_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/emu.h"
#include "emu/fabric.h"
#include "emu/harness.h"
#include "tests/heap_wrap.h"
#include "traces/scenario.h"
#include "traces/world.h"

#ifndef SMG_TESTDIR
#define SMG_TESTDIR "tests"
#endif

enum calls { ALLOCATE, REGISTER, POST, POLL, CALLS };
enum { PROCESSES = 8 };

static const char *const call_names[CALLS] = {"allocation", "registration", "post", "poll"};

/* Shared by the processes of a run. */
struct watch {
    /* The wish: call n (from 1; 0: none) of this kind in this process gives this status. */
    uint16_t process, kind;
    int32_t status;
    uint64_t n;
    /* What was seen. */
    struct {
        uint64_t calls[CALLS];
        uint64_t running; /* allocations between the start of the clock and the end of the loop */
        int64_t left;     /* blocks not given back at the end */
        pid_t pid;        /* of an instance */
        int looped;       /* the loop, or what came before it, has ended */
        int ended;        /* by itself, with _exit */
    } of[PROCESSES];
    int crashed; /* an instance ended otherwise, and not because the router had ended it */
};

static struct watch *watch;
static uint16_t this_process;
static int clock_runs;
static int64_t heap_before;
/* Test of the test: an allocation at the n-th post of a decode instance, 0: none. */
static uint64_t planted_at;

static inline int due(enum calls kind)
{
    uint64_t n = watch ? ++watch->of[this_process].calls[kind] : 0;

    return n && n == watch->n && watch->kind == kind && watch->process == this_process;
}

/* ---- Memory ---- */

int heap_fails(void)
{
    if (watch && clock_runs)
        watch->of[this_process].running++;
    return due(ALLOCATE);
}

/* ---- The fabric ---- */

__typeof__(smg_fabric_write) __real_smg_fabric_write, __wrap_smg_fabric_write;
__typeof__(smg_fabric_send) __real_smg_fabric_send, __wrap_smg_fabric_send;
__typeof__(smg_fabric_recv) __real_smg_fabric_recv, __wrap_smg_fabric_recv;
__typeof__(smg_fabric_register) __real_smg_fabric_register, __wrap_smg_fabric_register;
__typeof__(smg_fabric_poll) __real_smg_fabric_poll, __wrap_smg_fabric_poll;

/* As the fabric does it: one line, and nothing has happened. */
static inline int refuse(enum calls kind, struct smg_diag *diag)
{
    if (diag)
        snprintf(diag->text, sizeof diag->text, "instance %u: injected: %s %llu fails", this_process, call_names[kind],
                 (unsigned long long)watch->n);
    return watch->status;
}

static inline int post_due(void)
{
    static void *planted;

    if (planted_at && this_process == 2 && watch && watch->of[this_process].calls[POST] + 1 == planted_at) {
        planted = __wrap_malloc(1);
        __wrap_free(planted);
    }
    return due(POST);
}

int __wrap_smg_fabric_write(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, const struct smg_remote *remote,
                            uint64_t offset_bytes, uint64_t context, unsigned flags, struct smg_diag *diag)
{
    return post_due() ? refuse(POST, diag) : __real_smg_fabric_write(qp, pieces, n, remote, offset_bytes, context, flags, diag);
}

int __wrap_smg_fabric_send(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, unsigned flags,
                           struct smg_diag *diag)
{
    return post_due() ? refuse(POST, diag) : __real_smg_fabric_send(qp, pieces, n, context, flags, diag);
}

int __wrap_smg_fabric_recv(struct smg_qp *qp, const struct smg_piece *pieces, size_t n, uint64_t context, struct smg_diag *diag)
{
    return post_due() ? refuse(POST, diag) : __real_smg_fabric_recv(qp, pieces, n, context, diag);
}

int __wrap_smg_fabric_register(struct smg_fabric *f, void *base, size_t bytes, struct smg_mr **out, struct smg_diag *diag)
{
    return due(REGISTER) ? refuse(REGISTER, diag) : __real_smg_fabric_register(f, base, bytes, out, diag);
}

int __wrap_smg_fabric_poll(struct smg_fabric *f, struct smg_completion *out, size_t cap, double timeout_s, size_t *n_out,
                           struct smg_diag *diag)
{
    *n_out = 0;
    return due(POLL) ? refuse(POLL, diag) : __real_smg_fabric_poll(f, out, cap, timeout_s, n_out, diag);
}

/* ---- The life of a process ---- */

__typeof__(smg_harness_start) __real_smg_harness_start, __wrap_smg_harness_start;
__typeof__(waitpid) __real_waitpid, __wrap_waitpid;
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

int __wrap_smg_harness_start(struct smg_harness *h, double seconds, struct smg_diag *diag)
{
    int status = __real_smg_harness_start(h, seconds, diag);

    clock_runs = !status;
    return status;
}

/* A router ends instances with SIGKILL; any other signal, and an end that does not go through _exit (a sanitizer's), is a
 * crash. */
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    int how = 0;
    pid_t ended = __real_waitpid(pid, &how, options);

    if (status)
        *status = how;
    for (unsigned i = 1; watch && ended > 0 && i < PROCESSES; i++)
        if (watch->of[i].pid == ended && (WIFSIGNALED(how) ? WTERMSIG(how) != SIGKILL : !watch->of[i].ended))
            watch->crashed = how;
    return ended;
}

void __wrap__exit(int status)
{
    if (watch && this_process) {
        watch->of[this_process].ended = 1;
        watch->of[this_process].left = heap_live - heap_before;
    }
    __real__exit(status);
}

/* Called in each process before anything of it is there. The router has begun before. */
static inline int observe(void *arg, uint16_t instance, struct smg_observer *out)
{
    (void)arg;
    (void)out;
    this_process = instance;
    heap_before = heap_live;
    watch->of[instance].pid = instance ? getpid() : 0;
    return SMG_OK;
}

static inline int observed(void *arg, uint16_t instance, struct smg_observer *observer)
{
    (void)arg;
    (void)observer;
    clock_runs = 0;
    watch->of[instance].looped = 1;
    return SMG_OK;
}

/* ---- A run ---- */

struct run {
    int status;
    struct smg_records records;
    struct smg_run_stats stats;
    struct smg_diag diag;
    struct smg_emu_losses losses;
};

enum { WORDS = 40 };

/* A small world of free links and little paced time: set[n] are key=value words, the later ones count. */
static inline void load_world(struct smg_world *w, const char *const *more)
{
    const char *sets[WORDS] = {"model=" SMG_TESTDIR "/../experiments/emu-small/config.json",
                               "prefill.gpu=" SMG_TESTDIR "/../experiments/emu-small/gpu.json",
                               "decode.gpu=" SMG_TESTDIR "/../experiments/emu-small/gpu.json",
                               "prefill.nodes=1",
                               "prefill.gpus_per_node=1",
                               "decode.nodes=1",
                               "decode.gpus_per_node=1",
                               "decode.host_memory_gib=1",
                               "selection.source=entry",
                               "emu.link=free",
                               "emu.time_scale=0.01",
                               "workload.kind=batch",
                               "seed=7"};
    struct smg_scenario s;
    struct smg_diag diag = {""};
    size_t n = 13;

    for (; *more; more++) {
        assert_true(n < WORDS);
        sets[n++] = *more;
    }
    if (smg_scenario_load(NULL, sets, n, &s, &diag) || smg_world_load(&s, w, &diag))
        fail_msg("%s", diag.text);
    assert_true(smg_world_instances(w) <= PROCESSES);
}

/* Every case ends within this time, or the program does. A run's own time-out comes later: it is no way to end. */
enum { HANG_S = 60 };

static inline void hangs(int signal_number)
{
    static const char text[] = "a run has not ended in time\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static inline void run_world(const struct smg_world *w, struct run *r)
{
    struct smg_emu_config config = {.fabric = "ofi", .observe = observe, .observed = observed, .stall_timeout_s = 2 * HANG_S};

    for (size_t i = 0; smg_selection_types[i]; i++)
        if (!strcmp(smg_selection_types[i]->name, "entry"))
            config.selection = smg_selection_types[i];
    memset(watch->of, 0, sizeof watch->of);
    watch->crashed = 0;
    this_process = 0;
    clock_runs = 0;
    memset(r, 0, sizeof *r);
    config.losses = &r->losses;
    signal(SIGALRM, hangs);
    alarm(HANG_S);
    r->status = smg_emu_run(w, &config, &r->records, &r->stats, &r->diag);
    alarm(0);
    clock_runs = 0;
}

static inline void run_free(struct run *r)
{
    smg_records_free(&r->records);
    smg_run_stats_free(&r->stats);
}

/* Before anything else. Exits with 77 where the fabric does not open. */
static inline void need_fabric(void)
{
    const struct smg_fabric_type *type = smg_fabric_find("ofi");
    struct smg_fabric_config config = {.self = 0};
    struct smg_diag diag = {"this program is built without libfabric"};
    struct smg_fabric *f;

    if (!type || smg_fabric_open(type, &config, &f, &diag)) {
        printf("skip: %s\n", diag.text);
        exit(77);
    }
    smg_fabric_close(f);
    watch = mmap(NULL, sizeof *watch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (watch == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
}

#endif
