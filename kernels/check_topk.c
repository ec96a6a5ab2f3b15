/* Sizes of topk. A row that has no candidates, or takes none, still gets its length and padding. */
#include "kernels/backend.h"

int smg_check_topk(struct smg_kernels *k, const struct smg_topk_args *a)
{
    if (!a->rows)
        return SMG_KERNEL_IDLE;
    if (a->n > INT32_MAX)
        return smg_kernels_refuse(k, "topk: %u scores in a row, ids reach 2^31 - 1", a->n);
    if (!a->row_group || a->rows % a->row_group)
        return smg_kernels_refuse(k, "topk: %u rows are no multiple of row_group %u", a->rows, a->row_group);
    return SMG_OK;
}
