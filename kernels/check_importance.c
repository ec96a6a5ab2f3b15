/* Sizes of the importance kernels. */
#include "kernels/backend.h"

int smg_check_importance_mean(struct smg_kernels *k, const struct smg_importance_mean_args *a)
{
    if (!a->blocks)
        return SMG_KERNEL_IDLE;
    if (!a->heads)
        return smg_kernels_refuse(k, "importance_mean: heads is 0");
    return SMG_OK;
}
