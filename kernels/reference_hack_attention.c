/* Attention on HACK codes, in the plainest loops: per query head all logits, the softmax, then P V; sums in fp64. Each product
 * follows its formula in smg_attend.h. */
#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/hack.h"

void smg_hack_code_group(const float *x, uint32_t n, struct smg_hack_coded *out)
{
    float least = INFINITY, greatest = -INFINITY;
    int bad = 0;

    for (uint32_t i = 0; i < n; i++) {
        bad |= isnan(x[i]);
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
    }
    out->min = least;
    out->scale = (greatest - least) / 255;
    if (!(out->scale > 0))
        out->scale = 1;
    bad |= !isfinite(out->scale);
    if (bad)
        out->min = out->scale = NAN;
    out->sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        out->code[i] = bad ? 0 : (uint8_t)smg_hack_code(x[i], out->min, out->scale, 255, -1);
        out->sum += out->code[i];
    }
}

/* One query head at work. */
struct head {
    const struct smg_hack_attention_args *a;
    struct smg_hack_size z;
    const uint8_t *cache;
    uint32_t kv_head;
    float q[SMG_HACK_MOST_DIM];
    float *p;                      /* [tokens] logits, then P */
    double out[SMG_HACK_MOST_DIM]; /* before the division */
};

static float min_at(const struct head *w, const struct smg_hack_part *p, uint64_t group)
{
    return smg_bf16_to_float(((const uint16_t *)(const void *)(w->cache + p->min))[group]);
}

static float scale_at(const struct head *w, const struct smg_hack_part *p, uint64_t group)
{
    return smg_bf16_to_float(((const uint16_t *)(const void *)(w->cache + p->scale))[group]);
}

static uint32_t code_at(const struct head *w, const struct smg_hack_part *p, uint32_t row, uint32_t channel)
{
    return smg_hack_code_at(&w->a->shape, p, w->cache, row, w->kv_head, channel);
}

static uint64_t group_at(const struct head *w, uint32_t along_tokens, uint32_t row, uint32_t channel)
{
    return smg_hack_group(&w->a->shape, along_tokens, row, w->kv_head, channel);
}

static uint32_t sum_at(const struct head *w, const struct smg_hack_part *p, uint32_t row, uint32_t channel)
{
    return smg_hack_sum_at(&w->z, p, w->cache, group_at(w, p->sum_along_tokens, row, channel));
}

/* An element as it comes back. */
static float value_at(const struct head *w, const struct smg_hack_part *p, int coded, uint32_t token, uint32_t channel)
{
    const struct smg_hack_shape *s = &w->a->shape;
    const size_t bytes = smg_dtype_bytes(s->type);
    uint64_t group;

    if (!coded)
        return smg_load(w->cache + smg_hack_dense_at(p, token, (uint64_t)s->kv_heads * s->head_dim * bytes),
                        (uint64_t)w->kv_head * s->head_dim + channel, s->type);
    group = group_at(w, p->group_along_tokens, token - p->first, channel);
    return min_at(w, p, group) + scale_at(w, p, group) * (float)code_at(w, p, token - p->first, channel);
}

/* ---- Logits ---- */

static double plain_dot(const struct head *w, int coded, uint32_t token)
{
    double sum = 0;

    for (uint32_t c = 0; c < w->a->shape.head_dim; c++)
        sum += (double)w->q[c] * value_at(w, &w->z.k, coded, token, c);
    return sum;
}

/* sum a' b' over a group of channels that begins with c0. */
static double key_dot(const struct head *w, const struct smg_hack_coded *a, uint32_t row, uint32_t c0)
{
    uint32_t dot = 0;

    for (uint32_t i = 0; i < w->a->shape.group; i++)
        dot += a->code[i] * code_at(w, &w->z.k, row, c0 + i);
    return dot;
}

/* V1: q against the groups of one token. */
static double v1_dot(const struct head *w, uint32_t row)
{
    const uint32_t group = w->a->shape.group;
    struct smg_hack_coded a;
    double sum = 0;

    for (uint32_t c0 = 0; c0 < w->a->shape.head_dim; c0 += group) {
        uint64_t g = group_at(w, 0, row, c0);
        double m_b = min_at(w, &w->z.k, g), s_b = scale_at(w, &w->z.k, g);
        smg_hack_code_group(w->q + c0, group, &a);
        sum += (double)a.scale * s_b * key_dot(w, &a, row, c0) + m_b * a.scale * a.sum +
               a.min * s_b * sum_at(w, &w->z.k, row, c0) + group * (double)a.min * m_b;
    }
    return sum;
}

/* ATC26: q times the block's scales against the codes of one token, and q against the block's minima. */
static double atc_dot(const struct head *w, uint32_t row)
{
    const uint32_t group = w->a->shape.group;
    struct smg_hack_coded a;
    double sum = 0;

    for (uint32_t c0 = 0; c0 < w->a->shape.head_dim; c0 += group) {
        float scaled[SMG_HACK_MOST_DIM];
        for (uint32_t i = 0; i < group; i++) {
            uint64_t g = group_at(w, 1, row, c0 + i);
            scaled[i] = w->q[c0 + i] * scale_at(w, &w->z.k, g);
            sum += (double)w->q[c0 + i] * min_at(w, &w->z.k, g);
        }
        smg_hack_code_group(scaled, group, &a);
        sum += (double)a.scale * key_dot(w, &a, row, c0) + (double)a.min * sum_at(w, &w->z.k, row, c0);
    }
    return sum;
}

static void logits(const struct head *w, const struct smg_hack_tile *tile)
{
    for (uint32_t t = tile->token; t < tile->token + tile->n; t++) {
        uint32_t row = t - w->z.k.first;
        double dot;
        if (w->a->exact || !tile->k_coded)
            dot = plain_dot(w, (int)tile->k_coded, t);
        else
            dot = w->z.k.group_along_tokens ? atc_dot(w, row) : v1_dot(w, row);
        w->p[t] = (float)(w->a->scale * dot);
    }
}

/* ---- P V ---- */

static void plain_values(struct head *w, const struct smg_hack_tile *tile)
{
    for (uint32_t t = tile->token; t < tile->token + tile->n; t++)
        for (uint32_t c = 0; c < w->a->shape.head_dim; c++)
            w->out[c] += (double)w->p[t] * value_at(w, &w->z.v, (int)tile->v_coded, t, c);
}

/* sum a' b' over the tokens of a block that begins with row. */
static double value_dot(const struct head *w, const struct smg_hack_coded *a, uint32_t row, uint32_t channel)
{
    uint32_t dot = 0;

    for (uint32_t i = 0; i < w->a->shape.group; i++)
        dot += a->code[i] * code_at(w, &w->z.v, row + i, channel);
    return dot;
}

/* V1: P of the block against each channel. */
static void v1_values(struct head *w, const struct smg_hack_tile *tile)
{
    const uint32_t row = tile->token - w->z.v.first;
    struct smg_hack_coded a;

    smg_hack_code_group(w->p + tile->token, tile->n, &a);
    for (uint32_t c = 0; c < w->a->shape.head_dim; c++) {
        uint64_t g = group_at(w, 1, row, c);
        double m_b = min_at(w, &w->z.v, g), s_b = scale_at(w, &w->z.v, g);
        w->out[c] += (double)a.scale * s_b * value_dot(w, &a, row, c) + m_b * a.scale * a.sum +
                     a.min * s_b * sum_at(w, &w->z.v, row, c) + tile->n * (double)a.min * m_b;
    }
}

/* ATC26: P times the tokens' scales of a channel group against the codes, and P against their minima. */
static void atc_values(struct head *w, const struct smg_hack_tile *tile)
{
    const uint32_t row = tile->token - w->z.v.first, group = w->a->shape.group;
    struct smg_hack_coded a;

    for (uint32_t c0 = 0; c0 < w->a->shape.head_dim; c0 += group) {
        float scaled[SMG_HACK_MOST_DIM];
        double minima = 0;
        for (uint32_t i = 0; i < tile->n; i++) {
            uint64_t g = group_at(w, 0, row + i, c0);
            scaled[i] = w->p[tile->token + i] * scale_at(w, &w->z.v, g);
            minima += (double)w->p[tile->token + i] * min_at(w, &w->z.v, g);
        }
        smg_hack_code_group(scaled, tile->n, &a);
        for (uint32_t c = c0; c < c0 + group; c++)
            w->out[c] += (double)a.scale * value_dot(w, &a, row, c) + (double)a.min * sum_at(w, &w->z.v, row, c) + minima;
    }
}

/* ---- A head ---- */

/* Logits to P in place; returns their greatest, and the sum of P. */
static float softmax(float *p, uint32_t n, double *sum)
{
    float greatest = -INFINITY;

    *sum = 0;
    for (uint32_t t = 0; t < n; t++)
        greatest = p[t] > greatest ? p[t] : greatest;
    for (uint32_t t = 0; t < n; t++) {
        p[t] = expf(p[t] - greatest);
        *sum += p[t];
    }
    return greatest;
}

static void attend(struct head *w, uint32_t q_head)
{
    const struct smg_hack_shape *s = &w->a->shape;
    const uint32_t d = s->head_dim, tiles = smg_hack_tiles(s, &w->z);
    struct smg_hack_tile tile;
    float greatest;
    double sum;

    w->kv_head = q_head / (w->a->q_heads / s->kv_heads);
    for (uint32_t c = 0; c < d; c++) {
        w->q[c] = smg_load(w->a->q, (uint64_t)q_head * d + c, s->type);
        w->out[c] = 0;
    }
    for (uint32_t i = 0; i < tiles; i++) {
        tile = smg_hack_tile_at(s, &w->z, i);
        logits(w, &tile);
    }
    greatest = softmax(w->p, s->tokens, &sum);
    for (uint32_t i = 0; i < tiles; i++) {
        tile = smg_hack_tile_at(s, &w->z, i);
        if (w->a->exact || !tile.v_coded)
            plain_values(w, &tile);
        else if (w->z.v.group_along_tokens)
            v1_values(w, &tile);
        else
            atc_values(w, &tile);
    }
    for (uint32_t c = 0; c < d; c++)
        w->a->out[(uint64_t)q_head * d + c] = s->tokens ? (float)(w->out[c] / sum) : 0;
    if (w->a->lse)
        w->a->lse[q_head] = s->tokens ? greatest + (float)log(sum) : -INFINITY;
}

int smg_reference_hack_attention(struct smg_kernels *k, const struct smg_hack_attention_args *a, struct smg_stream *stream)
{
    struct head w = {.a = a, .cache = a->cache};
    void *p = NULL;
    int status = smg_hack_size(&a->shape, &w.z);

    (void)k;
    if (!status)
        status = smg_stream_scratch(stream, (size_t)a->shape.tokens * sizeof *w.p + sizeof *w.p, &p);
    if (status)
        return status;
    w.p = p;
    for (uint32_t i = 0; i < a->q_heads; i++)
        attend(&w, i);
    return SMG_OK;
}
