/* Private to kernels/: the chosen of 8 values to the front, for loops that come in two instruction sets (vec.h): squeeze.inc. */
#ifndef SMG_KERNELS_SQUEEZE_H
#define SMG_KERNELS_SQUEEZE_H

#include "kernels/vec.h"

#ifdef __x86_64__

/* Byte n of entry m: the place of the n-th bit that is set in m. */
#define SMG_LANE(m, bit) ((uint64_t)((m) >> (bit)&1) * (bit) << 8 * __builtin_popcount((m) & ((1 << (bit)) - 1)))
#define SMG_LANES(m)                                                                                                             \
    (SMG_LANE(m, 1) | SMG_LANE(m, 2) | SMG_LANE(m, 3) | SMG_LANE(m, 4) | SMG_LANE(m, 5) | SMG_LANE(m, 6) | SMG_LANE(m, 7))
#define SMG_LANES4(m)  SMG_LANES(m), SMG_LANES((m) + 1), SMG_LANES((m) + 2), SMG_LANES((m) + 3)
#define SMG_LANES16(m) SMG_LANES4(m), SMG_LANES4((m) + 4), SMG_LANES4((m) + 8), SMG_LANES4((m) + 12)
#define SMG_LANES64(m) SMG_LANES16(m), SMG_LANES16((m) + 16), SMG_LANES16((m) + 32), SMG_LANES16((m) + 48)

static const uint64_t smg_lanes[256] = {SMG_LANES64(0), SMG_LANES64(64), SMG_LANES64(128), SMG_LANES64(192)};

#endif

#endif
