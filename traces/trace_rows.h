/* Rows of a request trace while it is read: what every format's reader fills. */
#ifndef SMG_TRACES_TRACE_ROWS_H
#define SMG_TRACES_TRACE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define SMG_TRACE_TOKENS_MAX 16000000u

struct smg_trace_row {
    double arrival_s; /* from any origin that all rows share */
    uint32_t prompt_tokens, output_tokens;
    uint32_t hit_tokens; /* valid when has_hit */
    uint32_t line;       /* in the file, from 1: order of the file, and error messages */
    int has_hit;
};

struct smg_trace_rows {
    const char *path;
    struct smg_trace_row *row;
    size_t n, cap;
    uint32_t limit;   /* rows to keep, 0: all */
    uint32_t skipped; /* rows without prompt or output tokens: failed requests */
    struct smg_diag *diag;
};

/* Appends a copy of *row, or counts it as skipped. */
int smg_trace_rows_add(struct smg_trace_rows *rows, const struct smg_trace_row *row);
int smg_trace_rows_full(const struct smg_trace_rows *rows);
/* "FILE:LINE: field 'NAME': expected WHAT, found 'TEXT'". Returns SMG_ERR_PARSE. */
int smg_trace_bad_field(const struct smg_trace_rows *rows, uint32_t line, const char *field, const char *expected,
                        const char *found);

/* Readers: the text of the whole file (modified in place), ended by a 0 byte. */
int smg_trace_read_azure(char *text, size_t bytes, struct smg_trace_rows *rows);
int smg_trace_read_csv(char *text, size_t bytes, struct smg_trace_rows *rows);
int smg_trace_read_mooncake(char *text, size_t bytes, struct smg_trace_rows *rows);

/* Next line of a text, without its end (LF or CRLF, missing on the last line), or NULL. */
char *smg_trace_line(char **cursor, const char *end);

#endif
