/* Private to kernels/: elements to fp32 and back, one at a time. Rounds to nearest, ties to even; NaN stays NaN. The vectors of
 * vec.h and the conversions of CUDA give the same bits. */
#ifndef SMG_KERNELS_DTYPE_H
#define SMG_KERNELS_DTYPE_H

#include <stdint.h>
#include <string.h>

#include "kernels/smg_kernels.h"

static inline float smg_float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t smg_bits_of_float(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float smg_bf16_to_float(uint16_t x)
{
    return smg_float_of_bits((uint32_t)x << 16);
}

static inline uint16_t smg_float_to_bf16(float f)
{
    uint32_t bits = smg_bits_of_float(f);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline float smg_f16_to_float(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;

    if (exponent == 31)
        return smg_float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return smg_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    /* Zero or subnormal: fraction * 2^-24, exact. */
    return smg_float_of_bits(sign | smg_bits_of_float((float)fraction * 0x1p-24f));
}

static inline uint16_t smg_float_to_f16(float f)
{
    uint32_t bits = smg_bits_of_float(f), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffffu;

    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000u) { /* below 2^-14: the addition rounds to a multiple of 2^-24 */
        uint32_t sum = smg_bits_of_float(smg_float_of_bits(rest) + 0.5f);
        return (uint16_t)(sign | (sum - smg_bits_of_float(0.5f)));
    }
    return (uint16_t)(sign | ((rest + 0xfffu + (rest >> 13 & 1) - (112u << 23)) >> 13));
}

static inline float smg_load(const void *x, uint64_t i, enum smg_dtype type)
{
    switch (type) {
    case SMG_F16:
        return smg_f16_to_float(((const uint16_t *)x)[i]);
    case SMG_BF16:
        return smg_bf16_to_float(((const uint16_t *)x)[i]);
    default:
        return ((const float *)x)[i];
    }
}

static inline void smg_store(void *x, uint64_t i, enum smg_dtype type, float f)
{
    switch (type) {
    case SMG_F16:
        ((uint16_t *)x)[i] = smg_float_to_f16(f);
        break;
    case SMG_BF16:
        ((uint16_t *)x)[i] = smg_float_to_bf16(f);
        break;
    default:
        ((float *)x)[i] = f;
    }
}

#endif
