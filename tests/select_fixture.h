/* What the tests of selectors share, beside kernel_fixture.h. */
#ifndef TESTS_SELECT_FIXTURE_H
#define TESTS_SELECT_FIXTURE_H

#include "tests/kernel_fixture.h"

static const enum smg_dtype sf_types[] = {SMG_F32, SMG_F16, SMG_BF16};

/* Half a unit in the last place of a number near 1: what storing a result costs, relative. */
static inline double sf_rounding(enum smg_dtype type)
{
    return type == SMG_BF16 ? 0x1p-8 : type == SMG_F16 ? 0x1p-11 : 0x1p-24;
}

/* n elements of a type that came back from a backend, as floats. */
static inline void sf_get(struct kernel_fixture *f, float *to, const void *from, size_t n, enum smg_dtype type)
{
    void *raw = malloc(n * smg_dtype_bytes(type) + 1);

    assert_non_null(raw);
    kf_get(f, raw, from, n * smg_dtype_bytes(type));
    for (size_t i = 0; i < n; i++)
        to[i] = smg_load(raw, i, type);
    free(raw);
}

/* n uniform floats in [-1, 1); free it. */
static inline float *sf_floats(uint32_t *seed, size_t n)
{
    return kf_elements(seed, n, SMG_F32);
}

/* The k best of n in order (score descending, index ascending); NaN last. */
static inline void sf_top(const float *score, uint32_t n, uint32_t k, uint32_t *index)
{
    unsigned char *taken = calloc(n + 1, 1);

    assert_non_null(taken);
    for (uint32_t i = 0; i < k; i++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t j = 0; j < n; j++)
            if (!taken[j] && (best == UINT32_MAX || score[j] > score[best] || (isnan(score[best]) && !isnan(score[j]))))
                best = j;
        taken[best] = 1;
        index[i] = best;
    }
    free(taken);
}

#define sf_refused(f, call, text)                                                                                                \
    do {                                                                                                                         \
        assert_int_equal((call), SMG_ERR_INVALID);                                                                               \
        assert_non_null(strstr(smg_kernels_diag((f)->k), (text)));                                                               \
    } while (0)

#endif
