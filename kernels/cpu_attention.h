/* Private to the attention of the cpu backend: what cpu_attention.c and its loops, built for each instruction set, share. */
#ifndef SMG_KERNELS_CPU_ATTENTION_H
#define SMG_KERNELS_CPU_ATTENTION_H

#include "kernels/attention_cut.h"
#include "kernels/backend.h"

enum {
    SMG_ATTENTION_HEADS = 8, /* query heads worked on together */
    SMG_ATTENTION_WIDE = 256 /* most channels */
};

/* The cut and the scratch of one call. */
struct smg_cpu_attention {
    const struct smg_attention_args *a;
    uint32_t group;       /* query heads of a KV head */
    uint32_t wide;        /* head_dim, rounded up to 8 */
    uint32_t most_parts;  /* of a row */
    float *sum;           /* [requests][q_heads][most_parts][wide]: sum of exp(s - most) v */
    float *most, *weight; /* [requests][q_heads][most_parts]: largest s, sum of exp(s - most) */
    float *stage;         /* [threads][2][tile][wide], or NULL where rows are read in place */
};

#endif
