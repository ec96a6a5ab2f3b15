/* What is known of model families: the part of the Hugging Face configurations that files leave to the library. */
#ifndef SMG_TRACES_MODEL_CONFIG_H
#define SMG_TRACES_MODEL_CONFIG_H

#include <jansson.h>
#include <stdint.h>

#include "core/model.h"
#include "core/status.h"

/* Which layers slide when the file has no layer_types and no pattern. A window that is null or absent never slides. */
enum smg_window_rule {
    SMG_WINDOW_ALL, /* every layer */
    SMG_WINDOW_QWEN /* off unless use_sliding_window is true; then the layers from max_window_layers on */
};

#define SMG_FAMILY_DEFAULTS 6

/* One model_type. */
struct smg_family {
    const char *type;
    const char *architecture; /* entry of "architectures" that tells the family when model_type is missing; NULL: none */
    const char *refusal;      /* why such a model cannot be modelled; NULL: it can */
    const char *text;         /* a multimodal wrapper: the family of its text_config; NULL: a text model */
    int tied;                 /* tie_word_embeddings when the file does not say */
    enum smg_window_rule window;
    struct {
        const char *key;
        uint32_t value;
    } defaults[SMG_FAMILY_DEFAULTS]; /* the library's values of keys that published files leave out; ends with a NULL key */
};

/* One configuration being read: the text model's object, and the file's root, where multimodal models keep shared keys. */
struct smg_config {
    const json_t *text, *root;
    const char *path;
    const struct smg_family *family;
    struct smg_diag *diag;
};

/* NULL: not known. */
const struct smg_family *smg_family_find(const char *model_type);
const struct smg_family *smg_family_of_architecture(const char *architecture);
/* The library's value of a key that the file leaves out, 0: none. */
uint32_t smg_family_default(const struct smg_family *f, const char *key);
/* "; did you mean 'x'?" for the nearest type that can be modelled, "" when none is near. */
void smg_family_hint(const char *model_type, char *hint, unsigned hint_bytes);

/* The value of a key of the text model; NULL when it is absent or null. */
json_t *smg_config_value(const struct smg_config *c, const char *key);
/* "FILE: key 'k': expected ..., found ..."; SMG_ERR_PARSE. */
int smg_config_unexpected(const struct smg_config *c, const char *key, const char *expected, const json_t *value);
/* A whole number in [1, max]. Absent: the family's default, else fallback; null: fallback, as in the library. */
int smg_config_count(const struct smg_config *c, const char *key, uint32_t fallback, uint32_t max, uint32_t *out);
/* The same without fallback. */
int smg_config_need_count(const struct smg_config *c, const char *key, uint32_t max, uint32_t *out);
/* Which layers slide, and the window. A window that the model's positions never fill is none. */
int smg_config_window(const struct smg_config *c, struct smg_model *m);

#endif
