#include "traces/importance_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/importance_bytes.h"
#include "traces/text.h"

#define FILE_MAX_BYTES ((size_t)4 << 30)

static size_t matrix(const struct smg_importance *im)
{
    return (size_t)im->layers * im->blocks;
}

/* ---- Writing ---- */

static char *header_text(const struct smg_importance *im, const struct smg_importance_info *info)
{
    json_t *names = json_array(), *root;
    char *text;
    uint32_t d;

    for (d = 0; d < im->datasets; d++) {
        json_array_append_new(names, json_string(info->dataset[d]));
    }
    root = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:b}", "model", info->model, "selector",
                     info->selector, "created_by", info->created_by, "datasets", names, "L", (json_int_t)im->layers, "H",
                     (json_int_t)info->kv_heads, "d", (json_int_t)info->head_dim, "M", (json_int_t)im->blocks, "groups",
                     (json_int_t)im->groups, "cap", info->cap, "seed", (json_int_t)info->seed, "synthetic", im->synthetic);
    text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    return text;
}

static void put_group(struct smg_byte_writer *w, const struct smg_importance *im, uint32_t g)
{
    smg_put_u32(w, im->group_lo[g]);
    smg_put_u32(w, im->group_hi[g]);
    smg_put_u32(w, im->requests[g]);
    smg_put_u32(w, im->steps[g]);
    smg_put_floats(w, im->value + g * matrix(im), matrix(im));
    smg_put_floats(w, im->variance + g * matrix(im), matrix(im));
    smg_put_u32(w, im->datasets);
    smg_put_u32(w, 0);
    if (im->datasets > 0) {
        smg_put_floats(w, im->dataset_value + g * im->datasets * matrix(im), im->datasets * matrix(im));
    }
    smg_put_padding(w, 0);
}

static void put_overlap(struct smg_byte_writer *w, const struct smg_importance *im)
{
    size_t n = (size_t)im->layers * im->overlap_steps;

    if (n == 0) {
        return;
    }
    smg_put_bytes(w, "OVLP", 4);
    smg_put_u32(w, im->overlap_steps);
    smg_put_floats(w, im->overlap, n);
    smg_put_floats(w, im->newrate, n);
}

int smg_importance_write(const char *path, const struct smg_importance *im, const struct smg_importance_info *info,
                         struct smg_diag *diag)
{
    struct smg_byte_writer w;
    char *header;
    size_t length;
    uint32_t g;
    int status;

    if (im->variance == NULL || im->requests == NULL || im->steps == NULL || im->datasets > SMG_DATASETS_MAX) {
        return SMG_ERR_INVALID;
    }
    header = header_text(im, info);
    status = header != NULL ? smg_byte_writer_open(path, &w, diag) : SMG_ERR_NOMEM;
    if (status != SMG_OK) {
        free(header);
        return status;
    }
    length = (strlen(header) + 12 + 7) / 8 * 8 - 12;
    smg_put_bytes(&w, "KVIT", 4);
    smg_put_u32(&w, SMG_IMPORTANCE_VERSION);
    smg_put_u32(&w, (uint32_t)length);
    smg_put_bytes(&w, header, strlen(header));
    smg_put_padding(&w, ' ');
    for (g = 0; g < im->groups; g++) {
        put_group(&w, im, g);
    }
    put_overlap(&w, im);
    free(header);
    return smg_byte_writer_close(&w, 1, diag);
}

/* ---- Reading ---- */

static int header_count(struct smg_byte_reader *in, const json_t *root, const char *name, uint32_t lo, uint32_t hi, uint32_t *out)
{
    const json_t *value = json_object_get(root, name);

    if (value == NULL) {
        return smg_byte_reader_fail(in, "header", "key '%s' is missing", name);
    }
    if (!json_is_integer(value) || json_integer_value(value) < lo || json_integer_value(value) > hi) {
        return smg_byte_reader_fail(in, "header", "key '%s': expected an integer from %u to %u", name, lo, hi);
    }
    *out = (uint32_t)json_integer_value(value);
    return SMG_OK;
}

static void header_name(const json_t *root, const char *name, char out[SMG_NAME_MAX])
{
    const char *text = json_string_value(json_object_get(root, name));

    snprintf(out, SMG_NAME_MAX, "%s", text != NULL ? text : "");
}

/* Bounds what a header may ask for by what the file holds, before memory is asked for. */
static int fits_file(struct smg_byte_reader *in, uint32_t groups, uint32_t layers, uint32_t blocks, uint64_t datasets)
{
    if (groups * ((uint64_t)layers * blocks) * (2 + datasets) > (in->bytes - in->offset) / 4) {
        return smg_byte_reader_fail(in, "header", "%u x %u x %u values (groups, layers, blocks) do not fit the file", groups,
                                    layers, blocks);
    }
    return SMG_OK;
}

static int parse_header(struct smg_byte_reader *in, const json_t *root, struct smg_importance_info *info,
                        struct smg_importance **out)
{
    const json_t *names = json_object_get(root, "datasets"), *seed = json_object_get(root, "seed"),
                 *cap = json_object_get(root, "cap");
    uint32_t layers, blocks, groups, d;
    struct smg_importance *im;
    int status;

    if ((status = header_count(in, root, "L", 1, SMG_MAX_LAYERS, &layers)) != SMG_OK ||
        (status = header_count(in, root, "M", 1, 65535, &blocks)) != SMG_OK ||
        (status = header_count(in, root, "H", 1, 65535, &info->kv_heads)) != SMG_OK ||
        (status = header_count(in, root, "d", 1, 65535, &info->head_dim)) != SMG_OK ||
        (status = header_count(in, root, "groups", 1, 1024, &groups)) != SMG_OK) {
        return status;
    }
    if (!json_is_boolean(json_object_get(root, "synthetic"))) {
        return smg_byte_reader_fail(in, "header", "key 'synthetic': expected true or false");
    }
    if (json_array_size(names) > SMG_DATASETS_MAX) {
        return smg_byte_reader_fail(in, "header", "key 'datasets': %zu names, expected at most %u", json_array_size(names),
                                    SMG_DATASETS_MAX);
    }
    if (!json_is_number(cap) || !(json_number_value(cap) > 0 && json_number_value(cap) <= 1)) {
        return smg_byte_reader_fail(in, "header", "key 'cap': expected a share in (0, 1]");
    }
    status = fits_file(in, groups, layers, blocks, json_array_size(names));
    if (status == SMG_OK) {
        status = smg_importance_create(groups, layers, blocks, &im);
    }
    if (status != SMG_OK) {
        return status;
    }
    header_name(root, "model", info->model);
    header_name(root, "selector", info->selector);
    header_name(root, "created_by", info->created_by);
    info->cap = json_number_value(cap);
    info->seed = (uint64_t)json_integer_value(seed);
    im->synthetic = json_is_true(json_object_get(root, "synthetic"));
    im->datasets = (uint32_t)json_array_size(names);
    for (d = 0; d < im->datasets; d++) {
        const char *text = json_string_value(json_array_get(names, d));
        snprintf(info->dataset[d], SMG_NAME_MAX, "%s", text != NULL ? text : "");
    }
    *out = im;
    return SMG_OK;
}

static int read_header(struct smg_byte_reader *in, struct smg_importance_info *info, struct smg_importance **out)
{
    uint32_t version, bytes;
    json_error_t error;
    const void *text;
    json_t *root;
    int status = smg_get_u32(in, "version", &version);

    if (status == SMG_OK && version != SMG_IMPORTANCE_VERSION) {
        return smg_byte_reader_fail(in, "version", "found %u, expected %u", version, SMG_IMPORTANCE_VERSION);
    }
    if (status != SMG_OK || (status = smg_get_u32(in, "header_bytes", &bytes)) != SMG_OK ||
        (status = smg_get_bytes(in, "header", &text, bytes)) != SMG_OK) {
        return status;
    }
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return smg_byte_reader_fail(in, "header", "expected a JSON object: %.100s", error.text);
    }
    if (in->offset % 8 != 0) {
        status = smg_byte_reader_fail(in, "header_bytes", "found %u, the groups must start at a multiple of 8", bytes);
    } else {
        status = parse_header(in, root, info, out);
    }
    json_decref(root);
    return status;
}

/* Frequencies are in [0, 1]; +inf in layers 0 and 1. */
static int check_frequencies(struct smg_byte_reader *in, const char *field, const struct smg_importance *im, const float *value)
{
    uint32_t l, b;

    for (l = 0; l < im->layers; l++) {
        for (b = 0; b < im->blocks; b++) {
            float v = value[(size_t)l * im->blocks + b];

            if (l < SMG_DENSE_LAYERS ? !(isinf(v) && v > 0) : !(v >= 0 && v <= 1)) {
                return smg_byte_reader_fail(in, field, "layer %u, block %u: found %g, expected %s", l, b, (double)v,
                                            l < SMG_DENSE_LAYERS ? "+inf, as in all layers that never select" : "0 to 1");
            }
        }
    }
    return SMG_OK;
}

/* Shares, and variances of shares. */
static int check_range(struct smg_byte_reader *in, const char *field, const float *value, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!(value[i] >= 0 && value[i] <= 1)) {
            return smg_byte_reader_fail(in, field, "value %zu: found %g, expected 0 to 1", i, (double)value[i]);
        }
    }
    return SMG_OK;
}

static int read_group_head(struct smg_byte_reader *in, struct smg_importance *im, uint32_t g)
{
    int status;

    if ((status = smg_get_u32(in, "n_lo", &im->group_lo[g])) != SMG_OK ||
        (status = smg_get_u32(in, "n_hi", &im->group_hi[g])) != SMG_OK ||
        (status = smg_get_u32(in, "requests", &im->requests[g])) != SMG_OK ||
        (status = smg_get_u32(in, "steps", &im->steps[g])) != SMG_OK) {
        return status;
    }
    if (im->group_lo[g] >= im->group_hi[g]) {
        return smg_byte_reader_fail(in, "n_hi", "group %u: (%u, %u] is empty", g, im->group_lo[g], im->group_hi[g]);
    }
    if (im->requests[g] == 0 || im->steps[g] < im->requests[g]) {
        return smg_byte_reader_fail(in, "requests", "group %u: %u requests with %u steps", g, im->requests[g], im->steps[g]);
    }
    return SMG_OK;
}

static int read_group(struct smg_byte_reader *in, struct smg_importance *im, uint32_t g)
{
    uint32_t datasets, zero, d;
    const void *padding;
    int status;

    if ((status = read_group_head(in, im, g)) != SMG_OK ||
        (status = smg_get_floats(in, "importance", im->value + g * matrix(im), matrix(im))) != SMG_OK ||
        (status = check_frequencies(in, "importance", im, im->value + g * matrix(im))) != SMG_OK ||
        (status = smg_get_floats(in, "variance", im->variance + g * matrix(im), matrix(im))) != SMG_OK ||
        (status = check_range(in, "variance", im->variance + g * matrix(im), matrix(im))) != SMG_OK ||
        (status = smg_get_u32(in, "dataset_count", &datasets)) != SMG_OK ||
        (status = smg_get_u32(in, "reserved", &zero)) != SMG_OK) {
        return status;
    }
    if (datasets != im->datasets) {
        return smg_byte_reader_fail(in, "dataset_count", "group %u: found %u, the header names %u", g, datasets, im->datasets);
    }
    for (d = 0; d < datasets && status == SMG_OK; d++) {
        float *value = im->dataset_value + ((size_t)g * datasets + d) * matrix(im);

        status = smg_get_floats(in, "importance_d", value, matrix(im));
        if (status == SMG_OK) {
            status = check_frequencies(in, "importance_d", im, value);
        }
    }
    return status == SMG_OK ? smg_get_bytes(in, "padding", &padding, (8 - in->offset % 8) % 8) : status;
}

static int read_overlap(struct smg_byte_reader *in, struct smg_importance *im)
{
    const void *magic;
    size_t n;
    int status;

    if (in->offset == in->bytes) {
        return SMG_OK;
    }
    if ((status = smg_get_bytes(in, "section", &magic, 4)) != SMG_OK) {
        return status;
    }
    if (memcmp(magic, "OVLP", 4) != 0) {
        return smg_byte_reader_fail(in, "section", "expected \"OVLP\" or the end");
    }
    if ((status = smg_get_u32(in, "T", &im->overlap_steps)) != SMG_OK) {
        return status;
    }
    n = (size_t)im->layers * im->overlap_steps;
    if (n == 0 || n > in->bytes / 8) {
        return smg_byte_reader_fail(in, "T", "%u steps do not fit the file", im->overlap_steps);
    }
    im->overlap = malloc(n * sizeof(*im->overlap));
    im->newrate = malloc(n * sizeof(*im->newrate));
    if (im->overlap == NULL || im->newrate == NULL) {
        return SMG_ERR_NOMEM;
    }
    if ((status = smg_get_floats(in, "overlap", im->overlap, n)) == SMG_OK &&
        (status = check_range(in, "overlap", im->overlap, n)) == SMG_OK &&
        (status = smg_get_floats(in, "newrate", im->newrate, n)) == SMG_OK) {
        status = check_range(in, "newrate", im->newrate, n);
    }
    if (status == SMG_OK && in->offset != in->bytes) {
        status = smg_byte_reader_fail(in, "end", "%zu bytes are left over", in->bytes - in->offset);
    }
    return status;
}

static int reserve(struct smg_importance *im)
{
    size_t all = im->groups * matrix(im);

    im->variance = malloc(all * sizeof(*im->variance));
    im->requests = calloc(im->groups, sizeof(*im->requests));
    im->steps = calloc(im->groups, sizeof(*im->steps));
    im->dataset_value = im->datasets > 0 ? malloc(im->datasets * all * sizeof(*im->dataset_value)) : NULL;
    return im->variance == NULL || im->requests == NULL || im->steps == NULL || (im->datasets > 0 && im->dataset_value == NULL)
               ? SMG_ERR_NOMEM
               : SMG_OK;
}

static int read_all(struct smg_byte_reader *in, struct smg_importance_info *info, struct smg_importance **out)
{
    struct smg_importance *im = NULL;
    uint32_t g;
    int status = read_header(in, info, &im);

    if (status == SMG_OK) {
        status = reserve(im);
    }
    for (g = 0; status == SMG_OK && g < im->groups; g++) {
        status = read_group(in, im, g);
    }
    if (status == SMG_OK) {
        status = read_overlap(in, im);
    }
    if (status != SMG_OK) {
        smg_importance_destroy(im);
        return status;
    }
    *out = im;
    return SMG_OK;
}

int smg_importance_read(const char *path, struct smg_importance **out, struct smg_importance_info *info, struct smg_diag *diag)
{
    struct smg_importance_info *found = calloc(1, sizeof(*found));
    struct smg_byte_reader in;
    char *data = NULL;
    size_t bytes;
    int status = found != NULL ? smg_file_read(path, FILE_MAX_BYTES, &data, &bytes, diag) : SMG_ERR_NOMEM;

    if (status == SMG_OK) {
        status = smg_byte_reader_open(path, data, bytes, "KVIT", &in, diag);
    }
    if (status == SMG_OK) {
        status = read_all(&in, found, out);
    }
    if (status == SMG_OK && info != NULL) {
        *info = *found;
    }
    free(data);
    free(found);
    return status;
}

int smg_importance_fits(const char *path, const struct smg_importance *im, const struct smg_importance_info *info,
                        const struct smg_model *m, struct smg_diag *diag)
{
    if (im->layers != m->layers || info->kv_heads != m->kv_heads) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: made for %s with %u layers and %u KV heads, %s has %u and %u", path,
                            info->model, im->layers, info->kv_heads, m->name, m->layers, m->kv_heads);
    }
    return SMG_OK;
}
