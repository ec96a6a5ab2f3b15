/* Scores of tokens, in the plainest loops. Sums are in double. */
#include <math.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* NaN counts as -inf. */
static double number(float score)
{
    return isnan(score) ? -INFINITY : (double)score;
}

int smg_reference_scores(struct smg_kernels *k, const struct smg_scores_args *a, struct smg_stream *stream)
{
    uint32_t group = a->q_heads / a->kv_heads;

    (void)k;
    (void)stream;
    for (uint64_t b = 0; b < a->requests; b++)
        for (uint64_t h = 0; h < a->q_heads; h++)
            for (uint64_t j = 0; j < a->max_tokens; j++) {
                uint64_t q = (b * a->q_heads + h) * a->width;
                uint64_t key = b * a->request_stride + j * a->token_stride + h / group * a->head_stride;
                double sum = 0;
                for (uint64_t i = 0; i < a->width && j < a->tokens[b]; i++)
                    sum += (double)smg_load(a->q, q + i, a->type) * smg_load(a->key, key + i, a->type);
                a->score[(b * a->q_heads + h) * a->max_tokens + j] = j < a->tokens[b] ? (float)sum * a->scale : -INFINITY;
            }
    return SMG_OK;
}

/* Scores above the best of n, less alpha. */
static uint32_t count_near(const float *score, uint32_t n, float alpha)
{
    float best = -INFINITY;
    uint32_t count = 0;

    for (uint32_t j = 0; j < n; j++)
        if (score[j] > best)
            best = score[j];
    for (uint32_t j = 0; j < n; j++)
        count += score[j] > best - alpha;
    return count;
}

int smg_reference_threshold(struct smg_kernels *k, const struct smg_threshold_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t b = 0; b < a->requests; b++) {
        uint32_t n = least(a->tokens[b], a->max_tokens), most = least(n, a->k_max[b]);
        uint64_t sum = 0;
        for (uint64_t h = 0; h < a->q_heads; h++) {
            uint64_t row = b * a->q_heads + h;
            a->count[row] = count_near(a->score + row * a->max_tokens, n, a->alpha);
            sum += a->count[row];
        }
        sum /= a->q_heads;
        a->keep[b] = least(sum ? (uint32_t)sum : 1, most);
    }
    return SMG_OK;
}

/* Adds softmax(score[0..n)) to sum[0..n). Entries of +inf share the weight. */
static void add_softmax(const float *score, uint32_t n, float *sum)
{
    double best = -INFINITY, total = 0;

    for (uint32_t j = 0; j < n; j++)
        best = fmax(best, number(score[j]));
    if (isinf(best) && best < 0)
        return;
    for (uint32_t j = 0; j < n; j++)
        total += number(score[j]) == best ? 1 : exp(number(score[j]) - best);
    for (uint32_t j = 0; j < n; j++)
        sum[j] += (float)((number(score[j]) == best ? 1 : exp(number(score[j]) - best)) / total);
}

static void combine(enum smg_group_mode mode, const float *score, uint32_t n, float *group)
{
    if (mode == SMG_GROUP_SOFTMAX_SUM)
        add_softmax(score, n, group);
    else if (mode == SMG_GROUP_MAX)
        for (uint32_t j = 0; j < n; j++)
            group[j] = (float)fmax(group[j], number(score[j]));
    else
        for (uint32_t j = 0; j < n; j++)
            group[j] += (float)number(score[j]);
}

int smg_reference_group_scores(struct smg_kernels *k, const struct smg_group_scores_args *a, struct smg_stream *stream)
{
    uint32_t heads = a->q_heads / a->kv_heads;

    (void)k;
    (void)stream;
    for (uint64_t b = 0; b < a->requests; b++)
        for (uint64_t m = 0; m < a->kv_heads; m++) {
            float *group = a->group + (b * a->kv_heads + m) * a->max_tokens;
            uint32_t n = least(a->tokens[b], a->max_tokens);
            for (uint32_t j = 0; j < a->max_tokens; j++)
                group[j] = j >= n || a->mode == SMG_GROUP_MAX ? -INFINITY : 0;
            for (uint64_t h = m * heads; h < (m + 1) * heads; h++)
                combine(a->mode, a->score + (b * a->q_heads + h) * a->max_tokens, n, group);
        }
    return SMG_OK;
}
