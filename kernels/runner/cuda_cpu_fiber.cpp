/* Fibers: stacks, switching, and what sanitizers must be told about it. */
#include "kernels/runner/cuda_cpu_internal.h"

#include <sys/mman.h>

#ifdef SMG_CUDA_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
}
#endif

namespace
{

constexpr size_t PAGE = 4096;
constexpr size_t STACK_BYTES = 128 * 1024; /* with the guard page */

/* Identities whose threads have ended; the thread sanitizer has some 8,000. No container: what it allocates would be seen. */
constexpr unsigned KEPT = 6144;
void *kept[KEPT];
unsigned long n_kept;

char *map_stacks(unsigned n)
{
    void *p = mmap(nullptr, n * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        smg_cuda_die("no memory for the stacks of %u threads", n);
    }
    for (unsigned i = 0; i < n; i++) {
        if (mprotect((char *)p + i * STACK_BYTES, PAGE, PROT_NONE) != 0) {
            smg_cuda_die("no guard page for a stack");
        }
    }
    return (char *)p;
}

} // namespace

void *smg_identity_create(void)
{
    return smg_cuda_tsan() ? __tsan_create_fiber(0) : nullptr;
}

void smg_identity_keep(void *identity)
{
    void **slot = &kept[n_kept++ % KEPT];

    if (!identity) {
        return;
    }
    if (*slot) {
        __tsan_destroy_fiber(*slot);
    }
    *slot = identity;
}

void *smg_stacks_get(unsigned n)
{
    static char *shared;

    if (smg_cuda_tsan()) {
        return map_stacks(n);
    }
    if (!shared) {
        shared = map_stacks(1024);
    }
    return shared;
}

void smg_stacks_put(void *stacks, unsigned n)
{
    if (smg_cuda_tsan()) {
        munmap(stacks, n * STACK_BYTES);
    }
}

char *smg_stack_word(void *stacks, unsigned i, unsigned word)
{
    return (char *)stacks + i * STACK_BYTES + PAGE + word * 64;
}

#ifndef SMG_CUDA_UCONTEXT
/* Saves what a function must keep, and the stack pointer at *save; goes on where `load` was saved. */
extern "C" void smg_cuda_swap(void **save, void *load);
__asm__(".text\n"
        ".globl smg_cuda_swap\n"
        ".type smg_cuda_swap,@function\n"
        "smg_cuda_swap:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp,(%rdi)\n"
        "    mov %rsi,%rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size smg_cuda_swap,.-smg_cuda_swap\n");
#endif

void smg_fiber_create(struct smg_fiber *fiber, void *stacks, unsigned i, void (*entry)(void), void *identity)
{
    char *stack = (char *)stacks + i * STACK_BYTES + PAGE;

    fiber->stack = stack;
    fiber->stack_bytes = STACK_BYTES - PAGE;
    fiber->fake_stack = nullptr;
    fiber->identity = identity;
#ifdef SMG_CUDA_UCONTEXT
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = fiber->stack_bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, entry, 0);
#else
    /* Six registers, the address that `ret` takes, and a return address of 0, where a backtrace ends. */
    void **top = (void **)(stack + fiber->stack_bytes) - 8;
    memset(top, 0, 8 * sizeof *top);
    top[6] = (void *)entry;
    fiber->stack_pointer = top;
#endif
}

__attribute__((no_sanitize("address"))) void smg_fiber_begin(struct smg_fiber *scheduler)
{
#ifdef SMG_CUDA_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler->stack, &scheduler->stack_bytes);
#else
    (void)scheduler;
#endif
}

void smg_fiber_adopt(struct smg_fiber *fiber)
{
    fiber->stack = nullptr;
    fiber->stack_bytes = 0;
    fiber->fake_stack = nullptr;
    fiber->identity = smg_cuda_tsan() ? __tsan_get_current_fiber() : nullptr;
}

__attribute__((no_sanitize("address"))) void smg_fiber_switch(struct smg_fiber *from, struct smg_fiber *to, bool dies)
{
#ifdef SMG_CUDA_ASAN
    __sanitizer_start_switch_fiber(dies ? nullptr : &from->fake_stack, to->stack, to->stack_bytes);
#else
    (void)dies;
#endif
    if (smg_cuda_tsan()) {
        __tsan_switch_to_fiber(to->identity, 1 /* no order between the two */);
    }
#ifdef SMG_CUDA_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    smg_cuda_swap(&from->stack_pointer, to->stack_pointer);
#endif
#ifdef SMG_CUDA_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}
