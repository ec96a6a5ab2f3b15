/* Pools and ledgers of the simulated driver: who has memory, and which blocks are where. */
#include <string.h>

#include "sim/sim_priv.h"

static int reserved_event(struct smg_sim *s, uint16_t instance, uint32_t request, uint32_t op, int outcome)
{
    struct smg_event e;

    memset(&e, 0, sizeof e);
    e.kind = SMG_EV_RESERVED;
    e.request = request;
    e.op = op;
    e.status = outcome;
    return smg_sim_event(s, instance, &e);
}

static int open_ledger(struct smg_sim *s, uint32_t request)
{
    const struct smg_scenario *sc = &s->world->scenario;
    struct smg_grid g;
    int status;

    smg_scheme_grid(s->world, s->world->requests[request].prompt_tokens, &g);
    status = smg_ledger_create(&g, s->world->requests[request].output_tokens,
                               s->features.reuse && sc->selection.source == SMG_SOURCE_ENTRY, NULL, &s->ledger[request]);
    return status ? status : s->selection->type->open(s->selection, request, s->ledger[request]);
}

/* The pool has granted it: note how much, open the ledger, tell the agent. */
static int granted(struct smg_sim *s, uint16_t instance, uint32_t request, uint32_t op, uint64_t bytes)
{
    int decode = smg_world_is_decode(s->world, instance), status = SMG_OK;

    s->reserved_bytes[decode][request] = bytes;
    if (decode)
        status = open_ledger(s, request);
    return status ? status : reserved_event(s, instance, request, op, SMG_OK);
}

int smg_sim_reserve(struct smg_sim *s, uint16_t instance, const struct smg_action *a)
{
    int status = smg_pool_ask(&s->instance[instance].pool, a->request, a->op, a->bytes);

    if (!status)
        return granted(s, instance, a->request, a->op, a->bytes);
    if (status == SMG_ERR_CAPACITY)
        return reserved_event(s, instance, a->request, a->op, status);
    return status == SMG_ERR_RANGE ? SMG_OK : status;
}

static void close_ledger(struct smg_sim *s, uint32_t request)
{
    struct smg_ledger *l = s->ledger[request];

    s->selection->type->close(s->selection, request);
    s->stats.blocks_written += l->blocks_written;
    s->stats.blocks_rewritten += l->rewritten;
    smg_ledger_destroy(l);
    s->ledger[request] = NULL;
}

int smg_sim_release(struct smg_sim *s, uint16_t instance, const struct smg_action *a)
{
    struct smg_pool *pool = &s->instance[instance].pool;
    int decode = smg_world_is_decode(s->world, instance), status = SMG_OK;
    uint32_t request, op;
    uint64_t bytes;

    smg_pool_give(pool, s->reserved_bytes[decode][a->request]);
    if (decode && s->ledger[a->request])
        close_ledger(s, a->request);
    while (!status && smg_pool_next(pool, &request, &op, &bytes))
        status = granted(s, instance, request, op, bytes);
    return status;
}

/* A WRITE of blocks has landed: mask and ledger follow. */
int smg_sim_placed(struct smg_sim *s, const struct smg_op *op)
{
    struct smg_ledger *l = s->ledger[op->action.request];

    if (!l) {
        s->stats.blocks_unknown += op->action.n_items;
        return SMG_OK;
    }
    for (uint32_t i = 0; i < op->action.n_items; i++) {
        const struct smg_item *it = &op->items[i];
        s->stats.duplicate_bytes[op->action.request] +=
            smg_ledger_kept_in(l, it->layer, it->first, it->count) * smg_model_entry_bytes(&s->world->model);
        smg_ledger_write(l, it->layer, it->first, it->count, 1);
        s->selection->type->visible(s->selection, op->action.request, it->layer, it->first, it->count);
    }
    return SMG_OK;
}
