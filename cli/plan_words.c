#include "cli/plan_words.h"

#include <math.h>
#include <string.h>

#include "core/plugin.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "traces/world.h"

/* ---- Units ---- */

void smg_plan_bytes(double bytes, char *out, size_t out_bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t i = 0;

    while (bytes >= 999.95 && i + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1000;
        i++;
    }
    snprintf(out, out_bytes, i ? "%#.4g %s" : "%.0f %s", bytes, unit[i]);
}

void smg_plan_seconds(double seconds, char *out, size_t out_bytes)
{
    if (!isfinite(seconds))
        snprintf(out, out_bytes, "-");
    else if (seconds >= 999.95 || seconds <= 0)
        snprintf(out, out_bytes, "%.0f s", seconds);
    else if (seconds >= 0.99995)
        snprintf(out, out_bytes, "%#.4g s", seconds);
    else if (seconds >= 0.99995e-3)
        snprintf(out, out_bytes, "%#.4g ms", seconds * 1e3);
    else
        snprintf(out, out_bytes, "%#.4g us", seconds * 1e6);
}

int smg_plan_is_behind(const struct smg_plan *p)
{
    return p->grants_tbt_s > 1.1 * p->tbt_s;
}

/* ---- Another scheme ---- */

/* The plan of the same world under full transfer. Nothing of it needs an importance matrix. */
static int plan_full(const struct smg_world *w, struct smg_plan *out)
{
    struct smg_world other = *w;

    other.scheme = smg_scheme_find("full");
    snprintf(other.scenario.scheme, sizeof other.scenario.scheme, "full");
    return other.scheme ? smg_plan_make(&other, out) : SMG_ERR_NOT_FOUND;
}

/* The plan under smartgen, whose matrix has to be read first. */
static int plan_smartgen(const struct smg_world *w, struct smg_plan *out)
{
    struct smg_scenario s = w->scenario;
    struct smg_diag diag;
    struct smg_world other;
    int status;

    snprintf(s.scheme, sizeof s.scheme, "smartgen");
    s.proactive.kr_blocks = SMG_KR_AUTO; /* these have no effect under the scheme that is planned */
    s.proactive.enabled = 1;
    if (w->plugin && w->plugin->scheme) { /* it would take the place of smartgen again; one that only ranks stays */
        s.policy[0] = '\0';
        if (!smg_rank_find(s.proactive.ranking))
            snprintf(s.proactive.ranking, sizeof s.proactive.ranking, "profile");
    }
    status = smg_world_load(&s, &other, &diag);
    if (status)
        return status;
    status = smg_plan_make(&other, out);
    smg_world_free(&other);
    return status;
}

static int same(double now, double other)
{
    return fabs(now - other) < 0.005 * other;
}

/* "TTST 464.3 ms instead of 2.18 s, TBT the same": p beside other. */
static void compare(const char *name, double now, double other, FILE *f)
{
    char a[32], b[32];

    smg_plan_seconds(now, a, sizeof a);
    smg_plan_seconds(other, b, sizeof b);
    if (same(now, other))
        fprintf(f, "%s the same (%s)", name, a);
    else
        fprintf(f, "%s %s instead of %s", name, a, b);
}

static void compare_both(const struct smg_plan *p, const struct smg_plan *other, FILE *f)
{
    char a[32], b[32];

    compare("TTST", p->ttst_s, other->ttst_s, f);
    if (smg_plan_is_behind(p)) {
        smg_plan_seconds(p->grants_tbt_s, a, sizeof a);
        smg_plan_seconds(other->tbt_s, b, sizeof b);
        fprintf(f, ", TBT at least %s (speculation fills the decode link) instead of %s", a, b);
    } else if (isfinite(p->tbt_s)) {
        fprintf(f, ", ");
        compare("TBT", p->tbt_s, other->tbt_s, f);
    }
    fprintf(f, ". ");
}

/* All of it is pushed: because it fits, or because the scenario says so. What is made of it then is the scheme's. */
static void everything(const struct smg_world *w, const struct smg_plan *p, const struct smg_features *features, FILE *f)
{
    struct smg_plan other;
    int forced = p->budget.kr_raw < p->budget.total_blocks, alike;

    fprintf(f, "selective transfer is off: ");
    if (forced)
        fprintf(f, "proactive.kr_blocks has everything pushed, which takes %.3g times the window",
                p->budget.tt_s / p->budget.window_s);
    else
        fprintf(f, "all of the KV fits behind prefill, so everything is pushed");
    if (features->attend_present)
        fprintf(f, ", nothing is left out, and attention reads all of it");
    if (plan_full(w, &other)) {
        fprintf(f, ". ");
        return;
    }
    alike = same(p->ttst_s, other.ttst_s) && (!isfinite(p->tbt_s) || same(p->tbt_s, other.tbt_s));
    fprintf(f, alike ? "; full transfer does as well. " : ". Against full transfer: ");
    if (!alike)
        compare_both(p, &other, f);
}

static void selective(const struct smg_world *w, const struct smg_plan *p, FILE *f)
{
    struct smg_features features;
    struct smg_plan other;

    smg_scheme_features(w, &features);
    if (features.always_full) {
        fprintf(f, "selective transfer is off: scheme %s sends everything before decoding starts", w->scheme->name);
        if (!features.on_gpu && !plan_smartgen(w, &other)) {
            fprintf(f, "; smartgen would have ");
            compare_both(&other, p, f);
            return;
        }
        fprintf(f, ". ");
        return;
    }
    if (p->budget.full) {
        everything(w, p, &features, f);
        return;
    }
    fprintf(f, "selective transfer is on: all of the KV needs %.3g times the window, ", p->budget.tt_s / p->budget.window_s);
    if (p->budget.kr_blocks > p->budget.kr_raw && p->budget.kr_blocks > p->budget.dense_blocks)
        fprintf(f,
                "of which %.0f %% fits behind prefill; proactive.kr_blocks has %.0f %% pushed, and what arrives late is not in "
                "these forms",
                100.0 * p->budget.kr_raw / p->budget.total_blocks, 100 * (double)p->proactive_bytes / (double)p->budget.kv_bytes);
    else
        fprintf(f, "so %.0f %% of it is pushed during prefill", 100 * (double)p->proactive_bytes / (double)p->budget.kv_bytes);
    if (p->evicts)
        fprintf(f, " and the rest is left out");
    fprintf(f, ". ");
    if (plan_full(w, &other))
        return;
    fprintf(f, "Against full transfer: ");
    compare_both(p, &other, f);
}

/* ---- What limits: each part of the hardware twice as fast ---- */

static void faster_link(struct smg_world *w)
{
    w->scenario.decode.link_gbps *= 2;
}

static void faster_gather(struct smg_world *w)
{
    w->host.gather_Bps_per_vcpu *= 2;
}

static void faster_pcie(struct smg_world *w)
{
    w->decode_gpu.pcie_Bps *= 2;
}

static void faster_memory(struct smg_world *w)
{
    w->decode_gpu.memory_Bps *= 2;
}

static void faster_launch(struct smg_world *w)
{
    w->decode_gpu.decode_layer_overhead_s /= 2;
    w->decode_gpu.hack_layer_overhead_s /= 2;
}

static const struct {
    const char *name;
    void (*twice)(struct smg_world *w);
} parts[] = {{"the decode link", faster_link},
             {"the CPU gather of KV entries", faster_gather},
             {"the PCIe link of the decode GPU", faster_pcie},
             {"the memory of the decode GPU", faster_memory},
             {"the fixed time per layer of the decode GPU", faster_launch}};

/* The part that shortens a latency most when it is twice as fast, NULL: none does by 2 %. */
static const char *limit(const struct smg_world *w, double now, int second_token, double *best_out)
{
    const char *name = NULL;

    *best_out = 0.98 * now;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct smg_world other = *w;
        struct smg_plan p;
        double x;
        parts[i].twice(&other);
        if (smg_plan_make(&other, &p))
            continue;
        x = second_token ? p.ttst_s : p.tbt_s;
        if (x >= *best_out)
            continue;
        *best_out = x;
        name = parts[i].name;
    }
    return name;
}

static void limited(const struct smg_world *w, const char *what, double now, int second_token, FILE *f)
{
    double best;
    const char *name = limit(w, now, second_token, &best);
    char a[32], b[32];

    if (!name) {
        fprintf(f, "%s by no single part", what);
        return;
    }
    smg_plan_seconds(now, a, sizeof a);
    smg_plan_seconds(best, b, sizeof b);
    fprintf(f, "%s by %s (twice as fast: %s -> %s)", what, name, a, b);
}

/* The pool that the workload fills most; NAN of a batch passes. */
static void busiest(const struct smg_plan *p, FILE *f)
{
    const struct {
        const char *name;
        double share;
    } pool[] = {{"prefill GPUs", p->prefill_gpu},
                {"prefill links", p->prefill_link},
                {"decode links", p->decode_link},
                {"decode lanes", p->decode_lane}};
    size_t most = 0;

    for (size_t i = 1; i < sizeof pool / sizeof pool[0]; i++)
        if (pool[i].share > pool[most].share)
            most = i;
    if (isfinite(pool[most].share))
        fprintf(f, " The busiest pool: %s, %.0f %%%s.", pool[most].name, 100 * pool[most].share,
                pool[most].share >= 1 ? ", which cannot keep up" : "");
}

void smg_plan_conclude(const struct smg_world *w, const struct smg_plan *p, FILE *f)
{
    fprintf(f, "In short, by these closed forms: ");
    if (p->output_tokens < 2)
        fprintf(f, "prefill makes the only token, so nothing is transferred. ");
    else
        selective(w, p, f);
    fprintf(f, "TTFT is limited by prefill");
    if (p->output_tokens > 1) {
        fprintf(f, ", ");
        limited(w, "TTST", p->ttst_s, 1, f);
    }
    if (smg_plan_is_behind(p)) {
        fprintf(f, ", TBT by the decode link");
    } else if (p->output_tokens > 2) {
        fprintf(f, ", ");
        limited(w, "TBT", p->tbt_s, 0, f);
    }
    fprintf(f, ".");
    busiest(p, f);
    fprintf(f, "\n");
}
