/* Hardware descriptions and instance types: the built-in ones, every kind of bad file with its message, and how an instance type
 * fills a scenario. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "traces/data_dir.h"
#include "traces/scenario.h"
#include "traces/world.h"

#define FILE_NAME                    "test_hardware.tmp.json"
#define AT                           "./" FILE_NAME ": "

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

static void write_file(const char *text)
{
    FILE *f = fopen(FILE_NAME, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_names(void **state)
{
    static const char *const kinds[] = {"models", "gpus", "nics", "hosts", "instances", "workloads"};
    static const size_t counts[] = {5, 7, 1, 1, 23, 4};
    char **names;
    size_t i, n;

    (void)state;
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_int_equal(smg_names_list(kinds[i], &names), SMG_OK);
        for (n = 0; names[n] != NULL; n++) {
            assert_true(n == 0 || strcmp(names[n - 1], names[n]) < 0);
        }
        assert_int_equal(n, counts[i]);
        smg_names_free(names);
    }
    assert_true(smg_names_list("nothing", &names) < 0);
    smg_names_free(NULL);
}

/* Dense 16-bit tensor rate, memory rate and size, practical PCIe rate, as published for the board. */
static const struct {
    const char *name;
    double tflops, memory_GBps, memory_GB, pcie_GBps;
} gpus[] = {
    {"l20", 119.5, 864, 48, 26},     {"v100s", 130, 1134, 32, 13}, {"l4", 121, 300, 24, 26},     {"l40s", 362, 864, 48, 26},
    {"a100-80g", 312, 2039, 80, 26}, {"h100", 989, 3350, 80, 51},  {"h200", 989, 4800, 141, 51},
};

/* What is not measured for a device is L20's value, scaled by the rate of the memory. */
static void test_gpus(void **state)
{
    struct smg_diag d = {""};
    struct smg_gpu g, l20;
    double scale;
    size_t i;

    (void)state;
    assert_int_equal(smg_gpu_load("l20", &l20, &d), SMG_OK);
    assert_true(l20.prefill_flops == 120e12);
    /* Fixed part of a step, 84 ms: 40 overheads, the last layer's weights and the output head. */
    assert_near(40 * l20.decode_layer_overhead_s + 660602880 / 864e9 + 1555824640 / 864e9, 0.084, 1e-9);
    for (i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        assert_int_equal(smg_gpu_load(gpus[i].name, &g, &d), SMG_OK);
        assert_string_equal(g.name, gpus[i].name);
        assert_near(g.peak_flops, gpus[i].tflops * 1e12, 1);
        assert_near(g.memory_Bps, gpus[i].memory_GBps * 1e9, 1);
        assert_near(g.memory_bytes, gpus[i].memory_GB * 1e9, 1);
        assert_near(g.pcie_Bps, gpus[i].pcie_GBps * 1e9, 1);
        scale = l20.memory_Bps / g.memory_Bps;
        assert_near(g.decode_layer_overhead_s, l20.decode_layer_overhead_s * scale, 1e-5 * l20.decode_layer_overhead_s);
        assert_near(g.hack_layer_overhead_s, l20.hack_layer_overhead_s * scale, 1e-5 * l20.hack_layer_overhead_s);
        assert_near(g.hack_unpack_Bps, l20.hack_unpack_Bps / scale, 1e-5 * l20.hack_unpack_Bps / scale);
        if (strcmp(gpus[i].name, "l20") != 0) {
            assert_near(g.prefill_flops, strcmp(gpus[i].name, "a100-80g") == 0 ? 1.9 * 120e12 : 0.5 * g.peak_flops, 1);
        }
    }
}

static void test_nic_and_host(void **state)
{
    struct smg_diag d = {""};
    struct smg_host h;
    struct smg_nic n;

    (void)state;
    assert_int_equal(smg_nic_load("default", &n, &d), SMG_OK);
    assert_true(n.post_cost_s == 1e-6 && n.max_message_bytes == 1073741824 && n.rpc_overhead_s == 0);
    assert_int_equal(smg_host_load("default", &h, &d), SMG_OK);
    assert_near(16 * h.gather_Bps_per_vcpu, 6.06e9, 1);
    assert_true(h.gather_exponent == 1);
}

/* Each value of each built-in file says where it comes from and how it was made. */
static void test_origins(void **state)
{
    static const char *const kinds[] = {"gpus", "nics", "hosts", "instances"};
    struct smg_diag d = {""};
    char path[SMG_PATH_MAX], **names;
    const char *key;
    json_t *root, *value;
    size_t i, n;

    (void)state;
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_int_equal(smg_names_list(kinds[i], &names), SMG_OK);
        for (n = 0; names[n] != NULL; n++) {
            assert_int_equal(smg_data_resolve(kinds[i], "file", names[n], path, &d), SMG_OK);
            root = json_load_file(path, 0, NULL);
            assert_non_null(root);
            json_object_foreach(root, key, value)
            {
                assert_true(json_string_length(json_object_get(value, "source")) > 0);
                assert_true(json_string_length(json_object_get(value, "derivation")) > 0);
            }
            json_decref(root);
        }
        smg_names_free(names);
    }
}

#define GOOD "\"post_cost_s\": {\"value\": 0, \"unit\": \"s\", \"source\": \"x\"}, \"max_message_bytes\": "

static const struct {
    const char *rest, *message;
} bad[] = {
    {"1}", AT "key 'max_message_bytes': expected {\"value\": NUMBER, \"unit\": \"B\", \"source\": TEXT}, found '1'"},
    {"{\"value\": 0, \"unit\": \"B\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.value': expected a number in [256, 1e+13] B, found '0'"},
    {"{\"value\": 1e22, \"unit\": \"B\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.value': expected a number in [256, 1e+13] B, found '1e22'"},
    {"{\"value\": \"1e9\", \"unit\": \"B\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.value': expected a number in [256, 1e+13] B, found '\"1e9\"'"},
    {"{\"unit\": \"B\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.value': expected a number in [256, 1e+13] B, found nothing"},
    {"{\"value\": 1024, \"unit\": \"KiB\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.unit': expected \"B\", found '\"KiB\"'; multiply the value by 1024"},
    {"{\"value\": 1024, \"unit\": \"bytes\", \"source\": \"x\"}}",
     AT "key 'max_message_bytes.unit': expected \"B\", found '\"bytes\"'"},
    {"{\"value\": 1024, \"source\": \"x\"}}", AT "key 'max_message_bytes.unit': expected \"B\", found nothing"},
    {"{\"value\": 1024, \"unit\": \"B\"}}",
     AT "key 'max_message_bytes.source': expected a text that says where the value comes from, found nothing"},
    {"{\"value\": 1024, \"unit\": \"B\", \"source\": \"\"}}",
     AT "key 'max_message_bytes.source': expected a text that says where the value comes from, found '\"\"'"},
    {"{\"value\": 1024, \"unit\": \"B\", \"source\": \"none\"}}",
     AT "key 'max_message_bytes.derivation': expected a text that says how the value was estimated, because source is \"none\", "
        "found nothing"},
    {"{\"value\": 1024, \"unit\": \"B\", \"source\": \"x\", \"derivation\": 5}}",
     AT "key 'max_message_bytes.derivation': expected a text, found '5'"},
    {"{\"valeu\": 1}}", AT "key 'max_message_bytes.valeu': unknown key; did you mean 'value'?"},
    {"{\"value\": 1024, \"unit\": \"B\", \"source\": \"x\"}}",
     AT "key 'rpc_overhead_s': expected {\"value\": NUMBER, \"unit\": \"s\", \"source\": TEXT}, found nothing"},
    {"1, \"rpc_overhead\": 1}", AT "key 'rpc_overhead': unknown key; did you mean 'rpc_overhead_s'?"},
};

static void test_bad_hardware(void **state)
{
    char text[512];
    struct smg_nic n;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{%s%s", GOOD, bad[i].rest);
        write_file(text);
        assert_int_equal(smg_nic_load("./" FILE_NAME, &n, &d), SMG_ERR_PARSE);
        remove(FILE_NAME);
        assert_string_equal(d.text, bad[i].message);
    }
    assert_int_equal(smg_nic_load("defalt", &n, &d), SMG_ERR_NOT_FOUND);
    assert_string_equal(d.text, "unknown NIC 'defalt'; did you mean 'default'?");
}

/* ---- Instance types ---- */

/* What the providers state, spot by spot; every built-in one loads. */
static const struct {
    const char *name, *gpu;
    uint32_t gpus, vcpus;
    double gbps, gib;
} instances[] = {
    {"g6.xlarge", "l4", 1, 4, 2.5, 16},
    {"g6.12xlarge", "l4", 4, 48, 40, 192},
    {"g6.16xlarge", "l4", 1, 64, 25, 256},
    {"g6.48xlarge", "l4", 8, 192, 100, 768},
    {"g6e.xlarge", "l40s", 1, 4, 2.5, 32},
    {"g6e.4xlarge", "l40s", 1, 16, 20, 128},
    {"g6e.12xlarge", "l40s", 4, 48, 100, 384},
    {"g6e.48xlarge", "l40s", 8, 192, 400, 1536},
    {"a2-ultragpu-1g", "a100-80g", 1, 12, 24, 170},
    {"a2-ultragpu-8g", "a100-80g", 8, 96, 100, 1360},
    {"paper-25gbps", "l20", 1, 16, 25, 128},
    {"paper-32gbps", "l20", 2, 32, 32, 256},
};

static void test_instances(void **state)
{
    struct smg_diag d = {""};
    struct smg_instance t;
    struct smg_gpu g;
    char **names;
    size_t i;

    (void)state;
    assert_int_equal(smg_names_list("instances", &names), SMG_OK);
    for (i = 0; names[i] != NULL; i++) {
        assert_int_equal(smg_instance_load(names[i], &t, &d), SMG_OK);
        assert_int_equal(smg_gpu_load(t.gpu, &g, &d), SMG_OK);
    }
    smg_names_free(names);
    for (i = 0; i < sizeof(instances) / sizeof(instances[0]); i++) {
        assert_int_equal(smg_instance_load(instances[i].name, &t, &d), SMG_OK);
        assert_string_equal(t.name, instances[i].name);
        assert_string_equal(t.gpu, instances[i].gpu);
        assert_int_equal(t.gpus_per_node, instances[i].gpus);
        assert_int_equal(t.vcpus, instances[i].vcpus);
        assert_true(t.link_gbps == instances[i].gbps && t.host_memory_gib == instances[i].gib);
    }
    assert_int_equal(smg_instance_load("g6.xlarg", &t, &d), SMG_ERR_NOT_FOUND);
    assert_string_equal(d.text, "unknown instance type 'g6.xlarg'; did you mean 'g6.xlarge'?");
}

#define INSTANCE(gpu, unit, gpus)                                                                                                \
    "{\"gpu\": {\"value\": " gpu ", \"unit\": \"name\", \"source\": \"x\"}, "                                                    \
    "\"gpus_per_node\": {\"value\": " gpus ", \"unit\": \"1\", \"source\": \"x\"}, "                                             \
    "\"link_gbps\": {\"value\": 12.5, \"unit\": \"" unit "\", \"source\": \"x\"}, "                                              \
    "\"vcpus\": {\"value\": 8, \"unit\": \"1\", \"source\": \"x\"}, "                                                            \
    "\"host_memory_gib\": {\"value\": 64, \"unit\": \"GiB\", \"source\": \"x\"}}"

static void test_bad_instances(void **state)
{
    static const struct {
        const char *json, *message;
        int status;
    } wrong[] = {
        {INSTANCE("\"l4\"", "GB/s", "1"),
         AT "key 'link_gbps.unit': expected \"Gbit/s\", found '\"GB/s\"'; multiply the value by 8", SMG_ERR_PARSE},
        {INSTANCE("\"l5\"", "Gbit/s", "1"), AT "key 'gpu.value': unknown GPU 'l5'; did you mean 'l4'?", SMG_ERR_PARSE},
        {INSTANCE("4", "Gbit/s", "1"), AT "key 'gpu.value': expected a text of 1 to 1023 bytes, found '4'", SMG_ERR_PARSE},
        {INSTANCE("\"l4\"", "Gbit/s", "1.5"), AT "key 'gpus_per_node.value': expected an integer in [1, 64], found '1.5'",
         SMG_ERR_PARSE},
        {INSTANCE("\"l4\"", "Gbit/s", "0"), AT "key 'gpus_per_node.value': expected an integer in [1, 64], found '0'",
         SMG_ERR_PARSE},
    };
    struct smg_instance t;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_file(wrong[i].json);
        assert_int_equal(smg_instance_load("./" FILE_NAME, &t, &d), wrong[i].status);
        remove(FILE_NAME);
        assert_string_equal(d.text, wrong[i].message);
    }
}

static struct smg_world world_of(const char *const *sets, size_t n)
{
    struct smg_scenario s;
    struct smg_world w;
    struct smg_diag d = {""};

    memset(&w, 0, sizeof(w));
    if (smg_scenario_load(NULL, sets, n, &s, &d) != SMG_OK || smg_world_load(&s, &w, &d) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    return w;
}
#define WORLD(...)                                                                                                               \
    world_of((const char *const[]){"scheme=full", __VA_ARGS__},                                                                  \
             sizeof((const char *const[]){"scheme=full", __VA_ARGS__}) / sizeof(const char *))

/* Keys that are given win, before or after; the other pool is left alone. */
static void test_filling(void **state)
{
    struct smg_world w = WORLD("decode.vcpus=7", "decode.instance=g6e.12xlarge", "decode.gpus_per_node=1");

    (void)state;
    assert_string_equal(w.scenario.decode.gpu, "l40s");
    assert_string_equal(w.decode_gpu.name, "l40s");
    assert_int_equal(w.scenario.decode.gpus_per_node, 1);
    assert_int_equal(w.scenario.decode.vcpus, 7);
    assert_true(w.scenario.decode.link_gbps == 100 && w.scenario.decode.host_memory_gib == 384);
    assert_string_equal(w.scenario.prefill.gpu, "l20");
    assert_true(w.scenario.prefill.link_gbps == 32);
    smg_world_free(&w);
    w = WORLD("prefill.instance=g6.12xlarge", "prefill.gpu=l20");
    assert_string_equal(w.prefill_gpu.name, "l20");
    assert_int_equal(w.prefill_instances, 12);
    smg_world_free(&w);
}

/* The resolved scenario states the values, so what it says does not depend on the instance file, and gives the same world. */
static void test_resolved(void **state)
{
    struct smg_world a = WORLD("decode.instance=a2-ultragpu-1g", "decode.link_gbps=10"), b;
    json_t *j = smg_scenario_json(&a.scenario);
    json_t *decode = json_object_get(j, "decode");
    struct smg_scenario s;
    struct smg_diag d = {""};

    (void)state;
    assert_string_equal(json_string_value(json_object_get(decode, "gpu")), "a100-80g");
    assert_true(json_real_value(json_object_get(decode, "link_gbps")) == 10);
    assert_int_equal(json_integer_value(json_object_get(decode, "vcpus")), 12);
    assert_string_equal(json_string_value(json_object_get(decode, "instance")), "a2-ultragpu-1g");
    assert_int_equal(smg_scenario_from_json(j, &s, &d), SMG_OK);
    assert_true(smg_instance_idle(&s.decode));
    assert_false(smg_instance_idle(&s.prefill));
    assert_int_equal(smg_world_load(&s, &b, &d), SMG_OK);
    assert_memory_equal(&a.scenario, &b.scenario, sizeof(a.scenario));
    assert_memory_equal(&a.decode_gpu, &b.decode_gpu, sizeof(a.decode_gpu));
    json_decref(j);
    smg_world_free(&a);
    smg_world_free(&b);
}

/* A scenario that is not resolved does not claim values that the instance type will decide. */
static void test_unresolved(void **state)
{
    const char *sets[] = {"decode.instance=g6.xlarge", "decode.vcpus=3"};
    struct smg_scenario s;
    struct smg_diag d;
    json_t *j, *decode;

    (void)state;
    assert_int_equal(smg_scenario_load(NULL, sets, 2, &s, &d), SMG_OK);
    j = smg_scenario_json(&s);
    decode = json_object_get(j, "decode");
    assert_true(json_is_null(json_object_get(decode, "link_gbps")));
    assert_int_equal(json_integer_value(json_object_get(decode, "vcpus")), 3);
    assert_true(json_is_real(json_object_get(json_object_get(j, "prefill"), "link_gbps")));
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_gpus),         cmocka_unit_test(test_nic_and_host),
        cmocka_unit_test(test_origins),       cmocka_unit_test(test_bad_hardware), cmocka_unit_test(test_instances),
        cmocka_unit_test(test_bad_instances), cmocka_unit_test(test_filling),      cmocka_unit_test(test_resolved),
        cmocka_unit_test(test_unresolved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
