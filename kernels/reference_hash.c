/* HATA in the plainest loops: codes of vectors, and scores from codes. Projections are summed in double. */
#include <math.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"

int smg_reference_hash_encode(struct smg_kernels *k, const struct smg_hash_encode_args *a, struct smg_stream *stream)
{
    uint32_t group = a->heads / a->kv_heads, d = a->head_dim;

    (void)k;
    (void)stream;
    for (uint64_t v = 0; v < (uint64_t)a->rows * a->heads; v++) {
        uint64_t m = a->weight_heads == 1 ? 0 : v % a->heads / group;
        double square = 0;
        for (uint32_t w = 0; w < a->bits / 32; w++)
            a->code[v * (a->bits / 32) + w] = 0;
        for (uint32_t i = 0; i < a->bits; i++) {
            double sum = 0;
            for (uint32_t j = 0; j < d; j++)
                sum += (double)smg_load(a->x, v * d + j, a->type) * (double)a->weight[(m * d + j) * a->bits + i];
            a->code[v * (a->bits / 32) + i / 32] |= (uint32_t)(sum > 0) << i % 32;
        }
        for (uint32_t j = 0; j < d; j++)
            square += pow(smg_load(a->x, v * d + j, a->type), 2);
        if (a->norm)
            a->norm[v] = (float)sqrt(square);
    }
    return SMG_OK;
}

static uint32_t distance(const uint32_t *x, const uint32_t *y, uint32_t bits)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < bits; i++)
        n += (x[i / 32] ^ y[i / 32]) >> i % 32 & 1;
    return n;
}

/* Of token j of KV head m. */
static float score_of(const struct smg_hash_scores_args *a, uint64_t b, uint64_t m, uint64_t j)
{
    uint32_t group = a->q_heads / a->kv_heads, words = a->bits / 32, hd = 0;
    uint64_t key = (b * a->max_tokens + j) * a->kv_heads + m;

    for (uint64_t h = m * group; h < (m + 1) * group; h++)
        hd += distance(a->q_code + (b * a->q_heads + h) * words, a->key_code + key * words, a->bits);
    if (!a->norm)
        return 0.0f - (float)hd;
    return ((float)group - 2.0f * (float)hd / (float)a->bits) * a->norm[key];
}

int smg_reference_hash_scores(struct smg_kernels *k, const struct smg_hash_scores_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t b = 0; b < a->requests; b++)
        for (uint64_t m = 0; m < a->kv_heads; m++)
            for (uint64_t j = 0; j < a->max_tokens; j++) {
                float *score = a->score + (b * a->kv_heads + m) * a->max_tokens + j;
                if (j >= a->tokens[b])
                    *score = -INFINITY;
                else if (j < a->sink || j + a->recent >= a->tokens[b])
                    *score = INFINITY;
                else
                    *score = score_of(a, b, m, j);
            }
    return SMG_OK;
}
