/* The fabric and the engine's paths, measured between two processes on this host: WRITEs of blocks, blocks with their masks, and
 * on-demand round trips. Every point is warmed up, and the bytes that arrived are compared before and after it is timed. */
#ifndef SMG_EMU_BENCH_H
#define SMG_EMU_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { SMG_BENCH_LIST = 16, SMG_BENCH_POINTS = SMG_BENCH_LIST * SMG_BENCH_LIST };

struct smg_bench_list {
    uint32_t value[SMG_BENCH_LIST];
    size_t n;
};

struct smg_bench_config {
    const char *fabric;            /* "ofi", "verbs" */
    const char *device;            /* NULL: the fabric's default; "A,B": the writing side uses A, the other B */
    struct smg_bench_list block;   /* bytes of a WRITE */
    struct smg_bench_list batch;   /* WRITEs of one chain */
    struct smg_bench_list queues;  /* queue pairs, 1 to 3 */
    struct smg_bench_list entries; /* of an on-demand request */
    uint32_t entry_bytes;
    uint32_t depth;    /* WRITEs in flight on each queue pair */
    uint32_t places;   /* that blocks are written to in turn; 0: as many as are in flight, within 64 MiB */
    int on_gpu;        /* blocks lie in memory of GPU 0 on both sides */
    uint32_t samples;  /* of each percentile */
    double seconds;    /* of each timed stream */
    double timeout_s;  /* nothing completes for so long: the bench fails */
    int (*stop)(void); /* asked often: non-zero ends the bench with SMG_ERR_INTERRUPTED; may be NULL */
};

/* Microseconds. */
struct smg_bench_percentiles {
    double p50_us, p99_us;
};

/* One stream with `depth` WRITEs in flight, then `samples` chains one at a time. post: the calls that hand a chain over; wire:
 * from then until the completion of its last WRITE (placed) is there; completion: the poll that takes it. */
struct smg_bench_write {
    uint32_t block_bytes, batch, queues;
    double bytes_per_s, messages_per_s;
    struct smg_bench_percentiles post, wire, completion;
};

/* A block and its mask in one chain against the block alone: medians of alternating streams, s a block. */
struct smg_bench_masked {
    uint32_t block_bytes, mask_bytes;
    double alone_s, masked_s;
};

/* From the post of the request until the gathered reply is there. */
struct smg_bench_trip {
    uint32_t entries, request_bytes, reply_bytes;
    struct smg_bench_percentiles trip;
};

struct smg_bench_results {
    struct smg_bench_write write[SMG_BENCH_LIST * SMG_BENCH_POINTS];
    struct smg_bench_masked masked[SMG_BENCH_LIST];
    struct smg_bench_trip trip[SMG_BENCH_LIST];
    size_t n_write, n_masked, n_trip;
};

/* Forks the other side, which ends with the call. out: caller's, filled on success. Points that the device cannot do (a block
 * beyond its message limit, more queue pairs than there are) are errors. SMG_ERR_VERIFY: wrong bytes arrived. */
int smg_bench_run(const struct smg_bench_config *config, struct smg_bench_results *out, struct smg_diag *diag);

#endif
