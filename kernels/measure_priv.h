/* Private to kernels/: what a measurement is made of. */
#ifndef SMG_KERNELS_MEASURE_PRIV_H
#define SMG_KERNELS_MEASURE_PRIV_H

#include "kernels/smg_kernels.h"
#include "kernels/smg_measure.h"

/* Memory and inputs of one series on one backend. Inputs are random with a fixed seed: equal on every backend. */
struct smg_bench {
    struct smg_kernels *k;
    const struct smg_world *world;
    int quick;
    size_t pool_bytes; /* copies of an input fill so much, and are used in turn: more than caches hold; 0: one copy */
    void *pool;
    void *buffer[64];
    unsigned n_buffers;
};

/* One size of a series: a call, and what it must give. */
struct smg_bench_case {
    /* One call on copy turn % copies. */
    int (*run)(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn);
    struct smg_measure_point point; /* sizes are filled in by the subject, times by the clock */
    uint32_t copies;
    size_t copy_bytes; /* from one copy to the next */
    union {
        struct smg_scores_args scores;
        struct smg_hash_scores_args hash;
        struct smg_page_scores_args page;
        struct smg_split_args split;
        struct smg_attention_args attention;
        struct smg_hack_dequantize_args unpack;
        struct smg_gather_args gather;
    } a;
    const void *result; /* of copy 0 */
    size_t result_bytes;
    enum smg_dtype result_type;
    double tolerance; /* |difference| <= tolerance (1 + |expected|); 0: byte by byte */
    uint64_t turn;    /* calls so far */
};

/* What can be measured. */
struct smg_bench_subject {
    enum smg_measured what;
    int origin; /* the cost model has no fixed part */
    const char *(*kernel)(const struct smg_world *w);
    const char *(*skip)(const struct smg_world *w); /* why not; NULL: it can */
    uint32_t (*sizes)(const struct smg_bench *b);   /* at least SMG_FIT_MIN_POINTS */
    /* Size i, small ones first. The largest one of a series is prepared first. */
    int (*prepare)(struct smg_bench *b, uint32_t i, struct smg_bench_case *c);
};

extern const struct smg_bench_subject smg_bench_select, smg_bench_split, smg_bench_attention, smg_bench_unpack, smg_bench_gather;

/* How long to measure. */
struct smg_bench_effort {
    int quick;
    uint32_t times; /* 1; more: so many times the samples */
    int (*stop)(void);
};
/* Times of n cases, at most SMG_MEASURE_POINTS, into their points. */
int smg_bench_time(struct smg_kernels *k, struct smg_bench_case *c, size_t n, const struct smg_bench_effort *effort);

/* Memory that lives as long as the bench; contents 0. */
int smg_bench_alloc(struct smg_bench *b, size_t bytes, void *out);
int smg_bench_upload(struct smg_bench *b, const void *host, size_t bytes, void *out);
/* n elements, uniform in [-1, 1). */
int smg_bench_elements(struct smg_bench *b, size_t n, enum smg_dtype type, void *out);
/* Copies of copy_bytes (rounded up to 256) of random elements; sets c->copies and c->copy_bytes. */
int smg_bench_pool(struct smg_bench *b, size_t copy_bytes, enum smg_dtype type, struct smg_bench_case *c, void *out);
static inline size_t smg_bench_offset(const struct smg_bench_case *c, uint64_t turn)
{
    return (size_t)(turn % c->copies) * c->copy_bytes;
}
/* Frees all of it. */
void smg_bench_clear(struct smg_bench *b);

/* The k of n ids, drawn at random, ascending; state of kf-style xorshift32, not 0. */
void smg_bench_ids(uint32_t *state, uint32_t n, uint32_t k, int32_t *out);
uint32_t smg_bench_random(uint32_t *state);
/* Type of K and V, and prompt tokens of the world's mean request, held to what fits. */
enum smg_dtype smg_bench_type(const struct smg_world *w);
uint32_t smg_bench_prompt(const struct smg_world *w);
/* Entries that a row of a prompt of so many tokens selects: the cap. */
uint32_t smg_bench_selected(const struct smg_world *w, uint32_t tokens);

#endif
