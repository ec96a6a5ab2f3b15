/* Private to kernels/: what all backends of HACK share, by the contract in smg_attend.h: where tokens lie, and codes. For C and
 * CUDA alike. */
#ifndef SMG_KERNELS_HACK_H
#define SMG_KERNELS_HACK_H

#include <math.h>
#include <stdint.h>

#include "kernels/smg_kernels.h"

#ifdef __CUDACC__
#define SMG_HACK_BOTH static __host__ __device__ inline
#else
#define SMG_HACK_BOTH static inline __attribute__((unused))
#endif

enum { SMG_HACK_NAN = 0x7fc0, SMG_HACK_MOST_DIM = 256 };

#ifdef __cplusplus
extern "C" {
#endif

/* Why a shape cannot be, or NULL. */
const char *smg_hack_fault(const struct smg_hack_shape *shape);

/* A stretch of bytes between parts. */
struct smg_hack_gap {
    uint64_t at;
    uint32_t bytes; /* below 16 */
};
enum { SMG_HACK_GAPS = 12 };
void smg_hack_gaps(const struct smg_hack_shape *shape, const struct smg_hack_size *size, struct smg_hack_gap gap[SMG_HACK_GAPS]);

/* Codes n values, n at most 256: the reference. */
struct smg_hack_coded;
void smg_hack_code_group(const float *x, uint32_t n, struct smg_hack_coded *out);

#ifdef __cplusplus
}
#endif

/* ---- Tiles of the sequence: sinks, blocks of V, tail; each of at most `group` tokens, and all coded or all dense ---- */

struct smg_hack_tile {
    uint32_t token, n;         /* tokens [token, token + n) of the request */
    uint32_t k_coded, v_coded; /* V1: K of the tail is coded, V is not */
};

SMG_HACK_BOTH uint32_t smg_hack_sink_tiles(const struct smg_hack_shape *s, const struct smg_hack_size *z)
{
    return z->v.first / s->group + (z->v.first % s->group != 0);
}

SMG_HACK_BOTH uint32_t smg_hack_tiles(const struct smg_hack_shape *s, const struct smg_hack_size *z)
{
    return smg_hack_sink_tiles(s, z) + z->v.coded / s->group + (z->v.dense_tail != 0);
}

SMG_HACK_BOTH struct smg_hack_tile smg_hack_tile_at(const struct smg_hack_shape *s, const struct smg_hack_size *z, uint32_t i)
{
    const uint32_t sinks = smg_hack_sink_tiles(s, z), blocks = z->v.coded / s->group;
    struct smg_hack_tile tile;

    if (i < sinks) {
        tile.token = i * s->group;
        tile.n = z->v.first - tile.token < s->group ? z->v.first - tile.token : s->group;
    } else if (i - sinks < blocks) {
        tile.token = z->v.first + (i - sinks) * s->group;
        tile.n = s->group;
    } else {
        tile.token = z->v.first + z->v.coded;
        tile.n = z->v.dense_tail;
    }
    tile.k_coded = tile.token >= z->k.first && tile.token - z->k.first < z->k.coded;
    tile.v_coded = tile.token >= z->v.first && tile.token - z->v.first < z->v.coded;
    return tile;
}

/* Where a dense token's [H][d] elements lie, bytes from the cache's start. */
SMG_HACK_BOTH uint64_t smg_hack_dense_at(const struct smg_hack_part *p, uint32_t token, uint64_t token_bytes)
{
    if (token < p->first)
        return p->sinks + token * token_bytes;
    return p->tail + (uint64_t)(token - p->first - p->coded) * token_bytes;
}

/* ---- Reading parts; row: coded token, counted from `first` ---- */

/* Which group, or sum, an element belongs to. */
SMG_HACK_BOTH uint64_t smg_hack_group(const struct smg_hack_shape *s, uint32_t along_tokens, uint32_t row, uint32_t head,
                                      uint32_t channel)
{
    if (along_tokens)
        return ((uint64_t)(row / s->group) * s->kv_heads + head) * s->head_dim + channel;        /* [block][H][d] */
    return ((uint64_t)row * s->kv_heads + head) * (s->head_dim / s->group) + channel / s->group; /* [token][H][d / group] */
}

SMG_HACK_BOTH uint32_t smg_hack_code_at(const struct smg_hack_shape *s, const struct smg_hack_part *p, const uint8_t *cache,
                                        uint32_t row, uint32_t head, uint32_t channel)
{
    const uint64_t at = ((uint64_t)row * s->kv_heads + head) * (s->head_dim * s->bits / 8);

    return cache[p->codes + at + channel * s->bits / 8] >> channel * s->bits % 8 & ((1u << s->bits) - 1);
}

SMG_HACK_BOTH uint32_t smg_hack_sum_at(const struct smg_hack_size *z, const struct smg_hack_part *p, const uint8_t *cache,
                                       uint64_t i)
{
    const uint8_t *sum = cache + p->sum + i * z->sum_bytes;

    return z->sum_bytes == 1 ? *sum : *(const uint16_t *)(const void *)sum;
}

/* ---- Codes ---- */

/* A group of A: codes of 8 bits, min and scale in fp32, NaN where the values are. */
struct smg_hack_coded {
    float min, scale;
    uint32_t sum; /* of codes */
    uint8_t code[SMG_HACK_MOST_DIM];
};

/* u < 0: to nearest. */
SMG_HACK_BOTH uint32_t smg_hack_code(float x, float min, float scale, float top, float u)
{
    float r = (x - min) / scale, whole;

    r = r < 0 ? 0 : r;
    r = r > top ? top : r;
    if (u < 0)
        return (uint32_t)rintf(r);
    whole = floorf(r);
    return (uint32_t)whole + (u < r - whole);
}

/* A token and head's part of the random number. plane: 0 of K, 1 of V. */
SMG_HACK_BOTH uint64_t smg_hack_random_row(uint64_t seed, uint32_t plane, uint32_t token, uint32_t head, uint32_t kv_heads)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (1 + (2 * (uint64_t)token + plane) * kv_heads + head);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

SMG_HACK_BOTH float smg_hack_random(uint64_t row, uint32_t channel)
{
    uint32_t x = (uint32_t)row + 0x9e3779b9u * channel;

    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x = x ^ x >> 16 ^ (uint32_t)(row >> 32);
    return (float)(x >> 8) * 0x1p-24f;
}

#endif
