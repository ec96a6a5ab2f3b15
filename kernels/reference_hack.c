/* HACK, codes and back, in the plainest loops: each group, each code and each sum is found from its definition alone. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/hack.h"

/* K or V of a request, and its part of the cache. */
struct plane {
    const struct smg_hack_shape *shape;
    const struct smg_hack_part *part;
    uint32_t number; /* 0: K, 1: V */
    const void *x;   /* [tokens][H][d] */
    uint8_t *cache;
};

/* Element j of a group, as an index into x. */
static uint64_t element_of(const struct plane *p, uint64_t group, uint32_t j)
{
    const struct smg_hack_shape *s = p->shape;
    const uint32_t per_row = p->part->group_along_tokens ? s->head_dim : s->head_dim / s->group;
    uint64_t row = group / per_row, token = row / s->kv_heads, head = row % s->kv_heads, channel = group % per_row;

    if (p->part->group_along_tokens)
        token = token * s->group + j;
    else
        channel = channel * s->group + j;
    return ((p->part->first + token) * s->kv_heads + head) * s->head_dim + channel; /* [token][H][d] */
}

static void set_group(const struct plane *p, uint64_t group)
{
    const struct smg_hack_shape *s = p->shape;
    uint16_t *min = (uint16_t *)(void *)(p->cache + p->part->min), *scale = (uint16_t *)(void *)(p->cache + p->part->scale);
    float least = INFINITY, greatest = -INFINITY, step;
    int bad = 0;

    for (uint32_t j = 0; j < s->group; j++) {
        float x = smg_load(p->x, element_of(p, group, j), s->type);
        bad |= isnan(x);
        least = x < least ? x : least;
        greatest = x > greatest ? x : greatest;
    }
    min[group] = smg_float_to_bf16(least + 0.0f);
    step = (greatest - smg_bf16_to_float(min[group])) / (float)((1u << s->bits) - 1);
    scale[group] = smg_float_to_bf16(step);
    if (!(smg_bf16_to_float(scale[group]) > 0))
        scale[group] = smg_float_to_bf16(1);
    if (bad || !isfinite(step))
        min[group] = scale[group] = SMG_HACK_NAN;
}

static uint32_t code_of(const struct plane *p, const struct smg_hack_quantize_args *a, uint32_t token, uint32_t head,
                        uint32_t channel)
{
    const struct smg_hack_shape *s = p->shape;
    const uint32_t at = p->part->first + token;
    const uint64_t group = smg_hack_group(s, p->part->group_along_tokens, token, head, channel);
    const float min = smg_bf16_to_float(((uint16_t *)(void *)(p->cache + p->part->min))[group]);
    const float scale = smg_bf16_to_float(((uint16_t *)(void *)(p->cache + p->part->scale))[group]);
    const float x = smg_load(p->x, ((uint64_t)at * s->kv_heads + head) * s->head_dim + channel, s->type);
    const uint64_t row = smg_hack_random_row(a->seed, p->number, at, head, s->kv_heads);

    if (isnan(min))
        return 0;
    return smg_hack_code(x, min, scale, (float)((1u << s->bits) - 1), a->stochastic ? smg_hack_random(row, channel) : -1);
}

static void set_codes(const struct plane *p, const struct smg_hack_quantize_args *a, uint32_t sum_bytes)
{
    const struct smg_hack_shape *s = p->shape;
    uint8_t *codes = p->cache + p->part->codes, *sums = p->cache + p->part->sum;

    memset(codes, 0, (size_t)p->part->coded * s->kv_heads * (s->head_dim * s->bits / 8));
    memset(sums, 0, p->part->sums * sum_bytes);
    for (uint32_t t = 0; t < p->part->coded; t++)
        for (uint32_t h = 0; h < s->kv_heads; h++)
            for (uint32_t c = 0; c < s->head_dim; c++) {
                uint64_t bit = (((uint64_t)t * s->kv_heads + h) * s->head_dim + c) * s->bits;
                uint64_t sum = smg_hack_group(s, p->part->sum_along_tokens, t, h, c);
                uint32_t code = code_of(p, a, t, h, c);
                codes[bit / 8] |= (uint8_t)(code << bit % 8);
                if (sum_bytes == 1)
                    sums[sum] = (uint8_t)(sums[sum] + code);
                else
                    ((uint16_t *)(void *)sums)[sum] = (uint16_t)(((uint16_t *)(void *)sums)[sum] + code);
            }
}

static void copy_dense(const struct plane *p)
{
    const size_t token = (size_t)p->shape->kv_heads * p->shape->head_dim * smg_dtype_bytes(p->shape->type);
    const uint8_t *x = p->x;

    memcpy(p->cache + p->part->sinks, x, p->part->first * token);
    memcpy(p->cache + p->part->tail, x + ((size_t)p->part->first + p->part->coded) * token, p->part->dense_tail * token);
}

int smg_reference_hack_quantize(struct smg_kernels *k, const struct smg_hack_quantize_args *a, struct smg_stream *stream)
{
    struct smg_hack_gap gap[SMG_HACK_GAPS];
    struct smg_hack_size z;
    uint8_t *cache = a->cache;

    (void)k;
    (void)stream;
    if (smg_hack_size(&a->shape, &z))
        return SMG_ERR_INVALID;
    for (uint32_t i = 0; i < 2; i++) {
        const struct plane p = {&a->shape, i ? &z.v : &z.k, i, i ? a->v : a->k, cache};
        for (uint64_t g = 0; g < p.part->groups; g++)
            set_group(&p, g);
        set_codes(&p, a, z.sum_bytes);
        copy_dense(&p);
    }
    smg_hack_gaps(&a->shape, &z, gap);
    for (int i = 0; i < SMG_HACK_GAPS; i++)
        memset(cache + gap[i].at, 0, gap[i].bytes);
    return SMG_OK;
}

static float value_of(const struct smg_hack_shape *s, const struct smg_hack_part *p, const uint8_t *cache, uint32_t token,
                      uint32_t head, uint32_t channel)
{
    const uint64_t group = smg_hack_group(s, p->group_along_tokens, token, head, channel);
    const uint32_t code = smg_hack_code_at(s, p, cache, token, head, channel);
    const float min = smg_bf16_to_float(((const uint16_t *)(const void *)(cache + p->min))[group]);
    const float scale = smg_bf16_to_float(((const uint16_t *)(const void *)(cache + p->scale))[group]);

    return min + scale * (float)code;
}

static void restore(const struct smg_hack_shape *s, const struct smg_hack_part *p, const uint8_t *cache, void *x)
{
    const size_t token_bytes = (size_t)s->kv_heads * s->head_dim * smg_dtype_bytes(s->type);

    for (uint32_t t = 0; t < s->tokens; t++) {
        if (t < p->first || t - p->first >= p->coded) {
            memcpy((uint8_t *)x + t * token_bytes, cache + smg_hack_dense_at(p, t, token_bytes), token_bytes);
            continue;
        }
        for (uint32_t h = 0; h < s->kv_heads; h++)
            for (uint32_t c = 0; c < s->head_dim; c++)
                smg_store(x, ((uint64_t)t * s->kv_heads + h) * s->head_dim + c, s->type,
                          value_of(s, p, cache, t - p->first, h, c));
    }
}

int smg_reference_hack_dequantize(struct smg_kernels *k, const struct smg_hack_dequantize_args *a, struct smg_stream *stream)
{
    struct smg_hack_size z;

    (void)k;
    (void)stream;
    if (smg_hack_size(&a->shape, &z))
        return SMG_ERR_INVALID;
    restore(&a->shape, &z.k, a->cache, a->k);
    restore(&a->shape, &z.v, a->cache, a->v);
    return SMG_OK;
}
