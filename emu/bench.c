/* The two sides of the bench: set-up, barriers, and the list of points that both walk through. */
#include "emu/bench_priv.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_BYTES (1u << 20) /* blocks are spread over so much memory, or two per queue pair where they are larger */

/* ---- Shared by the points ---- */

uint32_t smg_bench_do_slots(const struct smg_bench_config *c, uint32_t block_bytes, uint32_t queues)
{
    uint32_t n = RING_BYTES / block_bytes < c->depth * queues ? RING_BYTES / block_bytes : c->depth * queues;
    if (c->places) {
        return c->places;
    }
    return n > 2 * queues ? n : 2 * queues;
}

static int wants_end(void *arg)
{
    const struct bench_side *s = arg;
    return !s->self && s->config->stop && s->config->stop();
}

int smg_bench_do_look(struct bench_side *s)
{
    return wants_end(s) ? smg_fabric_fail(s->diag, SMG_ERR_INTERRUPTED, "%s", smg_status_string(SMG_ERR_INTERRUPTED)) : SMG_OK;
}

int smg_bench_do_poll(struct bench_side *s, size_t *n_out)
{
    struct smg_completion c[16];
    int status = smg_fabric_poll(s->fabric, c, sizeof(c) / sizeof(c[0]), 0, n_out, s->diag);
    for (size_t i = 0; i < *n_out && !status; i++) {
        if (c[i].status) {
            status = smg_fabric_fail(s->diag, c[i].status, "a transfer failed: %s (%s)", smg_status_string(c[i].status),
                                     smg_fabric_cause(s->fabric, c[i].cause));
        } else if (c[i].kind == SMG_DONE_WRITE) {
            s->in_flight[c[i].queue]--;
        } else {
            *(c[i].kind == SMG_DONE_RECV ? &s->received : &s->sent) += 1;
        }
    }
    return status ? status : smg_bench_do_look(s);
}

/* Without taking its status away. */
static int child_ended(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* A failure of either side is told on the board; one that crashed cannot. So a wish to end comes first: it may be why. */
static int other_failed(struct bench_side *s)
{
    int status = smg_bench_do_look(s);
    if (status) {
        return status;
    }
    status = atomic_load(&s->board->status[!s->self]);
    if (status) {
        *s->diag = s->board->diag[!s->self];
    } else if (s->self == 0 && child_ended(s->child)) {
        status = smg_fabric_fail(s->diag, SMG_ERR_LOST, "the other process of the bench is gone");
    }
    return status;
}

int smg_bench_do_patience(struct bench_side *s, double since_s)
{
    int status = other_failed(s);
    if (!status && smg_fabric_now_s() - since_s > s->config->timeout_s) {
        status = smg_fabric_fail(s->diag, SMG_ERR_DEADLOCK, "nothing has completed for %g s", s->config->timeout_s);
    }
    return status;
}

int smg_bench_do_meet(struct bench_side *s, int polls)
{
    struct smg_completion c;
    size_t n = 0;
    int status = SMG_OK;
    atomic_store(&s->board->step[s->self], ++s->step);
    while (!status && atomic_load(&s->board->step[!s->self]) < s->step) {
        /* Completions are none of this side's: it has no post in flight. */
        if (polls) {
            status = smg_fabric_poll(s->fabric, &c, 1, 1e-3, &n, s->diag);
        } else {
            smg_fabric_sleep(50e-6);
        }
        int failed = other_failed(s); /* asked first: after the last barrier the other side may be gone */
        status = status || atomic_load(&s->board->step[!s->self]) >= s->step ? status : failed;
    }
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double smg_bench_do_median(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), ascending);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

struct smg_bench_percentiles smg_bench_do_percentiles(double *seconds, size_t n)
{
    double p50 = smg_bench_do_median(seconds, n);
    size_t rank = (99 * n + 99) / 100; /* nearest rank: the smallest value that 99 % do not exceed */
    return (struct smg_bench_percentiles){1e6 * p50, 1e6 * seconds[rank - 1]};
}

/* ---- One side ---- */

static uint32_t largest(const struct smg_bench_list *l)
{
    uint32_t most = 1;
    for (size_t i = 0; i < l->n; i++) {
        most = l->value[i] > most ? l->value[i] : most;
    }
    return most;
}

static size_t page_up(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static int take_memory(struct bench_side *s)
{
    const struct smg_bench_config *c = s->config;
    size_t ring = 0, entries = largest(&c->entries), slots = (size_t)c->depth * largest(&c->queues) + 2 * SMG_QUEUES;
    for (size_t i = 0; i < c->block.n; i++) {
        size_t bytes = (size_t)c->block.value[i] * smg_bench_do_slots(c, c->block.value[i], largest(&c->queues));
        ring = bytes > ring ? bytes : ring;
    }
    s->masks = page_up(ring);
    s->request = s->masks + page_up(slots * BENCH_MASK_BYTES);
    s->reply = s->request + page_up(BENCH_HEADER_BYTES + 4 * entries);
    s->bytes = s->reply + page_up(entries * c->entry_bytes);
    s->memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    s->kv = malloc((size_t)BENCH_KV_ENTRIES * c->entry_bytes);
    for (unsigned k = 0; k < 3; k++) {
        s->sample[k] = malloc(c->samples * sizeof(double));
    }
    if (s->memory == MAP_FAILED || !s->kv || !s->sample[0] || !s->sample[1] || !s->sample[2]) {
        s->memory = s->memory == MAP_FAILED ? NULL : s->memory;
        return smg_fabric_fail(s->diag, SMG_ERR_NOMEM, "no memory for a bench of %zu bytes", s->bytes);
    }
    return smg_fabric_register(s->fabric, s->memory, s->bytes, &s->mr, s->diag);
}

/* Where the blocks are. */
static int place_blocks(struct bench_side *s)
{
    s->blocks = s->memory;
    s->blocks_mr = s->mr;
    if (!s->config->on_gpu) {
        return SMG_OK;
    }
    int status = smg_gpu_memory_take(0, s->masks, &s->gpu, s->diag);
    s->blocks_mr = NULL;
    if (!status) {
        status = smg_fabric_register_gpu(s->fabric, &s->gpu, &s->blocks_mr, s->diag);
    }
    s->blocks = (uint8_t *)(uintptr_t)s->gpu.address;
    return status;
}

static int set_up(struct bench_side *s)
{
    const struct smg_bench_config *c = s->config;
    const char *device = c->device, *second = device ? strchr(device, ',') : NULL;
    char first[128];
    if (second) {
        snprintf(first, sizeof(first), "%.*s", (int)(second - device), device);
        device = s->self ? second + 1 : first;
    }
    /* A chain of blocks and masks, twice over: one posts while the other is on its way. */
    struct smg_fabric_config fc = {.provider = device,
                                   .self = (uint16_t)s->self,
                                   .max_outstanding = 4 * (c->depth > largest(&c->batch) ? c->depth : largest(&c->batch)),
                                   .stop = wants_end,
                                   .stop_arg = s};
    int status = smg_fabric_open(smg_fabric_find(c->fabric), &fc, &s->fabric, s->diag);
    if (!status) {
        status = take_memory(s);
    }
    if (!status) {
        status = place_blocks(s);
    }
    if (status) {
        return status;
    }
    smg_fabric_address(s->fabric, &s->board->address[s->self]);
    s->board->remote[s->self] = smg_mr_remote(s->mr);
    s->board->blocks[s->self] = smg_mr_remote(s->blocks_mr);
    status = smg_bench_do_meet(s, 0);
    struct smg_fabric_peer peer = {
        .instance = (uint16_t)!s->self, .queues = SMG_QUEUE_ALL, .address = s->board->address[!s->self]};
    return status ? status : smg_fabric_connect(s->fabric, &peer, 1, c->timeout_s, s->diag);
}

static void tear_down(struct bench_side *s)
{
    if (s->blocks_mr != s->mr) {
        smg_mr_close(s->blocks_mr);
    }
    smg_mr_close(s->mr);
    smg_gpu_memory_free(&s->gpu);
    smg_fabric_close(s->fabric);
    if (s->memory) {
        munmap(s->memory, s->bytes);
    }
    free(s->kv);
    for (unsigned k = 0; k < 3; k++) {
        free(s->sample[k]);
    }
}

/* Where it broke, before why. A limit of the device says it by itself. */
__attribute__((format(printf, 3, 4))) static int broke(struct bench_side *s, int status, const char *format, ...)
{
    struct smg_diag why = *s->diag;
    va_list arguments;
    if (status == SMG_OK || status == SMG_ERR_UNSUPPORTED || status == SMG_ERR_VERIFY || status == SMG_ERR_INTERRUPTED) {
        return status;
    }
    va_start(arguments, format);
    int n = vsnprintf(s->diag->text, sizeof(s->diag->text), format, arguments);
    va_end(arguments);
    snprintf(s->diag->text + n, sizeof(s->diag->text) - (size_t)n, ": %.*s", (int)(sizeof(why.text) - (size_t)n - 3), why.text);
    return status;
}

static int writes(struct bench_side *s, struct smg_bench_results *out)
{
    const struct smg_bench_config *c = s->config;
    int status = SMG_OK;
    for (size_t i = 0; i < c->block.n; i++) {
        for (size_t j = 0; j < c->batch.n; j++) {
            for (size_t k = 0; k < c->queues.n && !status; k++) {
                struct smg_bench_write *point = &out->write[out->n_write++];
                point->block_bytes = c->block.value[i];
                point->batch = c->batch.value[j];
                point->queues = c->queues.value[k];
                status = broke(s, smg_bench_do_write(s, point), "WRITEs of %u bytes, %u in a chain, on %u queue pairs",
                               point->block_bytes, point->batch, point->queues);
            }
        }
    }
    return status;
}

static int points(struct bench_side *s, void *arg)
{
    const struct smg_bench_config *c = s->config;
    struct smg_bench_results *out = arg;
    int status = writes(s, out);
    for (size_t i = 0; i < c->block.n && !status; i++) {
        out->masked[out->n_masked].block_bytes = c->block.value[i];
        status =
            broke(s, smg_bench_do_masked(s, &out->masked[out->n_masked++]), "blocks of %u bytes with masks", c->block.value[i]);
    }
    for (size_t i = 0; i < c->entries.n && !status; i++) {
        out->trip[out->n_trip].entries = c->entries.value[i];
        status = broke(s, smg_bench_do_trip(s, &out->trip[out->n_trip++]), "round trips of %u entries", c->entries.value[i]);
    }
    return status;
}

/* Both sides walk through the same points; only side 0 learns numbers. */
static int walk(struct bench_side *s, bench_points_fn each, void *out)
{
    int status = set_up(s);
    if (!status) {
        status = each(s, out);
    }
    if (!status) {
        status = smg_bench_do_meet(s, 1);
    }
    if (status) {
        s->board->diag[s->self] = *s->diag;
        atomic_store(&s->board->status[s->self], status);
    }
    tear_down(s);
    return status;
}

/* ---- Both ---- */

/* What it fills of out is its own copy. */
static int other_side(const struct smg_bench_config *config, struct bench_board *board, bench_points_fn each, void *out)
{
    struct smg_diag diag = {""};
    struct bench_side s = {.config = config, .board = board, .self = 1, .diag = &diag};
    return walk(&s, each, out);
}

static int check(const struct smg_bench_config *c, struct smg_diag *diag)
{
    const char *second = c->device ? strchr(c->device, ',') : NULL;
    if (!smg_fabric_find(c->fabric)) {
        return smg_fabric_unknown(c->fabric, diag);
    }
    if (c->device && (strlen(c->device) > 120 || (second && (second == c->device || !second[1] || strchr(second + 1, ','))))) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "device '%.120s': expected NAME, or NAME,NAME for the two sides",
                               c->device);
    }
    return smg_fabric_load(smg_fabric_find(c->fabric), diag);
}

int smg_bench_do_both(const struct smg_bench_config *config, bench_points_fn each, void *out, struct smg_diag *diag)
{
    struct bench_board *board;
    struct bench_side s = {.config = config, .self = 0, .diag = diag};
    int ended, status = check(config, diag);
    if (status) {
        return status;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        return smg_fabric_fail(diag, SMG_ERR_NOMEM, "no memory to share with the other side of the bench");
    }
    s.board = board;
    fflush(NULL);
    s.child = fork();
    if (s.child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_IGN); /* the parent decides */
        _exit(other_side(config, board, each, out) ? 1 : 0);
    }
    status = s.child < 0 ? smg_fabric_fail(diag, SMG_ERR_IO, "fork failed") : walk(&s, each, out);
    if (status == SMG_ERR_LOST && atomic_load(&board->status[1])) { /* why it went away explains more */
        status = atomic_load(&board->status[1]);
        *diag = board->diag[1];
    }
    if (s.child > 0) {
        if (status) {
            kill(s.child, SIGKILL);
        }
        while (waitpid(s.child, &ended, 0) < 0) {
            continue;
        }
    }
    munmap(board, sizeof(*board));
    return status;
}

int smg_bench_run(const struct smg_bench_config *config, struct smg_bench_results *out, struct smg_diag *diag)
{
    memset(out, 0, sizeof(*out));
    return smg_bench_do_both(config, points, out, diag);
}
