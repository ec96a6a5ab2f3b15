#include "core/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/model.h"
#include "core/status.h"

/* Zeroed [a][b][c] array; NULL when the size overflows or memory is short. No dimension is 0. */
static void *calloc3(size_t a, size_t b, size_t c, size_t element_bytes)
{
    if (a > SIZE_MAX / b || a * b > SIZE_MAX / c || a * b * c > SIZE_MAX / element_bytes) {
        return NULL;
    }
    return calloc(a * b * c, element_bytes);
}

static float *row_of(const struct smg_importance *im, uint32_t group, uint32_t layer)
{
    return im->value + ((size_t)group * im->layers + layer) * im->blocks;
}

static void dense_to_infinity(struct smg_importance *im)
{
    for (uint32_t g = 0; g < im->groups; g++) {
        for (uint32_t l = 0; l < SMG_DENSE_LAYERS && l < im->layers; l++) {
            float *row = row_of(im, g, l);
            for (uint32_t b = 0; b < im->blocks; b++) {
                row[b] = INFINITY;
            }
        }
    }
}

int smg_importance_create(uint32_t groups, uint32_t layers, uint32_t blocks, struct smg_importance **out)
{
    struct smg_importance *im;

    if (groups == 0 || layers == 0 || layers > SMG_MAX_LAYERS || blocks == 0) {
        return SMG_ERR_INVALID;
    }
    im = calloc(1, sizeof(*im));
    if (im == NULL) {
        return SMG_ERR_NOMEM;
    }
    im->groups = groups;
    im->layers = layers;
    im->blocks = blocks;
    im->value = calloc3(groups, layers, blocks, sizeof(*im->value));
    if (im->value == NULL) {
        goto err_destroy;
    }
    im->group_lo = calloc(groups, sizeof(*im->group_lo));
    im->group_hi = calloc(groups, sizeof(*im->group_hi));
    if (im->group_lo == NULL || im->group_hi == NULL) {
        goto err_destroy;
    }
    memset(im->group_hi, 0xff, groups * sizeof(*im->group_hi));   /* every length, until the owner narrows the groups */
    dense_to_infinity(im);
    *out = im;
    return SMG_OK;

err_destroy:
    smg_importance_destroy(im);
    return SMG_ERR_NOMEM;
}

void smg_importance_destroy(struct smg_importance *im)
{
    if (im == NULL) {
        return;
    }
    if (im->request_free != NULL) {
        im->request_free(im->request_context);
    }
    free(im->newrate);
    free(im->overlap);
    free(im->dataset_value);
    free(im->variance);
    free(im->steps);
    free(im->requests);
    free(im->value);
    free(im->group_hi);
    free(im->group_lo);
    free(im);
}

/* Tokens between a prompt length and the group's range (lo, hi]. */
static uint32_t group_distance(const struct smg_importance *im, uint32_t group, uint32_t tokens)
{
    if (tokens <= im->group_lo[group]) {
        return im->group_lo[group] - tokens + 1;
    }
    return tokens > im->group_hi[group] ? tokens - im->group_hi[group] : 0;
}

uint32_t smg_importance_group(const struct smg_importance *im, uint32_t prompt_tokens)
{
    uint32_t best = 0;

    for (uint32_t g = 1; g < im->groups; g++) {
        if (group_distance(im, g, prompt_tokens) < group_distance(im, best, prompt_tokens)) {
            best = g;
        }
    }
    return best;
}

const float *smg_importance_row(const struct smg_importance *im, uint32_t group, uint32_t layer)
{
    return row_of(im, group, layer);
}

/* Mean of the stored row over [lo, hi) in units of 1/blocks of a stored block: stored block j covers [j*blocks, (j+1)*blocks). */
static float mean_between(const float *row, uint64_t blocks, uint64_t lo, uint64_t hi)
{
    double sum = 0;

    for (uint64_t at = lo; at < hi;) {
        uint64_t j = at / blocks;
        uint64_t end = (j + 1) * blocks < hi ? (j + 1) * blocks : hi;

        sum += row[j] * (double)(end - at);
        at = end;
    }
    return (float)(sum / (double)(hi - lo));
}

void smg_importance_resample(const struct smg_importance *im, uint32_t group, uint32_t layer, uint32_t blocks, float *out)
{
    const float *row = row_of(im, group, layer);
    uint64_t width = im->blocks;

    for (uint32_t i = 0; i < blocks; i++) {
        out[i] = mean_between(row, blocks, i * width, (i + 1) * width);
    }
}

struct smg_importance_counter {
    uint32_t layers, blocks, kv_heads;
    uint32_t tokens;        /* of the open request, 0: none is open */
    uint32_t requests;      /* finished */
    uint64_t *count;        /* [layers][blocks], of the open request */
    double *frequency;      /* [layers][blocks], summed over finished requests */
    double *square;         /* [layers][blocks], of the frequency */
    uint32_t steps;         /* summed over finished requests */
    uint32_t *seen;         /* [blocks], finished requests in which the block was not empty */
};

int smg_importance_counter_create(uint32_t layers, uint32_t blocks, uint32_t kv_heads, struct smg_importance_counter **out)
{
    struct smg_importance_counter *c;

    if (layers == 0 || layers > SMG_MAX_LAYERS || blocks == 0 || kv_heads == 0) {
        return SMG_ERR_INVALID;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return SMG_ERR_NOMEM;
    }
    c->layers = layers;
    c->blocks = blocks;
    c->kv_heads = kv_heads;
    c->count = calloc3(1, layers, blocks, sizeof(*c->count));
    c->frequency = calloc3(1, layers, blocks, sizeof(*c->frequency));
    c->square = calloc3(1, layers, blocks, sizeof(*c->square));
    c->seen = calloc(blocks, sizeof(*c->seen));
    if (c->count == NULL || c->frequency == NULL || c->square == NULL || c->seen == NULL) {
        smg_importance_counter_destroy(c);
        return SMG_ERR_NOMEM;
    }
    *out = c;
    return SMG_OK;
}

void smg_importance_counter_destroy(struct smg_importance_counter *c)
{
    if (c == NULL) {
        return;
    }
    free(c->seen);
    free(c->square);
    free(c->frequency);
    free(c->count);
    free(c);
}

int smg_importance_counter_begin(struct smg_importance_counter *c, uint32_t tokens)
{
    if (c->tokens != 0 || tokens == 0) {
        return SMG_ERR_INVALID;
    }
    c->tokens = tokens;
    memset(c->count, 0, (size_t)c->layers * c->blocks * sizeof(*c->count));
    return SMG_OK;
}

/* The matrix has M blocks whatever the prompt, so a short prompt leaves some of them empty (unlike a grid, which coarsens).
 * The block of a token is the last one that starts at or before it, which is never an empty one. */
static uint32_t block_of(const struct smg_importance_counter *c, uint32_t token)
{
    return (uint32_t)((((uint64_t)token + 1) * c->blocks - 1) / c->tokens);
}

static uint32_t block_tokens(const struct smg_importance_counter *c, uint32_t block)
{
    uint64_t lo = (uint64_t)block * c->tokens / c->blocks;
    uint64_t hi = ((uint64_t)block + 1) * c->tokens / c->blocks;

    return (uint32_t)(hi - lo);
}

int smg_importance_counter_add(struct smg_importance_counter *c, uint32_t layer, const int32_t *index, uint32_t k)
{
    uint64_t *count;

    if (c->tokens == 0 || layer >= c->layers) {
        return SMG_ERR_INVALID;
    }
    for (uint32_t i = 0; i < k; i++) {
        if (index[i] >= 0 && (uint32_t)index[i] >= c->tokens) {
            return SMG_ERR_RANGE;
        }
    }
    count = c->count + (size_t)layer * c->blocks;
    for (uint32_t i = 0; i < k; i++) {
        if (index[i] >= 0) {
            count[block_of(c, (uint32_t)index[i])]++;
        }
    }
    return SMG_OK;
}

int smg_importance_counter_end(struct smg_importance_counter *c, uint32_t steps)
{
    if (c->tokens == 0 || steps == 0) {
        return SMG_ERR_INVALID;
    }
    for (uint32_t b = 0; b < c->blocks; b++) {
        double entries = (double)c->kv_heads * block_tokens(c, b);

        if (entries == 0) {
            continue;
        }
        c->seen[b]++;
        for (uint32_t l = 0; l < c->layers; l++) {
            size_t at = (size_t)l * c->blocks + b;
            double frequency = (double)c->count[at] / (steps * entries);
            c->frequency[at] += frequency;
            c->square[at] += frequency * frequency;
        }
    }
    c->requests++;
    c->steps += steps;
    c->tokens = 0;
    return SMG_OK;
}

const uint64_t *smg_importance_counter_counts(const struct smg_importance_counter *c)
{
    return c->count;
}

/* Mean and variance of a block over the requests in which it was not empty. */
static void finish_block(const struct smg_importance_counter *c, uint32_t layer, uint32_t block, struct smg_importance *im)
{
    size_t at = (size_t)layer * c->blocks + block;
    double n = c->seen[block], mean = n > 0 ? c->frequency[at] / n : 0, spread = n > 0 ? c->square[at] / n - mean * mean : 0;

    im->value[at] = (float)mean;
    im->variance[at] = spread > 0 ? (float)spread : 0;
}

static int add_optional(const struct smg_importance_counter *c, struct smg_importance *im)
{
    im->variance = calloc3(1, c->layers, c->blocks, sizeof(*im->variance));
    im->requests = calloc(1, sizeof(*im->requests));
    im->steps = calloc(1, sizeof(*im->steps));
    if (im->variance == NULL || im->requests == NULL || im->steps == NULL) {
        return SMG_ERR_NOMEM;
    }
    im->requests[0] = c->requests;
    im->steps[0] = c->steps;
    return SMG_OK;
}

int smg_importance_counter_finish(const struct smg_importance_counter *c, struct smg_importance **out)
{
    struct smg_importance *im;
    int status;

    if (c->requests == 0) {
        return SMG_ERR_INVALID;
    }
    status = smg_importance_create(1, c->layers, c->blocks, &im);
    if (status != SMG_OK) {
        return status;
    }
    status = add_optional(c, im);
    if (status != SMG_OK) {
        smg_importance_destroy(im);
        return status;
    }
    for (uint32_t l = SMG_DENSE_LAYERS; l < c->layers; l++) {
        for (uint32_t b = 0; b < c->blocks; b++) {
            finish_block(c, l, b, im);
        }
    }
    *out = im;
    return SMG_OK;
}
