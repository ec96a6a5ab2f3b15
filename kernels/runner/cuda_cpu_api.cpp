/* Runtime calls about streams, events and the one device; errors, and faults on demand. Streams do at once what they are given.
 */
#include "kernels/runner/cuda_cpu_control.h"
#include "kernels/runner/cuda_cpu_internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <time.h>

/* A stream or an event. */
struct smg_cuda_handle {
    char kind; /* 's' or 'e' */
    bool timing, recorded;
    struct timespec at;
};

namespace
{

size_t n_handles;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

cudaError_t last_error = cudaSuccess;
unsigned long n_calls, fail_at;

/* Kernels that asked for more than 48 KiB of dynamic shared memory. */
constexpr size_t SMEM_DEFAULT = 48 * 1024;
constexpr unsigned MAX_KERNELS = 256;
struct {
    const void *kernel;
    size_t bytes;
} smem_limits[MAX_KERNELS];
unsigned n_smem_limits;

cudaError_t handle_create(struct smg_cuda_handle **out, char kind, bool timing)
{
    struct smg_cuda_handle *h = (struct smg_cuda_handle *)calloc(1, sizeof *h);

    if (!out || !h) {
        free(h);
        return out ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    }
    h->kind = kind;
    h->timing = timing;
    pthread_mutex_lock(&lock);
    n_handles++;
    pthread_mutex_unlock(&lock);
    *out = h;
    return cudaSuccess;
}

cudaError_t handle_destroy(struct smg_cuda_handle *h, char kind)
{
    if (!h || h->kind != kind) {
        return cudaErrorInvalidResourceHandle;
    }
    h->kind = 0;
    free(h);
    pthread_mutex_lock(&lock);
    n_handles--;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

struct smg_cuda_handle *event_of(cudaEvent_t event)
{
    struct smg_cuda_handle *h = (struct smg_cuda_handle *)event;
    return h && h->kind == 'e' ? h : nullptr;
}

const struct {
    cudaError_t status;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

} // namespace

void smg_cuda_die(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("cuda: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

cudaError_t smg_cuda_status(cudaError_t status)
{
    if (status != cudaSuccess && status != cudaErrorNotReady) {
        last_error = status;
    }
    return status;
}

bool smg_cuda_injected(void)
{
    return __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED) == fail_at;
}

void smg_cuda_fail(unsigned n)
{
    fail_at = n ? n_calls + n : 0;
}

unsigned long smg_cuda_calls(void)
{
    return n_calls;
}

size_t smg_cuda_live(void)
{
    return smg_cuda_allocations() + n_handles;
}

/* The default stream is NULL. */
cudaError_t smg_cuda_check_stream(cudaStream_t stream)
{
    const struct smg_cuda_handle *h = (const struct smg_cuda_handle *)stream;
    return !h || h->kind == 's' ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

size_t smg_cuda_smem_limit(const void *kernel)
{
    for (unsigned i = 0; i < n_smem_limits; i++) {
        if (smem_limits[i].kernel == kernel) {
            return smem_limits[i].bytes;
        }
    }
    return SMEM_DEFAULT;
}

extern "C" {

/* ---- Streams and events; an event's time is the host's ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    SMG_CUDA_CALL(handle_create((struct smg_cuda_handle **)stream, 's', false));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    SMG_CUDA_CALL(handle_create((struct smg_cuda_handle **)stream, 's', false));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    SMG_CUDA_CALL(handle_destroy((struct smg_cuda_handle *)stream, 's'));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    SMG_CUDA_CALL(smg_cuda_check_stream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    SMG_CUDA_CALL(smg_cuda_check_stream(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    SMG_CUDA_CALL(event_of(event) ? smg_cuda_check_stream(stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    SMG_CUDA_CALL(handle_create((struct smg_cuda_handle **)event, 'e', true));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    SMG_CUDA_CALL(handle_create((struct smg_cuda_handle **)event, 'e', !(flags & cudaEventDisableTiming)));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    SMG_CUDA_CALL(handle_destroy((struct smg_cuda_handle *)event, 'e'));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct smg_cuda_handle *h = event_of(event);

    if (smg_cuda_injected()) {
        return smg_cuda_status(cudaErrorUnknown);
    }
    if (!h || smg_cuda_check_stream(stream) != cudaSuccess) {
        return smg_cuda_status(cudaErrorInvalidResourceHandle);
    }
    clock_gettime(CLOCK_MONOTONIC, &h->at);
    h->recorded = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    SMG_CUDA_CALL(event_of(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    SMG_CUDA_CALL(event_of(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    const struct smg_cuda_handle *a = event_of(start), *b = event_of(end);

    if (smg_cuda_injected()) {
        return smg_cuda_status(cudaErrorUnknown);
    }
    if (!a || !b || !a->timing || !b->timing || !a->recorded || !b->recorded) {
        return smg_cuda_status(cudaErrorInvalidResourceHandle);
    }
    *ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 + (double)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6);
    return cudaSuccess;
}

/* ---- The device ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    SMG_CUDA_CALL(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    SMG_CUDA_CALL(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    SMG_CUDA_CALL(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "CPU runner");
    properties->major = 9;
    properties->warpSize = warpSize;
    properties->multiProcessorCount = 4;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->sharedMemPerBlock = SMEM_DEFAULT;
    properties->sharedMemPerBlockOptin = SMG_CUDA_SMEM_MAX;
    properties->totalGlobalMem = (size_t)1 << 30;
    SMG_CUDA_CALL(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    static const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } known[] = {
        {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMultiProcessorCount, 4},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrComputeCapabilityMajor, 9},
        {cudaDevAttrComputeCapabilityMinor, 0},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)SMEM_DEFAULT},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, SMG_CUDA_SMEM_MAX},
    };
    cudaError_t status = cudaErrorInvalidValue;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            status = cudaSuccess;
        }
    }
    SMG_CUDA_CALL(device == 0 ? status : cudaErrorInvalidDevice);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    unsigned i = 0;

    if (smg_cuda_injected()) {
        return smg_cuda_status(cudaErrorUnknown);
    }
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
        return cudaSuccess; /* a hint */
    }
    while (i < n_smem_limits && smem_limits[i].kernel != kernel) {
        i++;
    }
    if (value < 0 || value > SMG_CUDA_SMEM_MAX || i == MAX_KERNELS) {
        return smg_cuda_status(cudaErrorInvalidValue);
    }
    smem_limits[i] = {kernel, (size_t)value};
    n_smem_limits += i == n_smem_limits;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    SMG_CUDA_CALL(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t status = last_error;
    last_error = cudaSuccess;
    return status;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t status)
{
    for (const auto &e : errors) {
        if (e.status == status) {
            return e.text;
        }
    }
    return "error";
}

const char *cudaGetErrorName(cudaError_t status)
{
    for (const auto &e : errors) {
        if (e.status == status) {
            return e.name;
        }
    }
    return "cudaError";
}

} // extern "C"
