/* Quest in the plainest loops: bounds of pages, bounds of scores, chosen pages to tokens. */
#include <math.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"

int smg_reference_page_update(struct smg_kernels *k, const struct smg_page_update_args *a, struct smg_stream *stream)
{
    uint64_t row = (uint64_t)a->kv_heads * a->head_dim; /* elements of a token, or of a page's bounds */

    (void)k;
    (void)stream;
    for (uint64_t t = 0; t < a->count; t++) {
        uint64_t token = a->first + t;
        float *kmin = a->kmin + token / a->page * row, *kmax = a->kmax + token / a->page * row;
        for (uint64_t i = 0; i < row; i++) {
            float x = smg_load(a->key, t * row + i, a->type);
            if (token % a->page == 0 || x < kmin[i])
                kmin[i] = x;
            if (token % a->page == 0 || x > kmax[i])
                kmax[i] = x;
        }
    }
    return SMG_OK;
}

/* Of page p for the query heads of KV head m. Sums are in double. */
static float bound_of(const struct smg_page_scores_args *a, uint64_t b, uint64_t m, uint64_t p)
{
    uint32_t group = a->q_heads / a->kv_heads, d = a->head_dim;
    uint64_t page = ((b * a->max_pages + p) * a->kv_heads + m) * d;
    double sum = 0;

    for (uint64_t h = m * group; h < (m + 1) * group; h++)
        for (uint64_t i = 0; i < d; i++) {
            double q = smg_load(a->q, (b * a->q_heads + h) * d + i, a->type);
            sum += fmax(q * (double)a->kmax[page + i], q * (double)a->kmin[page + i]);
        }
    return (float)sum;
}

int smg_reference_page_scores(struct smg_kernels *k, const struct smg_page_scores_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t b = 0; b < a->requests; b++)
        for (uint64_t m = 0; m < a->kv_heads; m++)
            for (uint64_t p = 0; p < a->max_pages; p++) {
                float *bound = a->bound + (b * a->kv_heads + m) * a->max_pages + p;
                if (p >= a->pages[b])
                    *bound = -INFINITY;
                else if (p == a->pages[b] - 1)
                    *bound = INFINITY;
                else
                    *bound = bound_of(a, b, m, p);
            }
    return SMG_OK;
}

int smg_reference_page_expand(struct smg_kernels *k, const struct smg_page_expand_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t r = 0; r < a->rows; r++) {
        int32_t *index = a->index + r * a->k;
        uint32_t n = 0;
        for (uint64_t c = 0; c < a->n_pages; c++) {
            int64_t page = a->chosen[r * a->n_pages + c];
            for (uint64_t i = 0; i < a->page && page >= 0; i++) {
                uint64_t token = (uint64_t)page * a->page + i;
                if (token < a->tokens[r / a->row_group] && n < a->k)
                    index[n++] = (int32_t)token;
            }
        }
        a->length[r] = n;
        while (n < a->k)
            index[n++] = -1;
    }
    return SMG_OK;
}
