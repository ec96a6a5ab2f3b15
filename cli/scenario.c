/* The scenario of a command: read, made into a world, and what is to be told about it. And how a command fails. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "core/grid.h"
#include "core/model.h"
#include "core/plugin.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "traces/scenario.h"
#include "traces/scenario_origin.h"
#include "traces/world.h"

/* Where the keys of the program's scenario were given: it has one at most. */
static struct smg_origins origins;

int smg_cli_fail(int status, const struct smg_diag *diag)
{
    struct smg_diag explained = diag ? *diag : (struct smg_diag){""};

    smg_origins_explain(&origins, &explained);
    fprintf(stderr, "smartgen: %s\n", explained.text[0] ? explained.text : smg_status_string(status));
    switch (status) {
    case SMG_ERR_INVALID:
    case SMG_ERR_RANGE:
    case SMG_ERR_NOT_FOUND:
    case SMG_ERR_PARSE:
    case SMG_ERR_UNSUPPORTED:
    case SMG_ERR_IO:
        return SMG_EXIT_USAGE;
    default:
        return SMG_EXIT_FAILED;
    }
}

/* As the readers see it: a name with a slash or the ending .json is a path. */
static int is_path(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

/* A path that exists becomes absolute, so that a record folder can be replayed from anywhere. Other names are built-in ones,
 * unless the key can only mean a file. */
static void absolute(char name[SMG_PATH_MAX], int always_file)
{
    char *whole = always_file || is_path(name) ? realpath(name, NULL) : NULL;

    if (whole && strlen(whole) < SMG_PATH_MAX) {
        memset(name, 0, SMG_PATH_MAX);
        memcpy(name, whole, strlen(whole));
    }
    free(whole);
}

static void absolute_paths(struct smg_scenario *s)
{
    absolute(s->model, 0);
    absolute(s->policy, s->policy[0] != 0);
    absolute(s->prefill.gpu, 0);
    absolute(s->decode.gpu, 0);
    absolute(s->prefill.instance, 0);
    absolute(s->decode.instance, 0);
    absolute(s->network.nic, 0);
    absolute(s->host, 0);
    absolute(s->workload.file, s->workload.file[0] != 0);
    absolute(s->workload.lengths, strchr(s->workload.lengths, '.') != NULL);
    absolute(s->selection.file, s->selection.file[0] != 0);
    absolute(s->proactive.importance, strcmp(s->proactive.importance, "auto") != 0);
}

/* What the inputs ask for, and the model does not have or counts otherwise. */
static void warn_model(const struct smg_world *w)
{
    const struct smg_model *m = &w->model;

    if (w->over_length)
        fprintf(stderr, "smartgen: warning: %u of %u prompts are longer than the model's %u positions\n", w->over_length,
                w->n_requests, m->max_positions);
    if (smg_model_selecting_layers(m) == 0)
        fprintf(stderr,
                "smartgen: warning: no layer of model %s selects (%s): there is nothing for selective transfer to choose\n",
                m->name,
                m->layers <= SMG_DENSE_LAYERS ? "layers 0 and 1 never do, and it has no others"
                                              : "windows slide in all but layers 0 and 1");
    if (m->quantized_weights)
        fprintf(stderr,
                "smartgen: warning: model %s has quantised weights: they are counted with 16 bits each, K and V with %u\n",
                m->name, 8 * m->value_bytes);
    if (m->value_bytes > 2)
        fprintf(stderr, "smartgen: warning: model %s states float32: K and V are counted with 32 bits; most engines serve 16\n",
                m->name);
}

int smg_cli_given(const char *key)
{
    return smg_origins_given(&origins, key);
}

int smg_cli_scenario(const struct smg_args *a, const char *extra_set, struct smg_scenario *s)
{
    const char *sets[258];
    size_t n = a->n_sets;
    struct smg_diag diag = {""};
    int status;

    memcpy(sets, a->sets, n * sizeof sets[0]);
    if (extra_set)
        sets[n++] = extra_set;
    status = smg_scenario_load_origins(a->n_operands ? a->operand[0] : NULL, sets, n, s, &origins, &diag);
    if (smg_interrupted()) /* it may be why */
        return smg_cli_fail(SMG_ERR_INTERRUPTED, NULL);
    return status ? smg_cli_fail(status, &diag) : 0;
}

/* Messages name a file as it was given, so the paths become absolute last. */
int smg_cli_resolve(struct smg_scenario *s, struct smg_world *w)
{
    struct smg_diag diag = {""};
    int status = smg_world_load(s, w, &diag);

    if (!status && smg_interrupted())
        smg_world_free(w);
    if (smg_interrupted())
        return smg_cli_fail(SMG_ERR_INTERRUPTED, NULL);
    if (status)
        return smg_cli_fail(status, &diag);
    if (smg_model_note(s->model, &diag))
        smg_cli_warning(NULL, diag.text);
    absolute_paths(s);
    absolute_paths(&w->scenario);
    if (w->workload_note.text[0])
        fprintf(stderr, "smartgen: warning: %s\n", w->workload_note.text);
    warn_model(w);
    return 0;
}

void smg_cli_warning(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "smartgen: warning: %s\n", text);
}

void smg_cli_synthetic(const struct smg_world *w, int tensors, const char *indent)
{
    if (w->synthetic_importance || w->synthetic_selection || w->synthetic_workload || tensors)
        printf("%ssynthetic:%s%s%s%s\n", indent, w->synthetic_importance ? " importance" : "",
               w->synthetic_selection ? " selection" : "", w->synthetic_workload ? " workload" : "", tensors ? " tensors" : "");
}

void smg_cli_timeline(const struct smg_args *a, struct smg_world *w)
{
    if (!a->timeline)
        return;
    w->scenario.records.timeline = 1;
    /* An instance of several hosts has no folder of its own; of a rank only the program that starts it knows what it is. */
    if (!a->output && (!a->role || !strcmp(a->role, "all") || !strcmp(a->role, "router")))
        smg_cli_warning(NULL, "--timeline: has no effect without -o DIR: timeline.json is a file of the record folder");
}

static int set_by_hand(const char *key)
{
    char at[300];

    smg_origins_text(&origins, key, at, sizeof at);
    return !strncmp(at, "--set ", 6);
}

/* A plug-in that nothing of the scenario asks for. What it brings is known only now. One of the file may be meant for another run
 * than the one that --set makes of it. */
static void warn_policy(const struct smg_scenario *s, const struct smg_world *w)
{
    struct smg_diag text;
    size_t used;

    if (!w->plugin || w->plugin->scheme || (set_by_hand("proactive.ranking") && !set_by_hand("policy")))
        return;
    for (const struct smg_rank_type *const *r = w->plugin->rankings; r && *r; r++)
        if (!strcmp((*r)->name, s->proactive.ranking))
            return;
    used = (size_t)snprintf(text.text, sizeof text.text,
                            "key 'policy': the plug-in brings no scheme, and proactive.ranking names none of its rankings");
    for (const struct smg_rank_type *const *r = w->plugin->rankings; r && *r && used < sizeof text.text; r++)
        used += (size_t)snprintf(text.text + used, sizeof text.text - used, "%s%.63s%s", r == w->plugin->rankings ? " (" : ", ",
                                 (*r)->name, r[1] ? "" : ")");
    smg_origins_explain(&origins, &text);
    smg_cli_warning(NULL, text.text);
}

/* The weights are shared out over the GPUs of an instance. */
static void warn_memory(const struct smg_model *m, const struct smg_pool_config *p, const struct smg_gpu *gpu, const char *pool)
{
    double bytes = 2.0 * (double)smg_model_params(m) / p->tp;

    if (bytes > gpu->memory_bytes)
        fprintf(stderr,
                "smartgen: warning: model %s needs %.1f GB of weights on each GPU of the %s pool (tp %u), which has %.4g GB: no "
                "real machine would run this\n",
                m->name, bytes * 1e-9, pool, p->tp, gpu->memory_bytes * 1e-9);
}

/* Layers 0 and 1 are pushed whatever is asked for. */
static void warn_blocks(const struct smg_scenario *s, const struct smg_world *w)
{
    struct smg_features features;
    struct smg_grid grid;
    struct smg_diag text;

    smg_scheme_features(w, &features);
    smg_scheme_grid(w, w->requests[0].prompt_tokens, &grid);
    if (s->proactive.kr_blocks >= smg_grid_dense_blocks(&grid) || features.always_full || !s->proactive.enabled)
        return; /* auto is larger than any */
    snprintf(text.text, sizeof text.text,
             "key 'proactive.kr_blocks': %u is less than the %u blocks of layers 0 and 1, which are always pushed",
             s->proactive.kr_blocks, smg_grid_dense_blocks(&grid));
    smg_origins_explain(&origins, &text);
    smg_cli_warning(NULL, text.text);
}

/* A set larger than the cache is the whole cache. */
static void warn_many_blocks(const struct smg_scenario *s, const struct smg_world *w)
{
    uint32_t most = 0;
    struct smg_features features;
    struct smg_grid grid;
    struct smg_diag text;

    smg_scheme_features(w, &features);
    if (features.always_full || s->proactive.kr_blocks == SMG_KR_AUTO || !s->proactive.enabled)
        return; /* nobody asked for it, or it is told already */
    for (uint32_t i = 0; i < w->n_requests; i++) {
        smg_scheme_grid(w, w->requests[i].prompt_tokens, &grid);
        most = smg_grid_total_blocks(&grid) > most ? smg_grid_total_blocks(&grid) : most;
    }
    if (s->proactive.kr_blocks <= most)
        return;
    snprintf(text.text, sizeof text.text,
             "key 'proactive.kr_blocks': %u is more than the %u blocks that a prompt has: all are pushed", s->proactive.kr_blocks,
             most);
    smg_origins_explain(&origins, &text);
    smg_cli_warning(NULL, text.text);
}

/* A measured NIC brings its own latency. */
static void warn_latency(const struct smg_world *w)
{
    struct smg_diag text;

    if (!(w->nic.latency_s > 0) || !smg_cli_given("network.latency_us"))
        return;
    snprintf(text.text, sizeof text.text, "key 'network.latency_us': has no effect: NIC %.80s has a latency_s of its own",
             w->scenario.network.nic);
    smg_origins_explain(&origins, &text);
    smg_cli_warning(NULL, text.text);
}

static void warn_run(const struct smg_scenario *s, const struct smg_world *w)
{
    smg_origins_in_vain(&origins, s, smg_cli_warning, NULL);
    warn_policy(s, w);
    warn_memory(&w->model, &w->scenario.prefill, &w->prefill_gpu, "prefill");
    warn_memory(&w->model, &w->scenario.decode, &w->decode_gpu, "decode");
    warn_blocks(s, w);
    warn_many_blocks(s, w);
    warn_latency(w);
}

void smg_cli_warn(const struct smg_scenario *s, const struct smg_world *w)
{
    warn_run(s, w);
    smg_origins_no_simulation(&origins, s, smg_cli_warning, NULL);
}

int smg_cli_world(const struct smg_args *a, const char *extra_set, struct smg_scenario *s, struct smg_world *w)
{
    int code = smg_cli_scenario(a, extra_set, s);

    if (!code)
        code = smg_cli_resolve(s, w);
    if (!code) {
        warn_run(s, w);
        smg_origins_no_emulation(&origins, s, smg_cli_warning, NULL);
    }
    return code;
}
