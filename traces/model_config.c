/* Model geometry from a Hugging Face config.json as it is. Key names and defaults follow the transformers library. */
#include <stdio.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

/* One configuration being read: the text model's object, and the file's root where multimodal models keep shared keys. */
struct config {
    const json_t *text, *root;
    const char *path;
    const char *type; /* model_type, "" when it is not stated */
    struct smg_diag *diag;
};

/* Keys that name an architecture whose cache is not one K and one V per token, KV head and layer. */
static const struct {
    const char *key, *reason;
} refused[] = {
    {"kv_lora_rank", "multi-head latent attention keeps a compressed vector instead of K and V per head"},
    {"num_local_experts", "mixture of experts: the FFN cost is not modelled"},
    {"num_experts", "mixture of experts: the FFN cost is not modelled"},
    {"n_routed_experts", "mixture of experts: the FFN cost is not modelled"},
    {"ssm_cfg", "state-space layers keep no KV cache"},
    {"state_size", "state-space layers keep no KV cache"},
    {"mamba_d_state", "state-space layers keep no KV cache"},
    {"mamba_d_ssm", "state-space layers keep no KV cache"},
    {"ssm_state_size", "state-space layers keep no KV cache"},
    {"hybrid_override_pattern", "hybrid state-space layers keep no KV cache"},
    {"attn_layer_indices", "hybrid state-space layers keep no KV cache"},
    {"attn_layer_period", "hybrid state-space layers keep no KV cache"},
    {"linear_num_value_heads", "linear-attention layers keep no KV cache"},
};

/* Defaults of Gemma3TextConfig: published Gemma-3 files leave these keys out of text_config. */
static const struct {
    const char *key;
    uint32_t value;
} gemma3_defaults[] = {
    {"vocab_size", 262208},
    {"hidden_size", 2304},
    {"intermediate_size", 9216},
    {"num_hidden_layers", 26},
    {"num_attention_heads", 8},
    {"num_key_value_heads", 4},
    {"head_dim", 256},
    {"sliding_window", 4096},
    {"max_position_embeddings", 131072},
    {"sliding_window_pattern", 6},
};

static json_t *look_up(const struct config *c, const char *key)
{
    json_t *value = json_object_get(c->text, key);

    if (value == NULL || json_is_null(value)) {
        value = json_object_get(c->root, key);
    }
    return json_is_null(value) ? NULL : value;
}

static int wrong(const struct config *c, const char *key, const char *what)
{
    return smg_diag_set(c->diag, SMG_ERR_PARSE, "%s: key '%s': %s", c->path, key, what);
}

static uint32_t family_default(const struct config *c, const char *key)
{
    size_t i;

    for (i = 0; strcmp(c->type, "gemma3_text") == 0 && i < sizeof(gemma3_defaults) / sizeof(gemma3_defaults[0]); i++) {
        if (strcmp(gemma3_defaults[i].key, key) == 0) {
            return gemma3_defaults[i].value;
        }
    }
    return 0;
}

/* A whole number in [1, max]; absent: the family's default, else fallback. */
static int read_count(const struct config *c, const char *key, uint32_t fallback, uint32_t max, uint32_t *out)
{
    const json_t *value = look_up(c, key);
    json_int_t number = json_integer_value(value);
    char what[64];

    if (value == NULL) {
        *out = family_default(c, key) != 0 ? family_default(c, key) : fallback;
        return SMG_OK;
    }
    if (!json_is_integer(value) || number < 1 || number > (json_int_t)max) {
        snprintf(what, sizeof(what), "expected an integer in [1, %u]", max);
        return wrong(c, key, what);
    }
    *out = (uint32_t)number;
    return SMG_OK;
}

static int need_count(const struct config *c, const char *key, uint32_t max, uint32_t *out)
{
    int status = read_count(c, key, 0, max, out);

    return status == SMG_OK && *out == 0 ? wrong(c, key, "is missing") : status;
}

static int refuse_architectures(const struct config *c)
{
    const json_t *value;
    size_t i;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        value = look_up(c, refused[i].key);
        /* One expert, or none, is a dense model. */
        if (value != NULL &&
            !(json_is_integer(value) && json_integer_value(value) <= (strstr(refused[i].key, "experts") != NULL))) {
            return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED, "%s: key '%s': not supported: %s", c->path, refused[i].key,
                                refused[i].reason);
        }
    }
    if (strstr(c->type, "mamba") != NULL || strstr(c->type, "rwkv") != NULL) {
        return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED, "%s: model_type '%.60s': not supported: no KV cache", c->path, c->type);
    }
    return SMG_OK;
}

/* head_dim wins when it is stated; hidden/heads otherwise. */
static int read_heads(const struct config *c, struct smg_model *m)
{
    int status = need_count(c, "num_attention_heads", 4096, &m->q_heads);

    if (status == SMG_OK) {
        status = read_count(c, "num_key_value_heads", m->q_heads, 4096, &m->kv_heads);
    }
    if (status == SMG_OK) {
        status = read_count(c, "head_dim", m->hidden % m->q_heads == 0 ? m->hidden / m->q_heads : 0, 65536, &m->head_dim);
    }
    if (status != SMG_OK) {
        return status;
    }
    if (m->head_dim == 0) {
        return wrong(c, "head_dim", "is missing, and num_attention_heads does not divide hidden_size");
    }
    if (m->q_heads % m->kv_heads != 0) {
        return wrong(c, "num_key_value_heads", "must divide num_attention_heads");
    }
    return SMG_OK;
}

static int read_sizes(const struct config *c, struct smg_model *m)
{
    int status = need_count(c, "num_hidden_layers", SMG_MAX_LAYERS, &m->layers);

    if (status == SMG_OK) {
        status = need_count(c, "hidden_size", 1u << 20, &m->hidden);
    }
    if (status == SMG_OK) {
        status = need_count(c, "intermediate_size", 1u << 24, &m->intermediate);
    }
    if (status == SMG_OK) {
        status = need_count(c, "vocab_size", 1u << 28, &m->vocab);
    }
    if (status == SMG_OK) {
        status = read_count(c, "max_position_embeddings", 0, 1u << 30, &m->max_positions);
    }
    return status == SMG_OK ? read_heads(c, m) : status;
}

/* Newer files say dtype, older ones torch_dtype; both absent: 16 bits, what such models are served with. */
static int read_dtype(const struct config *c, struct smg_model *m)
{
    const char *key = look_up(c, "dtype") != NULL ? "dtype" : "torch_dtype";
    const json_t *value = look_up(c, key);
    const char *text = json_string_value(value);

    m->value_bytes = 2;
    if (value == NULL) {
        return SMG_OK;
    }
    if (text != NULL && strcmp(text, "float32") == 0) {
        m->value_bytes = 4;
    } else if (text == NULL || (strcmp(text, "bfloat16") != 0 && strcmp(text, "float16") != 0)) {
        return wrong(c, key, "expected bfloat16, float16 or float32");
    }
    return SMG_OK;
}

/* transformers: each architecture has its own default; only Gemma's is true. */
static int read_tied(const struct config *c, struct smg_model *m)
{
    const json_t *value = look_up(c, "tie_word_embeddings");

    if (value != NULL && !json_is_boolean(value)) {
        return wrong(c, "tie_word_embeddings", "expected true or false");
    }
    m->tied_embeddings = (uint8_t)(value != NULL ? json_is_true(value) : strncmp(c->type, "gemma", 5) == 0);
    return SMG_OK;
}

static int slide_by_type(const struct config *c, const json_t *types, struct smg_model *m)
{
    const char *text;
    uint32_t layer;

    if (!json_is_array(types) || json_array_size(types) != m->layers) {
        return wrong(c, "layer_types", "expected one entry per layer");
    }
    for (layer = 0; layer < m->layers; layer++) {
        text = json_string_value(json_array_get(types, layer));
        if (text == NULL || (strcmp(text, "full_attention") != 0 && strcmp(text, "sliding_attention") != 0)) {
            return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED, "%s: key 'layer_types': layer %u: not supported: '%.60s'", c->path,
                                layer, text != NULL ? text : "?");
        }
        m->sliding[layer] = text[0] == 's';
    }
    return SMG_OK;
}

/* First layer that slides. Qwen, which states use_sliding_window: the one after max_window_layers full layers. Others: layer 0.
 */
static int first_sliding(const struct config *c, uint32_t *first)
{
    const json_t *value = look_up(c, "max_window_layers");

    *first = 0;
    if (look_up(c, "use_sliding_window") == NULL) {
        return SMG_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > (1 << 20)) {
        return wrong(c, "max_window_layers", "expected an integer in [0, 1048576], because use_sliding_window is true");
    }
    *first = (uint32_t)json_integer_value(value);
    return SMG_OK;
}

/* Which layers slide when layer_types does not say: all but every pattern-th one (Gemma), the last ones (Qwen), or all (Mistral).
 */
static int slide_by_rule(const struct config *c, struct smg_model *m)
{
    const char *key = look_up(c, "_sliding_window_pattern") != NULL ? "_sliding_window_pattern" : "sliding_window_pattern";
    uint32_t pattern, first = 0, layer;
    int status = read_count(c, key, strcmp(c->type, "gemma2") == 0 ? 2 : 0, SMG_MAX_LAYERS, &pattern);

    if (status == SMG_OK && pattern == 0) {
        status = first_sliding(c, &first);
    }
    for (layer = 0; layer < m->layers && status == SMG_OK; layer++) {
        m->sliding[layer] = (uint8_t)(pattern > 0 ? (layer + 1) % pattern != 0 : layer >= first);
    }
    return status;
}

static int read_window(const struct config *c, struct smg_model *m)
{
    const json_t *use = look_up(c, "use_sliding_window"), *types = look_up(c, "layer_types");
    uint32_t layer, sliding = 0;
    int status = SMG_OK;

    if (json_is_false(use)) {
        return SMG_OK;
    }
    if (types != NULL) {
        status = slide_by_type(c, types, m);
    } else if (look_up(c, "sliding_window") != NULL || family_default(c, "sliding_window") != 0) {
        status = slide_by_rule(c, m);
    }
    for (layer = 0; layer < m->layers; layer++) {
        sliding += m->sliding[layer];
    }
    return status == SMG_OK && sliding > 0 ? need_count(c, "sliding_window", 1u << 30, &m->window_tokens) : status;
}

static int read_model(const struct config *c, struct smg_model *m)
{
    int status = refuse_architectures(c);

    if (status == SMG_OK) {
        status = read_sizes(c, m);
    }
    if (status == SMG_OK) {
        status = read_dtype(c, m);
    }
    if (status == SMG_OK) {
        status = read_tied(c, m);
    }
    return status == SMG_OK ? read_window(c, m) : status;
}

int smg_model_load(const char *name_or_path, struct smg_model *out, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct config c = {.path = path, .diag = diag};
    struct smg_model m;
    const char *type;
    json_t *root;
    int status = smg_data_resolve("models", "model", name_or_path, path, diag);

    if (status == SMG_OK) {
        status = smg_file_json(path, &root, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    c.root = root;
    c.text = json_is_object(json_object_get(root, "text_config")) ? json_object_get(root, "text_config") : root;
    type = json_string_value(json_object_get(c.text, "model_type"));
    c.type = type != NULL ? type : "";
    memset(&m, 0, sizeof(m));
    smg_data_name(path, m.name);
    status = read_model(&c, &m);
    json_decref(root);
    if (status == SMG_OK) {
        *out = m;
    }
    return status;
}
