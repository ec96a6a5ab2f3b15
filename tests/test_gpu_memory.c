/* Memory of a GPU, against a driver that is none: its calls are answered here (--wrap of dlopen and dlsym), with memory of the
 * host. Every call fails once; and the bench writes between two such memories, registered with libfabric's tcp. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/bench.h"
#include "emu/fabric.h"
#include "emu/gpu_memory.h"

#ifdef HAVE_CUDA

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The driver ---- */

enum call { NONE, LIBRARY, SYMBOL, INIT, DEVICE, ATTRIBUTE, RETAIN, CURRENT, ALLOC, HANDLE, PUT, GET, CALLS };

static enum call failing;
static int contexts, blocks, without_dmabuf;
static size_t block_bytes;
static char handle_of_driver;

static CUresult answer(enum call c)
{
    return failing == c ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_init(unsigned flags)
{
    (void)flags;
    return answer(INIT);
}

static CUresult fake_name(CUresult error, const char **name)
{
    (void)error;
    *name = "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
}

static CUresult fake_device(CUdevice *device, int number)
{
    *device = 7;
    return number ? CUDA_ERROR_INVALID_DEVICE : answer(DEVICE);
}

static CUresult fake_attribute(int *value, CUdevice_attribute what, CUdevice device)
{
    assert_int_equal(what, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    assert_int_equal(device, 7);
    *value = !without_dmabuf;
    return answer(ATTRIBUTE);
}

static CUresult fake_retain(CUcontext *context, CUdevice device)
{
    assert_int_equal(device, 7);
    *context = (CUcontext)&contexts;
    contexts += failing != RETAIN;
    return answer(RETAIN);
}

static CUresult fake_release(CUdevice device)
{
    assert_int_equal(device, 7);
    contexts--;
    return CUDA_SUCCESS;
}

static CUresult fake_current(CUcontext context)
{
    assert_ptr_equal(context, &contexts);
    return answer(CURRENT);
}

static CUresult fake_alloc(CUdeviceptr *address, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (failing == ALLOC) {
        munmap(p, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = (CUdeviceptr)(uintptr_t)p;
    block_bytes = bytes;
    blocks++;
    return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr address)
{
    munmap((void *)(uintptr_t)address, block_bytes);
    blocks--;
    return CUDA_SUCCESS;
}

static CUresult fake_handle(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type, unsigned long long flags)
{
    int fd;

    assert_true(address && bytes == block_bytes && bytes % (2u << 20) == 0 && !flags);
    assert_int_equal(type, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
    if (failing == HANDLE)
        return CUDA_ERROR_NOT_SUPPORTED;
    fd = dup(0);
    assert_true(fd >= 0);
    memcpy(handle, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

static CUresult fake_put(CUdeviceptr to, const void *from, size_t bytes)
{
    if (failing != PUT)
        memcpy((void *)(uintptr_t)to, from, bytes);
    return answer(PUT);
}

static CUresult fake_get(void *to, CUdeviceptr from, size_t bytes)
{
    if (failing != GET)
        memcpy(to, (const void *)(uintptr_t)from, bytes);
    return answer(GET);
}

__typeof__(dlopen) __real_dlopen, __wrap_dlopen;
__typeof__(dlsym) __real_dlsym, __wrap_dlsym;
__typeof__(dlclose) __real_dlclose, __wrap_dlclose;
__typeof__(dlerror) __real_dlerror, __wrap_dlerror;

void *__wrap_dlopen(const char *name, int flags)
{
    if (strcmp(name, "libcuda.so.1"))
        return __real_dlopen(name, flags);
    return failing == LIBRARY ? NULL : &handle_of_driver;
}

char *__wrap_dlerror(void)
{
    static char why[] = "no such library";

    return failing == LIBRARY ? why : __real_dlerror();
}

int __wrap_dlclose(void *library)
{
    return library == &handle_of_driver ? 0 : __real_dlclose(library);
}

#define ANSWER(symbol, function)                                                                                                 \
    if (!strcmp(name, symbol)) {                                                                                                 \
        __typeof__(&function) f = function;                                                                                      \
        memcpy(&p, &f, sizeof p);                                                                                                \
    }

void *__wrap_dlsym(void *library, const char *name)
{
    void *p = NULL;

    if (library != &handle_of_driver)
        return __real_dlsym(library, name);
    ANSWER("cuInit", fake_init)
    ANSWER("cuGetErrorName", fake_name)
    ANSWER("cuDeviceGet", fake_device)
    ANSWER("cuDeviceGetAttribute", fake_attribute)
    ANSWER("cuDevicePrimaryCtxRetain", fake_retain)
    ANSWER("cuDevicePrimaryCtxRelease_v2", fake_release)
    ANSWER("cuCtxSetCurrent", fake_current)
    ANSWER("cuMemAlloc_v2", fake_alloc)
    ANSWER("cuMemFree_v2", fake_free)
    ANSWER("cuMemcpyHtoD_v2", fake_put)
    ANSWER("cuMemcpyDtoH_v2", fake_get)
    if (failing != SYMBOL)
        ANSWER("cuMemGetHandleForAddressRange", fake_handle)
    return p;
}

/* The fake's addresses are the host's. */
__typeof__(smg_fabric_register_gpu) __real_smg_fabric_register_gpu, __wrap_smg_fabric_register_gpu;
static int registers;

int __wrap_smg_fabric_register_gpu(struct smg_fabric *f, const struct smg_gpu_memory *m, struct smg_mr **out,
                                   struct smg_diag *diag)
{
    if (!registers)
        return __real_smg_fabric_register_gpu(f, m, out, diag);
    return smg_fabric_register(f, (void *)(uintptr_t)m->address, m->bytes, out, diag);
}

/* ---- Tests ---- */

/* In the order of the calls: the library is loaded once and kept, so what it lacks comes first. */
static void test_each_call_fails(void **state)
{
    static const struct {
        enum call call;
        int status;
        const char *text;
    } cases[] = {
        {LIBRARY, SMG_ERR_UNSUPPORTED, "GPU memory: no CUDA driver here (no such library)"},
        {SYMBOL, SMG_ERR_UNSUPPORTED, "GPU memory: the CUDA driver is too old: it knows no dma-buf"},
        {INIT, SMG_ERR_UNSUPPORTED, "GPU memory: cuInit: CUDA_ERROR_INVALID_VALUE"},
        {DEVICE, SMG_ERR_UNSUPPORTED, "GPU memory: there is no GPU 0"},
        {ATTRIBUTE, SMG_ERR_UNSUPPORTED,
         "GPU memory: GPU 0 has no dma-buf: it takes the open kernel modules of the driver, and a GPU for servers"},
        {RETAIN, SMG_ERR_UNSUPPORTED, "GPU memory: cuDevicePrimaryCtxRetain: CUDA_ERROR_INVALID_VALUE"},
        {CURRENT, SMG_ERR_UNSUPPORTED, "GPU memory: cuCtxSetCurrent: CUDA_ERROR_INVALID_VALUE"},
        {ALLOC, SMG_ERR_NOMEM, "GPU memory: cuMemAlloc: CUDA_ERROR_INVALID_VALUE"},
        {HANDLE, SMG_ERR_UNSUPPORTED, "GPU memory: cuMemGetHandleForAddressRange: CUDA_ERROR_INVALID_VALUE"},
    };
    struct smg_gpu_memory m = {0};
    struct smg_diag diag = {""};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        failing = cases[i].call;
        assert_int_equal(smg_gpu_memory_take(0, 100, &m, &diag), cases[i].status);
        assert_string_equal(diag.text, cases[i].text);
        assert_int_equal(contexts, 0);
        assert_int_equal(blocks, 0);
    }
    failing = NONE;
    without_dmabuf = 1;
    assert_int_equal(smg_gpu_memory_take(0, 100, &m, &diag), SMG_ERR_UNSUPPORTED);
    without_dmabuf = 0;
    assert_int_equal(smg_gpu_memory_take(1, 100, &m, &diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "GPU memory: there is no GPU 1");
    assert_int_equal(smg_gpu_memory_take(0, 0, &m, &diag), SMG_ERR_INVALID);
    smg_gpu_memory_free(&m); /* nothing */
    assert_int_equal(contexts + blocks, 0);
}

static void test_copies(void **state)
{
    const char there[] = "seventeen letters";
    char back[sizeof there] = "";
    struct smg_gpu_memory m;
    struct smg_diag diag = {""};

    (void)state;
    failing = NONE;
    assert_int_equal(smg_gpu_memory_take(0, 100, &m, &diag), SMG_OK);
    assert_int_equal(m.bytes, 2u << 20);
    assert_int_equal(smg_gpu_memory_put(&m, 4096, there, sizeof there, &diag), SMG_OK);
    assert_int_equal(smg_gpu_memory_get(&m, 4096, back, sizeof back, &diag), SMG_OK);
    assert_string_equal(back, there);
    assert_int_equal(smg_gpu_memory_put(&m, m.bytes - 3, there, 3, &diag), SMG_OK);
    assert_int_equal(smg_gpu_memory_put(&m, m.bytes - 3, there, 4, &diag), SMG_ERR_RANGE);
    assert_int_equal(smg_gpu_memory_get(&m, SIZE_MAX, back, 1, &diag), SMG_ERR_RANGE);
    failing = PUT;
    assert_int_equal(smg_gpu_memory_put(&m, 0, there, 4, &diag), SMG_ERR_IO);
    assert_string_equal(diag.text, "GPU memory: cuMemcpyHtoD: CUDA_ERROR_INVALID_VALUE");
    failing = GET;
    assert_int_equal(smg_gpu_memory_get(&m, 0, back, 4, &diag), SMG_ERR_IO);
    failing = NONE;
    smg_gpu_memory_free(&m);
    assert_int_equal(contexts + blocks, 0);
    assert_int_equal(m.address, 0);
}

static int bench(struct smg_diag *diag)
{
    const struct smg_bench_config config = {.fabric = "ofi",
                                            .block = {{4096, 100000}, 2},
                                            .batch = {{2}, 1},
                                            .queues = {{1}, 1},
                                            .entries = {{3}, 1},
                                            .entry_bytes = 64,
                                            .depth = 4,
                                            .on_gpu = 1,
                                            .samples = 3,
                                            .seconds = 0.01,
                                            .timeout_s = 60};
    struct smg_bench_results *r = calloc(1, sizeof *r);
    int status;

    assert_non_null(r);
    status = smg_bench_run(&config, r, diag);
    assert_int_equal(r->n_masked, status ? 0 : 2);
    free(r);
    return status;
}

/* Blocks come from one GPU and arrive on the other, and are compared there. */
static void test_bench(void **state)
{
    struct smg_diag diag = {""};

    (void)state;
    if (!smg_fabric_find("ofi") || smg_fabric_load(smg_fabric_find("ofi"), &diag))
        skip();
    registers = 0;
    assert_int_equal(bench(&diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "fabric ofi takes no memory of a GPU; --fabric verbs may");
    registers = 1;
    if (bench(&diag))
        fail_msg("%s", diag.text);
    failing = PUT; /* then what arrives is not what was meant */
    assert_int_equal(bench(&diag), SMG_ERR_IO);
    failing = NONE;
    assert_int_equal(contexts + blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_call_fails), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_bench)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_absent(void **state)
{
    struct smg_gpu_memory m = {0};
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_gpu_memory_take(0, 1, &m, &diag), SMG_ERR_UNSUPPORTED);
    assert_string_equal(diag.text, "GPU memory: this program was built without CUDA");
    smg_gpu_memory_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_absent)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
