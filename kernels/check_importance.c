/* Sizes of the importance kernels. */
#include "kernels/backend.h"

int smg_check_importance(struct smg_kernels *k, const struct smg_importance_args *a)
{
    if (a->tokens > INT32_MAX || a->blocks > INT32_MAX)
        return smg_kernels_refuse(k, "importance: %u tokens in %u blocks, ids reach 2^31 - 1", a->tokens, a->blocks);
    return a->rows && a->k && a->tokens && a->blocks ? SMG_OK : SMG_KERNEL_IDLE;
}

int smg_check_importance_mean(struct smg_kernels *k, const struct smg_importance_mean_args *a)
{
    if (!a->blocks)
        return SMG_KERNEL_IDLE;
    if (!a->heads)
        return smg_kernels_refuse(k, "importance_mean: heads is 0");
    return SMG_OK;
}
