/* Decode agent: reserves memory, joins requests at iteration boundaries, and runs the decode pipeline of the SmartGen paper
 * (Fig. 8) stage by stage.
 *
 * A stage is one layer (detail: layer) or a run of layers of the same kind (detail: iteration). Per stage s:
 *   attention(s) starts when its KV is there and ffn(s-1) is done; beside it run select(s+1) and the idle notes (speculative
 *   grants); when attention(s) and select(s+1) are done, split(s+1) drives the two lanes, which overlap with ffn(s).
 * Lanes of a stage: local = gather + host-to-device copy of the whole batch; remote = one index message and one reply per
 * request. With on_demand.parallel off the lanes are serial: replies land in host memory, then the local entries are gathered
 * beside them, and everything selected is copied. Fetched entries go to the pool only when they are kept (KV reuse), in the
 * background.
 */
#include <stdlib.h>
#include <string.h>

#include "core/agent_priv.h"
#include "core/cost.h"
#include "core/hack.h"
#include "core/reserve.h"
#include "core/selection.h"
#include "core/split.h"

struct stage {
    uint16_t layer_lo, layer_hi;
    int selects;
};

struct seat {
    struct seat *next;           /* by request id, ascending */
    uint32_t request;
    uint16_t prefill; /* before the assignment: who has said DONE */
    uint16_t mode;
    uint32_t prompt_tokens, output_tokens, kr_blocks, total_blocks;
    struct smg_rank *rank;       /* NULL until the first grant */
    struct smg_grid grid;
    int assigned, asked, reserved; /* by the router; RESERVE is out; memory is held */
    int handed_off, joined, closing, acked, failed;
    uint32_t tokens;             /* made so far, the first one (by prefill) included */
    uint32_t granted_next;       /* position of the ranking up to which blocks were pushed or granted */
    uint32_t background;         /* keep-copies in flight */
    uint64_t step_selected, step_remote, step_on_demand_bytes, step_speculative_bytes;
    uint64_t selected, remote, on_demand_bytes, messages;
};

struct decode {
    struct smg_agent base;
    struct seat *seats;
    struct stage *stage;
    uint32_t n_stages;
    struct seat **batch;         /* [max_batch] */
    uint32_t n_batch;
    int barrier_open, running;
    uint32_t s;                  /* stage whose attention runs or is next */
    int attention_started, attention_done, ffn_done;
    uint32_t next_split; /* stage whose split waits for its select and for attention of the stage before; n_stages: none */
    int select_done;             /* of stage next_split */
    uint32_t lane_stage;         /* stage the lanes work for */
    uint32_t splits_left, remotes_left, copies_left;
    int lanes_done;
    uint64_t lane_local, lane_remote; /* entries of lane_stage over the batch */
};

static struct decode *decode_of(struct smg_agent *a)
{
    return (struct decode *)a;
}

/* ---- Seats ---- */

static struct seat *seat_find(struct decode *d, uint32_t request)
{
    struct seat *s = d->seats;

    while (s && s->request < request)
        s = s->next;
    return s && s->request == request ? s : NULL;
}

/* Finds or adds a seat: the prefill node's word that it dropped a request may arrive before the router's assignment. */
static struct seat *seat_get(struct decode *d, uint32_t request)
{
    struct seat **at = &d->seats, *s;

    while (*at && (*at)->request < request)
        at = &(*at)->next;
    if (*at && (*at)->request == request)
        return *at;
    s = smg_store_take(&d->base.store, sizeof *s);
    if (!s)
        return NULL;
    s->request = request;
    s->next = *at;
    *at = s;
    return s;
}

static void seat_remove(struct decode *d, struct seat *s)
{
    struct seat **at = &d->seats;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    smg_rank_unref(s->rank);
    smg_store_give(&d->base.store, s);
}

static void decode_destroy(struct smg_agent *a)
{
    struct decode *d = decode_of(a);

    while (d->seats)
        seat_remove(d, d->seats);
    free(d->stage);
    free(d->batch);
    free(d);
}

static void build_stages(struct decode *d, const struct smg_world *w)
{
    int merge = w->scenario.detail == SMG_DETAIL_ITERATION;

    for (uint32_t l = 0; l < w->model.layers; l++) {
        int selects = smg_model_layer_selects(&w->model, l);
        struct stage *last = d->n_stages ? &d->stage[d->n_stages - 1] : NULL;
        if (merge && last && last->selects == selects)
            last->layer_hi++;
        else
            d->stage[d->n_stages++] = (struct stage){(uint16_t)l, (uint16_t)(l + 1), selects};
    }
}

static int decode_create(const struct smg_world *w, struct smg_agent **out)
{
    struct decode *d = calloc(1, sizeof *d);

    if (!d)
        return SMG_ERR_NOMEM;
    d->stage = calloc(w->model.layers, sizeof *d->stage);
    d->batch = calloc(w->scenario.decode_max_batch, sizeof(struct seat *));
    if (!d->stage || !d->batch) {
        decode_destroy(&d->base);
        return SMG_ERR_NOMEM;
    }
    build_stages(d, w);
    d->barrier_open = !smg_world_barrier(w);
    *out = &d->base;
    return SMG_OK;
}

static int decode_reserve(struct smg_agent *a)
{
    uint64_t bytes = 0;
    struct smg_grid g;

    for (uint32_t i = 0; i < a->world->n_requests; i++) {
        smg_agent_grid(a, a->world->requests[i].prompt_tokens, &g);
        bytes += smg_store_cost(sizeof(struct seat)) + smg_rank_cost(&g);
    }
    return smg_store_reserve(&a->store, bytes);
}

/* ---- Lanes of a stage ---- */

static uint64_t stage_kept_entries(const struct decode *d, const struct stage *st, const struct seat *s)
{
    const struct smg_model *m = &d->base.world->model;
    uint64_t entries = 0;

    for (uint32_t l = st->layer_lo; l < st->layer_hi; l++)
        entries += (uint64_t)m->kv_heads * (st->selects ? smg_selection_k(d->base.world, s->prompt_tokens)
                                                        : smg_model_layer_tokens(m, l, s->prompt_tokens));
    return entries;
}

/* Reads the index and the mask and writes the index back, 9 bytes an entry; on the GPU, or on the CPU without GPUDirect. */
static double split_s(const struct decode *d, const struct stage *st)
{
    double entries = 0;
    uint32_t node = smg_world_node(d->base.world, d->base.instance);

    for (uint32_t i = 0; i < d->n_batch; i++)
        if (d->batch[i]->mode != SMG_MODE_FULL)
            entries += (double)stage_kept_entries(d, st, d->batch[i]);
    return d->base.world->scenario.gdr ? smg_cost_split_s(d->base.world, entries)
                                       : SMG_SPLIT_ENTRY_BYTES * entries / smg_world_gather_Bps(d->base.world, node);
}

static int start_attention(struct decode *d, struct smg_actions *out);

/* Codes on the GPU need no lanes, and requests that have failed use none. */
static int begin_without_lanes(struct decode *d, uint32_t stage, struct smg_actions *out)
{
    d->lane_stage = stage;
    d->splits_left = d->remotes_left = d->copies_left = 0;
    d->lanes_done = 1;
    return start_attention(d, out);
}

static uint16_t split_flags(const struct decode *d, const struct seat *s)
{
    unsigned flags = d->base.features.attend_present ? SMG_ITEM_PRESENT : 0;

    return (uint16_t)(s->mode == SMG_MODE_FULL ? flags | SMG_ITEM_FULL : flags);
}

/* A request of the batch that fails stays until the iteration ends, and takes no part in the stages that begin. */
static uint32_t live_seats(const struct decode *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_batch; i++)
        n += !d->batch[i]->failed;
    return n;
}

static int begin_split(struct decode *d, uint32_t stage, struct smg_actions *out)
{
    const struct stage *st = &d->stage[stage];
    enum smg_lane lane = d->base.world->scenario.gdr ? SMG_LANE_GPU_SELECT : SMG_LANE_CPU_GATHER;
    uint32_t live = live_seats(d);
    struct smg_action *act = live ? smg_agent_act(&d->base, out, SMG_ACT_SPLIT, lane, 0, SMG_FOR_SPLIT, 0) : NULL;
    int status = act ? SMG_OK : SMG_ERR_NOMEM;

    if (!live)
        return begin_without_lanes(d, stage, out);
    d->lane_stage = stage;
    d->splits_left = live;
    d->remotes_left = d->copies_left = 0;
    d->lanes_done = 0;
    d->lane_local = d->lane_remote = 0;
    if (act) {
        act->layer_lo = st->layer_lo;
        act->layer_hi = st->layer_hi;
        act->duration_s = split_s(d, st);
    }
    for (uint32_t i = 0; i < d->n_batch && !status; i++) {
        const struct seat *s = d->batch[i];
        struct smg_item item = {s->request, st->layer_lo, split_flags(d, s), 0, s->tokens};
        if (!s->failed)
            status = smg_actions_item(out, &item);
    }
    return status;
}

static struct smg_action *lane_action(struct decode *d, struct smg_actions *out, enum smg_action_kind kind, enum smg_lane lane,
                                      enum smg_purpose purpose, uint32_t request, uint64_t entries)
{
    const struct stage *st = &d->stage[d->lane_stage];
    struct smg_action *act = smg_agent_act(&d->base, out, kind, lane, 0, purpose, request);

    if (!act)
        return NULL;
    act->layer_lo = st->layer_lo;
    act->layer_hi = st->layer_hi;
    act->entries = entries;
    act->bytes = entries * smg_model_entry_bytes(&d->base.world->model);
    return act;
}

/* Local lane: one gather and one copy for the whole batch, in series. Serial replies lie in host memory and join the copy. */
static int begin_local(struct decode *d, struct smg_actions *out)
{
    uint64_t entries = d->lane_local + (d->base.features.parallel ? 0 : d->lane_remote);
    struct smg_action *act;
    uint32_t gather = 0;

    if (!entries)
        return SMG_OK;
    if (d->lane_local) {
        act = lane_action(d, out, SMG_ACT_GATHER, SMG_LANE_CPU_GATHER, SMG_FOR_LOCAL_GATHER, 0, d->lane_local);
        if (!act)
            return SMG_ERR_NOMEM;
        gather = act->op;
    }
    act = lane_action(d, out, SMG_ACT_COPY, SMG_LANE_H2D, SMG_FOR_LOCAL_COPY, 0, entries);
    if (!act)
        return SMG_ERR_NOMEM;
    act->after[0] = gather;
    act->flags = SMG_ACT_NOTIFY;
    d->copies_left++;
    return SMG_OK;
}

/* Work requests the reply is received with: 2*H row segments per layer when rows are contiguous, single entries otherwise; the
 * serial path has one contiguous landing per layer. */
static uint32_t reply_receives(const struct decode *d, const struct stage *st, uint64_t remote)
{
    const struct smg_scenario *sc = &d->base.world->scenario;
    uint32_t layers = st->layer_hi - st->layer_lo;
    uint64_t heads = d->base.world->model.kv_heads, rows = heads < remote ? heads : remote;

    if (!d->base.features.parallel)
        return layers;
    if (d->base.features.reorder)
        return layers * smg_scatter_receives((uint32_t)(2 * rows), sc->on_demand.scatter_limit);
    return smg_scatter_receives((uint32_t)(2 * remote), sc->on_demand.scatter_limit);
}

/* The receive is posted before the index is sent: the reply must find it. */
static int begin_remote(struct decode *d, struct seat *s, uint64_t remote, struct smg_actions *out)
{
    const struct stage *st = &d->stage[d->lane_stage];
    struct smg_action *act = lane_action(d, out, SMG_ACT_RECV, SMG_LANE_REPLY, SMG_FOR_REMOTE_RECV, s->request, remote);
    uint32_t receives = reply_receives(d, st, remote);
    uint64_t bytes;

    if (!act)
        return SMG_ERR_NOMEM;
    act->peer = s->prefill;
    act->step = s->tokens;
    act->flags = SMG_ACT_NOTIFY;
    act->messages = receives;
    bytes = act->bytes;
    act = smg_agent_send(&d->base, out, s->prefill, SMG_MSG_INDEX, s->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->layer_lo = act->msg.layer_lo = st->layer_lo;
    act->layer_hi = act->msg.layer_hi = st->layer_hi;
    act->step = act->msg.step = s->tokens;
    act->bytes = SMG_INDEX_HEADER_BYTES + remote * SMG_INDEX_ID_BYTES;
    act->entries = remote;
    act->msg.u.index.entries = remote;
    act->msg.u.index.bytes = bytes;
    act->msg.u.index.messages = receives;
    s->messages++;
    s->step_on_demand_bytes += bytes;
    d->remotes_left++;
    return SMG_OK;
}

/* Called whenever a piece of the lanes is complete. */
static int lanes_progress(struct decode *d, struct smg_actions *out)
{
    if (d->lanes_done || d->splits_left || d->remotes_left || d->copies_left)
        return SMG_OK;
    d->lanes_done = 1;
    return start_attention(d, out);
}

/* All splits of the stage are known: start the local lane (or wait for the replies when the lanes are serial). */
static int splits_complete(struct decode *d, struct smg_actions *out)
{
    int status = SMG_OK;

    if (d->base.features.parallel || !d->remotes_left)
        status = begin_local(d, out);
    return status ? status : lanes_progress(d, out);
}

/* Entries that are absent are fetched, or left out where the scheme evicts. */
static int on_split(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s = seat_find(d, e->request);
    uint64_t remote = d->base.features.evict || (s && s->failed) ? 0 : e->entries_remote;

    if (!s || !d->running || !d->splits_left || e->layer_lo != d->stage[d->lane_stage].layer_lo)
        return SMG_ERR_PROTOCOL;
    d->splits_left--;
    d->lane_local += e->entries_local;
    d->lane_remote += remote;
    if (d->stage[d->lane_stage].selects) {
        s->step_selected += e->entries_local + e->entries_remote;
        s->step_remote += remote;
    }
    if (remote && begin_remote(d, s, remote, out))
        return SMG_ERR_NOMEM;
    return d->splits_left ? SMG_OK : splits_complete(d, out);
}

/* Fetched entries go to the host pool in the background: from the GPU, or by the CPU from where a serial reply landed. */
static int begin_keep(struct decode *d, struct seat *s, const struct smg_event *e, struct smg_actions *out)
{
    int serial = !d->base.features.parallel;
    struct smg_action *act;

    if (!d->base.features.reuse)
        return SMG_OK;
    act = lane_action(d, out, serial ? SMG_ACT_GATHER : SMG_ACT_COPY, serial ? SMG_LANE_CPU_GATHER : SMG_LANE_D2H,
                      serial ? SMG_FOR_SCATTER : SMG_FOR_KEEP, s->request, e->entries);
    if (!act)
        return SMG_ERR_NOMEM;
    act->step = e->step;
    act->flags = SMG_ACT_NOTIFY;
    s->background++;
    return SMG_OK;
}

static int remote_arrived(struct decode *d, struct smg_actions *out)
{
    d->remotes_left--;
    if (!d->base.features.parallel && !d->remotes_left && !d->splits_left)
        if (begin_local(d, out))
            return SMG_ERR_NOMEM;
    return lanes_progress(d, out);
}

static int on_reply(struct decode *d, struct seat *s, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_action *act;

    if (e->status) /* it will never come: the request has failed, the stage goes on for the others */
        return remote_arrived(d, out);
    s->on_demand_bytes += e->bytes;
    if (begin_keep(d, s, e, out))
        return SMG_ERR_NOMEM;
    if (!d->base.features.parallel || d->base.world->scenario.gdr)
        return remote_arrived(d, out);
    act = lane_action(d, out, SMG_ACT_COPY, SMG_LANE_H2D, SMG_FOR_REMOTE_COPY, s->request, e->entries);
    if (!act)
        return SMG_ERR_NOMEM;
    act->step = e->step;
    act->flags = SMG_ACT_NOTIFY;
    return SMG_OK;
}

/* ---- The iteration ---- */

static int begin_select(struct decode *d, struct smg_actions *out)
{
    const struct stage *st = &d->stage[d->next_split];
    struct smg_action *act;
    uint64_t tokens = 0;

    d->select_done = !st->selects || d->base.features.on_gpu || d->base.features.attend_present;
    if (d->select_done)
        return SMG_OK;
    for (uint32_t i = 0; i < d->n_batch; i++)
        tokens += d->batch[i]->prompt_tokens;
    act = smg_agent_act(&d->base, out, SMG_ACT_COMPUTE, SMG_LANE_GPU_SELECT, 0, SMG_FOR_SELECT, 0);
    if (!act)
        return SMG_ERR_NOMEM;
    act->flags = SMG_ACT_NOTIFY;
    act->layer_lo = st->layer_lo;
    act->layer_hi = st->layer_hi;
    act->duration_s = (st->layer_hi - st->layer_lo) * smg_cost_select_s(d->base.world, tokens);
    return SMG_OK;
}

static int seat_rank(struct decode *d, struct seat *s)
{
    if (s->rank)
        return SMG_OK;
    return smg_agent_rank(&d->base, s->request, &s->grid, &s->rank);
}

/* One idle note: a grant of ratio * M blocks per layer of the stage, never more than are left. */
static int grant(struct decode *d, struct seat *s, const struct stage *st, struct smg_actions *out)
{
    uint32_t layers = st->layer_hi - st->layer_lo, left = s->total_blocks - s->granted_next;
    double per_layer = d->base.world->scenario.speculative.ratio * s->grid.blocks + 1e-9;
    uint32_t blocks = (per_layer < 1 ? 1 : (uint32_t)per_layer) * layers;
    struct smg_action *act;

    if (seat_rank(d, s))
        return SMG_ERR_NOMEM;
    blocks = blocks < left ? blocks : left;
    act = smg_agent_send(&d->base, out, s->prefill, SMG_MSG_IDLE, s->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->step = act->msg.step = s->tokens;
    act->layer_lo = act->msg.layer_lo = st->layer_lo;
    act->layer_hi = act->msg.layer_hi = st->layer_hi;
    act->msg.u.grant.blocks = blocks;
    s->messages++;
    for (; blocks; blocks--) {
        const struct smg_block_id *b = &s->rank->order[s->granted_next++];
        s->step_speculative_bytes += smg_grid_range_bytes(&s->grid, b->layer, b->block, 1);
    }
    return SMG_OK;
}

static int send_grants(struct decode *d, struct smg_actions *out)
{
    const struct smg_scenario *sc = &d->base.world->scenario;
    uint32_t first_step = sc->speculative.start == SMG_SPEC_FIRST ? 1 : 2;
    int status = SMG_OK;

    if (!d->base.features.speculative)
        return SMG_OK;
    for (uint32_t i = 0; i < d->n_batch && !status; i++) {
        struct seat *s = d->batch[i];
        if (s->mode != SMG_MODE_FULL && !s->failed && !d->base.lost[s->prefill] && s->tokens >= first_step &&
            s->granted_next < s->total_blocks)
            status = grant(d, s, &d->stage[d->s], out);
    }
    return status;
}

static double attention_s(const struct decode *d, const struct stage *st, uint64_t entries)
{
    uint64_t tokens = 0;

    if (!d->base.features.on_gpu)
        return smg_cost_attention_s(d->base.world, entries);
    for (uint32_t i = 0; i < d->n_batch; i++)
        tokens += smg_model_layer_tokens(&d->base.world->model, st->layer_lo, d->batch[i]->prompt_tokens);
    return smg_hack_attention_s(d->base.world, tokens);
}

/* Starts attention of stage s when nothing is missing, with what runs beside it. */
static int start_attention(struct decode *d, struct smg_actions *out)
{
    const struct stage *st = &d->stage[d->s];
    uint32_t layers = st->layer_hi - st->layer_lo;
    struct smg_action *act;
    uint64_t entries = 0;

    if (d->attention_started || !d->ffn_done || !d->lanes_done || d->lane_stage != d->s)
        return SMG_OK;
    for (uint32_t i = 0; i < d->n_batch; i++)
        entries += d->batch[i]->failed ? 0 : stage_kept_entries(d, st, d->batch[i]);
    act = smg_agent_act(&d->base, out, SMG_ACT_COMPUTE, SMG_LANE_GPU_MAIN, 0, SMG_FOR_ATTENTION, 0);
    if (!act)
        return SMG_ERR_NOMEM;
    act->flags = SMG_ACT_NOTIFY;
    act->layer_lo = st->layer_lo;
    act->layer_hi = st->layer_hi;
    act->duration_s = layers * attention_s(d, st, entries / layers);
    d->attention_started = 1;
    d->attention_done = d->ffn_done = 0;
    d->next_split = d->s + 1;
    if (d->next_split < d->n_stages && begin_select(d, out))
        return SMG_ERR_NOMEM;
    return send_grants(d, out);
}

static int split_next(struct decode *d, struct smg_actions *out)
{
    uint32_t stage = d->next_split;

    if (stage >= d->n_stages || !d->attention_done || !d->select_done)
        return SMG_OK;
    d->next_split = d->n_stages;
    return d->base.features.on_gpu ? begin_without_lanes(d, stage, out) : begin_split(d, stage, out);
}

static int on_attention(struct decode *d, struct smg_actions *out)
{
    const struct stage *st = &d->stage[d->s];
    struct smg_action *act = smg_agent_act(&d->base, out, SMG_ACT_COMPUTE, SMG_LANE_GPU_MAIN, 0, SMG_FOR_FFN, 0);
    uint32_t layers = st->layer_hi - st->layer_lo;
    int last = d->s + 1 == d->n_stages;

    if (!act)
        return SMG_ERR_NOMEM;
    act->flags = SMG_ACT_NOTIFY;
    act->layer_lo = st->layer_lo;
    act->layer_hi = st->layer_hi;
    act->duration_s =
        (layers - 1) * smg_cost_ffn_s(d->base.world, d->n_batch, 0) + smg_cost_ffn_s(d->base.world, d->n_batch, last);
    d->attention_done = 1;
    return split_next(d, out);
}

static int start_iteration(struct decode *d, struct smg_actions *out);

static int send_token(struct decode *d, struct seat *s, struct smg_actions *out)
{
    struct smg_action *act = smg_agent_send(&d->base, out, SMG_ROUTER, SMG_MSG_TOKEN, s->request);

    if (!act)
        return SMG_ERR_NOMEM;
    act->step = act->msg.step = s->tokens;
    act->msg.u.token.token = ++s->tokens;
    act->msg.u.token.selected_entries = s->step_selected;
    act->msg.u.token.remote_entries = s->step_remote;
    act->msg.u.token.on_demand_bytes = s->step_on_demand_bytes;
    act->msg.u.token.speculative_bytes = s->step_speculative_bytes;
    s->selected += s->step_selected;
    s->remote += s->step_remote;
    s->step_selected = s->step_remote = s->step_on_demand_bytes = s->step_speculative_bytes = 0;
    return SMG_OK;
}

static int send_summary(struct decode *d, struct seat *s, struct smg_actions *out)
{
    struct smg_action *act = smg_agent_send(&d->base, out, SMG_ROUTER, SMG_MSG_SUMMARY, s->request);

    if (!act)
        return SMG_ERR_NOMEM;
    act->msg.u.summary.on_demand_bytes = s->on_demand_bytes;
    act->msg.u.summary.messages = s->messages;
    act->msg.u.summary.selected_entries = s->selected;
    act->msg.u.summary.remote_entries = s->remote;
    return SMG_OK;
}

/* Memory goes back only when the prefill node has confirmed that nothing of its is on the way any more, and a seat whose RESERVE
 * is out stays until that is answered. */
static int seat_retire(struct decode *d, struct seat *s, struct smg_actions *out)
{
    if (!s->closing || !s->acked || s->background || s->asked)
        return SMG_OK;
    if (!s->failed && send_summary(d, s, out))
        return SMG_ERR_NOMEM;
    if (s->reserved && !smg_agent_act(&d->base, out, SMG_ACT_RELEASE, SMG_LANE_NONE, 0, SMG_FOR_NONE, s->request))
        return SMG_ERR_NOMEM;
    seat_remove(d, s);
    return SMG_OK;
}

static int finish_seat(struct decode *d, struct seat *s, struct smg_actions *out)
{
    s->closing = 1;
    if (!d->base.lost[s->prefill] && !smg_agent_send(&d->base, out, s->prefill, SMG_MSG_DONE, s->request))
        return SMG_ERR_NOMEM;
    return seat_retire(d, s, out);
}

static int end_iteration(struct decode *d, struct smg_actions *out)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < d->n_batch; i++) {
        struct seat *s = d->batch[i];
        if (!s->failed && send_token(d, s, out))
            return SMG_ERR_NOMEM;
        if (s->tokens < s->output_tokens && !s->failed)
            d->batch[kept++] = s;
        else if (finish_seat(d, s, out))
            return SMG_ERR_NOMEM;
    }
    d->n_batch = kept;
    d->running = 0;
    return start_iteration(d, out);
}

static int on_ffn(struct decode *d, struct smg_actions *out)
{
    d->ffn_done = 1;
    d->attention_started = 0;
    if (++d->s == d->n_stages)
        return end_iteration(d, out);
    return start_attention(d, out);
}

/* Requests whose hand-off is complete join at the boundary, in order of their ids. */
static int admit(struct decode *d, struct smg_actions *out)
{
    for (struct seat *s = d->seats; s && d->n_batch < d->base.world->scenario.decode_max_batch; s = s->next) {
        if (!s->handed_off || s->joined || s->closing)
            continue;
        s->joined = 1;
        d->batch[d->n_batch++] = s;
        if (!smg_agent_send(&d->base, out, SMG_ROUTER, SMG_MSG_JOINED, s->request))
            return SMG_ERR_NOMEM;
    }
    return SMG_OK;
}

static int start_iteration(struct decode *d, struct smg_actions *out)
{
    if (d->running || !d->barrier_open)
        return SMG_OK;
    if (admit(d, out))
        return SMG_ERR_NOMEM;
    if (!d->n_batch)
        return SMG_OK;
    d->running = 1;
    d->s = 0;
    d->attention_started = d->attention_done = 0;
    d->ffn_done = 1;
    return d->base.features.on_gpu ? begin_without_lanes(d, 0, out) : begin_split(d, 0, out);
}

/* ---- Events ---- */

static uint64_t pool_bytes(const struct decode *d, const struct seat *s)
{
    const struct smg_model *m = &d->base.world->model;
    uint64_t mask = (uint64_t)m->layers * (s->prompt_tokens + s->output_tokens), metadata = 0;

    if (s->mode != SMG_MODE_FULL && d->base.features.metadata)
        metadata = (uint64_t)s->prompt_tokens * smg_metadata_token_bytes(d->base.world) * smg_model_selecting_layers(m);
    return smg_model_prompt_bytes(m, s->prompt_tokens) + (uint64_t)s->output_tokens * smg_model_token_bytes(m) + mask + metadata;
}

static int on_assign(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    uint16_t partner = e->msg.u.assign.partner;
    struct seat *s = seat_find(d, e->msg.request);
    struct smg_action *act;

    if ((s && s->assigned) || !smg_agent_assignable(&d->base, &e->msg) || !smg_world_is_prefill(d->base.world, partner))
        return SMG_ERR_PROTOCOL;
    if (d->base.lost[partner]) {
        if (s)
            seat_remove(d, s);
        return smg_agent_tell_failed(&d->base, out, e->msg.request, d->base.lost[partner], partner, 0);
    }
    s = seat_get(d, e->msg.request);
    if (!s)
        return SMG_ERR_NOMEM;
    s->assigned = s->asked = 1;
    s->acked &= s->prefill == partner; /* said by another: it is not that one's to say */
    s->prefill = partner;
    s->mode = e->msg.u.assign.mode;
    s->prompt_tokens = e->msg.u.assign.prompt_tokens;
    s->output_tokens = e->msg.u.assign.output_tokens;
    s->kr_blocks = s->granted_next = e->msg.u.assign.kr_blocks;
    s->total_blocks = e->msg.u.assign.total_blocks;
    s->tokens = 1;
    smg_agent_grid(&d->base, s->prompt_tokens, &s->grid);
    act = smg_agent_act(&d->base, out, SMG_ACT_RESERVE, SMG_LANE_NONE, 0, SMG_FOR_NONE, s->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->bytes = pool_bytes(d, s);
    return SMG_OK;
}

static int on_reserved(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s = seat_find(d, e->request);
    struct smg_action *act;

    if (!s || !s->asked)
        return SMG_ERR_PROTOCOL;
    s->asked = 0;
    s->reserved = !e->status;
    if (s->acked) /* prefill failed it; the router's word is on its way and finds no seat */
        s->closing = s->failed = 1;
    if (s->closing)
        return seat_retire(d, s, out);
    act =
        smg_agent_send(&d->base, out, e->status ? SMG_ROUTER : s->prefill, e->status ? SMG_MSG_FAILED : SMG_MSG_POOL, s->request);
    if (!act)
        return SMG_ERR_NOMEM;
    if (e->status) {
        act->msg.u.failed.status = e->status;
        s->closing = s->failed = 1;
        return SMG_OK;
    }
    memcpy(act->msg.u.pool.cookie, e->cookie, sizeof e->cookie);
    return SMG_OK;
}

static int on_handoff(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s = seat_find(d, e->msg.request);

    if (!s || !s->assigned || s->handed_off || e->peer != s->prefill)
        return SMG_ERR_PROTOCOL;
    if (s->closing)
        return SMG_OK;
    s->handed_off = 1;
    if (!smg_agent_send(&d->base, out, SMG_ROUTER, SMG_MSG_READY, s->request))
        return SMG_ERR_NOMEM;
    return start_iteration(d, out);
}

/* The router tells of a failure elsewhere. A request in the running batch ends with its iteration. */
static int on_failed(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s = seat_find(d, e->msg.request);

    if (!s || s->closing)
        return SMG_OK;
    s->failed = 1;
    if (s->joined)
        return SMG_OK;
    s->closing = 1;
    return seat_retire(d, s, out);
}

/* Prefill has dropped the request. */
static int on_done(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s = seat_find(d, e->msg.request);

    if (s && s->assigned && e->peer != s->prefill)
        return SMG_ERR_PROTOCOL;
    s = seat_get(d, e->msg.request);
    if (!s)
        return SMG_ERR_NOMEM;
    s->prefill = e->peer;
    s->acked = 1;
    return seat_retire(d, s, out);
}

/* Nothing of a lost prefill instance is on its way any more. Its requests fail, but for those that were handed off and fetch
 * nothing: they have all they need. */
static int on_peer_lost(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *next;
    int status = SMG_OK;

    for (struct seat *s = d->seats; s && !status; s = next) {
        next = s->next;
        if (!s->assigned || s->prefill != e->peer)
            continue;
        s->acked = 1;
        if (!s->closing && !(s->handed_off && smg_agent_needs_nothing(&d->base, s->mode))) {
            if (!s->failed)
                status = smg_agent_tell_failed(&d->base, out, s->request, e->status, e->peer, 0);
            s->failed = 1;
            s->closing = !s->joined;
        }
        if (!status)
            status = seat_retire(d, s, out);
    }
    return status;
}

static int on_message(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    switch (e->msg.kind) {
    case SMG_MSG_DECODE:
        return on_assign(d, e, out);
    case SMG_MSG_HANDOFF:
        return on_handoff(d, e, out);
    case SMG_MSG_START:
        d->barrier_open = 1;
        return start_iteration(d, out);
    case SMG_MSG_DONE:
        return on_done(d, e, out);
    case SMG_MSG_FAILED:
        return on_failed(d, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int on_op_done(struct decode *d, const struct smg_event *e, struct smg_actions *out)
{
    struct seat *s;

    switch (e->purpose) {
    case SMG_FOR_ATTENTION:
        return d->attention_started && !d->attention_done ? on_attention(d, out) : SMG_ERR_PROTOCOL;
    case SMG_FOR_FFN:
        return d->attention_done && !d->ffn_done ? on_ffn(d, out) : SMG_ERR_PROTOCOL;
    case SMG_FOR_SELECT:
        d->select_done = 1;
        return split_next(d, out);
    case SMG_FOR_LOCAL_COPY:
        d->copies_left--;
        return lanes_progress(d, out);
    case SMG_FOR_REMOTE_RECV:
        s = seat_find(d, e->request);
        return s ? on_reply(d, s, e, out) : SMG_ERR_PROTOCOL;
    case SMG_FOR_REMOTE_COPY:
        return remote_arrived(d, out);
    case SMG_FOR_SCATTER:
    case SMG_FOR_KEEP:
        s = seat_find(d, e->request);
        if (!s)
            return SMG_ERR_PROTOCOL;
        s->background--;
        return seat_retire(d, s, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int decode_step(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    struct decode *d = decode_of(a);

    switch (e->kind) {
    case SMG_EV_RESERVED:
        return on_reserved(d, e, out);
    case SMG_EV_SPLIT_DONE:
        return on_split(d, e, out);
    case SMG_EV_OP_DONE:
        return on_op_done(d, e, out);
    case SMG_EV_MSG:
        return on_message(d, e, out);
    case SMG_EV_PEER_LOST:
        return on_peer_lost(d, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

const struct smg_agent_type smg_decode_agent = {"decode", decode_create, decode_destroy, decode_step, NULL, decode_reserve};
