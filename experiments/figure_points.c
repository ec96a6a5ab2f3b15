#include "experiments/figure_points.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "traces/scenario.h"
#include "traces/text.h"

void smg_book_free(struct smg_book *b)
{
    for (size_t i = 0; i < b->sweeps; i++) {
        smg_sweep_free(&b->sweep[i]);
        free(b->index[i]);
    }
    for (size_t i = 0; i < b->points; i++)
        free(b->point[i].key);
    free(b->sweep);
    free(b->index);
    free(b->point);
    free(b->outcome);
    memset(b, 0, sizeof *b);
}

static int no_memory(struct smg_diag *diag)
{
    return smg_diag_set(diag, SMG_ERR_NOMEM, "figures: out of memory");
}

/* Makes room for one more sweep. */
static int grow_sweeps(struct smg_book *b)
{
    struct smg_sweep *sweep = realloc(b->sweep, (b->sweeps + 1) * sizeof *sweep);
    size_t **index;

    if (!sweep)
        return SMG_ERR_NOMEM;
    b->sweep = sweep;
    index = realloc(b->index, (b->sweeps + 1) * sizeof *index);
    if (!index)
        return SMG_ERR_NOMEM;
    b->index = index;
    return SMG_OK;
}

int smg_book_add(struct smg_book *b, struct smg_sweep *s, struct smg_diag *diag)
{
    size_t n = smg_sweep_points(s), *index = malloc((n + 1) * sizeof *index);
    int status = SMG_OK;

    for (size_t i = 0; i < b->sweeps && !status; i++)
        if (!strcmp(b->sweep[i].id, s->id))
            status =
                smg_diag_set(diag, SMG_ERR_PARSE, "%s: a sweep called '%s' is in %s already", s->path, s->id, b->sweep[i].path);
    if (!status && (!index || grow_sweeps(b)))
        status = no_memory(diag);
    if (status) {
        free(index);
        smg_sweep_free(s);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        index[i] = SIZE_MAX;
    b->sweep[b->sweeps] = *s;
    b->index[b->sweeps++] = index;
    memset(s, 0, sizeof *s);
    return SMG_OK;
}

int smg_book_find(const struct smg_book *b, const char *name, size_t *sweep, size_t *point, struct smg_diag *diag)
{
    for (size_t i = 0; i < b->sweeps; i++) {
        size_t at = smg_sweep_find(&b->sweep[i], name);
        if (at == SIZE_MAX)
            continue;
        *sweep = i;
        *point = at;
        return SMG_OK;
    }
    return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "no sweep has a point '%.100s'", name);
}

static char *key_of(enum smg_sweep_run run, const struct smg_scenario *s)
{
    json_t *j = smg_scenario_json(s);
    char *text = j && !json_object_set_new(j, "run", json_integer(run)) ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(j);
    return text;
}

static int add_point(struct smg_book *b, const struct smg_point *p, size_t *out)
{
    struct smg_point *grown;

    for (size_t i = 0; i < b->points; i++) {
        if (strcmp(b->point[i].key, p->key))
            continue;
        free(p->key);
        *out = i;
        return SMG_OK;
    }
    grown = realloc(b->point, (b->points + 1) * sizeof *grown);
    if (!grown)
        return SMG_ERR_NOMEM;
    b->point = grown;
    grown[b->points] = *p;
    *out = b->points++;
    return SMG_OK;
}

int smg_book_want(struct smg_book *b, size_t sweep, size_t point, struct smg_diag *diag)
{
    const struct smg_sweep *s = &b->sweep[sweep];
    struct smg_point p = {.run = s->run};
    int status;

    if (b->index[sweep][point] != SIZE_MAX)
        return SMG_OK;
    status = smg_sweep_scenario(s, point, &p.scenario, diag);
    if (status)
        return status;
    smg_sweep_name(s, point, p.name, sizeof p.name);
    p.key = key_of(p.run, &p.scenario);
    if (!p.key || add_point(b, &p, &b->index[sweep][point])) {
        free(p.key);
        return no_memory(diag);
    }
    return SMG_OK;
}

struct work {
    const struct smg_book *book;
    const struct smg_figure_job *job;
};

static int run_one(void *arg, size_t i, void *result, struct smg_diag *diag)
{
    const struct work *w = arg;
    const struct smg_point *p = &w->book->point[i];
    struct smg_point_outcome *out = result;
    struct smg_diag found = {""};

    (void)diag;
    if (p->run == SMG_SWEEP_PLAN)
        out->status = smg_point_of_plan(&p->scenario, &out->result, &found);
    else
        out->status = w->job->run_point(w->job->run_arg, &p->scenario, &out->result, &found);
    if (out->status)
        smg_diag_set(&out->diag, out->status, "%s: %s", p->name, found.text[0] ? found.text : smg_status_string(out->status));
    return SMG_OK;
}

int smg_book_run(struct smg_book *b, const struct smg_figure_job *job, struct smg_diag *diag)
{
    struct work w = {b, job};
    struct smg_forks forks = {run_one,          &w, b->points, job->jobs, sizeof(struct smg_point_outcome), job->progress,
                              job->progress_arg, job->stop};

    b->outcome = calloc(b->points + 1, sizeof *b->outcome);
    return b->outcome ? smg_forks_run(&forks, b->outcome, diag) : no_memory(diag);
}

const struct smg_point_outcome *smg_book_outcome(const struct smg_book *b, size_t sweep, size_t point)
{
    return &b->outcome[b->index[sweep][point]];
}
