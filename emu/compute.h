/* Real compute around the KV cache (emu.compute: kernels): contents, selector metadata, selection, split, gather and attention by
 * the kernels of kernels/, on seeded tensors with planted structure. They are synthetic: no model made them. The model's own work
 * (projections, feed-forward) stays paced.
 *
 * What is where: prefill fills K and V, packs them into blocks, and makes the selector's metadata; decode selects with the query
 * of the step and the metadata that it received, splits by the mask, and attends to the gathered rows and to the entries of the
 * tokens generated so far, which are on its GPU. */
#ifndef SMG_EMU_COMPUTE_H
#define SMG_EMU_COMPUTE_H

#include "core/world.h"
#include "emu/layout.h"

/* What kernels take of a model: an even head_dim (the planted tensors turn three pairs of channels) and query heads. */
enum { SMG_COMPUTE_MIN_DIM = 6, SMG_COMPUTE_MAX_DIM = 256, SMG_COMPUTE_MAX_HEADS = 1024 };

struct smg_compute;
struct smg_compute_plan; /* parameters of the selectors, layer by layer, from a calibration request that is never served */

/* Made once, before the processes fork. SMG_ERR_UNSUPPORTED with diag: a model or a key that the kernels cannot follow. */
int smg_compute_plan_create(const struct smg_world *w, struct smg_compute_plan **out, struct smg_diag *diag);
void smg_compute_plan_destroy(struct smg_compute_plan *p);

/* One per process; plan is kept by the caller. */
int smg_compute_create(const struct smg_world *w, const struct smg_compute_plan *plan, struct smg_compute **out,
                       struct smg_diag *diag);
void smg_compute_destroy(struct smg_compute *c);
/* Why a call was refused. */
const char *smg_compute_diag(const struct smg_compute *c);

/* K (v 0) or V of one entry: half_bytes at out. */
void smg_compute_half(struct smg_compute *c, uint32_t request, uint32_t layer, uint32_t head, uint32_t token, int v, void *out);
/* Fills one layer of the KV area. */
int smg_compute_fill(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer, uint8_t *kv);
/* The selector's metadata of a layer that selects, from the KV area: tokens * metadata_token_bytes at out, zeros where a layout
 * leaves a rest. */
int smg_compute_metadata(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, const uint8_t *kv, uint8_t *out);
/* The same from the content, for comparison. */
int smg_compute_metadata_expected(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t layer,
                                  uint8_t *out);

/* index[heads][cap]: ids that the selector picks in this step, ascending, row[h] of them. Layers that do not select: all they
 * keep. metadata as above; the oracle needs none. */
int smg_compute_select(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer,
                       const uint8_t *metadata, int32_t *index, uint32_t cap, uint32_t *row);

/* Algorithm 1 for one KV head: ids[n] and remote[n] in the order in which rows are gathered. */
int smg_compute_split(struct smg_compute *c, const int32_t *index, uint32_t n, const int8_t *mask, uint32_t width,
                      const uint64_t *kept, int reorder, int32_t *ids, uint8_t *remote, uint32_t *n_remote, uint32_t *n_local);

/* Entries of a layer's blocks to places in rows: entry j of ids row h goes to to_start[h] + j entries of k_out and v_out. */
int smg_compute_gather(struct smg_compute *c, const struct smg_layout *l, uint32_t layer, const uint8_t *kv, const int32_t *ids,
                       const uint64_t *ids_start, const uint32_t *rows, const uint64_t *to_start, uint8_t *k_out, uint8_t *v_out);
/* A contiguous reply into rows. */
int smg_compute_scatter(struct smg_compute *c, const struct smg_layout *l, const uint32_t *rows, const uint64_t *from_start,
                        const uint64_t *to_start, const uint8_t *k_in, const uint8_t *v_in, uint8_t *k_out, uint8_t *v_out);

/* Rows as gathered, K[heads][cap][d] then V likewise, and what they are. */
/* How far an output is from the reference: the largest difference of a channel over the sizes of the terms that it is the sum of
 * (compute_error.c), and over the largest value of its query head. */
struct smg_compute_error {
    double of_terms, of_head;
};

struct smg_compute_rows {
    const uint8_t *device;
    uint32_t cap;
    const int32_t *ids;  /* [heads][cap] */
    const uint32_t *row; /* [heads] */
};

/* What rounding comes to, of the terms: 3 units of 2^-24. */
#define SMG_COMPUTE_ROUNDING (3 * 0x1p-24)

/* Attention of one decode step over the rows and the step's generated tokens. *digest: of the output's bits, by request, layer
 * and step. check: the same attention by the reference over entries made anew, in order of their ids; *error: how far it is
 * from that, 0 without check. */
int smg_compute_attention(struct smg_compute *c, const struct smg_layout *l, uint32_t request, uint32_t step, uint32_t layer,
                          const struct smg_compute_rows *rows, int check, uint64_t *digest, struct smg_compute_error *error);

#endif
