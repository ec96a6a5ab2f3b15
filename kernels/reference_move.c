/* Moving KV entries, in the plainest loops: one entry after another. */
#include <string.h>

#include "kernels/backend.h"

/* Where the two halves of an entry lie in the blocks; bytes. */
static void locate(const struct smg_kv_blocks *b, uint32_t token, uint32_t head, uint64_t *k_at, uint64_t *v_at)
{
    uint32_t m = 0;
    uint64_t tokens, base;

    while (token >= b->start[m + 1]) /* also past blocks without tokens */
        m++;
    tokens = b->start[m + 1] - b->start[m];
    base = (uint64_t)(b->start[m] - b->start[0]) * 2 * b->heads * b->half_bytes;
    *k_at = base + (head * tokens + (token - b->start[m])) * b->half_bytes;              /* K[head][token in block] */
    *v_at = base + ((b->heads + head) * tokens + (token - b->start[m])) * b->half_bytes; /* V, behind all of K */
}

int smg_reference_pack(struct smg_kernels *k, const struct smg_pack_args *a, struct smg_stream *stream)
{
    const struct smg_kv_blocks *b = &a->blocks;

    (void)k;
    (void)stream;
    for (uint32_t t = b->start[0]; t < b->tokens; t++) {
        for (uint32_t h = 0; h < b->heads; h++) {
            uint64_t k_at, v_at, row = ((uint64_t)t * b->heads + h) * b->half_bytes; /* [t][h] */
            locate(b, t, h, &k_at, &v_at);
            memcpy((char *)a->kv + k_at, (const char *)a->k + row, b->half_bytes);
            memcpy((char *)a->kv + v_at, (const char *)a->v + row, b->half_bytes);
        }
    }
    return SMG_OK;
}

int smg_reference_unpack(struct smg_kernels *k, const struct smg_unpack_args *a, struct smg_stream *stream)
{
    const struct smg_kv_blocks *b = &a->blocks;

    (void)k;
    (void)stream;
    for (uint32_t t = b->start[0]; t < b->tokens; t++) {
        for (uint32_t h = 0; h < b->heads; h++) {
            uint64_t k_at, v_at, row = ((uint64_t)t * b->heads + h) * b->half_bytes;
            locate(b, t, h, &k_at, &v_at);
            memcpy((char *)a->k + row, (const char *)a->kv + k_at, b->half_bytes);
            memcpy((char *)a->v + row, (const char *)a->kv + v_at, b->half_bytes);
        }
    }
    return SMG_OK;
}

int smg_reference_gather(struct smg_kernels *k, const struct smg_gather_args *a, struct smg_stream *stream)
{
    const struct smg_kv_blocks *b = &a->blocks;

    (void)k;
    (void)stream;
    for (uint32_t h = 0; h < b->heads; h++) {
        for (uint32_t j = 0; j < a->row_entries[h]; j++) {
            int64_t id = a->ids[a->ids_start[h] + j];
            uint64_t k_at, v_at, to = (a->to_start[h] + j) * b->half_bytes;
            if (id < b->start[0] || id >= b->tokens)
                continue;
            locate(b, (uint32_t)id, h, &k_at, &v_at);
            memcpy((char *)a->k_out + to, (const char *)a->kv + k_at, b->half_bytes);
            memcpy((char *)a->v_out + to, (const char *)a->kv + v_at, b->half_bytes);
        }
    }
    return SMG_OK;
}

int smg_reference_scatter(struct smg_kernels *k, const struct smg_scatter_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint32_t h = 0; h < a->heads; h++) {
        for (uint32_t j = 0; j < a->row_entries[h]; j++) {
            uint64_t from = (a->from_start[h] + j) * a->half_bytes, to = (a->to_start[h] + j) * a->half_bytes;
            memcpy((char *)a->k_out + to, (const char *)a->k_in + from, a->half_bytes);
            memcpy((char *)a->v_out + to, (const char *)a->v_in + from, a->half_bytes);
        }
    }
    return SMG_OK;
}
