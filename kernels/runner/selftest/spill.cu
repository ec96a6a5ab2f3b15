/* Needs more registers than it may have: tests/nvcc_gates.sh checks that its gate refuses it. Built by nothing else. */
#include <cuda_runtime.h>

/* 1024 threads: 64 registers each at most; 128 values are live. */
__global__ void __launch_bounds__(1024) spill_kernel(float *to, const float *from)
{
    float v[128];

#pragma unroll
    for (int i = 0; i < 128; i++) {
        v[i] = from[i * 1024 + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 128; i++) {
        to[i * 1024 + threadIdx.x] = v[127 - i] * v[i];
    }
}
