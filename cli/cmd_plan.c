/* smartgen plan: closed forms, as a table for people or as JSON. */
#include <jansson.h>
#include <math.h>

#include "cli/cli.h"
#include "core/plan.h"
#include "core/scheme.h"
#include "traces/world.h"

static const char *mode(const struct smg_plan *p)
{
    return p->budget.full ? "full" : "selective";
}

static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static int print_json(const struct smg_world *w, const struct smg_plan *p)
{
    const struct smg_budget_result *b = &p->budget;
    json_t *j = json_pack(
        "{s:s, s:s, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
        "model", w->model.name, "scheme", w->scheme->name, "tokens", (json_int_t)p->prompt_tokens, "output_tokens",
        (json_int_t)p->output_tokens, "sharers", (int)p->sharers, "batch", (int)p->batch, "kv_bytes_per_token",
        (json_int_t)p->kv_bytes_per_token, "kv_bytes", (json_int_t)b->kv_bytes, "metadata_bytes", (json_int_t)b->metadata_bytes,
        "tp_s", b->tp_s, "tt_s", b->tt_s, "window_s", b->window_s, "kr_raw", (json_int_t)b->kr_raw, "kr_blocks",
        (json_int_t)b->kr_blocks, "total_blocks", (json_int_t)b->total_blocks, "mode", mode(p), "proactive_bytes",
        (json_int_t)p->proactive_bytes, "on_demand_bytes_first_step", (json_int_t)p->on_demand_bytes_step, "speculative_bytes",
        (json_int_t)p->speculative_bytes, "on_demand_ratio", real(p->on_demand_ratio), "ttft_s", real(p->ttft_s), "ttst_s",
        real(p->ttst_s), "tbt_s", real(p->tbt_s));
    int bad = !j;

    if (!bad)
        bad = json_object_set_new(j, "utilisation",
                                  json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "prefill_gpu", real(p->prefill_gpu),
                                            "prefill_link", real(p->prefill_link), "decode_link", real(p->decode_link),
                                            "decode_lane", real(p->decode_lane), "decode_memory", real(p->decode_memory),
                                            "prefill_memory", real(p->prefill_memory)));
    if (!bad)
        bad = json_object_set_new(j, "synthetic", json_pack("{s:b, s:b, s:b}", "importance", w->synthetic_importance, "selection",
                                                            w->synthetic_selection, "workload", w->synthetic_workload));
    if (!bad)
        bad = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || printf("\n") < 0;
    json_decref(j);
    return bad;
}

static void percent(const char *name, double share)
{
    if (isnan(share))
        printf("  %-30s -\n", name);
    else
        printf("  %-30s %.1f %%%s\n", name, 100 * share, share >= 1 ? "  (overloaded)" : "");
}

static void print_on_demand(const struct smg_plan *p)
{
    if (p->evicts)
        printf("  %-30s none: absent entries are left out\n", "on demand");
    else
        printf("  %-30s %.4g MB, ratio %.3f\n", "on demand, first step", (double)p->on_demand_bytes_step * 1e-6,
               p->on_demand_ratio);
}

/* fmax passes over NAN. */
static double busiest(const struct smg_plan *p)
{
    return fmax(fmax(p->prefill_gpu, p->prefill_link), fmax(p->decode_link, p->decode_lane));
}

static void memory(const char *name, double share, int too_large)
{
    printf("  %-30s %.1f %% of an instance's%s\n", name, 100 * share,
           share > 1 && !too_large ? "  (fewer will run together)" : "");
    if (too_large)
        printf("  one request needs more than the %s of an instance: requests will fail\n", name);
}

static void print_table(const struct smg_world *w, const struct smg_plan *p)
{
    const struct smg_budget_result *b = &p->budget;

    printf("%s, scheme %s, %u requests of about %u + %u tokens, %u prefill and %u decode instances\n", w->model.name,
           w->scheme->name, w->n_requests, p->prompt_tokens, p->output_tokens, w->prefill_instances, w->decode_instances);
    printf("  %-30s %.4g s\n", "prefill Tp", b->tp_s);
    printf("  %-30s %.4g s  (%u in transition share the decode link)\n", "full transfer Tt", b->tt_s, p->sharers);
    printf("  %-30s %.4g s\n", "window Tp (L-1)/L", b->window_s);
    printf("  %-30s %u of %u  (Eq. 2 before clipping: %u), mode %s\n", "Kr blocks", b->kr_blocks, b->total_blocks, b->kr_raw,
           mode(p));
    printf("  %-30s %.4g MB of KV, %.4g MB metadata\n", "per request", (double)b->kv_bytes * 1e-6,
           (double)b->metadata_bytes * 1e-6);
    printf("  %-30s %.4g MB\n", "pushed (Kr set)", (double)p->proactive_bytes * 1e-6);
    print_on_demand(p);
    printf("  %-30s %.4g MB\n", "speculative, in all", (double)p->speculative_bytes * 1e-6);
    printf("  %-30s TTFT %.4g s, TTST %.4g s, TBT %.4g s  (decode batch %u)\n", "closed form", p->ttft_s, p->ttst_s, p->tbt_s,
           p->batch);
    percent("prefill GPU utilisation", p->prefill_gpu);
    percent("prefill link utilisation", p->prefill_link);
    percent("decode link utilisation", p->decode_link);
    percent("decode lane utilisation", p->decode_lane);
    if (busiest(p) >= 0.8)
        printf("  warning: a utilisation is at 80 %% or above: queueing makes the closed form too low\n");
    memory("decode memory", p->decode_memory, p->decode_too_large);
    memory("prefill memory", p->prefill_memory, p->prefill_too_large);
    if (w->synthetic_importance || w->synthetic_workload)
        printf("  synthetic:%s%s\n", w->synthetic_importance ? " importance" : "", w->synthetic_workload ? " workload" : "");
}

int smg_cmd_plan(const struct smg_args *a)
{
    struct smg_scenario s;
    struct smg_world w;
    struct smg_plan p;
    int code = smg_cli_world(a, NULL, &s, &w), status;

    if (code)
        return code;
    status = smg_plan_make(&w, &p);
    if (status)
        code = smg_cli_fail(status, NULL);
    else if (a->json)
        code = print_json(&w, &p) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
    else
        print_table(&w, &p);
    smg_world_free(&w);
    return fflush(stdout) && !code ? SMG_EXIT_FAILED : code;
}
