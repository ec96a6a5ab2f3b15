/* Exact top-k; rows are shared among threads. Scores become whole numbers of the same order. The k-th largest of a row is found
 * by halving the range that it lies in and counting how many are above the middle: the time does not depend on how scores are
 * arranged, and hardly on how they are spread; once few are left in the range, they are put aside and only they are counted. One
 * more pass takes the chosen in order of id. To order them by score they are sorted by radix, which keeps ties as they are. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/squeeze.h"
#include "kernels/threads.h"
#include "kernels/topk_order.h"

/* Keys in [lo, hi] among key[n]: the one looked for is the want-th largest of key[n]. */
struct range {
    const int32_t *key;
    uint32_t n, want;
    int32_t lo, hi;
    uint32_t at_least_lo, above_hi; /* keys of key[n] */
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_topk_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_topk_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

struct topk {
    const struct smg_topk_args *a;
    char *scratch; /* [threads][room.all] */
    struct {
        size_t key, few, id, sort, all; /* offsets; bytes */
    } room;
    enum smg_isa isa;
};

/* For each thread key[n], few[n], id[k + 8], and for sorting twice k pairs; n, k: the largest. */
static void plan_room(struct topk *t)
{
    const struct smg_topk_args *a = t->a;
    const size_t most = a->k < a->n ? a->k : a->n;

    t->room.few = a->n * sizeof(int32_t);
    t->room.id = t->room.few + a->n * sizeof(int32_t);
    t->room.sort = (t->room.id + (most + 8) * sizeof(int32_t) + 63) / 64 * 64;
    t->room.all = t->room.sort + (a->order == SMG_TOPK_BY_SCORE ? 2 * most * sizeof(uint64_t) : 0);
    t->room.all = (t->room.all + 63) / 64 * 64;
}

/* ---- By score ---- */

/* Sorts pair[n] by the upper word, stable, 8 bits at a time: by the lowest `digits` of them, leaving out those that are the same
 * in all. Returns where the result is: pair or other[n]. */
static const uint64_t *sort_pairs(uint64_t *pair, uint64_t *other, uint32_t n, int digits)
{
    uint32_t count[4][256], in_order = 1;

    while (in_order < n && pair[in_order - 1] < pair[in_order])
        in_order++;
    if (in_order == n)
        return pair;
    memset(count, 0, (size_t)digits * sizeof count[0]);
    for (uint32_t i = 0; i < n; i++)
        for (int d = 0; d < digits; d++)
            count[d][pair[i] >> (32 + 8 * d) & 255]++;
    for (int d = 0; d < digits; d++) {
        uint32_t place = 0, *c = count[d];
        uint64_t *swap = pair;
        if (c[pair[0] >> (32 + 8 * d) & 255] == n)
            continue;
        for (int b = 0; b < 256; b++) {
            uint32_t here = c[b];
            c[b] = place;
            place += here;
        }
        for (uint32_t i = 0; i < n; i++)
            other[c[pair[i] >> (32 + 8 * d) & 255]++] = pair[i];
        pair = other;
        other = swap;
    }
    return pair;
}

/* id[n] ascending to order of score; their keys are in [min, max]. */
static void order_by_score(int32_t *id, const int32_t *key, uint32_t n, int32_t min, int32_t max, uint64_t *pairs)
{
    const uint32_t span = (uint32_t)max - (uint32_t)min;
    const uint64_t *sorted;
    int digits = 0;

    while (digits < 4 && span >> 8 * digits)
        digits++;
    for (uint32_t i = 0; i < n; i++)
        pairs[i] = (uint64_t)((uint32_t)max - (uint32_t)key[id[i]]) << 32 | (uint32_t)id[i];
    sorted = sort_pairs(pairs, pairs + n, n, digits);
    for (uint32_t i = 0; i < n; i++)
        id[i] = (int32_t)(uint32_t)sorted[i];
}

/* ---- A row ---- */

/* The take largest of score[n], 0 < take <= n: ids at *id. */
static void select_row(const struct topk *t, char *scratch, const float *score, uint32_t n, uint32_t take, int32_t **id)
{
    int32_t *key = (int32_t *)(void *)scratch, *few = (int32_t *)(void *)(scratch + t->room.few), min, max;

    *id = (int32_t *)(void *)(scratch + t->room.id);
    if (t->isa == SMG_ISA_AVX2)
        max = find_avx2(score, n, take, key, few, *id, &min);
    else
        max = find_base(score, n, take, key, few, *id, &min);
    if (t->a->order == SMG_TOPK_BY_SCORE)
        order_by_score(*id, key, take, min, max, (uint64_t *)(void *)(scratch + t->room.sort));
}

static void topk_rows(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct topk *t = arg;
    const struct smg_topk_args *a = t->a;

    for (uint64_t row = lo; row < hi; row++) {
        const uint64_t group = row / a->row_group;
        const uint32_t n = a->n_of_row ? smg_least(a->n_of_row[group], a->n) : a->n;
        const uint32_t take = smg_least(a->k_of_row ? smg_least(a->k_of_row[group], a->k) : a->k, n);
        if (take) {
            int32_t *id;
            select_row(t, t->scratch + worker * t->room.all, a->score + row * a->n, n, take, &id);
            memcpy(a->index + row * a->k, id, take * sizeof *id);
        }
        for (uint64_t i = take; i < a->k; i++)
            a->index[row * a->k + i] = -1;
        a->length[row] = take;
    }
}

int smg_cpu_topk(struct smg_kernels *k, const struct smg_topk_args *a, struct smg_stream *stream)
{
    struct topk t = {.a = a, .isa = k->isa};
    void *scratch;
    int status;

    plan_room(&t);
    status = smg_stream_scratch(stream, smg_threads_count(k->threads) * t.room.all, &scratch);
    if (status)
        return status;
    t.scratch = scratch;
    smg_threads_run(k->threads, a->rows, 1 + 4096 / ((uint64_t)a->n + 16), topk_rows, &t);
    return SMG_OK;
}
