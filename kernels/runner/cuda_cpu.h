/*
 * The CUDA language for a host C++ compiler. Force-included (-include kernels/runner/cuda_cpu.h -x c++) when a .cu file is built
 * for the CPU. CUDA's own headers give the vector types, the half and bfloat16 types and their host conversions; this file adds
 * what only nvcc knows: built-in variables, barriers, warp operations, atomics, intrinsics, and the launch.
 *
 * Every CUDA thread is a fiber. The fibers of a block run until each waits or has ended; then barriers and warp operations are
 * resolved (cuda_cpu_block.cpp). docs/kernels.md has the conventions that a .cu file keeps for this to work.
 */
#ifndef SMG_KERNELS_RUNNER_CUDA_CPU_H
#define SMG_KERNELS_RUNNER_CUDA_CPU_H

#ifdef __CUDACC__
#error "cuda_cpu.h is for host compilers"
#endif

/*
 * In a block thread_local implies static, and the extern form is allowed too. clang puts static shared memory into a section of
 * its own, so that the runner can fill it anew for each block; gcc cannot (a template's variable and another in one section
 * conflict).
 */
#ifdef __clang__
#define __shared__ thread_local __attribute__((section("smg_shared")))
#else
#define __shared__ thread_local
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include <utility>

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __constant__
#define __constant__
#undef __noinline__
#define __noinline__ __attribute__((noinline))

/* Variables, since cudaLaunchConfig_t has fields of these names; of a type without constructor, since they are thread-local. */
extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

/* ---- Waiting: barriers, votes, shuffles ---- */

enum smg_cuda_op { SMG_CUDA_SYNCTHREADS, SMG_CUDA_SYNCWARP, SMG_CUDA_SHFL, SMG_CUDA_BALLOT, SMG_CUDA_ACTIVE };

/*
 * Waits until the operation is complete among the threads concerned: all of the block, or the lanes of the mask. Returns the
 * payload of lane `source` (SHFL), the lanes whose payload is not 0 (BALLOT), the sum of payloads (SYNCTHREADS), or the lanes
 * that asked (ACTIVE). where: FILE:LINE for diagnostics. A wrong use ends the program with a message.
 */
uint64_t smg_cuda_wait(enum smg_cuda_op op, unsigned mask, uint64_t payload, int source, const char *where);
/* Index of this thread in its warp. */
int smg_cuda_lane(void);

#define SMG_CUDA_TEXT_(x) #x
#define SMG_CUDA_TEXT(x)  SMG_CUDA_TEXT_(x)
#define SMG_CUDA_HERE     __FILE__ ":" SMG_CUDA_TEXT(__LINE__)

static inline unsigned smg_cuda_mask(unsigned mask = 0xffffffffu)
{
    return mask;
}

#define __syncthreads()        ((void)smg_cuda_wait(SMG_CUDA_SYNCTHREADS, ~0u, 0, 0, SMG_CUDA_HERE))
#define __syncthreads_count(p) ((int)smg_cuda_wait(SMG_CUDA_SYNCTHREADS, ~0u, !!(p), 0, SMG_CUDA_HERE))
#define __syncthreads_or(p)    ((int)(__syncthreads_count(p) != 0))
#define __syncthreads_and(p)   ((int)(__syncthreads_count(!(p)) == 0))
#define __syncwarp(...)        ((void)smg_cuda_wait(SMG_CUDA_SYNCWARP, smg_cuda_mask(__VA_ARGS__), 0, 0, SMG_CUDA_HERE))
#define __ballot_sync(m, p)    ((unsigned)smg_cuda_wait(SMG_CUDA_BALLOT, (m), !!(p), 0, SMG_CUDA_HERE))
#define __any_sync(m, p)       ((int)(__ballot_sync(m, p) != 0))
#define __all_sync(m, p)       ((int)(__ballot_sync(m, !(p)) == 0))
#define __activemask()         ((unsigned)smg_cuda_wait(SMG_CUDA_ACTIVE, 0, 0, 0, SMG_CUDA_HERE))

/* Values of up to 8 bytes; __half2 and its like have copy constructors of their own, hence only their size is looked at. */
template <class T> static inline T smg_cuda_shfl(unsigned mask, T value, int source, const char *where)
{
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, (const void *)&value, sizeof value);
    bits = smg_cuda_wait(SMG_CUDA_SHFL, mask, bits, source, where);
    memcpy((void *)&value, &bits, sizeof value);
    return value;
}

static inline int smg_cuda_from_index(int source, int width = 32)
{
    return (smg_cuda_lane() & ~(width - 1)) | (source & (width - 1));
}

static inline int smg_cuda_from_xor(int bits, int width = 32)
{
    const int source = smg_cuda_lane() ^ bits;
    return source > (smg_cuda_lane() | (width - 1)) ? smg_cuda_lane() : source;
}

static inline int smg_cuda_from_down(int distance, int width = 32)
{
    return (smg_cuda_lane() & (width - 1)) + distance >= width ? smg_cuda_lane() : smg_cuda_lane() + distance;
}

static inline int smg_cuda_from_up(int distance, int width = 32)
{
    return (smg_cuda_lane() & (width - 1)) < distance ? smg_cuda_lane() : smg_cuda_lane() - distance;
}

#define __shfl_sync(m, v, ...)      smg_cuda_shfl((m), (v), smg_cuda_from_index(__VA_ARGS__), SMG_CUDA_HERE)
#define __shfl_xor_sync(m, v, ...)  smg_cuda_shfl((m), (v), smg_cuda_from_xor(__VA_ARGS__), SMG_CUDA_HERE)
#define __shfl_down_sync(m, v, ...) smg_cuda_shfl((m), (v), smg_cuda_from_down(__VA_ARGS__), SMG_CUDA_HERE)
#define __shfl_up_sync(m, v, ...)   smg_cuda_shfl((m), (v), smg_cuda_from_up(__VA_ARGS__), SMG_CUDA_HERE)

/* ---- Atomics, relaxed as CUDA's are; of 4 and 8 bytes ---- */

template <class T, class F> static inline T smg_cuda_atomic(T *p, F change)
{
    using word = typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type;
    static_assert(sizeof(T) == sizeof(word), "atomics of 4 or 8 bytes");
    word before = __atomic_load_n((word *)p, __ATOMIC_RELAXED), after;
    T value, changed;
    do {
        memcpy(&value, &before, sizeof value);
        changed = change(value);
        memcpy(&after, &changed, sizeof after);
    } while (!__atomic_compare_exchange_n((word *)p, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return value;
}

/* Keeps the operand out of deduction: atomicAdd(float_pointer, 1) is valid CUDA. */
template <class T> struct smg_cuda_identity {
    using type = T;
};
template <class T> using smg_cuda_same = typename smg_cuda_identity<T>::type;

#define SMG_CUDA_ATOMIC(name, expression)                                                                                        \
    template <class T> static inline T name(T *p, smg_cuda_same<T> v)                                                            \
    {                                                                                                                            \
        return smg_cuda_atomic(p, [v](T old) {                                                                                   \
            (void)old;                                                                                                           \
            return (T)(expression);                                                                                              \
        });                                                                                                                      \
    }
SMG_CUDA_ATOMIC(atomicAdd, old + v)
SMG_CUDA_ATOMIC(atomicSub, old - v)
SMG_CUDA_ATOMIC(atomicMax, old < v ? v : old)
SMG_CUDA_ATOMIC(atomicMin, v < old ? v : old)
SMG_CUDA_ATOMIC(atomicOr, old | v)
SMG_CUDA_ATOMIC(atomicAnd, old &v)
SMG_CUDA_ATOMIC(atomicXor, old ^ v)
SMG_CUDA_ATOMIC(atomicExch, v)

template <class T> static inline T atomicCAS(T *p, smg_cuda_same<T> expected, smg_cuda_same<T> v)
{
    return smg_cuda_atomic(p, [=](T old) { return old == expected ? v : old; });
}

/* Fibers of one OS thread need no more; the thread sanitizer is not told of any order. */
#define __threadfence_block()  __asm__ volatile("" ::: "memory")
#define __threadfence()        __threadfence_block()
#define __threadfence_system() __threadfence_block()

/* ---- Scalar intrinsics ---- */

#define SMG_CUDA_DEFINE(type, name, parameters, value)                                                                           \
    static inline __attribute__((unused)) type name parameters                                                                   \
    {                                                                                                                            \
        return value;                                                                                                            \
    }

SMG_CUDA_DEFINE(int, __popc, (unsigned x), __builtin_popcount(x))
SMG_CUDA_DEFINE(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
SMG_CUDA_DEFINE(int, __ffs, (int x), __builtin_ffs(x))
SMG_CUDA_DEFINE(int, __ffsll, (long long x), __builtin_ffsll(x))
SMG_CUDA_DEFINE(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
SMG_CUDA_DEFINE(int, __clzll, (long long x), x ? __builtin_clzll((unsigned long long)x) : 64)

template <class To, class From> static inline To smg_cuda_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
SMG_CUDA_DEFINE(unsigned, __float_as_uint, (float x), smg_cuda_bits<unsigned>(x))
SMG_CUDA_DEFINE(float, __uint_as_float, (unsigned x), smg_cuda_bits<float>(x))
SMG_CUDA_DEFINE(int, __float_as_int, (float x), smg_cuda_bits<int>(x))
SMG_CUDA_DEFINE(float, __int_as_float, (int x), smg_cuda_bits<float>(x))

SMG_CUDA_DEFINE(int, __float2int_rn, (float x), (int)rintf(x))
SMG_CUDA_DEFINE(int, __float2int_rz, (float x), (int)truncf(x))
SMG_CUDA_DEFINE(int, __float2int_rd, (float x), (int)floorf(x))
SMG_CUDA_DEFINE(int, __float2int_ru, (float x), (int)ceilf(x))
SMG_CUDA_DEFINE(unsigned, __float2uint_rn, (float x), (unsigned)rintf(x))
SMG_CUDA_DEFINE(unsigned, __float2uint_rz, (float x), (unsigned)truncf(x))
SMG_CUDA_DEFINE(float, __int2float_rn, (int x), (float)x)
SMG_CUDA_DEFINE(float, __uint2float_rn, (unsigned x), (float)x)
SMG_CUDA_DEFINE(float, __double2float_rn, (double x), (float)x)

/* Rounded as they say: the .cu files are built with -ffp-contract=off. */
SMG_CUDA_DEFINE(float, __fadd_rn, (float a, float b), a + b)
SMG_CUDA_DEFINE(float, __fsub_rn, (float a, float b), a - b)
SMG_CUDA_DEFINE(float, __fmul_rn, (float a, float b), a *b)
SMG_CUDA_DEFINE(float, __fdiv_rn, (float a, float b), a / b)
SMG_CUDA_DEFINE(float, __fmaf_rn, (float a, float b, float c), fmaf(a, b, c))
SMG_CUDA_DEFINE(float, __fsqrt_rn, (float x), sqrtf(x))
SMG_CUDA_DEFINE(float, __frcp_rn, (float x), 1.0f / x)

/* Exact where the GPU approximates. Macros, because glibc declares functions of some of these names. */
#define __expf(x)        expf(x)
#define __exp10f(x)      exp10f(x)
#define __logf(x)        logf(x)
#define __log2f(x)       log2f(x)
#define __fdividef(a, b) ((float)(a) / (float)(b))
#define __saturatef(x)   fminf(fmaxf((x), 0.0f), 1.0f)
SMG_CUDA_DEFINE(float, rsqrtf, (float x), 1.0f / sqrtf(x))

#define SMG_CUDA_MIN_MAX(T)                                                                                                      \
    SMG_CUDA_DEFINE(T, min, (T a, T b), b < a ? b : a)                                                                           \
    SMG_CUDA_DEFINE(T, max, (T a, T b), a < b ? b : a)
SMG_CUDA_MIN_MAX(int)
SMG_CUDA_MIN_MAX(unsigned)
SMG_CUDA_MIN_MAX(long)
SMG_CUDA_MIN_MAX(unsigned long)
SMG_CUDA_MIN_MAX(long long)
SMG_CUDA_MIN_MAX(unsigned long long)
SMG_CUDA_DEFINE(float, min, (float a, float b), fminf(a, b))
SMG_CUDA_DEFINE(float, max, (float a, float b), fmaxf(a, b))
SMG_CUDA_DEFINE(double, min, (double a, double b), fmin(a, b))
SMG_CUDA_DEFINE(double, max, (double a, double b), fmax(a, b))

/* Cache hints. */
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline void __stcs(T *p, smg_cuda_same<T> v)
{
    *p = v;
}
template <class T> static inline void __stcg(T *p, smg_cuda_same<T> v)
{
    *p = v;
}

/* ---- Launch: cudaLaunchKernelEx is the only form; arguments are converted once, on the host, as nvcc's template does ---- */

cudaError_t smg_cuda_run(const cudaLaunchConfig_t *config, const void *kernel, void (*call)(const void *), const void *body);
/* Ends the program when p is neither NULL nor memory that a kernel can reach. argument: from 1. */
void smg_cuda_check_pointer(const volatile void *p, int argument);

template <class T> static inline void smg_cuda_check_argument(T *p, int argument)
{
    smg_cuda_check_pointer(p, argument);
}
template <class T> static inline typename std::enable_if<!std::is_pointer<T>::value>::type smg_cuda_check_argument(const T &, int)
{
}

template <class Body> static void smg_cuda_call(const void *body)
{
    (*static_cast<const Body *>(body))();
}

template <class... P, class... A>
static inline cudaError_t smg_cuda_launch(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments)
{
    return [&](P... p) {
        int n = 0;
        (smg_cuda_check_argument(p, ++n), ...);
        (void)n;
        auto body = [&] { kernel(p...); };
        return smg_cuda_run(config, (const void *)kernel, smg_cuda_call<decltype(body)>, &body);
    }(std::forward<A>(arguments)...);
}
#define cudaLaunchKernelEx smg_cuda_launch

/* Templates that nvcc alone gets from CUDA's headers. */
template <class... P> static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return cudaMemcpyToSymbol((const void *)&symbol, from, bytes, offset, kind);
}

#endif
