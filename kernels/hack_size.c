/* Where the parts of a HACK cache lie. */
#include <stddef.h>

#include "kernels/hack.h"

enum { ALIGN = 16 };

/* Keeps byte counts far below 2^64, whatever the other sizes are. */
#define MOST_ROWS (UINT64_C(1) << 48)

const char *smg_hack_fault(const struct smg_hack_shape *s)
{
    if (s->layout != SMG_HACK_V1 && s->layout != SMG_HACK_ATC26)
        return "unknown layout";
    if (s->bits != 2 && s->bits != 4 && s->bits != 8)
        return "bits is not 2, 4 or 8";
    if (!s->head_dim || s->head_dim > SMG_HACK_MOST_DIM)
        return "head_dim is not 1 to 256";
    if (!s->group || s->group % 4 || s->head_dim % s->group)
        return "group is no multiple of 4 that divides head_dim";
    if (s->layout == SMG_HACK_V1 && s->sinks)
        return "layout V1 has no sinks";
    if (!smg_dtype_bytes(s->type))
        return "unknown type";
    if ((uint64_t)s->tokens * s->kv_heads > MOST_ROWS)
        return "more than 2^48 tokens times heads";
    return NULL;
}

/* Bytes of the six parts in their order. */
static void part_bytes(const struct smg_hack_shape *s, const struct smg_hack_part *p, uint32_t sum_bytes, uint64_t bytes[6])
{
    const uint64_t token = (uint64_t)s->kv_heads * s->head_dim * smg_dtype_bytes(s->type);

    bytes[0] = (uint64_t)p->coded * s->kv_heads * (s->head_dim * s->bits / 8);
    bytes[1] = p->groups * 2;
    bytes[2] = p->groups * 2;
    bytes[3] = p->sums * sum_bytes;
    bytes[4] = p->first * token;
    bytes[5] = p->dense_tail * token;
}

static void offsets_of(const struct smg_hack_part *p, uint64_t at[6])
{
    at[0] = p->codes;
    at[1] = p->scale;
    at[2] = p->min;
    at[3] = p->sum;
    at[4] = p->sinks;
    at[5] = p->tail;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Splits the tokens; blocks: only whole ones are coded. */
static void split_tokens(const struct smg_hack_shape *s, int blocks, struct smg_hack_part *p)
{
    p->first = s->sinks < s->tokens ? s->sinks : s->tokens;
    p->coded = s->tokens - p->first;
    if (blocks)
        p->coded -= p->coded % s->group;
    p->dense_tail = s->tokens - p->first - p->coded;
}

static uint64_t place(const struct smg_hack_shape *s, uint32_t sum_bytes, uint64_t at, struct smg_hack_part *p)
{
    uint64_t bytes[6];

    /* Either way along: a group for each `group` codes. */
    p->groups = (uint64_t)p->coded * s->kv_heads * (s->head_dim / s->group);
    p->sums = p->groups;
    part_bytes(s, p, sum_bytes, bytes);
    p->codes = aligned(at);
    p->scale = aligned(p->codes + bytes[0]);
    p->min = aligned(p->scale + bytes[1]);
    p->sum = aligned(p->min + bytes[2]);
    p->sinks = aligned(p->sum + bytes[3]);
    p->tail = aligned(p->sinks + bytes[4]);
    return p->tail + bytes[5];
}

int smg_hack_size(const struct smg_hack_shape *s, struct smg_hack_size *size)
{
    const int v1 = s->layout == SMG_HACK_V1;
    struct smg_hack_size z = {0};

    if (smg_hack_fault(s))
        return SMG_ERR_INVALID;
    z.sum_bytes = s->group * ((1u << s->bits) - 1) <= 255 ? 1 : 2;
    z.k.group_along_tokens = !v1;
    z.v.group_along_tokens = v1;
    z.v.sum_along_tokens = 1;
    split_tokens(s, !v1, &z.k);
    split_tokens(s, 1, &z.v);
    z.bytes = place(s, z.sum_bytes, place(s, z.sum_bytes, 0, &z.k), &z.v);
    *size = z;
    return SMG_OK;
}

void smg_hack_gaps(const struct smg_hack_shape *s, const struct smg_hack_size *size, struct smg_hack_gap gap[SMG_HACK_GAPS])
{
    uint64_t at[SMG_HACK_GAPS + 1], bytes[SMG_HACK_GAPS];

    offsets_of(&size->k, at);
    offsets_of(&size->v, at + 6);
    at[SMG_HACK_GAPS] = size->bytes;
    part_bytes(s, &size->k, size->sum_bytes, bytes);
    part_bytes(s, &size->v, size->sum_bytes, bytes + 6);
    for (int i = 0; i < SMG_HACK_GAPS; i++) {
        gap[i].at = at[i] + bytes[i];
        gap[i].bytes = (uint32_t)(at[i + 1] - gap[i].at);
    }
}
