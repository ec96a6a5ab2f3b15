/* Inputs: hardware descriptions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "traces/world.h"

#define FILE_NAME                    "test_inputs.tmp.json"

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
    static const char *const kinds[] = {"models", "gpus", "nics", "hosts", "workloads"};
    static const size_t counts[] = {5, 7, 1, 1, 4};
    char **names;
    size_t i, n;

    (void)state;
    for (i = 0; i < 5; i++) {
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

static void test_hardware(void **state)
{
    struct smg_diag d = {""};
    struct smg_gpu g, l20;
    struct smg_host h;
    struct smg_nic n;
    char **names;
    size_t i;

    (void)state;
    assert_int_equal(smg_names_list("gpus", &names), SMG_OK);
    for (i = 0; names[i] != NULL; i++) {
        assert_int_equal(smg_gpu_load(names[i], &g, &d), SMG_OK);
        assert_true(g.prefill_flops > 0 && g.memory_bytes >= 24e9 && g.decode_layer_overhead_s > 0);
    }
    smg_names_free(names);
    assert_int_equal(smg_gpu_load("l20", &l20, &d), SMG_OK);
    assert_true(l20.prefill_flops == 120e12 && l20.memory_Bps == 864e9 && l20.memory_bytes == 48e9 && l20.pcie_Bps == 26e9);
    /* Fixed part of a step, 84 ms: 40 overheads, the last layer's weights and the output head. */
    assert_near(40 * l20.decode_layer_overhead_s + 660602880 / 864e9 + 1555824640 / 864e9, 0.084, 1e-9);
    assert_int_equal(smg_gpu_load("a100-80g", &g, &d), SMG_OK);
    assert_near(g.prefill_flops, 1.9 * l20.prefill_flops, 1);
    assert_int_equal(smg_nic_load("default", &n, &d), SMG_OK);
    assert_true(n.post_cost_s == 1e-6 && n.max_message_bytes == 1073741824 && n.rpc_overhead_s == 0);
    assert_int_equal(smg_host_load("default", &h, &d), SMG_OK);
    assert_near(16 * h.gather_Bps_per_vcpu, 6.06e9, 1);
    assert_true(h.gather_exponent == 1);
}

static void test_bad_hardware(void **state)
{
    static const char *const good =
        "\"post_cost_s\": {\"value\": 0, \"unit\": \"s\", \"source\": \"x\"}, \"max_message_bytes\": ";
    static const struct {
        const char *rest, *message;
    } bad[] = {
        {"1}", "./" FILE_NAME ": key 'max_message_bytes': expected {\"value\", \"unit\", \"source\", \"derivation\"}"},
        {"{\"value\": 0, \"unit\": \"B\", \"source\": \"\"}}",
         "./" FILE_NAME ": key 'max_message_bytes': 'value': expected a number > 0"},
        {"{\"value\": 1e22, \"unit\": \"B\", \"source\": \"\"}}",
         "./" FILE_NAME ": key 'max_message_bytes': 'value': expected a number in [1e-12, 1e21], found 1e+22"},
        {"{\"value\": 1e-13, \"unit\": \"B\", \"source\": \"\"}}",
         "./" FILE_NAME ": key 'max_message_bytes': 'value': expected a number in [1e-12, 1e21], found 1e-13"},
        {"{\"value\": 1, \"unit\": \"KiB\", \"source\": \"\"}}",
         "./" FILE_NAME ": key 'max_message_bytes': 'unit': expected \"B\""},
        {"{\"value\": 1, \"unit\": \"B\"}}",
         "./" FILE_NAME ": key 'max_message_bytes': 'source' is missing: where does the value come from?"},
        {"{\"valeu\": 1}}", "./" FILE_NAME ": key 'max_message_bytes': key 'valeu': unknown key; did you mean 'value'?"},
        {"{\"value\": 1, \"unit\": \"B\", \"source\": \"\"}}", "./" FILE_NAME ": key 'rpc_overhead_s' is missing"},
        {"1, \"rpc_overhead\": 1}", "./" FILE_NAME ": key 'rpc_overhead': unknown key; did you mean 'rpc_overhead_s'?"},
    };
    char text[512];
    struct smg_nic n;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{%s%s", good, bad[i].rest);
        write_file(text);
        assert_int_equal(smg_nic_load("./" FILE_NAME, &n, &d), SMG_ERR_PARSE);
        remove(FILE_NAME);
        assert_string_equal(d.text, bad[i].message);
    }
    assert_int_equal(smg_nic_load("defalt", &n, &d), SMG_ERR_NOT_FOUND);
    assert_string_equal(d.text, "unknown NIC 'defalt'; did you mean 'default'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_hardware),      cmocka_unit_test(test_bad_hardware),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
