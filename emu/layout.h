/* Where the bytes of a request's KV cache live, what they must be, and their digest. The same layout on both sides, so that
 * adjacent blocks are adjacent in memory and travel in one WRITE.
 *
 * Per layer the kept tokens' blocks follow one another; a block of nb tokens is K[H][nb][d] then V[H][nb][d] ((H x Nb x d) x
 * 2). */
#ifndef SMG_EMU_LAYOUT_H
#define SMG_EMU_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "core/grid.h"
#include "core/world.h"

struct smg_layout {
    struct smg_grid grid;
    uint32_t heads;
    uint64_t half_bytes;             /* K (or V) of one entry */
    uint64_t token_bytes;            /* one token, one layer */
    uint64_t layer_offset[SMG_MAX_LAYERS + 1];
    uint32_t kept_lo[SMG_MAX_LAYERS]; /* first token a layer keeps */
    uint64_t metadata_token_bytes;
    uint32_t metadata_slot[SMG_MAX_LAYERS]; /* index among selecting layers */
    uint32_t metadata_layers;
    uint32_t mask_width;
};

void smg_layout_init(struct smg_layout *l, const struct smg_world *w, uint32_t request, int metadata);
uint64_t smg_layout_kv_bytes(const struct smg_layout *l);
uint64_t smg_layout_mask_bytes(const struct smg_layout *l);
uint64_t smg_layout_metadata_bytes(const struct smg_layout *l);
/* Offset of block `block` of a layer in the KV area, and of a layer's metadata in the metadata area. */
uint64_t smg_layout_block(const struct smg_layout *l, uint32_t layer, uint32_t block);
uint64_t smg_layout_metadata(const struct smg_layout *l, uint32_t layer);
/* Offset of the K half of an entry; its V half is *v_out. */
uint64_t smg_layout_entry(const struct smg_layout *l, uint32_t layer, uint32_t head, uint32_t token, uint64_t *v_out);

/* Content: a function of (seed, request, layer, token, head, K or V); half_bytes bytes at out. */
void smg_content_half(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, uint64_t bytes,
                      uint8_t *out);
/* Whether data[bytes] is that content. */
int smg_content_is(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, uint64_t bytes,
                   const uint8_t *data);
/* Fills one layer of the KV area. */
void smg_content_layer(const struct smg_layout *l, uint64_t seed, uint32_t request, uint32_t layer, uint8_t *kv);
/* Metadata bytes [first, first + bytes) of a layer. */
void smg_content_metadata(uint64_t seed, uint32_t request, uint32_t layer, uint64_t first, uint64_t bytes, uint8_t *out);
/* Digest of one entry, keyed by (layer, head, token); digests of a set add up, so that their order does not matter. */
uint64_t smg_digest_entry(uint32_t layer, uint32_t head, uint32_t token, const uint8_t *k, const uint8_t *v, uint64_t half_bytes);

#endif
