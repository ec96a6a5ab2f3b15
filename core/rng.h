/* Named random substreams and stateless hashing. Every use of randomness has its own stream, so that adding one use never changes
 * another; results depend on the seed alone. splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014 (public-domain constants). */
#ifndef SMG_CORE_RNG_H
#define SMG_CORE_RNG_H

#include <stdint.h>

#pragma GCC visibility push(default)

static inline uint64_t smg_mix64(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Hash of a tuple: chain the parts. */
static inline uint64_t smg_hash2(uint64_t a, uint64_t b) { return smg_mix64(smg_mix64(a) ^ b); }
static inline uint64_t smg_hash3(uint64_t a, uint64_t b, uint64_t c) { return smg_mix64(smg_hash2(a, b) ^ c); }

struct smg_rng {
    uint64_t state;
};

/* Stream `name` of `seed`: "arrivals", "lengths", ... The same pair gives the same numbers for ever. */
void smg_rng_init(struct smg_rng *r, uint64_t seed, const char *name);
uint64_t smg_rng_u64(struct smg_rng *r);
/* Uniform in [0, 1), 53 bits. */
double smg_rng_uniform(struct smg_rng *r);

#pragma GCC visibility pop

#endif
