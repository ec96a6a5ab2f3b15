#include "core/rng.h"

void smg_rng_init(struct smg_rng *r, uint64_t seed, const char *name)
{
    uint64_t state = smg_mix64(seed);

    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++) {
        state = smg_mix64(state ^ *p);
    }
    r->state = state;
}

/* smg_mix64 adds the increment before it mixes: this is splitmix64 as published (state 1234567 yields 6457827717110365317
 * first). */
uint64_t smg_rng_u64(struct smg_rng *r)
{
    uint64_t value = smg_mix64(r->state);

    r->state += UINT64_C(0x9E3779B97F4A7C15);
    return value;
}

double smg_rng_uniform(struct smg_rng *r)
{
    return (double)(smg_rng_u64(r) >> 11) * 0x1p-53;
}
