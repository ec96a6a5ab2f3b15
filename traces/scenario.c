/* Scenario files: defaults, a YAML document on top of them, --set on top of that. */
#include "traces/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "traces/scenario_keys.h"
#include "traces/scenario_origin.h"
#include "traces/text.h"

#define SCENARIO_MAX_BYTES ((size_t)1 << 20)
#define DEPTH_MAX          8

/* What messages call standard input. */
static const char stdin_name[] = "<stdin>";

/* State of one walk over a YAML document. */
struct walk {
    yaml_document_t *document;
    const char *file;
    struct smg_scenario *scenario;
    size_t line[SMG_KEYS_MAX];   /* of each key that was given, 0: not */
    struct smg_origins *origins; /* of the values; may be NULL */
    struct smg_diag *diag;
};

void smg_scenario_default(struct smg_scenario *s)
{
    const struct smg_key *keys;
    size_t i, n;

    memset(s, 0, sizeof(*s));
    keys = smg_keys(&n);
    for (i = 0; i < n; i++) {
        (void)smg_key_parse(&keys[i], keys[i].preset, 0, s);
        if (keys[i].given != 0) {
            memset((char *)s + keys[i].given, 0, sizeof(int)); /* a default is not given */
        }
    }
}

static int complain(const struct walk *w, const yaml_node_t *at, const char *path, const char *what)
{
    return smg_diag_set(w->diag, SMG_ERR_PARSE, "%s:%zu:%zu: key '%.80s': %s", w->file, at->start_mark.line + 1,
                        at->start_mark.column + 1, path, what);
}

static int unknown_key(const struct walk *w, const yaml_node_t *at, const char *path)
{
    char what[256];

    smg_key_unknown(path, what, sizeof(what));
    return complain(w, at, path, what);
}

static int is_null(const char *text)
{
    return strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

/* What a node is, for a person. */
static void found_text(const yaml_node_t *node, char *text, size_t text_bytes)
{
    const char *value = node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;

    if (value == NULL) {
        snprintf(text, text_bytes, "a %s", node->type == YAML_MAPPING_NODE ? "mapping" : "sequence");
    } else if (value[0] == '\0') {
        snprintf(text, text_bytes, "nothing");
    } else {
        snprintf(text, text_bytes, "'%.60s'", value);
    }
}

static int wrong_kind(const struct walk *w, const yaml_node_t *node, const char *path, const char *expected)
{
    char found[80], what[288];

    found_text(node, found, sizeof(found));
    snprintf(what, sizeof(what), "expected %.160s, found %s", expected, found);
    return complain(w, node, path, what);
}

static int once(struct walk *w, const yaml_node_t *key, const struct smg_key *k)
{
    size_t n, index = (size_t)(k - smg_keys(&n));
    char what[64];

    if (w->line[index] != 0) {
        snprintf(what, sizeof(what), "given twice, first in line %zu", w->line[index]);
        return complain(w, key, k->path, what);
    }
    w->line[index] = key->start_mark.line + 1;
    return SMG_OK;
}

static void note_origin(struct walk *w, const yaml_node_t *value, const struct smg_key *k)
{
    struct smg_origin *at;
    size_t n;

    if (w->origins != NULL) {
        at = &w->origins->key[k - smg_keys(&n)];
        at->line = value->start_mark.line + 1;
        at->column = value->start_mark.column + 1;
    }
}

static int set_leaf(struct walk *w, const yaml_node_t *key, const yaml_node_t *value, const struct smg_key *k)
{
    const char *text = (const char *)value->data.scalar.value;
    char expected[160], what[384];
    int quoted, status = once(w, key, k);

    if (status != SMG_OK) {
        return status;
    }
    if (value->type != YAML_SCALAR_NODE) {
        smg_key_expected(k, expected, sizeof(expected));
        return wrong_kind(w, value, k->path, expected);
    }
    quoted = value->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != value->data.scalar.length) {
        return complain(w, value, k->path, "a value must not contain a 0 byte");
    }
    if (!quoted && is_null(text)) {
        text = "";
    }
    status = smg_key_parse(k, text, quoted, w->scenario);
    if (status != SMG_OK) {
        smg_key_complaint(k, text, quoted, what, sizeof(what));
        return complain(w, value, k->path, what);
    }
    note_origin(w, value, k);
    return SMG_OK;
}

static int walk_mapping(struct walk *w, const yaml_node_t *mapping, const char *prefix, int depth);

static int walk_pair(struct walk *w, const yaml_node_t *key, const yaml_node_t *value, const char *prefix, int depth)
{
    const struct smg_key *k;
    char path[128];

    if (key->type != YAML_SCALAR_NODE || strlen((const char *)key->data.scalar.value) != key->data.scalar.length) {
        return complain(w, key, prefix, "expected a name as key");
    }
    snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", (const char *)key->data.scalar.value);
    k = smg_key_find(path);
    if (k != NULL) {
        return set_leaf(w, key, value, k);
    }
    if (strcmp((const char *)key->data.scalar.value, "<<") == 0) {
        return complain(w, key, path, "mappings are not merged; write the keys out");
    }
    /* The keys inside an unknown mapping say best what was meant, so an unknown group is entered too. */
    if (value->type == YAML_MAPPING_NODE && value->data.mapping.pairs.start < value->data.mapping.pairs.top &&
        depth < DEPTH_MAX) {
        return walk_mapping(w, value, path, depth + 1);
    }
    if (!smg_key_is_group(path)) {
        return unknown_key(w, key, path);
    }
    return value->type == YAML_MAPPING_NODE ? SMG_OK : wrong_kind(w, value, path, "a mapping of keys");
}

static int walk_mapping(struct walk *w, const yaml_node_t *mapping, const char *prefix, int depth)
{
    yaml_node_pair_t *pair;
    int status = SMG_OK;

    for (pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top && status == SMG_OK; pair++) {
        status = walk_pair(w, yaml_document_get_node(w->document, pair->key), yaml_document_get_node(w->document, pair->value),
                           prefix, depth);
    }
    return status;
}

/* Line of a byte of the file, from 1. */
static size_t line_of(const char *data, size_t offset)
{
    size_t line = 1;

    for (; offset > 0; offset--, data++) {
        line += *data == '\n';
    }
    return line;
}

/* What stands at a place of the file, 0 behind the end. */
static char char_at(const char *data, const yaml_mark_t *mark)
{
    size_t line;

    for (line = 0; line < mark->line && data != NULL; line++) {
        data = strchr(data, '\n');
        data = data != NULL ? data + 1 : NULL;
    }
    return data != NULL && strcspn(data, "\n") > mark->column ? data[mark->column] : '\0';
}

/* data: the whole file. */
static int yaml_error(const yaml_parser_t *p, const char *file, const char *data, struct smg_diag *diag)
{
    if (p->error == YAML_MEMORY_ERROR) {
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", file);
    }
    if (p->error == YAML_READER_ERROR) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: byte %zu: %s", file, line_of(data, p->problem_offset),
                            p->problem_offset, p->problem);
    }
    return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu:%zu: %s", file, p->problem_mark.line + 1, p->problem_mark.column + 1,
                        char_at(data, &p->problem_mark) == '\t' ? "found a tab; YAML is indented with blanks" : p->problem);
}

static int walk_document(yaml_document_t *document, const char *file, struct smg_scenario *s, struct smg_origins *origins,
                         struct smg_diag *diag)
{
    struct walk w = {.document = document, .file = file, .scenario = s, .origins = origins, .diag = diag};
    yaml_node_t *root = yaml_document_get_root_node(document);
    char found[80];

    if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0 &&
                         root->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)) {
        /* An empty file, or one of comments, means the defaults; a pipe from which nothing comes is a command that failed. */
        return file != stdin_name ? SMG_OK
                                  : smg_diag_set(diag, SMG_ERR_PARSE, "%s: empty: expected a mapping of keys", file);
    }
    if (root->type != YAML_MAPPING_NODE) {
        found_text(root, found, sizeof(found));
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu:%zu: expected a mapping of keys, found %s", file,
                            root->start_mark.line + 1, root->start_mark.column + 1, found);
    }
    return walk_mapping(&w, root, "", 0);
}

/* A second document would be ignored silently, so it is an error. */
static int at_end(yaml_parser_t *parser, const char *file, const char *data, struct smg_diag *diag)
{
    yaml_document_t document;
    yaml_node_t *root;
    int status = SMG_OK;

    if (!yaml_parser_load(parser, &document)) {
        return yaml_error(parser, file, data, diag);
    }
    root = yaml_document_get_root_node(&document);
    if (root != NULL) {
        status = smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu:%zu: a scenario file holds one document, found a second", file,
                              root->start_mark.line + 1, root->start_mark.column + 1);
    }
    yaml_document_delete(&document);
    return status;
}

static int parse_yaml(const char *data, size_t bytes, const char *file, struct smg_scenario *s, struct smg_origins *origins,
                      struct smg_diag *diag)
{
    yaml_parser_t parser;
    yaml_document_t document;
    int status;

    if (!yaml_parser_initialize(&parser)) {
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", file);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, bytes);
    if (yaml_parser_load(&parser, &document)) {
        status = walk_document(&document, file, s, origins, diag);
        yaml_document_delete(&document);
        status = status == SMG_OK ? at_end(&parser, file, data, diag) : status;
    } else {
        status = yaml_error(&parser, file, data, diag);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* Takes a relative name relative to the scenario file's folder when something is there. */
static void rebase(const char *file, char name[SMG_PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    char joined[2 * SMG_PATH_MAX];
    struct stat info;
    int length;

    if (slash == NULL || name[0] == '/' || name[0] == '\0') {
        return;
    }
    length = snprintf(joined, sizeof(joined), "%.*s/%s", (int)(slash - file), file, name);
    if (length < SMG_PATH_MAX && stat(joined, &info) == 0 && (S_ISREG(info.st_mode) || strchr(name, '/') != NULL)) {
        memset(name, 0, SMG_PATH_MAX);
        memcpy(name, joined, (size_t)length);
    }
}

static int load_file(const char *path, struct smg_scenario *s, struct smg_origins *origins, struct smg_diag *diag)
{
    size_t bytes;
    char *data;
    int status = path == stdin_name ? smg_stream_read(stdin, path, SCENARIO_MAX_BYTES, &data, &bytes, diag)
                                    : smg_file_read(path, SCENARIO_MAX_BYTES, &data, &bytes, diag);

    if (status != SMG_OK) {
        return status;
    }
    status = parse_yaml(data, bytes, path, s, origins, diag);
    free(data);
    rebase(path, s->model);
    rebase(path, s->policy);
    rebase(path, s->workload.file);
    rebase(path, s->workload.lengths);
    rebase(path, s->proactive.importance);
    rebase(path, s->selection.file);
    rebase(path, s->prefill.gpu);
    rebase(path, s->decode.gpu);
    rebase(path, s->prefill.instance);
    rebase(path, s->decode.instance);
    rebase(path, s->network.nic);
    rebase(path, s->host);
    return status;
}

static int apply_set(const char *set, struct smg_scenario *s, struct smg_origins *origins, struct smg_diag *diag)
{
    const char *equals = strchr(set, '=');
    const struct smg_key *k;
    char path[128], what[384];
    size_t n;

    if (equals == NULL || equals == set) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "--set %.100s: expected KEY=VALUE", set);
    }
    snprintf(path, sizeof(path), "%.*s", (int)(equals - set), set);
    k = smg_key_find(path);
    if (k == NULL) {
        smg_key_unknown(path, what, sizeof(what));
        return smg_diag_set(diag, SMG_ERR_PARSE, "--set %.100s: %s", set, what);
    }
    if (smg_key_parse(k, equals + 1, 0, s) != SMG_OK) {
        smg_key_complaint(k, equals + 1, 0, what, sizeof(what));
        return smg_diag_set(diag, SMG_ERR_PARSE, "--set %.100s: %s", set, what);
    }
    if (origins != NULL) {
        origins->key[k - smg_keys(&n)].set = set;
    }
    return SMG_OK;
}

int smg_scenario_load_origins(const char *path, const char *const *sets, size_t n, struct smg_scenario *out,
                              struct smg_origins *origins, struct smg_diag *diag)
{
    struct smg_scenario s;
    int status = SMG_OK;
    size_t i;

    if (path != NULL && strcmp(path, "-") == 0) {
        path = stdin_name;
    }
    if (origins != NULL) {
        memset(origins, 0, sizeof(*origins));
        origins->file = path;
    }
    smg_scenario_default(&s);
    if (path != NULL) {
        status = load_file(path, &s, origins, diag);
    }
    for (i = 0; i < n && status == SMG_OK; i++) {
        status = apply_set(sets[i], &s, origins, diag);
    }
    if (status == SMG_OK) {
        *out = s;
    }
    return status;
}

int smg_scenario_load(const char *path, const char *const *sets, size_t n, struct smg_scenario *out, struct smg_diag *diag)
{
    return smg_scenario_load_origins(path, sets, n, out, NULL, diag);
}
