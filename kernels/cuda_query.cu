/* Queries and keys on their way to scores: norm and rotation, projection, skewing. */
#include "kernels/cuda_select.cuh"
#include "kernels/turn.h"

/* ---- rotate: a block per row, a warp per head; the row's cosines and sines in shared memory ---- */

template <class T>
static __device__ void rotate_head(const struct smg_rotate_args &a, T *x, const float *cosine, const float *sine)
{
    const uint32_t half = a.head_dim / 2, lane = threadIdx.x % 32;
    float square = 0, scale = 1;

    if (a.weight) {
        for (uint32_t j = lane; j < a.head_dim; j += 32)
            square += smg_to_float(x[j]) * smg_to_float(x[j]);
        scale = 1 / sqrtf(smg_warp_sum(square) / (float)a.head_dim + a.eps);
    }
    __syncwarp(); /* elements are read by other lanes than those that write them */
    for (uint32_t j = lane; j < half; j += 32) {
        float u = smg_to_float(x[j]), v = smg_to_float(x[j + half]);
        if (a.weight) {
            u = u * scale * a.weight[j];
            v = v * scale * a.weight[j + half];
        }
        x[j] = smg_from_float<T>(u * cosine[j] - v * sine[j]);
        x[j + half] = smg_from_float<T>(v * cosine[j] + u * sine[j]);
    }
}

/* log2_theta: 0 for no rotation. */
template <class T> static __global__ void rotate(struct smg_rotate_args a, double log2_theta)
{
    const uint32_t half = a.head_dim / 2, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float *cosine = (float *)smg_smem, *sine = cosine + half; /* [half] each */

    for (uint32_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const double turns = log2_theta != 0 ? a.position[r] / 6.283185307179586476925 : 0;
        for (uint32_t j = threadIdx.x; j < half; j += blockDim.x)
            smg_turn(turns * exp2(-2.0 * j / a.head_dim * log2_theta), cosine + j, sine + j);
        __syncthreads();
        for (uint32_t h = warp; h < a.heads; h += warps) /* the same in all lanes */
            rotate_head(a, (T *)a.x + ((uint64_t)r * a.heads + h) * a.head_dim, cosine, sine);
        __syncthreads();
    }
}

extern "C" int smg_cuda_rotate(struct smg_kernels *k, const struct smg_rotate_args *a, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks(a->rows), 128, a->head_dim * sizeof(float));
    const double log2_theta = a->theta != 0 ? log2((double)a->theta) : 0;
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, rotate<T>, *a, log2_theta));
    return smg_cuda_status(k, error, "rotate");
}

/* ---- project: a block has 32 columns and 8 rows; 8 warps share the sum, each takes every eighth element ---- */

enum { PROJECT_ROWS = 8, PROJECT_WARPS = 8 };

template <class T> static __global__ void project(struct smg_project_args a)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (a.out + 31) / 32;
    const uint64_t items = (uint64_t)tiles * ((a.rows + PROJECT_ROWS - 1) / PROJECT_ROWS);
    float *part = (float *)smg_smem; /* [PROJECT_WARPS][PROJECT_ROWS][32] */

    for (uint64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const uint64_t o = item % tiles * 32 + lane, first = item / tiles * PROJECT_ROWS;
        const uint32_t rows = (uint32_t)min(a.rows - first, (uint64_t)PROJECT_ROWS);
        const T *x = (const T *)a.x + first * a.in, *w = (const T *)a.w + o;
        float sum[PROJECT_ROWS] = {0};
        for (uint64_t i = warp; i < a.in && o < a.out; i += PROJECT_WARPS) {
            const float column = smg_to_float(w[i * a.out]);
#pragma unroll
            for (uint32_t r = 0; r < PROJECT_ROWS; r++)
                if (r < rows)
                    sum[r] += smg_to_float(x[r * a.in + i]) * column;
        }
#pragma unroll
        for (uint32_t r = 0; r < PROJECT_ROWS; r++)
            part[(warp * PROJECT_ROWS + r) * 32 + lane] = sum[r];
        __syncthreads();
        if (warp < rows && o < a.out) { /* warp r adds up row r */
            float total = 0;
            for (uint32_t i = 0; i < PROJECT_WARPS; i++)
                total += part[(i * PROJECT_ROWS + warp) * 32 + lane];
            ((T *)a.y)[(first + warp) * a.out + o] = smg_from_float<T>(total);
        }
        __syncthreads();
    }
}

extern "C" int smg_cuda_project(struct smg_kernels *k, const struct smg_project_args *a, struct smg_stream *stream)
{
    const uint64_t items = (uint64_t)smg_div_up(a->out, 32) * smg_div_up(a->rows, PROJECT_ROWS);
    const cudaLaunchConfig_t c =
        smg_launch(stream, smg_blocks(items), 32 * PROJECT_WARPS, PROJECT_WARPS * PROJECT_ROWS * 32 * sizeof(float));
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = cudaLaunchKernelEx(&c, project<T>, *a));
    return smg_cuda_status(k, error, "project");
}

/* ---- skew: a warp per vector, held in shared memory; a lane per column ---- */

enum { SKEW_WARPS = 4, SKEW_WIDTH = 256 };

template <class T, class U> static __global__ void skew(struct smg_skew_args a)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = a.head_dim, group = a.heads / a.kv_heads;
    const uint64_t vectors = (uint64_t)a.rows * a.heads;
    float *x = (float *)smg_smem + warp * SKEW_WIDTH; /* [d] */

    for (uint64_t v = (uint64_t)blockIdx.x * SKEW_WARPS + warp; v < vectors; v += (uint64_t)gridDim.x * SKEW_WARPS) {
        const uint64_t m = v % a.heads / group; /* the KV head */
        for (uint32_t j = lane; j < d; j += 32)
            x[j] = smg_to_float(((const T *)a.x)[v * d + j]);
        __syncwarp();
        for (uint32_t c = lane; c < a.width; c += 32) {
            const uint32_t column = a.columns ? a.columns[m * a.width + c] : c;
            const float *basis = a.basis + m * d * d + column; /* [j][column] */
            float sum = 0;
            for (uint32_t j = 0; j < d && column < d; j++)
                sum += x[j] * basis[(uint64_t)j * d];
            ((U *)a.y)[v * a.width + c] = smg_from_float<U>(sum);
        }
        __syncwarp();
    }
}

template <class T> static cudaError_t launch_skew(const cudaLaunchConfig_t &c, const struct smg_skew_args *a)
{
    if (a->out_type == SMG_F32)
        return cudaLaunchKernelEx(&c, skew<T, float>, *a);
    if (a->out_type == SMG_F16)
        return cudaLaunchKernelEx(&c, skew<T, __half>, *a);
    return cudaLaunchKernelEx(&c, skew<T, __nv_bfloat16>, *a);
}

extern "C" int smg_cuda_skew(struct smg_kernels *k, const struct smg_skew_args *a, struct smg_stream *stream)
{
    const uint64_t vectors = (uint64_t)a->rows * a->heads;
    const cudaLaunchConfig_t c = smg_launch(stream, smg_blocks((vectors + SKEW_WARPS - 1) / SKEW_WARPS), 32 * SKEW_WARPS,
                                            SKEW_WARPS * SKEW_WIDTH * sizeof(float));
    cudaError_t error;

    SMG_BY_TYPE(a->type, error = launch_skew<T>(c, a));
    return smg_cuda_status(k, error, "skew");
}
