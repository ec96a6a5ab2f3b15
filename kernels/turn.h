/* Private to kernels/: sine and cosine of an angle that is given in turns, for RoPE. One polynomial for the cpu and cuda
 * backends: the functions of libm differ between machines, and CUDA's keep a table in slow memory for large angles. */
#ifndef SMG_KERNELS_TURN_H
#define SMG_KERNELS_TURN_H

#include <math.h>

#ifdef __CUDACC__
#define SMG_TURN_INLINE static __device__ __forceinline__
#else
#define SMG_TURN_INLINE static inline
#endif

/* t: turns (1 is 2 pi), any finite number. Reduced to a quarter r of |r| <= 1/8, then Taylor's series of sin and cos of x = 2 pi
 * r, |x| <= pi/4: the first term left out is x^13/13! < 7e-12 and x^14/14! < 4e-13, so the error is that of rounding to fp32. */
SMG_TURN_INLINE void smg_turn(double t, float *cosine, float *sine)
{
    double whole = floor(4 * t + 0.5), x = 6.283185307179586476925 * (t - 0.25 * whole), x2 = x * x;
    double s = x * (1 + x2 * (-1 / 6. + x2 * (1 / 120. + x2 * (-1 / 5040. + x2 * (1 / 362880. - x2 / 39916800.)))));
    double c = 1 + x2 * (-0.5 + x2 * (1 / 24. + x2 * (-1 / 720. + x2 * (1 / 40320. + x2 * (-1 / 3628800. + x2 / 479001600.)))));
    int quarter = (int)(whole - 4 * floor(whole / 4));

    *cosine = (float)(quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s);
    *sine = (float)(quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c);
}

#endif
