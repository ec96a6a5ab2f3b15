#include "traces/importance_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/status.h"
#include "traces/importance_auto.h"
#include "traces/selection_recording.h"
#include "traces/selection_rows.h"
#include "traces/text.h"

#define LONGEST 24576u /* calibration prompts of the open group */

/* One request to profile. */
struct subject {
    uint32_t id, tokens, group;
};

struct profiling {
    const struct smg_world *w;
    const struct smg_profile_plan *plan;
    struct smg_rows *rows;
    struct subject *subject; /* [subjects], by group */
    uint32_t subjects, steps, done;
    uint32_t groups, group_of[SMG_LENGTH_GROUPS], group_tokens[SMG_LENGTH_GROUPS];
    int32_t *index;
    uint32_t *last;            /* [longest] step in which a token was selected last */
    double *overlap, *newrate; /* [layers][steps], sums */
};

/* ---- Subjects ---- */

/* The name of the data set chooses the requests, so that profiles of two data sets share none. */
static void generated_subjects(struct profiling *p)
{
    const char *name = p->w->scenario.workload.dataset;
    struct smg_rng rng;
    uint32_t first, g, r, hi;

    smg_rng_init(&rng, p->w->scenario.seed, name);
    first = SMG_GENERATOR_CALIBRATION + (uint32_t)(smg_rng_u64(&rng) & 0x0fffffff);
    for (g = 0; g < SMG_LENGTH_GROUPS; g++) {
        hi = g + 1 < SMG_LENGTH_GROUPS ? smg_length_group_hi[g] : LONGEST;
        for (r = 0; r < p->plan->requests; r++) {
            uint64_t width = hi - smg_length_group_lo[g];
            struct subject s = {first + p->subjects, smg_length_group_lo[g] + (uint32_t)(width * (r + 1) / p->plan->requests), g};

            p->subject[p->subjects++] = s;
        }
    }
}

static void recorded_subjects(struct profiling *p)
{
    uint32_t g, i;

    for (g = 0; g < SMG_LENGTH_GROUPS; g++) {
        for (i = 0; i < p->w->n_requests; i++) {
            uint32_t tokens = p->w->requests[i].prompt_tokens;

            if (smg_length_group(tokens) == g) {
                p->subject[p->subjects++] = (struct subject){i, tokens, g};
            }
        }
    }
}

static void find_groups(struct profiling *p)
{
    uint32_t i, n[SMG_LENGTH_GROUPS] = {0};
    uint64_t sum[SMG_LENGTH_GROUPS] = {0};

    for (i = 0; i < p->subjects; i++) {
        n[p->subject[i].group]++;
        sum[p->subject[i].group] += p->subject[i].tokens;
    }
    for (i = 0; i < SMG_LENGTH_GROUPS; i++) {
        if (n[i] > 0) {
            p->group_of[p->groups] = i;
            p->group_tokens[p->groups++] = (uint32_t)(sum[i] / n[i]);
        }
    }
}

static int choose_subjects(struct profiling *p)
{
    uint32_t i, recorded = p->rows->recording != NULL, most = recorded ? p->w->n_requests : SMG_LENGTH_GROUPS * p->plan->requests;

    p->subject = malloc(most * sizeof(*p->subject));
    if (p->subject == NULL) {
        return SMG_ERR_NOMEM;
    }
    p->steps = p->plan->steps;
    if (recorded) {
        recorded_subjects(p);
    } else {
        generated_subjects(p);
    }
    for (i = 0; recorded && i < p->subjects; i++) {
        uint32_t steps = smg_recording_steps(p->rows->recording, p->subject[i].id);
        p->steps = steps < p->steps ? steps : p->steps;
    }
    find_groups(p);
    return p->subjects > 0 && p->steps > 0 ? SMG_OK : SMG_ERR_INVALID;
}

/* ---- Counting ---- */

static int count_head(struct profiling *p, struct smg_importance_counter *c, const struct smg_rows_layer *rows, uint32_t head)
{
    uint32_t step, i, n;
    int status = SMG_OK;

    memset(p->last, 0, rows->tokens * sizeof(*p->last));
    for (step = 1; step <= p->steps && status == SMG_OK; step++) {
        double share = 1.0 / ((double)p->subjects * p->w->model.kv_heads);
        uint32_t shared = 0, fresh = 0;

        n = smg_rows_get(p->rows, rows, head, step, p->index);
        for (i = 0; i < n; i++) {
            uint32_t *last = &p->last[p->index[i]];

            fresh += *last == 0;
            shared += step > 1 && *last == step - 1;
            *last = step;
        }
        p->overlap[(size_t)rows->layer * p->steps + step - 1] += n > 0 ? share * shared / n : 0;
        p->newrate[(size_t)rows->layer * p->steps + step - 1] += n > 0 ? share * fresh / n : 0;
        status = smg_importance_counter_add(c, rows->layer, p->index, n);
    }
    return status;
}

static int count_subject(struct profiling *p, struct smg_importance_counter *c, const struct subject *s)
{
    uint32_t layer, head;
    int status = smg_importance_counter_begin(c, s->tokens);

    for (layer = 0; layer < p->w->model.layers && status == SMG_OK; layer++) {
        struct smg_rows_layer rows = {0};

        if (!smg_model_layer_selects(&p->w->model, layer)) {
            continue;
        }
        if (p->plan->stop != NULL && p->plan->stop()) {
            status = SMG_ERR_INTERRUPTED;
            break;
        }
        status = smg_rows_open(p->rows, s->id, layer, s->tokens, &rows);
        for (head = 0; head < p->w->model.kv_heads && status == SMG_OK; head++) {
            status = count_head(p, c, &rows, head);
        }
        smg_rows_close(&rows);
    }
    if (status == SMG_OK) {
        status = smg_importance_counter_end(c, p->steps);
    }
    p->done++;
    if (p->plan->progress != NULL) {
        p->plan->progress(p->plan->context, p->done, p->subjects);
    }
    return status;
}

static int count_group(struct profiling *p, uint32_t group, struct smg_importance **out)
{
    struct smg_importance_counter *c;
    uint32_t i;
    int status = smg_importance_counter_create(p->w->model.layers, p->w->scenario.blocks_per_layer, p->w->model.kv_heads, &c);

    if (status != SMG_OK) {
        return status;
    }
    for (i = 0; i < p->subjects && status == SMG_OK; i++) {
        if (p->subject[i].group == p->group_of[group]) {
            status = count_subject(p, c, &p->subject[i]);
        }
    }
    if (status == SMG_OK) {
        status = smg_importance_counter_finish(c, out);
    }
    smg_importance_counter_destroy(c);
    return status;
}

/* ---- The matrix ---- */

static void copy_group(const struct profiling *p, const struct smg_importance *one, uint32_t g, struct smg_importance *all)
{
    size_t n = (size_t)all->layers * all->blocks;

    memcpy(all->value + g * n, one->value, n * sizeof(*one->value));
    memcpy(all->variance + g * n, one->variance, n * sizeof(*one->variance));
    all->group_lo[g] = smg_length_group_lo[p->group_of[g]];
    all->group_hi[g] = smg_length_group_hi[p->group_of[g]];
    all->requests[g] = one->requests[0];
    all->steps[g] = one->steps[0];
    smg_importance_mark_sliding(all, g, &p->w->model, p->group_tokens[g]);
    memcpy(all->dataset_value + g * n, all->value + g * n, n * sizeof(*one->value));
}

static int reserve(const struct profiling *p, struct smg_importance *im)
{
    size_t n = (size_t)im->groups * im->layers * im->blocks, steps = (size_t)im->layers * p->steps;

    im->datasets = 1;
    im->overlap_steps = p->steps;
    im->variance = calloc(n, sizeof(*im->variance));
    im->dataset_value = calloc(n, sizeof(*im->dataset_value));
    im->requests = calloc(im->groups, sizeof(*im->requests));
    im->steps = calloc(im->groups, sizeof(*im->steps));
    im->overlap = calloc(steps, sizeof(*im->overlap));
    im->newrate = calloc(steps, sizeof(*im->newrate));
    return im->variance == NULL || im->dataset_value == NULL || im->requests == NULL || im->steps == NULL ||
                   im->overlap == NULL || im->newrate == NULL
               ? SMG_ERR_NOMEM
               : SMG_OK;
}

static int count_groups(struct profiling *p, struct smg_importance **out)
{
    struct smg_importance *im, *one;
    size_t i;
    uint32_t g;
    int status = smg_importance_create(p->groups, p->w->model.layers, p->w->scenario.blocks_per_layer, &im);

    if (status != SMG_OK) {
        return status;
    }
    status = reserve(p, im);
    for (g = 0; g < p->groups && status == SMG_OK; g++) {
        status = count_group(p, g, &one);
        if (status == SMG_OK) {
            copy_group(p, one, g, im);
            smg_importance_destroy(one);
        }
    }
    if (status != SMG_OK) {
        smg_importance_destroy(im);
        return status;
    }
    for (i = 0; i < (size_t)im->layers * p->steps; i++) {
        im->overlap[i] = (float)p->overlap[i];
        im->newrate[i] = (float)p->newrate[i];
    }
    im->synthetic = p->w->synthetic_selection;
    *out = im;
    return SMG_OK;
}

static void fill_info(const struct smg_world *w, struct smg_importance_info *info)
{
    static const char *const selectors[] = {"infinigen", "hata", "quest", "oracle"};

    memset(info, 0, sizeof(*info));
    memcpy(info->model, w->model.name, sizeof(info->model));
    snprintf(info->selector, sizeof(info->selector), "%s", selectors[w->scenario.selector]);
    snprintf(info->created_by, sizeof(info->created_by), "smartgen profile");
    snprintf(info->dataset[0], sizeof(info->dataset[0]), "%s", w->scenario.workload.dataset);
    info->kv_heads = w->model.kv_heads;
    info->head_dim = w->model.head_dim;
    info->cap = w->scenario.selection.cap;
    info->seed = w->scenario.seed;
}

static int reserve_rows(struct profiling *p)
{
    uint32_t i, longest = 1;

    for (i = 0; i < p->subjects; i++) {
        longest = p->subject[i].tokens > longest ? p->subject[i].tokens : longest;
    }
    p->index = malloc(longest * sizeof(*p->index));
    p->last = malloc(longest * sizeof(*p->last));
    p->overlap = calloc((size_t)p->w->model.layers * p->steps, sizeof(*p->overlap));
    p->newrate = calloc((size_t)p->w->model.layers * p->steps, sizeof(*p->newrate));
    return p->index == NULL || p->last == NULL || p->overlap == NULL || p->newrate == NULL ? SMG_ERR_NOMEM : SMG_OK;
}

int smg_profile_make(const struct smg_world *w, const struct smg_profile_plan *plan, struct smg_importance **out,
                     struct smg_importance_info *info, struct smg_diag *diag)
{
    struct profiling p = {.w = w, .plan = plan};
    int status;

    if (plan->requests < 1 || plan->requests > SMG_PROFILE_REQUESTS_MAX || plan->steps < 1) {
        return smg_diag_set(diag, SMG_ERR_RANGE,
                            "a profile takes 1 to %u requests of each length group and a decode step at least, found %u and %u",
                            SMG_PROFILE_REQUESTS_MAX, plan->requests, plan->steps);
    }
    status = smg_rows_create(w, &p.rows, diag);
    if (status != SMG_OK) {
        return status;
    }
    status = choose_subjects(&p);
    if (status == SMG_OK) {
        status = reserve_rows(&p);
    }
    if (status == SMG_OK) {
        status = count_groups(&p, out);
    }
    if (status == SMG_OK) {
        fill_info(w, info);
    }
    free(p.newrate);
    free(p.overlap);
    free(p.last);
    free(p.index);
    free(p.subject);
    smg_rows_destroy(p.rows);
    return status;
}
