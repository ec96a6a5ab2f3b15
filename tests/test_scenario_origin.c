/* Where keys were given: in messages about what is found wrong after reading, and in warnings about keys given in vain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "traces/scenario.h"
#include "traces/scenario_origin.h"
#include "traces/world.h"

#define FILE_NAME "test_scenario_origin.tmp.yaml"

enum { SETS_MAX = 4 };

/* Reads yaml (NULL: no file) and up to SETS_MAX settings, ended by NULL. */
static void load(const char *yaml, const char *const *sets, struct smg_scenario *s, struct smg_origins *o)
{
    struct smg_diag d = {""};
    size_t n = 0;
    FILE *f;

    while (n < SETS_MAX && sets[n] != NULL) {
        n++;
    }
    if (yaml != NULL) {
        f = fopen(FILE_NAME, "w");
        assert_non_null(f);
        assert_true(fputs(yaml, f) >= 0);
        assert_int_equal(fclose(f), 0);
    }
    if (smg_scenario_load_origins(yaml != NULL ? FILE_NAME : NULL, sets, n, s, o, &d) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    remove(FILE_NAME);
}

static const char yaml[] = "seed: 3\n"
                           "prefill:\n"
                           "  nodes: 2\n"
                           "  gpu: l2O\n"
                           "decode: {nodes: 1,\n"
                           "         tp:\n"
                           "           3}\n"
                           "network.nic: 'default'\n";

static void assert_origin(const struct smg_origins *o, const char *path, const char *expected)
{
    char text[300];

    smg_origins_text(o, path, text, sizeof(text));
    assert_string_equal(text, expected);
    assert_int_equal(smg_origins_given(o, path), expected[0] != '\0');
}

static void test_places(void **state)
{
    static const char *const sets[SETS_MAX + 1] = {"seed=4", "decode.nodes=2", "decode.nodes=3"};
    struct smg_scenario s;
    struct smg_origins o;

    (void)state;
    load(yaml, sets, &s, &o);
    assert_int_equal(s.decode.nodes, 3);
    assert_origin(&o, "seed", "--set seed=4: ");
    assert_origin(&o, "prefill.nodes", FILE_NAME ":3:10: ");
    assert_origin(&o, "prefill.gpu", FILE_NAME ":4:8: ");
    assert_origin(&o, "decode.nodes", "--set decode.nodes=3: ");
    assert_origin(&o, "decode.tp", FILE_NAME ":7:12: ");
    assert_origin(&o, "network.nic", FILE_NAME ":8:14: ");
    assert_origin(&o, "decode.gpu", "");
    assert_origin(&o, "no.such.key", "");
    assert_origin(&o, "prefill", "");
    load(NULL, sets + SETS_MAX, &s, &o);
    assert_origin(&o, "seed", "");
}

static void assert_explained(const struct smg_origins *o, const char *text, const char *expected)
{
    struct smg_diag d;

    snprintf(d.text, sizeof(d.text), "%s", text);
    smg_origins_explain(o, &d);
    assert_string_equal(d.text, expected);
}

static void test_explain(void **state)
{
    static const char *const sets[] = {"model=x", NULL};
    char large[512], expected[512];
    struct smg_scenario s;
    struct smg_origins o;

    (void)state;
    load(yaml, sets, &s, &o);
    assert_explained(&o, "key 'prefill.gpu': what", FILE_NAME ":4:8: key 'prefill.gpu': what");
    assert_explained(&o, "key 'model': what", "--set model=x: key 'model': what");
    assert_explained(&o, "key 'decode.gpu': what", "key 'decode.gpu': what");
    assert_explained(&o, "key 'nonsense': what", "key 'nonsense': what");
    assert_explained(&o, "key 'seed", "key 'seed");
    assert_explained(&o, "x.json: key 'seed': what", "x.json: key 'seed': what");
    assert_explained(&o, "", "");
    /* A message that fills the diag loses its end, not its terminator. */
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    memcpy(large, "key 'model': ", 13);
    memcpy(expected, "--set model=x: ", 15);
    memcpy(expected + 15, large, sizeof(expected) - 16);
    expected[sizeof(expected) - 1] = '\0';
    assert_explained(&o, large, expected);
}

/* The whole way: what the world refuses begins with the place. */
static void test_world(void **state)
{
    static const char *const none[] = {NULL};
    struct smg_scenario s;
    struct smg_origins o;
    struct smg_world w;
    struct smg_diag d = {""};

    (void)state;
    load(yaml, none, &s, &o);
    assert_int_equal(smg_world_load(&s, &w, &d), SMG_ERR_NOT_FOUND);
    smg_origins_explain(&o, &d);
    assert_string_equal(d.text, FILE_NAME ":4:8: key 'prefill.gpu': unknown GPU 'l2O'; did you mean 'l20'?");
}

struct warnings {
    char text[4][256];
    size_t n;
};

static void collect(void *arg, const char *text)
{
    struct warnings *w = arg;

    assert_true(w->n < 4);
    snprintf(w->text[w->n++], sizeof(w->text[0]), "%s", text);
}

static struct warnings warnings_of(const char *text, const char *const *sets)
{
    struct warnings w = {.n = 0};
    struct smg_scenario s;
    struct smg_origins o;

    load(text, sets, &s, &o);
    smg_origins_in_vain(&o, &s, collect, &w);
    return w;
}

#define WARNINGS(text, ...) warnings_of(text, (const char *const[SETS_MAX + 1]){__VA_ARGS__})

/* An emulation does not read what is the simulation's. */
static void test_emulated(void **state)
{
    struct warnings w = {.n = 0};
    struct smg_scenario s;
    struct smg_origins o;

    (void)state;
    load("network: {latency_us: 7}\n", (const char *const[SETS_MAX + 1]){"engine=native", NULL}, &s, &o);
    smg_origins_no_simulation(&o, &s, collect, &w);
    assert_int_equal(w.n, 1); /* the file's may be for a simulation */
    assert_string_equal(w.text[0], "--set engine=native: key 'engine': has no effect: only a simulation reads it");
}

static void test_in_vain(void **state)
{
    static const struct {
        const char *sets[SETS_MAX], *message;
    } vain[] = {
        {{"workload.rate=3"}, "--set workload.rate=3: key 'workload.rate': has no effect with workload.kind: batch"},
        {{"workload.kind=poisson", "workload.limit=3"},
         "--set workload.limit=3: key 'workload.limit': has no effect with workload.kind: poisson"},
        {{"workload.kind=trace", "workload.requests=3"},
         "--set workload.requests=3: key 'workload.requests': has no effect with workload.kind: trace"},
        {{"workload.dataset=lcc", "workload.prompt_tokens=9"},
         "--set workload.dataset=lcc: key 'workload.dataset': has no effect with workload.prompt_tokens: 9"},
        {{"scheme=full", "speculative.ratio=0.2"},
         "--set speculative.ratio=0.2: key 'speculative.ratio': has no effect with scheme: full"},
        {{"speculative.enabled=false", "speculative.queue=own"},
         "--set speculative.queue=own: key 'speculative.queue': has no effect with speculative.enabled: false"},
        {{"scheme=full", "proactive.kr_blocks=9"},
         "--set proactive.kr_blocks=9: key 'proactive.kr_blocks': has no effect with scheme: full"},
        {{"scheme=partial", "proactive.ranking=random"},
         "--set proactive.ranking=random: key 'proactive.ranking': has no effect with scheme: partial"},
        {{"scheme=proactive-only", "on_demand.reuse=true"},
         "--set on_demand.reuse=true: key 'on_demand.reuse': has no effect with scheme: proactive-only"},
        {{"scheme=hack", "proactive.budget=window"},
         "--set proactive.budget=window: key 'proactive.budget': has no effect with scheme: hack"},
        {{"hack.bits=4"}, "--set hack.bits=4: key 'hack.bits': has no effect with scheme: smartgen"},
        {{"selection.hash_bits=64"},
         "--set selection.hash_bits=64: key 'selection.hash_bits': has no effect with selector: infinigen"},
        {{"proactive.enabled=false", "proactive.kr_blocks=9"},
         "--set proactive.kr_blocks=9: key 'proactive.kr_blocks': has no effect with proactive.enabled: false"},
        {{"proactive.enabled=false", "speculative.enabled=false", "proactive.ranking=random"},
         "--set proactive.ranking=random: key 'proactive.ranking': has no effect with proactive.enabled: false"},
        {{"on_demand.parallel=false", "on_demand.scatter_limit=4"},
         "--set on_demand.scatter_limit=4: key 'on_demand.scatter_limit': has no effect with on_demand.parallel: false"},
        {{"scheme=partial", "on_demand.reorder=false"},
         "--set on_demand.reorder=false: key 'on_demand.reorder': has no effect with scheme: partial"},
        {{"scheme=streamingllm", "selector=hata"},
         "--set selector=hata: key 'selector': has no effect with scheme: streamingllm"},
        {{"scheme=hack", "gdr=false"}, "--set gdr=false: key 'gdr': has no effect with scheme: hack"},
        {{"selection.alpha=4"},
         "--set selection.alpha=4: key 'selection.alpha': has no effect: what the threshold selects is given by "
         "selection.natural; emu.compute: kernels counts by it"},
    };
    struct warnings w;

    (void)state;
    for (size_t i = 0; i < sizeof(vain) / sizeof(vain[0]); i++) {
        w = warnings_of(NULL, vain[i].sets);
        assert_int_equal(w.n, 1);
        assert_string_equal(w.text[0], vain[i].message);
    }
    w = WARNINGS("# nothing yet\n", NULL);
    assert_int_equal(w.n, 1);
    assert_string_equal(w.text[0], FILE_NAME ": gives no key: the default scenario holds");
    w = WARNINGS("seed: 1\nworkload:\n  file: a.csv\n  limit: 7\n", NULL);
    assert_int_equal(w.n, 2);
    assert_string_equal(w.text[0], FILE_NAME ":3:9: key 'workload.file': has no effect with workload.kind: batch");
    assert_string_equal(w.text[1], FILE_NAME ":4:10: key 'workload.limit': has no effect with workload.kind: batch");
}

/* Keys that work, keys at their default, and keys that nobody gave. */
static void test_not_in_vain(void **state)
{
    struct smg_scenario s;
    struct smg_origins o;
    struct smg_diag d = {""};
    struct warnings none = {.n = 0};

    (void)state;
    assert_int_equal(WARNINGS(NULL, NULL).n, 0);
    assert_int_equal(WARNINGS(NULL, "workload.rate=1", "workload.file=").n, 0);
    assert_int_equal(WARNINGS(NULL, "workload.kind=poisson", "workload.rate=3").n, 0);
    assert_int_equal(WARNINGS(NULL, "workload.kind=trace", "workload.file=a.csv", "workload.limit=3").n, 0);
    assert_int_equal(WARNINGS(NULL, "workload.dataset=lcc").n, 0);
    assert_int_equal(WARNINGS(NULL, "scheme=full", "speculative.enabled=false").n, 0);
    assert_int_equal(WARNINGS(NULL, "scheme=full", "policy=x.so", "speculative.ratio=0.2").n, 0);
    assert_int_equal(WARNINGS(NULL, "scheme=hack", "hack.bits=4").n, 0);
    assert_int_equal(WARNINGS(NULL, "scheme=partial", "proactive.ranking=sequential", "on_demand.reuse=true",
                              "on_demand.parallel=false", "proactive.kr_blocks=9")
                         .n,
                     0);
    assert_int_equal(WARNINGS(NULL, "scheme=proactive-only", "proactive.ranking=random", "proactive.kr_blocks=9").n, 0);
    assert_int_equal(WARNINGS(NULL, "selector=hata", "selection.hash_bits=64").n, 0);
    assert_int_equal(WARNINGS(NULL, "proactive.enabled=false", "proactive.ranking=random").n, 0); /* the order of speculation */
    assert_int_equal(WARNINGS(NULL, "emu.compute=kernels", "emu.backend=reference", "on_demand.scatter_limit=4").n, 0);
    assert_int_equal(WARNINGS("speculative: {ratio: 0.2}\nworkload: {requests: 3}\n", "scheme=full", "workload.kind=trace").n, 0);
    assert_int_equal(WARNINGS("speculative: {ratio: 0.2}\nscheme: full\n", "workload.kind=trace").n, 1);
    assert_int_equal(WARNINGS("scheme: full\n", "speculative.ratio=0.2").n, 1);
    assert_int_equal(smg_scenario_load_origins(SMG_TESTDIR "/../experiments/default.yaml", NULL, 0, &s, &o, &d), SMG_OK);
    smg_origins_in_vain(&o, &s, collect, &none);
    assert_int_equal(none.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),  cmocka_unit_test(test_explain),     cmocka_unit_test(test_world),
        cmocka_unit_test(test_in_vain), cmocka_unit_test(test_not_in_vain), cmocka_unit_test(test_emulated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
