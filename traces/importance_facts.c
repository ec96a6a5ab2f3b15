/* Facts T1 to T10: what published heat maps and numbers ask of an importance file. */
#include "traces/importance_facts.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

#define POSITIONS 100u

/* The file, resampled to POSITIONS blocks, and work space. */
struct judging {
    const struct smg_importance *im;
    const struct smg_importance_info *info;
    const struct smg_model *m;
    const struct smg_generator_facts *g;
    double a[POSITIONS], b[POSITIONS], work[2 * POSITIONS];
};

static struct smg_fact fact(const char *id, const char *claim, enum smg_fact_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static struct smg_fact fact(const char *id, const char *claim, enum smg_fact_verdict verdict, const char *format, ...)
{
    struct smg_fact f = {.id = id, .claim = claim, .verdict = verdict};
    va_list args;

    va_start(args, format);
    vsnprintf(f.measured, sizeof(f.measured), format, args);
    va_end(args);
    return f;
}

static struct smg_fact unknown(const char *id, const char *claim)
{
    return fact(id, claim, SMG_FACT_UNKNOWN, "not measurable from this file");
}

static enum smg_fact_verdict verdict(int holds)
{
    return holds ? SMG_FACT_PASS : SMG_FACT_FAIL;
}

static int selects(const struct judging *j, uint32_t layer)
{
    return smg_model_layer_selects(j->m, layer);
}

static double mean_of(const float *row, uint32_t first, uint32_t end)
{
    double sum = 0;
    uint32_t b;

    for (b = first; b < end; b++) {
        sum += row[b];
    }
    return end > first ? sum / (end - first) : 0;
}

/* Group of 7,000 tokens, or the nearest. */
static const float *row_of(const struct judging *j, uint32_t layer)
{
    return smg_importance_row(j->im, smg_importance_group(j->im, 7000), layer);
}

/* Layer at the relative depth that `of_forty` has in Qwen3-14B; the nearest that selects. */
static uint32_t layer_like(const struct judging *j, uint32_t of_forty)
{
    uint32_t layer = (uint32_t)lround((double)of_forty * (j->im->layers - 1) / 39), d;

    for (d = 0; d < j->im->layers; d++) {
        if (layer + d < j->im->layers && selects(j, layer + d)) {
            return layer + d;
        }
        if (layer >= d && selects(j, layer - d)) {
            return layer - d;
        }
    }
    return layer;
}

/* ---- T1: relative position, not data set or length ---- */

static void reduce(const float *row, uint32_t blocks, double *out)
{
    uint32_t i;

    for (i = 0; i < POSITIONS; i++) {
        uint32_t lo = (uint32_t)((uint64_t)i * blocks / POSITIONS), hi = (uint32_t)((i + UINT64_C(1)) * blocks / POSITIONS);
        out[i] = hi > lo ? mean_of(row, lo, hi) : row[lo];
    }
}

/* Spearman's correlation of a layer's row in two matrices. */
static double spearman(struct judging *j, const float *x, const float *y, uint32_t layer)
{
    size_t at = (size_t)layer * j->im->blocks;

    reduce(x + at, j->im->blocks, j->a);
    reduce(y + at, j->im->blocks, j->b);
    return gsl_stats_spearman(j->a, 1, j->b, 1, POSITIONS, j->work);
}

/* Share of the layers in which two matrices agree by more than 0.8. */
static double agreement(struct judging *j, const float *x, const float *y)
{
    uint32_t layer, n = 0, good = 0;

    for (layer = 0; layer < j->im->layers; layer++) {
        if (selects(j, layer)) {
            good += spearman(j, x, y, layer) > 0.8;
            n++;
        }
    }
    return n > 0 ? (double)good / n : 0;
}

static struct smg_fact judge_t1(struct judging *j)
{
    const char *claim = "Spearman between lengths and data sets > 0.8 in most layers";
    const struct smg_importance *im = j->im;
    size_t n = (size_t)im->layers * im->blocks;
    double worst = 1, one;
    uint32_t g, d, pairs = 0;

    for (g = 0; g < im->groups; g++) {
        if (g > 0) {
            one = agreement(j, im->value, im->value + g * n);
            worst = one < worst ? one : worst;
            pairs++;
        }
        for (d = 1; d < im->datasets; d++, pairs++) {
            one = agreement(j, im->dataset_value + (size_t)g * im->datasets * n,
                            im->dataset_value + ((size_t)g * im->datasets + d) * n);
            worst = one < worst ? one : worst;
        }
    }
    if (pairs == 0 || im->blocks < POSITIONS) {
        return unknown("T1", claim);
    }
    return fact("T1", claim, verdict(worst > 0.5),
                "%u pairs of groups or data sets; the least alike agree in %.0f%% of the layers", pairs, 100 * worst);
}

/* ---- T2 to T5, T7, T9: shapes of the file ---- */

static struct smg_fact judge_t2(struct judging *j)
{
    uint32_t layer = layer_like(j, 8), i;
    double least = 1;

    reduce(row_of(j, layer), j->im->blocks, j->a);
    for (i = POSITIONS * 3 / 4; i < POSITIONS; i++) {
        least = fmin(least, j->a[i]);
    }
    return fact("T2", "layer at depth 8/40: each 1% of the last quarter above 0.30", verdict(least > 0.30),
                "layer %u: least %.3f", layer, least);
}

static struct smg_fact judge_t3(struct judging *j)
{
    uint32_t layer = layer_like(j, 14), b, dark = 0;
    const float *row = row_of(j, layer);
    double mean = mean_of(row, 0, j->im->blocks), share;

    for (b = 0; b < j->im->blocks; b++) {
        dark += row[b] < 0.5f;
    }
    share = (double)dark / j->im->blocks;
    return fact("T3", "layer at depth 14/40: over 90% of the tokens below 0.5, mean clearly under the cap",
                verdict(share > 0.9 && mean < 0.95 * j->info->cap), "layer %u: %.1f%% below 0.5, mean %.3f of a cap of %.2f",
                layer, 100 * share, mean, j->info->cap);
}

static struct smg_fact judge_t4(struct judging *j)
{
    uint32_t layer, b, bright = 0, all = 0;

    for (layer = 0; layer < j->im->layers; layer++) {
        for (b = 0; selects(j, layer) && b < j->im->blocks; b++, all++) {
            bright += row_of(j, layer)[b] > 0.4f;
        }
    }
    return fact("T4", "few blocks above 0.4, the end of the colour scale", verdict(bright < 0.1 * all), "%.1f%% above 0.4",
                all > 0 ? 100.0 * bright / all : 0);
}

static struct smg_fact judge_t5(struct judging *j)
{
    uint32_t layer;
    double most = 0;

    for (layer = 0; layer < j->im->layers; layer++) {
        most = selects(j, layer) ? fmax(most, mean_of(row_of(j, layer), 0, j->im->blocks)) : most;
    }
    return fact("T5", "mean frequency of each layer at most the cap", verdict(most <= j->info->cap * 1.005),
                "highest %.4f, cap %.2f", most, j->info->cap);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* Share of the file's own selections in its best 47.4% of blocks. */
static double lorenz(const struct judging *j)
{
    size_t n = 0, i, most = (size_t)j->im->layers * j->im->blocks;
    float *list = malloc(most * sizeof(*list));
    double all = 0, inside = 0;
    uint32_t layer;

    for (layer = 0; list != NULL && layer < j->im->layers; layer++) {
        if (selects(j, layer)) {
            memcpy(list + n, row_of(j, layer), j->im->blocks * sizeof(*list));
            n += j->im->blocks;
        }
    }
    if (n == 0) {
        free(list);
        return 0;
    }
    qsort(list, n, sizeof(*list), descending);
    for (i = 0; i < n; i++) {
        all += list[i];
        inside += i < (size_t)(SMG_FACTS_SHARE * (double)n) ? list[i] : 0;
    }
    free(list);
    return inside / all;
}

static struct smg_fact judge_t7(struct judging *j)
{
    const char *claim = "the best 47.4% of the blocks hold 0.66 +- 0.03 of the selections";

    if (j->g == NULL) {
        double x = lorenz(j);
        return fact("T7", claim, verdict(fabs(x - 0.66) <= 0.03), "%.3f of the file's own, M = %u", x, j->im->blocks);
    }
    return fact("T7", claim, verdict(fabs(j->g->optimum[2] - 0.66) <= 0.03),
                "optimum %.3f, %.3f (M = 100, 1000, %u head-steps a layer), held-out profile %.3f, %.3f; file's own %.3f",
                j->g->optimum[0], j->g->optimum[2], j->g->head_steps, j->g->profile[0], j->g->profile[2], lorenz(j));
}

static struct smg_fact judge_t9(struct judging *j)
{
    const char *claim = "sliding layers: weight on the window alone";
    uint32_t layer, b, n = 0, outside = 0, group = smg_importance_group(j->im, 7000);
    double shortest = fmax(j->im->group_lo[group], 1);

    for (layer = SMG_DENSE_LAYERS; layer < j->im->layers; layer++) {
        const float *row = row_of(j, layer);
        double start = 1 - j->m->window_tokens / shortest;

        if (selects(j, layer)) {
            continue;
        }
        n++;
        for (b = 0; b < j->im->blocks; b++) {
            outside += row[b] > 0 && (b + 1.0) / j->im->blocks < start;
        }
    }
    if (n == 0) {
        return fact("T9", claim, SMG_FACT_UNKNOWN, "no layer of %s slides", j->m->name);
    }
    return fact("T9", claim, verdict(outside == 0), "%u sliding layers, %u blocks with weight before the window", n, outside);
}

/* ---- T6, T8, T10: what only the generator tells ---- */

static struct smg_fact judge_t6(const struct judging *j)
{
    const char *claim = "held-out coverage changes by less than 2% between M = 500 and 2000";
    double low, high;

    if (j->g == NULL) {
        return unknown("T6", claim);
    }
    low = j->g->profile[1];
    high = j->g->profile[3];
    return fact("T6", claim, verdict(fabs(high / low - 1) < 0.02), "%.4f and %.4f: %+.2f%%", low, high, 100 * (high / low - 1));
}

static struct smg_fact judge_t8(const struct judging *j)
{
    const char *claim = "on-demand ratio: optimal < profile < random, sequential";
    double optimal, profile, random, sequential;

    if (j->g == NULL) {
        return unknown("T8", claim);
    }
    optimal = 1 - j->g->optimum[2];
    profile = 1 - j->g->profile[2];
    random = 1 - j->g->random;
    sequential = 1 - j->g->sequential;
    return fact("T8", claim, verdict(optimal < profile && profile < fmin(random, sequential)),
                "%.3f < %.3f < %.3f, %.3f; profile against either %+.0f%%; streamingllm %.3f", optimal, profile, random,
                sequential, 100 * (profile / random - 1), 1 - j->g->streamingllm[2]);
}

static double newrate_at(const struct judging *j, uint32_t step)
{
    double sum = 0;
    uint32_t layer, n = 0;

    for (layer = 0; layer < j->im->layers; layer++) {
        if (selects(j, layer)) {
            sum += j->im->newrate[(size_t)layer * j->im->overlap_steps + step - 1];
            n++;
        }
    }
    return n > 0 ? sum / n : 0;
}

static struct smg_fact judge_t10(const struct judging *j)
{
    const char *claim = "of the entries outside the best half, about 0.26 are new at steps 10 and 20";

    if (j->g != NULL) {
        return fact("T10", claim,
                    verdict(fabs(j->g->fresh_absent[9] - 0.26) <= 0.04 && fabs(j->g->fresh_absent[19] - 0.26) <= 0.04),
                    "%.3f and %.3f; step 2 %.3f, 40 %.3f; of all entries %.3f and %.3f; overlap %.3f", j->g->fresh_absent[9],
                    j->g->fresh_absent[19], j->g->fresh_absent[1], j->g->fresh_absent[39], j->g->fresh[9], j->g->fresh[19],
                    j->g->overlap);
    }
    if (j->im->overlap_steps >= 20) {
        return fact("T10", claim, SMG_FACT_UNKNOWN,
                    "of all entries %.3f and %.3f are new; outside the best half: not measurable from this file",
                    newrate_at(j, 10), newrate_at(j, 20));
    }
    return unknown("T10", claim);
}

int smg_importance_facts(const struct smg_importance *im, const struct smg_importance_info *info, const struct smg_model *m,
                         const struct smg_generator_facts *g, struct smg_fact out[SMG_FACTS])
{
    struct judging *j = malloc(sizeof(*j));

    if (j == NULL) {
        return SMG_ERR_NOMEM;
    }
    *j = (struct judging){.im = im, .info = info, .m = m, .g = g};
    out[0] = judge_t1(j);
    out[1] = judge_t2(j);
    out[2] = judge_t3(j);
    out[3] = judge_t4(j);
    out[4] = judge_t5(j);
    out[5] = judge_t6(j);
    out[6] = judge_t7(j);
    out[7] = judge_t8(j);
    out[8] = judge_t9(j);
    out[9] = judge_t10(j);
    free(j);
    return SMG_OK;
}
