/* Memory for all that comes while the clock of a run goes, taken before it starts: all requests are known, so sizes are, too.
 * What there is room for is bounded by the requests, not by what is there at a time: memory that is not touched costs nothing.
 * Kernels keep work space of their own, which grows to the longest prompt; a peer that is lost may take more. */
#include <stdlib.h>

#include "core/cost.h"
#include "core/reserve.h"
#include "emu/process.h"

/* Operations, item lists and actions of one instance. */
struct bounds {
    uint64_t ops, lists_bytes, actions, items, areas, store_bytes;
};

enum {
    OPS_EACH = 64,   /* of a request, beside its layers and blocks: messages, and stages that overlap */
    ACTIONS_EACH = 8 /* of a request in one step */
};

/* A prefill instance computes and copies each layer, and sends each block and each piece of metadata once. */
static void add_prefill(const struct smg_process *p, uint32_t request, struct bounds *b)
{
    const struct smg_world *w = p->world;
    uint64_t tokens = w->requests[request].prompt_tokens, limit = smg_world_chunk_bytes(w), pieces;
    struct smg_grid g;

    smg_scheme_grid(w, (uint32_t)tokens, &g);
    pieces = smg_grid_total_blocks(&g) +
             w->model.layers * ((tokens * smg_metadata_token_bytes(w) + limit - 1) / limit);
    b->ops += OPS_EACH + 2 * w->model.layers + pieces;
    b->lists_bytes += pieces * smg_store_cost(sizeof(struct smg_item));
    b->actions += ACTIONS_EACH + w->model.layers;
    b->items = b->items > 2 * pieces * w->decode_instances ? b->items : 2 * pieces * w->decode_instances;
    b->areas += 2 + SMG_INDICES_MAX;
    b->store_bytes += smg_prefill_cost(p, request);
}

static void add_decode(const struct smg_process *p, uint32_t request, struct bounds *b)
{
    b->ops += OPS_EACH;
    b->actions += ACTIONS_EACH;
    b->items++;
    b->areas += 6;
    b->store_bytes += smg_decode_cost(p, request);
}

static void bound(const struct smg_process *p, struct bounds *b)
{
    const struct smg_world *w = p->world;
    uint64_t batch = w->scenario.decode_max_batch < w->n_requests ? w->scenario.decode_max_batch : w->n_requests;

    /* messages to everybody; the areas of a process itself; a few lists of each size that a batch can have */
    *b = (struct bounds){.ops = OPS_EACH + 4 * (uint64_t)p->instances, .actions = 64 + 4 * (uint64_t)p->instances, .areas = 4};
    b->lists_bytes = 8 * smg_store_cost(batch * sizeof(struct smg_item));
    for (uint32_t r = 0; r < w->n_requests; r++) {
        if (smg_world_is_prefill(w, p->self)) {
            add_prefill(p, r, b);
        } else if (p->self) {
            add_decode(p, r, b);
        } else {
            b->ops += ACTIONS_EACH;
            b->actions += ACTIONS_EACH;
        }
    }
    b->actions += b->items; /* each grant in a piece of its own */
}

int smg_process_reserve(struct smg_process *p)
{
    const struct smg_selection *s = p->selection;
    size_t heads = p->world->model.kv_heads;
    struct bounds b;
    int status;

    bound(p, &b);
    p->segment = calloc(2 * heads + 1, sizeof *p->segment);
    p->first_segment = calloc(2 * heads + 2, sizeof *p->first_segment);
    status = p->segment && p->first_segment ? smg_store_reserve(&p->store, b.store_bytes) : SMG_ERR_NOMEM;
    if (!status)
        status = smg_arena_reserve(p->arena, b.areas);
    if (!status)
        status = smg_agent_reserve(p->agent);
    if (!status)
        status = smg_lanes_reserve(p->lanes, b.ops, b.lists_bytes);
    if (!status)
        status = smg_actions_reserve(&p->actions, b.actions, b.items);
    if (!status)
        status = smg_pool_reserve(&p->pool, p->world->n_requests);
    if (!status)
        status = smg_process_reserve_queues(p, 256 + b.ops, 256 + 4 * (uint64_t)p->instances + p->world->n_requests);
    if (!status && s && s->type->reserve)
        status = s->type->reserve(p->selection);
    return status;
}
