#include "emu/arena.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/status.h"
#include "core/store.h"

struct extent {
    struct extent *next;         /* ascending offsets */
    uint64_t offset, bytes;
};

struct smg_arena {
    uint8_t *base;
    uint64_t bytes;
    struct extent *used;
    struct smg_store store;      /* of extents */
};

/* Large pages where the system has them: entries are gathered at random, and a miss of the TLB costs more than the copy. They need
 * a region that begins at one, so more is mapped and what is beside it given back. */
static uint8_t *map(uint64_t bytes)
{
    const uint64_t spare = UINT64_C(2) << 20;
    uint8_t *all = mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t before, page = (uint64_t)sysconf(_SC_PAGESIZE), length = (bytes + page - 1) / page * page;

    if (all == MAP_FAILED)
        return NULL;
    before = (spare - (uintptr_t)all % spare) % spare;
    if (before)
        munmap(all, before);
    if (length < bytes + spare - before)
        munmap(all + before + length, bytes + spare - before - length);
    (void)madvise(all + before, length, MADV_HUGEPAGE); /* a system without them has small ones */
    return all + before;
}

int smg_arena_create(uint64_t bytes, struct smg_arena **out)
{
    struct smg_arena *a = calloc(1, sizeof *a);

    if (!a)
        return SMG_ERR_NOMEM;
    a->bytes = bytes ? bytes : SMG_ARENA_ALIGN;
    a->base = map(a->bytes);
    if (!a->base) {
        free(a);
        return SMG_ERR_NOMEM;
    }
    *out = a;
    return SMG_OK;
}

void smg_arena_destroy(struct smg_arena *a)
{
    if (!a)
        return;
    while (a->used) {
        struct extent *next = a->used->next;
        smg_store_give(&a->store, a->used);
        a->used = next;
    }
    smg_store_free(&a->store);
    munmap(a->base, a->bytes); /* whole pages, as mapped */
    free(a);
}

uint8_t *smg_arena_base(const struct smg_arena *a)
{
    return a->base;
}

uint64_t smg_arena_bytes(const struct smg_arena *a)
{
    return a->bytes;
}

int smg_arena_reserve(struct smg_arena *a, uint64_t areas)
{
    return smg_store_reserve(&a->store, areas * smg_store_cost(sizeof(struct extent)));
}

int smg_arena_take(struct smg_arena *a, uint64_t bytes, uint64_t *offset_out)
{
    uint64_t want = (bytes + SMG_ARENA_ALIGN - 1) / SMG_ARENA_ALIGN * SMG_ARENA_ALIGN, at = 0;
    struct extent **link = &a->used, *e;

    if (!want)
        want = SMG_ARENA_ALIGN;
    for (; *link && (*link)->offset - at < want; link = &(*link)->next)
        at = (*link)->offset + (*link)->bytes;
    if (!*link && (at > a->bytes || a->bytes - at < want))
        return SMG_ERR_CAPACITY;
    e = smg_store_take_raw(&a->store, sizeof *e);
    if (!e)
        return SMG_ERR_NOMEM;
    *e = (struct extent){*link, at, want};
    *link = e;
    *offset_out = at;
    return SMG_OK;
}

void smg_arena_give(struct smg_arena *a, uint64_t offset)
{
    for (struct extent **link = &a->used; *link; link = &(*link)->next) {
        struct extent *e = *link;
        if (e->offset != offset)
            continue;
        *link = e->next;
        smg_store_give(&a->store, e);
        return;
    }
}
