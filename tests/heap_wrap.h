/* Allocations of a program under the linker's --wrap (tests/local.mk): each can fail, and blocks are counted. Calls that
 * libraries make are not seen. For one source file: this header defines functions. */
#ifndef SMG_TESTS_HEAP_WRAP_H
#define SMG_TESTS_HEAP_WRAP_H

#include <stdint.h>
#include <stdlib.h>

/* The program's: asked once for each allocation, whether this one shall fail. */
int heap_fails(void);

static int64_t heap_live; /* blocks that are allocated and not free */

__typeof__(malloc) __real_malloc, __wrap_malloc;
__typeof__(calloc) __real_calloc, __wrap_calloc;
__typeof__(realloc) __real_realloc, __wrap_realloc;
__typeof__(free) __real_free, __wrap_free;

static inline void *heap_counted(void *p)
{
    heap_live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t bytes)
{
    return heap_fails() ? NULL : heap_counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return heap_fails() ? NULL : heap_counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (heap_fails())
        return NULL;
    return old ? __real_realloc(old, bytes) : heap_counted(__real_realloc(NULL, bytes));
}

void __wrap_free(void *p)
{
    heap_live -= p != NULL;
    __real_free(p);
}

#endif
