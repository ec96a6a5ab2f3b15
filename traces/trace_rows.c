/* Rows of a request trace: the file, its text, and what every reader does with a row. */
#include "traces/trace_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"

#define TRACE_MAX_BYTES ((size_t)4 << 30)

int smg_trace_no_memory(const struct smg_trace_rows *rows)
{
    return smg_diag_set(rows->diag, SMG_ERR_NOMEM, "%s: out of memory", rows->path);
}

int smg_trace_rows_full(const struct smg_trace_rows *rows)
{
    return rows->limit != 0 && rows->n >= rows->limit;
}

int smg_trace_rows_add(struct smg_trace_rows *rows, const struct smg_trace_row *row)
{
    size_t cap = rows->cap == 0 ? 1024 : 2 * rows->cap;
    struct smg_trace_row *grown;

    if (row->prompt_tokens == 0 || row->output_tokens == 0) {
        rows->skipped++;
        return SMG_OK;
    }
    if (rows->n >= UINT32_MAX) {
        return smg_diag_set(rows->diag, SMG_ERR_RANGE, "%s:%u: expected at most %u requests", rows->path, row->line, UINT32_MAX);
    }
    if (rows->n == rows->cap) {
        grown = realloc(rows->row, cap * sizeof(*grown));
        if (grown == NULL) {
            return smg_trace_no_memory(rows);
        }
        rows->row = grown;
        rows->cap = cap;
    }
    rows->row[rows->n] = *row;
    rows->row[rows->n].order = (uint32_t)rows->n;
    rows->n++;
    return SMG_OK;
}

void smg_trace_hint(const struct smg_trace_rows *rows, const char *format, char *hint, size_t hint_bytes)
{
    const struct smg_trace_guess *guess = &rows->guess;

    hint[0] = '\0';
    if (guess->format != NULL && strcmp(guess->format, format) != 0) {
        snprintf(hint, hint_bytes, "; this looks like format %s", guess->format);
    } else if (guess->lengths_only) {
        snprintf(hint, hint_bytes,
                 "; these are lengths without arrivals: name the file in workload.lengths, with workload.kind batch or poisson");
    }
}

int smg_trace_bad_field(const struct smg_trace_rows *rows, const char *format, uint32_t line, const char *field,
                        const char *expected, const char *found)
{
    char hint[160];

    if (found != NULL) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': expected %s, found '%.60s'", rows->path, line, field,
                            expected, found);
    }
    smg_trace_hint(rows, format, hint, sizeof(hint));
    return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': expected %s, found nothing%s", rows->path, line, field,
                        expected, hint);
}

static uint32_t line_of(const char *text, const char *at)
{
    uint32_t line = 1;

    for (; (text = memchr(text, '\n', (size_t)(at - text))) != NULL; text++) {
        line++;
    }
    return line;
}

/* A 0 byte would end a text early, and everything behind it would be lost silently. */
static int check_text(const struct smg_trace_rows *rows, const char *data, size_t bytes)
{
    const char *zero = memchr(data, '\0', bytes);

    if (zero != NULL) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:%u: expected text in UTF-8, found a 0 byte", rows->path,
                            line_of(data, zero));
    }
    if (data[strspn(data, " \t\r\n")] == '\0') {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:1: expected a request trace, found an empty file", rows->path);
    }
    return SMG_OK;
}

/* *text_out lies in *data_out, behind the byte order mark that spreadsheets put in front. */
static int open_text(struct smg_trace_rows *rows, char **data_out, char **text_out)
{
    size_t bytes;
    int status = smg_file_read(rows->path, TRACE_MAX_BYTES, data_out, &bytes, rows->diag);

    if (status != SMG_OK) {
        return status;
    }
    *text_out = *data_out + (strncmp(*data_out, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
    status = check_text(rows, *text_out, bytes - (size_t)(*text_out - *data_out));
    if (status != SMG_OK) {
        free(*data_out);
        return status;
    }
    rows->guess = smg_trace_guess(*text_out);
    return SMG_OK;
}

static int read_format(enum smg_trace_format format, char *text, struct smg_trace_rows *rows)
{
    switch (format) {
    case SMG_TRACE_MOONCAKE:
        return smg_trace_read_mooncake(text, rows);
    case SMG_TRACE_LLMSERVINGSIM:
        return rows->guess.json ? smg_trace_read_llmservingsim(text, rows) : smg_trace_read_columns(format, text, rows);
    case SMG_TRACE_AZURE:
    case SMG_TRACE_BURSTGPT:
    case SMG_TRACE_VIDUR:
    case SMG_TRACE_SPLITWISE:
    case SMG_TRACE_CSV:
        break;
    }
    return smg_trace_read_columns(format, text, rows);
}

int smg_trace_rows_read(struct smg_trace_rows *rows, enum smg_trace_format format)
{
    char *data, *text;
    int status = open_text(rows, &data, &text);

    if (status == SMG_OK) {
        status = read_format(format, text, rows);
        free(data);
    }
    return status;
}

int smg_trace_rows_read_lengths(struct smg_trace_rows *rows)
{
    char *data, *text;
    int status = open_text(rows, &data, &text);

    if (status != SMG_OK) {
        return status;
    }
    if (!rows->guess.json) {
        status = smg_trace_read_lengths(text, rows);
    } else if (rows->guess.format != NULL && strcmp(rows->guess.format, "mooncake") == 0) {
        status = smg_trace_read_mooncake(text, rows);
    } else if (rows->guess.format != NULL) {
        status = smg_trace_read_llmservingsim(text, rows);
    } else {
        status = smg_diag_set(rows->diag, SMG_ERR_PARSE,
                              "%s:1: expected lengths: columns, or rows of format mooncake or llmservingsim, "
                              "found other JSON",
                              rows->path);
    }
    free(data);
    return status;
}
