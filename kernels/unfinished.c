/* TEMPORARY, gone before this lands: what is still to be written. Delete your lines. */
#include "kernels/backend.h"

#define TODO(name)                                                                                                               \
    int smg_check_##name(struct smg_kernels *k, const struct smg_##name##_args *a)                                               \
    {                                                                                                                            \
        (void)a;                                                                                                                 \
        return smg_kernels_refuse(k, #name ": to be written");                                                                   \
    }                                                                                                                            \
    int smg_reference_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *s)                     \
    {                                                                                                                            \
        (void)k;                                                                                                                 \
        (void)a;                                                                                                                 \
        (void)s;                                                                                                                 \
        return SMG_ERR_UNSUPPORTED;                                                                                              \
    }                                                                                                                            \
    int smg_cpu_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *s)                           \
    {                                                                                                                            \
        (void)k;                                                                                                                 \
        (void)a;                                                                                                                 \
        (void)s;                                                                                                                 \
        return SMG_ERR_UNSUPPORTED;                                                                                              \
    }                                                                                                                            \
    int smg_cuda_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *s)                          \
    {                                                                                                                            \
        (void)k;                                                                                                                 \
        (void)a;                                                                                                                 \
        (void)s;                                                                                                                 \
        return SMG_ERR_UNSUPPORTED;                                                                                              \
    }
