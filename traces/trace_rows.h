/* Rows of a request trace while it is read: what every format's reader fills. */
#ifndef SMG_TRACES_TRACE_ROWS_H
#define SMG_TRACES_TRACE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

#define SMG_TRACE_TOKENS_MAX 16000000u

struct smg_trace_row {
    double arrival_s; /* from any origin that all rows share; NAN when only lengths are read */
    uint32_t prompt_tokens, output_tokens;
    uint32_t hit_tokens; /* valid when has_hit */
    uint32_t line;       /* in the file, from 1, for messages */
    uint32_t order;      /* of the file, set by smg_trace_rows_add: it makes the sort stable */
    int has_hit;
};

/* What a file looks like at its first line. */
struct smg_trace_guess {
    const char *format; /* a format that fits, NULL: none does; static storage */
    int json;           /* JSON, not columns */
    int lengths_only;   /* columns of lengths, but none of arrivals */
};

struct smg_trace_rows {
    const char *path;
    struct smg_trace_row *row;
    size_t n, cap;
    uint32_t limit;   /* rows to keep, 0: all */
    uint32_t skipped; /* rows without prompt or output tokens: failed requests */
    uint32_t chained; /* rows that follow another one of their session: their arrival is a lower bound */
    struct smg_trace_guess guess;
    struct smg_diag *diag;
};

/* Reads the file rows->path: up to rows->limit rows in the order of the file. Returns a status; what is wrong is in rows->diag.
 * The caller frees rows->row, also after an error. */
int smg_trace_rows_read(struct smg_trace_rows *rows, enum smg_trace_format format);
/* The same for any file that holds lengths, whatever its format: arrivals are not looked at where the file has columns. */
int smg_trace_rows_read_lengths(struct smg_trace_rows *rows);

/* Appends a copy of *row, or counts it as skipped. */
int smg_trace_rows_add(struct smg_trace_rows *rows, const struct smg_trace_row *row);
int smg_trace_rows_full(const struct smg_trace_rows *rows);
/* "FILE:LINE: field 'NAME': expected WHAT, found 'TEXT'"; found NULL: nothing, and then what the file looks like, if it is not of
 * the format that reads it. Returns SMG_ERR_PARSE. */
int smg_trace_bad_field(const struct smg_trace_rows *rows, const char *format, uint32_t line, const char *field,
                        const char *expected, const char *found);
/* "; this looks like format X" when the file does not look like format, "" else. */
void smg_trace_hint(const struct smg_trace_rows *rows, const char *format, char *hint, size_t hint_bytes);
int smg_trace_no_memory(const struct smg_trace_rows *rows);

/* Readers: the text of the whole file, modified in place, without byte order mark or inner 0 bytes, ended by one. */
int smg_trace_read_columns(enum smg_trace_format format, char *text, struct smg_trace_rows *rows);
/* Prompt and output lengths of the first layout whose columns are there. */
int smg_trace_read_lengths(char *text, struct smg_trace_rows *rows);
int smg_trace_read_mooncake(char *text, struct smg_trace_rows *rows);
int smg_trace_read_llmservingsim(char *text, struct smg_trace_rows *rows);

/* text is left as it was. */
struct smg_trace_guess smg_trace_guess(const char *text);

#endif
