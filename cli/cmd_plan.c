/* smartgen plan: closed forms, as a table for people or as JSON. */
#include <jansson.h>
#include <math.h>

#include "cli/cli.h"
#include "cli/plan_words.h"
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
        "{s:s, s:s, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, "
        "s:o}",
        "model", w->model.name, "scheme", w->scheme->name, "tokens", (json_int_t)p->prompt_tokens, "output_tokens",
        (json_int_t)p->output_tokens, "sharers", (int)p->sharers, "batch", (int)p->batch, "kv_bytes_per_token",
        (json_int_t)p->kv_bytes_per_token, "kv_bytes", (json_int_t)b->kv_bytes, "metadata_bytes", (json_int_t)b->metadata_bytes,
        "tp_s", b->tp_s, "tt_s", b->tt_s, "window_s", b->window_s, "kr_raw", (json_int_t)b->kr_raw, "kr_blocks",
        (json_int_t)b->kr_blocks, "total_blocks", (json_int_t)b->total_blocks, "mode", mode(p), "proactive_bytes",
        (json_int_t)p->proactive_bytes, "on_demand_bytes_first_step", (json_int_t)p->on_demand_bytes_step, "speculative_bytes",
        (json_int_t)p->speculative_bytes, "on_demand_ratio", real(p->on_demand_ratio), "ttft_s", real(p->ttft_s), "ttst_s",
        real(p->ttst_s), "tbt_s", real(p->tbt_s), "tbt_at_least_s", real(p->grants_tbt_s));
    int bad = !j;

    if (!bad)
        bad = json_object_set_new(j, "utilisation",
                                  json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "prefill_gpu", real(p->prefill_gpu), "prefill_link",
                                            real(p->prefill_link), "decode_link", real(p->decode_link), "decode_lane",
                                            real(p->decode_lane), "decode_memory", real(p->decode_memory), "prefill_memory",
                                            real(p->prefill_memory)));
    if (!bad)
        bad = json_object_set_new(j, "synthetic",
                                  json_pack("{s:b, s:b, s:b}", "importance", w->synthetic_importance, "selection",
                                            w->synthetic_selection, "workload", w->synthetic_workload));
    if (!bad)
        bad = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || printf("\n") < 0;
    json_decref(j);
    return bad;
}

/* ---- Table: a name, the number for people, the exact one, a remark ---- */

static void row(const char *name, const char *human, const char *exact, const char *remark)
{
    printf("  %-24s %12s", name, human);
    if (exact[0] || remark[0])
        printf("  %20s", exact);
    printf("%s%s\n", remark[0] ? "  " : "", remark);
}

static void row_bytes(const char *name, uint64_t bytes, const char *remark)
{
    char human[32], exact[32];

    smg_plan_bytes((double)bytes, human, sizeof human);
    snprintf(exact, sizeof exact, "%llu B", (unsigned long long)bytes);
    row(name, human, exact, remark);
}

static void row_seconds(const char *name, double seconds, const char *remark)
{
    char human[32], exact[32] = "";

    smg_plan_seconds(seconds, human, sizeof human);
    if (isfinite(seconds))
        snprintf(exact, sizeof exact, "%.9g s", seconds);
    row(name, human, exact, remark);
}

static void row_count(const char *name, uint32_t n, const char *remark)
{
    char text[32];

    snprintf(text, sizeof text, "%u", n);
    row(name, text, "", remark);
}

static void row_share(const char *name, double share, const char *remark)
{
    char text[32] = "-", exact[32] = "";

    if (isfinite(share)) {
        snprintf(text, sizeof text, "%.1f %%", 100 * share);
        snprintf(exact, sizeof exact, "%.9g", share);
    }
    row(name, text, exact, remark);
}

static void print_request(const struct smg_world *w, const struct smg_plan *p)
{
    const struct smg_budget_result *b = &p->budget;
    char remark[96];

    printf("\nModel and prompt\n");
    row("model", w->model.name, "", "");
    row_count("prompt tokens", p->prompt_tokens, "mean of the workload");
    row_count("output tokens", p->output_tokens, "");
    row_bytes("KV per token", p->kv_bytes_per_token, "");
    row_bytes("KV of the prompt", b->kv_bytes, "");
    row_bytes("selector metadata", b->metadata_bytes, "");

    printf("\nWindow: what fits behind prefill\n");
    row_seconds("prefill Tp", b->tp_s, "");
    snprintf(remark, sizeof remark, "%u in transition share the decode link", p->sharers);
    row_seconds("full transfer Tt", b->tt_s, remark);
    row_seconds("window Tp (L-1)/L", b->window_s, "");
    snprintf(remark, sizeof remark, "of %u; Eq. 2 before clipping: %u", b->total_blocks, b->kr_raw);
    row_count("Kr blocks", b->kr_blocks, remark);
    row("mode", mode(p), "", "");
}

static void print_paths(const struct smg_plan *p)
{
    double kv = (double)p->budget.kv_bytes;
    char remark[64];

    printf("\nBytes of a request, by path\n");
    row_bytes("metadata", p->budget.metadata_bytes, "");
    snprintf(remark, sizeof remark, "%.1f %% of the KV: the Kr set", 100 * (double)p->proactive_bytes / kv);
    row_bytes("pushed (proactive)", p->proactive_bytes, remark);
    snprintf(remark, sizeof remark, "ratio %.3f of the selected entries", p->on_demand_ratio);
    if (p->output_tokens < 2)
        row("on demand", "none", "", "prefill makes the only token");
    else if (p->evicts)
        row("on demand", "none", "", "absent entries are left out");
    else
        row_bytes("on demand, first step", p->on_demand_bytes_step, remark);
    row_bytes("speculative, in all", p->speculative_bytes, "");
}

static void print_latencies(const struct smg_plan *p)
{
    char needs[32], at_least[32];

    printf("\nLatency, closed form (decode batch %u)\n", p->batch);
    row_seconds("TTFT", p->ttft_s, "from arrival, nothing queued");
    row_seconds("TTST", p->ttst_s, "second token, after the first");
    row_seconds("TBT", p->tbt_s, "");
    if (smg_plan_is_behind(p)) {
        smg_plan_seconds(p->grants_step_s, needs, sizeof needs);
        smg_plan_seconds(p->grants_tbt_s, at_least, sizeof at_least);
        printf("  warning: speculation needs the decode link for %s a step, over %u steps: TBT will be %s or more\n", needs,
               p->grants_steps, at_least);
    }
}

/* fmax passes over NAN. */
static double busiest(const struct smg_plan *p)
{
    return fmax(fmax(p->prefill_gpu, p->prefill_link), fmax(p->decode_link, p->decode_lane));
}

static const char *load(double share)
{
    return share >= 1 ? "overloaded" : "";
}

static const char *room(double share, int too_large)
{
    return share > 1 && !too_large ? "fewer will run together" : "";
}

static void print_pools(const struct smg_plan *p)
{
    printf("\nPools: utilisation%s\n", isnan(p->prefill_gpu) ? " (none: a batch has no rate)" : "");
    row_share("prefill GPU", p->prefill_gpu, load(p->prefill_gpu));
    row_share("prefill link", p->prefill_link, load(p->prefill_link));
    row_share("decode link", p->decode_link, load(p->decode_link));
    row_share("decode lane", p->decode_lane, load(p->decode_lane));
    if (busiest(p) >= 0.8)
        printf("  warning: a utilisation is at 80 %% or above: queueing makes the closed form too low\n");

    printf("\nMemory of an instance\n");
    row_share("decode memory", p->decode_memory, room(p->decode_memory, p->decode_too_large));
    row_share("prefill memory", p->prefill_memory, room(p->prefill_memory, p->prefill_too_large));
    if (p->decode_too_large)
        printf("  one request needs more than the decode memory of an instance: requests will fail\n");
    if (p->prefill_too_large)
        printf("  one request needs more than the prefill memory of an instance: requests will fail\n");
}

static void print_table(const struct smg_world *w, const struct smg_plan *p)
{
    printf("%s, scheme %s, %u requests of about %u + %u tokens, %u prefill and %u decode instances\n", w->model.name,
           w->scheme->name, w->n_requests, p->prompt_tokens, p->output_tokens, w->prefill_instances, w->decode_instances);
    print_request(w, p);
    print_paths(p);
    print_latencies(p);
    print_pools(p);
    printf("\n");
    smg_cli_synthetic(w, 0, "");
    smg_plan_conclude(w, p, stdout);
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
    return code;
}
