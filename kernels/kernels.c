/* Opening backends, and one checked entry per kernel. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

static const struct smg_kernels_type *const types[] = {
    &smg_kernels_reference,
#ifndef SMG_KERNELS_WITHOUT_CPU /* tests of the CUDA sources leave it out */
    &smg_kernels_cpu,
#endif
#ifdef SMG_KERNELS_CUDA
    &smg_kernels_cuda,
#endif
};

enum { TYPES = sizeof types / sizeof types[0] };

size_t smg_dtype_bytes(enum smg_dtype type)
{
    switch (type) {
    case SMG_F32:
        return 4;
    case SMG_F16:
    case SMG_BF16:
        return 2;
    }
    return 0;
}

const char *smg_dtype_name(enum smg_dtype type)
{
    static const char *const name[] = {"fp32", "fp16", "bf16"};

    return smg_dtype_bytes(type) ? name[type] : "unknown";
}

/* ---- Backends ---- */

const char *smg_kernels_list(uint32_t i)
{
    return i < TYPES ? types[i]->name : NULL;
}

static void say_unknown(const char *name, struct smg_diag *diag)
{
    size_t at = (size_t)snprintf(diag->text, sizeof diag->text, "no kernel backend '%.40s'; there are", name);

    for (uint32_t i = 0; i < TYPES; i++)
        at += (size_t)snprintf(diag->text + at, sizeof diag->text - at, "%s %s", i ? "," : "", types[i]->name);
}

int smg_kernels_open(const char *name, const struct smg_kernels_options *options, struct smg_kernels **out, struct smg_diag *diag)
{
    for (uint32_t i = 0; i < TYPES; i++)
        if (!strcmp(name, types[i]->name))
            return smg_kernels_open_type(types[i], options, out, diag);
    if (!strcmp(name, "cuda")) {
        snprintf(diag->text, sizeof diag->text, "kernel backend 'cuda' is not built in: configure found no CUDA toolkit");
        return SMG_ERR_UNSUPPORTED;
    }
    say_unknown(name, diag);
    return SMG_ERR_NOT_FOUND;
}

int smg_kernels_open_type(const struct smg_kernels_type *type, const struct smg_kernels_options *options,
                          struct smg_kernels **out, struct smg_diag *diag)
{
    static const struct smg_kernels_options defaults;
    struct smg_kernels *k = calloc(1, sizeof *k);
    int status;

    if (!k) {
        snprintf(diag->text, sizeof diag->text, "out of memory");
        return SMG_ERR_NOMEM;
    }
    k->type = type;
    k->own.k = k;
    status = type->open(k, options ? options : &defaults);
    if (status)
        goto free_k;
    status = type->stream_open(k, &k->own);
    if (status)
        goto close_type;
    *out = k;
    return SMG_OK;

close_type:
    type->close(k);
free_k:
    *diag = k->diag;
    free(k);
    return status;
}

void smg_kernels_close(struct smg_kernels *k)
{
    if (!k)
        return;
    k->type->free(k, k->own.scratch);
    k->type->stream_close(k, &k->own);
    k->type->close(k);
    free(k);
}

const char *smg_kernels_name(const struct smg_kernels *k)
{
    return k->type->name;
}

const char *smg_kernels_where(const struct smg_kernels *k)
{
    return k->where;
}

const char *smg_kernels_diag(const struct smg_kernels *k)
{
    return k->diag.text;
}

int smg_kernels_refuse(struct smg_kernels *k, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(k->diag.text, sizeof k->diag.text, format, args);
    va_end(args);
    return SMG_ERR_INVALID;
}

/* ---- Memory and streams ---- */

static struct smg_stream *stream_of(struct smg_kernels *k, struct smg_stream *stream)
{
    return stream ? stream : &k->own;
}

int smg_memory_alloc(struct smg_kernels *k, size_t bytes, void **out)
{
    *out = NULL;
    return bytes ? k->type->alloc(k, bytes, out) : SMG_OK;
}

void smg_memory_free(struct smg_kernels *k, void *memory)
{
    if (memory)
        k->type->free(k, memory);
}

int smg_memory_copy(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream)
{
    return bytes ? k->type->copy(k, to, from, bytes, stream_of(k, stream)) : SMG_OK;
}

int smg_memory_fill(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream)
{
    return bytes ? k->type->fill(k, to, byte, bytes, stream_of(k, stream)) : SMG_OK;
}

int smg_stream_open(struct smg_kernels *k, struct smg_stream **out)
{
    struct smg_stream *stream = calloc(1, sizeof *stream);
    int status;

    if (!stream)
        return SMG_ERR_NOMEM;
    stream->k = k;
    status = k->type->stream_open(k, stream);
    if (status) {
        free(stream);
        return status;
    }
    *out = stream;
    return SMG_OK;
}

void smg_stream_close(struct smg_stream *stream)
{
    if (!stream)
        return;
    stream->k->type->free(stream->k, stream->scratch);
    stream->k->type->stream_close(stream->k, stream);
    free(stream);
}

int smg_stream_sync(struct smg_kernels *k, struct smg_stream *stream)
{
    return k->type->stream_sync(k, stream_of(k, stream));
}

/* Work already given to the stream may use the old memory: it is finished first. */
int smg_stream_scratch(struct smg_stream *stream, size_t bytes, void **out)
{
    struct smg_kernels *k = stream->k;
    int status;

    if (bytes > stream->scratch_bytes) {
        status = k->type->stream_sync(k, stream);
        if (status)
            return status;
        k->type->free(k, stream->scratch);
        stream->scratch = NULL;
        stream->scratch_bytes = 0;
        status = k->type->alloc(k, bytes, &stream->scratch);
        if (status)
            return status;
        stream->scratch_bytes = bytes;
    }
    *out = stream->scratch;
    return SMG_OK;
}

/* ---- Kernels ---- */

#define SMG_KERNEL_CALL(name, text)                                                                                              \
    int smg_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *stream)                          \
    {                                                                                                                            \
        int status = smg_check_##name(k, a);                                                                                     \
        if (status)                                                                                                              \
            return status == SMG_KERNEL_IDLE ? SMG_OK : status;                                                                  \
        return k->type->name(k, a, stream_of(k, stream));                                                                        \
    }
SMG_KERNEL_MAP(SMG_KERNEL_CALL)
