/* Algorithm 1: rows are shared among threads; a row is read once. Remote entries go straight to the front of the output, local
 * ones aside, to be put behind when the row is through: their place is not known before. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/squeeze.h"
#include "kernels/threads.h"

struct split_row {
    const int32_t *index;
    const int8_t *mask;
    const uint64_t *kept; /* or NULL */
    uint32_t k, limit;    /* limit: ids below it have a mask */
    int32_t *out, *aside; /* [k] each */
    uint8_t *remote;      /* [k] or NULL */
    uint32_t i;           /* entries read */
    uint32_t n_remote, n_local;
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_split_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_split_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

struct splitting {
    const struct smg_split_args *a;
    int32_t *aside; /* [threads][k] */
    enum smg_isa isa;
};

static void reorder_row(struct split_row *r, enum smg_isa isa)
{
    if (isa == SMG_ISA_AVX2)
        reorder_avx2(r);
    else
        reorder_base(r);
    if (r->n_local)
        memcpy(r->out + r->n_remote, r->aside, r->n_local * sizeof *r->out);
    if (r->remote) {
        memset(r->remote, 1, r->n_remote);
        memset(r->remote + r->n_remote, 0, r->k - r->n_remote);
    }
}

static void keep_row(struct split_row *r, enum smg_isa isa)
{
    if (isa == SMG_ISA_AVX2)
        keep_avx2(r);
    else
        keep_base(r);
    if (r->remote)
        memset(r->remote + r->n_remote + r->n_local, 0, r->k - r->n_remote - r->n_local);
}

/* A mask in memory is fetched front to back, before entries pick from it in no order. Worth it if they touch most of its lines.
 */
static void fetch_mask(const struct smg_split_args *a, const int8_t *mask)
{
    for (uint32_t at = 0; a->k >= a->width / 64 && at < a->width; at += 64)
        __builtin_prefetch(mask + at);
}

static void split_rows(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct splitting *s = arg;
    const struct smg_split_args *a = s->a;

    for (uint64_t row = lo; row < hi; row++) {
        struct split_row r = {.index = a->index + row * a->k,
                              .mask = a->width ? a->mask + row / a->heads * a->width : NULL,
                              .kept = a->kept ? a->kept + row * a->kept_words : NULL,
                              .k = a->k,
                              .limit = a->width < UINT32_C(1) << 31 ? a->width : UINT32_C(1) << 31,
                              .out = a->out_index + row * a->k,
                              .aside = s->aside ? s->aside + worker * (uint64_t)a->k : NULL,
                              .remote = a->remote ? a->remote + row * a->k : NULL};
        if (row == lo || row % a->heads == 0)
            fetch_mask(a, r.mask);
        if (a->reorder)
            reorder_row(&r, s->isa);
        else
            keep_row(&r, s->isa);
        for (uint32_t i = r.n_remote + r.n_local; i < a->k; i++)
            r.out[i] = -1;
        a->n_remote[row] = r.n_remote;
        a->n_local[row] = r.n_local;
    }
}

/* Rows of a piece: a request's share a mask, so they stay together where there are requests enough for all; some 16384 entries,
 * so that short rows are not handed out one by one. */
static uint64_t rows_at_a_time(const struct smg_split_args *a, uint32_t threads)
{
    const uint64_t few = 1 + 16384 / ((uint64_t)a->k + 16), requests = (few + a->heads - 1) / a->heads;

    return a->rows / a->heads >= 8 * requests * threads ? requests * a->heads : few;
}

int smg_cpu_split(struct smg_kernels *k, const struct smg_split_args *a, struct smg_stream *stream)
{
    struct splitting s = {a, NULL, k->isa};
    void *aside = NULL;

    if (!a->k) {
        memset(a->n_remote, 0, a->rows * sizeof *a->n_remote);
        memset(a->n_local, 0, a->rows * sizeof *a->n_local);
        return SMG_OK;
    }
    if (a->reorder) {
        int status = smg_stream_scratch(stream, smg_threads_count(k->threads) * (size_t)a->k * sizeof *s.aside, &aside);
        if (status)
            return status;
    }
    s.aside = aside;
    smg_threads_run(k->threads, a->rows, rows_at_a_time(a, smg_threads_count(k->threads)), split_rows, &s);
    return SMG_OK;
}
