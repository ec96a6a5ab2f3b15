#include "traces/hardware_file.h"

#include <stdio.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/json_found.h"
#include "traces/text.h"

static const char *const value_keys[] = {"value", "unit", "source", "derivation", NULL};

/* What people write for a unit, and what their value must be multiplied by. */
static const struct {
    const char *unit, *written, *factor;
} conversions[] = {
    {"B/s", "kB/s", "1e3"},
    {"B/s", "MB/s", "1e6"},
    {"B/s", "GB/s", "1e9"},
    {"B/s", "TB/s", "1e12"},
    {"B/s", "KiB/s", "1024"},
    {"B/s", "MiB/s", "1048576"},
    {"B/s", "GiB/s", "1073741824"},
    {"B/s", "TiB/s", "1099511627776"},
    {"B/s", "Mbit/s", "1.25e5"},
    {"B/s", "Gbit/s", "1.25e8"},
    {"B/s", "Gb/s", "1.25e8"},
    {"B/s", "Gbps", "1.25e8"},
    {"B/s", "GBps", "1e9"},
    {"B", "kB", "1e3"},
    {"B", "MB", "1e6"},
    {"B", "GB", "1e9"},
    {"B", "TB", "1e12"},
    {"B", "KiB", "1024"},
    {"B", "MiB", "1048576"},
    {"B", "GiB", "1073741824"},
    {"B", "TiB", "1099511627776"},
    {"FLOP/s", "GFLOP/s", "1e9"},
    {"FLOP/s", "TFLOP/s", "1e12"},
    {"FLOP/s", "PFLOP/s", "1e15"},
    {"FLOP/s", "GFLOPS", "1e9"},
    {"FLOP/s", "TFLOPS", "1e12"},
    {"FLOP/s", "PFLOPS", "1e15"},
    {"FLOP/s", "TFLOPs", "1e12"},
    {"FLOP/s", "FLOPS", "1"},
    {"s", "ms", "1e-3"},
    {"s", "us", "1e-6"},
    {"s", "ns", "1e-9"},
    {"GiB", "MiB", "1/1024"},
    {"GiB", "TiB", "1024"},
    {"GiB", "B", "1/1073741824"},
    {"GiB", "GB", "0.931323"},
    {"Gbit/s", "Mbit/s", "1e-3"},
    {"Gbit/s", "Tbit/s", "1e3"},
    {"Gbit/s", "Gbps", "1"},
    {"Gbit/s", "Gb/s", "1"},
    {"Gbit/s", "Mbps", "1e-3"},
    {"Gbit/s", "GB/s", "8"},
    {"Gbit/s", "B/s", "8e-9"},
};

/* One entry of a file: where it is, for messages. */
struct entry {
    const struct smg_value_field *field;
    const json_t *object;
    const char *path;
    struct smg_diag *diag;
};

static int known(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0) {
            return 1;
        }
    }
    return 0;
}

static int has_key(const struct smg_value_field *fields, const char *name)
{
    for (; fields->key != NULL; fields++) {
        if (strcmp(fields->key, name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A whole file of another kind is a likelier mistake than a letter. */
static void other_kind(const char *name, char *hint, size_t hint_bytes)
{
    const char *kind = has_key(smg_gpu_value_fields, name)    ? "a GPU"
                       : has_key(smg_nic_value_fields, name)  ? "a NIC"
                       : has_key(smg_host_value_fields, name) ? "a host"
                                                              : NULL;

    if (kind != NULL) {
        snprintf(hint, hint_bytes, "; it is a key of %s's file", kind);
    }
}

/* Every key of object is one of names; prefix: "" or the key that object is the value of, with a dot. */
static int only_known(const json_t *object, const char *const *names, const char *path, const char *prefix, struct smg_diag *diag)
{
    const char *name;
    json_t *value;
    char hint[160];

    json_object_foreach((json_t *)object, name, value)
    {
        if (!known(name, names)) {
            smg_text_hint(name, names, hint, sizeof(hint));
            if (prefix[0] == '\0') {
                other_kind(name, hint, sizeof(hint));
            }
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s%.60s': unknown key%s", path, prefix, name, hint);
        }
    }
    return SMG_OK;
}

/* "FILE: key 'memory_Bps.unit': expected ..., found ...". */
static int unexpected(const struct entry *e, const char *part, const char *expected, const json_t *value, const char *advice)
{
    char found[SMG_FOUND_MAX];

    return smg_diag_set(e->diag, SMG_ERR_PARSE, "%s: key '%s%s': expected %s, found %s%s", e->path, e->field->key, part, expected,
                        smg_json_found(value, found), advice);
}

static int read_unit(const struct entry *e)
{
    const json_t *value = json_object_get(e->object, "unit");
    const char *text = json_string_value(value);
    char expected[32], advice[96] = "";
    size_t i;

    if (text != NULL && strcmp(text, e->field->unit) == 0) {
        return SMG_OK;
    }
    for (i = 0; text != NULL && i < sizeof(conversions) / sizeof(conversions[0]); i++) {
        if (strcmp(conversions[i].unit, e->field->unit) == 0 && strcmp(conversions[i].written, text) == 0) {
            snprintf(advice, sizeof(advice), "; multiply the value by %s", conversions[i].factor);
        }
    }
    snprintf(expected, sizeof(expected), "\"%s\"", e->field->unit);
    return unexpected(e, ".unit", expected, value, advice);
}

static int read_number(const struct entry *e, const json_t *value, void *out)
{
    const struct smg_value_field *f = e->field;
    double number = json_number_value(value);
    uint32_t count = (uint32_t)(number >= 0 && number <= UINT32_MAX ? number : 0);
    int whole = f->kind == SMG_VALUE_COUNT;
    char expected[96];

    if ((whole ? json_is_integer(value) : json_is_number(value)) &&
        ((number == 0 && f->zero) || (number >= f->lo && number <= f->hi))) {
        memcpy((char *)out + f->offset, whole ? (void *)&count : (void *)&number, whole ? sizeof(count) : sizeof(number));
        return SMG_OK;
    }
    snprintf(expected, sizeof(expected), "%s%s in [%g, %g]%s%s", f->zero ? "0 or " : "", whole ? "an integer" : "a number", f->lo,
             f->hi, strcmp(f->unit, "1") != 0 ? " " : "", strcmp(f->unit, "1") != 0 ? f->unit : "");
    return unexpected(e, ".value", expected, value, "");
}

static int read_name(const struct entry *e, const json_t *value, void *out)
{
    const char *text = json_string_value(value);
    char expected[64];

    if (text == NULL || text[0] == '\0' || strlen(text) >= SMG_PATH_MAX) {
        snprintf(expected, sizeof(expected), "a text of 1 to %d bytes", SMG_PATH_MAX - 1);
        return unexpected(e, ".value", expected, value, "");
    }
    memcpy((char *)out + e->field->offset, text, strlen(text) + 1);
    return SMG_OK;
}

/* An estimate says how it was made. */
static int read_origin(const struct entry *e)
{
    const json_t *source = json_object_get(e->object, "source"), *derivation = json_object_get(e->object, "derivation");
    const char *text = json_string_value(source);

    if (text == NULL || text[0] == '\0') {
        return unexpected(e, ".source", "a text that says where the value comes from", source, "");
    }
    if ((derivation != NULL && !json_is_string(derivation)) || (derivation == NULL && strcmp(text, "none") == 0)) {
        return unexpected(e, ".derivation",
                          derivation != NULL ? "a text"
                                             : "a text that says how the value was estimated, because source is \"none\"",
                          derivation, "");
    }
    return SMG_OK;
}

static int read_field(const json_t *root, const struct smg_value_field *f, const char *path, void *out, struct smg_diag *diag)
{
    struct entry e = {f, json_object_get(root, f->key), path, diag};
    const json_t *value = json_object_get(e.object, "value");
    char text[96];
    int status;

    if (e.object == NULL && f->optional) {
        return SMG_OK;
    }
    if (!json_is_object(e.object)) {
        snprintf(text, sizeof(text), "{\"value\": %s, \"unit\": \"%s\", \"source\": TEXT}",
                 f->kind == SMG_VALUE_NAME ? "TEXT" : "NUMBER", f->unit);
        return unexpected(&e, "", text, e.object, "");
    }
    snprintf(text, sizeof(text), "%s.", f->key);
    status = only_known(e.object, value_keys, path, text, diag);
    if (status == SMG_OK) {
        status = read_unit(&e);
    }
    if (status == SMG_OK) {
        status = f->kind == SMG_VALUE_NAME ? read_name(&e, value, out) : read_number(&e, value, out);
    }
    return status == SMG_OK ? read_origin(&e) : status;
}

static int read_fields(const json_t *root, const struct smg_value_field *fields, const char *path, void *out,
                       struct smg_diag *diag)
{
    const char *names[SMG_VALUE_FIELDS_MAX + 1];
    size_t n;
    int status;

    for (n = 0; fields[n].key != NULL; n++) {
        names[n] = fields[n].key;
    }
    names[n] = NULL;
    status = only_known(root, names, path, "", diag);
    for (n = 0; fields[n].key != NULL && status == SMG_OK; n++) {
        status = read_field(root, &fields[n], path, out, diag);
    }
    return status;
}

int smg_hardware_read(const char *kind, const char *noun, const char *name_or_path, const struct smg_value_field *fields,
                      void *out, char *name, char path_out[SMG_PATH_MAX], struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    json_t *root;
    int status = smg_data_resolve(kind, noun, name_or_path, path, diag);

    if (status == SMG_OK) {
        status = smg_file_json(path, &root, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    status = read_fields(root, fields, path, out, diag);
    json_decref(root);
    smg_data_name(path, name);
    if (path_out != NULL) {
        memcpy(path_out, path, sizeof(path));
    }
    return status;
}
