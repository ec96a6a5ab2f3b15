/* The computing of a decode iteration alone: what remains of core/decode.c's pipeline when every lane is empty. */
#include "core/cost.h"
#include "core/hack.h"
#include "core/scheme.h"
#include "core/selection.h"

struct batch {
    const struct smg_world *w;
    struct smg_features features;
    const uint32_t *prompt_tokens;
    const int *full;
    size_t n;
};

/* A run of layers that are worked on together: one, or with detail iteration all that follow and select alike. */
struct stage {
    uint32_t lo, hi;
    int selects;
};

static struct stage stage_at(const struct batch *b, uint32_t layer)
{
    const struct smg_model *m = &b->w->model;
    struct stage st = {layer, layer + 1, smg_model_layer_selects(m, layer)};

    while (b->w->scenario.detail == SMG_DETAIL_ITERATION && st.hi < m->layers &&
           smg_model_layer_selects(m, st.hi) == st.selects) {
        st.hi++;
    }
    return st;
}

/* Entries that a stage attends to; split_only: of the requests that are split. */
static uint64_t stage_entries(const struct batch *b, const struct stage *st, int split_only)
{
    const struct smg_model *m = &b->w->model;
    uint64_t entries = 0;

    for (size_t i = 0; i < b->n; i++) {
        for (uint32_t l = st->lo; l < st->hi && !(split_only && b->full[i]); l++) {
            entries += (uint64_t)m->kv_heads * (st->selects ? smg_selection_k(b->w, b->prompt_tokens[i])
                                                            : smg_model_layer_tokens(m, l, b->prompt_tokens[i]));
        }
    }
    return entries;
}

static double attention_s(const struct batch *b, const struct stage *st)
{
    uint32_t layers = st->hi - st->lo;
    uint64_t tokens = 0;

    if (!b->features.on_gpu) {
        return layers * smg_cost_attention_s(b->w, stage_entries(b, st, 0) / layers);
    }
    for (size_t i = 0; i < b->n; i++) {
        tokens += smg_model_layer_tokens(&b->w->model, st->lo, b->prompt_tokens[i]);
    }
    return layers * smg_hack_attention_s(b->w, tokens);
}

static double ffn_s(const struct batch *b, const struct stage *st)
{
    int last = st->hi == b->w->model.layers;

    return (st->hi - st->lo - 1) * smg_cost_ffn_s(b->w, (uint32_t)b->n, 0) + smg_cost_ffn_s(b->w, (uint32_t)b->n, last);
}

static double select_s(const struct batch *b, const struct stage *st)
{
    uint64_t tokens = 0;

    if (!st->selects || b->features.on_gpu || b->features.attend_present) {
        return 0;
    }
    for (size_t i = 0; i < b->n; i++) {
        tokens += b->prompt_tokens[i];
    }
    return (st->hi - st->lo) * smg_cost_select_s(b->w, tokens);
}

static double split_s(const struct batch *b, const struct stage *st)
{
    double entries = b->features.on_gpu ? 0 : (double)stage_entries(b, st, 1);

    if (b->w->scenario.gdr) {
        return smg_cost_split_s(b->w, entries);
    }
    return SMG_SPLIT_ENTRY_BYTES * entries / smg_world_gather_Bps(b->w, b->w->scenario.prefill.nodes);
}

double smg_cost_decode_s(const struct smg_world *w, const uint32_t *prompt_tokens, const int *full, size_t n)
{
    struct batch b = {.w = w, .prompt_tokens = prompt_tokens, .full = full, .n = n};
    struct stage st = stage_at(&b, 0);
    double now_s, split_end_s, ffn_end_s = 0;

    smg_scheme_features(w, &b.features);
    split_end_s = split_s(&b, &st);
    for (;;) {
        struct stage next = st.hi < w->model.layers ? stage_at(&b, st.hi) : st;
        double begin_s = split_end_s > ffn_end_s ? split_end_s : ffn_end_s, select_end_s = begin_s + select_s(&b, &next);
        now_s = begin_s + attention_s(&b, &st);
        ffn_end_s = now_s + ffn_s(&b, &st);
        if (st.hi == w->model.layers) {
            return ffn_end_s;
        }
        split_end_s = (now_s > select_end_s ? now_s : select_end_s) + split_s(&b, &next);
        st = next;
    }
}
