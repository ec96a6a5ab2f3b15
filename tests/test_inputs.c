/* Inputs: model configs and hardware descriptions. */
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

static struct smg_model load_model(const char *name)
{
    struct smg_diag d = {""};
    struct smg_model m;

    assert_int_equal(smg_model_load(name, &m, &d), SMG_OK);
    return m;
}

/* Parameters as published; KV bytes per token from the same tables. */
static void test_models(void **state)
{
    static const struct {
        const char *name;
        double params;
        uint64_t token_bytes;
        uint32_t layers, kv_heads, head_dim;
    } known[] = {
        {"llama-3.1-8b", 8.03e9, 131072, 32, 8, 128}, {"qwen3-8b", 8.19e9, 147456, 36, 8, 128},
        {"qwen3-14b", 14.77e9, 163840, 40, 8, 128},   {"gemma-3-12b", 11.77e9, 393216, 48, 8, 256},
        {"phi-4", 14.66e9, 204800, 40, 10, 128},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct smg_model m = load_model(known[i].name);

        assert_string_equal(m.name, known[i].name);
        assert_true(smg_model_token_bytes(&m) == known[i].token_bytes);
        assert_near(smg_model_params(&m), known[i].params, 0.01 * known[i].params);
        assert_int_equal(m.layers, known[i].layers);
        assert_int_equal(m.kv_heads, known[i].kv_heads);
        assert_int_equal(m.head_dim, known[i].head_dim);
        assert_int_equal(m.window_tokens, strcmp(known[i].name, "gemma-3-12b") == 0 ? 1024 : 0);
    }
}

/* 40 of 48 layers keep 1,024 tokens: 320 MiB in all; the 8 global ones grow by 65,536 bytes a token. */
static void test_gemma_windows(void **state)
{
    struct smg_model m = load_model("gemma-3-12b");
    uint32_t layer;

    (void)state;
    assert_true(smg_model_prompt_bytes(&m, 5000) - smg_model_prompt_bytes(&m, 4999) == 65536);
    assert_true(smg_model_prompt_bytes(&m, 1024) - 1024 * 65536 == 320ull << 20);
    assert_true(smg_model_prompt_bytes(&m, 100000) - 100000ull * 65536 == 320ull << 20);
    for (layer = 0; layer < m.layers; layer++) {
        assert_int_equal(m.sliding[layer], (layer + 1) % 6 != 0);
    }
}

#define BASE                                                                                                                     \
    "\"num_hidden_layers\": 4, \"hidden_size\": 64, \"num_attention_heads\": 8, \"intermediate_size\": 128, \"vocab_size\": 100"

static struct smg_model model_of(const char *json)
{
    struct smg_model m;

    write_file(json);
    m = load_model("./" FILE_NAME);
    remove(FILE_NAME);
    return m;
}

static void assert_sliding(const struct smg_model *m, const char *expected)
{
    uint32_t layer;

    for (layer = 0; layer < m->layers; layer++) {
        assert_int_equal(m->sliding[layer], expected[layer] == '1');
    }
}

static void test_config_defaults(void **state)
{
    struct smg_model m = model_of("{" BASE "}");

    (void)state;
    assert_int_equal(m.kv_heads, 8);
    assert_int_equal(m.head_dim, 8);
    assert_int_equal(m.value_bytes, 2);
    assert_int_equal(m.max_positions, 0);
    assert_int_equal(m.tied_embeddings, 0);
    assert_sliding(&m, "0000");
    m = model_of("{" BASE
                 ", \"head_dim\": 32, \"num_key_value_heads\": 2, \"dtype\": \"float32\", \"tie_word_embeddings\": true}");
    assert_int_equal(m.kv_heads, 2);
    assert_int_equal(m.head_dim, 32);
    assert_int_equal(m.value_bytes, 4);
    assert_int_equal(m.tied_embeddings, 1);
}

static void test_sliding_rules(void **state)
{
    struct smg_model m;

    (void)state;
    m = model_of("{" BASE ", \"sliding_window\": 16}");
    assert_sliding(&m, "1111");
    assert_int_equal(m.window_tokens, 16);
    m = model_of("{" BASE ", \"sliding_window\": 16, \"use_sliding_window\": false, \"max_window_layers\": 2}");
    assert_sliding(&m, "0000");
    assert_int_equal(m.window_tokens, 0);
    m = model_of("{" BASE ", \"sliding_window\": 16, \"use_sliding_window\": true, \"max_window_layers\": 3}");
    assert_sliding(&m, "0001");
    m = model_of("{" BASE ", \"sliding_window\": 16, \"sliding_window_pattern\": 2}");
    assert_sliding(&m, "1010");
    m = model_of("{" BASE ", \"model_type\": \"gemma2\", \"sliding_window\": 16}");
    assert_sliding(&m, "1010");
    m = model_of("{" BASE
                 ", \"sliding_window\": 16, \"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", "
                 "\"full_attention\"]}");
    assert_sliding(&m, "0110");
    m = model_of("{" BASE ", \"sliding_window\": null}");
    assert_sliding(&m, "0000");
}

/* A published multimodal Gemma-3 file states only what differs from the library's defaults, under text_config. */
static void test_text_config(void **state)
{
    struct smg_model m =
        model_of("{\"model_type\": \"gemma3\", \"torch_dtype\": \"bfloat16\", \"text_config\": {\"model_type\": \"gemma3_text\", "
                 "\"hidden_size\": 3840, \"intermediate_size\": 15360, \"num_attention_heads\": 16, "
                 "\"num_hidden_layers\": 48, \"num_key_value_heads\": 8, \"sliding_window\": 1024}}");
    struct smg_model built_in = load_model("gemma-3-12b");

    (void)state;
    memcpy(m.name, built_in.name, sizeof(m.name));
    assert_memory_equal(&m, &built_in, sizeof(m));
}

static void test_bad_models(void **state)
{
    static const struct {
        const char *json, *message;
    } bad[] = {
        {"{" BASE ", \"kv_lora_rank\": 512}",
         "key 'kv_lora_rank': not supported: multi-head latent attention keeps a compressed vector "
         "instead of K and V per head"},
        {"{" BASE ", \"num_experts\": 8}", "key 'num_experts': not supported: mixture of experts: the FFN cost is not modelled"},
        {"{" BASE ", \"mamba_d_state\": 16}", "key 'mamba_d_state': not supported: state-space layers keep no KV cache"},
        {"{" BASE ", \"model_type\": \"mamba2\"}", "model_type 'mamba2': not supported: no KV cache"},
        {"{" BASE ", \"head_dim\": 0}", "key 'head_dim': expected an integer in [1, 65536]"},
        {"{" BASE ", \"num_key_value_heads\": 3}", "key 'num_key_value_heads': must divide num_attention_heads"},
        {"{" BASE ", \"torch_dtype\": \"int4\"}", "key 'torch_dtype': expected bfloat16, float16 or float32"},
        {"{" BASE ", \"layer_types\": [\"full_attention\"]}", "key 'layer_types': expected one entry per layer"},
        {"{" BASE ", \"layer_types\": [\"full_attention\", \"linear_attention\", \"a\", \"b\"]}",
         "key 'layer_types': layer 1: not supported: 'linear_attention'"},
        {"{" BASE ", \"sliding_window_pattern\": 2, \"layer_types\": [\"sliding_attention\", \"sliding_attention\", "
                  "\"sliding_attention\", "
         "\"full_attention\"]}",
         "key 'sliding_window': is missing"},
        {"{\"num_hidden_layers\": 257}", "key 'num_hidden_layers': expected an integer in [1, 256]"},
        {"{\"num_hidden_layers\": 4}", "key 'hidden_size': is missing"},
        {"{}", "key 'num_hidden_layers': is missing"},
    };
    char expected[512];
    struct smg_model m;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(bad[i].json);
        assert_true(smg_model_load("./" FILE_NAME, &m, &d) < 0);
        remove(FILE_NAME);
        snprintf(expected, sizeof(expected), "./%s: %s", FILE_NAME, bad[i].message);
        assert_string_equal(d.text, expected);
    }
    assert_int_equal(smg_model_load("qwen3-14", &m, &d), SMG_ERR_NOT_FOUND);
    assert_string_equal(d.text, "unknown model 'qwen3-14'; did you mean 'qwen3-14b'?");
    assert_int_equal(smg_model_load("no/such.json", &m, &d), SMG_ERR_IO);
    assert_string_equal(d.text, "no/such.json: cannot open: No such file or directory");
    write_file("{\"a\": 1,\n }");
    assert_int_equal(smg_model_load(FILE_NAME, &m, &d), SMG_ERR_PARSE);
    assert_non_null(strstr(d.text, FILE_NAME ":2:"));
    remove(FILE_NAME);
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
        cmocka_unit_test(test_models),        cmocka_unit_test(test_gemma_windows), cmocka_unit_test(test_config_defaults),
        cmocka_unit_test(test_sliding_rules), cmocka_unit_test(test_text_config),   cmocka_unit_test(test_bad_models),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_hardware),      cmocka_unit_test(test_bad_hardware),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
