/* Sizes of the HACK kernels. */
#include "kernels/backend.h"
#include "kernels/hack.h"

static int check_shape(struct smg_kernels *k, const char *name, const struct smg_hack_shape *s)
{
    const char *fault = smg_hack_fault(s);

    return fault ? smg_kernels_refuse(k, "%s: %s", name, fault) : SMG_OK;
}

int smg_check_hack_quantize(struct smg_kernels *k, const struct smg_hack_quantize_args *a)
{
    int status = check_shape(k, "hack_quantize", &a->shape);

    return status || (a->shape.tokens && a->shape.kv_heads) ? status : SMG_KERNEL_IDLE;
}

int smg_check_hack_dequantize(struct smg_kernels *k, const struct smg_hack_dequantize_args *a)
{
    int status = check_shape(k, "hack_dequantize", &a->shape);

    return status || (a->shape.tokens && a->shape.kv_heads) ? status : SMG_KERNEL_IDLE;
}

/* The bound keeps scratch memory, and the counts of q_heads * head_dim, within 32 bits. */
int smg_check_hack_attention(struct smg_kernels *k, const struct smg_hack_attention_args *a)
{
    int status = check_shape(k, "hack_attention", &a->shape);

    if (status)
        return status;
    if (!a->q_heads)
        return SMG_KERNEL_IDLE;
    if (!a->shape.kv_heads || a->q_heads % a->shape.kv_heads)
        return smg_kernels_refuse(k, "hack_attention: %u query heads, no multiple of %u KV heads", a->q_heads, a->shape.kv_heads);
    if (a->q_heads > 65535)
        return smg_kernels_refuse(k, "hack_attention: %u query heads, more than 65535", a->q_heads);
    return SMG_OK;
}
