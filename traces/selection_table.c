#include "traces/selection_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/importance.h"
#include "core/selection.h"
#include "core/status.h"

#define CLASSES       SMG_TABLE_CLASSES
#define ALL           UINT32_C(0x40000000) /* mass of a prompt */
#define POSITIONS     1000u
#define PER_POSITION  8u    /* tokens looked at, at most */
#define SAMPLE_TOKENS 1750u /* a row is made of every n-th token, its k likewise: the same distribution at a part of the cost */
#define PAIRS         8u    /* (request, head) pairs, each through all its steps */
#define PAIRS_FEW     32u   /* the same where few steps are looked at */
#define SAMPLE_ID     UINT32_C(0x7fff0000) /* requests of their own: neither calibrated on nor evaluated */
#define FEW_STEPS     4u                   /* enough to know how often a class is selected */
#define STEPS_MAX     256u

/* ---- Life ---- */

static int table_create(uint32_t layers, uint32_t positions, uint32_t steps, struct smg_table **out)
{
    struct smg_table *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        return SMG_ERR_NOMEM;
    }
    t->layers = layers;
    t->positions = positions;
    t->steps = steps;
    t->before = calloc((size_t)layers * (positions + 1) * CLASSES, sizeof(*t->before));
    t->select = calloc((size_t)layers * CLASSES, sizeof(*t->select));
    t->first = calloc((size_t)layers * steps * CLASSES + 1, sizeof(*t->first));
    if (t->before == NULL || t->select == NULL || t->first == NULL) {
        smg_table_destroy(t);
        return SMG_ERR_NOMEM;
    }
    *out = t;
    return SMG_OK;
}

void smg_table_destroy(struct smg_table *t)
{
    if (t == NULL) {
        return;
    }
    free(t->first);
    free(t->select);
    free(t->before);
    free(t);
}

/* ---- Use ---- */

static const uint32_t *before_row(const struct smg_table *t, uint32_t layer, uint32_t position)
{
    return t->before + ((size_t)layer * (t->positions + 1) + position) * CLASSES;
}

void smg_table_before(const struct smg_table *t, uint32_t layer, uint32_t at, uint32_t tokens, uint32_t out[CLASSES])
{
    uint64_t scaled = (uint64_t)at * t->positions, position = scaled / tokens, rest = scaled % tokens;
    const uint32_t *low = before_row(t, layer, (uint32_t)position), *high = low + (rest > 0 ? CLASSES : 0);
    uint32_t c;

    for (c = 0; c < CLASSES; c++) {
        out[c] = low[c] + (uint32_t)((high[c] - low[c]) * rest / tokens);
    }
}

double smg_table_rate(const struct smg_table *t, uint32_t layer, uint32_t step, const uint32_t mass[CLASSES])
{
    const double *rate = t->select + (size_t)layer * CLASSES;
    double sum = 0;
    uint32_t c;

    if (step > 0 && t->steps > 0) {
        rate = t->first + ((size_t)layer * t->steps + (step < t->steps ? step : t->steps) - 1) * CLASSES;
    }
    for (c = 0; c < CLASSES; c++) {
        sum += mass[c] * rate[c];
    }
    return sum;
}

/* ---- Classes ---- */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Upper bounds of the classes: quantiles of value[n], of which sorted[n] becomes a sorted copy. */
static void find_bounds(const float *value, float *sorted, uint32_t n, float bound[CLASSES])
{
    uint32_t c;

    memcpy(sorted, value, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), ascending);
    for (c = 0; c + 1 < CLASSES; c++) {
        bound[c] = sorted[(uint64_t)n * (c + 1) / CLASSES];
    }
    bound[CLASSES - 1] = INFINITY;
}

static uint32_t class_of(const float bound[CLASSES], float value)
{
    uint32_t c = 0;

    while (value >= bound[c] && c + 1 < CLASSES) {
        c++;
    }
    return c;
}

/* Spreads the mass of position p over the classes of its values. */
static void place(struct smg_table *t, uint32_t layer, uint32_t p, const float *value, uint32_t n, const float bound[CLASSES])
{
    uint32_t *row = t->before + ((size_t)layer * (t->positions + 1) + p + 1) * CLASSES, i, c;
    uint64_t lo = (uint64_t)ALL * p / t->positions, mass = (uint64_t)ALL * (p + 1) / t->positions - lo;

    for (c = 0; c < CLASSES; c++) {
        row[c] = row[(int64_t)c - CLASSES];
    }
    for (i = 0; i < n; i++) {
        row[class_of(bound, value[i])] += (uint32_t)(mass * (i + 1) / n - mass * i / n);
    }
}

/* ---- Measured on the generator ---- */

struct measuring {
    const struct smg_generator *g;
    uint32_t tokens, stride, n, k; /* of the prompt; between sampled ones; sampled; selected of them */
    uint32_t steps, pairs;
    struct smg_generator_weight *weight; /* [n] */
    struct smg_generator_scratch scratch;
    int32_t *index;        /* [n] */
    uint8_t *class, *seen; /* [n] */
    float *value, *sorted; /* [max(n, positions * PER_POSITION)] */
};

static void place_layer(struct smg_table *t, const struct measuring *m, uint32_t layer, const float bound[CLASSES])
{
    float value[PER_POSITION];
    uint32_t p, lo, n, stride;

    for (p = 0; p < t->positions; p++) {
        lo = (uint32_t)((uint64_t)p * m->tokens / t->positions);
        n = (uint32_t)((p + UINT64_C(1)) * m->tokens / t->positions) - lo;
        stride = (n + PER_POSITION - 1) / PER_POSITION;
        n = (n + stride - 1) / stride;
        smg_generator_universal(m->g, 0, layer, m->tokens, lo, stride, n, value);
        place(t, layer, p, value, n, bound);
    }
}

/* One head of one request through all steps. */
static void measure_head(struct smg_table *t, struct measuring *m, uint32_t request, uint32_t layer, uint32_t head, uint32_t k)
{
    double *select = t->select + (size_t)layer * CLASSES, *first = t->first + (size_t)layer * t->steps * CLASSES;
    uint32_t s, i, stride = t->steps > 0 ? 1 : 8;

    memset(m->seen, 0, m->n);
    for (s = 0; s < m->steps; s++) {
        smg_generator_row(m->g, request, layer, head, 1 + s * stride, m->weight, m->n, k, &m->scratch, m->index);
        for (i = 0; i < k; i++) {
            uint32_t token = (uint32_t)m->index[i], c = m->class[token];

            select[c]++;
            if (t->steps > 0 && !m->seen[token]) {
                m->seen[token] = 1;
                first[s * CLASSES + c]++;
            }
        }
    }
}

/* Counts become rates; a class nobody belongs to keeps 0. */
static void divide(struct smg_table *t, uint32_t layer, const struct measuring *m, const uint32_t size[CLASSES])
{
    double *select = t->select + (size_t)layer * CLASSES, *first = t->first + (size_t)layer * t->steps * CLASSES;
    uint32_t c, s;

    for (c = 0; c < CLASSES; c++) {
        double entries = size[c] > 0 ? (double)size[c] * m->pairs : 1;

        select[c] /= entries * m->steps;
        for (s = 0; s < t->steps; s++) {
            first[s * CLASSES + c] /= entries;
        }
    }
}

/* Mean over an eighth of the steps so far on either side: counts are few, and the curve is slow where they are fewest. In step 1
 * everything is new. */
static void smooth(struct smg_table *t, uint32_t layer, double *copy)
{
    double *first = t->first + (size_t)layer * t->steps * CLASSES;
    uint32_t s, c, i;

    memcpy(copy, first, (size_t)t->steps * CLASSES * sizeof(*copy));
    for (s = 1; s < t->steps; s++) {
        uint32_t reach = (s + 1) / 8, lo = s - reach > 1 ? s - reach : 1, hi = s + reach < t->steps ? s + reach : t->steps - 1;

        for (c = 0; c < CLASSES; c++) {
            double sum = 0;
            for (i = lo; i <= hi; i++) {
                sum += copy[i * CLASSES + c];
            }
            first[s * CLASSES + c] = sum / (hi - lo + 1);
        }
    }
    memcpy(first, t->select + (size_t)layer * CLASSES, (t->steps > 0 ? CLASSES : 0) * sizeof(*first));
}

static void measure_layer(struct smg_table *t, struct measuring *m, uint32_t layer, double *copy)
{
    uint32_t size[CLASSES] = {0}, i, pair, k = smg_generator_k(m->g, layer, m->k), heads = m->g->model->kv_heads;
    float bound[CLASSES];

    smg_generator_universal(m->g, 0, layer, m->tokens, 0, m->stride, m->n, m->value);
    find_bounds(m->value, m->sorted, m->n, bound);
    for (i = 0; i < m->n; i++) {
        m->class[i] = (uint8_t)class_of(bound, m->value[i]);
        size[m->class[i]]++;
    }
    place_layer(t, m, layer, bound);
    for (pair = 0; pair < m->pairs; pair++) {
        if (pair % 2 == 0) {
            smg_generator_weights(m->g, SAMPLE_ID + pair / 2, layer, m->tokens, m->stride, m->weight);
        }
        measure_head(t, m, SAMPLE_ID + pair / 2, layer, pair % heads, k);
    }
    divide(t, layer, m, size);
    smooth(t, layer, copy);
}

static void measuring_free(struct measuring *m)
{
    smg_generator_scratch_destroy(&m->scratch);
    free(m->weight);
    free(m->index);
    free(m->class);
    free(m->seen);
    free(m->value);
    free(m->sorted);
}

static int measuring_create(const struct smg_world *w, const struct smg_generator *g, uint32_t tokens, uint32_t steps,
                            struct measuring *m)
{
    *m = (struct measuring){.g = g, .tokens = tokens, .stride = (tokens + SAMPLE_TOKENS - 1) / SAMPLE_TOKENS};
    m->steps = steps > 0 ? steps : FEW_STEPS;
    m->pairs = steps > 0 ? PAIRS : PAIRS_FEW;
    m->n = (tokens + m->stride - 1) / m->stride;
    m->k = (uint32_t)lround((double)smg_selection_k(w, tokens) * m->n / tokens);
    m->k = m->k > 0 ? m->k : 1;
    m->weight = malloc(m->n * sizeof(*m->weight));
    m->index = malloc(m->n * sizeof(*m->index));
    m->class = malloc(m->n);
    m->seen = malloc(m->n);
    m->value = malloc(m->n * sizeof(*m->value));
    m->sorted = malloc(m->n * sizeof(*m->sorted));
    if (m->weight == NULL || m->index == NULL || m->class == NULL || m->seen == NULL || m->value == NULL || m->sorted == NULL ||
        smg_generator_scratch_create(m->n, &m->scratch) != SMG_OK) {
        measuring_free(m);
        return SMG_ERR_NOMEM;
    }
    return SMG_OK;
}

/* Steps whose first times differ: the longest output, or half as much again as a rotation. */
static uint32_t steps_of(const struct smg_world *w, double rotation_steps)
{
    uint32_t i, steps = 1, most = rotation_steps * 1.5 < STEPS_MAX ? (uint32_t)(rotation_steps * 1.5) + 3 : STEPS_MAX;

    for (i = 0; i < w->n_requests; i++) {
        steps = w->requests[i].output_tokens > steps + 1 ? w->requests[i].output_tokens - 1 : steps;
    }
    return steps < most ? steps : most;
}

int smg_table_generate(const struct smg_world *w, const struct smg_generator *g, uint32_t tokens, int reuse,
                       struct smg_table **out)
{
    uint32_t steps = reuse ? steps_of(w, g->p.rotation_steps) : 0, layer;
    struct smg_table *t;
    struct measuring m;
    double *copy;
    int status = table_create(w->model.layers, tokens < POSITIONS ? tokens : POSITIONS, steps, &t);

    if (status != SMG_OK) {
        return status;
    }
    status = measuring_create(w, g, tokens, steps, &m);
    if (status != SMG_OK) {
        goto err_destroy;
    }
    copy = malloc(((size_t)steps * CLASSES + 1) * sizeof(*copy));
    if (copy == NULL) {
        status = SMG_ERR_NOMEM;
        goto err_free_measuring;
    }
    for (layer = 0; layer < w->model.layers; layer++) {
        if (smg_model_layer_selects(&w->model, layer)) {
            measure_layer(t, &m, layer, copy);
        }
    }
    free(copy);
    measuring_free(&m);
    *out = t;
    return SMG_OK;

err_free_measuring:
    measuring_free(&m);
err_destroy:
    smg_table_destroy(t);
    return status;
}

/* ---- From a captured profile ---- */

/* Mean frequency of the blocks within 0.5% of the prompt of block b. The ranking chose blocks by this very matrix, so its noise
 * would flatter them; real shapes are wider than that. */
static float smoothed(const float *row, uint32_t blocks, uint32_t b)
{
    uint32_t reach = blocks / 200, first = b > reach ? b - reach : 0, end = b + reach < blocks ? b + reach + 1 : blocks, i;
    double sum = 0;

    for (i = first; i < end; i++) {
        sum += row[i];
    }
    return (float)(sum / (end - first));
}

static void profile_layer(struct smg_table *t, const struct smg_importance *im, uint32_t group, uint32_t layer, float *value,
                          float *sorted)
{
    const float *row = smg_importance_row(im, group, layer);
    double *select = t->select + (size_t)layer * CLASSES, *first = t->first + (size_t)layer * t->steps * CLASSES;
    uint32_t size[CLASSES] = {0}, b, c, s;
    float bound[CLASSES];

    for (b = 0; b < t->positions; b++) {
        value[b] = smoothed(row, im->blocks, b);
    }
    find_bounds(value, sorted, t->positions, bound);
    for (b = 0; b < t->positions; b++) {
        c = class_of(bound, value[b]);
        select[c] += value[b] + 1e-6; /* a block that was never selected still weighs something */
        size[c]++;
        place(t, layer, b, &value[b], 1, bound);
    }
    for (c = 0; c < CLASSES; c++) {
        select[c] /= size[c] > 0 ? size[c] : 1;
        for (s = 0; s < t->steps; s++) {
            first[s * CLASSES + c] = select[c] * (s > 0 ? (double)im->newrate[(size_t)layer * im->overlap_steps + s] : 1);
        }
    }
}

int smg_table_of_profile(const struct smg_world *w, uint32_t group, int reuse, struct smg_table **out)
{
    const struct smg_importance *im = w->importance;
    float *value = malloc(2 * im->blocks * sizeof(*value));
    struct smg_table *t;
    uint32_t layer;
    int status = value != NULL ? table_create(im->layers, im->blocks, reuse ? im->overlap_steps : 0, &t) : SMG_ERR_NOMEM;

    for (layer = 0; layer < im->layers && status == SMG_OK; layer++) {
        if (smg_model_layer_selects(&w->model, layer)) {
            profile_layer(t, im, group, layer, value, value + im->blocks);
        }
    }
    free(value);
    if (status == SMG_OK) {
        *out = t;
    }
    return status;
}
