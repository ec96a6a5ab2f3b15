/* Algorithm 1, in the plainest loops: remote entries, then local ones, each in its own pass; the reference may read twice. */
#include "kernels/backend.h"

enum { DROPPED = 0, LOCAL = 1, REMOTE = 2 };

static int locate(const struct smg_split_args *a, uint32_t row, uint32_t i)
{
    int64_t id = a->index[(uint64_t)row * a->k + i]; /* index[row][i] */
    int8_t value;

    if (id < 0 || id >= a->width)
        return DROPPED;
    value = a->mask[(uint64_t)(row / a->heads) * a->width + (uint64_t)id]; /* mask[request][id] */
    if (value == REMOTE && a->kept && a->kept[(uint64_t)row * a->kept_words + (uint64_t)id / 64] >> (id % 64) & 1)
        return LOCAL;
    return value == LOCAL || value == REMOTE ? value : DROPPED;
}

/* Appends to the row's output the entries that `first` or `second` names. */
static uint32_t append(const struct smg_split_args *a, uint32_t row, uint32_t n, int first, int second)
{
    for (uint32_t i = 0; i < a->k; i++) {
        int where = locate(a, row, i);
        if (where != first && where != second)
            continue;
        a->out_index[(uint64_t)row * a->k + n] = a->index[(uint64_t)row * a->k + i];
        if (a->remote)
            a->remote[(uint64_t)row * a->k + n] = where == REMOTE;
        n++;
    }
    return n;
}

static void count(const struct smg_split_args *a, uint32_t row)
{
    a->n_remote[row] = a->n_local[row] = 0;
    for (uint32_t i = 0; i < a->k; i++) {
        int where = locate(a, row, i);
        a->n_remote[row] += where == REMOTE;
        a->n_local[row] += where == LOCAL;
    }
}

int smg_reference_split(struct smg_kernels *k, const struct smg_split_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint32_t row = 0; row < a->rows; row++) {
        uint32_t n;
        count(a, row);
        if (a->reorder)
            n = append(a, row, append(a, row, 0, REMOTE, REMOTE), LOCAL, LOCAL);
        else
            n = append(a, row, 0, REMOTE, LOCAL);
        for (; n < a->k; n++) {
            a->out_index[(uint64_t)row * a->k + n] = -1;
            if (a->remote)
                a->remote[(uint64_t)row * a->k + n] = 0;
        }
    }
    return SMG_OK;
}
