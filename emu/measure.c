/* The values of a measurement, and what is made of their times. */
#include "emu/measure.h"

#include <stdlib.h>
#include <string.h>

#include "emu/measure_priv.h"
#include "kernels/smg_measure.h"

enum {
    CHAIN = 8,        /* blocks of a chain, each with its mask */
    SMALL_CHAIN = 64, /* small WRITEs of a chain */
    ENTRIES_FEW = 16,
    ENTRIES_MANY = 256,
    WAITS = 20,
    TURNS = 15
};

/* ---- Statistics ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct smg_measured_value smg_measured_median(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), ascending);
    double median = n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
    return (struct smg_measured_value){median, median > 0 ? (x[n - 1] - x[0]) / median : 0};
}

int smg_measured_rate(const double *done_bytes, const double *time_s, size_t n, double *Bps_out, struct smg_diag *diag)
{
    double error[MEASURE_POINTS];
    struct smg_line_fit fit = {.slope = 0};
    struct smg_diag found = {""};
    size_t skip = n / 4, kept = n - skip;
    if (n < 8 || kept > MEASURE_POINTS) {
        return smg_fabric_fail(diag, SMG_ERR_INVALID, "a stream of %zu points: expected 8 to %d", n, MEASURE_POINTS);
    }
    for (size_t i = 0; i < kept; i++) {
        error[i] = 1;
    }
    /* Only the slope counts: that the line would begin below 0 (a burst) is no reason to refuse it. */
    int status = smg_fit_line(done_bytes + skip, time_s + skip, error, kept, &fit, &found);
    if ((status && status != SMG_ERR_RANGE) || !(fit.slope > 0)) {
        return smg_fabric_fail(diag, SMG_ERR_RANGE, "no rate in the times of a stream: %.200s", found.text);
    }
    /* A line through the origin is another one. */
    double first = done_bytes[skip], last = done_bytes[n - 1];
    *Bps_out = fit.origin ? (last - first) / (time_s[n - 1] - time_s[skip]) : 1 / fit.slope;
    return SMG_OK;
}

/* ---- The host ---- */

/* Another list each time: entries lie in memory that was not read just before. */
static double gather_s(struct bench_side *s, unsigned turn)
{
    smg_measure_do_list(s, ENTRIES_MANY, turn * ENTRIES_MANY);
    double start_s = smg_fabric_now_s();
    smg_measure_do_gather(s, ENTRIES_MANY);
    return smg_fabric_now_s() - start_s;
}

/* Rows that follow one another, entry by entry as the engine moves them. */
static double copy_s(struct bench_side *s, unsigned turn)
{
    size_t half = s->config->entry_bytes / 2;
    const uint8_t *from = s->kv + (size_t)(turn * ENTRIES_MANY % BENCH_KV_ENTRIES) * s->config->entry_bytes;
    double start_s = smg_fabric_now_s();
    for (size_t at = 0; at < (size_t)2 * ENTRIES_MANY; at++) {
        memcpy(s->memory + s->reply + at * half, from + at * half, half);
    }
    return smg_fabric_now_s() - start_s;
}

/* The median of the turns: a turn in which others had the processor does not count. */
static double move_Bps(struct bench_side *s, double (*move_s)(struct bench_side *s, unsigned turn))
{
    double seconds[TURNS];
    for (unsigned i = 0; i < TURNS; i++) {
        seconds[i] = move_s(s, i);
    }
    return (double)ENTRIES_MANY * s->config->entry_bytes / smg_measured_median(seconds, TURNS).value;
}

/* As the loop of a process waits for a paced operation, while nothing arrives. */
static int timer_late_s(struct bench_side *s, double *late_s)
{
    double late[WAITS];
    int status = SMG_OK;
    for (unsigned i = 0; i < WAITS && !status; i++) {
        double due_s = smg_fabric_now_s() + 3e-3 + 1e-4 * i, now_s;
        while (!status && (now_s = smg_fabric_now_s()) < due_s) {
            struct smg_completion c;
            size_t n = 0;
            status = smg_fabric_poll(s->fabric, &c, 1, due_s - now_s, &n, s->diag);
        }
        late[i] = smg_fabric_now_s() - due_s;
    }
    *late_s = smg_measured_median(late, WAITS).value;
    return status;
}

/* ---- Points ---- */

enum point { RATE, CHAINS, PING, ONE, MANY, FEW_ENTRIES, MANY_ENTRIES, LARGE, LARGE_BYTES, GATHER, COPY, TIMER, POINTS };

struct measure {
    const struct smg_emu_measure_config *config;
    struct smg_emu_measurement *out;
    double round[POINTS][SMG_MEASURE_ROUNDS];
};

static int write_points(struct bench_side *s, const struct smg_emu_measure_config *c, double *at[POINTS])
{
    int status = smg_bench_do_meet(s, s->self);
    if (!status && !s->self) {
        status = smg_measure_do_stream(s, 1, c->chunk_bytes, 0, at[RATE]);
        status = status ? status : smg_measure_do_stream(s, CHAIN, c->block_bytes, c->mask_bytes, at[CHAINS]);
        status = status ? status : smg_measure_do_chain(s, 1, at[ONE]);
        status = status ? status : smg_measure_do_chain(s, SMALL_CHAIN, at[MANY]);
    }
    return status ? status : smg_bench_do_meet(s, s->self);
}

static int trip_points(struct bench_side *s, double *at[POINTS])
{
    static const struct {
        enum point point;
        uint32_t entries;
    } trips[] = {{PING, 0}, {FEW_ENTRIES, ENTRIES_FEW}, {MANY_ENTRIES, ENTRIES_MANY}};
    int status = SMG_OK;
    for (size_t i = 0; i < sizeof(trips) / sizeof(trips[0]) && !status; i++) {
        status = smg_measure_do_trips(s, trips[i].entries, at[trips[i].point]);
        status = status ? status : smg_bench_do_meet(s, s->self);
    }
    return status;
}

static int host_points(struct bench_side *s, double *at[POINTS])
{
    *at[GATHER] = move_Bps(s, gather_s);
    *at[COPY] = move_Bps(s, copy_s);
    return timer_late_s(s, at[TIMER]);
}

/* Both sides; only side 0 keeps what it finds. */
static int all_points(struct bench_side *s, void *arg)
{
    struct measure *m = arg;
    double *at[POINTS];
    int status = SMG_OK;
    memset(s->kv, 1, (size_t)BENCH_KV_ENTRIES * s->config->entry_bytes);
    memset(s->memory, 1, s->bytes);
    for (unsigned r = 0; r < SMG_MEASURE_ROUNDS && !status; r++) {
        for (unsigned p = 0; p < POINTS; p++) {
            at[p] = &m->round[p][r];
        }
        status = write_points(s, m->config, at);
        status = status ? status : trip_points(s, at);
        status = status ? status : smg_measure_do_large(s, at[LARGE], at[LARGE_BYTES]);
        if (!status && !s->self) {
            status = host_points(s, at);
        }
        status = status ? status : smg_bench_do_meet(s, 1);
    }
    m->out->max_message_bytes = (double)smg_fabric_limits(s->fabric)->max_message_bytes;
    return status;
}

/* ---- Values ---- */

static double not_below_0(double x)
{
    return x > 0 ? x : 0;
}

/* Each round gives each value once; their median is what is told. */
static void values(struct measure *m)
{
    enum { N = SMG_MEASURE_ROUNDS };
    const struct smg_emu_measure_config *c = m->config;
    struct smg_emu_measurement *out = m->out;
    double latency[N], completion[N], post_cost[N], message[N], rpc[N], early[N], pair = c->block_bytes + (double)c->mask_bytes;
    for (unsigned r = 0; r < N; r++) {
        double per_entry_s = (m->round[MANY_ENTRIES][r] - m->round[FEW_ENTRIES][r]) / (ENTRIES_MANY - ENTRIES_FEW);
        latency[r] = 0.5 * m->round[PING][r];
        completion[r] = not_below_0(m->round[ONE][r] - latency[r]);
        post_cost[r] = not_below_0((m->round[MANY][r] - m->round[ONE][r]) / (SMALL_CHAIN - 1));
        message[r] = not_below_0(0.5 * pair * (m->round[RATE][r] / m->round[CHAINS][r] - 1));
        early[r] = not_below_0(1 - m->round[LARGE][r] / (m->round[LARGE_BYTES][r] / m->round[RATE][r] + latency[r]));
        early[r] = early[r] > 0.1 ? early[r] : 0; /* not told from a rate that varies */
        rpc[r] = not_below_0(m->round[FEW_ENTRIES][r] - ENTRIES_FEW * per_entry_s - m->round[PING][r]);
    }
    out->rate_Bps = smg_measured_median(m->round[RATE], N);
    out->latency_s = smg_measured_median(latency, N);
    out->completion_s = smg_measured_median(completion, N);
    out->post_cost_s = smg_measured_median(post_cost, N);
    out->message_bytes = smg_measured_median(message, N);
    out->rpc_overhead_s = smg_measured_median(rpc, N);
    out->send_early = smg_measured_median(early, N);
    out->gather_Bps = smg_measured_median(m->round[GATHER], N);
    out->copy_Bps = smg_measured_median(m->round[COPY], N);
    out->timer_late_s = smg_measured_median(m->round[TIMER], N);
}

int smg_emu_measure(const struct smg_emu_measure_config *config, struct smg_emu_measurement *out, struct smg_diag *diag)
{
    struct smg_bench_config bench = {.fabric = config->fabric,
                                     .device = config->device,
                                     .block = {{config->chunk_bytes, CHAIN * config->block_bytes}, 2},
                                     .batch = {{SMALL_CHAIN > 2 * CHAIN ? SMALL_CHAIN : 2 * CHAIN}, 1},
                                     .queues = {{1}, 1},
                                     .entries = {{ENTRIES_MANY}, 1},
                                     .entry_bytes = config->entry_bytes,
                                     .depth = SMALL_CHAIN,
                                     .samples = config->samples,
                                     .seconds = config->seconds,
                                     .timeout_s = config->timeout_s,
                                     .stop = config->stop};
    struct measure m = {.config = config, .out = out};
    int status;
    memset(out, 0, sizeof(*out));
    status = smg_bench_do_both(&bench, all_points, &m, diag);
    if (!status) {
        values(&m);
    }
    return status;
}
