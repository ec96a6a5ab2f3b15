/* Private to cpu_hack_attention.c: what a thread works on. */
#ifndef SMG_KERNELS_CPU_HACK_ATTENTION_H
#define SMG_KERNELS_CPU_HACK_ATTENTION_H

#include "kernels/backend.h"
#include "kernels/hack.h"

/* Sizes of a call. Rows of channels are padded to whole vectors of 32 bytes, rows of tokens to 8. */
struct frame {
    struct smg_hack_attention_args a;
    struct smg_hack_size z;
    uint32_t heads;  /* query heads of a KV head */
    uint32_t groups; /* of channels, d / group */
    uint32_t wide;   /* head_dim rounded up to 32 */
    uint32_t deep;   /* group rounded up to 8: tokens of a tile */
    uint32_t tiles, tiles_per_task, tasks_per_head;
    enum smg_isa isa;
    float *partial; /* [tasks_per_head][q_heads][2 + wide]: greatest logit, sum of P, sum of P v */
    uint8_t *rooms; /* one a worker */
    size_t room_bytes;
};

/* Minima, scales and sums of a tile in fp32. By channel: [wide]; by token: [groups][deep]. */
struct sides {
    float *min, *scale, *sum;
};

/* A thread's memory. */
struct room {
    const struct frame *f;
    uint32_t kv_head;
    struct smg_hack_tile tile;
    float *state; /* [heads][2 + wide], in partial */
    float *q;     /* [heads][wide] */
    float *p;     /* [heads][deep] logits, then P */
    float *w;     /* [deep] or [wide]: what is coded to 8 bits */
    float *row;   /* [wide] */
    int32_t *dot; /* [wide] */
    struct sides b;
    float *a_min, *a_scale, *a_sum; /* [heads][groups] of the codes of q */
    uint8_t *a_code;                /* [heads][wide] */
    uint8_t *w_code;                /* [deep] */
    uint8_t *code;                  /* K: [deep][wide]; V: [group / 2][wide][2], two tokens of a channel side by side */
};

static inline float *state_of(const struct room *r, uint32_t head)
{
    return r->state + (size_t)head * (2 + r->f->wide);
}

#endif
