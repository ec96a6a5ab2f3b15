#include "core/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hack.h"
#include "core/plugin.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "core/status.h"

static uint32_t at_least_one(double x)
{
    return x < 1 ? 1 : (uint32_t)(x + 0.5);
}

static void representative(const struct smg_world *w, struct smg_request_spec *r, struct smg_plan *p)
{
    double prompt = 0, output = 0, hit = 0, n = w->n_requests;

    for (uint32_t i = 0; i < w->n_requests; i++) {
        prompt += w->requests[i].prompt_tokens / n;
        output += w->requests[i].output_tokens / n;
        hit += w->requests[i].hit_tokens / n;
    }
    r->arrival_s = 0;
    r->prompt_tokens = p->prompt_tokens = at_least_one(prompt);
    r->output_tokens = p->output_tokens = at_least_one(output);
    r->hit_tokens = (uint32_t)hit < r->prompt_tokens ? (uint32_t)hit : r->prompt_tokens - 1;
}

static double rate(const struct smg_world *w)
{
    double span = w->n_requests ? w->requests[w->n_requests - 1].arrival_s : 0;

    return w->scenario.workload.kind == SMG_WORKLOAD_BATCH || span <= 0 ? NAN : w->n_requests / span;
}

/* Requests in transition at once on one decode NIC: all that start together in a batch; else Little's law over prefill and
 * transfer, at least one. */
static uint32_t sharers(const struct smg_world *w, double tp_s, double alone_s)
{
    double lambda = rate(w), together = w->n_requests < w->prefill_instances ? w->n_requests : w->prefill_instances;

    if (isnan(lambda))
        return at_least_one(ceil(together / w->scenario.decode.nodes));
    return at_least_one(lambda / w->scenario.decode.nodes * (tp_s + alone_s));
}

/* Expected share of selected entries that are not in the Kr set: importance-weighted, over the layers that select. */
static int ratio(const struct smg_world *w, const struct smg_features *f, const struct smg_grid *g, struct smg_plan *p)
{
    struct smg_rank_input in = {g, w->importance, w->scenario.seed, 0};
    const struct smg_rank_type *type = smg_world_ranking(w, f->ranking);
    float *weight = malloc(g->blocks * sizeof *weight);
    struct smg_rank *rank = NULL;
    double absent = 0;
    uint32_t layers = 0;
    int status = weight && type ? smg_rank_create(type, &in, &rank) : SMG_ERR_NOMEM;

    for (uint32_t l = 0; l < w->model.layers && !status; l++) {
        double all = 0, missing = 0;
        if (!smg_model_layer_selects(&w->model, l))
            continue;
        if (w->importance)
            smg_importance_resample(w->importance, smg_importance_group(w->importance, g->tokens), l, g->blocks, weight);
        for (uint32_t m = 0; m < g->blocks; m++) {
            double x = (w->importance ? weight[m] : 1) * smg_grid_range_tokens(g, l, m, 1);
            all += x;
            missing += rank->position[(size_t)l * rank->blocks + m] >= p->budget.kr_blocks ? x : 0;
        }
        absent += all > 0 ? missing / all : 0;
        layers++;
    }
    if (!status)
        p->absent_ratio = layers ? absent / layers : 0;
    for (uint32_t i = 0; !status && i < rank->total; i++) {
        uint64_t bytes = smg_grid_range_bytes(g, rank->order[i].layer, rank->order[i].block, 1);
        if (i < p->budget.kr_blocks) {
            p->proactive_bytes += bytes;
            p->present_tokens[rank->order[i].layer] += smg_grid_range_tokens(g, rank->order[i].layer, rank->order[i].block, 1);
        } else {
            p->speculative_bytes += bytes;
        }
    }
    smg_rank_unref(rank);
    free(weight);
    return status;
}

/* HACK keeps everything on the GPU: attention and FFN in turn, no lanes. */
static double hack_step_s(const struct smg_world *w, const struct smg_plan *p)
{
    double sum = 0;

    for (uint32_t l = 0; l < w->model.layers; l++)
        sum += smg_hack_attention_s(w, (uint64_t)p->batch * smg_model_layer_tokens(&w->model, l, p->prompt_tokens)) +
               smg_cost_ffn_s(w, p->batch, l + 1 == w->model.layers);
    return sum;
}

/* Entries that a layer attends to per KV head and request: what the selector picks, all of the layer, or all that is present. */
static uint32_t layer_entries(const struct smg_world *w, const struct smg_features *f, const struct smg_plan *p, uint32_t l)
{
    if (f->attend_present && !p->budget.full)
        return p->present_tokens[l];
    if (!f->attend_present && smg_model_layer_selects(&w->model, l))
        return smg_selection_k(w, p->prompt_tokens);
    return smg_model_layer_tokens(&w->model, l, p->prompt_tokens);
}

/* What a decode step finds on its node: the Kr set (first step), that and what earlier steps fetched and kept, or everything. */
enum presence { KR_SET, KR_SET_AND_KEPT, EVERYTHING };

/* Share of a layer's entries that is absent. A layer that does not select (a sliding window) reads all that it keeps, so one step
 * with KV reuse fetches it whole; the dense layers are there before a request is handed off. */
static double absent_share(const struct smg_world *w, const struct smg_features *f, const struct smg_plan *p, enum presence there,
                           uint32_t l)
{
    if (there == EVERYTHING || f->attend_present || p->budget.full)
        return 0;
    if (smg_model_layer_selects(&w->model, l))
        return p->absent_ratio;
    if (l < SMG_DENSE_LAYERS || (there == KR_SET_AND_KEPT && f->reuse))
        return 0;
    return 1 - p->present_tokens[l] / (double)smg_model_layer_tokens(&w->model, l, p->prompt_tokens);
}

/* One decode step of the batch, absent entries on the prefill nodes; they are left out where the scheme evicts. Local entries are
 * gathered and copied; remote ones cross the link, in parallel, or before a common copy. */
static double step_s(const struct smg_world *w, const struct smg_features *f, const struct smg_plan *p, enum presence there,
                     double *lane_s)
{
    const struct smg_model *m = &w->model;
    uint32_t node = smg_world_node(w, 1 + w->prefill_instances);
    double gather = 1 / smg_world_gather_Bps(w, node), copy = 1 / w->decode_gpu.pcie_Bps, link = smg_world_link_Bps(w, node),
           sum = 0, own = 0;

    *lane_s = 0;
    if (f->on_gpu)
        return hack_step_s(w, p);
    for (uint32_t l = 0; l < m->layers; l++) {
        int last = l + 1 == m->layers;
        uint64_t entries = (uint64_t)m->kv_heads * p->batch * layer_entries(w, f, p, l);
        double share = absent_share(w, f, p, there, l);
        double bytes = (double)(entries * smg_model_entry_bytes(m)), absent = share * bytes, far = f->evict ? 0 : absent / link;
        double near = (bytes - absent) * (gather + copy), body = smg_cost_ffn_s(w, p->batch, 0), lanes;
        lanes = f->parallel ? fmax(near, far) : near + far + (f->evict ? 0 : absent * copy);
        own += near;
        if (f->evict)
            entries -= (uint64_t)(share * (double)entries);
        sum += smg_cost_attention_s(w, entries) + (l ? fmax(lanes, body) : lanes) + (last ? smg_cost_ffn_s(w, p->batch, 1) : 0);
    }
    *lane_s = own;
    return sum;
}

/* Per request, in the first step. */
static uint64_t on_demand_bytes(const struct smg_world *w, const struct smg_features *f, const struct smg_plan *p)
{
    double entries = 0;

    for (uint32_t l = 0; l < w->model.layers; l++)
        entries += absent_share(w, f, p, KR_SET, l) * w->model.kv_heads * layer_entries(w, f, p, l);
    return (uint64_t)(entries * (double)smg_model_entry_bytes(&w->model));
}

/* Time from the start of prefill until decode may start, a two-stage pipeline: c + (L-1) max(c, x) + x, with x the wire time of
 * one layer's share. */
static double ready_s(const struct smg_world *w, const struct smg_plan *p)
{
    double link = smg_world_link_Bps(w, smg_world_node(w, 1 + w->prefill_instances)) / p->sharers, L = w->model.layers;
    double c = p->budget.tp_s / L, window_bytes = p->budget.full ? (double)p->budget.kv_bytes : (double)p->budget.metadata_bytes;
    double x = window_bytes / L / link;

    if ((w->scenario.decode_start == SMG_START_PUSHED || p->evicts) && !p->budget.full)
        x = (double)(p->proactive_bytes + p->budget.metadata_bytes) / L / link;
    return c + (L - 1) * fmax(c, x) + x;
}

/* Speculation against time. A step's grants of the whole batch cross the decode link while it runs; what is selected and not
 * kept is fetched beside them, half of it on the average of these steps. */
static void grants(const struct smg_world *w, const struct smg_features *f, const struct smg_grid *g, struct smg_plan *p)
{
    double link = smg_world_link_Bps(w, smg_world_node(w, 1 + w->prefill_instances)), gaps = p->output_tokens - 2.0, bytes;
    double per_step = (double)w->model.layers * fmax(1, floor(w->scenario.speculative.ratio * g->blocks + 1e-9));

    p->grants_tbt_s = p->tbt_s;
    if (!f->speculative || p->budget.full || gaps < 1)
        return;
    p->grants_steps = (uint32_t)ceil((p->budget.total_blocks - p->budget.kr_blocks) / per_step);
    if (!p->grants_steps)
        return;
    bytes = (double)p->speculative_bytes / p->grants_steps + (f->reuse || f->evict ? 0 : 0.5 * (double)p->on_demand_bytes_step);
    p->grants_step_s = p->batch * bytes / link;
    p->grants_tbt_s += fmax(0, p->grants_step_s - p->tbt_s) * fmin(p->grants_steps, gaps) / gaps;
}

static void utilisation(const struct smg_world *w, struct smg_plan *p, double lane_s)
{
    double lambda = rate(w), sent = p->output_tokens > 1 ? (double)(p->budget.metadata_bytes + p->proactive_bytes) : 0;
    uint32_t decode_node = w->scenario.prefill.nodes;

    p->prefill_gpu = lambda * p->budget.tp_s / w->prefill_instances;
    p->prefill_link = lambda * sent / (smg_world_link_Bps(w, 0) * w->scenario.prefill.nodes);
    p->decode_link = lambda * sent / (smg_world_link_Bps(w, decode_node) * w->scenario.decode.nodes);
    /* The part of a step that grows with the batch is what a request uses of its instance; the rest is shared. */
    p->decode_lane = lambda * (p->output_tokens - 1) * lane_s / p->batch / w->decode_instances;
}

/* Prefill makes the only token: nothing is sent, and no decode instance works. */
static void no_decode(struct smg_plan *p)
{
    p->proactive_bytes = p->speculative_bytes = p->on_demand_bytes_step = 0;
    p->budget.metadata_bytes = 0;
    p->on_demand_ratio = NAN;
    p->decode_memory = 0;
    p->decode_too_large = 0;
}

/* What the instances reserve: a decode instance its batch, a prefill instance its share of the requests in decode, which keep
 * their KV there until they end; at least one request each. */
static void memory(const struct smg_world *w, const struct smg_features *f, struct smg_plan *p)
{
    const struct smg_model *m = &w->model;
    double prefill = (double)smg_model_prompt_bytes(m, p->prompt_tokens), metadata = f->metadata ? p->budget.metadata_bytes : 0;
    double decode = prefill + p->output_tokens * (double)smg_model_token_bytes(m) +
                    m->layers * ((double)p->prompt_tokens + p->output_tokens) + metadata;
    double prefill_pool = (double)smg_world_pool_bytes(w, 1);
    double decode_pool = (double)smg_world_pool_bytes(w, 1 + w->prefill_instances);
    double held = ceil((double)p->batch * w->decode_instances / w->prefill_instances);

    p->decode_memory = p->batch * decode / decode_pool;
    p->prefill_memory = held * prefill / prefill_pool;
    p->decode_too_large = decode > decode_pool;
    p->prefill_too_large = prefill > prefill_pool;
}

int smg_plan_make(const struct smg_world *w, struct smg_plan *p)
{
    struct smg_request_spec r;
    struct smg_features f;
    struct smg_grid g;
    double lane_s, alone_s, wait;
    int status;

    memset(p, 0, sizeof *p);
    smg_scheme_features(w, &f);
    p->evicts = f.evict;
    representative(w, &r, p);
    smg_scheme_grid(w, r.prompt_tokens, &g);
    p->kv_bytes_per_token = smg_model_token_bytes(&w->model);
    alone_s = (double)smg_model_prompt_bytes(&w->model, r.prompt_tokens) / smg_world_link_Bps(w, w->scenario.prefill.nodes);
    p->sharers = sharers(w, smg_cost_prefill_s(w, &r), alone_s);
    smg_budget_decide(w, &r, w->scenario.prefill.nodes, p->sharers, &p->budget);
    status = ratio(w, &f, &g, p);
    if (status)
        return status;
    if (!f.speculative)
        p->speculative_bytes = 0;
    p->on_demand_ratio = f.evict ? 0 : p->absent_ratio;
    p->batch = at_least_one((double)w->n_requests / w->decode_instances);
    if (p->batch > w->scenario.decode_max_batch)
        p->batch = w->scenario.decode_max_batch;
    if (w->scenario.workload.kind != SMG_WORKLOAD_BATCH)
        p->batch = 1;
    p->ttft_s = p->budget.tp_s;
    wait = ready_s(w, p) - p->ttft_s;
    p->ttst_s = (wait > 0 ? wait : 0) + step_s(w, &f, p, KR_SET, &lane_s);
    p->tbt_s = step_s(w, &f, p, f.speculative ? EVERYTHING : KR_SET_AND_KEPT, &lane_s);
    p->on_demand_bytes_step = f.evict ? 0 : on_demand_bytes(w, &f, p);
    grants(w, &f, &g, p);
    utilisation(w, p, lane_s);
    memory(w, &f, p);
    if (p->output_tokens < 3)
        p->tbt_s = p->grants_tbt_s = NAN;
    if (p->output_tokens < 2) {
        p->ttst_s = NAN;
        no_decode(p);
    }
    return SMG_OK;
}
