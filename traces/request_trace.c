/* Request traces: any format in, request specs sorted by arrival out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"
#include "traces/trace_rows.h"
#include "traces/world.h"

#define TRACE_MAX_BYTES ((size_t)4 << 30)

/* Simulated time is a double: later than this, a step of 1e-7 s is lost in it. */
#define ARRIVAL_MAX_S 1e9

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
    if (rows->n == rows->cap) {
        grown = realloc(rows->row, cap * sizeof(*grown));
        if (grown == NULL) {
            return smg_diag_set(rows->diag, SMG_ERR_NOMEM, "%s: out of memory", rows->path);
        }
        rows->row = grown;
        rows->cap = cap;
    }
    rows->row[rows->n++] = *row;
    return SMG_OK;
}

int smg_trace_bad_field(const struct smg_trace_rows *rows, uint32_t line, const char *field, const char *expected,
                        const char *found)
{
    return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': expected %s, found '%.60s'", rows->path, line, field,
                        expected, found);
}

char *smg_trace_line(char **cursor, const char *end)
{
    char *line = *cursor, *stop;

    if (line == NULL || line >= end) {
        return NULL;
    }
    stop = memchr(line, '\n', (size_t)(end - line));
    *cursor = stop != NULL ? stop + 1 : NULL;
    stop = stop != NULL ? stop : line + (end - line);
    if (stop > line && stop[-1] == '\r') {
        stop--;
    }
    *stop = '\0';
    return line;
}

static int read_rows(enum smg_trace_format format, char *text, size_t bytes, struct smg_trace_rows *rows)
{
    switch (format) {
    case SMG_TRACE_AZURE:
        return smg_trace_read_azure(text, bytes, rows);
    case SMG_TRACE_CSV:
        return smg_trace_read_csv(text, bytes, rows);
    case SMG_TRACE_MOONCAKE:
        return smg_trace_read_mooncake(text, bytes, rows);
    case SMG_TRACE_BURSTGPT:
    case SMG_TRACE_VIDUR:
    case SMG_TRACE_SPLITWISE:
    case SMG_TRACE_LLMSERVINGSIM:
        break;
    }
    return smg_diag_set(rows->diag, SMG_ERR_UNSUPPORTED, "%s: this trace format is not available yet; use azure, mooncake or csv",
                        rows->path);
}

/* Line numbers make the sort stable. */
static int by_arrival(const void *a, const void *b)
{
    const struct smg_trace_row *x = a, *y = b;

    if (x->arrival_s != y->arrival_s) {
        return x->arrival_s < y->arrival_s ? -1 : 1;
    }
    return (x->line > y->line) - (x->line < y->line);
}

/* Rows are sorted. */
static int check_arrivals(const struct smg_trace_rows *rows, double speedup)
{
    size_t i;

    for (i = 0; i < rows->n; i++) {
        double after = (rows->row[i].arrival_s - rows->row[0].arrival_s) / speedup;

        if (!(after <= ARRIVAL_MAX_S)) {
            return smg_diag_set(rows->diag, SMG_ERR_PARSE,
                                "%s:%u: arrival: expected at most 1e9 s after the first one (line %u), found %g s", rows->path,
                                rows->row[i].line, rows->row[0].line, after);
        }
    }
    return SMG_OK;
}

static int convert(struct smg_trace_rows *rows, double speedup, double hit, struct smg_request_spec **out, uint32_t *n_out)
{
    struct smg_request_spec *specs;
    size_t i;
    int status;

    if (rows->n == 0) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s: no usable request (%u without tokens)", rows->path, rows->skipped);
    }
    if (rows->n >= UINT32_MAX) {
        return smg_diag_set(rows->diag, SMG_ERR_RANGE, "%s: too many requests", rows->path);
    }
    qsort(rows->row, rows->n, sizeof(*rows->row), by_arrival);
    status = check_arrivals(rows, speedup);
    if (status != SMG_OK) {
        return status;
    }
    specs = calloc(rows->n, sizeof(*specs));
    if (specs == NULL) {
        return smg_diag_set(rows->diag, SMG_ERR_NOMEM, "%s: out of memory", rows->path);
    }
    for (i = 0; i < rows->n; i++) {
        const struct smg_trace_row *row = &rows->row[i];
        uint32_t hits = row->has_hit ? row->hit_tokens : (uint32_t)(hit * row->prompt_tokens);

        specs[i].arrival_s = (row->arrival_s - rows->row[0].arrival_s) / speedup;
        specs[i].prompt_tokens = row->prompt_tokens;
        specs[i].output_tokens = row->output_tokens;
        specs[i].hit_tokens = hits < row->prompt_tokens ? hits : row->prompt_tokens - 1;
    }
    *out = specs;
    *n_out = (uint32_t)rows->n;
    return SMG_OK;
}

/* A note, not an error: rows that were left out must not vanish silently. */
static void note_skipped(const struct smg_trace_rows *rows)
{
    if (rows->skipped > 0) {
        smg_diag_set(rows->diag, SMG_OK, "%s: %u rows without prompt or output tokens were skipped", rows->path, rows->skipped);
    }
}

int smg_trace_load(const char *path, enum smg_trace_format format, uint32_t limit, double speedup, double hit,
                   struct smg_request_spec **out, uint32_t *n_out, struct smg_diag *diag)
{
    struct smg_trace_rows rows = {.path = path, .limit = limit, .diag = diag};
    size_t bytes;
    char *text;
    int status;

    if (!(speedup > 0) || !(hit >= 0 && hit < 1)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: speedup must be above 0 and the hit ratio in [0, 1)", path);
    }
    status = smg_file_read(path, TRACE_MAX_BYTES, &text, &bytes, diag);
    if (status != SMG_OK) {
        return status;
    }
    status = read_rows(format, text, bytes, &rows);
    free(text);
    if (status == SMG_OK) {
        status = convert(&rows, speedup, hit, out, n_out);
    }
    if (status == SMG_OK) {
        note_skipped(&rows);
    }
    free(rows.row);
    return status;
}
