/* Facts measured on the generator: coverage, order of rankings, overlap, new entries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "traces/importance_auto.h"
#include "traces/importance_facts.h"

#define FINE       2000u /* blocks that are counted; the others are sums of them */
#define EVALUATED  2u
#define CALIBRATED 6u
#define HEADS_MAX  256u

const uint32_t smg_facts_blocks[SMG_FACTS_BLOCKS] = {100, 500, 1000, 2000};

struct facts {
    const struct smg_generator *g;
    uint32_t tokens, k, layers, heads;
    uint32_t layer[SMG_MAX_LAYERS]; /* [layers] those that select */
    struct smg_generator_weight *weight;
    struct smg_generator_scratch scratch;
    int32_t *index;
    uint8_t *seen, *last;    /* [tokens] */
    double *count, *profile; /* [layers][FINE] */
    struct smg_generator_facts *out;
};

/* ---- Coverage ---- */

struct ranked {
    double by, count;
    uint32_t at;
};

static int descending(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->by != y->by) {
        return x->by < y->by ? 1 : -1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

/* Sums FINE rows to `blocks` blocks. */
static double sum_of(const double *fine, uint32_t layer, uint32_t block, uint32_t blocks)
{
    uint32_t i, step = FINE / blocks;
    double sum = 0;

    for (i = 0; i < step; i++) {
        sum += fine[(size_t)layer * FINE + block * step + i];
    }
    return sum;
}

enum ranking { OPTIMUM, PROFILE, STREAMINGLLM };

static double key_of(const struct facts *f, enum ranking ranking, uint32_t layer, uint32_t block, uint32_t blocks)
{
    switch (ranking) {
    case OPTIMUM:
        return sum_of(f->count, layer, block, blocks);
    case PROFILE:
        return sum_of(f->profile, layer, block, blocks);
    case STREAMINGLLM:
        break;
    }
    return block == 0 ? blocks : block;
}

/* Coverage; best[layers][blocks] (or NULL) becomes 1 for the blocks that were taken. */
static int coverage(const struct facts *f, enum ranking ranking, uint32_t blocks, uint8_t *best, double *out)
{
    uint32_t n = f->layers * blocks, taken = (uint32_t)(SMG_FACTS_SHARE * n), i;
    struct ranked *list = malloc(n * sizeof(*list));
    double all = 0, inside = 0;

    if (list == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (i = 0; i < n; i++) {
        list[i].by = key_of(f, ranking, i / blocks, i % blocks, blocks);
        list[i].count = sum_of(f->count, i / blocks, i % blocks, blocks);
        list[i].at = i;
    }
    qsort(list, n, sizeof(*list), descending);
    for (i = 0; i < n; i++) {
        all += list[i].count;
        inside += i < taken ? list[i].count : 0;
        if (best != NULL) {
            best[list[i].at] = i < taken;
        }
    }
    free(list);
    *out += inside / all / EVALUATED;
    return SMG_OK;
}

static int coverages(const struct facts *f)
{
    uint32_t b;
    int status = SMG_OK;

    for (b = 0; b < SMG_FACTS_BLOCKS && status == SMG_OK; b++) {
        if ((status = coverage(f, OPTIMUM, smg_facts_blocks[b], NULL, &f->out->optimum[b])) == SMG_OK &&
            (status = coverage(f, PROFILE, smg_facts_blocks[b], NULL, &f->out->profile[b])) == SMG_OK) {
            status = coverage(f, STREAMINGLLM, smg_facts_blocks[b], NULL, &f->out->streamingllm[b]);
        }
    }
    return status;
}

/* ---- Decoding the evaluated requests ---- */

static void row(struct facts *f, uint32_t request, uint32_t l, uint32_t head, uint32_t step)
{
    smg_generator_row(f->g, request, f->layer[l], head, step, f->weight, f->tokens, f->k, &f->scratch, f->index);
}

/* First pass: counts, overlap, new entries of all blocks. */
static void count_head(struct facts *f, uint32_t request, uint32_t l, uint32_t head)
{
    double rows = (double)EVALUATED * f->layers * f->heads, shared = 0;
    uint32_t step, i;

    memset(f->seen, 0, f->tokens);
    memset(f->last, 0, f->tokens);
    for (step = 1; step <= SMG_FACTS_STEPS; step++) {
        uint32_t fresh = 0;

        row(f, request, l, head, step);
        for (i = 0; i < f->k; i++) {
            uint32_t token = (uint32_t)f->index[i];

            fresh += !f->seen[token];
            shared += step > 1 && f->last[token] == (uint8_t)(step - 1);
            f->seen[token] = 1;
            f->last[token] = (uint8_t)step;
            f->count[(size_t)l * FINE + ((token + UINT64_C(1)) * FINE - 1) / f->tokens]++;
        }
        f->out->fresh[step - 1] += fresh / (rows * f->k);
    }
    f->out->overlap += shared / (rows * f->k * (SMG_FACTS_STEPS - 1));
}

/* Second pass: new entries outside the optimum's blocks; sums, divided at the end. */
static void count_absent(struct facts *f, uint32_t request, uint32_t l, uint32_t head, const uint8_t *best, double *all)
{
    uint32_t step, i;

    memset(f->seen, 0, f->tokens);
    for (step = 1; step <= SMG_FACTS_STEPS; step++) {
        row(f, request, l, head, step);
        for (i = 0; i < f->k; i++) {
            uint32_t token = (uint32_t)f->index[i];

            if (best[(size_t)l * 1000 + ((token + UINT64_C(1)) * 1000 - 1) / f->tokens]) {
                continue;
            }
            all[step - 1]++;
            f->out->fresh_absent[step - 1] += !f->seen[token];
            f->seen[token] = 1;
        }
    }
}

static int evaluate(struct facts *f, uint32_t request, uint8_t *best, double *all)
{
    uint32_t l, head;
    double unused = 0;
    int status;

    memset(f->count, 0, (size_t)f->layers * FINE * sizeof(*f->count));
    for (l = 0; l < f->layers; l++) {
        smg_generator_weights(f->g, request, f->layer[l], f->tokens, 1, f->weight);
        for (head = 0; head < f->heads; head++) {
            count_head(f, request, l, head);
        }
    }
    status = coverages(f);
    if (status == SMG_OK) {
        status = coverage(f, OPTIMUM, 1000, best, &unused);
    }
    for (l = 0; l < f->layers && status == SMG_OK; l++) {
        smg_generator_weights(f->g, request, f->layer[l], f->tokens, 1, f->weight);
        for (head = 0; head < f->heads; head += 2) {
            count_absent(f, request, l, head, best, all);
        }
    }
    return status;
}

static int evaluate_all(struct facts *f)
{
    uint8_t *best = malloc((size_t)f->layers * 1000);
    double all[SMG_FACTS_STEPS] = {0};
    uint32_t r, step;
    int status = best != NULL ? SMG_OK : SMG_ERR_NOMEM;

    for (r = 0; r < EVALUATED && status == SMG_OK; r++) {
        status = evaluate(f, r, best, all);
    }
    for (step = 0; step < SMG_FACTS_STEPS; step++) {
        f->out->fresh_absent[step] /= all[step] > 0 ? all[step] : 1;
    }
    free(best);
    return status;
}

/* ---- All ---- */

static int calibrate(struct facts *f)
{
    struct smg_calibration c = {
        .generator = f->g, .first = 1000, .requests = CALIBRATED, .tokens = f->tokens, .k = f->k, .steps = 8};
    struct smg_importance *im;
    uint32_t l, b;
    int status;

    c.stride = 8;
    c.blocks = FINE;
    status = smg_calibration_count(&c, &im);
    if (status != SMG_OK) {
        return status;
    }
    for (l = 0; l < f->layers; l++) {
        for (b = 0; b < FINE; b++) {
            f->profile[(size_t)l * FINE + b] = smg_importance_row(im, 0, f->layer[l])[b];
        }
    }
    smg_importance_destroy(im);
    return SMG_OK;
}

static void facts_free(struct facts *f)
{
    smg_generator_scratch_destroy(&f->scratch);
    free(f->weight);
    free(f->index);
    free(f->seen);
    free(f->last);
    free(f->count);
    free(f->profile);
}

static int facts_create(struct facts *f)
{
    f->weight = malloc(f->tokens * sizeof(*f->weight));
    f->index = malloc(f->tokens * sizeof(*f->index));
    f->seen = malloc(f->tokens);
    f->last = malloc(f->tokens);
    f->count = calloc((size_t)f->layers * FINE + 1, sizeof(*f->count));
    f->profile = calloc((size_t)f->layers * FINE + 1, sizeof(*f->profile));
    if (f->weight == NULL || f->index == NULL || f->seen == NULL || f->last == NULL || f->count == NULL || f->profile == NULL) {
        return SMG_ERR_NOMEM;
    }
    return smg_generator_scratch_create(f->tokens, &f->scratch);
}

/* Layers in address order until the share is used up: whole layers, and part of one. Random blocks cover their share. */
static void blind_rankings(struct facts *f)
{
    f->out->sequential = SMG_FACTS_SHARE;
    f->out->random = SMG_FACTS_SHARE;
}

int smg_generator_facts_measure(const struct smg_generator *g, double cap, uint32_t tokens, struct smg_generator_facts *out)
{
    struct facts f = {.g = g, .tokens = tokens, .k = (uint32_t)(cap * tokens + 1e-9), .heads = g->model->kv_heads, .out = out};
    uint32_t layer;
    int status;

    if (tokens < FINE || f.k == 0 || f.heads > HEADS_MAX) {
        return SMG_ERR_RANGE;
    }
    memset(out, 0, sizeof(*out));
    for (layer = 0; layer < g->model->layers; layer++) {
        if (smg_model_layer_selects(g->model, layer)) {
            f.layer[f.layers++] = layer;
        }
    }
    out->tokens = tokens;
    out->head_steps = f.heads * SMG_FACTS_STEPS;
    status = f.layers > 0 ? facts_create(&f) : SMG_ERR_INVALID;
    if (status == SMG_OK) {
        status = calibrate(&f);
    }
    if (status == SMG_OK) {
        status = evaluate_all(&f);
    }
    blind_rankings(&f);
    facts_free(&f);
    return status;
}
