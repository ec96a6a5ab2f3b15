/* The runner's runtime calls: what they check, faults on demand, and the count of what lives. */
#include "kernels/runner/cuda_cpu_control.h"
#include "kernels/runner/selftest/selftest.h"

#include <stdio.h>
#include <string.h>

int selftest_api(void);

static int failed;

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            printf("fail: api: %s\n", #condition);                                                                               \
            failed++;                                                                                                            \
        }                                                                                                                        \
    } while (0)

static void test_copies(void)
{
    char host[64] = "what goes there", back[64] = "";
    void *d = NULL, *pinned = NULL;

    CHECK(cudaMalloc(&d, sizeof host) == cudaSuccess && cudaMallocHost(&pinned, sizeof host) == cudaSuccess);
    CHECK(smg_cuda_live() == 2);
    CHECK(cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(pinned, d, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(cudaMemcpyAsync(back, pinned, sizeof host, cudaMemcpyHostToHost, NULL) == cudaSuccess && !strcmp(back, host));
    /* Directions and sizes that a GPU would refuse. */
    CHECK(cudaMemcpy(host, d, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(d, d, sizeof host, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(d, host, sizeof host + 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    CHECK(cudaMemset((char *)d + 1, 0, sizeof host) == cudaErrorInvalidValue);
    CHECK(cudaMemset(host, 0, sizeof host) == cudaErrorInvalidValue);
    CHECK(cudaFree(host) == cudaErrorInvalidValue && cudaFree(pinned) == cudaErrorInvalidValue);
    /* Rows of 8 bytes, from a pitch of 16 to one of 8. */
    CHECK(cudaMemcpy2D(back, 8, d, 16, 8, 4, cudaMemcpyDeviceToHost) == cudaSuccess && !memcmp(back, "what goe", 8));
    CHECK(cudaMemcpy2D(back, 8, d, 16, 8, 5, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaFree(d) == cudaSuccess && cudaFree(d) == cudaErrorInvalidValue && cudaFree(NULL) == cudaSuccess);
    CHECK(cudaFreeHost(pinned) == cudaSuccess && smg_cuda_live() == 0);
}

static void test_launches(void)
{
    int *d = NULL;

    CHECK(cudaMalloc((void **)&d, 64) == cudaSuccess);
    CHECK(selftest_scan(d, d, 0) == cudaErrorInvalidConfiguration);
    CHECK(selftest_large(d, 1, 228 * 1024, 1) == cudaErrorInvalidValue);
    CHECK(!strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidValue"));
    CHECK(cudaFree(d) == cudaSuccess);
}

static void test_streams(void)
{
    cudaStream_t s = NULL;
    cudaEvent_t a = NULL, b = NULL;
    float ms = -1;

    CHECK(cudaStreamCreate(&s) == cudaSuccess && cudaEventCreate(&a) == cudaSuccess && cudaEventCreate(&b) == cudaSuccess);
    CHECK(smg_cuda_live() == 3);
    CHECK(cudaEventElapsedTime(&ms, a, b) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(a, s) == cudaSuccess && cudaEventRecord(b, s) == cudaSuccess && cudaEventSynchronize(b) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&ms, a, b) == cudaSuccess && ms >= 0);
    CHECK(cudaStreamSynchronize((cudaStream_t)a) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamWaitEvent(s, b, 0) == cudaSuccess && cudaStreamSynchronize(s) == cudaSuccess);
    CHECK(cudaEventDestroy(a) == cudaSuccess && cudaEventDestroy(b) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess);
    CHECK(smg_cuda_live() == 0);
}

/* The first, second, ... call fails; nothing of it happens. */
static void test_faults(void)
{
    const unsigned long before = smg_cuda_calls();
    void *d = NULL;

    smg_cuda_fail(2);
    CHECK(cudaMalloc(&d, 16) == cudaSuccess && cudaFree(d) == cudaErrorUnknown && smg_cuda_live() == 1);
    CHECK(cudaFree(d) == cudaSuccess && smg_cuda_live() == 0 && smg_cuda_calls() == before + 3);
    smg_cuda_fail(1);
    CHECK(selftest_scan(NULL, NULL, 1) == cudaErrorUnknown && cudaGetLastError() == cudaErrorUnknown);
    smg_cuda_fail(0);
}

static void test_device(void)
{
    struct cudaDeviceProp p;
    int n = 0, device = -1;

    CHECK(cudaGetDeviceCount(&n) == cudaSuccess && n == 1 && cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(cudaGetDeviceProperties(&p, 0) == cudaSuccess && p.warpSize == 32 && p.multiProcessorCount > 0);
    CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess && n == 227 * 1024);
    CHECK(smg_cuda_order("sideways", 1) == -1);
}

int selftest_api(void)
{
    test_copies();
    test_launches();
    test_streams();
    test_faults();
    test_device();
    return failed;
}
