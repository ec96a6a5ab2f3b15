/* First-fit allocator inside one registered region. Offsets, not pointers, are what peers are told. */
#ifndef SMG_EMU_ARENA_H
#define SMG_EMU_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct smg_arena;

enum { SMG_ARENA_ALIGN = 64 };

/* Maps `bytes` of zeroed memory (touched on first use), in large pages where the system has them. */
int smg_arena_create(uint64_t bytes, struct smg_arena **out);
void smg_arena_destroy(struct smg_arena *a);
uint8_t *smg_arena_base(const struct smg_arena *a);
uint64_t smg_arena_bytes(const struct smg_arena *a);
/* Memory to keep account of so many areas at a time, taken at once. SMG_ERR_NOMEM. */
int smg_arena_reserve(struct smg_arena *a, uint64_t areas);
/* SMG_ERR_CAPACITY: no hole is large enough. */
int smg_arena_take(struct smg_arena *a, uint64_t bytes, uint64_t *offset_out);
/* Gives back what take returned. */
void smg_arena_give(struct smg_arena *a, uint64_t offset);

#endif
