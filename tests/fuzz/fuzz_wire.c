/* Any bytes where a control message of an instance is expected, as a peer could send them. The first byte says whether the header
 * is made right (otherwise it is bytes of the input too) and whose memory an offset may point into; then the message, then the
 * index lists beside it. What is accepted fits the run: nothing that an instance copies, gathers or writes to lies outside of
 * what it holds. */
#include <stdlib.h>
#include <string.h>

#include "emu/wire.h"
#include "tests/fuzz/world.h"

enum { HEADER_AS_GIVEN = 1, REGION_SHIFT = 1 };

static void index_lists(const struct smg_world *w, const struct smg_layout *l, const struct smg_wire *wire)
{
    const struct smg_request_spec *r = &w->requests[wire->msg.request];
    const uint32_t *rows = wire->rows_then_ids;
    uint64_t words = smg_wire_words(wire), entries = 0, sum = 0;

    if (!smg_wire_index_is_valid(w, l, &wire->msg, rows, words, &entries))
        return;
    fuzz_must(words == w->model.kv_heads + entries && entries && wire->msg.layer_lo < w->model.layers);
    for (uint32_t h = 0; h < w->model.kv_heads; h++)
        sum += rows[h];
    fuzz_must(sum == entries && wire->msg.u.index.entries == entries && wire->msg.u.index.bytes == 2 * l->half_bytes * entries);
    for (uint64_t i = w->model.kv_heads; i < words; i++) {
        uint64_t v, k;
        fuzz_must(rows[i] < r->prompt_tokens);
        k = smg_layout_entry(l, wire->msg.layer_lo, w->model.kv_heads - 1, rows[i], &v);
        fuzz_must(k + l->half_bytes <= smg_layout_kv_bytes(l) && v + l->half_bytes <= smg_layout_kv_bytes(l));
    }
}

static void pool(const struct smg_layout *l, const struct smg_message *msg, uint64_t region_bytes)
{
    static const uint64_t top = UINT64_MAX;

    if (!smg_wire_pool_is_valid(l, msg, region_bytes))
        return;
    for (int i = 0; i < 3; i++)
        fuzz_must(msg->u.pool.cookie[i] <= region_bytes);
    fuzz_must(smg_layout_kv_bytes(l) <= region_bytes - msg->u.pool.cookie[0]);
    fuzz_must(msg->u.pool.cookie[0] <= top - smg_layout_kv_bytes(l));
}

static void message(const struct smg_world *w, const struct smg_wire *wire, uint64_t bytes, uint64_t region_bytes)
{
    struct smg_layout l;
    struct smg_event e;

    if (!smg_wire_is_message(w, wire, bytes))
        return;
    fuzz_must(bytes == sizeof *wire + 4 * smg_wire_words(wire) && wire->msg.request < w->n_requests);
    smg_event_message(1, &wire->msg, &e);
    fuzz_must(e.kind == SMG_EV_MSG && e.request == wire->msg.request && e.layer_hi <= w->model.layers);
    smg_layout_init(&l, w, wire->msg.request, 1);
    if (wire->msg.kind == SMG_MSG_INDEX)
        index_lists(w, &l, wire);
    if (wire->msg.kind == SMG_MSG_POOL)
        pool(&l, &wire->msg, region_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct smg_world *w = fuzz_world();
    size_t header = offsetof(struct smg_wire, msg), before, n;
    struct smg_wire *wire;

    if (!bytes)
        return 0;
    before = data[0] & HEADER_AS_GIVEN ? 0 : header;
    n = before + bytes - 1;
    wire = malloc(n ? n : 1); /* no byte more: what is read behind the message is seen */
    fuzz_must(wire);
    memcpy((uint8_t *)wire + before, data + 1, bytes - 1);
    if (before) {
        wire->magic = SMG_WIRE_MAGIC;
        wire->bytes = (uint32_t)n;
    }
    message(w, wire, n, (uint64_t)4096 << (data[0] >> REGION_SHIFT) % 16);
    free(wire);
    return 0;
}
