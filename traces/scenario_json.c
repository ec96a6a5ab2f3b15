/* The resolved scenario as JSON, back again, and the help text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traces/scenario.h"
#include "traces/scenario_keys.h"
#include "traces/text.h"

/* Puts value (stolen) at a dotted path of at most one dot. */
static int put(json_t *root, const char *path, json_t *value)
{
    const char *dot = strchr(path, '.');
    char group[64];
    json_t *inside;

    if (dot == NULL) {
        return json_object_set_new(root, path, value);
    }
    snprintf(group, sizeof(group), "%.*s", (int)(dot - path), path);
    inside = json_object_get(root, group);
    if (inside == NULL) {
        inside = json_object();
        if (json_object_set_new(root, group, inside) != 0) {
            json_decref(value);
            return -1;
        }
    }
    return json_object_set_new(inside, dot + 1, value);
}

json_t *smg_scenario_json(const struct smg_scenario *s)
{
    const struct smg_key *keys;
    json_t *root = json_object();
    size_t i, n;

    keys = smg_keys(&n);
    for (i = 0; root != NULL && i < n; i++) {
        if (put(root, keys[i].path, smg_key_json(&keys[i], s)) != 0) {
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

/* The text a person would have written for a JSON scalar; NULL for other values. */
static const char *scalar_text(const json_t *value, char *buffer, size_t buffer_bytes)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_string_value(value);
    case JSON_INTEGER:
        snprintf(buffer, buffer_bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return buffer;
    case JSON_REAL:
        snprintf(buffer, buffer_bytes, "%.17g", json_real_value(value));
        return buffer;
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return NULL;
    }
}

static int set_value(const struct smg_key *k, const json_t *value, struct smg_scenario *s, struct smg_diag *diag)
{
    char buffer[40], what[384];
    const char *text;
    int quoted;

    if (k->given != 0 && json_is_null(value)) {
        return SMG_OK;
    }
    text = scalar_text(value, buffer, sizeof(buffer));
    if (text == NULL) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "scenario: key '%s': expected a scalar", k->path);
    }
    /* "auto", and integers beyond 2^63, are written as text. */
    quoted = json_is_string(value) && k->kind != SMG_KEY_TRISTATE && k->kind != SMG_KEY_COUNT_OR_AUTO && k->kind != SMG_KEY_U64;
    if (smg_key_parse(k, text, quoted, s) != SMG_OK) {
        smg_key_complaint(k, text, quoted, what, sizeof(what));
        return smg_diag_set(diag, SMG_ERR_PARSE, "scenario: key '%s': %s", k->path, what);
    }
    return SMG_OK;
}

static int read_object(const json_t *object, const char *group, struct smg_scenario *s, struct smg_diag *diag)
{
    char path[128], what[256];
    const struct smg_key *k;
    const char *name;
    json_t *value;
    int status = SMG_OK;

    json_object_foreach((json_t *)object, name, value)
    {
        snprintf(path, sizeof(path), "%s%s%s", group, group[0] != '\0' ? "." : "", name);
        k = smg_key_find(path);
        if (k != NULL) {
            status = set_value(k, value, s, diag);
        } else if (json_is_object(value) && group[0] == '\0' && smg_key_is_group(path)) {
            status = read_object(value, path, s, diag);
        } else {
            smg_key_unknown(path, what, sizeof(what));
            status = smg_diag_set(diag, SMG_ERR_PARSE, "scenario: key '%.80s': %s", path, what);
        }
        if (status != SMG_OK) {
            break;
        }
    }
    return status;
}

int smg_scenario_from_json(const json_t *j, struct smg_scenario *out, struct smg_diag *diag)
{
    struct smg_scenario s;
    int status;

    if (!json_is_object(j)) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "scenario: expected an object");
    }
    smg_scenario_default(&s);
    status = read_object(j, "", &s, diag);
    if (status == SMG_OK) {
        *out = s;
    }
    return status;
}

void smg_scenario_help(FILE *f)
{
    const struct smg_key *keys;
    char expected[160], value[40];
    size_t i, n;

    keys = smg_keys(&n);
    for (i = 0; i < n; i++) {
        smg_key_expected(&keys[i], expected, sizeof(expected));
        snprintf(value, sizeof(value), "%s%s%s", keys[i].preset[0] != '\0' ? keys[i].preset : "(none)",
                 keys[i].unit[0] != '\0' ? " " : "", keys[i].unit);
        fprintf(f, "%-26s %-14s %s (%s)\n", keys[i].path, value, keys[i].doc, expected);
    }
}
