/* An instance dies at a random moment of a random small run: the run always ends, only requests that the dead instance held fail,
 * each with its reason, nothing stays reserved elsewhere, and the agents do the same again when they are given the same events.
 *
 * Each world runs three times: without a death (how long it takes, and who serves whom), with it on the native engine, and with
 * it on SimGrid. The moments are drawn from a continuum, so none decides a tie. */
#include "tests/sim_fixture.h"

#include <math.h>

#include "core/agent.h"
#include "core/rng.h"
#include "tests/test_engine_util.h"

/* Sanitizers make runs ten times slower: fewer cases there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CASES = 60 };
#else
enum { CASES = 240 };
#endif

enum { REQUESTS_MAX = 8, INSTANCES_MAX = 16 };

static uint32_t pick(struct smg_rng *r, uint32_t low, uint32_t high)
{
    return low + (uint32_t)(smg_rng_uniform(r) * (high - low + 1));
}

static const char *either(struct smg_rng *r, const char *a, const char *b)
{
    return smg_rng_uniform(r) < 0.5 ? a : b;
}

static void random_words(struct smg_rng *r, struct words *w)
{
    static const char *const schemes[] = {"smartgen", "smartgen", "partial", "full", "hack", "proactive-only", "streamingllm"};

    memset(w, 0, sizeof *w);
    words_add(w, "model=%s/../experiments/emu-small/config.json", SMG_TESTDIR);
    words_add(w, "seed=%u", pick(r, 1, 1000));
    words_add(w, "scheme=%s", schemes[pick(r, 0, 6)]);
    words_add(w, "prefill.nodes=%u", pick(r, 1, 3));
    words_add(w, "prefill.gpus_per_node=%u", pick(r, 1, 2));
    words_add(w, "prefill.link_gbps=%.4f", 0.5 + 4 * smg_rng_uniform(r));
    words_add(w, "decode.nodes=%u", pick(r, 1, 2));
    words_add(w, "decode.gpus_per_node=%u", pick(r, 1, 2));
    words_add(w, "decode.link_gbps=%.4f", 0.3 + 4 * smg_rng_uniform(r));
    words_add(w, "decode.max_batch=%u", pick(r, 1, 6));
    words_add(w, "decode.start=%s", either(r, "ready", "pushed"));
    words_add(w, "network.latency_us=%.3f", 1 + 50 * smg_rng_uniform(r));
    words_add(w, "network.chunk_kib=%u", pick(r, 1, 6) * 24);
    words_add(w, "routing=%s", either(r, "least-loaded", "round-robin"));
    words_add(w, "workload.kind=%s", either(r, "batch", "poisson"));
    if (strstr(w->text[w->n - 1], "poisson"))
        words_add(w, "workload.rate=%.3f", 5 + 100 * smg_rng_uniform(r));
    words_add(w, "workload.requests=%u", pick(r, 1, REQUESTS_MAX));
    words_add(w, "workload.prompt_tokens=%u", pick(r, 60, 500));
    words_add(w, "workload.output_tokens=%u", pick(r, 1, 6));
    words_add(w, "blocks_per_layer=%u", pick(r, 8, 48));
    if (pick(r, 0, 1))
        words_add(w, "proactive.kr_blocks=%u", pick(r, 0, 200));
    words_add(w, "on_demand.parallel=%s", either(r, "true", "false"));
    words_add(w, "on_demand.reuse=%s", either(r, "true", "auto"));
    words_add(w, "speculative.queue=%s", either(r, "shared", "own"));
    words_add(w, "speculative.start=%s", either(r, "first", "second"));
    words_add(w, "selection.source=%s", either(r, "layer", "entry"));
    words_add(w, "gdr=%s", either(r, "true", "false"));
    words_add(w, "detail=%s", either(r, "layer", "iteration"));
    if (!pick(r, 0, 3)) /* memory for one or two requests: others wait for it */
        words_add(w, "decode.host_memory_gib=%.4f", 0.03 * (1 + smg_rng_uniform(r)));
}

/* ---- A run, and the same events given to fresh agents ---- */

struct shadow {
    struct smg_agent *agent[INSTANCES_MAX];
    struct smg_actions actions;
    uint64_t hash;
};

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static int compare_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct shadow *s = arg;
    int status = smg_agent_step(s->agent[instance], e, &s->actions);

    if (status || s->actions.n != actions->n || s->actions.n_items != actions->n_items ||
        (actions->n && memcmp(s->actions.action, actions->action, actions->n * sizeof *actions->action)) ||
        (actions->n_items && memcmp(s->actions.items, actions->items, actions->n_items * sizeof *actions->items)))
        return SMG_ERR_VERIFY;
    s->hash = mix(s->hash, &instance, sizeof instance);
    s->hash = mix(s->hash, e, sizeof *e);
    if (actions->n)
        s->hash = mix(s->hash, actions->action, actions->n * sizeof *actions->action);
    return SMG_OK;
}

struct outcome {
    double status[REQUESTS_MAX], reason[REQUESTS_MAX], culprit[REQUESTS_MAX], uncounted[REQUESTS_MAX], tokens[REQUESTS_MAX];
    double prefill[REQUESTS_MAX], decode[REQUESTS_MAX], finish_s[REQUESTS_MAX];
    double used_bytes[INSTANCES_MAX];
    double end_s, lost, broken, hash;
};

enum { OUTCOME_DOUBLES = sizeof(struct outcome) / sizeof(double) };

static void take(const struct smg_world *w, const struct smg_sim *sim, uint64_t hash, struct outcome *o)
{
    const struct smg_records *r = smg_sim_records(sim);
    struct smg_law laws[SMG_LAWS];
    size_t n = 0;

    memset(o, 0, sizeof *o);
    o->broken = smg_conservation_check(r, smg_sim_stats(sim), laws, &n);
    for (size_t i = 0; i < n; i++)
        if (!laws[i].holds)
            fprintf(stderr, "does not hold: %s (%.17g, %.17g)\n", laws[i].name, laws[i].left, laws[i].right);
    for (uint32_t i = 0; i < r->n_requests; i++) {
        const struct smg_request_record *q = &r->request[i];
        o->status[i] = q->status;
        o->reason[i] = q->reason;
        o->culprit[i] = q->culprit;
        o->uncounted[i] = q->uncounted;
        o->tokens[i] = q->tokens;
        o->prefill[i] = q->prefill_instance;
        o->decode[i] = q->decode_instance;
        o->finish_s[i] = isnan(q->finish_s) ? -1 : q->finish_s;
    }
    for (uint32_t i = 0; i < smg_world_instances(w); i++)
        o->used_bytes[i] = (double)smg_sim_used_bytes(sim, i);
    o->end_s = smg_sim_stats(sim)->end_s;
    o->lost = r->lost;
    o->hash = (double)(hash >> 16);
}

/* An engine_job_fn: in is a world, out an outcome. */
static int run_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    const struct smg_world *w = in;
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_diag diag = {""};
    struct shadow shadow = {.hash = 14695981039346656037u};
    struct smg_observer observer = {.arg = &shadow, .step = compare_step};
    int status = n_out == OUTCOME_DOUBLES ? smg_selection_create(w, &selection) : SMG_ERR_RANGE;

    for (uint32_t i = 0; i < smg_world_instances(w) && !status; i++)
        status = smg_agent_create(w, (uint16_t)i, &shadow.agent[i]);
    if (!status)
        status = smg_sim_create(w, type, selection, &observer, &sim);
    if (!status)
        status = smg_sim_run(sim, &diag);
    if (!status)
        take(w, sim, shadow.hash, (struct outcome *)out);
    else
        fprintf(stderr, "%s: %s: %s\n", type->name, smg_status_string(status), diag.text);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        smg_agent_destroy(shadow.agent[i]);
    smg_actions_free(&shadow.actions);
    return status;
}

static void run(const char *engine, const struct words *words, struct outcome *o, uint32_t *prefill, uint32_t *decode,
                uint32_t *n)
{
    struct smg_scenario s;
    struct smg_world w;
    struct smg_diag diag = {""};

    if (smg_scenario_load(NULL, words->set, words->n, &s, &diag) || smg_world_load(&s, &w, &diag))
        fail_msg("%s", diag.text);
    *prefill = w.prefill_instances;
    *decode = w.decode_instances;
    *n = w.n_requests;
    if (engine_job(smg_engine_find(engine), run_job, &w, (double *)o, OUTCOME_DOUBLES)) {
        for (size_t i = 0; i < words->n; i++)
            fprintf(stderr, "--set %s ", words->set[i]);
        fail_msg("%s: the run did not end well", engine);
    }
    smg_world_free(&w);
}

/* ---- Properties ---- */

struct tally {
    uint32_t failed, finished, spared, unserved, deaths[2];
};

static void check(const struct outcome *o, uint32_t n, uint32_t prefill, uint32_t decode, uint32_t dead, struct tally *t)
{
    int dead_prefill = dead <= prefill, role_gone = dead_prefill ? prefill == 1 : decode == 1;

    assert_true(o->broken == 0);
    for (uint32_t i = 1; i <= prefill + decode; i++)
        if (i != dead)
            assert_true(o->used_bytes[i] == 0);
    for (uint32_t i = 0; i < n; i++) {
        int touched = o->prefill[i] == dead || o->decode[i] == dead, unserved = o->prefill[i] == 0;
        if (o->status[i] == SMG_REQUEST_FINISHED) {
            assert_true(o->uncounted[i] == 0 || touched);
            t->finished++;
            t->spared += o->uncounted[i] != 0;
            continue;
        }
        assert_true(o->status[i] == SMG_REQUEST_FAILED);
        if (o->reason[i] == SMG_ERR_CAPACITY)
            continue;
        assert_true(o->reason[i] == SMG_ERR_LOST);
        assert_true(o->culprit[i] == dead);
        assert_true(touched || (unserved && role_gone));
        t->failed++;
        t->unserved += unserved != 0;
    }
    t->deaths[dead_prefill] += o->lost > 0;
}

static void test_one_dies(void **state)
{
    int both = smg_engine_find("simgrid") != NULL;
    struct tally t = {0};
    struct smg_rng r;

    (void)state;
    smg_rng_init(&r, 21, "faults");
    for (int c = 0; c < CASES; c++) {
        uint32_t prefill, decode, n, dead;
        struct outcome sound, native, again, simgrid;
        struct words w;
        random_words(&r, &w);
        run("native", &w, &sound, &prefill, &decode, &n);
        dead = pick(&r, 1, prefill + decode);
        words_add(&w, "faults.instance=%u", dead);
        words_add(&w, "faults.at_s=%.12f", sound.end_s * 1.05 * smg_rng_uniform(&r));
        words_add(&w, "faults.detect_s=%.9f", pick(&r, 0, 3) ? sound.end_s * smg_rng_uniform(&r) * 0.3 : 0.0);
        run("native", &w, &native, &prefill, &decode, &n);
        check(&native, n, prefill, decode, dead, &t);
        run("native", &w, &again, &prefill, &decode, &n);
        assert_memory_equal(&native, &again, sizeof native);
        if (!both || c % 4)
            continue;
        run("simgrid", &w, &simgrid, &prefill, &decode, &n);
        for (uint32_t i = 0; i < n; i++)
            if (simgrid.status[i] != native.status[i] || simgrid.tokens[i] != native.tokens[i] ||
                simgrid.uncounted[i] != native.uncounted[i])
                fail_msg("case %d, request %u: the engines disagree", c, i);
    }
    print_message(
        "%u deaths of prefill, %u of decode instances: %u requests failed (%u had no instance left), %u finished, %u of "
        "them without the one that died\n",
        t.deaths[1], t.deaths[0], t.failed, t.unserved, t.finished, t.spared);
    assert_true(t.deaths[0] >= CASES / 8 && t.deaths[1] >= CASES / 8 && t.failed >= CASES / 2 && t.finished >= CASES / 2);
    assert_true(t.unserved >= CASES / 20 && t.spared >= CASES / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_dies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
