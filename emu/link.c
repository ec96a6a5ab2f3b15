#include "emu/link.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "core/status.h"

struct direction {
    double Bps, free_s;          /* when the link is free again */
};

struct smg_links {
    pthread_mutex_t lock;        /* robust: a process that is ended while it holds the lock does not hang the others */
    uint32_t nodes;
    struct direction direction[]; /* [nodes] transmit, then [nodes] receive */
};

static size_t bytes_of(uint32_t nodes)
{
    return sizeof(struct smg_links) + 2 * (size_t)nodes * sizeof(struct direction);
}

static int init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int failed;

    if (pthread_mutexattr_init(&attributes))
        return SMG_ERR_NOMEM;
    failed = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) ||
             pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) || pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return failed ? SMG_ERR_UNSUPPORTED : SMG_OK;
}

int smg_links_create(const struct smg_world *w, struct smg_links **out)
{
    uint32_t nodes = smg_world_nodes(w);
    struct smg_links *l = mmap(NULL, bytes_of(nodes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    int status;

    if (l == MAP_FAILED)
        return SMG_ERR_NOMEM;
    status = init_lock(&l->lock);
    if (status) {
        munmap(l, bytes_of(nodes));
        return status;
    }
    l->nodes = nodes;
    for (uint32_t i = 0; i < nodes; i++)
        l->direction[i].Bps = l->direction[nodes + i].Bps = smg_world_link_Bps(w, i);
    *out = l;
    return SMG_OK;
}

void smg_links_destroy(struct smg_links *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    munmap(l, bytes_of(l->nodes));
}

double smg_links_take(struct smg_links *l, uint32_t from, uint32_t to, double bytes, double now_s)
{
    struct direction *tx = &l->direction[from], *rx = &l->direction[l->nodes + to];
    double begin_s, end_s;

    /* What a lost holder left half done is at worst one transfer that is not counted. */
    if (pthread_mutex_lock(&l->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&l->lock);
    begin_s = tx->free_s > rx->free_s ? tx->free_s : rx->free_s;
    if (begin_s < now_s)
        begin_s = now_s;
    end_s = begin_s + bytes / (tx->Bps < rx->Bps ? tx->Bps : rx->Bps);
    tx->free_s = begin_s + bytes / tx->Bps;
    rx->free_s = end_s > begin_s + bytes / rx->Bps ? begin_s + bytes / rx->Bps : end_s;
    pthread_mutex_unlock(&l->lock);
    return end_s;
}
