/* Presence ledger of one request on the decode side: the KV mask, the reuse bitmap, and how often each block was written.
 *
 * mask[layer][token]: 0 padding (or a token the layer does not keep), 1 local, 2 remote; width N + output tokens; generated
 * tokens are local. The reuse bitmap marks single fetched entries that are kept: an entry is local iff mask = 1 or its bit is
 * set. */
#ifndef SMG_CORE_LEDGER_H
#define SMG_CORE_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "core/grid.h"

#pragma GCC visibility push(default)

enum smg_mask_value { SMG_MASK_PAD = 0, SMG_MASK_LOCAL = 1, SMG_MASK_REMOTE = 2 };

struct smg_store;

struct smg_ledger {
    struct smg_grid grid;
    struct smg_store *store;     /* that it is of; NULL: the heap */
    uint32_t width;              /* N + output tokens */
    int8_t *mask;                /* [layers][width] */
    int mask_owned;
    uint8_t *writes;             /* [layers][blocks], times written, saturating */
    uint32_t present[SMG_MAX_LAYERS]; /* tokens in written blocks, per layer */
    uint64_t *kept;              /* [layers][heads][ceil(N/64)] reuse bitmap, NULL without reuse */
    uint64_t blocks_written;
    uint64_t rewritten;          /* blocks written more than once: a conservation error */
};

/* Creates the ledger of a request with every valid prompt token remote. external_mask: NULL, or caller-owned int8 [layers][width]
 * memory (a region that a NIC writes), which is initialised. */
int smg_ledger_create(const struct smg_grid *g, uint32_t output_tokens, int reuse, int8_t *external_mask,
                      struct smg_ledger **out);
void smg_ledger_destroy(struct smg_ledger *l);
const int8_t *smg_ledger_mask(const struct smg_ledger *l, uint32_t layer);               /* [width] */
uint64_t *smg_ledger_kept(struct smg_ledger *l, uint32_t layer, uint32_t head);         /* [ceil(N/64)] or NULL */
/* Blocks [first, first+count) of a layer have been written: counts them; sets their mask when set_mask. */
void smg_ledger_write(struct smg_ledger *l, uint32_t layer, uint32_t first, uint32_t count, int set_mask);
int smg_ledger_has_block(const struct smg_ledger *l, uint32_t layer, uint32_t block);
/* Marks a fetched entry as kept. No effect without reuse. */
void smg_ledger_keep(struct smg_ledger *l, uint32_t layer, uint32_t head, uint32_t token);
/* Kept entries inside blocks [first, first+count): written again by a block WRITE, they are duplicate entries. */
uint64_t smg_ledger_kept_in(const struct smg_ledger *l, uint32_t layer, uint32_t first, uint32_t count);

#pragma GCC visibility pop

#endif
