/* Exact top-k in the plainest way: sort all, take k, and sort those by id where that is asked for. */
#include <math.h>
#include <stdlib.h>

#include "kernels/anywhere.h"
#include "kernels/backend.h"

struct candidate {
    float score;
    int32_t id;
};

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_id(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

int smg_reference_topk(struct smg_kernels *k, const struct smg_topk_args *a, struct smg_stream *stream)
{
    void *scratch = NULL;
    int status = a->n ? smg_stream_scratch(stream, a->n * sizeof(struct candidate), &scratch) : SMG_OK;

    (void)k;
    if (status)
        return status;
    for (uint32_t row = 0; row < a->rows; row++) {
        const uint32_t group = row / a->row_group, n = a->n_of_row ? smg_least(a->n_of_row[group], a->n) : a->n,
                       take = smg_least(a->k_of_row ? smg_least(a->k_of_row[group], a->k) : a->k, n);
        struct candidate *c = scratch;
        for (uint32_t j = 0; j < n; j++) {
            float score = a->score[(uint64_t)row * a->n + j]; /* score[row][j] */
            c[j] = (struct candidate){isnan(score) ? -INFINITY : score, (int32_t)j};
        }
        if (n)
            qsort(c, n, sizeof *c, by_score);
        if (take && a->order == SMG_TOPK_BY_INDEX)
            qsort(c, take, sizeof *c, by_id);
        for (uint32_t i = 0; i < a->k; i++)
            a->index[(uint64_t)row * a->k + i] = i < take ? c[i].id : -1;
        a->length[row] = take;
    }
    return SMG_OK;
}
