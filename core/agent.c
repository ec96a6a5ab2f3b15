#include "core/agent.h"

#include <stdlib.h>
#include <string.h>

#include "core/agent_priv.h"
#include "core/plugin.h"
#include "core/reserve.h"
#include "core/rng.h"

static const struct smg_agent_type *agent_type(const struct smg_world *w, uint16_t instance)
{
    if (instance == SMG_ROUTER)
        return &smg_router_agent;
    if (smg_world_is_prefill(w, instance))
        return &smg_prefill_agent;
    return smg_world_is_decode(w, instance) ? &smg_decode_agent : NULL;
}

int smg_agent_create(const struct smg_world *w, uint16_t instance, struct smg_agent **out)
{
    const struct smg_agent_type *type = agent_type(w, instance);
    struct smg_agent *a = NULL;
    int status;

    if (!type || !w->scheme)
        return SMG_ERR_INVALID;
    status = type->create(w, &a);
    if (status)
        return status;
    a->type = type;
    a->world = w;
    a->instance = instance;
    smg_scheme_features(w, &a->features);
    a->lost = calloc(smg_world_instances(w), sizeof *a->lost);
    if (!a->lost) {
        smg_agent_destroy(a);
        return SMG_ERR_NOMEM;
    }
    *out = a;
    return SMG_OK;
}

int smg_agent_reserve(struct smg_agent *a)
{
    return a->type->reserve(a);
}

void smg_agent_destroy(struct smg_agent *a)
{
    struct smg_store store;

    if (!a)
        return;
    for (size_t i = 0; i < SMG_RANK_CACHE; i++)
        smg_rank_unref(a->ranks[i].rank);
    free(a->lost);
    store = a->store; /* the reserve outlives the agent, which gives its pieces back */
    a->type->destroy(a);
    smg_store_free(&store);
}

/* Requests, peers and layers that exist. What an event says of the agent's own state is the agent's to check. */
static int exists(const struct smg_world *w, uint32_t request, uint16_t layer_lo, uint16_t layer_hi)
{
    return (!request || request < w->n_requests) && layer_lo <= w->model.layers && layer_hi <= w->model.layers;
}

enum role { ROUTER, PREFILL, DECODE, ROLES };

static enum role role_of(const struct smg_world *w, uint16_t instance)
{
    if (instance == SMG_ROUTER)
        return ROUTER;
    return smg_world_is_prefill(w, instance) ? PREFILL : DECODE;
}

#define SAYS(kind) (1u << SMG_MSG_##kind)

/* Who may say what to whom. */
static int may_say(const struct smg_world *w, uint16_t from, uint16_t to, uint32_t kind)
{
    static const uint32_t words[ROLES][ROLES] = {
        [ROUTER][PREFILL] = SAYS(PREFILL) | SAYS(FAILED),
        [ROUTER][DECODE] = SAYS(DECODE) | SAYS(START) | SAYS(FAILED),
        [PREFILL][ROUTER] = SAYS(STARTED) | SAYS(TOKEN) | SAYS(PUSHED) | SAYS(SUMMARY) | SAYS(FAILED),
        [PREFILL][DECODE] = SAYS(HANDOFF) | SAYS(DONE),
        [DECODE][ROUTER] = SAYS(TOKEN) | SAYS(READY) | SAYS(JOINED) | SAYS(SUMMARY) | SAYS(FAILED),
        [DECODE][PREFILL] = SAYS(POOL) | SAYS(INDEX) | SAYS(IDLE) | SAYS(DONE),
    };

    return kind <= SMG_MSG_FAILED && (words[role_of(w, from)][role_of(w, to)] >> kind & 1u);
}

static int lose_peer(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    if (e->peer == SMG_ROUTER || e->peer == a->instance || !e->status)
        return SMG_ERR_PROTOCOL;
    if (a->lost[e->peer])
        return SMG_OK;
    a->lost[e->peer] = e->status;
    return a->type->step(a, e, out);
}

static int hear(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    if (!exists(a->world, e->msg.request, e->msg.layer_lo, e->msg.layer_hi) || e->msg.request >= a->world->n_requests ||
        !may_say(a->world, e->peer, a->instance, e->msg.kind))
        return SMG_ERR_PROTOCOL;
    return a->lost[e->peer] ? SMG_OK : a->type->step(a, e, out);
}

int smg_agent_step(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    out->n = 0;
    out->n_items = 0;
    if (!exists(a->world, e->request, e->layer_lo, e->layer_hi) || e->peer >= smg_world_instances(a->world))
        return SMG_ERR_PROTOCOL;
    if (e->kind == SMG_EV_PEER_LOST)
        return lose_peer(a, e, out);
    return e->kind == SMG_EV_MSG ? hear(a, e, out) : a->type->step(a, e, out);
}

int smg_agent_assignable(const struct smg_agent *a, const struct smg_message *m)
{
    struct smg_grid g;

    if (m->u.assign.prompt_tokens != a->world->requests[m->request].prompt_tokens || !m->u.assign.output_tokens ||
        m->u.assign.hit_tokens >= m->u.assign.prompt_tokens || m->u.assign.mode > SMG_MODE_FULL)
        return 0;
    smg_agent_grid(a, m->u.assign.prompt_tokens, &g);
    return m->u.assign.kr_blocks <= m->u.assign.total_blocks && m->u.assign.total_blocks <= smg_grid_total_blocks(&g);
}

const struct smg_records *smg_agent_records(const struct smg_agent *a)
{
    return a->type->records ? a->type->records(a) : NULL;
}

void smg_agent_grid(const struct smg_agent *a, uint32_t prompt_tokens, struct smg_grid *out)
{
    smg_scheme_grid(a->world, prompt_tokens, out);
}

/* Requests share a ranking when nothing in it depends on the request: same block count, same length group, and same length too
 * where a sliding window or a short prompt makes the set of non-empty blocks depend on it. */
static uint64_t rank_key(const struct smg_agent *a, const struct smg_rank_type *type, uint32_t request, const struct smg_grid *g)
{
    uint64_t key = smg_hash2(g->blocks, a->world->model.window_tokens ? g->tokens : 0);

    if (a->world->importance)
        key = smg_hash2(key, smg_importance_group(a->world->importance, g->tokens));
    return type->per_request ? smg_hash2(key, request) : key;
}

static size_t rank_slot(struct smg_agent *a, uint64_t key, int *hit)
{
    size_t oldest = 0;

    for (size_t i = 0; i < SMG_RANK_CACHE; i++) {
        *hit = a->ranks[i].rank && a->ranks[i].key == key;
        if (*hit)
            return i;
        if (a->ranks[i].age < a->ranks[oldest].age)
            oldest = i;
    }
    return oldest;
}

int smg_agent_rank(struct smg_agent *a, uint32_t request, const struct smg_grid *g, struct smg_rank **out)
{
    const struct smg_rank_type *type = smg_world_ranking(a->world, a->features.ranking);
    struct smg_rank_input in = {g, a->world->importance, a->world->scenario.seed, request};
    uint64_t key;
    size_t slot;
    int hit = 0, status;

    if (!type)
        return SMG_ERR_NOT_FOUND;
    key = rank_key(a, type, request, g);
    slot = rank_slot(a, key, &hit);
    if (!hit) {
        struct smg_rank *fresh = NULL;
        status = smg_rank_create_in(&a->store, type, &in, &fresh);
        if (status)
            return status;
        smg_rank_unref(a->ranks[slot].rank);
        a->ranks[slot].rank = fresh;
        a->ranks[slot].key = key;
    }
    a->ranks[slot].age = ++a->rank_clock;
    *out = smg_rank_ref(a->ranks[slot].rank);
    return SMG_OK;
}

struct smg_action *smg_agent_act(struct smg_agent *a, struct smg_actions *out, enum smg_action_kind kind, enum smg_lane lane,
                                 uint16_t peer, enum smg_purpose purpose, uint32_t request)
{
    struct smg_action *act = smg_actions_add(out, kind);

    if (!act)
        return NULL;
    act->op = ++a->next_op;
    act->lane = (uint16_t)lane;
    act->peer = peer;
    act->purpose = (uint16_t)purpose;
    act->request = request;
    act->item_first = (uint32_t)out->n_items;
    return act;
}

struct smg_action *smg_agent_send(struct smg_agent *a, struct smg_actions *out, uint16_t to, enum smg_message_kind kind,
                                  uint32_t request)
{
    struct smg_action *act = smg_agent_act(a, out, SMG_ACT_SEND, SMG_LANE_CTL, to, SMG_FOR_NONE, request);

    if (!act)
        return NULL;
    act->messages = 1;
    act->msg.kind = (uint32_t)kind;
    act->msg.request = request;
    return act;
}

int smg_agent_tell_failed(struct smg_agent *a, struct smg_actions *out, uint32_t request, int status, uint16_t instance, int busy)
{
    struct smg_action *act = smg_agent_send(a, out, SMG_ROUTER, SMG_MSG_FAILED, request);

    if (!act)
        return SMG_ERR_NOMEM;
    act->msg.u.failed.status = status;
    act->msg.u.failed.instance = instance;
    act->msg.u.failed.busy = busy != 0;
    return SMG_OK;
}

int smg_agent_needs_nothing(const struct smg_agent *a, uint16_t mode)
{
    return mode == SMG_MODE_FULL || a->features.evict;
}
