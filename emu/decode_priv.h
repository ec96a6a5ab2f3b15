/* Private to the decode side: where an entry of a row, or of the pool, lies. */
#ifndef SMG_EMU_DECODE_PRIV_H
#define SMG_EMU_DECODE_PRIV_H

#include "emu/process.h"

struct smg_place {
    uint8_t *k, *v;
};

/* Place of row position j in an area of rows (device, staging). */
static inline struct smg_place smg_in_rows(const struct smg_process *p, const struct smg_decode_data *d, uint64_t area,
                                           uint32_t head, uint32_t j)
{
    uint64_t at = ((uint64_t)head * d->row_cap + j) * d->layout.half_bytes;
    uint8_t *base = smg_process_at(p, area);

    return (struct smg_place){base + at, base + d->layout.heads * (uint64_t)d->row_cap * d->layout.half_bytes + at};
}

static inline struct smg_place smg_in_pool(const struct smg_process *p, const struct smg_decode_data *d, uint32_t head,
                                           uint32_t token)
{
    uint64_t v, k = smg_layout_entry(&d->layout, d->layer, head, token, &v);
    uint8_t *base = smg_process_at(p, d->kv);

    return (struct smg_place){base + k, base + v};
}

#endif
