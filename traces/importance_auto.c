#include "traces/importance_auto.h"

#include <stdlib.h>

#include "core/status.h"
#include "traces/generator.h"

/* Sinks and nearest tokens are counted in tokens, not in shares of the prompt, so calibration prompts are as long as the
 * workload's, up to a length where that hardly matters. Shorter ones are sampled at more steps: about the same number of rows'
 * tokens in all. */
#define CALIBRATION_TOKENS      8000u
#define CALIBRATION_REQUESTS    8u
#define CALIBRATION_STEPS_MIN   2u
#define CALIBRATION_STEPS_MAX   8u
#define CALIBRATION_STEP_TOKENS 16000u
#define CALIBRATION_STRIDE      24u      /* steps between samples: beyond what persists */
#define CALIBRATION_ID          1000000u /* no evaluated request has such an id */

struct calibration {
    const struct smg_model *model;
    uint64_t seed;
    uint32_t tokens, k, steps;
    struct smg_generator_weight *weight;
    struct smg_generator_scratch scratch;
    int32_t *index;
    struct smg_importance_counter *counter;
};

static int count_layer(struct calibration *c, uint32_t request, uint32_t layer)
{
    uint32_t head, step;
    int status = SMG_OK;

    smg_generator_weights(c->seed, request, layer, c->model->layers, c->tokens, c->weight);
    for (head = 0; head < c->model->kv_heads; head++) {
        for (step = 0; step < c->steps && status == SMG_OK; step++) {
            smg_generator_row(c->seed, request, layer, head, 1 + step * CALIBRATION_STRIDE, c->weight, c->tokens, c->k,
                              &c->scratch, c->index);
            status = smg_importance_counter_add(c->counter, layer, c->index, c->k);
        }
    }
    return status;
}

static int count_request(struct calibration *c, uint32_t request)
{
    uint32_t layer;
    int status = smg_importance_counter_begin(c->counter, c->tokens);

    for (layer = 0; layer < c->model->layers && status == SMG_OK; layer++) {
        if (smg_model_layer_selects(c->model, layer)) {
            status = count_layer(c, request, layer);
        }
    }
    return status == SMG_OK ? smg_importance_counter_end(c->counter, c->steps) : status;
}

/* A sliding layer attends to all it keeps: each of its blocks is always used. */
static void mark_sliding(const struct smg_model *m, struct smg_importance *im)
{
    uint32_t layer, block;

    for (layer = SMG_DENSE_LAYERS; layer < m->layers; layer++) {
        for (block = 0; m->sliding[layer] && block < im->blocks; block++) {
            im->value[(size_t)layer * im->blocks + block] = 1;
        }
    }
}

static int calibrate(struct calibration *c, struct smg_importance **out)
{
    uint32_t r;
    int status = SMG_OK;

    for (r = 0; r < CALIBRATION_REQUESTS && status == SMG_OK; r++) {
        status = count_request(c, CALIBRATION_ID + r);
    }
    if (status == SMG_OK) {
        status = smg_importance_counter_finish(c->counter, out);
    }
    if (status == SMG_OK) {
        mark_sliding(c->model, *out);
        (*out)->synthetic = 1;
    }
    return status;
}

static void plan(struct calibration *c, double cap, uint32_t tokens)
{
    uint32_t steps;

    c->tokens = tokens < CALIBRATION_TOKENS ? tokens : CALIBRATION_TOKENS;
    c->k = (uint32_t)(cap * c->tokens + 1e-9);
    c->k = c->k > 0 ? c->k : 1;
    steps = CALIBRATION_STEP_TOKENS / c->tokens;
    steps = steps < CALIBRATION_STEPS_MAX ? steps : CALIBRATION_STEPS_MAX;
    c->steps = steps > CALIBRATION_STEPS_MIN ? steps : CALIBRATION_STEPS_MIN;
}

int smg_importance_auto(const struct smg_model *m, uint64_t seed, double cap, uint32_t blocks, uint32_t tokens,
                        struct smg_importance **out)
{
    struct calibration c = {.model = m, .seed = seed};
    int status = SMG_ERR_NOMEM;

    if (tokens == 0 || blocks == 0) {
        return SMG_ERR_INVALID;
    }
    plan(&c, cap, tokens);
    c.weight = malloc(c.tokens * sizeof(*c.weight));
    c.index = malloc(c.k * sizeof(*c.index));
    if (c.weight == NULL || c.index == NULL) {
        goto out_free_arrays;
    }
    status = smg_generator_scratch_create(c.tokens, &c.scratch);
    if (status != SMG_OK) {
        goto out_free_arrays;
    }
    status = smg_importance_counter_create(m->layers, blocks < c.tokens ? blocks : c.tokens, m->kv_heads, &c.counter);
    if (status == SMG_OK) {
        status = calibrate(&c, out);
        smg_importance_counter_destroy(c.counter);
    }
    smg_generator_scratch_destroy(&c.scratch);
out_free_arrays:
    free(c.index);
    free(c.weight);
    return status;
}
