/* Algorithm 1: split a KV index by the mask, remote entries first; and the scatter plan of the replies. */
#ifndef SMG_CORE_SPLIT_H
#define SMG_CORE_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* Splits one row (one request, one KV head). index[k]: token ids, -1 padding. mask[width] int8 as in ledger.h. kept: reuse bitmap
 * of this layer and head, or NULL; a remote entry whose bit is set is local. Entries with mask 0, index -1 or index >= width are
 * dropped. reorder: out_index[k] gets remote entries first, then local ones, each in input order (a stable partition), then -1;
 * otherwise out_index keeps the input order of the surviving entries. remote_out[k], local_out[k]: the two index lists in input
 * order (any of the three may be NULL). n_remote + n_local = surviving entries. index may not overlap the outputs. */
void smg_split_row(const int32_t *index, uint32_t k, const int8_t *mask, uint32_t width, const uint64_t *kept, int reorder,
                   int32_t *out_index, int32_t *remote_out, uint32_t *n_remote, int32_t *local_out, uint32_t *n_local);

/* One contiguous landing segment of a reply: `bytes` at `offset` in the landing area, coming from `source_offset` in the
 * reply. */
struct smg_segment {
    uint64_t offset, source_offset, bytes;
};

/* Receives of one reply, each with at most scatter_limit segments. */
struct smg_scatter_plan {
    struct smg_segment *segment;    /* [n_segments], in reply order */
    uint32_t n_segments;
    uint32_t *first;                /* [n_receives + 1], segments of receive i are first[i] .. first[i+1] */
    uint32_t n_receives;
    uint64_t bytes;                 /* of the whole reply */
};

/* Plans the landing of a reply for one (request, layer): rows[heads] remote entries per KV head. The reply is contiguous in (all
 * K rows, all V rows) order; row h of K lands at h * row_stride_bytes of the K area (offset 0), row h of V likewise at
 * v_offset_bytes. half_bytes: bytes of K (or V) of one entry. Empty rows make no segment. scatter_limit >= 1. Free with
 * smg_scatter_free. */
int smg_scatter_plan(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes,
                     uint64_t v_offset_bytes, uint32_t scatter_limit, struct smg_scatter_plan *out);
void smg_scatter_free(struct smg_scatter_plan *p);
/* Receives needed for segments pieces: ceil(segments / limit), 0 for none. */
uint32_t smg_scatter_receives(uint32_t segments, uint32_t limit);

#pragma GCC visibility pop

#endif
