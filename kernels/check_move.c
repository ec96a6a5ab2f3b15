/* Sizes of pack, unpack, gather and scatter. */
#include "kernels/backend.h"

/* Offsets are computed in 64 bits; ids are int32. */
static int check_blocks(struct smg_kernels *k, const char *name, const struct smg_kv_blocks *b)
{
    uint64_t bytes;

    if (b->half_bytes % 4)
        return smg_kernels_refuse(k, "%s: half_bytes %u is no multiple of 4", name, b->half_bytes);
    if (b->tokens > INT32_MAX || b->blocks > INT32_MAX)
        return smg_kernels_refuse(k, "%s: %u tokens in %u blocks, ids reach 2^31 - 1", name, b->tokens, b->blocks);
    if (__builtin_mul_overflow((uint64_t)b->tokens * 2 * b->half_bytes, (uint64_t)b->heads, &bytes))
        return smg_kernels_refuse(k, "%s: %u tokens of %u heads of 2 * %u bytes are too many bytes", name, b->tokens, b->heads,
                                  b->half_bytes);
    return b->tokens && b->blocks && b->heads && b->half_bytes ? SMG_OK : SMG_KERNEL_IDLE;
}

int smg_check_pack(struct smg_kernels *k, const struct smg_pack_args *a)
{
    return check_blocks(k, "pack", &a->blocks);
}

int smg_check_unpack(struct smg_kernels *k, const struct smg_unpack_args *a)
{
    return check_blocks(k, "unpack", &a->blocks);
}

int smg_check_gather(struct smg_kernels *k, const struct smg_gather_args *a)
{
    int status = check_blocks(k, "gather", &a->blocks);

    return status || a->max_row_entries ? status : SMG_KERNEL_IDLE;
}

int smg_check_scatter(struct smg_kernels *k, const struct smg_scatter_args *a)
{
    if (a->half_bytes % 4)
        return smg_kernels_refuse(k, "scatter: half_bytes %u is no multiple of 4", a->half_bytes);
    return a->heads && a->half_bytes && a->max_row_entries ? SMG_OK : SMG_KERNEL_IDLE;
}
