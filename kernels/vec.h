/* Private to kernels/: vectors of 8 floats for the cpu backend, in two instruction sets from one source.
 *
 * A file kernels/cpu_NAME.c that wants vectors includes its loops twice:
 *
 *     #include "kernels/vec.h"
 *     #define SMG_ISA_NAME(name) name##_base
 *     #include "kernels/cpu_NAME_loops.inc"
 *     #undef SMG_ISA_NAME
 *     #include "kernels/isa_avx2_begin.inc"
 *     #define SMG_ISA_NAME(name) name##_avx2
 *     #include "kernels/cpu_NAME_loops.inc"
 *     #undef SMG_ISA_NAME
 *     #include "kernels/isa_avx2_end.inc"
 *
 * and calls name_base or name_avx2 by k->isa. On other machines than x86-64 the second half is the first under another name.
 * Loads of fp16 use F16C where SMG_ISA_AVX2_ON is defined. Arithmetic is GCC's and clang's vector extension, so it is one story
 * for both. Reductions have a fixed order: the two sets differ only where the compiler contracts a * b + c, which the build turns
 * off (MATH_CFLAGS). */
#ifndef SMG_KERNELS_VEC_H
#define SMG_KERNELS_VEC_H

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <stdint.h>
#include <string.h>

#include "kernels/dtype.h"

typedef float smg_v8f __attribute__((vector_size(32)));
typedef int32_t smg_v8i __attribute__((vector_size(32)));
typedef uint32_t smg_v8u __attribute__((vector_size(32)));
typedef uint16_t smg_v8h __attribute__((vector_size(16)));

#define SMG_INLINE static inline __attribute__((always_inline, unused))

#endif
