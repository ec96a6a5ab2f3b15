/* Inputs of a measurement. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dtype.h"
#include "kernels/measure_priv.h"

enum { ALIGN = 256, COPIES_MAX = 256 };

int smg_bench_alloc(struct smg_bench *b, size_t bytes, void *out)
{
    void *p = NULL;
    int status;

    if (b->n_buffers == sizeof b->buffer / sizeof b->buffer[0])
        return SMG_ERR_CAPACITY;
    status = smg_memory_alloc(b->k, bytes, &p);
    if (status)
        return status;
    b->buffer[b->n_buffers++] = p;
    memcpy(out, &p, sizeof p);
    return smg_memory_fill(b->k, p, 0, bytes, NULL);
}

void smg_bench_clear(struct smg_bench *b)
{
    while (b->n_buffers)
        smg_memory_free(b->k, b->buffer[--b->n_buffers]);
    b->pool = NULL;
}

/* The copy may run later: the host's memory must live until then. */
int smg_bench_upload(struct smg_bench *b, const void *host, size_t bytes, void *out)
{
    void *p = NULL;
    int status = smg_bench_alloc(b, bytes, &p);

    if (!status)
        status = smg_memory_copy(b->k, p, host, bytes, NULL);
    if (!status)
        status = smg_stream_sync(b->k, NULL);
    if (!status)
        memcpy(out, &p, sizeof p);
    return status;
}

/* xorshift32, triple 13, 17, 5 (Marsaglia, 2003). */
uint32_t smg_bench_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Fills memory with a megabyte of random elements, again and again. */
static int fill(struct smg_bench *b, char *to, size_t bytes, enum smg_dtype type)
{
    size_t chunk = (size_t)1 << 20, size = smg_dtype_bytes(type);
    uint32_t state = 2463534242u;
    void *x = malloc(chunk);
    int status = x ? SMG_OK : SMG_ERR_NOMEM;

    for (size_t i = 0; x && i < chunk / size; i++)
        smg_store(x, i, type, (float)(smg_bench_random(&state) >> 8) / 8388608.0f - 1.0f);
    for (size_t at = 0; at < bytes && !status; at += chunk)
        status = smg_memory_copy(b->k, to + at, x, bytes - at < chunk ? bytes - at : chunk, NULL);
    if (!status)
        status = smg_stream_sync(b->k, NULL);
    free(x);
    return status;
}

int smg_bench_elements(struct smg_bench *b, size_t n, enum smg_dtype type, void *out)
{
    void *p = NULL;
    int status = smg_bench_alloc(b, n * smg_dtype_bytes(type), &p);

    if (!status)
        status = fill(b, p, n * smg_dtype_bytes(type), type);
    memcpy(out, &p, sizeof p);
    return status;
}

int smg_bench_pool(struct smg_bench *b, size_t copy_bytes, enum smg_dtype type, struct smg_bench_case *c, void *out)
{
    size_t copy = (copy_bytes + ALIGN - 1) / ALIGN * ALIGN, copies = b->pool_bytes / copy;
    int status = SMG_OK;

    if (!b->pool) {
        if (b->pool_bytes < copy)
            b->pool_bytes = copy;
        status = smg_bench_elements(b, b->pool_bytes / smg_dtype_bytes(type), type, &b->pool);
    }
    c->copies = copies < 1 ? 1 : copies > COPIES_MAX ? COPIES_MAX : (uint32_t)copies;
    c->copy_bytes = copy;
    memcpy(out, &b->pool, sizeof b->pool);
    return status;
}

/* Each id is taken with the share that is still wanted of those that are left. */
void smg_bench_ids(uint32_t *state, uint32_t n, uint32_t k, int32_t *out)
{
    for (uint32_t id = 0, got = 0; id < n && got < k; id++)
        if (smg_bench_random(state) % (n - id) < k - got)
            out[got++] = (int32_t)id;
}

enum smg_dtype smg_bench_type(const struct smg_world *w)
{
    return w->model.value_bytes == 4 ? SMG_F32 : SMG_BF16;
}

uint32_t smg_bench_prompt(const struct smg_world *w)
{
    double sum = 0;

    for (uint32_t i = 0; i < w->n_requests; i++)
        sum += w->requests[i].prompt_tokens;
    return (uint32_t)fmin(32768, fmax(1024, w->n_requests ? sum / w->n_requests : 0));
}

uint32_t smg_bench_selected(const struct smg_world *w, uint32_t tokens)
{
    return (uint32_t)fmax(8, w->scenario.selection.cap * tokens);
}
