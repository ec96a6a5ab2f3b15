/*
 * The CUDA runtime calls that host code of the kernels makes, for one device. Streams do at once what they are given. Arguments are
 * checked as strictly as a GPU would: copies must name the memory they say, kernels may touch only device and pinned memory.
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

enum kind { DEVICE, PINNED };

struct allocation {
    unsigned char *base;
    size_t bytes;
    enum kind kind;
};

/* What is allocated, in no order. A table of handles beside it is not needed: they are counted. */
struct allocation *table;
size_t n_table, table_capacity, n_handles;
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

void device_protect(const struct allocation *a)
{
    (void)a;
#ifdef SMG_CUDA_ASAN
    if (a->kind == DEVICE) {
        __asan_poison_memory_region(a->base, a->bytes);
    }
#endif
}

void device_unprotect(const struct allocation *a)
{
    (void)a;
#ifdef SMG_CUDA_ASAN
    if (a->kind == DEVICE) {
        __asan_unpoison_memory_region(a->base, a->bytes);
    }
#endif
}

/* The allocation that holds p, else the one that p is the end of; NULL: none. */
struct allocation *find(const volatile void *p)
{
    struct allocation *ends = nullptr;

    for (size_t i = 0; i < n_table; i++) {
        const uintptr_t offset = (uintptr_t)p - (uintptr_t)table[i].base;
        if (offset < table[i].bytes) {
            return &table[i];
        }
        if (offset == table[i].bytes) {
            ends = &table[i];
        }
    }
    return ends;
}

cudaError_t allocate(void **out, size_t bytes, enum kind kind)
{
    struct allocation *grown;
    void *p = nullptr;
    cudaError_t status = cudaSuccess;

    if (!out) {
        return cudaErrorInvalidValue;
    }
    *out = nullptr;
    if (bytes == 0) {
        return cudaSuccess;
    }
    pthread_mutex_lock(&lock);
    if (n_table == table_capacity) {
        grown = (struct allocation *)realloc(table, (table_capacity * 2 + 16) * sizeof *table);
        if (grown) {
            table = grown;
            table_capacity = table_capacity * 2 + 16;
        }
    }
    if (n_table == table_capacity || posix_memalign(&p, 256, bytes) != 0) {
        status = cudaErrorMemoryAllocation;
    } else {
        /* NaN, so that reading what was never written shows. */
        memset(p, 0xff, bytes);
#ifdef SMG_CUDA_MSAN
        __msan_poison(p, bytes);
#endif
        table[n_table] = {(unsigned char *)p, bytes, kind};
        device_protect(&table[n_table++]);
        *out = p;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cudaError_t release(void *p, enum kind kind)
{
    cudaError_t status = cudaErrorInvalidValue;

    if (!p) {
        return cudaSuccess;
    }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_table; i++) {
        if (table[i].base == p && table[i].kind == kind) {
            device_unprotect(&table[i]);
            table[i] = table[--n_table];
            free(p);
            status = cudaSuccess;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Is [p, p + bytes) device memory (wanted), or surely no device memory (not wanted)? */
bool is_where(const void *p, size_t bytes, bool device)
{
    const struct allocation *a = find(p);

    if (!device) {
        return !a || a->kind != DEVICE || p == a->base + a->bytes;
    }
    return a && a->kind == DEVICE && bytes <= a->bytes - (size_t)((const unsigned char *)p - a->base);
}

bool copy_allowed(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return is_where(to, bytes, false) && is_where(from, bytes, false);
    case cudaMemcpyHostToDevice:
        return is_where(to, bytes, true) && is_where(from, bytes, false);
    case cudaMemcpyDeviceToHost:
        return is_where(to, bytes, false) && is_where(from, bytes, true);
    case cudaMemcpyDeviceToDevice:
        return is_where(to, bytes, true) && is_where(from, bytes, true);
    case cudaMemcpyDefault:
        return true;
    default:
        return false;
    }
}

/* Rows of `bytes` at the given pitches. */
cudaError_t copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows, enum cudaMemcpyKind kind)
{
    if (bytes == 0 || rows == 0) {
        return cudaSuccess;
    }
    if (!to || !from || bytes > to_pitch || bytes > from_pitch || !copy_allowed(to, from, (rows - 1) * from_pitch + bytes, kind)) {
        return cudaErrorInvalidValue;
    }
    smg_cuda_device_open();
    for (size_t i = 0; i < rows; i++) {
        memmove((char *)to + i * to_pitch, (const char *)from + i * from_pitch, bytes);
    }
    smg_cuda_device_close();
    return cudaSuccess;
}

cudaError_t set(void *p, int value, size_t bytes)
{
    if (bytes > 0 && !is_where(p, bytes, true)) {
        return cudaErrorInvalidValue;
    }
    smg_cuda_device_open();
    memset(p, value, bytes);
    smg_cuda_device_close();
    return cudaSuccess;
}

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

/* The default stream is NULL. */
cudaError_t check_stream(cudaStream_t stream)
{
    const struct smg_cuda_handle *h = (const struct smg_cuda_handle *)stream;
    return !h || h->kind == 's' ? cudaSuccess : cudaErrorInvalidResourceHandle;
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

/* A call: one that shall fail does so before it does anything. */
#define CALL(expression) return smg_cuda_status(smg_cuda_injected() ? cudaErrorUnknown : (expression))

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
    return n_table + n_handles;
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

void smg_cuda_check_pointer(const volatile void *p, int argument)
{
    if (p && !find(p)) {
        smg_cuda_die("launch: argument %d of the kernel points to memory that a kernel cannot reach", argument);
    }
}

void smg_cuda_device_open(void)
{
    for (size_t i = 0; i < n_table; i++) {
        device_unprotect(&table[i]);
    }
}

void smg_cuda_device_close(void)
{
    for (size_t i = 0; i < n_table; i++) {
        device_protect(&table[i]);
    }
}

extern "C" {

/* ---- Memory ---- */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    CALL(allocate(p, bytes, DEVICE));
}

cudaError_t cudaFree(void *p)
{
    CALL(release(p, DEVICE));
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    CALL(check_stream(stream) == cudaSuccess ? allocate(p, bytes, DEVICE) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    CALL(check_stream(stream) == cudaSuccess ? release(p, DEVICE) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    CALL(allocate(p, bytes, PINNED));
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    CALL(allocate(p, bytes, PINNED));
}

cudaError_t cudaFreeHost(void *p)
{
    CALL(release(p, PINNED));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    CALL(copy(to, bytes, from, bytes, bytes, 1, kind));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CALL(check_stream(stream) == cudaSuccess ? copy(to, bytes, from, bytes, bytes, 1, kind) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows,
                         enum cudaMemcpyKind kind)
{
    CALL(copy(to, to_pitch, from, from_pitch, bytes, rows, kind));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CALL(check_stream(stream) == cudaSuccess ? copy(to, to_pitch, from, from_pitch, bytes, rows, kind)
                                             : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind)
{
    if (smg_cuda_injected()) {
        return smg_cuda_status(cudaErrorUnknown);
    }
    memcpy((char *)const_cast<void *>(symbol) + offset, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    CALL(set(p, value, bytes));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    CALL(check_stream(stream) == cudaSuccess ? set(p, value, bytes) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)1 << 30;
    CALL(cudaSuccess);
}

/* ---- Streams and events; an event's time is the host's ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    CALL(handle_create((struct smg_cuda_handle **)stream, 's', false));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    CALL(handle_create((struct smg_cuda_handle **)stream, 's', false));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    CALL(handle_destroy((struct smg_cuda_handle *)stream, 's'));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CALL(check_stream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CALL(check_stream(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    CALL(event_of(event) ? check_stream(stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    CALL(handle_create((struct smg_cuda_handle **)event, 'e', true));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    CALL(handle_create((struct smg_cuda_handle **)event, 'e', !(flags & cudaEventDisableTiming)));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    CALL(handle_destroy((struct smg_cuda_handle *)event, 'e'));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct smg_cuda_handle *h = event_of(event);

    if (smg_cuda_injected()) {
        return smg_cuda_status(cudaErrorUnknown);
    }
    if (!h || check_stream(stream) != cudaSuccess) {
        return smg_cuda_status(cudaErrorInvalidResourceHandle);
    }
    clock_gettime(CLOCK_MONOTONIC, &h->at);
    h->recorded = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CALL(event_of(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CALL(event_of(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
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
    CALL(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    CALL(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    CALL(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
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
    CALL(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
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
    CALL(device == 0 ? status : cudaErrorInvalidDevice);
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
    CALL(cudaSuccess);
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
