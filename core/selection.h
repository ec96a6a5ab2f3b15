/* The selection seam: which KV entries a step needs.
 *
 * Two kinds of source stand behind it. *entry*: real index lists, int32 [kv_heads][k], split by the real mask. *layer*: expected
 * counts per absent block. Layers that do not select (0, 1, sliding ones) use every entry they keep; sources handle that case
 * themselves. */
#ifndef SMG_CORE_SELECTION_H
#define SMG_CORE_SELECTION_H

#include <stdint.h>

#include "core/ledger.h"
#include "core/world.h"

#pragma GCC visibility push(default)

struct smg_selection;

/* Outcome of one split, in KV entries (all KV heads of one layer). */
struct smg_split_count {
    uint64_t local, remote;
    uint32_t row_max;            /* longest remote row */
};

struct smg_selection_type {
    const char *name;            /* "entry", "layer" */
    const char *doc;
    int (*create)(const struct smg_world *w, struct smg_selection **out);
    void (*destroy)(struct smg_selection *s);
    /* A request starts: ledger is kept by the caller and outlives close. */
    int (*open)(struct smg_selection *s, uint32_t request, struct smg_ledger *ledger);
    void (*close)(struct smg_selection *s, uint32_t request);
    /* Blocks became present (called after smg_ledger_write). */
    void (*visible)(struct smg_selection *s, uint32_t request, uint32_t layer, uint32_t first, uint32_t count);
    /* Selects and splits layer of decode step (>= 1). full: everything is local, no mask is read. */
    int (*split)(struct smg_selection *s, uint32_t request, uint32_t step, uint32_t layer, int full, struct smg_split_count *out);
    /* entry only (else SMG_ERR_UNSUPPORTED): the index lists, index[kv_heads][k_cap] row-major with stride k_cap; *k_out <=
     * k_cap. A layer that does not select yields all tokens it keeps. */
    int (*entries)(struct smg_selection *s, uint32_t request, uint32_t step, uint32_t layer, int32_t *index, uint32_t k_cap,
                   uint32_t *k_out);
    /* Fetched entries of that step and layer are now kept (KV reuse). */
    void (*keep)(struct smg_selection *s, uint32_t request, uint32_t step, uint32_t layer);
    /* Takes memory for all requests of the world at once, for a driver that must not allocate while its clock runs; before the
     * first open. SMG_ERR_NOMEM. NULL: memory is taken as it is needed. */
    int (*reserve)(struct smg_selection *s);
};

/* Base of every source. */
struct smg_selection {
    const struct smg_selection_type *type;
    const struct smg_world *world;
};

/* Entries per KV head that a selecting layer picks from a prompt: floor(share * N), at least 1. The share is the cap, or for
 * InfiniGen what its threshold selects by itself (selection.natural) when that is less. */
uint32_t smg_selection_k(const struct smg_world *w, uint32_t prompt_tokens);

#pragma GCC visibility pop

#endif
