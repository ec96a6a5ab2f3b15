/* The requests of a run: all at once, Poisson arrivals, or a trace. */
#include "traces/workload.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

static int needs_file(const struct smg_scenario *s, struct smg_diag *diag)
{
    return s->workload.file[0] != '\0'
               ? SMG_OK
               : smg_diag_set(diag, SMG_ERR_INVALID, "key 'workload.file': workload.kind trace needs a file");
}

static int make_from_trace(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    struct smg_diag found = {""};
    int status = needs_file(s, diag);

    if (status != SMG_OK) {
        return status;
    }
    w->synthetic_workload = 0;
    status = smg_trace_load(s->workload.file, s->workload.format, s->workload.limit, s->workload.speedup, s->prefix_hit,
                            &w->requests, &w->n_requests, &found);
    if (status == SMG_OK) {
        w->workload_note = found;
    } else if (diag != NULL) {
        *diag = found;
    }
    return status;
}

/* The gap before an arrival of a Poisson process, by inversion; log1p keeps small gaps exact and never sees log(0). */
static double exponential_gap(struct smg_rng *rng, double rate)
{
    return -log1p(-smg_rng_uniform(rng)) / rate;
}

static int make_alike(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    uint32_t n = s->workload.requests, prompt = s->workload.prompt_tokens, i;
    struct smg_rng rng;
    double now_s = 0;

    w->requests = calloc(n, sizeof(*w->requests));
    if (w->requests == NULL) {
        return smg_diag_set(diag, SMG_ERR_NOMEM, "out of memory for %u requests", n);
    }
    smg_rng_init(&rng, s->seed, "arrivals");
    for (i = 0; i < n; i++) {
        now_s += s->workload.kind == SMG_WORKLOAD_POISSON && i > 0 ? exponential_gap(&rng, s->workload.rate) : 0;
        w->requests[i].arrival_s = now_s;
        w->requests[i].prompt_tokens = prompt;
        w->requests[i].output_tokens = s->workload.output_tokens;
        w->requests[i].hit_tokens = (uint32_t)(s->prefix_hit * prompt);
    }
    w->n_requests = n;
    w->synthetic_workload = 1;
    return SMG_OK;
}

/* Written back into the scenario, so that the resolved one states the length that was used. */
static int settle_prompt(struct smg_scenario *s, struct smg_diag *diag)
{
    if (s->workload.prompt_tokens_set) {
        return SMG_OK;
    }
    if (smg_dataset_tokens(s->workload.dataset, &s->workload.prompt_tokens, diag) != SMG_OK) {
        return SMG_ERR_NOT_FOUND;
    }
    s->workload.prompt_tokens_set = 1;
    return SMG_OK;
}

int smg_workload_make(struct smg_world *w, struct smg_diag *diag)
{
    int status;

    if (w->scenario.workload.kind == SMG_WORKLOAD_TRACE) {
        return make_from_trace(w, diag);
    }
    status = settle_prompt(&w->scenario, diag);
    return status == SMG_OK ? make_alike(w, diag) : status;
}
