/* Bringing one emulated process up, and down again. */
#include "emu/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks at the other instances while connections come up, s. */
static const double look_s = 0.01;

/* Room for every request at once: memory that is not touched costs nothing. */
uint64_t smg_process_arena_need(const struct smg_process *p)
{
    uint64_t n = 0, longest = 0;

    for (uint32_t r = 0; r < p->world->n_requests; r++) {
        if (smg_world_is_prefill(p->world, p->self))
            n += smg_prefill_need(p, r);
        else if (p->self)
            n += smg_decode_need(p, r);
        if (p->world->requests[r].prompt_tokens > longest)
            longest = p->world->requests[r].prompt_tokens;
    }
    return n + longest + p->ctl_bytes * (SMG_CTL_SENDS + (uint64_t)SMG_CTL_RECEIVES * p->instances) + 8 * SMG_ARENA_ALIGN;
}

static int set_up_memory(struct smg_process *p)
{
    uint64_t mask = 0;
    int status;

    p->ctl_bytes = smg_ctl_bytes(p->world);
    for (uint32_t r = 0; r < p->world->n_requests; r++)
        mask = p->world->requests[r].prompt_tokens > mask ? p->world->requests[r].prompt_tokens : mask;
    status = smg_arena_create(smg_process_arena_need(p), &p->arena);
    if (!status)
        status = smg_arena_take(p->arena, p->ctl_bytes * SMG_CTL_SENDS, &p->ctl_send);
    if (!status)
        status = smg_arena_take(p->arena, p->ctl_bytes * SMG_CTL_RECEIVES * p->instances, &p->ctl_receive);
    if (!status)
        status = smg_arena_take(p->arena, mask, &p->ones);
    if (status)
        return status;
    memset(smg_process_at(p, p->ones), SMG_MASK_LOCAL, mask);
    return smg_fabric_register(p->fabric, smg_arena_base(p->arena), smg_arena_bytes(p->arena), &p->mr, &p->diag);
}

static int set_up_tables(struct smg_process *p)
{
    size_t n = p->world->n_requests ? p->world->n_requests : 1;
    int status = smg_run_stats_init(&p->stats, p->world->n_requests);

    p->peer = calloc(p->instances, sizeof *p->peer);
    p->reserved_bytes = calloc(n, sizeof *p->reserved_bytes);
    p->prefill = calloc(n, sizeof(struct smg_prefill_data *));
    p->decode = calloc(n, sizeof(struct smg_decode_data *));
    p->cookie = calloc(n, sizeof *p->cookie);
    p->kr_blocks = calloc(n, sizeof *p->kr_blocks);
    p->full = calloc(n, 1);
    p->handed_off = calloc(n, 1);
    p->partner = calloc(n, sizeof *p->partner);
    p->cookie_from = calloc(n, sizeof *p->cookie_from);
    p->dropped = calloc(n, 1);
    p->lost = calloc(p->instances, sizeof *p->lost);
    p->told = calloc(p->instances, 1);
    p->silent = calloc(p->instances, 1);
    p->watch = calloc(p->instances, sizeof *p->watch);
    if (!status &&
        (!p->peer || !p->reserved_bytes || !p->prefill || !p->decode || !p->cookie || !p->kr_blocks || !p->full ||
         !p->handed_off || !p->partner || !p->cookie_from || !p->dropped || !p->lost || !p->told || !p->silent || !p->watch))
        status = SMG_ERR_NOMEM;
    if (!status)
        status = smg_agent_create(p->world, p->self, &p->agent);
    if (!status)
        status = smg_lanes_create(p->self, p->instances, &p->lanes);
    if (!status && smg_world_is_decode(p->world, p->self))
        status = p->config->selection->create(p->world, &p->selection);
    if (!status && p->plan && p->self != SMG_ROUTER)
        status = smg_compute_create(p->world, p->plan, &p->compute, &p->diag);
    smg_pool_init(&p->pool, p->self ? smg_world_pool_bytes(p->world, p->self) : 0);
    return status;
}

static int wants_end(const struct smg_process *p)
{
    return p->config->stop && p->config->stop();
}

/* Whether it is in vain to wait for connections: somebody wants the run to end, or an instance has failed, which the router sees
 * and tells the others. */
static int in_vain(void *arg)
{
    struct smg_process *p = arg;
    double now_s = smg_harness_now(p->harness);
    int unused, ended = 0;

    if (p->self)
        return smg_harness_stopped(p->harness, 0) || wants_end(p);
    if (now_s - p->watched_s < look_s)
        return wants_end(p);
    p->watched_s = now_s;
    for (uint16_t i = 1; i < p->instances && !ended; i++)
        ended = smg_harness_child(p->harness, i, &unused, NULL, 0) != SMG_CHILD_RUNS;
    return ended || wants_end(p);
}

/* Router and instances talk control; prefill and decode instances have all three queues. */
static int join_peers(struct smg_process *p)
{
    struct smg_fabric_peer *peers = calloc(p->instances, sizeof *peers);
    size_t n = 0;
    int status;

    if (!peers)
        return SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < p->instances; i++) {
        int across = smg_world_is_prefill(p->world, p->self)
                         ? smg_world_is_decode(p->world, i)
                         : smg_world_is_decode(p->world, p->self) && smg_world_is_prefill(p->world, i);
        if (i == p->self || (!across && i && p->self))
            continue;
        peers[n].instance = (uint16_t)i;
        peers[n].queues = across ? SMG_QUEUE_ALL : SMG_QUEUE_BIT(SMG_QUEUE_CTL);
        peers[n++].address = p->peer[i].address;
    }
    status = smg_fabric_connect(p->fabric, peers, n, p->config->stall_timeout_s, &p->diag);
    free(peers);
    p->watched_s = 0; /* the clock of the run is another */
    if (status == SMG_ERR_INTERRUPTED && !wants_end(p))
        return smg_process_fail(p, SMG_ERR_LOST, "another instance ended before the cluster was up");
    return status;
}

/* "A,B": the router and prefill instances use A, decode instances B. NULL: the fabric's default. */
static const char *device_of(const struct smg_process *p, char room[SMG_DEVICE_BYTES])
{
    const char *both = p->config->provider, *second = both ? strchr(both, ',') : NULL;

    if (!second)
        return both;
    if (smg_world_is_decode(p->world, p->self))
        return second + 1;
    snprintf(room, SMG_DEVICE_BYTES, "%.*s", (int)(second - both), both);
    return room;
}

int smg_process_set_up(struct smg_process *p)
{
    char room[SMG_DEVICE_BYTES];
    struct smg_fabric_config fc = {device_of(p, room), NULL, 16384, p->self, in_vain, p};
    const struct smg_fabric_type *type = smg_fabric_find(p->config->fabric);
    struct smg_publication own;
    int status = set_up_tables(p);

    if (status)
        return status;
    if (!type)
        return smg_process_fail(p, SMG_ERR_UNSUPPORTED, "this program has no fabric '%s'", p->config->fabric);
    status = smg_fabric_open(type, &fc, &p->fabric, &p->diag);
    if (!status)
        status = set_up_memory(p);
    if (!status)
        status = smg_process_reserve(p);
    if (status)
        return status;
    p->limits = *smg_fabric_limits(p->fabric);
    memset(&own, 0, sizeof own);
    smg_fabric_address(p->fabric, &own.address);
    own.memory = smg_mr_remote(p->mr);
    status = smg_harness_swap(p->harness, p->config->stall_timeout_s, &own, p->peer, &p->diag);
    if (!status)
        status = join_peers(p);
    if (!status)
        status = smg_ctl_post_receives(p);
    return status ? status : smg_harness_start(p->harness, p->config->stall_timeout_s, &p->diag);
}

void smg_process_tear_down(struct smg_process *p)
{
    for (uint32_t r = 0; r < p->world->n_requests; r++) {
        if (p->prefill && p->prefill[r])
            smg_prefill_close(p, r);
        if (p->decode && p->decode[r])
            smg_decode_free(p, r);
    }
    smg_mr_close(p->mr);
    smg_fabric_close(p->fabric);
    smg_arena_destroy(p->arena);
    if (p->selection)
        p->selection->type->destroy(p->selection);
    smg_compute_destroy(p->compute);
    smg_lanes_destroy(p->lanes);
    smg_agent_destroy(p->agent);
    smg_actions_free(&p->actions);
    smg_pool_free(&p->pool);
    smg_store_free(&p->store);
    smg_run_stats_free(&p->stats);
    free(p->peer);
    free(p->reserved_bytes);
    free(p->prefill);
    free(p->decode);
    free(p->cookie);
    free(p->kr_blocks);
    free(p->full);
    free(p->handed_off);
    free(p->partner);
    free(p->cookie_from);
    free(p->dropped);
    free(p->lost);
    free(p->told);
    free(p->silent);
    free(p->watch);
    free(p->segment);
    free(p->first_segment);
    free(p->timer);
    free(p->event);
}
