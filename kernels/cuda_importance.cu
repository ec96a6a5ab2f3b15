/* Block importance, Eq. 1. Counting: one thread an id, whole-number atomics, so that order does not matter. Means: one thread a
 * block of tokens. */
#include "kernels/blocks.h"
#include "kernels/cuda_common.cuh"

static __global__ void importance(struct smg_importance_args a, uint64_t scale)
{
    const uint64_t ids = (uint64_t)a.rows * a.k, step = (uint64_t)gridDim.x * blockDim.x;
    const uint32_t first = a.start[0];

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < ids; i += step) {
        const int32_t id = a.index[i];
        if (smg_id_kept(id, first, a.tokens))
            atomicAdd(&a.count[smg_block_of(a.start, a.blocks, scale, (uint32_t)id)], 1u);
    }
}

extern "C" int smg_cuda_importance(struct smg_kernels *k, const struct smg_importance_args *a, struct smg_stream *stream)
{
    const uint64_t blocks = ((uint64_t)a->rows * a->k + 255) / 256;
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(blocks < 65536 ? (unsigned)blocks : 65536), 256, 0);

    return smg_cuda_status(k, cudaLaunchKernelEx(&c, importance, *a, smg_block_scale(a->tokens, a->blocks)), "importance");
}

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
