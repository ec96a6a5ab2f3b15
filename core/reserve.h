/* For a driver that must not allocate while its clock runs: memory for what a run holds, taken at once while it is set up.
 * Without it everything works the same and takes memory as it comes. Not part of the interface of libsmartgen. */
#ifndef SMG_CORE_RESERVE_H
#define SMG_CORE_RESERVE_H

#include "core/agent.h"
#include "core/lanes.h"
#include "core/ledger.h"
#include "core/pool.h"
#include "core/rank.h"
#include "core/record.h"
#include "core/split.h"
#include "core/store.h"

/* All functions return SMG_ERR_NOMEM when there is no memory, and nothing is reserved then. */

/* Everything that the agent keeps of the world's requests. Before the first step. */
int smg_agent_reserve(struct smg_agent *a);
/* Every lane, `ops` operations at a time, and item lists. lists_bytes: sum of smg_store_cost() over the lists of all
 * operations, or over the most that are there at a time of each size. Before the first submit. */
int smg_lanes_reserve(struct smg_lanes *l, uint64_t ops, uint64_t lists_bytes);
/* So many actions of one step, with so many items together. */
int smg_actions_reserve(struct smg_actions *a, size_t actions, size_t items);
/* So many requests that wait. After smg_pool_init, before the first ask. */
int smg_pool_reserve(struct smg_pool *p, uint32_t waiting);
/* So many tokens. */
int smg_records_reserve(struct smg_records *r, size_t tokens);

/* As smg_ledger_create and smg_rank_create, of a store, which outlives them; and what they take of it in all. */
int smg_ledger_create_in(struct smg_store *s, const struct smg_grid *g, uint32_t output_tokens, int reuse, int8_t *external_mask,
                         struct smg_ledger **out);
uint64_t smg_ledger_cost(const struct smg_grid *g, uint32_t output_tokens, int reuse, int external_mask);
int smg_rank_create_in(struct smg_store *s, const struct smg_rank_type *type, const struct smg_rank_input *in,
                       struct smg_rank **out);
uint64_t smg_rank_cost(const struct smg_grid *g);

/* As smg_scatter_plan, in the caller's memory: segment[2 * heads + 1], first[2 * heads + 2]. Not to be freed. */
int smg_scatter_plan_at(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes,
                        uint64_t v_offset_bytes, uint32_t scatter_limit, struct smg_segment *segment, uint32_t *first,
                        struct smg_scatter_plan *out);

#endif
