/* Formats with one JSON object a line. */
#ifndef SMG_TRACES_TRACE_JSONL_H
#define SMG_TRACES_TRACE_JSONL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/trace_rows.h"

struct smg_jsonl {
    struct smg_trace_rows *rows;
    const char *format;
    char *cursor;  /* in a text that ends with a 0 byte, NULL at its end */
    uint32_t line; /* last read, from 1 */
    char *buffer;  /* of one line */
    size_t buffer_bytes;
};

/* Reads a text, which is modified: hands each line's object to read(context, object), blank lines passed over, until rows are
 * full or a status is not SMG_OK. Whole numbers beyond 63 bits come as strings of their digits. Returns a status. */
int smg_jsonl_each(struct smg_jsonl *j, const char *format, char *text, struct smg_trace_rows *rows,
                   int (*read)(void *context, const json_t *object), void *context);

/* "FILE:LINE: field 'NAME': expected WHAT, found VALUE". Returns SMG_ERR_PARSE. */
int smg_jsonl_bad(const struct smg_jsonl *j, const char *field, const char *expected, const json_t *value);
/* Value of a key that may be absent; *value is NULL then. One that is near to it is an error: it would be lost. */
int smg_jsonl_optional(const struct smg_jsonl *j, const json_t *object, const char *key, json_t **value);
/* Value of a key, or of its other name (NULL: it has none); *found is the name that is there, key when none is. */
int smg_jsonl_get(const struct smg_jsonl *j, const json_t *object, const char *key, const char *other, const char **found,
                  json_t **value);
/* Tokens that value states; field is its name in messages. */
int smg_jsonl_tokens(const struct smg_jsonl *j, const char *field, const json_t *value, uint32_t *out);

/* Copies a line and puts quotes around whole numbers that a JSON reader of 63 bits would refuse. out holds 2 * strlen(in) + 1
 * bytes. Returns whether there were any. */
int smg_jsonl_quote(const char *in, char *out);

#endif
