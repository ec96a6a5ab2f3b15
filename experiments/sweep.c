#include "experiments/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "core/grid.h"
#include "traces/data_dir.h"
#include "traces/scenario.h"
#include "traces/text.h"
#include "traces/world.h"

enum { SETS_MAX = 128 };

const char *smg_sweeps_dir(void)
{
    static char path[SMG_PATH_MAX];

    return smg_shared_folder("SMARTGEN_EXPERIMENTS", "experiments", "experiments", path);
}

static void free_set(struct smg_sweep_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->text[i]);
    free(set->text);
}

void smg_sweep_free(struct smg_sweep *s)
{
    free_set(&s->base);
    for (size_t a = 0; a < SMG_SWEEP_AXES; a++) {
        for (size_t i = 0; i < s->axis[a].n; i++)
            free_set(&s->axis[a].value[i].set);
        free(s->axis[a].value);
    }
    memset(s, 0, sizeof *s);
}

size_t smg_sweep_points(const struct smg_sweep *s)
{
    size_t n = s->axes > 0;

    for (size_t a = 0; a < s->axes; a++)
        n *= s->axis[a].n;
    return n;
}

/* Points between two neighbours along an axis. */
static size_t stride(const struct smg_sweep *s, size_t axis)
{
    size_t n = 1;

    for (size_t a = axis + 1; a < s->axes; a++)
        n *= s->axis[a].n;
    return n;
}

static size_t place(const struct smg_sweep *s, size_t point, size_t axis)
{
    return point / stride(s, axis) % s->axis[axis].n;
}

const struct smg_sweep_value *smg_sweep_at(const struct smg_sweep *s, size_t point, size_t axis)
{
    return &s->axis[axis].value[place(s, point, axis)];
}

void smg_sweep_name(const struct smg_sweep *s, size_t point, char *out, size_t out_bytes)
{
    size_t used = (size_t)snprintf(out, out_bytes, "%s", s->id);

    for (size_t a = 0; a < s->axes && used < out_bytes; a++)
        used += (size_t)snprintf(out + used, out_bytes - used, "/%s", smg_sweep_at(s, point, a)->name);
}

size_t smg_sweep_find(const struct smg_sweep *s, const char *name)
{
    char text[SMG_SWEEP_NAME * (SMG_SWEEP_AXES + 1)];

    for (size_t i = 0; i < smg_sweep_points(s); i++) {
        smg_sweep_name(s, i, text, sizeof text);
        if (!strcmp(text, name))
            return i;
    }
    return SIZE_MAX;
}

size_t smg_sweep_reference(const struct smg_sweep *s, size_t point)
{
    size_t axis = (size_t)s->speedup_axis;

    return point + s->speedup_over * stride(s, axis) - place(s, point, axis) * stride(s, axis);
}

/* ---- Scenario of a point ---- */

static void add(const struct smg_sweep_set *set, const char **sets, size_t *n, double *kr_share)
{
    for (size_t i = 0; i < set->n && *n < SETS_MAX; i++)
        sets[(*n)++] = set->text[i];
    if (!isnan(set->kr_share))
        *kr_share = set->kr_share;
}

static int set_share(struct smg_scenario *s, double share, struct smg_diag *diag)
{
    struct smg_model m;
    struct smg_grid g;
    uint32_t tokens = s->workload.prompt_tokens;
    int status = smg_model_load(s->model, &m, diag);

    if (!status && !s->workload.prompt_tokens_set)
        status = smg_dataset_tokens(s->workload.dataset, &tokens, diag);
    if (status)
        return status;
    smg_grid_init(&g, &m, tokens, s->blocks_per_layer, s->min_block_tokens);
    s->proactive.kr_blocks = (uint32_t)lround(share * smg_grid_total_blocks(&g));
    return SMG_OK;
}

int smg_sweep_scenario(const struct smg_sweep *s, size_t point, struct smg_scenario *out, struct smg_diag *diag)
{
    const char *sets[SETS_MAX];
    char name[SMG_SWEEP_NAME * (SMG_SWEEP_AXES + 1)];
    struct smg_diag found = {""};
    size_t n = 0;
    double kr_share = NAN;
    int status;

    add(&s->base, sets, &n, &kr_share);
    for (size_t a = 0; a < s->axes; a++)
        add(&smg_sweep_at(s, point, a)->set, sets, &n, &kr_share);
    status = n == SETS_MAX ? SMG_ERR_RANGE : smg_scenario_load(NULL, sets, n, out, &found);
    if (!status && !isnan(kr_share))
        status = set_share(out, kr_share, &found);
    if (!status)
        return SMG_OK;
    smg_sweep_name(s, point, name, sizeof name);
    return smg_diag_set(diag, status, "%s: %s", name, found.text[0] ? found.text : smg_status_string(status));
}
