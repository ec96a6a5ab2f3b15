/* A control message as it lies in memory and on the wire, and what must hold before anything in it is used. Pure: no process, no
 * fabric; who may say it is for the two sides to decide. */
#ifndef SMG_EMU_WIRE_H
#define SMG_EMU_WIRE_H

#include "core/agent.h"
#include "emu/layout.h"

#define SMG_WIRE_MAGIC UINT32_C(0x534d4757)

/* Header, then for INDEX rows[heads] counts and the ids of all rows. */
struct smg_wire {
    uint32_t magic;
    uint32_t bytes; /* of the whole message */
    struct smg_message msg;
    uint32_t rows_then_ids[];
};

/* Whether `bytes` bytes at wire, which has room for a whole header, are a message that fits this run at all. */
int smg_wire_is_message(const struct smg_world *w, const struct smg_wire *wire, uint64_t bytes);
/* Words behind the header of what is a message. */
uint64_t smg_wire_words(const struct smg_wire *wire);
/* INDEX: rows[words], counts per KV head and then ids, name tokens that the layer keeps, for a step that comes, and the message
 * counts them right. *entries_out: how many. layout: of msg->request. */
int smg_wire_index_is_valid(const struct smg_world *w, const struct smg_layout *layout, const struct smg_message *msg,
                            const uint32_t *rows, uint64_t words, uint64_t *entries_out);
/* POOL: the three areas of the request lie inside a region of region_bytes. layout as above. */
int smg_wire_pool_is_valid(const struct smg_layout *layout, const struct smg_message *msg, uint64_t region_bytes);

#endif
