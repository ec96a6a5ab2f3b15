/* Memory of the host, and the backend reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

enum { ALIGN = 256 };

/* Not rounded up, so that a checker of memory sees the true end. */
int smg_host_alloc(struct smg_kernels *k, size_t bytes, void **out)
{
    (void)k;
    if (!posix_memalign(out, ALIGN, bytes))
        return SMG_OK;
    *out = NULL;
    snprintf(k->diag.text, sizeof k->diag.text, "out of memory: %zu bytes", bytes);
    return SMG_ERR_NOMEM;
}

void smg_host_free(struct smg_kernels *k, void *memory)
{
    (void)k;
    free(memory);
}

int smg_host_copy(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    memmove(to, from, bytes);
    return SMG_OK;
}

int smg_host_fill(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    memset(to, byte, bytes);
    return SMG_OK;
}

/* Calls return when they are done, so a stream has nothing of its own. */
int smg_host_stream_open(struct smg_kernels *k, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    return SMG_OK;
}

void smg_host_stream_close(struct smg_kernels *k, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
}

int smg_host_stream_sync(struct smg_kernels *k, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    return SMG_OK;
}

/* ---- reference ---- */

static int reference_open(struct smg_kernels *k, const struct smg_kernels_options *options)
{
    (void)options;
    snprintf(k->where, sizeof k->where, "reference, 1 thread");
    return SMG_OK;
}

static void reference_close(struct smg_kernels *k)
{
    (void)k;
}

const struct smg_kernels_type smg_kernels_reference = {.name = "reference",
                                                       .open = reference_open,
                                                       .close = reference_close,
                                                       SMG_HOST_MEMORY,
#define ENTRY(name, text) .name = smg_reference_##name,
                                                       SMG_KERNEL_MAP(ENTRY)
#undef ENTRY
};
