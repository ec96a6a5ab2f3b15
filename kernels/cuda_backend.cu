/* The cuda backend: device, memory, streams. */
#include "kernels/cuda_common.cuh"

#include <stdio.h>

int smg_cuda_status(struct smg_kernels *k, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return SMG_OK;
    snprintf(k->diag.text, sizeof k->diag.text, "%s: %s", what, cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? SMG_ERR_NOMEM : SMG_ERR_IO;
}

static int cuda_open(struct smg_kernels *k, const struct smg_kernels_options *options)
{
    struct cudaDeviceProp property;
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);

    if (error != cudaSuccess || (int)options->device >= devices) {
        snprintf(k->diag.text, sizeof k->diag.text, "no GPU %u: %s", options->device,
                 error != cudaSuccess ? cudaGetErrorString(error) : "the machine has fewer");
        return SMG_ERR_UNSUPPORTED;
    }
    error = cudaSetDevice((int)options->device);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&property, (int)options->device);
    if (error != cudaSuccess)
        return smg_cuda_status(k, error, "GPU");
    snprintf(k->where, sizeof k->where, "cuda, %.80s", property.name);
    return SMG_OK;
}

static void cuda_close(struct smg_kernels *k)
{
    (void)k;
}

static int cuda_alloc(struct smg_kernels *k, size_t bytes, void **out)
{
    return smg_cuda_status(k, cudaMalloc(out, bytes), "allocation on the GPU");
}

static void cuda_free(struct smg_kernels *k, void *memory)
{
    (void)k;
    (void)cudaFree(memory);
}

static int cuda_copy(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream)
{
    return smg_cuda_status(k, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream->native), "copy");
}

static int cuda_fill(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream)
{
    return smg_cuda_status(k, cudaMemsetAsync(to, byte, bytes, (cudaStream_t)stream->native), "fill");
}

static int cuda_stream_open(struct smg_kernels *k, struct smg_stream *stream)
{
    return smg_cuda_status(k, cudaStreamCreate((cudaStream_t *)&stream->native), "stream");
}

static void cuda_stream_close(struct smg_kernels *k, struct smg_stream *stream)
{
    (void)k;
    (void)cudaStreamDestroy((cudaStream_t)stream->native);
}

static int cuda_stream_sync(struct smg_kernels *k, struct smg_stream *stream)
{
    return smg_cuda_status(k, cudaStreamSynchronize((cudaStream_t)stream->native), "kernels on the stream");
}

/* C++ has no designated initialisers in this standard: filled in the order of the struct. */
extern "C" const struct smg_kernels_type smg_kernels_cuda = {"cuda",
                                                             cuda_open,
                                                             cuda_close,
                                                             cuda_alloc,
                                                             cuda_free,
                                                             cuda_copy,
                                                             cuda_fill,
                                                             cuda_stream_open,
                                                             cuda_stream_close,
                                                             cuda_stream_sync,
#define ENTRY(name, text) smg_cuda_##name,
                                                             SMG_KERNEL_MAP(ENTRY)
#undef ENTRY
};
