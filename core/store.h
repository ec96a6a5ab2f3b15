/* Memory for pieces that come and go while a run goes on, for one thread. All zero, or NULL, a store is malloc and free. With a
 * reserve, pieces are cut from it, kept by size when they are given back, and taken again: nothing is allocated for as long as
 * the reserve lasts. What it has no room for is allocated all the same. */
#ifndef SMG_CORE_STORE_H
#define SMG_CORE_STORE_H

#include <stddef.h>
#include <stdint.h>

enum { SMG_STORE_SIZES = 48 };

struct smg_store_head;

struct smg_store {
    uint8_t *base;                /* NULL: no reserve */
    uint64_t bytes, used;
    struct smg_store_head *spare[SMG_STORE_SIZES]; /* given back, by power of two */
};

/* Of the reserve that a piece of so many bytes takes. A store whose reserve is the sum over all pieces ever taken of it lasts;
 * so does one of the most pieces of each size that are there at a time. */
uint64_t smg_store_cost(uint64_t piece_bytes);
/* Once. Memory that is not used is not touched. SMG_ERR_NOMEM. */
int smg_store_reserve(struct smg_store *s, uint64_t bytes);
/* Aligned for any type; NULL: out of memory. Zeroed, or as it is. */
void *smg_store_take(struct smg_store *s, uint64_t bytes);
void *smg_store_take_raw(struct smg_store *s, uint64_t bytes);
/* The piece, or one that takes less room with its first `bytes` bytes; never NULL. */
void *smg_store_fit(struct smg_store *s, void *piece, uint64_t bytes);
/* To the store that it is of. NULL is allowed. */
void smg_store_give(struct smg_store *s, void *piece);
/* Frees the reserve with every piece of it, and leaves the store all zero. Other pieces must have been given back. */
void smg_store_free(struct smg_store *s);

#endif
