/* Keys that were given and cannot have an effect, because of what other keys say. Only sure cases: a line here is shown to
 * people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/scheme.h"
#include "traces/scenario.h"
#include "traces/scenario_origin.h"
#include "traces/world.h"

struct rule {
    const char *key;
    int (*in_vain)(const struct smg_scenario *s); /* NULL: always */
    const char *because;                          /* the key whose value is the reason; NULL: why says it */
    const char *why;
};

static int no_trace(const struct smg_scenario *s)
{
    return s->workload.kind != SMG_WORKLOAD_TRACE;
}

static int from_trace(const struct smg_scenario *s)
{
    return s->workload.kind == SMG_WORKLOAD_TRACE;
}

static int no_poisson(const struct smg_scenario *s)
{
    return s->workload.kind != SMG_WORKLOAD_POISSON;
}

static int length_given(const struct smg_scenario *s)
{
    return s->workload.kind != SMG_WORKLOAD_TRACE && s->workload.prompt_tokens_set;
}

/* The scheme does not speculate even where the scenario lets it. A plug-in may do as it likes. */
static int never_speculates(const struct smg_scenario *s)
{
    const struct smg_scheme *scheme = s->policy[0] == '\0' ? smg_scheme_find(s->scheme) : NULL;
    struct smg_scenario willing = *s;
    struct smg_features features;

    if (scheme == NULL) {
        return 0;
    }
    willing.speculative.enabled = 1;
    scheme->features(&willing, &features);
    return !features.speculative;
}

/* What the scheme makes of a scenario; false: a plug-in decides, which may do as it likes. */
static int features_of(const struct smg_scenario *s, struct smg_features *out)
{
    const struct smg_scheme *scheme = s->policy[0] == '\0' ? smg_scheme_find(s->scheme) : NULL;

    memset(out, 0, sizeof(*out));
    if (scheme != NULL) {
        scheme->features(s, out);
    }
    return scheme != NULL;
}

/* Everything is pushed, whatever the budget. */
static int always_full(const struct smg_scenario *s)
{
    struct smg_features f;

    return features_of(s, &f) && f.always_full;
}

static int fetches_nothing(const struct smg_scenario *s)
{
    struct smg_features f;

    return features_of(s, &f) && (f.always_full || f.evict);
}

/* Missing entries come one after the other, whatever on_demand.parallel says. */
static int always_serial(const struct smg_scenario *s)
{
    struct smg_scenario willing = *s;
    struct smg_features f;

    willing.on_demand.parallel = 1;
    return features_of(&willing, &f) && !f.parallel && !f.always_full && !f.evict;
}

static int switched_serial(const struct smg_scenario *s)
{
    return !always_serial(s) && !fetches_nothing(s) && s->policy[0] == '\0' && !s->on_demand.parallel;
}

/* Attention reads all that is there, so nothing is chosen. */
static int chooses_nothing(const struct smg_scenario *s)
{
    struct smg_features f;

    return features_of(s, &f) && (f.on_gpu || f.attend_present);
}

/* Codes stay on the GPU, all of them. */
static int all_on_gpu(const struct smg_scenario *s)
{
    struct smg_features f;

    return features_of(s, &f) && f.on_gpu;
}

/* Only layers 0 and 1 are pushed. */
static int not_proactive(const struct smg_scenario *s)
{
    return !always_full(s) && s->policy[0] == '\0' && !s->proactive.enabled;
}

/* The scheme has an order of its own, and it is another one. */
static int fixes_ranking(const struct smg_scenario *s)
{
    struct smg_features f;

    return features_of(s, &f) && strcmp(f.ranking, s->proactive.ranking) != 0;
}

/* The order is that of speculation too. */
static int nothing_to_rank(const struct smg_scenario *s)
{
    return not_proactive(s) && !fixes_ranking(s) && (never_speculates(s) || !s->speculative.enabled);
}

static int switched_off(const struct smg_scenario *s)
{
    return !never_speculates(s) && s->policy[0] == '\0' && !s->speculative.enabled;
}

/* Then nothing computes scores that a threshold could be held against. */
static int no_kernels(const struct smg_scenario *s)
{
    return s->emu.compute != SMG_EMU_KERNELS;
}

static int no_hack(const struct smg_scenario *s)
{
    return s->policy[0] == '\0' && strcmp(s->scheme, "hack") != 0;
}

static int no_infinigen(const struct smg_scenario *s)
{
    return s->selector != SMG_SELECTOR_INFINIGEN;
}

static int no_hata(const struct smg_scenario *s)
{
    return s->selector != SMG_SELECTOR_HATA;
}

static int idle_prefill(const struct smg_scenario *s)
{
    return smg_instance_idle(&s->prefill);
}

static int idle_decode(const struct smg_scenario *s)
{
    return smg_instance_idle(&s->decode);
}

static int nobody_dies(const struct smg_scenario *s)
{
    return s->faults.instance == 0;
}

static const char all_given[] = "has no effect: every key that it stands for is given";

static const struct rule rules[] = {
    {"prefill.instance", idle_prefill, NULL, all_given},
    {"decode.instance", idle_decode, NULL, all_given},
    {"workload.file", no_trace, "workload.kind", NULL},
    {"workload.format", no_trace, "workload.kind", NULL},
    {"workload.limit", no_trace, "workload.kind", NULL},
    {"workload.speedup", no_trace, "workload.kind", NULL},
    {"workload.rate", no_poisson, "workload.kind", NULL},
    {"workload.requests", from_trace, "workload.kind", NULL},
    {"workload.prompt_tokens", from_trace, "workload.kind", NULL},
    {"workload.output_tokens", from_trace, "workload.kind", NULL},
    {"workload.dataset", from_trace, "workload.kind", NULL},
    {"workload.dataset", length_given, "workload.prompt_tokens", NULL},
    {"proactive.enabled", always_full, "scheme", NULL},
    {"proactive.kr_blocks", always_full, "scheme", NULL},
    {"proactive.budget", always_full, "scheme", NULL},
    {"proactive.kr_blocks", not_proactive, "proactive.enabled", NULL},
    {"proactive.budget", not_proactive, "proactive.enabled", NULL},
    {"proactive.ranking", fixes_ranking, "scheme", NULL},
    {"proactive.ranking", nothing_to_rank, "proactive.enabled", NULL},
    {"on_demand.parallel", fetches_nothing, "scheme", NULL},
    {"on_demand.reorder", fetches_nothing, "scheme", NULL},
    {"on_demand.reuse", fetches_nothing, "scheme", NULL},
    {"on_demand.scatter_limit", fetches_nothing, "scheme", NULL},
    {"on_demand.reorder", always_serial, "scheme", NULL},
    {"on_demand.scatter_limit", always_serial, "scheme", NULL},
    {"on_demand.reorder", switched_serial, "on_demand.parallel", NULL},
    {"on_demand.scatter_limit", switched_serial, "on_demand.parallel", NULL},
    {"selector", chooses_nothing, "scheme", NULL},
    {"selection.cap", all_on_gpu, "scheme", NULL},
    {"selection.natural", all_on_gpu, "scheme", NULL},
    {"gdr", all_on_gpu, "scheme", NULL},
    {"speculative.ratio", never_speculates, "scheme", NULL},
    {"speculative.start", never_speculates, "scheme", NULL},
    {"speculative.queue", never_speculates, "scheme", NULL},
    {"speculative.ratio", switched_off, "speculative.enabled", NULL},
    {"speculative.start", switched_off, "speculative.enabled", NULL},
    {"speculative.queue", switched_off, "speculative.enabled", NULL},
    {"selection.natural", no_infinigen, "selector", NULL},
    {"selection.partial_ratio", no_infinigen, "selector", NULL},
    {"selection.hash_bits", no_hata, "selector", NULL},
    {"selection.alpha", no_kernels, NULL,
     "has no effect: what the threshold selects is given by selection.natural; emu.compute: kernels counts by it"},
    {"selection.batch_mean", NULL, NULL, "has no effect yet: each request counts by itself"},
    {"faults.at_s", nobody_dies, "faults.instance", NULL},
    {"faults.detect_s", nobody_dies, "faults.instance", NULL},
    {"hack.layout", no_hack, "scheme", NULL},
    {"hack.bits", no_hack, "scheme", NULL},
    {"hack.group", no_hack, "scheme", NULL},
    {"hack.fused", no_hack, "scheme", NULL},
};

/* A value that is the default is no wish of its own: files that spell every key out are fine. */
static int is_default(const struct smg_key *k, const struct smg_scenario *s)
{
    struct smg_scenario preset;

    smg_scenario_default(&preset);
    return memcmp((const char *)s + k->offset, (const char *)&preset + k->offset, k->bytes) == 0;
}

static int set_by_hand(const struct smg_origins *o, const char *path)
{
    size_t n;

    return path != NULL && o->key[smg_key_find(path) - smg_keys(&n)].set != NULL;
}

/* A file serves several runs: what it says for another one than --set now asks for is no contradiction. */
static int meant(const struct smg_origins *o, const struct rule *r)
{
    return smg_origins_given(o, r->key) && (set_by_hand(o, r->key) || !set_by_hand(o, r->because));
}

/* The value as a scenario file has it. */
static void value_text(const char *path, const struct smg_scenario *s, char *text, size_t text_bytes)
{
    json_t *value = smg_key_json(smg_key_find(path), s);
    char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);

    snprintf(text, text_bytes, "%.40s", json_is_string(value) ? json_string_value(value) : dumped != NULL ? dumped : "?");
    free(dumped);
    json_decref(value);
}

static void tell(const struct rule *r, const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg)
{
    char at[300], value[48], text[512];

    smg_origins_text(o, r->key, at, sizeof(at));
    if (r->because == NULL) {
        snprintf(text, sizeof(text), "%skey '%s': %s", at, r->key, r->why);
    } else {
        value_text(r->because, s, value, sizeof(value));
        snprintf(text, sizeof(text), "%skey '%s': has no effect with %s: %s", at, r->key, r->because, value);
    }
    warn(arg, text);
}

/* A file of comments, or one that is still to be written. */
static void tell_empty(const struct smg_origins *o, smg_warn_fn warn, void *arg)
{
    size_t i, n;
    char text[320];

    (void)smg_keys(&n);
    for (i = 0; i < n && o->key[i].line == 0; i++) {
    }
    if (o->file != NULL && i == n) {
        snprintf(text, sizeof(text), "%.250s: gives no key: the default scenario holds", o->file);
        warn(arg, text);
    }
}

void smg_origins_in_vain(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg)
{
    size_t i;

    tell_empty(o, warn, arg);

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct rule *r = &rules[i];

        if (meant(o, r) && !is_default(smg_key_find(r->key), s) && (r->in_vain == NULL || r->in_vain(s))) {
            tell(r, o, s, warn, arg);
        }
    }
}

void smg_origins_no_emulation(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg)
{
    size_t i, n;
    const struct smg_key *key = smg_keys(&n);

    for (i = 0; i < n; i++) {
        const struct rule r = {key[i].path, NULL, NULL, "has no effect: only an emulation reads it"};

        if (strncmp(r.key, "emu.", 4) == 0 && set_by_hand(o, r.key) && !is_default(&key[i], s)) {
            tell(&r, o, s, warn, arg);
        }
    }
}

void smg_origins_no_simulation(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg)
{
    static const struct rule only[] = {
        {"emu.backend", no_kernels, "emu.compute", NULL},
        {"engine", NULL, NULL, "has no effect: only a simulation reads it"},
        {"faults.instance", NULL, NULL, "has no effect: only a simulation reads it; emu.fault does it here"},
        {"network.latency_us", NULL, NULL,
         "has no effect: only a simulation reads it; the latency of an emulation is its fabric's"},
    };
    size_t i;

    for (i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
        if (set_by_hand(o, only[i].key) && !is_default(smg_key_find(only[i].key), s) &&
            (only[i].in_vain == NULL || only[i].in_vain(s))) {
            tell(&only[i], o, s, warn, arg);
        }
    }
}
