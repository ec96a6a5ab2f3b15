/* Types of elements. Part of smg_kernels.h. */
#ifndef SMG_KERNELS_SMG_DTYPE_H
#define SMG_KERNELS_SMG_DTYPE_H

enum smg_dtype { SMG_F32 = 0, SMG_F16 = 1, SMG_BF16 = 2 };

#endif
