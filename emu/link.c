#include "emu/link.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "core/status.h"

struct direction {
    double Bps, free_s;          /* when the link is free again */
};

struct smg_links {
    atomic_flag lock;
    uint32_t nodes;
    struct direction direction[]; /* [nodes] transmit, then [nodes] receive */
};

static size_t bytes_of(uint32_t nodes)
{
    return sizeof(struct smg_links) + 2 * (size_t)nodes * sizeof(struct direction);
}

int smg_links_create(const struct smg_world *w, struct smg_links **out)
{
    uint32_t nodes = smg_world_nodes(w);
    struct smg_links *l = mmap(NULL, bytes_of(nodes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (l == MAP_FAILED)
        return SMG_ERR_NOMEM;
    atomic_flag_clear(&l->lock);
    l->nodes = nodes;
    for (uint32_t i = 0; i < nodes; i++)
        l->direction[i].Bps = l->direction[nodes + i].Bps = smg_world_link_Bps(w, i);
    *out = l;
    return SMG_OK;
}

void smg_links_destroy(struct smg_links *l)
{
    if (l)
        munmap(l, bytes_of(l->nodes));
}

double smg_links_take(struct smg_links *l, uint32_t from, uint32_t to, double bytes, double now_s)
{
    struct direction *tx = &l->direction[from], *rx = &l->direction[l->nodes + to];
    double begin_s, end_s;

    while (atomic_flag_test_and_set_explicit(&l->lock, memory_order_acquire))
        sched_yield(); /* the holder may be off its core */
    begin_s = tx->free_s > rx->free_s ? tx->free_s : rx->free_s;
    if (begin_s < now_s)
        begin_s = now_s;
    end_s = begin_s + bytes / (tx->Bps < rx->Bps ? tx->Bps : rx->Bps);
    tx->free_s = begin_s + bytes / tx->Bps;
    rx->free_s = end_s > begin_s + bytes / rx->Bps ? begin_s + bytes / rx->Bps : end_s;
    atomic_flag_clear_explicit(&l->lock, memory_order_release);
    return end_s;
}
