#include "config.h"

#include "emu/gpu_memory.h"

#include "emu/fabric_port.h"

#ifdef HAVE_CUDA

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define SONAME "libcuda.so.1"
/* dma-bufs are of whole pages of the device. */
#define PAGE_BYTES ((size_t)2 << 20)

/* ---- The driver ---- */

static struct {
    CUresult (*init)(unsigned);
    CUresult (*error_name)(CUresult, const char **);
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
    CUresult (*current)(CUcontext);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*free)(CUdeviceptr);
    CUresult (*handle)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);
    CUresult (*put)(CUdeviceptr, const void *, size_t);
    CUresult (*get)(void *, CUdeviceptr, size_t);
} cu;

static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol); /* ISO C has no conversion from void * to a function */
    return !symbol;
}

static int find_all(void *library)
{
    return find(library, "cuInit", &cu.init) || find(library, "cuGetErrorName", &cu.error_name) ||
           find(library, "cuDeviceGet", &cu.device_get) || find(library, "cuDeviceGetAttribute", &cu.attribute) ||
           find(library, "cuDevicePrimaryCtxRetain", &cu.retain) || find(library, "cuDevicePrimaryCtxRelease_v2", &cu.release) ||
           find(library, "cuCtxSetCurrent", &cu.current) || find(library, "cuMemAlloc_v2", &cu.alloc) ||
           find(library, "cuMemFree_v2", &cu.free) || find(library, "cuMemGetHandleForAddressRange", &cu.handle) ||
           find(library, "cuMemcpyHtoD_v2", &cu.put) || find(library, "cuMemcpyDtoH_v2", &cu.get);
}

static int load(struct smg_diag *diag)
{
    static void *library; /* kept until the program ends */

    if (library)
        return SMG_OK;
    library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "GPU memory: no CUDA driver here (%.200s)", dlerror());
    if (find_all(library)) {
        dlclose(library);
        library = NULL;
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "GPU memory: the CUDA driver is too old: it knows no dma-buf");
    }
    return SMG_OK;
}

static int refused(CUresult error, const char *what, int status, struct smg_diag *diag)
{
    const char *name = NULL;

    if (cu.error_name(error, &name) || !name)
        name = "unknown error";
    return smg_fabric_fail(diag, status, "GPU memory: %s: %s", what, name);
}

/* ---- Memory ---- */

static int open_device(int number, CUdevice *out, struct smg_diag *diag)
{
    CUresult error = cu.init(0);
    int can = 0;

    if (error)
        return refused(error, "cuInit", SMG_ERR_UNSUPPORTED, diag);
    error = cu.device_get(out, number);
    if (error)
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "GPU memory: there is no GPU %d", number);
    error = cu.attribute(&can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, *out);
    if (error || !can)
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED,
                               "GPU memory: GPU %d has no dma-buf: it takes the open kernel modules of the driver, and a GPU "
                               "for servers",
                               number);
    return SMG_OK;
}

static int allocate(struct smg_gpu_memory *m, struct smg_diag *diag)
{
    CUdeviceptr address = 0;
    CUresult error = cu.alloc(&address, m->bytes);

    if (error)
        return refused(error, "cuMemAlloc", SMG_ERR_NOMEM, diag);
    error = cu.handle(&m->dmabuf, address, m->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (error) {
        cu.free(address);
        return refused(error, "cuMemGetHandleForAddressRange", SMG_ERR_UNSUPPORTED, diag);
    }
    m->address = address;
    return SMG_OK;
}

int smg_gpu_memory_take(int device, size_t bytes, struct smg_gpu_memory *out, struct smg_diag *diag)
{
    struct smg_gpu_memory m = {.device = device, .bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES};
    CUcontext context = NULL;
    CUdevice gpu = 0;
    CUresult error;
    int status = bytes ? load(diag) : smg_fabric_fail(diag, SMG_ERR_INVALID, "GPU memory: no bytes asked for");

    if (!status)
        status = open_device(device, &gpu, diag);
    if (status)
        return status;
    error = cu.retain(&context, gpu);
    if (error)
        return refused(error, "cuDevicePrimaryCtxRetain", SMG_ERR_UNSUPPORTED, diag);
    error = cu.current(context);
    status = error ? refused(error, "cuCtxSetCurrent", SMG_ERR_UNSUPPORTED, diag) : allocate(&m, diag);
    if (status) {
        cu.release(gpu);
        return status;
    }
    *out = m;
    return SMG_OK;
}

void smg_gpu_memory_free(struct smg_gpu_memory *m)
{
    CUdevice gpu;

    if (!m->address)
        return;
    close(m->dmabuf);
    cu.free(m->address);
    if (!cu.device_get(&gpu, m->device))
        cu.release(gpu);
    memset(m, 0, sizeof *m);
}

static int fits(const struct smg_gpu_memory *m, size_t offset, size_t bytes, struct smg_diag *diag)
{
    if (offset <= m->bytes && bytes <= m->bytes - offset)
        return SMG_OK;
    return smg_fabric_fail(diag, SMG_ERR_RANGE, "GPU memory: %zu bytes at %zu of %zu", bytes, offset, m->bytes);
}

int smg_gpu_memory_put(const struct smg_gpu_memory *m, size_t offset, const void *from, size_t bytes, struct smg_diag *diag)
{
    int status = fits(m, offset, bytes, diag);
    CUresult error = status || !bytes ? CUDA_SUCCESS : cu.put(m->address + offset, from, bytes);

    return error ? refused(error, "cuMemcpyHtoD", SMG_ERR_IO, diag) : status;
}

int smg_gpu_memory_get(const struct smg_gpu_memory *m, size_t offset, void *to, size_t bytes, struct smg_diag *diag)
{
    int status = fits(m, offset, bytes, diag);
    CUresult error = status || !bytes ? CUDA_SUCCESS : cu.get(to, m->address + offset, bytes);

    return error ? refused(error, "cuMemcpyDtoH", SMG_ERR_IO, diag) : status;
}

#else

static int absent(struct smg_diag *diag)
{
    return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "GPU memory: this program was built without CUDA");
}

int smg_gpu_memory_take(int device, size_t bytes, struct smg_gpu_memory *out, struct smg_diag *diag)
{
    (void)device, (void)bytes, (void)out;
    return absent(diag);
}

void smg_gpu_memory_free(struct smg_gpu_memory *m)
{
    (void)m;
}

int smg_gpu_memory_put(const struct smg_gpu_memory *m, size_t offset, const void *from, size_t bytes, struct smg_diag *diag)
{
    (void)m, (void)offset, (void)from, (void)bytes;
    return absent(diag);
}

int smg_gpu_memory_get(const struct smg_gpu_memory *m, size_t offset, void *to, size_t bytes, struct smg_diag *diag)
{
    (void)m, (void)offset, (void)to, (void)bytes;
    return absent(diag);
}

#endif
