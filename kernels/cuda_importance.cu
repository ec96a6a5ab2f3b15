/* Block importance, Eq. 1. One thread a block of tokens. */
#include "kernels/cuda_common.cuh"

static __global__ void importance_mean(struct smg_importance_mean_args a)
{
    const uint32_t m = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    uint32_t n = 0;

    if (m >= a.blocks) /* guard; no barrier follows */
        return;
    for (uint32_t r = 0; r < a.requests; r++) {
        const uint64_t i = (uint64_t)r * a.blocks + m; /* [r][m] */
        if (!a.block_tokens[i] || !a.steps[r])
            continue;
        sum += (float)a.count[i] / ((float)a.steps[r] * (float)a.heads * (float)a.block_tokens[i]);
        n++;
    }
    a.importance[m] = n ? sum / (float)n : 0;
}

extern "C" int smg_cuda_importance_mean(struct smg_kernels *k, const struct smg_importance_mean_args *a,
                                        struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(smg_div_up(a->blocks, 128)), 128, 0);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, importance_mean, *a), "importance_mean");
}
