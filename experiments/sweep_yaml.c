#include "experiments/sweep_yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"

enum { YAML_BYTES_MAX = 1 << 20 };

int smg_yaml_fail(const struct smg_yaml *y, const yaml_node_t *at, struct smg_diag *diag, int status, const char *format, ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return smg_diag_set(diag, status, "%s:%zu:%zu: %s", y->path, at->start_mark.line + 1, at->start_mark.column + 1, what);
}

static int broken(const yaml_parser_t *p, const char *path, struct smg_diag *diag)
{
    if (p->error == YAML_MEMORY_ERROR)
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);
    return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu:%zu: %s", path, p->problem_mark.line + 1, p->problem_mark.column + 1,
                        p->problem ? p->problem : "cannot be read");
}

/* A second document would be ignored silently, so it is an error. */
static int nothing_more(yaml_parser_t *parser, const char *path, struct smg_diag *diag)
{
    yaml_document_t second;
    const yaml_node_t *root;
    int status = SMG_OK;

    if (!yaml_parser_load(parser, &second))
        return broken(parser, path, diag);
    root = yaml_document_get_root_node(&second);
    if (root)
        status =
            smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: expected one document, found a second", path, root->start_mark.line + 1);
    yaml_document_delete(&second);
    return status;
}

static int check_root(struct smg_yaml *y, struct smg_diag *diag)
{
    const yaml_node_t *root = smg_yaml_root(y);

    if (!root)
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: empty: expected a mapping", y->path);
    return root->type == YAML_MAPPING_NODE ? SMG_OK : smg_yaml_fail(y, root, diag, SMG_ERR_PARSE, "expected a mapping");
}

static int parse(struct smg_yaml *y, const char *text, size_t bytes, struct smg_diag *diag)
{
    yaml_parser_t parser;
    int status;

    if (!yaml_parser_initialize(&parser))
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", y->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    if (yaml_parser_load(&parser, &y->document)) {
        status = nothing_more(&parser, y->path, diag);
        if (!status)
            status = check_root(y, diag);
        if (status)
            yaml_document_delete(&y->document);
    } else {
        status = broken(&parser, y->path, diag);
    }
    yaml_parser_delete(&parser);
    return status;
}

int smg_yaml_read(const char *path, struct smg_yaml *out, struct smg_diag *diag)
{
    char *text = NULL;
    size_t bytes = 0;
    int status = smg_file_read(path, YAML_BYTES_MAX, &text, &bytes, diag);

    if (status)
        return status;
    snprintf(out->path, sizeof out->path, "%s", path);
    status = parse(out, text, bytes, diag);
    free(text);
    return status;
}

void smg_yaml_free(struct smg_yaml *y)
{
    yaml_document_delete(&y->document);
}

const yaml_node_t *smg_yaml_root(struct smg_yaml *y)
{
    return yaml_document_get_root_node(&y->document);
}

const yaml_node_t *smg_yaml_node(struct smg_yaml *y, int index)
{
    return yaml_document_get_node(&y->document, index);
}

size_t smg_yaml_count(const yaml_node_t *node)
{
    if (node->type == YAML_MAPPING_NODE)
        return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    return node->type == YAML_SEQUENCE_NODE ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start) : 0;
}

void smg_yaml_pair(struct smg_yaml *y, const yaml_node_t *map, size_t i, const yaml_node_t **key, const yaml_node_t **value)
{
    *key = smg_yaml_node(y, map->data.mapping.pairs.start[i].key);
    *value = smg_yaml_node(y, map->data.mapping.pairs.start[i].value);
}

const yaml_node_t *smg_yaml_item(struct smg_yaml *y, const yaml_node_t *list, size_t i)
{
    return smg_yaml_node(y, list->data.sequence.items.start[i]);
}

const char *smg_yaml_text(const yaml_node_t *node)
{
    const char *text = node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;

    return text && strlen(text) == node->data.scalar.length ? text : NULL;
}

static int check_key(struct smg_yaml *y, const yaml_node_t *map, size_t i, const char *const *names, struct smg_diag *diag)
{
    const yaml_node_t *key, *value;
    const char *text;
    char hint[160];
    size_t known = 0;

    smg_yaml_pair(y, map, i, &key, &value);
    text = smg_yaml_text(key);
    if (!text)
        return smg_yaml_fail(y, key, diag, SMG_ERR_PARSE, "expected a name as key");
    while (names[known] && strcmp(names[known], text))
        known++;
    if (!names[known]) {
        smg_text_hint(text, names, hint, sizeof hint);
        return smg_yaml_fail(y, key, diag, SMG_ERR_PARSE, "key '%.60s': unknown key%s", text, hint);
    }
    if (smg_yaml_member(y, map, text) != value)
        return smg_yaml_fail(y, key, diag, SMG_ERR_PARSE, "key '%.60s': given twice", text);
    return SMG_OK;
}

int smg_yaml_keys(struct smg_yaml *y, const yaml_node_t *map, const char *const *names, struct smg_diag *diag)
{
    int status = SMG_OK;

    if (map->type != YAML_MAPPING_NODE)
        return smg_yaml_fail(y, map, diag, SMG_ERR_PARSE, "expected a mapping");
    for (size_t i = 0; i < smg_yaml_count(map) && !status; i++)
        status = check_key(y, map, i, names, diag);
    return status;
}

const yaml_node_t *smg_yaml_member(struct smg_yaml *y, const yaml_node_t *map, const char *key)
{
    for (size_t i = 0; i < smg_yaml_count(map); i++) {
        const yaml_node_t *name, *value;
        smg_yaml_pair(y, map, i, &name, &value);
        if (smg_yaml_text(name) && !strcmp(smg_yaml_text(name), key))
            return value;
    }
    return NULL;
}

int smg_yaml_string(struct smg_yaml *y, const yaml_node_t *map, const char *key, int required, char *out, size_t out_bytes,
                    struct smg_diag *diag)
{
    const yaml_node_t *value = smg_yaml_member(y, map, key);
    const char *text = smg_yaml_text(value);

    if (!value && !required)
        return SMG_OK;
    if (!value)
        return smg_yaml_fail(y, map, diag, SMG_ERR_PARSE, "key '%s' is missing", key);
    if (!text || !text[0])
        return smg_yaml_fail(y, value, diag, SMG_ERR_PARSE, "key '%s': expected text", key);
    if (strlen(text) >= out_bytes)
        return smg_yaml_fail(y, value, diag, SMG_ERR_RANGE, "key '%s': longer than %zu characters", key, out_bytes - 1);
    memcpy(out, text, strlen(text) + 1);
    return SMG_OK;
}
