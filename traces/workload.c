/* The requests of a run: all at once, Poisson arrivals, or a trace. */
#include "traces/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "traces/data_dir.h"
#include "traces/lengths.h"
#include "traces/text.h"
#include "traces/world.h"

static int needs_file(const struct smg_scenario *s, struct smg_diag *diag)
{
    return s->workload.file[0] != '\0'
               ? SMG_OK
               : smg_diag_set(diag, SMG_ERR_INVALID, "key 'workload.kind': trace needs a file, given by key 'workload.file'");
}

static int draws_lengths(const struct smg_scenario *s)
{
    return strcmp(s->workload.lengths, "mean") != 0;
}

static int make_from_trace(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    struct smg_diag found = {""};
    int status = needs_file(s, diag);

    if (status != SMG_OK) {
        return status;
    }
    if (draws_lengths(s)) {
        return smg_diag_set(
            diag, SMG_ERR_INVALID,
            "key 'workload.lengths': expected mean with workload.kind trace, whose requests have lengths, found '%.100s'",
            s->workload.lengths);
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

/* lengths NULL: all requests are alike. Arrivals and lengths are drawn from streams of their own, so that the same requests
 * arrive at another rate. */
static int make_synthetic(struct smg_world *w, const struct smg_lengths *lengths, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    uint32_t n = s->workload.requests, i;
    struct smg_rng arrivals, draws;
    double now_s = 0;

    w->requests = calloc(n, sizeof(*w->requests));
    if (w->requests == NULL) {
        return smg_diag_set(diag, SMG_ERR_NOMEM, "out of memory for %u requests", n);
    }
    smg_rng_init(&arrivals, s->seed, "arrivals");
    smg_rng_init(&draws, s->seed, "lengths");
    for (i = 0; i < n; i++) {
        struct smg_request_spec *q = &w->requests[i];

        now_s += s->workload.kind == SMG_WORKLOAD_POISSON && i > 0 ? exponential_gap(&arrivals, s->workload.rate) : 0;
        q->arrival_s = now_s;
        q->prompt_tokens = s->workload.prompt_tokens;
        q->output_tokens = s->workload.output_tokens;
        if (lengths != NULL) {
            smg_lengths_draw(lengths, &draws, &q->prompt_tokens, &q->output_tokens);
        }
        q->hit_tokens = (uint32_t)(s->prefix_hit * q->prompt_tokens);
    }
    w->n_requests = n;
    w->synthetic_workload = 1;
    return SMG_OK;
}

/* Written back into the scenario, so that the resolved one states the lengths that were used. */
static int settle_lengths(struct smg_scenario *s, struct smg_diag *diag)
{
    int status = SMG_OK;

    if (!s->workload.prompt_tokens_set) {
        status = smg_dataset_tokens(s->workload.dataset, &s->workload.prompt_tokens, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    s->workload.prompt_tokens_set = 1;
    s->workload.output_tokens_set = 1;
    return SMG_OK;
}

static int make_drawn(struct smg_world *w, struct smg_diag *diag)
{
    const struct smg_scenario *s = &w->scenario;
    const char *given = s->workload.prompt_tokens_set ? "prompt_tokens" : s->workload.output_tokens_set ? "output_tokens" : NULL;
    struct smg_diag found = {""};
    struct smg_lengths *lengths;
    int status;

    if (given != NULL) {
        return smg_diag_set(diag, SMG_ERR_INVALID,
                            "key 'workload.%s': expected it absent, as workload.lengths '%.100s' draws the lengths, found %u",
                            given, s->workload.lengths,
                            s->workload.prompt_tokens_set ? s->workload.prompt_tokens : s->workload.output_tokens);
    }
    status = smg_lengths_open(s->workload.lengths, &lengths, &found);
    if (status != SMG_OK) {
        /* What is wrong inside a file begins with that file. */
        return smg_diag_set(diag, status, "%s%.480s",
                            strncmp(found.text, "key '", 5) != 0 && (status == SMG_ERR_IO || status == SMG_ERR_NOT_FOUND)
                                ? "key 'workload.lengths': "
                                : "",
                            found.text);
    }
    w->workload_note = found;
    status = make_synthetic(w, lengths, diag);
    smg_lengths_close(lengths);
    return status;
}

int smg_workload_make(struct smg_world *w, struct smg_diag *diag)
{
    int status;

    if (w->scenario.workload.kind == SMG_WORKLOAD_TRACE) {
        return make_from_trace(w, diag);
    }
    if (draws_lengths(&w->scenario)) {
        return make_drawn(w, diag);
    }
    status = settle_lengths(&w->scenario, diag);
    return status == SMG_OK ? make_synthetic(w, NULL, diag) : status;
}
