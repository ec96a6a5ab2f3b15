/* Events that no correct driver sends, as a changed log or a broken peer could: an agent may refuse them, or act on them, but
 * nothing worse. Each event is a byte for the instance, a byte with the number of bytes that follow, and the first bytes of a
 * struct smg_event; the first byte of all picks switches of the scenario. */
#include <string.h>

#include "core/agent.h"
#include "tests/fuzz/world.h"

enum { AGENTS = 3 };

static void check_actions(const struct smg_actions *actions)
{
    for (size_t i = 0; i < actions->n; i++) {
        const struct smg_action *a = &actions->action[i];
        fuzz_must(a->item_first <= actions->n_items && a->n_items <= actions->n_items - a->item_first);
        fuzz_must(a->lane < SMG_LANES && a->peer < AGENTS && a->layer_hi <= fuzz_world()->model.layers);
    }
}

static int same(const struct smg_actions *a, const struct smg_actions *b)
{
    return a->n == b->n && a->n_items == b->n_items && (!a->n || !memcmp(a->action, b->action, a->n * sizeof *a->action)) &&
           (!a->n_items || !memcmp(a->items, b->items, a->n_items * sizeof *a->items));
}

static void set_switches(struct smg_world *w, uint8_t bits)
{
    static const char *const schemes[] = {"smartgen", "partial", "full", "hack"};

    *w = *fuzz_world();
    w->scheme = smg_scheme_find(schemes[bits & 3]);
    strcpy(w->scenario.proactive.ranking, "sequential");
    w->scenario.decode_start = bits & 4 ? SMG_START_PUSHED : SMG_START_READY;
    w->scenario.speculative.queue = bits & 8 ? SMG_SPEC_OWN : SMG_SPEC_SHARED;
    w->scenario.gdr = !(bits & 16);
    w->scenario.detail = bits & 32 ? SMG_DETAIL_ITERATION : SMG_DETAIL_LAYER;
    w->scenario.on_demand.reuse = bits & 64 ? SMG_TRUE : SMG_FALSE;
    w->scenario.workload.batch_barrier = bits & 128 ? 1 : 0;
    w->scenario.workload.batch_barrier_set = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_agent *agent[AGENTS] = {NULL}, *twin[AGENTS] = {NULL};
    struct smg_actions actions = {0}, theirs = {0};
    struct smg_world w;
    struct smg_event e;
    int refused[AGENTS] = {0}, status;

    if (!bytes)
        return 0;
    set_switches(&w, data[0]);
    for (uint16_t i = 0; i < AGENTS; i++)
        fuzz_must(smg_agent_create(&w, i, &agent[i]) == SMG_OK && smg_agent_create(&w, i, &twin[i]) == SMG_OK);
    for (data++, bytes--; bytes >= 2;) {
        unsigned to = data[0] % AGENTS;
        size_t n = data[1] < bytes - 2 ? data[1] : bytes - 2;
        memset(&e, 0, sizeof e);
        memcpy(&e, data + 2, n < sizeof e ? n : sizeof e);
        data += 2 + n;
        bytes -= 2 + n;
        if (refused[to]) /* it must not be stepped again */
            continue;
        status = smg_agent_step(agent[to], &e, &actions);
        if (status == SMG_ERR_PROTOCOL && e.kind == SMG_EV_MSG)
            continue; /* the agent is as it was: its twin, who has not heard that, goes on in the same way */
        refused[to] = status != SMG_OK;
        if (refused[to])
            continue;
        check_actions(&actions);
        fuzz_must(smg_agent_step(twin[to], &e, &theirs) == SMG_OK && same(&actions, &theirs));
    }
    for (int i = 0; i < AGENTS; i++) {
        smg_agent_destroy(agent[i]);
        smg_agent_destroy(twin[i]);
    }
    smg_actions_free(&actions);
    smg_actions_free(&theirs);
    return 0;
}
