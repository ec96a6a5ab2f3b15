/* Model configurations: the built-in ones, files as the families publish them, and every kind of refusal with its message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "traces/model_config.h"
#include "traces/world.h"

#ifndef SMG_TESTDIR
#define SMG_TESTDIR "tests"
#endif
#define FILE_NAME                    "test_model_config.tmp.json"

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

    if (smg_model_load(name, &m, &d) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    return m;
}

static struct smg_model model_of(const char *json)
{
    struct smg_model m;

    write_file(json);
    m = load_model("./" FILE_NAME);
    remove(FILE_NAME);
    return m;
}

static uint32_t sliding_layers(const struct smg_model *m)
{
    uint32_t layer, n = 0;

    for (layer = 0; layer < m->layers; layer++) {
        n += m->sliding[layer];
    }
    return n;
}

/* Parameters as published; KV bytes per token from the same tables. */
static void test_built_in(void **state)
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

/* Files of tests/data/models: the keys that matter, as the family publishes them. Sizes are the published parameters of the text
 * model, which leave no more than 1% to biases, norms and rounding. */
static const struct {
    const char *name;
    double params;
    uint32_t layers, q_heads, kv_heads, head_dim, sliding, window_tokens, max_positions;
    uint64_t token_bytes;
    int tied;
} families[] = {
    {"llama-3.2-1b", 1.24e9, 16, 32, 8, 64, 0, 0, 131072, 32768, 1},
    {"llama-3.1-70b", 70.6e9, 80, 64, 8, 128, 0, 0, 131072, 327680, 0},
    {"llama-3.1-8b-awq", 8.03e9, 32, 32, 8, 128, 0, 0, 131072, 131072, 0},
    {"qwen2.5-7b", 7.62e9, 28, 28, 4, 128, 0, 0, 32768, 57344, 0},
    {"qwen2.5-vl-7b", 7.62e9, 28, 28, 4, 128, 0, 0, 128000, 57344, 0},
    {"qwen3-0.6b", 0.6e9, 28, 16, 8, 128, 0, 0, 40960, 114688, 1},
    {"gemma-2-9b", 9.24e9, 42, 16, 8, 256, 21, 4096, 8192, 688128, 1},
    {"gemma-3-1b", 1.0e9, 26, 4, 1, 256, 22, 512, 32768, 26624, 1},
    {"gemma-3-4b", 3.88e9, 34, 8, 4, 256, 29, 1024, 131072, 139264, 1},
    {"gemma-3-27b", 27.0e9, 62, 32, 16, 128, 52, 1024, 131072, 507904, 1},
    {"phi-3-mini-4k", 3.82e9, 32, 32, 32, 96, 32, 2047, 4096, 393216, 0},
    {"phi-3-mini-128k", 3.82e9, 32, 32, 32, 96, 0, 0, 131072, 393216, 0},
    {"mistral-7b-v0.1", 7.24e9, 32, 32, 8, 128, 32, 4096, 32768, 131072, 0},
    {"mistral-7b-v0.3", 7.25e9, 32, 32, 8, 128, 0, 0, 32768, 131072, 0},
    {"mistral-nemo-12b", 12.25e9, 40, 32, 8, 128, 0, 0, 131072, 163840, 0},
    {"mistral-small-3.1-24b", 23.57e9, 40, 32, 8, 128, 0, 0, 131072, 163840, 0},
    {"pixtral-12b", 12.25e9, 40, 32, 8, 128, 0, 0, 1024000, 163840, 0},
    {"granite-3.1-8b", 8.17e9, 40, 32, 8, 128, 0, 0, 131072, 163840, 1},
    {"olmo-2-7b", 7.3e9, 32, 32, 32, 128, 0, 0, 4096, 1048576, 0},
    {"smollm3-3b", 3.08e9, 36, 16, 4, 128, 0, 0, 65536, 73728, 1},
    {"command-r7b", 8.03e9, 32, 32, 8, 128, 24, 4096, 132096, 131072, 1},
};

static void test_families(void **state)
{
    char path[512];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        struct smg_model m;

        snprintf(path, sizeof(path), "%s/data/models/%s.json", SMG_TESTDIR, families[i].name);
        m = load_model(path);

        assert_string_equal(m.name, families[i].name);
        assert_near(smg_model_params(&m), families[i].params, 0.01 * families[i].params);
        assert_int_equal(m.layers, families[i].layers);
        assert_int_equal(m.q_heads, families[i].q_heads);
        assert_int_equal(m.kv_heads, families[i].kv_heads);
        assert_int_equal(m.head_dim, families[i].head_dim);
        assert_int_equal(sliding_layers(&m), families[i].sliding);
        assert_int_equal(m.window_tokens, families[i].window_tokens);
        assert_int_equal(m.max_positions, families[i].max_positions);
        assert_true(smg_model_token_bytes(&m) == families[i].token_bytes);
        assert_int_equal(m.tied_embeddings, families[i].tied);
        assert_int_equal(m.quantized_weights, strcmp(families[i].name, "llama-3.1-8b-awq") == 0);
    }
}

#define SIZES                                                                                                                    \
    "\"num_hidden_layers\": 4, \"hidden_size\": 64, \"num_attention_heads\": 8, \"intermediate_size\": 128, \"vocab_size\": 100"
#define TYPE(name) "\"model_type\": \"" name "\""
#define BASE       TYPE("llama") ", " SIZES

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

/* A key that is absent takes the family's value, one that is null does not. */
static void test_family_defaults(void **state)
{
    struct smg_model m = model_of("{" TYPE("qwen3") ", " SIZES "}");

    (void)state;
    assert_int_equal(m.head_dim, 128);
    m = model_of("{" TYPE("qwen3") ", " SIZES ", \"head_dim\": null}");
    assert_int_equal(m.head_dim, 8);
    m = model_of("{" TYPE("mistral") ", " SIZES "}");
    assert_int_equal(m.kv_heads, 8);
    assert_int_equal(m.window_tokens, 4096);
    assert_sliding(&m, "1111");
    m = model_of("{" TYPE("mistral") ", " SIZES ", \"sliding_window\": null}");
    assert_int_equal(m.window_tokens, 0);
    assert_sliding(&m, "0000");
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
    m = model_of("{" TYPE("qwen2") ", " SIZES ", \"sliding_window\": 16, \"max_window_layers\": 2}");
    assert_sliding(&m, "0000");
    m = model_of("{" TYPE("qwen2") ", " SIZES
                                   ", \"sliding_window\": 16, \"use_sliding_window\": true, \"max_window_layers\": 3}");
    assert_sliding(&m, "0001");
    m = model_of("{" BASE ", \"sliding_window\": 16, \"sliding_window_pattern\": 2}");
    assert_sliding(&m, "1010");
    m = model_of("{" TYPE("gemma2") ", " SIZES ", \"sliding_window\": 16}");
    assert_sliding(&m, "1010");
    m = model_of("{" BASE
                 ", \"sliding_window\": 16, \"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", "
                 "\"full_attention\"]}");
    assert_sliding(&m, "0110");
    m = model_of("{" BASE ", \"sliding_window\": null}");
    assert_sliding(&m, "0000");
}

/* layer_types wins over a pattern; a window that no prompt fills is none, so that the layers select. */
static void test_windows_that_never_bind(void **state)
{
    struct smg_model m;

    (void)state;
    m = model_of("{" TYPE("gemma2") ", " SIZES ", \"sliding_window\": 16, \"sliding_window_pattern\": 2, \"layer_types\": "
                                    "[\"full_attention\", \"full_attention\", \"full_attention\", \"sliding_attention\"]}");
    assert_sliding(&m, "0001");
    m = model_of("{" BASE ", \"sliding_window\": 16, \"max_position_embeddings\": 17}");
    assert_int_equal(m.window_tokens, 16);
    m = model_of("{" BASE ", \"sliding_window\": 16, \"max_position_embeddings\": 16}");
    assert_int_equal(m.window_tokens, 0);
    assert_sliding(&m, "0000");
    assert_true(smg_model_layer_selects(&m, 2));
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
    /* Sizes beside text_config are another part's; the text model's family follows from the whole when it is not stated. */
    m = model_of("{" TYPE("gemma3") ", \"hidden_size\": 7, \"text_config\": {" SIZES ", \"sliding_window\": 16}}");
    assert_int_equal(m.hidden, 64);
    assert_int_equal(m.head_dim, 256);
    assert_int_equal(m.tied_embeddings, 1);
}

/* Files without model_type: architectures decides. */
static void test_architectures(void **state)
{
    struct smg_model m = model_of("{\"architectures\": [\"Qwen3ForCausalLM\"], " SIZES "}");

    (void)state;
    assert_int_equal(m.head_dim, 128);
}

static const struct {
    const char *json, *message;
} bad[] = {
    {"{" SIZES "}",
     "key 'model_type' is missing, and 'architectures' names no known family; a dense decoder with Llama's keys may "
     "say 'llama'"},
    {"{\"architectures\": [\"LamaForCausalLM\"], " SIZES "}",
     "key 'model_type' is missing, and 'architectures' names no known family; a dense decoder with Llama's keys may say 'llama'"},
    {"{" TYPE("lama") ", " SIZES "}",
     "key 'model_type': expected a known model family, found 'lama'; did you mean 'llama'? A dense decoder with Llama's keys may "
     "say 'llama'"},
    {"{" TYPE("zzzzzz") "}",
     "key 'model_type': expected a known model family, found 'zzzzzz'; a dense decoder with Llama's keys may say 'llama'"},
    {"{\"model_type\": 5}", "key 'model_type': expected the name of a model family, found '5'"},
    {"{\"model_type\": null}", "key 'model_type': expected the name of a model family, found 'null'"},
    {"{" TYPE("gemma3") ", \"text_config\": 1}", "key 'text_config': expected an object, found '1'"},
    {"{" TYPE("gemma3") ", \"text_config\": {" TYPE("gema3_text") "}}",
     "key 'text_config.model_type': expected a known model family, found 'gema3_text'; did you mean 'gemma3_text'? A dense "
     "decoder with Llama's keys may say 'llama'"},
    {"{" TYPE("gemma3") ", \"text_config\": {\"num_hidden_layers\": 4}}",
     "key 'text_config.hidden_size': expected an integer in [1, 1048576], found nothing"},
    {"{" TYPE("deepseek_v3") "}", "key 'model_type': 'deepseek_v3' is not supported: multi-head latent attention keeps one "
                                  "compressed vector per token instead of K and V per head"},
    {"{" TYPE("mixtral") "}",
     "key 'model_type': 'mixtral' is not supported: mixture of experts: which weights a decode step reads "
     "depends on the routing, which is not modelled"},
    {"{" TYPE("mamba2") "}",
     "key 'model_type': 'mamba2' is not supported: state-space layers keep a fixed state instead of K and V per token"},
    {"{" TYPE("falcon_h1") "}",
     "key 'model_type': 'falcon_h1' is not supported: most of its layers keep a fixed state instead of K and V per token"},
    {"{" TYPE("t5") "}", "key 'model_type': 't5' is not supported: an encoder-decoder: decoding reads the encoder's output by "
                         "cross-attention, not a prompt's KV cache"},
    {"{" TYPE("mllama") ", \"text_config\": {" BASE "}}",
     "key 'model_type': 'mllama' is not supported: its cross-attention layers read the KV of an image, which is not a prompt's"},
    {"{" TYPE("opt") ", \"ffn_dim\": 8192}",
     "key 'model_type': 'opt' is not supported: its FFN has two matrices, not three, so parameters and times would be wrong "
     "(docs/models-and-hardware.md says how to stand in for it)"},
    {"{" TYPE("gpt2") ", \"n_embd\": 768}", "key 'model_type': 'gpt2' is not supported: it has other key names (such as n_embd, "
                                            "n_layer) and an FFN of two matrices, not "
                                            "three (docs/models-and-hardware.md says how to stand in for it)"},
    {"{" BASE ", \"kv_lora_rank\": 512}", "key 'kv_lora_rank' is not supported: multi-head latent attention keeps one compressed "
                                          "vector per token instead of K and V per head"},
    {"{" TYPE("unheard_of") ", \"num_experts\": 8}",
     "key 'num_experts' is not supported: mixture of experts: which weights a decode step reads is not modelled"},
    {"{" BASE ", \"mamba_d_state\": 16}", "key 'mamba_d_state' is not supported: state-space layers keep no KV cache"},
    {"{" TYPE("gemma3") ", \"text_config\": {" SIZES ", \"num_kv_shared_layers\": 3}}",
     "key 'text_config.num_kv_shared_layers' is not supported: some layers share the KV cache of others"},
    {"{" BASE ", \"is_encoder_decoder\": true}",
     "key 'is_encoder_decoder' is not supported: an encoder-decoder: decoding reads the "
     "encoder's output, not a prompt's KV cache"},
    {"{" BASE ", \"head_dim\": 0}", "key 'head_dim': expected an integer in [1, 65536], found '0'"},
    {"{" BASE ", \"head_dim\": \"8\"}", "key 'head_dim': expected an integer in [1, 65536], found '\"8\"'"},
    {"{" BASE ", \"num_key_value_heads\": 3}",
     "key 'num_key_value_heads': expected a divisor of num_attention_heads 8, found '3'"},
    {"{" TYPE("llama") ", \"num_hidden_layers\": 4, \"hidden_size\": 60, \"num_attention_heads\": 8, \"intermediate_size\": 128, "
                       "\"vocab_size\": 100}",
     "key 'head_dim': is missing, and num_attention_heads 8 does not divide hidden_size 60"},
    {"{" BASE ", \"torch_dtype\": \"int4\"}", "key 'torch_dtype': expected bfloat16, float16 or float32, found '\"int4\"'"},
    {"{" BASE ", \"tie_word_embeddings\": 1}", "key 'tie_word_embeddings': expected true or false, found '1'"},
    {"{" BASE ", \"use_sliding_window\": \"no\"}", "key 'use_sliding_window': expected true or false, found '\"no\"'"},
    {"{" BASE ", \"sliding_window\": 4, \"use_sliding_window\": true}",
     "key 'max_window_layers': expected an integer in [0, 1048576], because use_sliding_window is true, found nothing"},
    {"{" BASE ", \"quantization_config\": 4}", "key 'quantization_config': expected an object or null, found '4'"},
    {"{" BASE ", \"quantization_config\": {\"kv_cache_scheme\": {\"num_bits\": 8}}}",
     "key 'quantization_config.kv_cache_scheme' is not supported: K and V have the size of dtype; set it to null for a cache "
     "that "
     "is not quantised"},
    {"{" BASE ", \"layer_types\": [\"full_attention\"]}",
     "key 'layer_types': expected a list of 4, one entry per layer, found a list of 1"},
    {"{" BASE ", \"layer_types\": [\"full_attention\", \"linear_attention\", \"a\", \"b\"]}",
     "key 'layer_types[1]': expected full_attention or sliding_attention (no other layer is modelled), found "
     "'\"linear_attention\"'"},
    {"{" BASE ", \"sliding_window_pattern\": 2, \"layer_types\": [\"sliding_attention\", \"sliding_attention\", "
     "\"sliding_attention\", \"full_attention\"]}",
     "key 'sliding_window': expected an integer in [1, 1073741824], found nothing"},
    {"{" TYPE("llama") ", \"num_hidden_layers\": 257}", "key 'num_hidden_layers': expected an integer in [1, 256], found '257'"},
    {"{" TYPE("llama") ", \"num_hidden_layers\": 4}", "key 'hidden_size': expected an integer in [1, 1048576], found nothing"},
    {"{" TYPE("llama") ", \"num_hiden_layers\": 4}",
     "key 'num_hidden_layers': expected an integer in [1, 256], found nothing; is 'num_hiden_layers' misspelt?"},
    {"{" TYPE("llama") "}", "key 'num_hidden_layers': expected an integer in [1, 256], found nothing"},
};

static void test_bad_models(void **state)
{
    char expected[512];
    struct smg_model m, untouched;
    struct smg_diag d;
    size_t i;

    (void)state;
    memset(&m, 0x5a, sizeof(m));
    untouched = m;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(bad[i].json);
        assert_true(smg_model_load("./" FILE_NAME, &m, &d) < 0);
        remove(FILE_NAME);
        snprintf(expected, sizeof(expected), "./%s: %s", FILE_NAME, bad[i].message);
        assert_string_equal(d.text, expected);
        assert_memory_equal(&m, &untouched, sizeof(m));
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

#define SMALL                                                                                                                    \
    "\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 64, \"intermediate_size\": 128, "                     \
    "\"num_attention_heads\": 8, \"vocab_size\": 100, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-6"
#define SIXTEEN ", \"torch_dtype\": \"bfloat16\""

/* A key with a default that is misspelt is told; the many keys that are not read are not. */
static void test_note(void **state)
{
    struct smg_diag d = {""};

    (void)state;
    write_file("{" SMALL ", \"num_key_value_head\": 2}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_string_equal(d.text, FILE_NAME ": key 'num_key_value_head': is not read; did you mean 'num_key_value_heads'?");
    write_file("{\"model_type\": \"gemma3\", \"text_config\": {" SMALL ", \"slidding_window\": 9}}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_non_null(strstr(d.text, "did you mean 'sliding_window'?"));
    write_file("{" SMALL SIXTEEN ", \"num_key_value_heads\": 2, \"num_key_value_head\": 2}"); /* that one is read */
    assert_int_equal(smg_model_note(FILE_NAME, &d), 0);
    write_file("{" SMALL SIXTEEN ", \"rope_theta\": 1, \"bos_token_id\": 1, \"attention_bias\": false, \"use_cache\": true}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 0);
    assert_int_equal(smg_model_note("qwen3-14b", &d), 0);
    /* The size of the cache hangs on the type. */
    write_file("{" SMALL ", \"dtype\": null, \"torch_dtpe\": \"float32\"}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_string_equal(d.text, FILE_NAME ": key 'torch_dtpe': is not read; did you mean 'torch_dtype'?");
    write_file("{\"model_type\": \"gemma3\", \"dtpe\": \"float32\", \"text_config\": {" SMALL "}}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_string_equal(d.text, FILE_NAME ": key 'dtpe': is not read; did you mean 'dtype'?");
    write_file("{" SMALL ", \"dtpye\": \"float32\"}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_string_equal(d.text, FILE_NAME ": key 'dtpye': is not read; did you mean 'dtype'?");
    write_file("{" SMALL ", \"data_type\": \"float32\"}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 1);
    assert_string_equal(d.text, FILE_NAME ": key 'dtype' is missing: 2 bytes are taken for a number of K or V");
    write_file("{" SMALL ", \"dtype\": \"float16\", \"type\": 1}");
    assert_int_equal(smg_model_note(FILE_NAME, &d), 0);
    write_file("{\"model_type\": \"gemma3\"" SIXTEEN ", \"text_config\": {" SMALL "}}"); /* beside the text model will do */
    assert_int_equal(smg_model_note(FILE_NAME, &d), 0);
    assert_int_equal(remove(FILE_NAME), 0);
}

/* Some editors put a byte order mark in front. */
static void test_byte_order_mark(void **state)
{
    (void)state;
    write_file("\xef\xbb\xbf{" SMALL ", \"num_key_value_heads\": 2}");
    assert_int_equal(load_model("./" FILE_NAME).kv_heads, 2);
    assert_int_equal(remove(FILE_NAME), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in),
        cmocka_unit_test(test_gemma_windows),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_config_defaults),
        cmocka_unit_test(test_family_defaults),
        cmocka_unit_test(test_sliding_rules),
        cmocka_unit_test(test_windows_that_never_bind),
        cmocka_unit_test(test_text_config),
        cmocka_unit_test(test_architectures),
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_bad_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
