/* What the simulator needs to know of a fabric and its hosts, measured between two processes that wait as an instance of the
 * engine waits: large WRITEs, small messages, chains, on-demand round trips; and of a host its copies and timers. */
#ifndef SMG_EMU_MEASURE_H
#define SMG_EMU_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { SMG_MEASURE_ROUNDS = 5 };

struct smg_emu_measure_config {
    const char *fabric, *device; /* as of struct smg_bench_config */
    uint32_t chunk_bytes;        /* of a large WRITE */
    uint32_t block_bytes;        /* of a KV block, each followed by its mask */
    uint32_t mask_bytes;
    uint32_t entry_bytes; /* of a KV entry: K and V of one token and head; even */
    uint32_t samples;     /* small messages of a round */
    double seconds;       /* of each stream */
    double timeout_s;
    int (*stop)(void); /* as of struct smg_bench_config */
};

/* Median of the rounds, and how far apart they were: (largest - smallest) / median, 0 where the median is 0. */
struct smg_measured_value {
    double value, spread;
};

struct smg_emu_measurement {
    struct smg_measured_value rate_Bps;      /* payload of large WRITEs, two in flight */
    struct smg_measured_value latency_s;     /* one way, of a small message */
    struct smg_measured_value completion_s;  /* a WRITE's completion, after the bytes are there */
    struct smg_measured_value post_cost_s;   /* per WRITE of a chain of small ones */
    struct smg_measured_value message_bytes; /* a message of a chain of blocks and masks takes so many payload bytes' time more */
    struct smg_measured_value rpc_overhead_s; /* of an on-demand round trip beyond its two latencies and its bytes */
    struct smg_measured_value send_early;     /* share of a large message's time on the wire that its sender does not wait for */
    struct smg_measured_value gather_Bps;     /* scattered entries, one thread */
    struct smg_measured_value copy_Bps;       /* rows of entries, one thread */
    struct smg_measured_value timer_late_s;   /* a paced operation ends so much late */
    double max_message_bytes;                 /* of the device */
};

/* Forks the other side, which ends with the call. *out is filled on success. Errors as of smg_bench_run; SMG_ERR_RANGE: the times
 * do not give a rate. */
int smg_emu_measure(const struct smg_emu_measure_config *config, struct smg_emu_measurement *out, struct smg_diag *diag);

/* Sorts x[n], n > 0. */
struct smg_measured_value smg_measured_median(double *x, size_t n);
/* Bytes per second of a stream whose first done_bytes[i] were through at time_s[i], ascending: the slope behind the first
 * quarter, where a shaper's burst is used up. SMG_ERR_INVALID: fewer than 8 points. SMG_ERR_RANGE: no slope above 0. */
int smg_measured_rate(const double *done_bytes, const double *time_s, size_t n, double *Bps_out, struct smg_diag *diag);

#endif
