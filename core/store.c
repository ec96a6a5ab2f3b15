#include "core/store.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"

/* Address sanitizer is told what has been given back, as if it had been freed. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STORE_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define STORE_POISONS 1
#endif
#ifdef STORE_POISONS
void __asan_poison_memory_region(void const volatile *at, size_t bytes);
void __asan_unpoison_memory_region(void const volatile *at, size_t bytes);
#define POISON(at, bytes)   __asan_poison_memory_region(at, bytes)
#define UNPOISON(at, bytes) __asan_unpoison_memory_region(at, bytes)
#else
#define POISON(at, bytes)   ((void)0)
#define UNPOISON(at, bytes) ((void)0)
#endif

/* In front of each piece, as long as the strictest alignment. */
struct smg_store_head {
    _Alignas(max_align_t) struct smg_store_head *next; /* among the spare ones */
    uint32_t size;                                     /* of head and piece together, as a power of two; 0: allocated */
};

enum { FIRST_SIZE = 6 };

/* 0: none is so large. */
static uint32_t size_of(uint64_t piece_bytes)
{
    uint32_t size = FIRST_SIZE;

    if (piece_bytes > (UINT64_C(1) << (SMG_STORE_SIZES - 2))) {
        return 0;
    }
    while ((UINT64_C(1) << size) < piece_bytes + sizeof(struct smg_store_head)) {
        size++;
    }
    return size;
}

uint64_t smg_store_cost(uint64_t piece_bytes)
{
    uint32_t size = size_of(piece_bytes);

    return size > 0 ? UINT64_C(1) << size : piece_bytes;
}

int smg_store_reserve(struct smg_store *s, uint64_t bytes)
{
    s->base = calloc(1, bytes > 0 ? bytes : 1);
    if (s->base == NULL) {
        return SMG_ERR_NOMEM;
    }
    s->bytes = bytes;
    POISON(s->base, s->bytes);
    return SMG_OK;
}

static void *allocate(uint64_t bytes)
{
    struct smg_store_head *h = bytes <= SIZE_MAX - sizeof(*h) ? calloc(1, sizeof(*h) + bytes) : NULL;

    return h != NULL ? h + 1 : NULL;
}

/* A spare piece, or a new one of the reserve; NULL: neither. */
static struct smg_store_head *of_reserve(struct smg_store *s, uint32_t size)
{
    struct smg_store_head *h = s->spare[size];
    uint64_t bytes = UINT64_C(1) << size;

    if (h != NULL) {
        s->spare[size] = h->next;
        UNPOISON(h, bytes);
        return h;
    }
    if (s->bytes - s->used < bytes) {
        return NULL;
    }
    h = (struct smg_store_head *)(void *)(s->base + s->used);
    s->used += bytes;
    UNPOISON(h, bytes);
    h->size = size;
    return h;
}

static void *take(struct smg_store *s, uint64_t bytes)
{
    uint32_t size = s != NULL && s->base != NULL ? size_of(bytes) : 0;
    struct smg_store_head *h = size > 0 ? of_reserve(s, size) : NULL;

    return h != NULL ? h + 1 : NULL;
}

void *smg_store_take_raw(struct smg_store *s, uint64_t bytes)
{
    void *piece = take(s, bytes);

    return piece != NULL ? piece : allocate(bytes);
}

void *smg_store_take(struct smg_store *s, uint64_t bytes)
{
    void *piece = take(s, bytes);

    return piece != NULL ? memset(piece, 0, bytes) : allocate(bytes);
}

void smg_store_give(struct smg_store *s, void *piece)
{
    struct smg_store_head *h;

    if (piece == NULL) {
        return;
    }
    h = (struct smg_store_head *)piece - 1;
    if (h->size == 0) {
        free(h);
        return;
    }
    h->next = s->spare[h->size];
    s->spare[h->size] = h;
    POISON(piece, (UINT64_C(1) << h->size) - sizeof(*h));
}

void *smg_store_fit(struct smg_store *s, void *piece, uint64_t bytes)
{
    struct smg_store_head *h = (struct smg_store_head *)piece - 1, *smaller;
    void *fits;

    if (h->size == 0) {
        smaller = realloc(h, sizeof(*h) + bytes);
        return smaller != NULL ? smaller + 1 : piece;
    }
    if (size_of(bytes) == h->size) {
        return piece;
    }
    fits = smg_store_take_raw(s, bytes);
    if (fits == NULL) {
        return piece;
    }
    memcpy(fits, piece, bytes);
    smg_store_give(s, piece);
    return fits;
}

void smg_store_free(struct smg_store *s)
{
    if (s->base != NULL) {
        UNPOISON(s->base, s->bytes);
    }
    free(s->base);
    *s = (struct smg_store){0};
}
