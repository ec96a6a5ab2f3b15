/* Block importance, Eq. 1, in the plainest loops. */
#include "kernels/backend.h"

int smg_reference_importance(struct smg_kernels *k, const struct smg_importance_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t i = 0; i < (uint64_t)a->rows * a->k; i++) { /* index[row][j] */
        int64_t id = a->index[i];
        if (id < 0 || id >= a->tokens)
            continue;
        for (uint32_t m = 0; m < a->blocks; m++)
            if (id >= a->start[m] && id < a->start[m + 1])
                a->count[m]++;
    }
    return SMG_OK;
}

int smg_reference_importance_mean(struct smg_kernels *k, const struct smg_importance_mean_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint32_t m = 0; m < a->blocks; m++) {
        float sum = 0;
        uint32_t n = 0;
        for (uint32_t r = 0; r < a->requests; r++) {
            uint64_t i = (uint64_t)r * a->blocks + m; /* [r][m] */
            if (!a->block_tokens[i] || !a->steps[r])
                continue;
            sum += (float)a->count[i] / ((float)a->steps[r] * (float)a->heads * (float)a->block_tokens[i]);
            n++;
        }
        a->importance[m] = n ? sum / (float)n : 0;
    }
    return SMG_OK;
}
