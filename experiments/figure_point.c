/* The numbers of one point, from a run or from closed forms. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/cost.h"
#include "core/plan.h"
#include "experiments/distribution.h"
#include "experiments/figures.h"
#include "traces/world.h"

#define AT(field) offsetof(struct smg_point_result, field)

const struct smg_metric smg_metrics[] = {
    {"ttft_s", AT(ttft_s)},
    {"ttst_s", AT(ttst_s)},
    {"tbt_s", AT(tbt_s)},
    {"ttft_p95_s", AT(ttft_p95_s)},
    {"ttst_p95_s", AT(ttst_p95_s)},
    {"tbt_p95_s", AT(tbt_p95_s)},
    {"on_demand_ratio", AT(on_demand_ratio)},
    {"tp_s", AT(tp_s)},
    {"tt_s", AT(tt_s)},
    {"kv_bytes", AT(kv_bytes)},
    {"kr_blocks", AT(kr_blocks)},
    {"total_blocks", AT(total_blocks)},
    {"metadata_bytes", AT(bytes[SMG_PATH_METADATA])},
    {"proactive_bytes", AT(bytes[SMG_PATH_PUSH])},
    {"speculative_bytes", AT(bytes[SMG_PATH_SPECULATIVE])},
    {"on_demand_bytes", AT(bytes[SMG_PATH_ON_DEMAND])},
    {"control_bytes", AT(bytes[SMG_PATH_CONTROL])},
    {NULL, 0},
};

double smg_metric_of(const struct smg_metric *m, const struct smg_point_result *p)
{
    double x;

    memcpy(&x, (const char *)p + m->offset, sizeof x);
    return x;
}

static int describe(const struct smg_records *r, double (*of)(const struct smg_request_record *), double *mean, double *p95)
{
    struct smg_sample s = {0};
    double field[SMG_SAMPLE_FIELDS];
    int failed;

    for (uint32_t i = 0; i < r->n_requests; i++)
        smg_sample_add(&s, of(&r->request[i]));
    smg_sample_describe(&s, field);
    *mean = field[0];
    *p95 = field[3];
    failed = s.failed;
    smg_sample_free(&s);
    return failed ? SMG_ERR_NOMEM : SMG_OK;
}

static double run_ratio(const struct smg_records *r)
{
    double selected = 0, remote = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        selected += (double)r->request[i].selected_entries;
        remote += (double)r->request[i].remote_entries;
    }
    return selected > 0 ? remote / selected : NAN;
}

/* Token ids in order of arrival of each request; a gap needs the token before it. */
static int each_token(const struct smg_records *r, struct smg_point_result *p)
{
    double selected[SMG_POINT_TOKENS] = {0}, remote[SMG_POINT_TOKENS] = {0}, gaps[SMG_POINT_TOKENS] = {0},
           n[SMG_POINT_TOKENS] = {0};
    double *last = calloc(r->n_requests + 1, sizeof *last);

    if (!last)
        return SMG_ERR_NOMEM;
    for (size_t i = 0; i < r->n_tokens; i++) {
        const struct smg_token_record *t = &r->token[i];
        size_t at = t->token - 1;
        if (t->token > SMG_POINT_TOKENS || !t->token || t->request >= r->n_requests)
            continue;
        if (t->token > 1) {
            gaps[at] += t->time_s - last[t->request];
            n[at]++;
        }
        last[t->request] = t->time_s;
        selected[at] += (double)t->selected_entries;
        remote[at] += (double)t->remote_entries;
        p->tokens = t->token > p->tokens ? t->token : p->tokens;
    }
    for (size_t i = 0; i < SMG_POINT_TOKENS; i++) {
        p->gap_s[i] = n[i] > 0 ? gaps[i] / n[i] : NAN;
        p->token_ratio[i] = selected[i] > 0 ? remote[i] / selected[i] : NAN;
    }
    free(last);
    return SMG_OK;
}

/* What does not depend on the run. */
static void inputs(const struct smg_world *w, uint32_t sharers, struct smg_point_result *p)
{
    struct smg_budget_result b;

    smg_budget_decide(w, &w->requests[0], w->scenario.prefill.nodes, sharers, &b);
    p->tp_s = b.tp_s;
    p->tt_s = b.tt_s;
    p->kr_blocks = b.kr_blocks;
    p->total_blocks = b.total_blocks;
    for (uint32_t i = 0; i < w->n_requests; i++)
        p->kv_bytes += (double)smg_model_prompt_bytes(&w->model, w->requests[i].prompt_tokens);
    p->synthetic_importance = w->synthetic_importance;
    p->synthetic_selection = w->synthetic_selection;
    p->synthetic_workload = w->synthetic_workload;
}

static uint32_t together(const struct smg_world *w)
{
    return w->n_requests < w->prefill_instances ? w->n_requests : w->prefill_instances;
}

int smg_point_of_run(const struct smg_world *w, const struct smg_records *r, const struct smg_run_stats *s,
                     struct smg_point_result *out)
{
    struct smg_point_result p;

    memset(&p, 0, sizeof p);
    if (describe(r, smg_record_ttft_s, &p.ttft_s, &p.ttft_p95_s) || describe(r, smg_record_ttst_s, &p.ttst_s, &p.ttst_p95_s) ||
        describe(r, smg_record_tbt_mean_s, &p.tbt_s, &p.tbt_p95_s) || each_token(r, &p))
        return SMG_ERR_NOMEM;
    inputs(w, together(w), &p);
    p.on_demand_ratio = run_ratio(r);
    p.kr_blocks = r->request[0].kr_blocks;
    for (int k = 0; k < SMG_PATHS; k++)
        p.bytes[k] = (double)s->received_bytes[k];
    *out = p;
    return SMG_OK;
}

static void take_plan(const struct smg_world *w, const struct smg_plan *plan, struct smg_point_result *p)
{
    inputs(w, plan->sharers, p);
    p->ttft_s = plan->ttft_s;
    p->ttst_s = plan->ttst_s;
    p->tbt_s = plan->tbt_s;
    p->on_demand_ratio = plan->on_demand_ratio;
    p->ttft_p95_s = p->ttst_p95_s = p->tbt_p95_s = NAN;
    for (int k = 0; k < SMG_PATHS; k++)
        p->bytes[k] = NAN;
    p->bytes[SMG_PATH_METADATA] = (double)plan->budget.metadata_bytes * w->n_requests;
    p->bytes[SMG_PATH_PUSH] = (double)plan->proactive_bytes * w->n_requests;
    p->bytes[SMG_PATH_SPECULATIVE] = (double)plan->speculative_bytes * w->n_requests;
}

int smg_point_of_plan(const struct smg_scenario *s, struct smg_point_result *out, struct smg_diag *diag)
{
    struct smg_world w;
    struct smg_plan plan;
    int status = smg_world_load(s, &w, diag);

    memset(out, 0, sizeof *out);
    if (status)
        return status;
    status = smg_plan_make(&w, &plan);
    if (!status)
        take_plan(&w, &plan, out);
    smg_world_free(&w);
    return status;
}
