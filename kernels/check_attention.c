/* Sizes of attention. */
#include "kernels/attention_cut.h"
#include "kernels/backend.h"

int smg_check_attention(struct smg_kernels *k, const struct smg_attention_args *a)
{
    uint64_t entries = 0, partials;

    if (!smg_dtype_bytes(a->type))
        return smg_kernels_refuse(k, "attention: type %d is none", (int)a->type);
    if (a->head_dim > 256)
        return smg_kernels_refuse(k, "attention: head_dim %u, expected at most 256", a->head_dim);
    if (a->n_runs > SMG_ATTENTION_RUNS)
        return smg_kernels_refuse(k, "attention: %u runs, expected at most %d", a->n_runs, SMG_ATTENTION_RUNS);
    if (a->kv_heads ? a->q_heads % a->kv_heads : a->q_heads)
        return smg_kernels_refuse(k, "attention: %u q_heads, expected a multiple of kv_heads, %u", a->q_heads, a->kv_heads);
    for (uint32_t r = 0; r < a->n_runs; r++)
        entries += a->run[r].max_length;
    if (entries > SMG_ATTENTION_ENTRIES)
        return smg_kernels_refuse(k, "attention: runs of %llu entries, expected at most %d", (unsigned long long)entries,
                                  SMG_ATTENTION_ENTRIES);
    if (!a->requests || !a->q_heads || !a->head_dim)
        return SMG_KERNEL_IDLE;
    /* Scratch in bytes: at most 2^31 partial results of (256 + 8) floats fit; a grid of a GPU has no more blocks either. */
    if (__builtin_mul_overflow((uint64_t)a->requests * a->q_heads, smg_attention_most_parts((uint32_t)entries, a->splits),
                               &partials) ||
        partials > INT32_MAX || (uint64_t)a->requests * a->q_heads > INT32_MAX)
        return smg_kernels_refuse(k, "attention: %u requests of %u q_heads in parts are too many", a->requests, a->q_heads);
    return SMG_OK;
}
