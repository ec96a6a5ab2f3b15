/* Pools and ledgers of the simulated driver: who has memory, and which blocks are where. */
#include <stdlib.h>
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

    smg_grid_init(&g, &s->world->model, s->world->requests[request].prompt_tokens, sc->blocks_per_layer, sc->min_block_tokens);
    status = smg_ledger_create(&g, s->world->requests[request].output_tokens, s->features.reuse && sc->selection.source == SMG_SOURCE_ENTRY,
                               NULL, &s->ledger[request]);
    return status ? status : s->selection->type->open(s->selection, request, s->ledger[request]);
}

static int grant_memory(struct smg_sim *s, uint16_t instance, uint32_t request, uint32_t op, uint64_t bytes)
{
    int decode = smg_world_is_decode(s->world, instance), status = SMG_OK;

    s->instance[instance].used_bytes += bytes;
    s->reserved_bytes[decode][request] = bytes;
    if (decode)
        status = open_ledger(s, request);
    return status ? status : reserved_event(s, instance, request, op, SMG_OK);
}

/* Granted at once when there is room and nobody waits; else in order of asking. What can never fit is refused. */
int smg_sim_reserve(struct smg_sim *s, uint16_t instance, const struct smg_action *a)
{
    struct smg_instance *in = &s->instance[instance];
    struct smg_waiting *w;

    if (a->bytes > in->pool_bytes)
        return reserved_event(s, instance, a->request, a->op, SMG_ERR_CAPACITY);
    if (!in->waiting && in->used_bytes + a->bytes <= in->pool_bytes)
        return grant_memory(s, instance, a->request, a->op, a->bytes);
    w = calloc(1, sizeof *w);
    if (!w)
        return SMG_ERR_NOMEM;
    w->request = a->request;
    w->op = a->op;
    w->bytes = a->bytes;
    *in->waiting_tail = w;
    in->waiting_tail = &w->next;
    return SMG_OK;
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
    struct smg_instance *in = &s->instance[instance];
    int decode = smg_world_is_decode(s->world, instance), status = SMG_OK;

    in->used_bytes -= s->reserved_bytes[decode][a->request];
    if (decode && s->ledger[a->request])
        close_ledger(s, a->request);
    while (!status && in->waiting && in->used_bytes + in->waiting->bytes <= in->pool_bytes) {
        struct smg_waiting *w = in->waiting;
        in->waiting = w->next;
        if (!in->waiting)
            in->waiting_tail = &in->waiting;
        status = grant_memory(s, instance, w->request, w->op, w->bytes);
        free(w);
    }
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
