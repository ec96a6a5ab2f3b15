#include "core/split.h"

#include <stdlib.h>
#include <string.h>

#include "core/ledger.h"
#include "core/reserve.h"
#include "core/status.h"

/* Where an entry is: one of enum smg_mask_value, SMG_MASK_PAD for an entry to drop. */
static int locate(int32_t token, const int8_t *mask, uint32_t width, const uint64_t *kept)
{
    int value;

    if (token < 0 || (uint32_t)token >= width) {
        return SMG_MASK_PAD;
    }
    /* A NIC may write the mask meanwhile: read it once, or the lists could disagree with each other. */
    value = *(const volatile int8_t *)&mask[token];
    if (value == SMG_MASK_REMOTE && kept != NULL && (kept[token / 64] >> (token % 64) & 1)) {
        return SMG_MASK_LOCAL;
    }
    return value == SMG_MASK_LOCAL || value == SMG_MASK_REMOTE ? value : SMG_MASK_PAD;
}

static void reverse(int32_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        int32_t t = at[i];
        at[i] = at[n - 1 - i];
        at[n - 1 - i] = t;
    }
}

/* Local entries stand reversed at the row's end, because their place was not known before the remote ones were counted. */
static void finish_row(int32_t *row, uint32_t k, uint32_t remote, uint32_t local)
{
    reverse(row + (k - local), local);
    memmove(row + remote, row + (k - local), local * sizeof(*row));
}

static void pad_row(int32_t *row, uint32_t k, uint32_t used)
{
    for (uint32_t i = used; i < k; i++) {
        row[i] = -1;
    }
}

void smg_split_row(const int32_t *index, uint32_t k, const int8_t *mask, uint32_t width, const uint64_t *kept, int reorder,
                   int32_t *out_index, int32_t *remote_out, uint32_t *n_remote, int32_t *local_out, uint32_t *n_local)
{
    uint32_t remote = 0, local = 0;

    for (uint32_t i = 0; i < k; i++) {
        int where = locate(index[i], mask, width, kept);

        if (where == SMG_MASK_PAD) {
            continue;
        }
        if (out_index != NULL) {
            uint32_t place = !reorder ? remote + local : where == SMG_MASK_REMOTE ? remote : k - 1 - local;
            out_index[place] = index[i];
        }
        if (where == SMG_MASK_REMOTE) {
            if (remote_out != NULL) {
                remote_out[remote] = index[i];
            }
            remote++;
        } else {
            if (local_out != NULL) {
                local_out[local] = index[i];
            }
            local++;
        }
    }
    if (out_index != NULL && reorder) {
        finish_row(out_index, k, remote, local);
    }
    if (out_index != NULL) {
        pad_row(out_index, k, remote + local);
    }
    *n_remote = remote;
    *n_local = local;
}

uint32_t smg_scatter_receives(uint32_t segments, uint32_t limit)
{
    return segments / limit + (segments % limit != 0);
}

/* Segments per half (K or V), or an error when a row does not fit its place. */
static int count_rows(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes, uint32_t *out)
{
    uint32_t n = 0;

    for (uint32_t h = 0; h < heads; h++) {
        if (rows[h] > 0 && half_bytes > row_stride_bytes / rows[h]) {
            return SMG_ERR_RANGE;
        }
        n += rows[h] > 0;
    }
    *out = n;
    return SMG_OK;
}

/* Appends the rows of K (area 0) or V, in reply order. */
static void place_rows(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes, uint64_t area_offset,
                       struct smg_scatter_plan *p)
{
    for (uint32_t h = 0; h < heads; h++) {
        uint64_t bytes = rows[h] * half_bytes;

        if (bytes == 0) {
            continue;
        }
        p->segment[p->n_segments++] = (struct smg_segment){
            .offset = area_offset + h * row_stride_bytes,
            .source_offset = p->bytes,
            .bytes = bytes,
        };
        p->bytes += bytes;
    }
}

static void cut_receives(struct smg_scatter_plan *p, uint32_t scatter_limit)
{
    for (uint32_t i = 0; i < p->n_receives; i++) {
        p->first[i] = i * scatter_limit;
    }
    p->first[p->n_receives] = p->n_segments;
}

static int check_rows(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes,
                      uint32_t scatter_limit, uint32_t *half)
{
    if (scatter_limit == 0 || half_bytes == 0 || heads > UINT32_MAX / 2) {
        return SMG_ERR_INVALID;
    }
    return count_rows(rows, heads, half_bytes, row_stride_bytes, half);
}

int smg_scatter_plan(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes,
                     uint64_t v_offset_bytes, uint32_t scatter_limit, struct smg_scatter_plan *out)
{
    struct smg_scatter_plan p = {0};
    uint32_t half;
    int status = check_rows(rows, heads, half_bytes, row_stride_bytes, scatter_limit, &half);

    if (status != SMG_OK) {
        return status;
    }
    p.segment = calloc(2 * (size_t)half + 1, sizeof(*p.segment));   /* + 1: an empty reply is a plan too */
    p.first = calloc((size_t)smg_scatter_receives(2 * half, scatter_limit) + 1, sizeof(*p.first));
    if (p.segment == NULL || p.first == NULL) {
        smg_scatter_free(&p);
        return SMG_ERR_NOMEM;
    }
    return smg_scatter_plan_at(rows, heads, half_bytes, row_stride_bytes, v_offset_bytes, scatter_limit, p.segment, p.first, out);
}

int smg_scatter_plan_at(const uint32_t *rows, uint32_t heads, uint64_t half_bytes, uint64_t row_stride_bytes,
                        uint64_t v_offset_bytes, uint32_t scatter_limit, struct smg_segment *segment, uint32_t *first,
                        struct smg_scatter_plan *out)
{
    struct smg_scatter_plan p = {.segment = segment, .first = first};
    uint32_t half;
    int status = check_rows(rows, heads, half_bytes, row_stride_bytes, scatter_limit, &half);

    if (status != SMG_OK) {
        return status;
    }
    p.n_receives = smg_scatter_receives(2 * half, scatter_limit);
    place_rows(rows, heads, half_bytes, row_stride_bytes, 0, &p);
    place_rows(rows, heads, half_bytes, row_stride_bytes, v_offset_bytes, &p);
    cut_receives(&p, scatter_limit);
    *out = p;
    return SMG_OK;
}

void smg_scatter_free(struct smg_scatter_plan *p)
{
    free(p->first);
    free(p->segment);
    *p = (struct smg_scatter_plan){0};
}
