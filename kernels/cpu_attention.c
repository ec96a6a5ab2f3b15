/* Sparse decode attention on the CPU. A task is one part of one row (KV head of a request), with all query heads that share it: a
 * tile of 64 entries is scored, weighed, and its values summed while it lies in the cache; the largest score so far rescales what
 * was summed before (online softmax). Then parts are merged. The loops, for each instruction set, are in
 * cpu_attention_loops.inc. */
#include "kernels/cpu_attention.h"

#include <math.h>

#include "kernels/threads.h"
#include "kernels/vec.h"

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { TILE = SMG_ATTENTION_TILE, HEADS = SMG_ATTENTION_HEADS, WIDE = SMG_ATTENTION_WIDE };

/* Where the next entry of a row is: run, and entry in it. */
struct cursor {
    uint32_t run, entry;
};

/* A tile: where its entries are. Past n, k holds addresses that may be fetched for nothing. */
struct tile {
    uint32_t n;
    const void *k[TILE], *v[TILE];
};

static struct cursor cursor_at(const struct smg_attention_args *a, uint64_t row, uint32_t j)
{
    struct cursor c = {0, j};

    while (c.run < a->n_runs && c.entry >= smg_attention_length(&a->run[c.run], row))
        c.entry -= smg_attention_length(&a->run[c.run++], row);
    return c;
}

/* The next entries of row (b, h), at most `most`. */
static void next_tile(const struct smg_attention_args *a, uint64_t row, struct cursor *c, uint32_t most, struct tile *t)
{
    const size_t bytes = smg_dtype_bytes(a->type);

    t->n = 0;
    for (; t->n < most && c->run < a->n_runs; c->run++, c->entry = 0) {
        const struct smg_attention_run *run = &a->run[c->run];
        const uint32_t length = smg_attention_length(run, row);
        const uint64_t base = row / a->kv_heads * run->request_stride + row % a->kv_heads * run->head_stride;
        for (; t->n < most && c->entry < length; c->entry++, t->n++) {
            uint64_t at = (base + c->entry * run->entry_stride) * bytes;
            t->k[t->n] = (const char *)run->k + at;
            t->v[t->n] = (const char *)run->v + at;
        }
        if (c->entry < length)
            break;
    }
    for (uint32_t j = t->n; j < TILE; j++)
        t->k[j] = t->n ? t->k[0] : t;
}

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_attention_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_attention_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

/* Sizes of the scratch, and its parts. Rows that are no multiple of 8 long are staged, and fp16 where there is no instruction to
 * convert it. */
static int take_scratch(struct smg_kernels *k, struct smg_stream *stream, struct smg_cpu_attention *x)
{
    const uint64_t partials = smg_attention_partials(x->a), tile = (uint64_t)TILE * x->wide;
    const int staged = x->wide != x->a->head_dim || (k->isa == SMG_ISA_BASE && x->a->type == SMG_F16);
    const uint64_t stage = staged ? 2 * tile * smg_threads_count(k->threads) : 0;
    void *scratch;
    int status = smg_stream_scratch(stream, (partials * (x->wide + 2) + stage) * sizeof(float), &scratch);

    if (status)
        return status;
    x->sum = scratch;
    x->stage = staged ? x->sum + partials * x->wide : NULL;
    x->most = x->sum + partials * x->wide + stage;
    x->weight = x->most + partials;
    return SMG_OK;
}

int smg_cpu_attention(struct smg_kernels *k, const struct smg_attention_args *a, struct smg_stream *stream)
{
    struct smg_cpu_attention x = {.a = a, .group = a->q_heads / a->kv_heads, .wide = (a->head_dim + 7) / 8 * 8};
    const uint64_t rows = (uint64_t)a->requests * a->kv_heads, queries = (uint64_t)a->requests * a->q_heads;
    const int avx2 = k->isa >= SMG_ISA_AVX2;
    int status;

    x.most_parts = smg_attention_most_parts(smg_attention_longest(a), a->splits);
    status = take_scratch(k, stream, &x);
    if (status)
        return status;
    smg_threads_run(k->threads, rows * x.most_parts, 1, avx2 ? attend_parts_avx2 : attend_parts_base, &x);
    smg_threads_run(k->threads, queries, 16, avx2 ? merge_parts_avx2 : merge_parts_base, &x);
    return SMG_OK;
}
