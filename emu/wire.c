#include "emu/wire.h"

int smg_wire_is_message(const struct smg_world *w, const struct smg_wire *wire, uint64_t bytes)
{
    return bytes >= sizeof *wire && wire->magic == SMG_WIRE_MAGIC && wire->bytes == bytes &&
           (wire->bytes - sizeof *wire) % sizeof *wire->rows_then_ids == 0 && wire->msg.request < w->n_requests &&
           wire->msg.layer_lo <= w->model.layers && wire->msg.layer_hi <= w->model.layers;
}

uint64_t smg_wire_words(const struct smg_wire *wire)
{
    return (wire->bytes - sizeof *wire) / sizeof *wire->rows_then_ids;
}

int smg_wire_index_is_valid(const struct smg_world *w, const struct smg_layout *layout, const struct smg_message *msg,
                            const uint32_t *rows, uint64_t words, uint64_t *entries_out)
{
    const struct smg_request_spec *r = &w->requests[msg->request];
    uint32_t heads = w->model.kv_heads, lo;
    uint64_t sum = 0;

    if (words < heads || msg->layer_lo >= w->model.layers || msg->layer_hi != msg->layer_lo + 1 || !msg->step ||
        msg->step >= r->output_tokens)
        return 0;
    lo = layout->kept_lo[msg->layer_lo];
    for (uint32_t h = 0; h < heads; h++) {
        if (rows[h] > r->prompt_tokens - lo)
            return 0;
        sum += rows[h];
    }
    if (!sum || sum != words - heads || sum != msg->u.index.entries || msg->u.index.messages > 2 * sum ||
        msg->u.index.bytes != sum * 2 * layout->half_bytes)
        return 0;
    for (uint64_t i = heads; i < words; i++)
        if (rows[i] < lo || rows[i] >= r->prompt_tokens)
            return 0;
    *entries_out = sum;
    return 1;
}

static int inside(uint64_t offset, uint64_t bytes, uint64_t region)
{
    return offset <= region && bytes <= region - offset;
}

int smg_wire_pool_is_valid(const struct smg_layout *layout, const struct smg_message *msg, uint64_t region_bytes)
{
    const uint64_t *at = msg->u.pool.cookie;

    return inside(at[0], smg_layout_kv_bytes(layout), region_bytes) &&
           inside(at[1], smg_layout_mask_bytes(layout), region_bytes) &&
           inside(at[2], smg_layout_metadata_bytes(layout), region_bytes);
}
