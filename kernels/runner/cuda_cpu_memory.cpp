/* Device and pinned memory: which is which is known, so copies and launches can be checked as strictly as a GPU would. */
#include "kernels/runner/cuda_cpu_internal.h"

#include <pthread.h>

namespace
{

enum kind { DEVICE, PINNED };

struct allocation {
    unsigned char *base;
    size_t bytes;
    enum kind kind;
};

/* What is allocated, in no order. */
struct allocation *table;
size_t n_table, table_capacity;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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
cudaError_t copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows,
                 enum cudaMemcpyKind kind)
{
    if (bytes == 0 || rows == 0) {
        return cudaSuccess;
    }
    if (!to || !from || bytes > to_pitch || bytes > from_pitch ||
        !copy_allowed(to, from, (rows - 1) * from_pitch + bytes, kind)) {
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

} // namespace

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

size_t smg_cuda_allocations(void)
{
    return n_table;
}

extern "C" {

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    SMG_CUDA_CALL(allocate(p, bytes, DEVICE));
}

cudaError_t cudaFree(void *p)
{
    SMG_CUDA_CALL(release(p, DEVICE));
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    SMG_CUDA_STREAM_CALL(stream, allocate(p, bytes, DEVICE));
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    SMG_CUDA_STREAM_CALL(stream, release(p, DEVICE));
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    SMG_CUDA_CALL(allocate(p, bytes, PINNED));
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    SMG_CUDA_CALL(allocate(p, bytes, PINNED));
}

cudaError_t cudaFreeHost(void *p)
{
    SMG_CUDA_CALL(release(p, PINNED));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    SMG_CUDA_CALL(copy(to, bytes, from, bytes, bytes, 1, kind));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    SMG_CUDA_STREAM_CALL(stream, copy(to, bytes, from, bytes, bytes, 1, kind));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows,
                         enum cudaMemcpyKind kind)
{
    SMG_CUDA_CALL(copy(to, to_pitch, from, from_pitch, bytes, rows, kind));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    SMG_CUDA_STREAM_CALL(stream, copy(to, to_pitch, from, from_pitch, bytes, rows, kind));
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
    SMG_CUDA_CALL(set(p, value, bytes));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    SMG_CUDA_STREAM_CALL(stream, set(p, value, bytes));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)1 << 30;
    SMG_CUDA_CALL(cudaSuccess);
}

} // extern "C"
