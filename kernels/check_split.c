/* Sizes of split. A row without entries still gets its counts. */
#include "kernels/backend.h"

int smg_check_split(struct smg_kernels *k, const struct smg_split_args *a)
{
    if (!a->rows)
        return SMG_KERNEL_IDLE;
    if (!a->heads || a->rows % a->heads)
        return smg_kernels_refuse(k, "split: %u rows are no multiple of %u heads", a->rows, a->heads);
    if (a->kept && a->kept_words < a->width / 64 + (a->width % 64 != 0))
        return smg_kernels_refuse(k, "split: %u words of kept entries are too few for %u tokens", a->kept_words, a->width);
    if (a->k && a->out_index == a->index)
        return smg_kernels_refuse(k, "split: out_index may not be index");
    return SMG_OK;
}
