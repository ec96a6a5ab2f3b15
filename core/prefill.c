/* Prefill agent: computes prompts layer by layer, pushes the Kr best blocks as layers complete, answers on-demand requests, and
 * trickles the rest when a decode instance grants it.
 *
 * Order on the wire (SmartGen paper, sections on proactive and speculative transfer): metadata ahead of blocks; replies ahead of
 * late pushes (blocks of a request that already decodes); granted blocks join the replies' queue (speculative.queue: shared) or
 * come last of all (own). What goes next is decided at chunk boundaries: at most PUSH_WINDOW chunks per peer are posted
 * ahead. */
#include <stdlib.h>
#include <string.h>

#include "core/agent_priv.h"
#include "core/cost.h"
#include "core/reserve.h"

enum { PUSH_WINDOW = 2 };

/* What a job has for the wire, in the order in which it goes. */
enum queue { QUEUE_METADATA, QUEUE_PUSH, QUEUE_SPECULATIVE, QUEUES };

/* A piece of work for the wire: block ranges of one request, or a piece of one layer's metadata. */
struct chunk {
    struct chunk *next;
    uint16_t purpose;            /* METADATA, PUSH, SPECULATIVE */
    uint16_t layer;              /* METADATA, PUSH */
    uint64_t bytes, mask_bytes;
    uint32_t n_items;
    struct smg_item item[];
};

struct fifo {
    struct chunk *head, **tail;
};

struct job {
    struct job *next;            /* by request id, ascending */
    struct job *busy_next;       /* of its peer's busy jobs, by request id, ascending */
    uint32_t waiting;            /* chunks queued; 0: not busy */
    uint32_t request;
    uint16_t partner;            /* decode instance, 0: nothing to hand off */
    uint16_t pool_from;          /* who has said where to write, 0: nobody yet */
    uint16_t mode;
    uint32_t prompt_tokens, hit_tokens, kr_blocks, total_blocks;
    struct smg_grid grid;
    struct smg_rank *rank;
    int assigned, done_asked, failed;
    uint16_t culprit;             /* of a failure: the instance that is to blame, 0: none */
    int asked, reserved, started; /* RESERVE is out, memory is held, prefill computes or has computed */
    uint32_t offloaded;          /* layers in host memory, in order */
    uint32_t queued;             /* layers whose chunks are queued */
    int first_token;
    struct fifo queue[QUEUES];
    uint32_t in_flight;          /* WRITEs, gathers and replies not complete */
    uint32_t required_left;      /* chunks that the hand-off waits for */
    uint32_t push_left;          /* METADATA and PUSH chunks queued or in flight */
    int handed_off, pushed;
    uint32_t sent_next;          /* next position of the ranking for speculation */
    uint64_t metadata_bytes, proactive_bytes, speculative_bytes, on_demand_bytes, messages;
};

/* What is on its way, or waits to be, to one decode instance. */
struct peer {
    uint32_t posted;             /* PUSH chunks in flight */
    uint32_t waiting[QUEUES];    /* chunks queued */
    struct job *busy;            /* jobs that have some */
};

struct prefill {
    struct smg_agent base;
    struct job *jobs;
    struct peer *peer;           /* [instances] */
    uint32_t replies;            /* operations on REPLY lanes in flight */
    uint64_t metadata_token_bytes;
};

static struct prefill *prefill_of(struct smg_agent *a)
{
    return (struct prefill *)a;
}

/* ---- Jobs and queues ---- */

static void fifo_init(struct fifo *f)
{
    f->head = NULL;
    f->tail = &f->head;
}

static void fifo_push(struct fifo *f, struct chunk *c)
{
    c->next = NULL;
    *f->tail = c;
    f->tail = &c->next;
}

static struct chunk *fifo_pop(struct fifo *f)
{
    struct chunk *c = f->head;

    if (!c)
        return NULL;
    f->head = c->next;
    if (!f->head)
        f->tail = &f->head;
    return c;
}

static uint32_t fifo_clear(struct prefill *p, struct fifo *f)
{
    struct chunk *c;
    uint32_t n = 0;

    for (; (c = fifo_pop(f)); n++)
        smg_store_give(&p->base.store, c);
    return n;
}

static void job_free(struct prefill *p, struct job *j)
{
    for (int q = 0; q < QUEUES; q++)
        fifo_clear(p, &j->queue[q]);
    smg_rank_unref(j->rank);
    smg_store_give(&p->base.store, j);
}

static struct job *job_find(struct prefill *p, uint32_t request)
{
    struct job *j = p->jobs;

    while (j && j->request < request)
        j = j->next;
    return j && j->request == request ? j : NULL;
}

/* The decode node's word about memory may arrive before the router's assignment: either creates the job. */
static struct job *job_get(struct prefill *p, uint32_t request)
{
    struct job **at = &p->jobs, *j;

    while (*at && (*at)->request < request)
        at = &(*at)->next;
    if (*at && (*at)->request == request)
        return *at;
    j = smg_store_take(&p->base.store, sizeof *j);
    if (!j)
        return NULL;
    j->request = request;
    for (int q = 0; q < QUEUES; q++)
        fifo_init(&j->queue[q]);
    j->next = *at;
    *at = j;
    return j;
}

static void job_remove(struct prefill *p, struct job *j)
{
    struct job **at = &p->jobs;

    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    job_free(p, j);
}

static void prefill_destroy(struct smg_agent *a)
{
    struct prefill *p = prefill_of(a);

    while (p->jobs)
        job_remove(p, p->jobs);
    free(p->peer);
    free(p);
}

static int prefill_create(const struct smg_world *w, struct smg_agent **out)
{
    struct prefill *p = calloc(1, sizeof *p);

    if (!p)
        return SMG_ERR_NOMEM;
    p->peer = calloc(smg_world_instances(w), sizeof *p->peer);
    if (!p->peer) {
        free(p);
        return SMG_ERR_NOMEM;
    }
    p->metadata_token_bytes = smg_metadata_token_bytes(w);
    *out = &p->base;
    return SMG_OK;
}

/* ---- Cutting layers into chunks ---- */

static uint64_t chunk_bytes(uint64_t items)
{
    return sizeof(struct chunk) + items * sizeof(struct smg_item);
}

static struct chunk *chunk_new(struct prefill *p, uint16_t purpose, uint16_t layer, uint32_t cap_items)
{
    struct chunk *c = smg_store_take(&p->base.store, chunk_bytes(cap_items));

    if (c) {
        c->purpose = purpose;
        c->layer = layer;
    }
    return c;
}

/* Queues a complete chunk. It was made with room for the most items it could have got: what is left over goes back. */
static void enqueue(struct prefill *p, struct job *j, enum queue q, struct chunk *c)
{
    struct chunk *fits = smg_store_fit(&p->base.store, c, chunk_bytes(c->n_items));
    struct peer *to = &p->peer[j->partner];
    struct job **at = &to->busy;

    fifo_push(&j->queue[q], fits);
    to->waiting[q]++;
    if (j->waiting++)
        return;
    while (*at && (*at)->request < j->request)
        at = &(*at)->busy_next;
    j->busy_next = *at;
    *at = j;
}

static void not_busy(struct prefill *p, struct job *j)
{
    struct job **at = &p->peer[j->partner].busy;

    while (*at && *at != j)
        at = &(*at)->busy_next;
    if (*at)
        *at = j->busy_next;
}

/* Takes the oldest chunk of a queue, NULL: there is none. */
static struct chunk *dequeue(struct prefill *p, struct job *j, enum queue q)
{
    struct chunk *c = fifo_pop(&j->queue[q]);

    if (!c)
        return NULL;
    p->peer[j->partner].waiting[q]--;
    if (!--j->waiting)
        not_busy(p, j);
    return c;
}

static int queue_metadata(struct prefill *p, struct job *j, uint16_t layer)
{
    uint64_t total = j->prompt_tokens * p->metadata_token_bytes, limit = smg_world_chunk_bytes(p->base.world);

    if (j->mode == SMG_MODE_FULL || !p->base.features.metadata || !smg_model_layer_selects(&p->base.world->model, layer))
        return SMG_OK;
    if (total > UINT32_MAX)
        return SMG_ERR_RANGE; /* items tell pieces of metadata by 32-bit offsets */
    for (uint64_t at = 0; at < total; at += limit) {
        struct chunk *c = chunk_new(p, SMG_FOR_METADATA, layer, 1);
        if (!c)
            return SMG_ERR_NOMEM;
        c->bytes = total - at < limit ? total - at : limit;
        c->n_items = 1;
        c->item[0] = (struct smg_item){j->request, layer, 0, (uint32_t)at, (uint32_t)c->bytes};
        enqueue(p, j, QUEUE_METADATA, c);
        j->push_left++;
        j->required_left++;
    }
    return SMG_OK;
}

/* Adds a block to a chunk, widening the last range when it is adjacent. The caller keeps room. */
static void chunk_add(struct chunk *c, uint32_t request, uint16_t layer, uint32_t block, uint64_t bytes, uint64_t mask_bytes)
{
    struct smg_item *last = c->n_items ? &c->item[c->n_items - 1] : NULL;

    c->bytes += bytes;
    c->mask_bytes += mask_bytes;
    if (last && last->layer == layer && last->first + last->count == block)
        last->count++;
    else
        c->item[c->n_items++] = (struct smg_item){request, layer, 0, block, 1};
}

/* Whether the hand-off waits for the pushed blocks of a layer. What is never fetched must have come. */
static int required(const struct prefill *p, const struct job *j, uint32_t layer)
{
    return layer < SMG_DENSE_LAYERS || j->mode == SMG_MODE_FULL || p->base.features.evict ||
           p->base.world->scenario.decode_start == SMG_START_PUSHED;
}

static int queue_blocks(struct prefill *p, struct job *j, uint16_t layer)
{
    const uint32_t *position = j->rank->position + (size_t)layer * j->rank->blocks;
    uint64_t limit = smg_world_chunk_bytes(p->base.world);
    struct chunk *c = NULL;

    for (uint32_t m = smg_grid_first(&j->grid, layer); m < j->grid.blocks; m++) {
        uint64_t bytes = smg_grid_range_bytes(&j->grid, layer, m, 1);
        if (position[m] >= j->kr_blocks)
            continue;
        if (c && c->bytes + bytes > limit) {
            enqueue(p, j, QUEUE_PUSH, c);
            c = NULL;
        }
        if (!c) {
            c = chunk_new(p, SMG_FOR_PUSH, layer, j->grid.blocks - m);
            if (!c)
                return SMG_ERR_NOMEM;
            j->push_left++;
            j->required_left += required(p, j, layer);
        }
        chunk_add(c, j->request, layer, m, bytes, smg_grid_range_tokens(&j->grid, layer, m, 1));
    }
    if (c)
        enqueue(p, j, QUEUE_PUSH, c);
    return SMG_OK;
}

/* Queues the layers that are in host memory, once the decode node has told where they go. */
static int queue_layers(struct prefill *p, struct job *j)
{
    int status = SMG_OK;

    if (!j->pool_from || !j->partner || j->failed || j->done_asked)
        return SMG_OK;
    for (; j->queued < j->offloaded && !status; j->queued++) {
        status = queue_metadata(p, j, (uint16_t)j->queued);
        if (!status)
            status = queue_blocks(p, j, (uint16_t)j->queued);
    }
    return status;
}

/* What a request takes of the store. Each block goes once, and a chunk takes no more than one for each of its blocks would; a
 * chunk that is being filled has room for the blocks that are left. */
static uint64_t request_cost(const struct prefill *p, uint32_t request, uint64_t *filling)
{
    const struct smg_world *w = p->base.world;
    uint64_t tokens = w->requests[request].prompt_tokens, limit = smg_world_chunk_bytes(w), blocks, pieces;
    struct smg_grid g;

    smg_agent_grid(&p->base, (uint32_t)tokens, &g);
    blocks = smg_grid_total_blocks(&g);
    pieces = w->model.layers * ((tokens * p->metadata_token_bytes + limit - 1) / limit);
    if (*filling < 2 * smg_store_cost(chunk_bytes(blocks)))
        *filling = 2 * smg_store_cost(chunk_bytes(blocks)); /* of each size up to this one, one at a time */
    return smg_store_cost(sizeof(struct job)) + smg_rank_cost(&g) + (blocks + pieces) * smg_store_cost(chunk_bytes(1));
}

static int prefill_reserve(struct smg_agent *a)
{
    uint64_t bytes = 0, filling = 0;

    for (uint32_t i = 0; i < a->world->n_requests; i++)
        bytes += request_cost(prefill_of(a), i, &filling);
    return smg_store_reserve(&a->store, bytes + filling);
}

/* ---- Posting ---- */

static int post_write(struct prefill *p, struct job *j, struct chunk *c, enum smg_lane lane, struct smg_actions *out)
{
    struct smg_action *act =
        smg_agent_act(&p->base, out, SMG_ACT_WRITE, lane, j->partner, (enum smg_purpose)c->purpose, j->request);
    int status = act ? SMG_OK : SMG_ERR_NOMEM;

    if (act) {
        act->flags = SMG_ACT_NOTIFY;
        act->layer_lo = c->layer;
        act->layer_hi = (uint16_t)(c->layer + 1);
        act->bytes = c->bytes;
        act->mask_bytes = c->mask_bytes;
        act->messages = c->purpose == SMG_FOR_METADATA ? 1 : 2 * c->n_items; /* each range is followed by its mask */
        j->messages += act->messages;
        j->in_flight++;
        for (uint32_t i = 0; i < c->n_items && !status; i++)
            status = smg_actions_item(out, &c->item[i]);
    }
    smg_store_give(&p->base.store, c);
    return status;
}

/* Whether a job's chunks of a queue have to wait for the replies: late blocks and own-queue speculation do. */
static int yields(const struct prefill *p, const struct job *j, enum queue q)
{
    return p->replies && (q == QUEUE_SPECULATIVE || (q == QUEUE_PUSH && j->handed_off));
}

/* The next chunk that may go to this peer: of the first queue, then of the first request, that have one; NULL: none. */
static struct chunk *next_chunk(struct prefill *p, uint16_t peer, struct job **owner)
{
    struct peer *to = &p->peer[peer];

    for (enum queue q = QUEUE_METADATA; q < QUEUES; q++) {
        for (struct job *j = to->waiting[q] ? to->busy : NULL; j; j = j->busy_next) {
            struct chunk *c = yields(p, j, q) ? NULL : dequeue(p, j, q);
            if (!c)
                continue;
            *owner = j;
            return c;
        }
    }
    return NULL;
}

static int post_peer(struct prefill *p, uint16_t peer, struct smg_actions *out)
{
    int status = SMG_OK;

    while (!status && p->peer[peer].posted < PUSH_WINDOW) {
        struct job *j = NULL;
        struct chunk *c = next_chunk(p, peer, &j);
        if (!c)
            break;
        p->peer[peer].posted++;
        status = post_write(p, j, c, SMG_LANE_PUSH, out);
    }
    return status;
}

/* For when the last reply is out: late pushes and own-queue speculation to every peer may go on. */
static int post_all(struct prefill *p, struct smg_actions *out)
{
    const struct smg_world *w = p->base.world;
    int status = SMG_OK;

    for (uint32_t i = 1 + w->prefill_instances; i < smg_world_instances(w) && !status; i++)
        status = post_peer(p, (uint16_t)i, out);
    return status;
}

/* ---- Speculation ---- */

static int queue_grant(struct prefill *p, struct job *j, uint32_t blocks, struct smg_actions *out)
{
    int shared = p->base.world->scenario.speculative.queue == SMG_SPEC_SHARED, status = SMG_OK;
    uint64_t limit = smg_world_chunk_bytes(p->base.world);
    uint32_t left = j->rank->total - j->sent_next;
    struct chunk *c = NULL;

    blocks = blocks < left ? blocks : left; /* chunks are made with room for all of them */
    while (!status && blocks && j->sent_next < j->rank->total) {
        const struct smg_block_id *b = &j->rank->order[j->sent_next++];
        uint64_t bytes = smg_grid_range_bytes(&j->grid, b->layer, b->block, 1);
        if (!c)
            c = chunk_new(p, SMG_FOR_SPECULATIVE, b->layer, blocks);
        if (!c)
            return SMG_ERR_NOMEM;
        chunk_add(c, j->request, b->layer, b->block, bytes, smg_grid_range_tokens(&j->grid, b->layer, b->block, 1));
        blocks--;
        if (c->bytes < limit && blocks && j->sent_next < j->rank->total)
            continue;
        if (shared) {
            p->replies++;
            status = post_write(p, j, c, SMG_LANE_REPLY, out);
        } else {
            enqueue(p, j, QUEUE_SPECULATIVE, c);
        }
        c = NULL;
    }
    return status;
}

/* ---- Milestones of a request ---- */

static int hand_off(struct prefill *p, struct job *j, struct smg_actions *out)
{
    int all_queued = j->partner && j->queued == p->base.world->model.layers;
    struct smg_action *act;

    if (!all_queued || j->failed)
        return SMG_OK;
    if (!j->handed_off && !j->required_left && j->first_token) {
        j->handed_off = 1;
        act = smg_agent_send(&p->base, out, j->partner, SMG_MSG_HANDOFF, j->request);
        if (!act)
            return SMG_ERR_NOMEM;
        act->duration_s = p->base.world->scenario.network.handshake_us * 1e-6;
    }
    if (!j->pushed && !j->push_left) {
        j->pushed = 1;
        if (!smg_agent_send(&p->base, out, SMG_ROUTER, SMG_MSG_PUSHED, j->request))
            return SMG_ERR_NOMEM;
    }
    return SMG_OK;
}

static int send_summary(struct prefill *p, struct job *j, struct smg_actions *out)
{
    struct smg_action *act = smg_agent_send(&p->base, out, SMG_ROUTER, SMG_MSG_SUMMARY, j->request);

    if (!act)
        return SMG_ERR_NOMEM;
    act->msg.u.summary.metadata_bytes = j->metadata_bytes;
    act->msg.u.summary.proactive_bytes = j->proactive_bytes;
    act->msg.u.summary.speculative_bytes = j->speculative_bytes;
    act->msg.u.summary.on_demand_bytes = j->on_demand_bytes;
    act->msg.u.summary.messages = j->messages;
    return SMG_OK;
}

/* A finished (or failed) request is dropped when the NIC holds nothing of it any more; only then may the decode node reuse its
 * memory. */
static int retire(struct prefill *p, struct job *j, struct smg_actions *out)
{
    int computed = j->offloaded == p->base.world->model.layers || !j->started || (!j->partner && j->first_token);

    if (!j->done_asked || j->in_flight || j->asked || !computed)
        return SMG_OK;
    if (!j->failed && send_summary(p, j, out))
        return SMG_ERR_NOMEM;
    if (j->partner && !p->base.lost[j->partner] && !smg_agent_send(&p->base, out, j->partner, SMG_MSG_DONE, j->request))
        return SMG_ERR_NOMEM;
    if (j->reserved && !smg_agent_act(&p->base, out, SMG_ACT_RELEASE, SMG_LANE_NONE, 0, SMG_FOR_NONE, j->request))
        return SMG_ERR_NOMEM;
    job_remove(p, j);
    return SMG_OK;
}

static void drop_queues(struct prefill *p, struct job *j)
{
    for (int q = 0; q < QUEUES; q++)
        p->peer[j->partner].waiting[q] -= fifo_clear(p, &j->queue[q]);
    if (j->waiting)
        not_busy(p, j);
    j->waiting = 0;
    j->sent_next = j->rank ? j->rank->total : 0;
}

/* ---- Events ---- */

static int on_assign(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    uint16_t partner = e->msg.u.assign.partner;
    struct job *j = job_find(p, e->msg.request);
    struct smg_action *act;

    if ((j && j->assigned) || !smg_agent_assignable(&p->base, &e->msg) ||
        (partner && !smg_world_is_decode(p->base.world, partner)))
        return SMG_ERR_PROTOCOL;
    if (p->base.lost[partner]) {
        if (j)
            job_remove(p, j);
        return smg_agent_tell_failed(&p->base, out, e->msg.request, p->base.lost[partner], partner, 0);
    }
    j = job_get(p, e->msg.request);
    if (!j)
        return SMG_ERR_NOMEM;
    j->assigned = j->asked = 1;
    j->partner = partner;
    if (j->pool_from != partner)
        j->pool_from = 0; /* said by another: nothing goes there */
    j->mode = e->msg.u.assign.mode;
    j->prompt_tokens = e->msg.u.assign.prompt_tokens;
    j->hit_tokens = e->msg.u.assign.hit_tokens;
    j->kr_blocks = j->sent_next = e->msg.u.assign.kr_blocks;
    j->total_blocks = e->msg.u.assign.total_blocks;
    smg_agent_grid(&p->base, j->prompt_tokens, &j->grid);
    if (j->partner && smg_agent_rank(&p->base, j->request, &j->grid, &j->rank))
        return SMG_ERR_NOMEM;
    act = smg_agent_act(&p->base, out, SMG_ACT_RESERVE, SMG_LANE_NONE, 0, SMG_FOR_NONE, j->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->bytes = smg_model_prompt_bytes(&p->base.world->model, j->prompt_tokens);
    return SMG_OK;
}

/* Tells the router that the request failed and that the GPU is not (no longer) at work for it. */
static int tell_failed(struct prefill *p, const struct job *j, int status, struct smg_actions *out)
{
    return smg_agent_tell_failed(&p->base, out, j->request, status, status == j->failed ? j->culprit : 0, 0);
}

static int fail(struct prefill *p, struct job *j, int status, struct smg_actions *out)
{
    if (tell_failed(p, j, status, out))
        return SMG_ERR_NOMEM;
    j->failed = status;
    j->done_asked = 1;
    return retire(p, j, out);
}

static int start_compute(struct prefill *p, struct job *j, struct smg_actions *out)
{
    const struct smg_request_spec spec = {0, j->prompt_tokens, 1, j->hit_tokens};
    double layer_s = smg_cost_prefill_layer_s(p->base.world, &spec);

    j->started = 1;
    if (!smg_agent_send(&p->base, out, SMG_ROUTER, SMG_MSG_STARTED, j->request))
        return SMG_ERR_NOMEM;
    for (uint32_t l = 0; l < p->base.world->model.layers; l++) {
        struct smg_action *act =
            smg_agent_act(&p->base, out, SMG_ACT_COMPUTE, SMG_LANE_GPU_MAIN, 0, SMG_FOR_PREFILL_LAYER, j->request);
        if (!act)
            return SMG_ERR_NOMEM;
        act->flags = SMG_ACT_NOTIFY;
        act->layer_lo = (uint16_t)l;
        act->layer_hi = (uint16_t)(l + 1);
        act->duration_s = layer_s;
    }
    return SMG_OK;
}

static int on_reserved(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->request);

    if (!j || !j->asked)
        return SMG_ERR_PROTOCOL;
    j->asked = 0;
    j->reserved = !e->status;
    if (e->status || j->failed) /* failed: elsewhere, while memory was waited for */
        return fail(p, j, e->status ? e->status : j->failed, out);
    return start_compute(p, j, out);
}

static int emit_first(struct prefill *p, struct job *j, struct smg_actions *out)
{
    struct smg_action *act = smg_agent_send(&p->base, out, SMG_ROUTER, SMG_MSG_TOKEN, j->request);

    if (!act)
        return SMG_ERR_NOMEM;
    act->msg.u.token.token = 1;
    j->first_token = 1;
    j->done_asked |= !j->partner;
    return retire(p, j, out);
}

/* Only the computed part is new to host memory; the cached prefix is there already. */
static int on_kv_ready(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->request);
    uint32_t last = p->base.world->model.layers - 1;

    if (!j || !j->started || e->layer_lo > last)
        return SMG_ERR_PROTOCOL;
    if (j->partner) {
        uint32_t kept = smg_model_layer_tokens(&p->base.world->model, e->layer_lo, j->prompt_tokens - j->hit_tokens);
        struct smg_action *act = smg_agent_act(&p->base, out, SMG_ACT_COPY, SMG_LANE_D2H, 0, SMG_FOR_OFFLOAD, j->request);
        if (!act)
            return SMG_ERR_NOMEM;
        act->flags = SMG_ACT_NOTIFY;
        act->layer_lo = e->layer_lo;
        act->layer_hi = e->layer_hi;
        act->bytes = kept * j->grid.token_layer_bytes;
    }
    if (e->layer_lo != last)
        return SMG_OK;
    return j->failed ? tell_failed(p, j, j->failed, out) : emit_first(p, j, out);
}

static int on_pool(struct prefill *p, const struct smg_event *e)
{
    struct job *j = job_find(p, e->msg.request);

    if (j && (j->pool_from || (j->assigned && e->peer != j->partner)))
        return SMG_ERR_PROTOCOL;
    j = job_get(p, e->msg.request);
    if (!j)
        return SMG_ERR_NOMEM;
    j->pool_from = e->peer;
    return queue_layers(p, j);
}

static int on_index(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->msg.request);
    struct smg_action *act;

    if (!j || e->peer != j->partner)
        return SMG_ERR_PROTOCOL;
    act = smg_agent_act(&p->base, out, SMG_ACT_GATHER, SMG_LANE_CPU_GATHER, e->peer, SMG_FOR_REPLY_GATHER, j->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->flags = SMG_ACT_NOTIFY;
    act->step = e->msg.step;
    act->layer_lo = e->msg.layer_lo;
    act->layer_hi = e->msg.layer_hi;
    act->bytes = e->msg.u.index.bytes;
    act->entries = e->msg.u.index.entries;
    act->messages = e->msg.u.index.messages;
    act->duration_s = p->base.world->nic.rpc_overhead_s;
    j->in_flight++;
    return SMG_OK;
}

static int on_gathered(struct prefill *p, struct job *j, const struct smg_event *e, struct smg_actions *out)
{
    struct smg_action *act;

    if (p->base.lost[j->partner])
        return SMG_OK;
    act = smg_agent_act(&p->base, out, SMG_ACT_REPLY, SMG_LANE_REPLY, j->partner, SMG_FOR_REPLY, j->request);
    if (!act)
        return SMG_ERR_NOMEM;
    act->flags = SMG_ACT_NOTIFY;
    act->step = e->step;
    act->layer_lo = e->layer_lo;
    act->layer_hi = e->layer_hi;
    act->entries = e->entries;
    act->bytes = e->bytes;
    act->messages = e->messages;
    j->in_flight++;
    j->messages += act->messages;
    j->on_demand_bytes += act->bytes;
    p->replies++;
    return SMG_OK;
}

static void count_write(struct prefill *p, struct job *j, const struct smg_event *e)
{
    uint64_t *bytes = e->purpose == SMG_FOR_METADATA ? &j->metadata_bytes
                      : e->purpose == SMG_FOR_PUSH   ? &j->proactive_bytes
                                                     : &j->speculative_bytes;

    *bytes += e->status ? 0 : e->bytes;
    if (e->purpose == SMG_FOR_SPECULATIVE && p->base.world->scenario.speculative.queue == SMG_SPEC_SHARED)
        p->replies--;
    else
        p->peer[j->partner].posted--;
    if (e->purpose == SMG_FOR_SPECULATIVE)
        return;
    j->push_left--;
    if (e->purpose == SMG_FOR_METADATA || required(p, j, e->layer_lo))
        j->required_left--;
}

static int on_op_done(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->request);
    uint32_t replies = p->replies;
    uint16_t partner = j ? j->partner : 0;
    int status = SMG_OK;

    if (!j)
        return SMG_ERR_PROTOCOL;
    switch (e->purpose) {
    case SMG_FOR_OFFLOAD:
        if (j->offloaded == p->base.world->model.layers)
            return SMG_ERR_PROTOCOL;
        j->offloaded++;
        status = queue_layers(p, j);
        break;
    case SMG_FOR_REPLY_GATHER:
        j->in_flight--;
        status = on_gathered(p, j, e, out);
        break;
    case SMG_FOR_REPLY:
        j->in_flight--;
        p->replies--;
        break;
    case SMG_FOR_METADATA:
    case SMG_FOR_PUSH:
    case SMG_FOR_SPECULATIVE:
        j->in_flight--;
        count_write(p, j, e);
        break;
    default:
        return SMG_ERR_PROTOCOL;
    }
    if (!status)
        status = hand_off(p, j, out);
    if (!status)
        status = retire(p, j, out);
    if (!status)
        status = replies && !p->replies ? post_all(p, out) : post_peer(p, partner, out);
    return status;
}

static int on_done(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->msg.request);

    if (!j)
        return SMG_OK; /* it failed here first */
    if (e->msg.kind == SMG_MSG_DONE && (!j->assigned || e->peer != j->partner))
        return SMG_ERR_PROTOCOL;
    if (e->msg.kind == SMG_MSG_FAILED && !j->failed)
        j->failed = e->msg.u.failed.status ? e->msg.u.failed.status : SMG_ERR_LOST;
    j->done_asked = 1;
    drop_queues(p, j);
    return retire(p, j, out);
}

/* The requests of a lost decode instance fail. */
static int on_peer_lost(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *next;
    int status = SMG_OK;

    for (struct job *j = p->jobs; j && !status; j = next) {
        next = j->next;
        if (!j->assigned && j->pool_from == e->peer)
            j->pool_from = 0;
        if (!j->assigned || j->partner != e->peer)
            continue;
        if (!j->done_asked) {
            j->failed = e->status;
            j->culprit = e->peer;
            status = smg_agent_tell_failed(&p->base, out, j->request, e->status, e->peer, !j->first_token);
        }
        j->done_asked = 1;
        drop_queues(p, j);
        if (!status)
            status = retire(p, j, out);
    }
    return status;
}

static int on_idle(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j = job_find(p, e->msg.request);
    int status;

    if (!j || (j->done_asked && e->peer == j->partner))
        return SMG_OK;
    if (!j->rank || e->peer != j->partner)
        return SMG_ERR_PROTOCOL;
    status = queue_grant(p, j, e->msg.u.grant.blocks, out);
    return status ? status : post_peer(p, j->partner, out);
}

static int on_message(struct prefill *p, const struct smg_event *e, struct smg_actions *out)
{
    struct job *j;
    int status;

    switch (e->msg.kind) {
    case SMG_MSG_PREFILL:
        return on_assign(p, e, out);
    case SMG_MSG_POOL:
        status = on_pool(p, e);
        j = job_find(p, e->msg.request);
        if (!status && j && j->assigned)
            status = hand_off(p, j, out);
        return status || !j ? status : post_peer(p, j->partner, out);
    case SMG_MSG_INDEX:
        return on_index(p, e, out);
    case SMG_MSG_IDLE:
        return on_idle(p, e, out);
    case SMG_MSG_DONE:
    case SMG_MSG_FAILED:
        return on_done(p, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

static int prefill_step(struct smg_agent *a, const struct smg_event *e, struct smg_actions *out)
{
    struct prefill *p = prefill_of(a);

    switch (e->kind) {
    case SMG_EV_RESERVED:
        return on_reserved(p, e, out);
    case SMG_EV_KV_READY:
        return on_kv_ready(p, e, out);
    case SMG_EV_OP_DONE:
        return on_op_done(p, e, out);
    case SMG_EV_MSG:
        return on_message(p, e, out);
    case SMG_EV_PEER_LOST:
        return on_peer_lost(p, e, out);
    default:
        return SMG_ERR_PROTOCOL;
    }
}

const struct smg_agent_type smg_prefill_agent = {"prefill", prefill_create, prefill_destroy, prefill_step, NULL, prefill_reserve};
