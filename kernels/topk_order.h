/* Private to kernels/: scores as whole numbers of the same order. For C and .cu sources. */
#ifndef SMG_KERNELS_TOPK_ORDER_H
#define SMG_KERNELS_TOPK_ORDER_H

#include <stdint.h>
#include <string.h>

#include "kernels/anywhere.h"

/* A larger score gives a larger number, equal ones the same; NaN counts as -inf, -0 as 0. Of a negative float the magnitude is
 * turned round, so that signed comparison holds. */
SMG_ANYWHERE int32_t smg_order_of_score(float score)
{
    int32_t bits;

    memcpy(&bits, &score, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        bits = (int32_t)0xff800000u;
    bits ^= bits < 0 ? 0x7fffffff : 0;
    return bits == -1 ? 0 : bits; /* -1 is -0 alone */
}

#endif
