/* A key of a model's config.json that may be another one, misspelt: files have many keys that are not read, so it is told, not
 * refused. */
#include <stdio.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

/* What is read, where a default would take its place silently. */
static const char *const known[] = {
    "num_key_value_heads", "num_attention_heads",    "head_dim",    "max_position_embeddings", "tie_word_embeddings",
    "torch_dtype",         "sliding_window",         "layer_types", "use_sliding_window",      "max_window_layers",
    "quantization_config", "sliding_window_pattern", NULL};

enum { LETTERS_MAX = 2 };

static const char *meant(const char *key, const json_t *object)
{
    size_t i;

    for (i = 0; known[i] != NULL; i++) {
        if (json_object_get(object, known[i]) == NULL && smg_text_distance(key, known[i]) <= LETTERS_MAX) {
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

int smg_model_note(const char *name_or_path, struct smg_diag *note)
{
    char path[SMG_PATH_MAX];
    struct smg_diag unread;
    const char *key, *near;
    json_t *root, *text, *unused;
    int found = 0;

    if (smg_data_resolve("models", "model", name_or_path, path, &unread) != SMG_OK ||
        smg_file_json(path, &root, &unread) != SMG_OK) {
        return 0;
    }
    text = json_object_get(root, "text_config");
    text = json_is_object(text) ? text : root;
    json_object_foreach(text, key, unused)
    {
        near = found || is_known(key) ? NULL : meant(key, text);
        if (near != NULL) {
            smg_diag_set(note, SMG_OK, "%s: key '%.60s': is not read; did you mean '%s'?", path, key, near);
            found = 1;
        }
    }
    json_decref(root);
    return found;
}
