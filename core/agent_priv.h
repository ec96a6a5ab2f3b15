/* What the three agents share; private to core/. */
#ifndef SMG_CORE_AGENT_PRIV_H
#define SMG_CORE_AGENT_PRIV_H

#include "core/agent.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "core/store.h"

struct smg_agent_type {
    const char *name;
    int (*create)(const struct smg_world *w, struct smg_agent **out);
    void (*destroy)(struct smg_agent *a);
    int (*step)(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out);
    const struct smg_records *(*records)(const struct smg_agent *a);
    int (*reserve)(struct smg_agent *a);
};

#define SMG_RANK_CACHE 8

/* Base of every agent. */
struct smg_agent {
    const struct smg_agent_type *type;
    const struct smg_world *world;
    struct smg_features features;
    uint16_t instance;
    uint32_t next_op;
    struct {
        uint64_t key;
        uint32_t age;
        struct smg_rank *rank;
    } ranks[SMG_RANK_CACHE];
    uint32_t rank_clock;
    int32_t *lost; /* [instances] 0: there, else why it is lost */
    struct smg_store store; /* of what comes and goes with requests */
};

extern const struct smg_agent_type smg_router_agent;
extern const struct smg_agent_type smg_prefill_agent;
extern const struct smg_agent_type smg_decode_agent;

/* The grid of a request's prompt. */
void smg_agent_grid(const struct smg_agent *a, uint32_t prompt_tokens, struct smg_grid *out);
/* Whether an assignment can be right for the world's request; its partner is not looked at. */
int smg_agent_assignable(const struct smg_agent *a, const struct smg_message *m);
/* Ranking of a request's blocks, from the cache where requests share one. A new reference. */
int smg_agent_rank(struct smg_agent *a, uint32_t request, const struct smg_grid *g, struct smg_rank **out);

/* Appends an action with the next op number; NULL: out of memory. */
struct smg_action *smg_agent_act(struct smg_agent *a, struct smg_actions *out, enum smg_action_kind kind, enum smg_lane lane,
                                 uint16_t peer, enum smg_purpose purpose, uint32_t request);
/* Whether a request of this mode needs nothing more of its prefill instance once it is handed off. */
int smg_agent_needs_nothing(const struct smg_agent *a, uint16_t mode);
/* Tells the router that a request has failed, which instance is to blame (0: none), and whether this GPU is busy with it all the
 * same. SMG_ERR_NOMEM. */
int smg_agent_tell_failed(struct smg_agent *a, struct smg_actions *out, uint32_t request, int status, uint16_t instance,
                          int busy);
/* Appends a SEND of a message about `request` and returns it for its fields to be filled; NULL: out of memory. */
struct smg_action *smg_agent_send(struct smg_agent *a, struct smg_actions *out, uint16_t to, enum smg_message_kind kind,
                                  uint32_t request);

#endif
