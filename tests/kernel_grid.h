/* Block starts for tests of kernels: the grid of the product, and others. */
#ifndef TESTS_KERNEL_GRID_H
#define TESTS_KERNEL_GRID_H

#include <stdint.h>

#include "tests/kernel_fixture.h"

/* start[m] = floor(m N/M), or first where that lies further right. */
static inline void kg_even(uint32_t tokens, uint32_t blocks, uint32_t first, uint32_t *start)
{
    for (uint32_t m = 0; m <= blocks; m++) {
        uint32_t cut = (uint32_t)((uint64_t)m * tokens / blocks);
        start[m] = cut > first ? cut : first;
    }
}

/* Blocks of any length, many of them empty: cuts are random numbers in [first, tokens], sorted. */
static inline void kg_uneven(uint32_t *seed, uint32_t tokens, uint32_t blocks, uint32_t first, uint32_t *start)
{
    for (uint32_t m = 0; m <= blocks; m++) {
        uint32_t cut = m == 0 ? first : m == blocks ? tokens : first + kf_random(seed) % (tokens - first + 1), i = m;
        for (; i > 0 && start[i - 1] > cut; i--)
            start[i] = start[i - 1];
        start[i] = cut;
    }
}

/* The block of a token by looking at each. */
static inline uint32_t kg_block_of(const uint32_t *start, uint32_t blocks, uint32_t token)
{
    for (uint32_t m = 0; m < blocks; m++)
        if (token >= start[m] && token < start[m + 1])
            return m;
    fail_msg("token %u is in no block", token);
    return 0;
}

#endif
