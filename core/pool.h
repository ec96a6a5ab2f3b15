/* Admission to an instance's KV memory: first come, first served; what can never fit is refused at once. Shared by all
 * drivers. */
#ifndef SMG_CORE_POOL_H
#define SMG_CORE_POOL_H

#include <stdint.h>

#pragma GCC visibility push(default)

struct smg_pool_wait {
    struct smg_pool_wait *next;
    uint32_t request, op;
    uint64_t bytes;
    int reserved;
};

struct smg_pool {
    uint64_t total_bytes, used_bytes;
    struct smg_pool_wait *waiting, **tail;
    struct smg_pool_wait *room, *spare; /* reserved, NULL: taken as they come; those of it that do not wait */
};

void smg_pool_init(struct smg_pool *p, uint64_t total_bytes);
void smg_pool_free(struct smg_pool *p);
/* SMG_OK: granted now. SMG_ERR_CAPACITY: larger than the whole pool. SMG_ERR_RANGE: queued; smg_pool_next will grant it.
 * SMG_ERR_NOMEM. */
int smg_pool_ask(struct smg_pool *p, uint32_t request, uint32_t op, uint64_t bytes);
void smg_pool_give(struct smg_pool *p, uint64_t bytes);
/* Grants the request that waits longest when it fits now; 0: none. */
int smg_pool_next(struct smg_pool *p, uint32_t *request, uint32_t *op, uint64_t *bytes);

#pragma GCC visibility pop

#endif
