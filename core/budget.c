/* Kr, the number of blocks pushed during prefill (Eq. 2). */
#include <math.h>

#include "core/cost.h"
#include "core/grid.h"
#include "core/scheme.h"

/* floor() for quotients that are whole numbers on paper but not in binary (39000 * 0.1 / 3.0 = 1300): a relative 1e-12 is
 * thousands of roundings wide, and far below the distance of any two block counts. Saturates. */
static uint32_t floor_blocks(double blocks)
{
    double whole = floor(blocks * (1 + 1e-12));

    if (!(whole > 0)) {
        return 0;
    }
    return whole >= UINT32_MAX ? UINT32_MAX : (uint32_t)whole;
}

/* Blocks that leave in window_s when all of them take tt_s. */
static uint32_t blocks_in(uint32_t total_blocks, double window_s, double tt_s)
{
    if (tt_s <= 0) {
        return UINT32_MAX;
    }
    return floor_blocks(total_blocks * window_s / tt_s);
}

/* Known value: 40000 blocks, 40 layers, Tp 0.55 s, Tt 2.585 s give 8297. */
uint32_t smg_kr_raw(uint32_t total_blocks, uint32_t layers, double tp_s, double tt_s)
{
    return blocks_in(total_blocks, tp_s * (layers - 1.0) / layers, tt_s);
}

uint32_t smg_kr_clip(uint32_t raw, uint32_t dense_blocks, uint32_t total_blocks)
{
    if (raw < dense_blocks) {
        raw = dense_blocks;
    }
    return raw < total_blocks ? raw : total_blocks;
}

static uint64_t metadata_bytes(const struct smg_world *w, uint32_t tokens)
{
    return (uint64_t)tokens * smg_model_selecting_layers(&w->model) * smg_metadata_token_bytes(w);
}

/* Times, sizes and the raw Kr. The metadata is subtracted only when the blocks do not all fit anyway: full transfer sends
 * none, so the fallback condition Tp/Tt >= L/(L-1) is the same under both budgets. */
static void fill_window(const struct smg_world *w, double Bps, struct smg_budget_result *out)
{
    uint32_t layers = w->model.layers;

    out->window_s = out->tp_s * (layers - 1.0) / layers;
    out->kr_raw = smg_kr_raw(out->total_blocks, layers, out->tp_s, out->tt_s);
    if (w->scenario.proactive.budget == SMG_BUDGET_WINDOW && out->kr_raw < out->total_blocks) {
        out->window_s -= (double)out->metadata_bytes / Bps;
        out->window_s = out->window_s > 0 ? out->window_s : 0;
        out->kr_raw = blocks_in(out->total_blocks, out->window_s, out->tt_s);
    }
}

static uint32_t choose_kr(const struct smg_scenario *s, const struct smg_features *f, const struct smg_budget_result *b)
{
    uint32_t raw = s->proactive.kr_blocks == SMG_KR_AUTO ? b->kr_raw : s->proactive.kr_blocks;

    if (f->always_full) {
        return b->total_blocks;
    }
    if (!s->proactive.enabled) {
        return b->dense_blocks;
    }
    return smg_kr_clip(raw, b->dense_blocks, b->total_blocks);
}

void smg_budget_decide(const struct smg_world *w, const struct smg_request_spec *r, uint32_t decode_node, uint32_t sharers,
                       struct smg_budget_result *out)
{
    double Bps = smg_world_link_Bps(w, decode_node) / (sharers > 0 ? sharers : 1);
    struct smg_features features;
    struct smg_grid grid;

    smg_scheme_features(w, &features);
    smg_scheme_grid(w, r->prompt_tokens, &grid);
    out->total_blocks = smg_grid_total_blocks(&grid);
    out->dense_blocks = smg_grid_dense_blocks(&grid);
    out->kv_bytes = smg_grid_total_bytes(&grid);
    out->metadata_bytes = features.metadata ? metadata_bytes(w, r->prompt_tokens) : 0;
    out->tp_s = smg_cost_prefill_s(w, r);
    out->tt_s = (double)out->kv_bytes / Bps;
    fill_window(w, Bps, out);
    out->kr_blocks = choose_kr(&w->scenario, &features, out);
    out->full = out->kr_blocks == out->total_blocks;
    if (out->full) {
        out->metadata_bytes = 0;
    }
}
