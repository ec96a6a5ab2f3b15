/* Private to the bench: what its two processes share, and each of them has. Side 0 is the caller and writes; side 1 is the child.
 */
#ifndef SMG_EMU_BENCH_PRIV_H
#define SMG_EMU_BENCH_PRIV_H

#include <stdatomic.h>
#include <sys/types.h>

#include "emu/bench.h"
#include "emu/fabric_port.h"
#include "emu/gpu_memory.h"

enum { BENCH_MASK_BYTES = 64, BENCH_KV_ENTRIES = 4096, BENCH_HEADER_BYTES = 16 };

struct bench_board {
    struct smg_fabric_address address[2];
    struct smg_remote remote[2], blocks[2]; /* blocks: the same, unless they are on a GPU */
    atomic_int step[2];
    atomic_int status[2]; /* what a side that failed failed of */
    struct smg_diag diag[2];
};

struct bench_side {
    const struct smg_bench_config *config;
    struct bench_board *board;
    struct smg_fabric *fabric;
    struct smg_mr *mr;
    uint8_t *memory; /* [blocks][masks][request][reply] */
    uint8_t *blocks; /* what is posted: memory, or an address of the GPU, where memory[blocks] is a copy */
    struct smg_mr *blocks_mr;
    struct smg_gpu_memory gpu;
    size_t masks, request, reply, bytes;
    uint8_t *kv;       /* side 1: what replies are gathered from */
    double *sample[3]; /* [samples] */
    int self;
    int step;
    uint64_t round;                 /* numbers the contents of the blocks */
    uint64_t received, sent;        /* completions of receives and of sends */
    uint32_t in_flight[SMG_QUEUES]; /* chains of WRITEs */
    pid_t child;                    /* of side 0 */
    struct smg_diag *diag;
};

/* SMG_ERR_INTERRUPTED: somebody wants the bench to end. Only side 0 asks: what ends it ends the other. */
int smg_bench_do_look(struct bench_side *s);
/* Both sides meet. polls: data for this side keeps moving meanwhile. */
int smg_bench_do_meet(struct bench_side *s, int polls);
/* Takes completions that are there, counts them in received and sent, and returns how many in *n_out; a failed one is an error.
 * Looks whether the bench shall end. */
int smg_bench_do_poll(struct bench_side *s, size_t *n_out);
/* An error when nothing has completed since `since_s` for longer than the time-out, or the other side is gone. */
int smg_bench_do_patience(struct bench_side *s, double since_s);
/* Sorts. */
struct smg_bench_percentiles smg_bench_do_percentiles(double *seconds, size_t n);
double smg_bench_do_median(double *x, size_t n);
/* Places for blocks of a size. */
uint32_t smg_bench_do_slots(const struct smg_bench_config *c, uint32_t block_bytes, uint32_t queues);

/* Forks the other side; both join the fabric, call each(side, out), and meet. The other side's out is a copy. */
typedef int (*bench_points_fn)(struct bench_side *s, void *out);
int smg_bench_do_both(const struct smg_bench_config *config, bench_points_fn each, void *out, struct smg_diag *diag);

int smg_bench_do_write(struct bench_side *s, struct smg_bench_write *point);
int smg_bench_do_masked(struct bench_side *s, struct smg_bench_masked *point);
int smg_bench_do_trip(struct bench_side *s, struct smg_bench_trip *point);

#endif
