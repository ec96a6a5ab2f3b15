/* Block rankings: the order in which blocks deserve the wire. */
#ifndef SMG_CORE_RANK_H
#define SMG_CORE_RANK_H

#include <stdint.h>

#include "core/grid.h"
#include "core/importance.h"

#pragma GCC visibility push(default)

struct smg_block_id {
    uint16_t layer;
    uint16_t pad;
    uint32_t block;
};

struct smg_store;

/* A total order of the non-empty blocks of a prompt. Dense layers always come first, in (layer, block) order. */
struct smg_rank {
    uint32_t total;                  /* non-empty blocks */
    uint32_t layers, blocks;
    struct smg_block_id *order;      /* [total], best first */
    uint32_t *position;              /* [layers][blocks], place in the order; UINT32_MAX for an empty block */
    uint32_t references;
    struct smg_store *store;         /* that it is of; NULL: the heap */
};

/* What a ranking may look at. */
struct smg_rank_input {
    const struct smg_grid *grid;
    const struct smg_importance *importance; /* NULL unless needs_importance */
    uint64_t seed;
    uint32_t request;
};

struct smg_rank_type {
    const char *name;
    const char *doc;
    int needs_importance;
    int per_request;                 /* the order depends on the request, not only on its length */
    /* Score of a block of a layer that is not dense: higher is better; ties break by layer, then block, ascending. */
    int (*score)(const struct smg_rank_input *in, uint32_t layer, float *score /* [blocks] */);
};

/* Needs importance with request_row: frequencies of the evaluated request itself. */
extern const struct smg_rank_type smg_rank_optimal;
/* NULL-terminated. */
extern const struct smg_rank_type *const smg_rank_types[];
const struct smg_rank_type *smg_rank_find(const char *name);

/* Ranks the blocks of a prompt: dense layers first, then (score descending, layer ascending, block ascending). */
int smg_rank_create(const struct smg_rank_type *type, const struct smg_rank_input *in, struct smg_rank **out);
struct smg_rank *smg_rank_ref(struct smg_rank *r);
void smg_rank_unref(struct smg_rank *r);

#pragma GCC visibility pop

#endif
