/* Sliding windows of a Hugging Face config.json: which layers have one, and how wide it is. */
#include <stdio.h>
#include <string.h>

#include "traces/model_config.h"

#define WINDOW_MAX (1u << 30)

static int slide_by_type(const struct smg_config *c, const json_t *types, struct smg_model *m)
{
    char what[48];
    const char *text;
    uint32_t layer;

    if (!json_is_array(types) || json_array_size(types) != m->layers) {
        snprintf(what, sizeof(what), "a list of %u, one entry per layer", m->layers);
        return smg_config_unexpected(c, "layer_types", what, types);
    }
    for (layer = 0; layer < m->layers; layer++) {
        text = json_string_value(json_array_get(types, layer));
        if (text == NULL || (strcmp(text, "full_attention") != 0 && strcmp(text, "sliding_attention") != 0)) {
            snprintf(what, sizeof(what), "layer_types[%u]", layer);
            return smg_config_unexpected(c, what, "full_attention or sliding_attention (no other layer is modelled)",
                                         json_array_get(types, layer));
        }
        m->sliding[layer] = text[0] == 's';
    }
    return SMG_OK;
}

/* First layer that slides: with use_sliding_window the one after max_window_layers full layers, else layer 0. */
static int first_sliding(const struct smg_config *c, uint32_t *first)
{
    const json_t *value = smg_config_value(c, "max_window_layers");

    *first = 0;
    if (smg_config_value(c, "use_sliding_window") == NULL) {
        return SMG_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > (1 << 20)) {
        return smg_config_unexpected(c, "max_window_layers", "an integer in [0, 1048576], because use_sliding_window is true",
                                     value);
    }
    *first = (uint32_t)json_integer_value(value);
    return SMG_OK;
}

/* Which layers slide when layer_types does not say: all but every pattern-th one, or all from the first on. */
static int slide_by_rule(const struct smg_config *c, struct smg_model *m)
{
    const char *key =
        smg_config_value(c, "_sliding_window_pattern") != NULL ? "_sliding_window_pattern" : "sliding_window_pattern";
    uint32_t pattern, first = 0, layer;
    int status = smg_config_count(c, key, 0, SMG_MAX_LAYERS, &pattern);

    if (status == SMG_OK && pattern == 0) {
        status = first_sliding(c, &first);
    }
    for (layer = 0; layer < m->layers && status == SMG_OK; layer++) {
        m->sliding[layer] = (uint8_t)(pattern > 0 ? (layer + 1) % pattern != 0 : layer >= first);
    }
    return status;
}

/* False where the file or the family switches windows off, whatever else it says about them. */
static int windows_on(const struct smg_config *c, int *on)
{
    const json_t *use = smg_config_value(c, "use_sliding_window");

    if (use != NULL && !json_is_boolean(use)) {
        return smg_config_unexpected(c, "use_sliding_window", "true or false", use);
    }
    *on = use != NULL ? json_is_true(use) : c->family->window != SMG_WINDOW_QWEN || smg_config_value(c, "layer_types") != NULL;
    return SMG_OK;
}

static uint32_t sliding_layers(const struct smg_model *m)
{
    uint32_t layer, n = 0;

    for (layer = 0; layer < m->layers; layer++) {
        n += m->sliding[layer];
    }
    return n;
}

/* layer_types is read whatever the switch says: it may name layers without K and V. */
static int read_layers(const struct smg_config *c, int on, struct smg_model *m)
{
    const json_t *types = smg_config_value(c, "layer_types");
    uint32_t window;
    int status;

    if (types != NULL) {
        return slide_by_type(c, types, m);
    }
    if (!on) {
        return SMG_OK;
    }
    status = smg_config_count(c, "sliding_window", 0, WINDOW_MAX, &window);
    return status == SMG_OK && window > 0 ? slide_by_rule(c, m) : status;
}

int smg_config_window(const struct smg_config *c, struct smg_model *m)
{
    int on = 0, status = windows_on(c, &on);

    if (status == SMG_OK) {
        status = read_layers(c, on, m);
    }
    if (status == SMG_OK && on && sliding_layers(m) > 0) {
        status = smg_config_need_count(c, "sliding_window", WINDOW_MAX, &m->window_tokens);
    }
    /* Every prompt fits into such a window: the layer is a full one, and selects. */
    if (status == SMG_OK && (!on || (m->max_positions > 0 && m->window_tokens >= m->max_positions))) {
        m->window_tokens = 0;
        memset(m->sliding, 0, sizeof(m->sliding));
    }
    return status;
}
