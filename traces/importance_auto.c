#include "traces/importance_auto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/selection.h"
#include "core/status.h"

/* Sinks and nearest tokens are counted in tokens, not in shares of the prompt, so calibration prompts are as long as the
 * workload's, up to a length where that hardly matters. Shorter ones are sampled at more steps: about the same number of rows'
 * tokens in all. */
#define REQUESTS    8u
#define STEPS_MIN   2u
#define STEPS_MAX   8u
#define STEP_TOKENS 16000u
#define STRIDE      24u /* steps between samples: most of a rotation */

const uint32_t smg_length_group_lo[SMG_LENGTH_GROUPS] = {0, 4096, 8192, 12288, 16384};
const uint32_t smg_length_group_hi[SMG_LENGTH_GROUPS] = {4096, 8192, 12288, 16384, UINT32_MAX};

uint32_t smg_length_group(uint32_t tokens)
{
    uint32_t g = 0;

    while (tokens > smg_length_group_hi[g]) {
        g++;
    }
    return g;
}

int smg_importance_tells_selection(const struct smg_importance *im, int reuse)
{
    return !im->synthetic && (!reuse || im->overlap_steps > 0);
}

/* ---- Counting ---- */

struct counting {
    const struct smg_calibration *plan;
    struct smg_generator_weight *weight;
    struct smg_generator_scratch scratch;
    int32_t *index;
    struct smg_importance_counter *counter;
};

static int count_layer(struct counting *c, uint32_t request, uint32_t layer)
{
    const struct smg_calibration *p = c->plan;
    uint32_t head, step, k = smg_generator_k(p->generator, layer, p->k);
    int status = SMG_OK;

    smg_generator_weights(p->generator, request, layer, p->tokens, 1, c->weight);
    for (head = 0; head < p->generator->model->kv_heads; head++) {
        for (step = 0; step < p->steps && status == SMG_OK; step++) {
            smg_generator_row(p->generator, request, layer, head, 1 + step * p->stride, c->weight, p->tokens, k, &c->scratch,
                              c->index);
            status = smg_importance_counter_add(c->counter, layer, c->index, k);
        }
    }
    return status;
}

static int count_request(struct counting *c, uint32_t request)
{
    const struct smg_model *m = c->plan->generator->model;
    uint32_t layer;
    int status = smg_importance_counter_begin(c->counter, c->plan->tokens);

    for (layer = 0; layer < m->layers && status == SMG_OK; layer++) {
        if (smg_model_layer_selects(m, layer)) {
            status = count_layer(c, request, layer);
        }
    }
    return status == SMG_OK ? smg_importance_counter_end(c->counter, c->plan->steps) : status;
}

void smg_importance_mark_sliding(struct smg_importance *im, uint32_t group, const struct smg_model *m, uint32_t tokens)
{
    uint32_t layer, block;

    for (layer = SMG_DENSE_LAYERS; layer < m->layers; layer++) {
        double start = (double)(tokens - smg_model_layer_tokens(m, layer, tokens)) * im->blocks / tokens;
        float *row = im->value + ((size_t)group * im->layers + layer) * im->blocks;

        for (block = 0; !smg_model_layer_selects(m, layer) && block < im->blocks; block++) {
            row[block] = (float)fmin(1, fmax(0, block + 1 - start));
        }
    }
}

static int count_all(struct counting *c, struct smg_importance **out)
{
    const struct smg_calibration *p = c->plan;
    uint32_t r;
    int status = SMG_OK;

    for (r = 0; r < p->requests && status == SMG_OK; r++) {
        status = count_request(c, SMG_GENERATOR_CALIBRATION + p->first + r);
    }
    if (status == SMG_OK) {
        status = smg_importance_counter_finish(c->counter, out);
    }
    if (status == SMG_OK) {
        smg_importance_mark_sliding(*out, 0, p->generator->model, p->tokens);
        (*out)->synthetic = 1;
    }
    return status;
}

int smg_calibration_count(const struct smg_calibration *p, struct smg_importance **out)
{
    const struct smg_model *m = p->generator->model;
    struct counting c = {.plan = p};
    int status = SMG_ERR_NOMEM;

    if (p->tokens == 0 || p->blocks == 0) {
        return SMG_ERR_INVALID;
    }
    c.weight = malloc(p->tokens * sizeof(*c.weight));
    c.index = malloc(p->tokens * sizeof(*c.index));
    if (c.weight == NULL || c.index == NULL) {
        goto out_free_arrays;
    }
    status = smg_generator_scratch_create(p->tokens, &c.scratch);
    if (status != SMG_OK) {
        goto out_free_arrays;
    }
    status = smg_importance_counter_create(m->layers, p->blocks < p->tokens ? p->blocks : p->tokens, m->kv_heads, &c.counter);
    if (status == SMG_OK) {
        status = count_all(&c, out);
        smg_importance_counter_destroy(c.counter);
    }
    smg_generator_scratch_destroy(&c.scratch);
out_free_arrays:
    free(c.index);
    free(c.weight);
    return status;
}

/* ---- The groups of a workload ---- */

struct length_group {
    uint32_t requests, tokens;
};

static uint32_t find_groups(const struct smg_world *w, struct length_group group[SMG_LENGTH_GROUPS])
{
    double sum[SMG_LENGTH_GROUPS] = {0};
    uint32_t i, g, n = 0;

    memset(group, 0, SMG_LENGTH_GROUPS * sizeof(*group));
    for (i = 0; i < w->n_requests; i++) {
        g = smg_length_group(w->requests[i].prompt_tokens);
        group[g].requests++;
        sum[g] += w->requests[i].prompt_tokens;
    }
    for (g = 0; g < SMG_LENGTH_GROUPS; g++) {
        if (group[g].requests > 0) {
            group[g].tokens = (uint32_t)lround(sum[g] / group[g].requests);
            n++;
        }
    }
    return n;
}

/* The more groups, the fewer calibration requests each, so that loading takes about as long. */
static int count_group(const struct smg_world *w, const struct smg_generator *g, uint32_t tokens, uint32_t groups,
                       struct smg_importance **out)
{
    struct smg_calibration c = {.generator = g, .stride = STRIDE, .blocks = w->scenario.blocks_per_layer};
    uint32_t steps;

    c.requests = REQUESTS / groups > 2 ? REQUESTS / groups : 2;
    c.tokens = tokens < SMG_CALIBRATION_TOKENS ? tokens : SMG_CALIBRATION_TOKENS;
    c.k = smg_selection_k(w, c.tokens);
    steps = STEP_TOKENS / c.tokens;
    steps = steps < STEPS_MAX ? steps : STEPS_MAX;
    c.steps = steps > STEPS_MIN ? steps : STEPS_MIN;
    return smg_calibration_count(&c, out);
}

/* Appends the one group of `from`, resampled where short prompts made its blocks fewer. */
static void copy_group(const struct smg_importance *from, struct smg_importance *to, uint32_t group)
{
    uint32_t layer;

    for (layer = 0; layer < to->layers; layer++) {
        smg_importance_resample(from, 0, layer, to->blocks, to->value + ((size_t)group * to->layers + layer) * to->blocks);
    }
}

static int count_groups(const struct smg_world *w, const struct smg_generator *g, const struct length_group *group, uint32_t n,
                        struct smg_importance **out)
{
    struct smg_importance *all, *one;
    uint32_t i, at = 0;
    int status = smg_importance_create(n, w->model.layers, w->scenario.blocks_per_layer, &all);

    for (i = 0; i < SMG_LENGTH_GROUPS && status == SMG_OK; i++) {
        if (group[i].requests == 0) {
            continue;
        }
        status = count_group(w, g, group[i].tokens, n, &one);
        if (status == SMG_OK) {
            copy_group(one, all, at);
            all->group_lo[at] = smg_length_group_lo[i];
            all->group_hi[at++] = smg_length_group_hi[i];
            smg_importance_destroy(one);
        }
    }
    if (status != SMG_OK) {
        smg_importance_destroy(all);
        return status;
    }
    all->synthetic = 1;
    *out = all;
    return SMG_OK;
}

int smg_importance_auto(const struct smg_world *w, struct smg_importance **out, struct smg_diag *diag)
{
    struct length_group group[SMG_LENGTH_GROUPS];
    struct smg_generator *g;
    uint32_t n = find_groups(w, group), i = 0;
    int status = smg_generator_create(&w->model, w->scenario.seed, w->scenario.profile_shift, &g, diag);

    if (status != SMG_OK) {
        return status;
    }
    while (i + 1 < SMG_LENGTH_GROUPS && group[i].requests == 0) {
        i++;
    }
    status = n == 1 ? count_group(w, g, group[i].tokens, 1, out) : count_groups(w, g, group, n, out);
    smg_generator_destroy(g);
    return status;
}
