/* Model geometry from a Hugging Face config.json as it is. Key names and defaults follow the transformers library. */
#include <stdio.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/json_found.h"
#include "traces/model_config.h"
#include "traces/text.h"
#include "traces/world.h"

/* Keys that name an architecture whose cache is not one K and one V per token, KV head and layer. */
static const struct {
    const char *key, *reason;
} refused[] = {
    {"kv_lora_rank", "multi-head latent attention keeps one compressed vector per token instead of K and V per head"},
    {"num_local_experts", "mixture of experts: which weights a decode step reads is not modelled"},
    {"num_experts", "mixture of experts: which weights a decode step reads is not modelled"},
    {"n_routed_experts", "mixture of experts: which weights a decode step reads is not modelled"},
    {"ssm_cfg", "state-space layers keep no KV cache"},
    {"state_size", "state-space layers keep no KV cache"},
    {"mamba_d_state", "state-space layers keep no KV cache"},
    {"mamba_d_ssm", "state-space layers keep no KV cache"},
    {"ssm_state_size", "state-space layers keep no KV cache"},
    {"hybrid_override_pattern", "hybrid state-space layers keep no KV cache"},
    {"attn_layer_indices", "hybrid state-space layers keep no KV cache"},
    {"attn_layer_period", "hybrid state-space layers keep no KV cache"},
    {"linear_num_value_heads", "linear-attention layers keep no KV cache"},
    {"num_kv_shared_layers", "some layers share the KV cache of others"},
    {"cross_attention_layers", "cross-attention layers read the KV of an image, which is not a prompt's"},
    {"is_encoder_decoder", "an encoder-decoder: decoding reads the encoder's output, not a prompt's KV cache"},
    {"add_cross_attention", "cross-attention reads the KV of another model"},
};

json_t *smg_config_value(const struct smg_config *c, const char *key)
{
    json_t *value = json_object_get(c->text, key);

    return json_is_null(value) ? NULL : value;
}

/* Multimodal files keep a few keys beside text_config. */
static json_t *shared_value(const struct smg_config *c, const char *key)
{
    json_t *value = smg_config_value(c, key);

    if (value == NULL) {
        value = json_object_get(c->root, key);
    }
    return json_is_null(value) ? NULL : value;
}

/* "text_config." when the text model is an object of its own. */
static const char *prefix(const struct smg_config *c)
{
    return c->text != c->root ? "text_config." : "";
}

static int wrong(const struct smg_config *c, const char *key, const char *what)
{
    return smg_diag_set(c->diag, SMG_ERR_PARSE, "%s: key '%s%s': %s", c->path, prefix(c), key, what);
}

int smg_config_unexpected(const struct smg_config *c, const char *key, const char *expected, const json_t *value)
{
    char found[SMG_FOUND_MAX];

    return smg_diag_set(c->diag, SMG_ERR_PARSE, "%s: key '%s%s': expected %s, found %s", c->path, prefix(c), key, expected,
                        smg_json_found(value, found));
}

int smg_config_count(const struct smg_config *c, const char *key, uint32_t fallback, uint32_t max, uint32_t *out)
{
    const json_t *value = smg_config_value(c, key);
    json_int_t number = json_integer_value(value);
    char expected[48];

    if (value == NULL) {
        *out = json_object_get(c->text, key) == NULL ? smg_family_default(c->family, key) : 0;
        *out = *out != 0 ? *out : fallback;
        return SMG_OK;
    }
    if (!json_is_integer(value) || number < 1 || number > (json_int_t)max) {
        snprintf(expected, sizeof(expected), "an integer in [1, %u]", max);
        return smg_config_unexpected(c, key, expected, value);
    }
    *out = (uint32_t)number;
    return SMG_OK;
}

/* The key that was meant, where one is missing: "; is 'num_hiden_layers' misspelt?", or "". */
static void misspelt(const struct smg_config *c, const char *key, char *hint, size_t hint_bytes)
{
    const char *other;
    json_t *unused;

    hint[0] = '\0';
    json_object_foreach((json_t *)c->text, other, unused)
    {
        if (hint[0] == '\0' && strcmp(other, key) != 0 && smg_text_distance(other, key) <= 2) {
            snprintf(hint, hint_bytes, "; is '%.60s' misspelt?", other);
        }
    }
}

int smg_config_need_count(const struct smg_config *c, const char *key, uint32_t max, uint32_t *out)
{
    const json_t *value = json_object_get(c->text, key);
    char expected[48], found[SMG_FOUND_MAX], hint[96] = "";
    int status = smg_config_count(c, key, 0, max, out);

    if (status == SMG_OK && *out == 0) {
        snprintf(expected, sizeof(expected), "an integer in [1, %u]", max);
        if (value == NULL) {
            misspelt(c, key, hint, sizeof(hint));
        }
        status = smg_diag_set(c->diag, SMG_ERR_PARSE, "%s: key '%s%s': expected %s, found %s%s", c->path, prefix(c), key,
                              expected, smg_json_found(value, found), hint);
    }
    return status;
}

static int refuse_by_key(const struct smg_config *c)
{
    const json_t *value;
    size_t i;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        value = shared_value(c, refused[i].key);
        /* false, none, and one expert are a dense model. */
        if (value == NULL || json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
            (json_is_integer(value) && json_integer_value(value) <= (strstr(refused[i].key, "experts") != NULL))) {
            continue;
        }
        return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED, "%s: key '%s%s' is not supported: %s", c->path,
                            json_object_get(c->text, refused[i].key) != NULL ? prefix(c) : "", refused[i].key, refused[i].reason);
    }
    return SMG_OK;
}

/* head_dim wins when it is stated; hidden/heads otherwise. */
static int read_heads(const struct smg_config *c, struct smg_model *m)
{
    char what[96];
    int status = smg_config_need_count(c, "num_attention_heads", 4096, &m->q_heads);

    if (status == SMG_OK) {
        status = smg_config_count(c, "num_key_value_heads", m->q_heads, 4096, &m->kv_heads);
    }
    if (status == SMG_OK) {
        status = smg_config_count(c, "head_dim", m->hidden % m->q_heads == 0 ? m->hidden / m->q_heads : 0, 65536, &m->head_dim);
    }
    if (status != SMG_OK) {
        return status;
    }
    if (m->head_dim == 0) {
        snprintf(what, sizeof(what), "is missing, and num_attention_heads %u does not divide hidden_size %u", m->q_heads,
                 m->hidden);
        return wrong(c, "head_dim", what);
    }
    if (m->q_heads % m->kv_heads != 0) {
        snprintf(what, sizeof(what), "expected a divisor of num_attention_heads %u, found '%u'", m->q_heads, m->kv_heads);
        return wrong(c, "num_key_value_heads", what);
    }
    return SMG_OK;
}

static int read_sizes(const struct smg_config *c, struct smg_model *m)
{
    int status = smg_config_need_count(c, "num_hidden_layers", SMG_MAX_LAYERS, &m->layers);

    if (status == SMG_OK) {
        status = smg_config_need_count(c, "hidden_size", 1u << 20, &m->hidden);
    }
    if (status == SMG_OK) {
        status = smg_config_need_count(c, "intermediate_size", 1u << 24, &m->intermediate);
    }
    if (status == SMG_OK) {
        status = smg_config_need_count(c, "vocab_size", 1u << 28, &m->vocab);
    }
    if (status == SMG_OK) {
        status = smg_config_count(c, "max_position_embeddings", 0, 1u << 30, &m->max_positions);
    }
    return status == SMG_OK ? read_heads(c, m) : status;
}

/* Newer files say dtype, older ones torch_dtype; both absent: 16 bits, what such models are served with. */
static int read_dtype(const struct smg_config *c, struct smg_model *m)
{
    const char *key = shared_value(c, "dtype") != NULL ? "dtype" : "torch_dtype";
    const json_t *value = shared_value(c, key);
    const char *text = json_string_value(value);

    m->value_bytes = 2;
    if (value == NULL) {
        return SMG_OK;
    }
    if (text != NULL && strcmp(text, "float32") == 0) {
        m->value_bytes = 4;
    } else if (text == NULL || (strcmp(text, "bfloat16") != 0 && strcmp(text, "float16") != 0)) {
        return smg_config_unexpected(c, key, "bfloat16, float16 or float32", value);
    }
    return SMG_OK;
}

/* Quantised weights leave K and V in dtype, unless the file says that the cache is quantised too. */
static int read_quantization(const struct smg_config *c, struct smg_model *m)
{
    const json_t *value = shared_value(c, "quantization_config");
    const json_t *cache = json_object_get(value, "kv_cache_scheme");

    if (value == NULL) {
        return SMG_OK;
    }
    if (!json_is_object(value)) {
        return smg_config_unexpected(c, "quantization_config", "an object or null", value);
    }
    if (cache != NULL && !json_is_null(cache)) {
        return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED,
                            "%s: key 'quantization_config.kv_cache_scheme' is not supported: K and V have the size of dtype; set "
                            "it to null for a cache that is not quantised",
                            c->path);
    }
    m->quantized_weights = 1;
    return SMG_OK;
}

static int read_tied(const struct smg_config *c, struct smg_model *m)
{
    const json_t *value = shared_value(c, "tie_word_embeddings");

    if (value != NULL && !json_is_boolean(value)) {
        return smg_config_unexpected(c, "tie_word_embeddings", "true or false", value);
    }
    m->tied_embeddings = (uint8_t)(value != NULL ? json_is_true(value) : c->family->tied);
    return SMG_OK;
}

static int read_model(const struct smg_config *c, struct smg_model *m)
{
    int status = read_sizes(c, m);

    if (status == SMG_OK) {
        status = read_dtype(c, m);
    }
    if (status == SMG_OK) {
        status = read_quantization(c, m);
    }
    if (status == SMG_OK) {
        status = read_tied(c, m);
    }
    return status == SMG_OK ? smg_config_window(c, m) : status;
}

static int unknown_type(const struct smg_config *c, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    char hint[192] = "", found[SMG_FOUND_MAX];

    if (text == NULL) {
        return smg_diag_set(c->diag, SMG_ERR_PARSE, "%s: key '%s': expected the name of a model family, found %s", c->path, key,
                            smg_json_found(value, found));
    }
    smg_family_hint(text, hint, sizeof(hint));
    snprintf(hint + strlen(hint), sizeof(hint) - strlen(hint), "%s", hint[0] != '\0' ? " A" : "; a");
    return smg_diag_set(
        c->diag, SMG_ERR_UNSUPPORTED,
        "%s: key '%s': expected a known model family, found '%.60s'%s dense decoder with Llama's keys may say 'llama'", c->path,
        key, text, hint);
}

static const struct smg_family *by_architecture(const json_t *object)
{
    const char *name = json_string_value(json_array_get(json_object_get(object, "architectures"), 0));

    return name != NULL ? smg_family_of_architecture(name) : NULL;
}

static int refuse_family(const struct smg_config *c, const char *key, const struct smg_family *f)
{
    return smg_diag_set(c->diag, SMG_ERR_UNSUPPORTED, "%s: key '%s': '%s' is not supported: %s", c->path, key, f->type,
                        f->refusal);
}

/* The family that object's model_type tells, else its architectures, else otherwise (NULL: then it is missing). */
static int identify(struct smg_config *c, const json_t *object, const char *key, const struct smg_family *otherwise)
{
    const json_t *value = json_object_get(object, "model_type");

    if (value != NULL) {
        c->family = json_is_string(value) ? smg_family_find(json_string_value(value)) : NULL;
    } else {
        c->family = by_architecture(object);
        c->family = c->family != NULL ? c->family : otherwise;
    }
    if (c->family != NULL) {
        return c->family->refusal != NULL ? refuse_family(c, key, c->family) : refuse_by_key(c);
    }
    /* A key that names the architecture says more than an unknown name. */
    if (refuse_by_key(c) != SMG_OK) {
        return SMG_ERR_UNSUPPORTED;
    }
    if (value != NULL) {
        return unknown_type(c, key, value);
    }
    return smg_diag_set(
        c->diag, SMG_ERR_PARSE,
        "%s: key '%s' is missing, and 'architectures' names no known family; a dense decoder with Llama's keys may "
        "say 'llama'",
        c->path, key);
}

/* Multimodal files name a family for the whole and one for the text model inside; the text model has the KV cache. */
static int identify_text(struct smg_config *c)
{
    const json_t *inner = json_object_get(c->root, "text_config");
    int status = identify(c, c->root, "model_type", NULL);

    if (status != SMG_OK || (c->family->text == NULL && inner == NULL)) {
        return status;
    }
    if (inner == NULL) {
        c->family = smg_family_find(c->family->text); /* an older file: one level */
        return SMG_OK;
    }
    if (!json_is_object(inner)) {
        return smg_config_unexpected(c, "text_config", "an object", inner);
    }
    c->text = inner;
    return identify(c, inner, "text_config.model_type",
                    smg_family_find(c->family->text != NULL ? c->family->text : c->family->type));
}

int smg_model_load(const char *name_or_path, struct smg_model *out, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_config c = {.path = path, .diag = diag};
    struct smg_model m;
    json_t *root;
    int status = smg_data_resolve("models", "model", name_or_path, path, diag);

    if (status == SMG_OK) {
        status = smg_file_json(path, &root, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    c.root = c.text = root;
    memset(&m, 0, sizeof(m));
    smg_data_name(path, m.name);
    status = identify_text(&c);
    if (status == SMG_OK) {
        status = read_model(&c, &m);
    }
    json_decref(root);
    if (status == SMG_OK) {
        *out = m;
    }
    return status;
}
