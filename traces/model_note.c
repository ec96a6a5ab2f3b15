/* A key of a model's config.json that may be another one, misspelt: files have many keys that are not read, so it is told, not
 * refused. And a type that is not said: the size of the KV cache hangs on it. */
#include <stdio.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

/* What is read, where a default would take its place silently. */
static const char *const known[] = {"num_key_value_heads",
                                    "num_attention_heads",
                                    "head_dim",
                                    "max_position_embeddings",
                                    "tie_word_embeddings",
                                    "torch_dtype",
                                    "sliding_window",
                                    "layer_types",
                                    "use_sliding_window",
                                    "max_window_layers",
                                    "quantization_config",
                                    "sliding_window_pattern",
                                    "dtype",
                                    NULL};

enum { LETTERS_MAX = 2, SHORT_LETTERS = 6 };

/* One letter in a short word, "type" is near enough to "dtype" as it is. */
static size_t letters(const char *word)
{
    return strlen(word) <= SHORT_LETTERS ? 1 : LETTERS_MAX;
}

static int has_dtype(const json_t *object)
{
    return json_is_string(json_object_get(object, "dtype")) || json_is_string(json_object_get(object, "torch_dtype"));
}

/* Either of the two names of the type will do; none means nothing. */
static int is_there(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return (value != NULL && !json_is_null(value)) || (strstr(key, "dtype") != NULL && has_dtype(object));
}

static const char *meant(const char *key, const json_t *object)
{
    size_t i;

    for (i = 0; known[i] != NULL; i++) {
        if (!is_there(object, known[i]) && smg_text_distance(key, known[i]) <= letters(known[i])) {
            return known[i];
        }
    }
    return NULL;
}

static int is_known(const char *key)
{
    size_t i;

    for (i = 0; known[i] != NULL && strcmp(known[i], key) != 0; i++) {
    }
    return known[i] != NULL;
}

/* types: of the type only, which may stand beside the text model. */
static int note_of(const char *path, const json_t *object, int types, struct smg_diag *note)
{
    const char *key, *near;
    json_t *unused;

    json_object_foreach((json_t *)object, key, unused)
    {
        near = is_known(key) ? NULL : meant(key, object);
        if (near != NULL && (!types || strstr(near, "dtype") != NULL)) {
            smg_diag_set(note, SMG_OK, "%s: key '%.60s': is not read; did you mean '%s'?", path, key, near);
            return 1;
        }
    }
    return 0;
}

int smg_model_note(const char *name_or_path, struct smg_diag *note)
{
    char path[SMG_PATH_MAX];
    struct smg_diag unread;
    json_t *root, *text;
    int found;

    if (smg_data_resolve("models", "model", name_or_path, path, &unread) != SMG_OK ||
        smg_file_json(path, &root, &unread) != SMG_OK) {
        return 0;
    }
    text = json_object_get(root, "text_config");
    text = json_is_object(text) ? text : root;
    found = note_of(path, text, 0, note);
    if (!found && text != root && !has_dtype(text)) {
        found = note_of(path, root, 1, note);
    }
    if (!found && !has_dtype(text) && !has_dtype(root)) {
        smg_diag_set(note, SMG_OK, "%s: key 'dtype' is missing: 2 bytes are taken for a number of K or V", path);
        found = 1;
    }
    json_decref(root);
    return found;
}
