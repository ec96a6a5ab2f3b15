/* Shared by the files of the CPU runner. */
#ifndef SMG_KERNELS_RUNNER_CUDA_CPU_INTERNAL_H
#define SMG_KERNELS_RUNNER_CUDA_CPU_INTERNAL_H

#include "kernels/runner/cuda_cpu.h"

/* ucontext is the portable way to switch fibers; it makes a system call a switch. -DSMG_CUDA_UCONTEXT asks for it. */
#if !defined(__x86_64__) && !defined(SMG_CUDA_UCONTEXT)
#define SMG_CUDA_UCONTEXT 1
#endif
#ifdef SMG_CUDA_UCONTEXT
#include <ucontext.h>
#endif

#ifdef __SANITIZE_ADDRESS__
#define SMG_CUDA_ASAN 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SMG_CUDA_ASAN 1
#endif
#if __has_feature(memory_sanitizer)
#define SMG_CUDA_MSAN 1
#endif
#endif

#ifdef SMG_CUDA_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef SMG_CUDA_MSAN
#include <sanitizer/msan_interface.h>
#endif

/*
 * The thread sanitizer is looked for at run time: these files are built without it, because what the scheduler hands from fiber
 * to fiber must not look like order that the GPU gives.
 */
extern "C" {
void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void *__tsan_get_current_fiber(void) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));
}

static inline bool smg_cuda_tsan(void)
{
    return __tsan_create_fiber != nullptr;
}

static inline void smg_cuda_acquire(void *address)
{
    if (smg_cuda_tsan()) {
        __tsan_acquire(address);
    }
}

static inline void smg_cuda_release(void *address)
{
    if (smg_cuda_tsan()) {
        __tsan_release(address);
    }
}

/* ---- Fibers (cuda_cpu_fiber.cpp) ---- */

struct smg_fiber {
    const void *stack; /* lowest byte */
    size_t stack_bytes;
#ifdef SMG_CUDA_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
    void *fake_stack; /* the address sanitizer's */
    void *identity;   /* the thread sanitizer's */
};

/* Stacks for n fibers, with a page that nobody may touch below each. Under the thread sanitizer fresh ones for each block, since
 * an old access to a stack would look like a race with a new one. Ends the program when there is no memory. */
void *smg_stacks_get(unsigned n);
void smg_stacks_put(void *stacks, unsigned n);
/* Addresses 0, 1, 2, 3 at the far end of the i-th stack, each in a cache line of its own, for order between threads of a block.
 * What the thread sanitizer knows of them ends with the stacks; at fixed addresses it would order a block behind the one before.
 */
char *smg_stack_word(void *stacks, unsigned i, unsigned word);

/*
 * What the thread sanitizer takes for a thread; NULL without it. One that has been created is given back to smg_identity_keep,
 * which does not destroy it before thousands of others have come, since the next one would take its place and be taken for the
 * same thread.
 */
void *smg_identity_create(void);
void smg_identity_keep(void *identity);

/* A fiber that begins in entry, on the i-th stack. entry calls smg_fiber_begin first and never returns. */
void smg_fiber_create(struct smg_fiber *fiber, void *stacks, unsigned i, void (*entry)(void), void *identity);
/* scheduler: the fiber that switched here. */
void smg_fiber_begin(struct smg_fiber *scheduler);
/* The thread that runs now becomes a fiber that others can switch to. */
void smg_fiber_adopt(struct smg_fiber *fiber);
/* dies: from will not run again. */
void smg_fiber_switch(struct smg_fiber *from, struct smg_fiber *to, bool dies);

/* ---- A block (cuda_cpu_block.cpp) ---- */

#define SMG_CUDA_MAX_THREADS 1024

enum smg_order { SMG_ORDER_FORWARD, SMG_ORDER_REVERSE, SMG_ORDER_RANDOM };

/* A launch, and the block of it that is to run. */
struct smg_grid {
    const cudaLaunchConfig_t *config;
    void (*call)(const void *);
    const void *body;
    enum smg_order order;
    bool block_identity; /* to the thread sanitizer each block is one thread, not each thread */
    unsigned block;      /* linear index */
    uint64_t random;     /* of this block */
    void *end_order;     /* its threads release to it when they end */
};

/* Returns when all threads of the block have ended. */
void smg_block_run(const struct smg_grid *grid);
/* Puts a[n] into a random order (cuda_cpu_grid.cpp). */
void smg_shuffle(unsigned *a, unsigned n, uint64_t *random);

/* ---- Memory (cuda_cpu_memory.cpp) ---- */

/* Device memory can be touched by kernels only (address sanitizer). */
void smg_cuda_device_open(void);
void smg_cuda_device_close(void);
/* Allocations that live. */
size_t smg_cuda_allocations(void);

/* ---- Calls and errors (cuda_cpu_api.cpp) ---- */

/* Dynamic shared memory of a block may be that large: 227 KiB, the limit from sm_90 on. */
#define SMG_CUDA_SMEM_MAX (227 * 1024)

/* "cuda: MESSAGE" on stderr, then abort. */
[[noreturn]] void smg_cuda_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Bytes of dynamic shared memory that this kernel may be launched with. */
size_t smg_cuda_smem_limit(const void *kernel);
/* Counts a call; true when this one shall fail. */
bool smg_cuda_injected(void);
/* Notes the error for cudaGetLastError and returns it. */
cudaError_t smg_cuda_status(cudaError_t status);
cudaError_t smg_cuda_check_stream(cudaStream_t stream);

/* The body of a runtime call: one that shall fail does so before it does anything. */
#define SMG_CUDA_CALL(expression) return smg_cuda_status(smg_cuda_injected() ? cudaErrorUnknown : (expression))
/* The same of a call that is given a stream. */
#define SMG_CUDA_STREAM_CALL(stream, expression)                                                                                 \
    SMG_CUDA_CALL(smg_cuda_check_stream(stream) == cudaSuccess ? (expression) : cudaErrorInvalidResourceHandle)

#endif
