/* The model families: what each leaves out of its config.json, and why some cannot be modelled. Values are those of the
 * transformers library's configuration classes. */
#include <stddef.h>
#include <string.h>

#include "traces/model_config.h"
#include "traces/text.h"

#define MLA     "multi-head latent attention keeps one compressed vector per token instead of K and V per head"
#define MOE     "mixture of experts: which weights a decode step reads depends on the routing, which is not modelled"
#define STATE   "state-space layers keep a fixed state instead of K and V per token"
#define HYBRID  "most of its layers keep a fixed state instead of K and V per token"
#define ENCODER "an encoder-decoder: decoding reads the encoder's output by cross-attention, not a prompt's KV cache"
#define CROSS   "its cross-attention layers read the KV of an image, which is not a prompt's"
#define SHARED  "some layers share the KV cache of others"
#define TWO_MATRICES                                                                                                             \
    "its FFN has two matrices, not three, so parameters and times would be wrong (docs/models-and-hardware.md says how to "      \
    "stand in for it)"
#define OTHER_KEYS                                                                                                               \
    "it has other key names (such as n_embd, n_layer) and an FFN of two matrices, not three (docs/models-and-hardware.md says "  \
    "how to stand in for it)"

#define REFUSED(type_, architecture_, why)                                                                                       \
    {                                                                                                                            \
        .type = type_, .architecture = architecture_, .refusal = why                                                             \
    }

static const struct smg_family table[] = {
    {.type = "llama", .architecture = "LlamaForCausalLM"},
    {.type = "mistral",
     .architecture = "MistralForCausalLM",
     .defaults = {{"num_attention_heads", 32}, {"num_key_value_heads", 8}, {"sliding_window", 4096}}},
    {.type = "mistral3", .architecture = "Mistral3ForConditionalGeneration", .text = "mistral"},
    {.type = "llava", .architecture = "LlavaForConditionalGeneration", .text = "llama"},
    {.type = "llava_next", .architecture = "LlavaNextForConditionalGeneration", .text = "llama"},
    {.type = "idefics3", .architecture = "Idefics3ForConditionalGeneration", .text = "llama"},
    {.type = "smolvlm", .architecture = "SmolVLMForConditionalGeneration", .text = "llama"},
    {.type = "qwen2", .architecture = "Qwen2ForCausalLM", .window = SMG_WINDOW_QWEN},
    {.type = "qwen2_vl", .architecture = "Qwen2VLForConditionalGeneration", .text = "qwen2_vl_text"},
    {.type = "qwen2_vl_text", .window = SMG_WINDOW_QWEN},
    {.type = "qwen2_5_vl", .architecture = "Qwen2_5_VLForConditionalGeneration", .text = "qwen2_5_vl_text"},
    {.type = "qwen2_5_vl_text", .window = SMG_WINDOW_QWEN},
    {.type = "qwen3", .architecture = "Qwen3ForCausalLM", .window = SMG_WINDOW_QWEN, .defaults = {{"head_dim", 128}}},
    {.type = "qwen3_vl", .architecture = "Qwen3VLForConditionalGeneration", .text = "qwen3_vl_text"},
    {.type = "qwen3_vl_text", .window = SMG_WINDOW_QWEN, .defaults = {{"head_dim", 128}}},
    {.type = "gemma", .architecture = "GemmaForCausalLM", .tied = 1, .defaults = {{"head_dim", 256}}},
    {.type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .tied = 1,
     .defaults = {{"head_dim", 256}, {"sliding_window", 4096}, {"sliding_window_pattern", 2}}},
    {.type = "gemma3", .architecture = "Gemma3ForConditionalGeneration", .text = "gemma3_text"},
    {.type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .tied = 1,
     .defaults = {{"vocab_size", 262208},
                  {"num_attention_heads", 8},
                  {"num_key_value_heads", 4},
                  {"head_dim", 256},
                  {"max_position_embeddings", 131072},
                  {"sliding_window_pattern", 6}}},
    {.type = "phi3", .architecture = "Phi3ForCausalLM"},
    {.type = "granite", .architecture = "GraniteForCausalLM"},
    {.type = "olmo2", .architecture = "Olmo2ForCausalLM"},
    {.type = "smollm3", .architecture = "SmolLM3ForCausalLM", .tied = 1, .window = SMG_WINDOW_QWEN},
    {.type = "cohere2",
     .architecture = "Cohere2ForCausalLM",
     .tied = 1,
     .defaults = {{"sliding_window", 4096}, {"sliding_window_pattern", 4}}},

    REFUSED("deepseek_v2", "DeepseekV2ForCausalLM", MLA),
    REFUSED("deepseek_v3", "DeepseekV3ForCausalLM", MLA),
    REFUSED("minicpm3", "MiniCPM3ForCausalLM", MLA),
    REFUSED("mixtral", "MixtralForCausalLM", MOE),
    REFUSED("qwen2_moe", "Qwen2MoeForCausalLM", MOE),
    REFUSED("qwen3_moe", "Qwen3MoeForCausalLM", MOE),
    REFUSED("phimoe", "PhimoeForCausalLM", MOE),
    REFUSED("olmoe", "OlmoeForCausalLM", MOE),
    REFUSED("granitemoe", "GraniteMoeForCausalLM", MOE),
    REFUSED("gpt_oss", "GptOssForCausalLM", MOE),
    REFUSED("llama4", "Llama4ForConditionalGeneration", MOE),
    REFUSED("llama4_text", "Llama4ForCausalLM", MOE),
    REFUSED("dbrx", "DbrxForCausalLM", MOE),
    REFUSED("mamba", "MambaForCausalLM", STATE),
    REFUSED("mamba2", "Mamba2ForCausalLM", STATE),
    REFUSED("falcon_mamba", "FalconMambaForCausalLM", STATE),
    REFUSED("rwkv", "RwkvForCausalLM", STATE),
    REFUSED("jamba", "JambaForCausalLM", HYBRID),
    REFUSED("bamba", "BambaForCausalLM", HYBRID),
    REFUSED("zamba", "ZambaForCausalLM", HYBRID),
    REFUSED("zamba2", "Zamba2ForCausalLM", HYBRID),
    REFUSED("falcon_h1", "FalconH1ForCausalLM", HYBRID),
    REFUSED("granitemoehybrid", "GraniteMoeHybridForCausalLM", HYBRID),
    REFUSED("nemotron_h", "NemotronHForCausalLM", HYBRID),
    REFUSED("recurrent_gemma", "RecurrentGemmaForCausalLM", HYBRID),
    REFUSED("qwen3_next", "Qwen3NextForCausalLM", HYBRID),
    REFUSED("gemma3n", "Gemma3nForConditionalGeneration", SHARED),
    REFUSED("gemma3n_text", "Gemma3nForCausalLM", SHARED),
    REFUSED("t5", "T5ForConditionalGeneration", ENCODER),
    REFUSED("mt5", "MT5ForConditionalGeneration", ENCODER),
    REFUSED("t5gemma", "T5GemmaForConditionalGeneration", ENCODER),
    REFUSED("bart", "BartForConditionalGeneration", ENCODER),
    REFUSED("whisper", "WhisperForConditionalGeneration", ENCODER),
    REFUSED("mllama", "MllamaForConditionalGeneration", CROSS),
    REFUSED("mllama_text_model", "MllamaForCausalLM", CROSS),
    REFUSED("gpt2", "GPT2LMHeadModel", OTHER_KEYS),
    REFUSED("gptj", "GPTJForCausalLM", OTHER_KEYS),
    REFUSED("gpt_bigcode", "GPTBigCodeForCausalLM", OTHER_KEYS),
    REFUSED("bloom", "BloomForCausalLM", OTHER_KEYS),
    REFUSED("mpt", "MPTForCausalLM", OTHER_KEYS),
    REFUSED("opt", "OPTForCausalLM", TWO_MATRICES),
    REFUSED("gpt_neox", "GPTNeoXForCausalLM", TWO_MATRICES),
    REFUSED("falcon", "FalconForCausalLM", TWO_MATRICES),
    REFUSED("phi", "PhiForCausalLM", TWO_MATRICES),
    REFUSED("starcoder2", "Starcoder2ForCausalLM", TWO_MATRICES),
    REFUSED("nemotron", "NemotronForCausalLM", TWO_MATRICES),
};

enum { FAMILIES = sizeof(table) / sizeof(table[0]) };

const struct smg_family *smg_family_find(const char *model_type)
{
    size_t i;

    for (i = 0; i < FAMILIES; i++) {
        if (strcmp(table[i].type, model_type) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

const struct smg_family *smg_family_of_architecture(const char *architecture)
{
    size_t i;

    for (i = 0; i < FAMILIES; i++) {
        if (table[i].architecture != NULL && strcmp(table[i].architecture, architecture) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

uint32_t smg_family_default(const struct smg_family *f, const char *key)
{
    size_t i;

    for (i = 0; i < SMG_FAMILY_DEFAULTS && f->defaults[i].key != NULL; i++) {
        if (strcmp(f->defaults[i].key, key) == 0) {
            return f->defaults[i].value;
        }
    }
    return 0;
}

void smg_family_hint(const char *model_type, char *hint, unsigned hint_bytes)
{
    const char *names[FAMILIES + 1];
    size_t i, n = 0;

    for (i = 0; i < FAMILIES; i++) {
        if (table[i].refusal == NULL) {
            names[n++] = table[i].type;
        }
    }
    names[n] = NULL;
    smg_text_hint(model_type, names, hint, hint_bytes);
}
