/* Private to the timing program: a case is one kernel with sizes of a model, memory that it needs, and the bytes that it must
 * move. */
#ifndef SMG_KERNELS_SMG_BENCH_H
#define SMG_KERNELS_SMG_BENCH_H

#include "kernels/backend.h"

/* Sizes of the cases; those of Qwen3-14B and 6 requests of 7,000 tokens, or small ones. */
struct smg_bench_sizes {
    uint32_t requests, tokens, k; /* k: selected entries of a row */
    uint32_t kv_heads, group, head_dim;
    uint32_t in;      /* elements of an attention input */
    uint32_t columns; /* InfiniGen's d' */
    uint32_t bits;    /* HATA */
    uint32_t page;    /* Quest */
    uint32_t blocks;  /* of a layer */
};

enum { SMG_BENCH_BUFFERS = 32 };

struct smg_bench {
    struct smg_kernels *k;
    struct smg_bench_sizes s;
    void *buffer[SMG_BENCH_BUFFERS];
    uint32_t n_buffers;
    double bytes; /* that the case reads and writes, each once */
};

union smg_bench_args {
#define SMG_KERNEL_ARGS(name, text) struct smg_##name##_args name;
    SMG_KERNEL_MAP(SMG_KERNEL_ARGS)
#undef SMG_KERNEL_ARGS
};

struct smg_bench_case {
    const char *name;
    void (*set)(struct smg_bench *b, union smg_bench_args *a);
    int (*call)(struct smg_kernels *k, const union smg_bench_args *a);
};

/* All kernels, in the order of SMG_KERNEL_MAP; name NULL at the end. A kernel without a case does not compile. */
extern const struct smg_bench_case smg_bench_cases[];

/* Ends the program. */
void smg_bench_need(int good, const char *what, const char *why);

/* ---- Memory of a case; the program ends where there is none ---- */

void *smg_bench_fresh(struct smg_bench *b, uint64_t bytes);
/* n elements of so many bytes; `what` gives the i-th. */
void *smg_bench_filled(struct smg_bench *b, uint64_t n, size_t bytes, void (*what)(void *p, uint64_t i, uint32_t of),
                       uint32_t of);
void *smg_bench_elements(struct smg_bench *b, uint64_t n); /* bf16 in [-1, 1) */
void *smg_bench_floats(struct smg_bench *b, uint64_t n);   /* likewise */
void *smg_bench_numbers(struct smg_bench *b, uint64_t n, uint32_t each);

/* What smg_bench_filled may be given. */
void smg_bench_one_positive(void *p, uint64_t i, uint32_t of); /* float in [0.5, 2.5) */
void smg_bench_one_word(void *p, uint64_t i, uint32_t of);     /* uint32_t, any */
void smg_bench_one_below(void *p, uint64_t i, uint32_t of);    /* uint32_t below `of` */
void smg_bench_one_number(void *p, uint64_t i, uint32_t of);   /* uint32_t i * of */
void smg_bench_one_offset(void *p, uint64_t i, uint32_t of);   /* uint64_t i * of */
void smg_bench_one_column(void *p, uint64_t i, uint32_t of);   /* uint8_t i mod of */
void smg_bench_one_place(void *p, uint64_t i, uint32_t of);    /* int8_t 1 or 2 */

#endif
