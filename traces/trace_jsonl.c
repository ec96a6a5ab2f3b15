#include "traces/trace_jsonl.h"

#include <stdlib.h>
#include <string.h>

#include "traces/text.h"

#define INT64_LARGEST "9223372036854775807"
#define INT64_DIGITS  (sizeof(INT64_LARGEST) - 1)

static void jsonl_begin(struct smg_jsonl *j, const char *format, char *text, struct smg_trace_rows *rows)
{
    memset(j, 0, sizeof(*j));
    j->rows = rows;
    j->format = format;
    j->cursor = text;
}

static void jsonl_end(struct smg_jsonl *j)
{
    free(j->buffer);
    j->buffer = NULL;
}

/* Length of the run of digits at c, if it is a whole number that needs more than 63 bits. */
static size_t long_integer(const char *c, char before)
{
    size_t run = strspn(c, "0123456789");

    if (run < INT64_DIGITS || (run == INT64_DIGITS && strncmp(c, INT64_LARGEST, run) <= 0)) {
        return 0;
    }
    /* Part of a real, of a negative number, or the tail of a run is left alone. */
    if (c[run] == '.' || c[run] == 'e' || c[run] == 'E' || strchr(".eE+-0123456789", before) != NULL) {
        return 0;
    }
    return run;
}

int smg_jsonl_quote(const char *in, char *out)
{
    char before = ' ';
    int inside = 0, any = 0;
    size_t run;

    for (; *in != '\0'; before = *in++) {
        run = inside || *in < '0' || *in > '9' ? 0 : long_integer(in, before);
        if (run > 0) {
            any = 1;
            *out++ = '"';
            memcpy(out, in, run);
            out += run;
            *out++ = '"';
            in += run - 1;
            continue;
        }
        if (*in == '"') {
            inside = !inside;
        } else if (inside && *in == '\\' && in[1] != '\0') {
            *out++ = *in++;
        }
        *out++ = *in;
    }
    *out = '\0';
    return any;
}

/* Next line, without its end (LF or CRLF, missing on the last line), or NULL. */
static char *next_line(struct smg_jsonl *j)
{
    char *line = j->cursor, *stop;

    if (line == NULL || *line == '\0') {
        return NULL;
    }
    stop = strchr(line, '\n');
    j->cursor = stop != NULL ? stop + 1 : NULL;
    stop = stop != NULL ? stop : line + strlen(line);
    if (stop > line && stop[-1] == '\r') {
        stop--;
    }
    *stop = '\0';
    j->line++;
    return line;
}

static int make_room(struct smg_jsonl *j, size_t bytes)
{
    char *grown;

    if (bytes <= j->buffer_bytes) {
        return SMG_OK;
    }
    grown = realloc(j->buffer, 2 * bytes);
    if (grown == NULL) {
        return smg_trace_no_memory(j->rows);
    }
    j->buffer = grown;
    j->buffer_bytes = 2 * bytes;
    return SMG_OK;
}

static int not_json(const struct smg_jsonl *j, const char *line)
{
    char hint[160];

    smg_trace_hint(j->rows, j->format, hint, sizeof(hint));
    return smg_diag_set(j->rows->diag, SMG_ERR_PARSE, "%s:%u: expected a JSON object, found '%.60s'%s", j->rows->path, j->line,
                        line, hint);
}

static int parse(struct smg_jsonl *j, const char *line, json_t **out)
{
    json_error_t error;
    int quoted, status = make_room(j, 2 * strlen(line) + 1);

    if (status != SMG_OK) {
        return status;
    }
    quoted = smg_jsonl_quote(line, j->buffer);
    *out = json_loads(j->buffer, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL) {
        return SMG_OK;
    }
    /* Added quotes shift the columns. */
    return quoted ? smg_diag_set(j->rows->diag, SMG_ERR_PARSE, "%s:%u: %s", j->rows->path, j->line, error.text)
                  : smg_diag_set(j->rows->diag, SMG_ERR_PARSE, "%s:%u:%d: %s", j->rows->path, j->line, error.column, error.text);
}

static int jsonl_next(struct smg_jsonl *j, json_t **out)
{
    char *line;
    int status;

    *out = NULL;
    do {
        line = next_line(j);
        if (line == NULL) {
            return SMG_OK;
        }
    } while (line[strspn(line, " \t")] == '\0');
    if (line[strspn(line, " \t")] != '{') {
        return not_json(j, line);
    }
    status = parse(j, line, out);
    return status;
}

int smg_jsonl_bad(const struct smg_jsonl *j, const char *field, const char *expected, const json_t *value)
{
    const char *string = json_string_value(value);
    char *text;
    int status;

    /* The file has no quotes around a number that was too long. */
    if (string != NULL && strlen(string) >= INT64_DIGITS && string[strspn(string, "0123456789")] == '\0') {
        return smg_trace_bad_field(j->rows, j->format, j->line, field, expected, string);
    }
    text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
    status = smg_trace_bad_field(j->rows, j->format, j->line, field, expected, text);
    free(text);
    return status;
}

/* A key of the object that is near to one that it lacks, or NULL. */
static const char *misspelt(const json_t *object, const char *key)
{
    const char *name, *near = NULL;
    json_t *unused;

    json_object_foreach((json_t *)object, name, unused)
    {
        /* "output_len" is cut off, not misspelt. */
        int cut = strlen(name) >= 8 && key != NULL && strncmp(name, key, strlen(name)) == 0;

        if (near == NULL && key != NULL && (cut || smg_text_distance(name, key) <= 2)) {
            near = name;
        }
    }
    return near;
}

int smg_jsonl_optional(const struct smg_jsonl *j, const json_t *object, const char *key, json_t **value)
{
    const char *near = NULL;

    *value = json_object_get(object, key);
    if (*value == NULL) {
        near = misspelt(object, key);
    }
    if (near == NULL) {
        return SMG_OK;
    }
    return smg_diag_set(j->rows->diag, SMG_ERR_PARSE, "%s:%u: field '%.60s': is '%s' meant?", j->rows->path, j->line, near, key);
}

int smg_jsonl_get(const struct smg_jsonl *j, const json_t *object, const char *key, const char *other, const char **found,
                  json_t **value)
{
    const char *near;
    json_t *one = json_object_get(object, key), *two = other != NULL ? json_object_get(object, other) : NULL;

    if (one != NULL && two != NULL) {
        return smg_diag_set(j->rows->diag, SMG_ERR_PARSE,
                            "%s:%u: field '%s': expected it or '%s', which means the same, found both", j->rows->path, j->line,
                            key, other);
    }
    if (one == NULL && two == NULL) {
        near = misspelt(object, key);
        near = near != NULL ? near : misspelt(object, other);
        if (near != NULL) {
            return smg_diag_set(j->rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': is missing; is '%.60s' misspelt?",
                                j->rows->path, j->line, key, near);
        }
    }
    *found = two != NULL ? other : key;
    *value = two != NULL ? two : one;
    return SMG_OK;
}

int smg_jsonl_tokens(const struct smg_jsonl *j, const char *field, const json_t *value, uint32_t *out)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > (json_int_t)SMG_TRACE_TOKENS_MAX) {
        return smg_jsonl_bad(j, field, "a whole number of tokens in [0, 16000000]", value);
    }
    *out = (uint32_t)number;
    return SMG_OK;
}

int smg_jsonl_each(struct smg_jsonl *j, const char *format, char *text, struct smg_trace_rows *rows,
                   int (*read)(void *context, const json_t *object), void *context)
{
    json_t *object;
    int status = SMG_OK;

    jsonl_begin(j, format, text, rows);
    while (status == SMG_OK && !smg_trace_rows_full(rows)) {
        status = jsonl_next(j, &object);
        if (status != SMG_OK || object == NULL) {
            break;
        }
        status = read(context, object);
        json_decref(object);
    }
    jsonl_end(j);
    return status;
}
