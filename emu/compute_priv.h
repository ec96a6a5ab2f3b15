/* Private to the compute of the emulation. */
#ifndef SMG_EMU_COMPUTE_PRIV_H
#define SMG_EMU_COMPUTE_PRIV_H

#include "emu/compute.h"
#include "kernels/smg_kernels.h"
#include "kernels/smg_planted.h"

/* Per layer, NULL where the selector has none or the layer does not select. */
struct smg_compute_layer {
    float *basis;     /* InfiniGen [H][d][d] */
    uint8_t *columns; /* InfiniGen [H][d'] */
    float *hash;      /* HATA [H][d][bits] */
};

struct smg_compute_plan {
    const struct smg_world *world;
    struct smg_planted planted;
    enum smg_dtype type;
    uint32_t width; /* d' */
    struct smg_compute_layer layer[SMG_MAX_LAYERS];
};

/* Memory that grows and is kept. */
struct smg_buffer {
    void *data;
    size_t bytes;
};

enum {
    SMG_BUF_K,
    SMG_BUF_V, /* token-major K and V, or reference rows */
    SMG_BUF_QUERY,
    SMG_BUF_QUERY_SHORT, /* queries; what the selector makes of them */
    SMG_BUF_SCORE,
    SMG_BUF_GROUP, /* per query head; per KV head */
    SMG_BUF_INDEX,
    SMG_BUF_LENGTH,
    SMG_BUF_PAGE,
    SMG_BUF_LOW,
    SMG_BUF_HIGH,
    SMG_BUF_NORM,
    SMG_BUF_FLOAT,
    SMG_BUF_START,
    SMG_BUF_NEW_K,
    SMG_BUF_NEW_V,
    SMG_BUF_OUT,
    SMG_BUF_EXPECTED,
    SMG_BUF_TERMS,
    SMG_BUF_IDS,
    SMG_BUF_KV,
    SMG_BUFFERS
};

struct smg_compute {
    const struct smg_world *world;
    const struct smg_compute_plan *plan;
    struct smg_kernels *k, *reference;
    uint32_t heads, q_heads, dim;
    enum smg_dtype type;
    struct smg_buffer buffer[SMG_BUFFERS];
    char diag[256];
};

/* At least so many bytes; NULL: out of memory. What was there before is lost. */
void *smg_compute_buffer(struct smg_compute *c, int which, size_t bytes);
/* Notes why a kernel was refused; returns status. */
int smg_compute_failed(struct smg_compute *c, int status, const char *what);
/* The block table of a layer, [blocks + 1] in the buffer SMG_BUF_START. */
int smg_compute_blocks(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, struct smg_kv_blocks *out);
/* Place in the sequence of the token that a decode step (>= 1) works on: the first is the one that prefill has made. */
static inline uint32_t smg_compute_position(const struct smg_layout *l, uint32_t step)
{
    return l->grid.tokens + step - 1;
}

/* Queries of the token at a position, or what InfiniGen's rehearsal takes for them: [q_heads][dim] in the type of the KV, in
 * SMG_BUF_QUERY. */
void *smg_compute_query(struct smg_compute *c, uint32_t request, uint32_t position, uint32_t layer, int rehearsed);
/* How far out is from a->out, which is right; the largest over channels and query heads of the one request. */
int smg_compute_error_of(struct smg_compute *c, const struct smg_attention_args *a, const float *out,
                         struct smg_compute_error *error);

#endif
