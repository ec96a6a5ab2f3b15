/* Memory of the cases, with synthetic contents. */
#include <stdlib.h>

#include "kernels/dtype.h"
#include "kernels/gpu_bench.h"

void *smg_bench_fresh(struct smg_bench *b, uint64_t bytes)
{
    void *p;

    smg_bench_need(b->n_buffers < SMG_BENCH_BUFFERS, "buffers", "too many");
    smg_bench_need(!smg_memory_alloc(b->k, bytes, &p), "memory", smg_kernels_diag(b->k));
    b->buffer[b->n_buffers++] = p;
    return p;
}

/* On the host first; `what` gives element i. */
void *smg_bench_filled(struct smg_bench *b, uint64_t n, size_t bytes, void (*what)(void *p, uint64_t i, uint32_t of), uint32_t of)
{
    void *host = malloc(n * bytes + 1), *p = smg_bench_fresh(b, n * bytes);

    smg_bench_need(host != NULL, "memory", "of the host");
    for (uint64_t i = 0; i < n; i++)
        what(host, i, of);
    smg_bench_need(!smg_memory_copy(b->k, p, host, n * bytes, NULL) && !smg_stream_sync(b->k, NULL), "copy",
                   smg_kernels_diag(b->k));
    free(host);
    return p;
}

/* A number of i that looks random: the last steps of MurmurHash3. */
static uint32_t mixed(uint64_t i)
{
    uint32_t x = (uint32_t)i * 0x9e3779b9u;

    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

static float uniform(uint64_t i)
{
    return (float)(mixed(i) >> 8) / 8388608.0f - 1.0f;
}

static void one_element(void *p, uint64_t i, uint32_t of)
{
    (void)of;
    smg_store(p, i, SMG_BF16, uniform(i));
}

static void one_float(void *p, uint64_t i, uint32_t of)
{
    (void)of;
    ((float *)p)[i] = uniform(i);
}

void smg_bench_one_positive(void *p, uint64_t i, uint32_t of)
{
    (void)of;
    ((float *)p)[i] = 1.5f + uniform(i);
}

void smg_bench_one_word(void *p, uint64_t i, uint32_t of)
{
    (void)of;
    ((uint32_t *)p)[i] = mixed(i);
}

void smg_bench_one_below(void *p, uint64_t i, uint32_t of)
{
    ((uint32_t *)p)[i] = mixed(i) % of;
}

static void one_constant(void *p, uint64_t i, uint32_t of)
{
    ((uint32_t *)p)[i] = of;
}

void smg_bench_one_number(void *p, uint64_t i, uint32_t of)
{
    ((uint32_t *)p)[i] = (uint32_t)i * of;
}

void smg_bench_one_offset(void *p, uint64_t i, uint32_t of)
{
    ((uint64_t *)p)[i] = i * of;
}

void smg_bench_one_column(void *p, uint64_t i, uint32_t of)
{
    ((uint8_t *)p)[i] = (uint8_t)(i % of);
}

void smg_bench_one_place(void *p, uint64_t i, uint32_t of)
{
    (void)of;
    ((int8_t *)p)[i] = (int8_t)(1 + mixed(i) % 2); /* local or remote */
}

void *smg_bench_elements(struct smg_bench *b, uint64_t n)
{
    return smg_bench_filled(b, n, sizeof(uint16_t), one_element, 0);
}

void *smg_bench_floats(struct smg_bench *b, uint64_t n)
{
    return smg_bench_filled(b, n, sizeof(float), one_float, 0);
}

void *smg_bench_numbers(struct smg_bench *b, uint64_t n, uint32_t each)
{
    return smg_bench_filled(b, n, sizeof(uint32_t), one_constant, each);
}
