/* Attention in the plainest loops: the maximum first, then weights. Sums are kept in double, so that the order of entries and the
 * cut into parts matter to no bit that a test looks at. */
#include <float.h>
#include <math.h>

#include "kernels/attention_cut.h"
#include "kernels/backend.h"
#include "kernels/dtype.h"

/* Element of K and V where entry j of the row begins; j is in run *r. */
static uint64_t entry(const struct smg_attention_args *a, uint64_t row, uint32_t j, uint32_t *r)
{
    const uint64_t b = row / a->kv_heads, h = row % a->kv_heads;

    for (*r = 0; j >= smg_attention_length(&a->run[*r], row); ++*r)
        j -= smg_attention_length(&a->run[*r], row);
    return b * a->run[*r].request_stride + h * a->run[*r].head_stride + j * a->run[*r].entry_stride;
}

/* s_j of a query; what does not fit into fp32 is infinite, as for the other backends. */
static double score(const struct smg_attention_args *a, uint64_t query, uint64_t row, uint32_t j)
{
    uint32_t r;
    const uint64_t k = entry(a, row, j, &r);
    double s = 0;

    for (uint32_t c = 0; c < a->head_dim; c++) {
        float q = a->scale * smg_load(a->q, query * a->head_dim + c, a->type);
        s += (double)q * (double)smg_load(a->run[r].k, k + c, a->type);
    }
    return s > FLT_MAX ? (double)INFINITY : s < -FLT_MAX ? -(double)INFINITY : s;
}

static void attend(const struct smg_attention_args *a, uint64_t query, uint64_t row)
{
    const uint32_t n = smg_attention_entries(a, row);
    double out[256] = {0}, most = -(double)INFINITY, sum = 0;

    for (uint32_t j = 0; j < n; j++) {
        double s = score(a, query, row, j);
        if (s > most)
            most = s;
    }
    if (most == -(double)INFINITY) /* no score weighs anything, unless it is NaN */
        most = 0;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t r;
        const uint64_t v = entry(a, row, j, &r);
        double p = exp(score(a, query, row, j) - most); /* +inf - inf is NaN, on purpose */
        sum += p;
        for (uint32_t c = 0; c < a->head_dim; c++)
            out[c] += p * (double)smg_load(a->run[r].v, v + c, a->type);
    }
    for (uint32_t c = 0; c < a->head_dim; c++)
        a->out[query * a->head_dim + c] = sum == 0 ? 0 : (float)(out[c] / sum);
    if (a->lse)
        a->lse[query] = sum == 0 ? -INFINITY : (float)(most + log(sum));
}

int smg_reference_attention(struct smg_kernels *k, const struct smg_attention_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint32_t b = 0; b < a->requests; b++)
        for (uint32_t hq = 0; hq < a->q_heads; hq++)
            attend(a, (uint64_t)b * a->q_heads + hq, (uint64_t)b * a->kv_heads + hq / (a->q_heads / a->kv_heads));
    return SMG_OK;
}
