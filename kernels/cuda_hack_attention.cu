/* Attention on HACK codes. Version 1: a block takes a query head and a stretch of tiles; a thread a token for q K, a thread a
 * channel for P V; plain integer arithmetic on codes straight from global memory, where the tile stays in the caches between the
 * query heads of a KV head. A second launch merges the stretches. (Of worth next: the query heads of a KV head in one block,
 * four products at a time by __dp4a.) */
#include "kernels/cuda_common.cuh"
#include "kernels/hack.h"

static const unsigned THREADS = 128, WARPS = THREADS / 32;
static const uint32_t TASK_TOKENS = 512, MOST_TASKS = 64;

/* One call. */
struct frame {
    struct smg_hack_attention_args a;
    struct smg_hack_size z;
    const uint8_t *cache;
    uint32_t tiles, tiles_per_task, tasks;
    float *partial; /* [q_heads][tasks][2 + d]: greatest logit, sum of P, sum of P v */
};

/* A block's shared memory. Groups: of channels, at most d / 4. */
struct room {
    float *q;                                /* [d] */
    float *p;                                /* [group] logits, then P */
    float *out;                              /* [d] */
    float *a_min, *a_scale, *a_sum;          /* [groups] codes of q */
    float *w_min, *w_scale, *w_sum, *minima; /* [groups] codes of P; V1 uses the first */
    float *state;                            /* greatest logit, sum of P, factor of what was before */
    uint8_t *a_code;                         /* [d] */
    uint8_t *w_code;                         /* [groups][group] */
};

enum { MOST_GROUPS = SMG_HACK_MOST_DIM / 4, ROOM_FLOATS = 3 * SMG_HACK_MOST_DIM + 7 * MOST_GROUPS + 4 };
static const size_t ROOM_BYTES = ROOM_FLOATS * sizeof(float) + 2 * SMG_HACK_MOST_DIM;

static __device__ struct room carve()
{
    float *f = (float *)smg_smem;
    struct room r;

    r.q = f;
    r.p = r.q + SMG_HACK_MOST_DIM;
    r.out = r.p + SMG_HACK_MOST_DIM;
    r.a_min = r.out + SMG_HACK_MOST_DIM;
    r.a_scale = r.a_min + MOST_GROUPS;
    r.a_sum = r.a_scale + MOST_GROUPS;
    r.w_min = r.a_sum + MOST_GROUPS;
    r.w_scale = r.w_min + MOST_GROUPS;
    r.w_sum = r.w_scale + MOST_GROUPS;
    r.minima = r.w_sum + MOST_GROUPS;
    r.state = r.minima + MOST_GROUPS;
    r.a_code = (uint8_t *)(r.state + 4);
    r.w_code = r.a_code + SMG_HACK_MOST_DIM;
    return r;
}

/* ---- Reading ---- */

static __device__ float min_at(const struct frame &f, const struct smg_hack_part &p, uint64_t group)
{
    return __bfloat162float(((const __nv_bfloat16 *)(f.cache + p.min))[group]);
}

static __device__ float scale_at(const struct frame &f, const struct smg_hack_part &p, uint64_t group)
{
    return __bfloat162float(((const __nv_bfloat16 *)(f.cache + p.scale))[group]);
}

static __device__ const uint8_t *codes_at(const struct frame &f, const struct smg_hack_part &p, uint32_t row, uint32_t head)
{
    return f.cache + p.codes + ((uint64_t)row * f.a.shape.kv_heads + head) * (f.a.shape.head_dim * f.a.shape.bits / 8);
}

/* An element as it comes back. */
template <class T>
static __device__ float value_at(const struct frame &f, const struct smg_hack_part &p, uint32_t coded, uint32_t token,
                                 uint32_t head, uint32_t channel)
{
    const struct smg_hack_shape &s = f.a.shape;

    if (!coded) {
        const uint64_t at = smg_hack_dense_at(&p, token, (uint64_t)s.kv_heads * s.head_dim * sizeof(T));
        return smg_to_float<T>(((const T *)(f.cache + at))[(uint64_t)head * s.head_dim + channel]);
    }
    const uint32_t row = token - p.first;
    const uint64_t group = smg_hack_group(&s, p.group_along_tokens, row, head, channel);
    return min_at(f, p, group) + scale_at(f, p, group) * (float)smg_hack_code_at(&s, &p, f.cache, row, head, channel);
}

/* ---- What a warp does ---- */

static __device__ float warp_sum(float x)
{
    for (int step = 16; step; step /= 2)
        x += __shfl_xor_sync(SMG_FULL_WARP, x, step);
    return x;
}

static __device__ float warp_greatest(float x)
{
    for (int step = 16; step; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(SMG_FULL_WARP, x, step));
    return x;
}

static __device__ float warp_least(float x)
{
    return -warp_greatest(-x);
}

/* A whole warp codes n values to 8 bits, value i by lane i % 32, in x[i / 32]. */
static __device__ void code_values(const float x[8], uint32_t n, uint8_t *code, float *min, float *scale, float *sum)
{
    const uint32_t lane = threadIdx.x % 32;
    float least = INFINITY, greatest = -INFINITY, step, total = 0;
    int bad = 0;

#pragma unroll
    for (int k = 0; k < 8; k++)
        if (lane + 32 * k < n) {
            bad |= x[k] != x[k];
            least = fminf(least, x[k]);
            greatest = fmaxf(greatest, x[k]);
        }
    least = warp_least(least);
    step = (warp_greatest(greatest) - least) / 255;
    step = step > 0 ? step : 1;
    bad = __any_sync(SMG_FULL_WARP, bad || !(step - step == 0));
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (lane + 32 * k < n) {
            const uint32_t c = bad ? 0 : smg_hack_code(x[k], least, step, 255, -1);
            code[lane + 32 * k] = (uint8_t)c;
            total += (float)c;
        }
    total = warp_sum(total);
    if (lane == 0) {
        *min = bad ? NAN : least;
        *scale = bad ? NAN : step;
        *sum = total;
    }
}

/* ---- q K: a_sum is q of a group, summed (V1), or q times the block's minima (ATC26) ---- */

/* Warps share the groups. row: first of the block, of ATC26. */
static __device__ void code_queries(const struct frame &f, const struct room &r, uint32_t row, uint32_t head)
{
    const uint32_t lane = threadIdx.x % 32, group = f.a.shape.group;
    const uint32_t scaled = f.z.k.group_along_tokens;

    for (uint32_t g = threadIdx.x / 32; g < f.a.shape.head_dim / group; g += WARPS) {
        float x[8], minima = 0, sum;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const uint32_t j = lane + 32 * k, c = g * group + j;
            x[k] = 0;
            if (j < group && scaled) {
                const uint64_t b = smg_hack_group(&f.a.shape, 1, row, head, c);
                x[k] = r.q[c] * scale_at(f, f.z.k, b);
                minima += r.q[c] * min_at(f, f.z.k, b);
            } else if (j < group) {
                x[k] = r.q[c];
            }
        }
        minima = warp_sum(minima);
        code_values(x, group, r.a_code + g * group, &r.a_min[g], &r.a_scale[g], &sum);
        if (lane == 0)
            r.a_sum[g] = scaled ? minima : r.a_scale[g] * sum + (float)group * r.a_min[g];
    }
}

template <int BITS> static __device__ float coded_dot(const struct frame &f, const struct room &r, uint32_t row, uint32_t head)
{
    const struct smg_hack_shape &s = f.a.shape;
    const uint32_t per = 8 / BITS, bytes = s.group / per;
    const uint8_t *codes = codes_at(f, f.z.k, row, head);
    float sum = 0;

    for (uint32_t g = 0; g < s.head_dim / s.group; g++) {
        const uint8_t *a = r.a_code + g * s.group;
        const uint64_t group = smg_hack_group(&s, 0, row, head, g * s.group);
        uint32_t dot = 0;
        for (uint32_t b = 0; b < bytes; b++) {
            const uint32_t byte = codes[g * bytes + b];
#pragma unroll
            for (uint32_t j = 0; j < per; j++)
                dot += a[b * per + j] * (byte >> j * BITS & ((1u << BITS) - 1));
        }
        const float product = r.a_scale[g] * (float)dot + r.a_min[g] * (float)smg_hack_sum_at(&f.z, &f.z.k, f.cache, group);
        if (f.z.k.group_along_tokens)
            sum += product + r.a_sum[g];
        else
            sum += scale_at(f, f.z.k, group) * product + min_at(f, f.z.k, group) * r.a_sum[g];
    }
    return sum;
}

/* A thread a token. */
template <class T, int BITS>
static __device__ void logits(const struct frame &f, const struct room &r, const struct smg_hack_tile &tile, uint32_t head)
{
    for (uint32_t i = threadIdx.x; i < tile.n; i += THREADS) {
        float dot = 0;
        if (tile.k_coded && !f.a.exact)
            dot = coded_dot<BITS>(f, r, tile.token - f.z.k.first + i, head);
        else
            for (uint32_t c = 0; c < f.a.shape.head_dim; c++)
                dot += r.q[c] * value_at<T>(f, f.z.k, tile.k_coded, tile.token + i, head, c);
        r.p[i] = f.a.scale * dot;
    }
}

/* ---- Softmax, going on from the tiles before; ends with a barrier ---- */

static __device__ void soften(const struct room &r, uint32_t n, uint32_t d)
{
    if (threadIdx.x < 32) { /* a whole warp */
        float greatest = -INFINITY, before = r.state[0];
        for (uint32_t i = threadIdx.x; i < n; i += 32)
            greatest = fmaxf(greatest, r.p[i]);
        greatest = fmaxf(warp_greatest(greatest), before);
        __syncwarp();
        if (threadIdx.x == 0) {
            r.state[0] = greatest;
            r.state[2] = greatest > before ? expf(before - greatest) : 1;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += THREADS)
        r.p[i] = expf(r.p[i] - r.state[0]);
    for (uint32_t c = threadIdx.x; c < d; c += THREADS)
        r.out[c] *= r.state[2];
    __syncthreads();
    if (threadIdx.x < 32) {
        float sum = 0;
        for (uint32_t i = threadIdx.x; i < n; i += 32)
            sum += r.p[i];
        sum = warp_sum(sum);
        if (threadIdx.x == 0)
            r.state[1] = r.state[1] * r.state[2] + sum;
    }
}

/* ---- P V ---- */

/* V1: one group, P; w_sum is P of the block as coded, summed. ATC26: P times the tokens' scales, a group for each of channels. */
static __device__ void code_weights(const struct frame &f, const struct room &r, const struct smg_hack_tile &tile, uint32_t head)
{
    const struct smg_hack_shape &s = f.a.shape;
    const uint32_t lane = threadIdx.x % 32, scaled = !f.z.v.group_along_tokens, groups = scaled ? s.head_dim / s.group : 1;

    for (uint32_t g = threadIdx.x / 32; g < groups; g += WARPS) {
        float x[8], minima = 0, sum;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const uint32_t i = lane + 32 * k;
            x[k] = i < tile.n ? r.p[i] : 0;
            if (i < tile.n && scaled) {
                const uint64_t b = smg_hack_group(&s, 0, tile.token - f.z.v.first + i, head, g * s.group);
                minima += x[k] * min_at(f, f.z.v, b);
                x[k] *= scale_at(f, f.z.v, b);
            }
        }
        minima = warp_sum(minima);
        code_values(x, tile.n, r.w_code + g * s.group, &r.w_min[g], &r.w_scale[g], &sum);
        if (lane == 0) {
            r.minima[g] = minima;
            r.w_sum[g] = r.w_scale[g] * sum + (float)tile.n * r.w_min[g];
        }
    }
}

/* A thread a channel. */
template <class T, int BITS>
static __device__ void values(const struct frame &f, const struct room &r, const struct smg_hack_tile &tile, uint32_t head)
{
    const struct smg_hack_shape &s = f.a.shape;
    const uint32_t per = 8 / BITS, row_bytes = s.head_dim / per;

    for (uint32_t c = threadIdx.x; c < s.head_dim; c += THREADS) {
        if (!tile.v_coded || f.a.exact) {
            float sum = 0;
            for (uint32_t i = 0; i < tile.n; i++)
                sum += r.p[i] * value_at<T>(f, f.z.v, tile.v_coded, tile.token + i, head, c);
            r.out[c] += sum;
            continue;
        }
        const uint32_t row = tile.token - f.z.v.first, g = f.z.v.group_along_tokens ? 0 : c / s.group;
        const uint64_t group = smg_hack_group(&s, 1, row, head, c), step = (uint64_t)s.kv_heads * row_bytes;
        const uint8_t *codes = codes_at(f, f.z.v, row, head) + c / per, *w = r.w_code + g * s.group;
        uint32_t dot = 0;
        for (uint32_t i = 0; i < tile.n; i++)
            dot += w[i] * (codes[i * step] >> c % per * BITS & ((1u << BITS) - 1));
        const float product = r.w_scale[g] * (float)dot + r.w_min[g] * (float)smg_hack_sum_at(&f.z, &f.z.v, f.cache, group);
        if (f.z.v.group_along_tokens)
            r.out[c] += scale_at(f, f.z.v, group) * product + min_at(f, f.z.v, group) * r.w_sum[0];
        else
            r.out[c] += product + r.minima[g];
    }
}

/* ---- A block: tiles of task blockIdx.x, query head blockIdx.y ---- */

template <class T, int BITS> static __global__ void attend(struct frame f)
{
    const struct smg_hack_shape &s = f.a.shape;
    const struct room r = carve();
    const uint32_t d = s.head_dim, q_head = blockIdx.y, head = q_head / (f.a.q_heads / s.kv_heads);
    const uint32_t lo = blockIdx.x * f.tiles_per_task, hi = min(lo + f.tiles_per_task, f.tiles);
    float *partial = f.partial + ((uint64_t)q_head * f.tasks + blockIdx.x) * (2 + d);

    for (uint32_t c = threadIdx.x; c < d; c += THREADS) {
        r.q[c] = smg_to_float<T>(((const T *)f.a.q)[(uint64_t)q_head * d + c]);
        r.out[c] = 0;
    }
    if (threadIdx.x == 0) {
        r.state[0] = -INFINITY;
        r.state[1] = 0;
    }
    __syncthreads();
    if (!f.a.exact && !f.z.k.group_along_tokens)
        code_queries(f, r, 0, head);
    for (uint32_t i = lo; i < hi; i++) {
        const struct smg_hack_tile tile = smg_hack_tile_at(&s, &f.z, i);
        if (!f.a.exact && tile.k_coded && f.z.k.group_along_tokens)
            code_queries(f, r, tile.token - f.z.k.first, head);
        __syncthreads(); /* codes of q are there; P of the tile before is no more read */
        logits<T, BITS>(f, r, tile, head);
        __syncthreads();
        soften(r, tile.n, d);
        if (!f.a.exact && tile.v_coded)
            code_weights(f, r, tile, head);
        __syncthreads();
        values<T, BITS>(f, r, tile, head);
    }
    __syncthreads();
    if (threadIdx.x < 2)
        partial[threadIdx.x] = r.state[threadIdx.x];
    for (uint32_t c = threadIdx.x; c < d; c += THREADS)
        partial[2 + c] = r.out[c];
}

/* A block a query head. */
static __global__ void merge(struct frame f)
{
    const uint32_t d = f.a.shape.head_dim;
    const float *part = f.partial + (uint64_t)blockIdx.x * f.tasks * (2 + d);
    float greatest = -INFINITY, sum = 0;

    for (uint32_t i = 0; i < f.tasks; i++)
        greatest = fmaxf(greatest, part[i * (2 + d)]);
    for (uint32_t i = 0; i < f.tasks; i++)
        sum += expf(part[i * (2 + d)] - greatest) * part[i * (2 + d) + 1];
    for (uint32_t c = threadIdx.x; c < d; c += THREADS) {
        float out = 0;
        for (uint32_t i = 0; i < f.tasks; i++)
            out += expf(part[i * (2 + d)] - greatest) * part[i * (2 + d) + 2 + c];
        f.a.out[(uint64_t)blockIdx.x * d + c] = f.tasks ? out / sum : 0;
    }
    if (f.a.lse && threadIdx.x == 0)
        f.a.lse[blockIdx.x] = f.tasks ? greatest + logf(sum) : -INFINITY;
}

template <class T> static cudaError_t launch_attend(const struct frame &f, struct smg_stream *stream)
{
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(f.tasks, f.a.q_heads), THREADS, ROOM_BYTES);

    if (f.a.shape.bits == 2)
        return cudaLaunchKernelEx(&c, attend<T, 2>, f);
    if (f.a.shape.bits == 4)
        return cudaLaunchKernelEx(&c, attend<T, 4>, f);
    return cudaLaunchKernelEx(&c, attend<T, 8>, f);
}

extern "C" int smg_cuda_hack_attention(struct smg_kernels *k, const struct smg_hack_attention_args *a, struct smg_stream *stream)
{
    const struct smg_hack_shape *s = &a->shape;
    const cudaLaunchConfig_t c = smg_launch(stream, dim3(a->q_heads), THREADS, 0);
    cudaError_t error = cudaSuccess;
    struct frame f = {};
    void *partial;
    int status;

    (void)smg_hack_size(s, &f.z); /* checked before */
    f.a = *a;
    f.cache = (const uint8_t *)a->cache;
    f.tiles = smg_hack_tiles(s, &f.z);
    f.tiles_per_task = 1 + (f.tiles / MOST_TASKS > TASK_TOKENS / s->group ? f.tiles / MOST_TASKS : TASK_TOKENS / s->group);
    f.tasks = f.tiles / f.tiles_per_task + (f.tiles % f.tiles_per_task != 0);
    status = smg_stream_scratch(stream, (size_t)a->q_heads * f.tasks * (2 + s->head_dim) * sizeof(float), &partial);
    if (status)
        return status;
    f.partial = (float *)partial;
    if (f.tasks)
        error = s->type == SMG_F16    ? launch_attend<__half>(f, stream)
                : s->type == SMG_BF16 ? launch_attend<__nv_bfloat16>(f, stream)
                                      : launch_attend<float>(f, stream);
    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&c, merge, f);
    return smg_cuda_status(k, error, "hack_attention");
}
