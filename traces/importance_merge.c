/* The mean of two profiles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/importance_file.h"
#include "traces/text.h"

static size_t matrix(const struct smg_importance *im)
{
    return (size_t)im->layers * im->blocks;
}

static int check_pair(const struct smg_importance *a, const struct smg_importance_info *info_a, const struct smg_importance *b,
                      const struct smg_importance_info *info_b, struct smg_diag *diag)
{
    uint32_t g;

    if (a->layers != b->layers || a->blocks != b->blocks || a->groups != b->groups || info_a->kv_heads != info_b->kv_heads) {
        return smg_diag_set(
            diag, SMG_ERR_INVALID,
            "cannot merge: %u groups, %u layers, %u KV heads, %u blocks with %u groups, %u layers, %u KV heads, %u blocks",
            a->groups, a->layers, info_a->kv_heads, a->blocks, b->groups, b->layers, info_b->kv_heads, b->blocks);
    }
    for (g = 0; g < a->groups; g++) {
        if (a->group_lo[g] != b->group_lo[g] || a->group_hi[g] != b->group_hi[g]) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "cannot merge: group %u is (%u, %u] in one and (%u, %u] in the other", g,
                                a->group_lo[g], a->group_hi[g], b->group_lo[g], b->group_hi[g]);
        }
    }
    for (g = 0; g < a->groups; g++) {
        if (a->requests[g] > UINT32_MAX - b->requests[g] || a->steps[g] > UINT32_MAX - b->steps[g]) {
            return smg_diag_set(diag, SMG_ERR_RANGE, "cannot merge: group %u: more than %u requests or steps", g, UINT32_MAX);
        }
    }
    if (a->datasets + b->datasets > SMG_DATASETS_MAX) {
        return smg_diag_set(diag, SMG_ERR_RANGE, "cannot merge: %u data sets, at most %u", a->datasets + b->datasets,
                            SMG_DATASETS_MAX);
    }
    return SMG_OK;
}

static int reserve(struct smg_importance *im, const struct smg_importance *a, const struct smg_importance *b)
{
    size_t all = im->groups * matrix(im);

    im->datasets = a->datasets + b->datasets;
    im->overlap_steps = a->overlap_steps < b->overlap_steps ? a->overlap_steps : b->overlap_steps;
    im->variance = malloc(all * sizeof(*im->variance));
    im->requests = malloc(im->groups * sizeof(*im->requests));
    im->steps = malloc(im->groups * sizeof(*im->steps));
    im->dataset_value = malloc((im->datasets * all + 1) * sizeof(*im->dataset_value));
    im->overlap = malloc(((size_t)im->layers * im->overlap_steps + 1) * sizeof(*im->overlap));
    im->newrate = malloc(((size_t)im->layers * im->overlap_steps + 1) * sizeof(*im->newrate));
    return im->variance == NULL || im->requests == NULL || im->steps == NULL || im->dataset_value == NULL ||
                   im->overlap == NULL || im->newrate == NULL
               ? SMG_ERR_NOMEM
               : SMG_OK;
}

/* Mean and variance of the union of both groups' requests; +inf stays +inf. */
static void merge_group(const struct smg_importance *a, const struct smg_importance *b, uint32_t g, struct smg_importance *out)
{
    double na = a->requests[g], nb = b->requests[g], n = na + nb;
    size_t i, at = g * matrix(a);

    for (i = at; i < at + matrix(a); i++) {
        double x = a->value[i], y = b->value[i], mean = x == y ? x : (na * x + nb * y) / n;
        double apart = x == y ? 0 : x - y;

        out->value[i] = (float)mean;
        /* Two variances of shares that cannot be right could otherwise make one that no reader takes. */
        out->variance[i] = (float)fmin(1, (na * a->variance[i] + nb * b->variance[i]) / n + na * nb / (n * n) * apart * apart);
    }
    out->group_lo[g] = a->group_lo[g];
    out->group_hi[g] = a->group_hi[g];
    out->requests[g] = a->requests[g] + b->requests[g];
    out->steps[g] = a->steps[g] + b->steps[g];
}

static void join_datasets(const struct smg_importance *a, const struct smg_importance *b, uint32_t g, struct smg_importance *out)
{
    float *at = out->dataset_value + (size_t)g * out->datasets * matrix(a);
    size_t first = a->datasets * matrix(a), second = b->datasets * matrix(a);

    if (first > 0) {
        memcpy(at, a->dataset_value + g * first, first * sizeof(*at));
    }
    if (second > 0) {
        memcpy(at + first, b->dataset_value + g * second, second * sizeof(*at));
    }
}

static double requests_of(const struct smg_importance *im)
{
    double n = 0;
    uint32_t g;

    for (g = 0; g < im->groups; g++) {
        n += im->requests[g];
    }
    return n;
}

static void merge_overlap(const struct smg_importance *a, const struct smg_importance *b, struct smg_importance *out)
{
    double na = requests_of(a), nb = requests_of(b);
    uint32_t l, t;

    for (l = 0; l < out->layers; l++) {
        for (t = 0; t < out->overlap_steps; t++) {
            size_t to = (size_t)l * out->overlap_steps + t, x = (size_t)l * a->overlap_steps + t,
                   y = (size_t)l * b->overlap_steps + t;

            out->overlap[to] = (float)((na * a->overlap[x] + nb * b->overlap[y]) / (na + nb));
            out->newrate[to] = (float)((na * a->newrate[x] + nb * b->newrate[y]) / (na + nb));
        }
    }
}

static void merge_info(const struct smg_importance *a, const struct smg_importance_info *info_a, const struct smg_importance *b,
                       const struct smg_importance_info *info_b, struct smg_importance_info *out)
{
    uint32_t d;

    *out = *info_a;
    for (d = 0; d < b->datasets; d++) {
        memcpy(out->dataset[a->datasets + d], info_b->dataset[d], SMG_NAME_MAX);
    }
    if (strcmp(info_a->model, info_b->model) != 0) {
        snprintf(out->model, sizeof(out->model), "%.30s+%.30s", info_a->model, info_b->model);
    }
    snprintf(out->created_by, sizeof(out->created_by), "smartgen profile --merge");
}

int smg_importance_merge(const struct smg_importance *a, const struct smg_importance_info *info_a, const struct smg_importance *b,
                         const struct smg_importance_info *info_b, struct smg_importance **out,
                         struct smg_importance_info *info_out, struct smg_diag *diag)
{
    struct smg_importance *im;
    uint32_t g;
    int status = check_pair(a, info_a, b, info_b, diag);

    if (status == SMG_OK) {
        status = smg_importance_create(a->groups, a->layers, a->blocks, &im);
    }
    if (status != SMG_OK) {
        return status;
    }
    status = reserve(im, a, b);
    if (status != SMG_OK) {
        smg_importance_destroy(im);
        return status;
    }
    for (g = 0; g < a->groups; g++) {
        merge_group(a, b, g, im);
        join_datasets(a, b, g, im);
    }
    merge_overlap(a, b, im);
    im->synthetic = a->synthetic || b->synthetic;
    merge_info(a, info_a, b, info_b, info_out);
    *out = im;
    return SMG_OK;
}
