/* Scenario files: defaults, every kind of error with its exact message, --set, and the way through JSON and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "traces/scenario.h"
#include "traces/scenario_keys.h"
#include "traces/text.h"

#ifndef SMG_TESTDIR
#define SMG_TESTDIR "tests"
#endif
#define FILE_NAME "test_scenario.tmp.yaml"

static void write_file(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static int load_text(const char *yaml, struct smg_scenario *s, struct smg_diag *d)
{
    int status;

    write_file(FILE_NAME, yaml, strlen(yaml));
    memset(d, 0, sizeof(*d));
    status = smg_scenario_load(FILE_NAME, NULL, 0, s, d);
    remove(FILE_NAME);
    return status;
}

static int load_set(const char *set, struct smg_scenario *s, struct smg_diag *d)
{
    memset(d, 0, sizeof(*d));
    return smg_scenario_load(NULL, &set, 1, s, d);
}

/* The contract's defaults, and those of the keys beyond it; null: another key decides. */
static const char *const defaults =
    "{'model':'qwen3-14b','scheme':'smartgen','policy':'','selector':'infinigen','seed':1,"
    "'prefill':{'nodes':3,'gpus_per_node':2,'tp':1,'gpu':'l20','link_gbps':32.0,'vcpus':32,'host_memory_gib':256.0,'instance':'',"
    "'chunk_tokens':0},"
    "'decode':{'nodes':1,'gpus_per_node':1,'tp':1,'gpu':'l20','link_gbps':25.0,'vcpus':16,'host_memory_gib':128.0,'instance':'',"
    "'max_batch':64,"
    "'start':'ready'},"
    "'host':'default',"
    "'network':{'latency_us':10.0,'nic':'default','efficiency':1.0,'oversubscription':1.0,'handshake_us':0.0,'dispatch_us':0.0,"
    "'chunk_kib':0},"
    "'routing':'least-loaded','prefix_hit':0.75,"
    "'workload':{'kind':'batch','dataset':'multifieldqa','requests':6,'prompt_tokens':null,'output_tokens':null,'lengths':'mean',"
    "'rate':1.0,'file':'',"
    "'format':'azure','limit':0,'speedup':1.0,'batch_barrier':null},"
    "'blocks_per_layer':1000,'min_block_tokens':1,"
    "'proactive':{'enabled':true,'budget':'eq2','ranking':'profile','importance':'auto','kr_blocks':'auto'},"
    "'on_demand':{'parallel':true,'reorder':true,'scatter_limit':20,'reuse':'auto'},"
    "'speculative':{'enabled':true,'ratio':0.1,'start':'second','queue':'shared'},"
    "'selection':{'cap':0.2,'alpha':5.0,'natural':0.25,'partial_ratio':0.3,'hash_bits':256,'batch_mean':false,'source':'layer',"
    "'file':''},"
    "'profile':{'shift':0.0},'hack':{'layout':'atc26','bits':2,'group':64,'fused':false},"
    "'gdr':true,'detail':'layer','engine':'simgrid',"
    "'emu':{'compute':'paced','backend':'cpu','verify':'all','token':'none','write_order':'device','link':'shaped','mutant':'"
    "none','fault':'none','time_scale':"
    "1.0},"
    "'faults':{'instance':0,'at_s':0.0,'detect_s':0.1},"
    "'slo':{'ttft_s':2.0,'ttst_s':1.0,'tbt_s':0.5},"
    "'records':{'tokens':true,'decisions':false,'timeline':false,'events':true}}";

static json_t *parse_quoted(const char *text)
{
    char *copy = strdup(text), *c;
    json_t *root;

    assert_non_null(copy);
    for (c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    root = json_loads(copy, 0, NULL);
    free(copy);
    assert_non_null(root);
    return root;
}

static void test_defaults(void **state)
{
    struct smg_scenario s;
    json_t *expected = parse_quoted(defaults), *found;

    (void)state;
    smg_scenario_default(&s);
    found = smg_scenario_json(&s);
    assert_non_null(found);
    if (!json_equal(expected, found)) {
        char *text = json_dumps(found, JSON_REAL_PRECISION(9));
        print_error("%s\n", text);
        free(text);
    }
    assert_true(json_equal(expected, found));
    assert_int_equal(s.workload.prompt_tokens, 7000);
    assert_int_equal(s.workload.batch_barrier, 1);
    json_decref(expected);
    json_decref(found);
}

/* Every default passes its own check, and the table names no key twice. */
static void test_table(void **state)
{
    const struct smg_key *keys;
    struct smg_scenario s;
    size_t i, n;

    (void)state;
    keys = smg_keys(&n);
    for (i = 0; i < n; i++) {
        assert_int_equal(smg_key_parse(&keys[i], keys[i].preset, 0, &s), SMG_OK);
        assert_ptr_equal(smg_key_find(keys[i].path), &keys[i]);
        assert_non_null(keys[i].doc);
        assert_true(keys[i].offset + keys[i].bytes <= sizeof(s));
    }
}

/* What a scenario file, or run.json, does that states every key of a pool. */
static void give(struct smg_pool_config *p)
{
    p->given.gpu = p->given.gpus_per_node = p->given.link_gbps = p->given.vcpus = p->given.host_memory_gib = 1;
}

static void test_default_file(void **state)
{
    struct smg_scenario s, d;
    struct smg_diag diag = {""};

    (void)state;
    smg_scenario_default(&d);
    assert_int_equal(smg_scenario_load(SMG_TESTDIR "/../experiments/default.yaml", NULL, 0, &s, &diag), SMG_OK);
    d.workload.prompt_tokens_set = d.workload.output_tokens_set = d.workload.batch_barrier_set = 1;
    give(&d.prefill);
    give(&d.decode);
    assert_memory_equal(&s, &d, sizeof(s));
}

static void test_values(void **state)
{
    struct smg_scenario s;
    struct smg_diag d;

    (void)state;
    assert_int_equal(load_text("seed: 18446744073709551615\n"
                               "# comment\n"
                               "prefill: {nodes: 7, link_gbps: 1e2}\n"
                               "decode: &d\n"
                               "  start: pushed\n"
                               "scheme: \"full\"\n"
                               "policy: ~\n"
                               "gdr: false\n"
                               "workload.requests: 9\n"
                               "on_demand: {reuse: true}\n"
                               "proactive: {kr_blocks: 8297}\n",
                               &s, &d),
                     SMG_OK);
    assert_true(s.seed == UINT64_MAX);
    assert_int_equal(s.prefill.nodes, 7);
    assert_true(s.prefill.link_gbps == 100);
    assert_int_equal(s.decode_start, SMG_START_PUSHED);
    assert_string_equal(s.scheme, "full");
    assert_string_equal(s.policy, "");
    assert_int_equal(s.gdr, 0);
    assert_int_equal(s.workload.requests, 9);
    assert_int_equal(s.on_demand.reuse, SMG_TRUE);
    assert_int_equal(s.proactive.kr_blocks, 8297);
    assert_int_equal(s.workload.prompt_tokens_set, 0);
}

#define AT FILE_NAME ":"

static const struct {
    const char *yaml, *message;
} bad_files[] = {
    {"prefil: {nodes: 3}\n", AT "1:10: key 'prefil.nodes': unknown key; did you mean 'prefill.nodes'?"},
    {"seed: 1\nmodle: x\n", AT "2:1: key 'modle': unknown key; did you mean 'model'?"},
    {"zzzzzzzzzz: 1\n", AT "1:1: key 'zzzzzzzzzz': unknown key"},
    {"prefil: {}\n", AT "1:1: key 'prefil': unknown key"},
    {"prefill: 3\n", AT "1:10: key 'prefill': expected a mapping of keys, found '3'"},
    {"prefill:\n", AT "1:9: key 'prefill': expected a mapping of keys, found nothing"},
    {"seed: 12abc\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '12abc'"},
    {"seed: 7.9\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '7.9'"},
    {"seed: 1e6\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '1e6'"},
    {"seed: 010\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '010'"},
    {"seed: 0x10\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '0x10'"},
    {"seed: -1\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '-1'"},
    {"seed: +1\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '+1'"},
    {"seed: 18446744073709551616\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found '18446744073709551616'"},
    {"seed: '5'\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found the quoted text '5'"},
    {"seed:\n", AT "1:6: key 'seed': expected an integer in [0, 2^64-1], found nothing"},
    {"seed: ~\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found nothing"},
    {"seed: [1]\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found a sequence"},
    {"seed: {a: 1}\n", AT "1:7: key 'seed': expected an integer in [0, 2^64-1], found a mapping"},
    {"seed: 1\ngdr: true\nseed: 2\n", AT "3:1: key 'seed': given twice, first in line 1"},
    {"prefill: {nodes: 1}\nprefill: {nodes: 2}\n", AT "2:11: key 'prefill.nodes': given twice, first in line 1"},
    {"model: ~\n", AT "1:8: key 'model': expected a text of at most 1023 bytes, found nothing"},
    {"prefix_hit: 0.75abc\n", AT "1:13: key 'prefix_hit': expected a number in [0, 1), found '0.75abc'"},
    {"prefix_hit: 1\n", AT "1:13: key 'prefix_hit': expected a number in [0, 1), found '1'"},
    {"prefix_hit: nan\n", AT "1:13: key 'prefix_hit': expected a number in [0, 1), found 'nan'"},
    {"prefix_hit: -0.1\n", AT "1:13: key 'prefix_hit': expected a number in [0, 1), found '-0.1'"},
    {"slo: {ttft_s: inf}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found 'inf'"},
    {"slo: {ttft_s: .inf}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found '.inf'"},
    {"slo: {ttft_s: 1e400}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found '1e400'"},
    {"slo: {ttft_s: 0x1p3}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found '0x1p3'"},
    {"slo: {ttft_s: 1_000}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found '1_000'"},
    {"slo: {ttft_s: 0}\n", AT "1:15: key 'slo.ttft_s': expected a number in [1e-06, 1000000000], found '0'"},
    {"gdr: maybe\n", AT "1:6: key 'gdr': expected true or false, found 'maybe'"},
    {"gdr: yes\n", AT "1:6: key 'gdr': expected true or false, found 'yes'"},
    {"gdr: 1\n", AT "1:6: key 'gdr': expected true or false, found '1'"},
    {"gdr: \"true\"\n", AT "1:6: key 'gdr': expected true or false, found the quoted text 'true'"},
    {"on_demand: {reuse: ato}\n",
     AT "1:20: key 'on_demand.reuse': expected one of false, true, auto, found 'ato'; did you mean 'auto'?"},
    {"proactive: {kr_blocks: some}\n",
     AT "1:24: key 'proactive.kr_blocks': expected auto or an integer in [0, 16776960], found 'some'"},
    {"detail: layr\n", AT "1:9: key 'detail': expected one of layer, iteration, found 'layr'; did you mean 'layer'?"},
    {"scheme: smrtgen\n",
     AT "1:9: key 'scheme': expected one of full, partial, smartgen, hack, proactive-only, streamingllm, found "
        "'smrtgen'; did you mean 'smartgen'?"},
    {"prefill: {nodes: 0}\n", AT "1:18: key 'prefill.nodes': expected an integer in [1, 100000], found '0'"},
    {"blocks_per_layer: 65536\n", AT "1:19: key 'blocks_per_layer': expected an integer in [1, 65535], found '65536'"},
    {"network: {chunk_kib: 1048577}\n", AT "1:22: key 'network.chunk_kib': expected an integer in [0, 1048576], found '1048577'"},
    {"? [a]\n: 1\n", AT "1:3: key '': expected a name as key"},
    {"- a\n", AT "1:1: expected a mapping of keys, found a sequence"},
    {"a\n", AT "1:1: expected a mapping of keys, found 'a'"},
    {"''\n", AT "1:1: expected a mapping of keys, found nothing"},
    {"---\n---\nseed: 2\n", AT "3:1: a scenario file holds one document, found a second"},
    {"seed: 1\n---\nseed: 2\n", AT "3:1: a scenario file holds one document, found a second"},
    {"seed: 1\n\tgdr: true\n", AT "2:1: found a tab; YAML is indented with blanks"},
    {"seed: [1\n", AT "2:1: did not find expected ',' or ']'"},
    {"a: \x01\n", AT "1: byte 3: control characters are not allowed"},
    {"seed: 1\nmodel: \xe9\n", AT "2: byte 15: incomplete UTF-8 octet sequence"},
    {"prefill: &p {nodes: 2}\ndecode: {<<: *p}\n", AT "2:10: key 'decode.<<': mappings are not merged; write the keys out"},
    {"seed: *x\n", AT "1:7: found undefined alias"},
};

static void test_nothing_said(void **state)
{
    static const char *const texts[] = {"", "# nothing\n", "---\n", "\n\n"};
    struct smg_scenario s, preset;
    struct smg_diag d;

    (void)state;
    smg_scenario_default(&preset);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(load_text(texts[i], &s, &d), SMG_OK);
        assert_memory_equal(&s, &preset, sizeof(s));
    }
}

static void test_bad_files(void **state)
{
    struct smg_scenario s, untouched;
    struct smg_diag d;
    size_t i;

    (void)state;
    memset(&s, 0x5a, sizeof(s));
    untouched = s;
    for (i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++) {
        assert_int_equal(load_text(bad_files[i].yaml, &s, &d), SMG_ERR_PARSE);
        assert_string_equal(d.text, bad_files[i].message);
        assert_memory_equal(&s, &untouched, sizeof(s));
    }
}

static const struct {
    const char *set, *message;
} bad_sets[] = {
    {"seed=abc", "--set seed=abc: expected an integer in [0, 2^64-1], found 'abc'"},
    {"seed=", "--set seed=: expected an integer in [0, 2^64-1], found nothing"},
    {"seed= 1", "--set seed= 1: expected an integer in [0, 2^64-1], found ' 1'"},
    {"seed", "--set seed: expected KEY=VALUE"},
    {"=1", "--set =1: expected KEY=VALUE"},
    {"prefil.nodes=3", "--set prefil.nodes=3: unknown key; did you mean 'prefill.nodes'?"},
    {"prefill=3", "--set prefill=3: a group of keys, not a key"},
    {"gdr=TRUE", "--set gdr=TRUE: expected true or false, found 'TRUE'"},
    {"selection.cap=0", "--set selection.cap=0: expected a number in [1e-06, 1], found '0'"},
    {"model=\xff", "--set model=\xff: expected a text of at most 1023 bytes, found '\xff'"},
    {"network.oversubscription=0.5", "--set network.oversubscription=0.5: expected a number in [1, 1000], found '0.5'"},
};

static void test_set(void **state)
{
    static const char *const sets[] = {"seed=3", "seed=4", "workload.prompt_tokens=10", "policy=", "model=a=b"};
    struct smg_scenario s;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad_sets) / sizeof(bad_sets[0]); i++) {
        assert_int_equal(load_set(bad_sets[i].set, &s, &d), SMG_ERR_PARSE);
        assert_string_equal(d.text, bad_sets[i].message);
    }
    assert_int_equal(smg_scenario_load(NULL, sets, 5, &s, &d), SMG_OK);
    assert_int_equal(s.seed, 4);
    assert_int_equal(s.workload.prompt_tokens, 10);
    assert_int_equal(s.workload.prompt_tokens_set, 1);
    assert_string_equal(s.model, "a=b");
}

static void test_set_wins_over_file(void **state)
{
    const char *set = "seed=9";
    struct smg_scenario s;
    struct smg_diag d;

    (void)state;
    write_file(FILE_NAME, "seed: 5\nblocks_per_layer: 500\n", 30);
    assert_int_equal(smg_scenario_load(FILE_NAME, &set, 1, &s, &d), SMG_OK);
    remove(FILE_NAME);
    assert_int_equal(s.seed, 9);
    assert_int_equal(s.blocks_per_layer, 500);
}

static void test_unreadable(void **state)
{
    struct smg_scenario s;
    struct smg_diag d;

    (void)state;
    assert_int_equal(smg_scenario_load("no-such-file.yaml", NULL, 0, &s, &d), SMG_ERR_IO);
    assert_string_equal(d.text, "no-such-file.yaml: cannot open: No such file or directory");
    assert_int_equal(smg_scenario_load(".", NULL, 0, &s, &d), SMG_ERR_IO);
    assert_string_equal(d.text, ".: cannot read: Is a directory");
}

/* Deep nesting and repeated anchors end in an error, not in a stack overflow or a long walk. */
static void test_hostile(void **state)
{
    struct smg_scenario s;
    struct smg_diag d;
    char *deep = malloc(20001);
    char text[2048] = "a: &a0 {x: {x: 1}}\n";
    int i;

    (void)state;
    assert_non_null(deep);
    memset(deep, '[', 20000);
    deep[20000] = '\0';
    assert_int_equal(load_text(deep, &s, &d), SMG_ERR_PARSE);
    for (i = 0; i < 6667; i++) {
        memcpy(deep + 3 * i, "{a:", 3);
    }
    deep[20000] = '\0';
    assert_int_equal(load_text(deep, &s, &d), SMG_ERR_PARSE);
    free(deep);
    for (i = 1; i < 40; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "b%d: &a%d {x: *a%d, y: *a%d}\n", i, i, i - 1, i - 1);
    }
    assert_int_equal(load_text(text, &s, &d), SMG_ERR_PARSE);
    assert_int_equal(load_text("a: &a {b: *a}\n", &s, &d), SMG_ERR_PARSE);
    write_file(FILE_NAME, "model: \"a\\0b\"\n", 14);
    assert_int_equal(smg_scenario_load(FILE_NAME, NULL, 0, &s, &d), SMG_ERR_PARSE);
    remove(FILE_NAME);
    assert_string_equal(d.text, AT "1:8: key 'model': a value must not contain a 0 byte");
}

static void test_relative_names(void **state)
{
    struct smg_scenario s;
    struct smg_diag d;

    (void)state;
    assert_int_equal(mkdir("test_scenario.tmp", 0777), 0);
    write_file("test_scenario.tmp/a.csv", "x", 1);
    write_file("test_scenario.tmp/s.yaml", "model: qwen3-8b\nworkload: {kind: trace, file: a.csv}\n", 53);
    assert_int_equal(smg_scenario_load("test_scenario.tmp/s.yaml", NULL, 0, &s, &d), SMG_OK);
    remove("test_scenario.tmp/s.yaml");
    remove("test_scenario.tmp/a.csv");
    assert_int_equal(rmdir("test_scenario.tmp"), 0);
    assert_string_equal(s.workload.file, "test_scenario.tmp/a.csv");
    assert_string_equal(s.model, "qwen3-8b");
}

static void round_trip(const struct smg_scenario *s)
{
    struct smg_scenario back, expected = *s;
    struct smg_diag d = {""};
    json_t *j = smg_scenario_json(s), *reread;
    char *text;

    assert_non_null(j);
    text = json_dumps(j, JSON_INDENT(2));
    assert_non_null(text);
    reread = json_loads(text, 0, NULL);
    assert_non_null(reread);
    assert_int_equal(smg_scenario_from_json(reread, &back, &d), SMG_OK);
    /* Written values are given when they are read; an instance type leaves null what it decides. */
    if (s->prefill.instance[0] == '\0') {
        give(&expected.prefill);
    }
    if (s->decode.instance[0] == '\0') {
        give(&expected.decode);
    }
    assert_memory_equal(&back, &expected, sizeof(back));
    free(text);
    json_decref(j);
    json_decref(reread);
}

static void test_round_trip(void **state)
{
    static const char *const sets[] = {"seed=18446744073709551615", "proactive.kr_blocks=5",  "on_demand.reuse=false",
                                       "workload.prompt_tokens=1",  "prefill.link_gbps=0.1",  "workload.batch_barrier=false",
                                       "emu.mutant=early-mask",     "policy=dir/a b\"c.so",   "workload.limit=4294967295",
                                       "routing=round-robin",       "selection.source=entry", "scheme=streamingllm",
                                       "decode.instance=g6.xlarge", "decode.vcpus=9"};
    struct smg_scenario s;
    struct smg_diag d;

    (void)state;
    smg_scenario_default(&s);
    round_trip(&s);
    assert_int_equal(smg_scenario_load(NULL, sets, sizeof(sets) / sizeof(sets[0]), &s, &d), SMG_OK);
    round_trip(&s);
}

static void check_bad_json(const char *text, const char *message)
{
    struct smg_scenario s;
    struct smg_diag d;
    json_t *j = parse_quoted(text);

    assert_int_equal(smg_scenario_from_json(j, &s, &d), SMG_ERR_PARSE);
    assert_string_equal(d.text, message);
    json_decref(j);
}

static void test_bad_json(void **state)
{
    (void)state;
    check_bad_json("[1]", "scenario: expected an object");
    check_bad_json("{'sede':1}", "scenario: key 'sede': unknown key; did you mean 'seed'?");
    check_bad_json("{'seed':1.5}", "scenario: key 'seed': expected an integer in [0, 2^64-1], found '1.5'");
    check_bad_json("{'seed':null}", "scenario: key 'seed': expected a scalar");
    check_bad_json("{'gdr':'true'}", "scenario: key 'gdr': expected true or false, found the quoted text 'true'");
    check_bad_json("{'prefill':{'nodes':{}}}", "scenario: key 'prefill.nodes': expected a scalar");
}

/* A key that refuses 0 refuses what is next to it too: something is divided by it. */
static void test_no_tiny_divisors(void **state)
{
    size_t i, n, divisors = 0;
    const struct smg_key *k = smg_keys(&n);
    struct smg_scenario s;

    (void)state;
    smg_scenario_default(&s);
    for (i = 0; i < n; i++) {
        if (k[i].kind == SMG_KEY_NUMBER && smg_key_parse(&k[i], "0", 0, &s) != SMG_OK) {
            assert_int_not_equal(smg_key_parse(&k[i], "1e-300", 0, &s), SMG_OK);
            assert_int_not_equal(smg_key_parse(&k[i], "9e-7", 0, &s), SMG_OK);
            divisors++;
        }
    }
    assert_in_range(divisors, 10, n);
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"infinigen", "hata", "quest", NULL}, *const swapped[] = {"csv", "sim", NULL};

    (void)state;
    assert_string_equal(smg_nearest("infinigen2", names), "infinigen");
    assert_string_equal(smg_nearest("HATA", names), "hata");
    assert_string_equal(smg_nearest("smi", swapped), "sim");
    assert_string_equal(smg_nearest("cvs", swapped), "csv");
    assert_null(smg_nearest("mis", swapped));
    assert_null(smg_nearest("zzzz", names));
    assert_null(smg_nearest("", names));
}

static void test_strict_numbers(void **state)
{
    uint64_t n = 77;
    double x = 0.5;

    (void)state;
    assert_int_equal(smg_text_u64("0", &n), SMG_OK);
    assert_true(n == 0);
    assert_int_equal(smg_text_u64("18446744073709551616", &n), SMG_ERR_RANGE);
    assert_int_equal(smg_text_u64("", &n), SMG_ERR_PARSE);
    assert_int_equal(smg_text_u64("1 ", &n), SMG_ERR_PARSE);
    assert_true(n == 0);
    assert_int_equal(smg_text_double("-1.5e-3", &x), SMG_OK);
    assert_true(x == -1.5e-3);
    assert_int_equal(smg_text_double(".5", &x), SMG_OK);
    assert_int_equal(smg_text_double("1e400", &x), SMG_ERR_RANGE);
    assert_int_equal(smg_text_double("00.5", &x), SMG_ERR_PARSE);
    assert_int_equal(smg_text_double("1e", &x), SMG_ERR_PARSE);
    assert_int_equal(smg_text_double("-", &x), SMG_ERR_PARSE);
    assert_int_equal(smg_text_double("1.2.3", &x), SMG_ERR_PARSE);
    assert_true(x == 0.5);
}

/* One line per key, each naming it. */
static void test_help(void **state)
{
    const struct smg_key *keys;
    char *text = NULL;
    size_t bytes, i, n, lines = 0;
    FILE *f = open_memstream(&text, &bytes);

    (void)state;
    assert_non_null(f);
    smg_scenario_help(f);
    fclose(f);
    keys = smg_keys(&n);
    for (i = 0; i < n; i++) {
        assert_non_null(strstr(text, keys[i].path));
    }
    for (i = 0; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    assert_int_equal(lines, n);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_default_file),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nothing_said),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_wins_over_file),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_relative_names),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_no_tiny_divisors), cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_strict_numbers),
        cmocka_unit_test(test_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
