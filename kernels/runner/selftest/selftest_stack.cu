/* A kernel with an array on its stack, in a file of its own: the nvcc gate refuses what uses local memory. */
#include "kernels/runner/selftest/selftest.h"

#include <cuda_runtime.h>

/* Not inlined: the array of the caller is then real memory, on a stack that threads of several blocks use. */
static __device__ __noinline__ void insert(float *best, float v)
{
    int i = 3;

    if (v <= best[3]) {
        return;
    }
    for (; i > 0 && best[i - 1] < v; i--) {
        best[i] = best[i - 1];
    }
    best[i] = v;
}

static __global__ void largest_kernel(float *largest, const float *x, int n, int m)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};

    if (i >= n) {
        return;
    }
    for (int k = 0; k < m; k++) {
        insert(best, x[(size_t)i * m + k]);
    }
    for (int k = 0; k < 4; k++) {
        largest[i * 4 + k] = best[k];
    }
}

cudaError_t selftest_largest(float *largest, const float *x, int n, int m)
{
    cudaLaunchConfig_t c = {};

    c.gridDim = dim3((n + 63) / 64);
    c.blockDim = dim3(64);
    return cudaLaunchKernelEx(&c, largest_kernel, largest, x, n, m);
}
