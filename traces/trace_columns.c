/* Formats with columns. Columns are found by name, so their order and further ones do not matter; each row must have as many
 * fields as the header, or a torn or shifted row would be read as something else. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "traces/scenario.h"
#include "traces/text.h"
#include "traces/trace_cells.h"
#include "traces/trace_columns.h"
#include "traces/trace_rows.h"
#include "traces/trace_time.h"

enum { TIME, PROMPT, OUTPUT, ONE, COLUMNS };

struct layout {
    const char *format;
    const char *column[COLUMNS]; /* ONE: holds 1 in every row, NULL: there is no such column */
    smg_trace_time_fn time;
};

/* By enum smg_trace_format; mooncake has no columns. */
static const struct layout layouts[] = {
    [SMG_TRACE_AZURE] = {"azure", {"TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL}, smg_trace_time_stamp},
    [SMG_TRACE_BURSTGPT] = {"burstgpt", {"Timestamp", "Request tokens", "Response tokens", NULL}, smg_trace_time_seconds},
    [SMG_TRACE_VIDUR] = {"vidur", {"arrived_at", "num_prefill_tokens", "num_decode_tokens", NULL}, smg_trace_time_seconds},
    [SMG_TRACE_SPLITWISE] = {"splitwise",
                             {"arrival_timestamp", "prompt_size", "token_size", "batch_size"},
                             smg_trace_time_seconds},
    [SMG_TRACE_LLMSERVINGSIM] = {"llmservingsim", {"arrival_time_ns", "input_toks", "output_toks", NULL}, smg_trace_time_ns},
    [SMG_TRACE_CSV] = {"csv", {"arrival_s", "prompt_tokens", "output_tokens", NULL}, smg_trace_time_seconds},
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* One file. */
struct table {
    const struct layout *layout;
    struct smg_trace_rows *rows;
    struct smg_cells cells;
    int first;          /* PROMPT when only lengths are read, else TIME */
    size_t fields;      /* of the header */
    size_t at[COLUMNS]; /* place of each needed column */
    const char *name[SMG_CELLS_MAX];
    int64_t origin;
};

static size_t place_of(const char *name, char *const cell[], size_t n)
{
    size_t j;

    for (j = 0; j < n && strcmp(cell[j], name) != 0; j++) {
    }
    return j;
}

static int has_columns(const struct layout *l, int first, char *const cell[], size_t n)
{
    int i;

    for (i = first; i < ONE; i++) {
        if (l->format == NULL || place_of(l->column[i], cell, n) == n) {
            return 0;
        }
    }
    return 1;
}

struct smg_trace_guess smg_trace_guess_columns(char *const cell[], size_t n)
{
    struct smg_trace_guess guess = {NULL, 0, 0};
    size_t i;

    for (i = 0; i < LAYOUTS && guess.format == NULL; i++) {
        guess.format = has_columns(&layouts[i], TIME, cell, n) ? layouts[i].format : NULL;
        guess.lengths_only |= has_columns(&layouts[i], PROMPT, cell, n);
    }
    guess.lengths_only &= guess.format == NULL;
    return guess;
}

/* The names of a header, for a message. */
static void join(char *const cell[], size_t n, char *text, size_t text_bytes)
{
    size_t i, used = 0;

    text[0] = '\0';
    for (i = 0; i < n && used < text_bytes; i++) {
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", i > 0 ? "," : "", cell[i]);
    }
}

/* A header that is one cell, cut at ',', and has what else separates columns: says so. */
static int other_separator(const struct smg_trace_rows *rows, uint32_t line, char *const cell[], size_t n)
{
    static const struct {
        char separator;
        const char *name;
    } known[] = {{';', "';'"}, {'\t', "tabs"}, {'|', "'|'"}};
    size_t i;

    for (i = 0; n == 1 && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strchr(cell[0], known[i].separator) != NULL) {
            return smg_diag_set(rows->diag, SMG_ERR_PARSE,
                                "%s:%u: expected columns separated by ',', found '%.120s', separated by %s", rows->path, line,
                                cell[0], known[i].name);
        }
    }
    return SMG_OK;
}

static int is_needed(const struct layout *l, const char *name)
{
    int i;

    for (i = 0; i < COLUMNS && (l->column[i] == NULL || strcmp(l->column[i], name) != 0); i++) {
    }
    return i < COLUMNS;
}

/* The column that may be the one under another name: not one that is needed itself. */
static void hint_column(const struct table *t, const char *name, char *const cell[], size_t n, char *hint, size_t hint_bytes)
{
    const char *names[SMG_CELLS_MAX + 1], *near;
    size_t i, others = 0;

    /* A file of lengths says so; one whose column of times is misspelt looks like one. */
    smg_trace_hint(t->rows, t->layout->format, hint, hint_bytes);
    if (hint[0] != '\0' && !t->rows->guess.lengths_only) {
        return;
    }
    for (i = 0; i < n; i++) {
        if (!is_needed(t->layout, cell[i])) {
            names[others++] = cell[i];
        }
    }
    names[others] = NULL;
    near = smg_nearest(name, names);
    if (near != NULL) {
        snprintf(hint, hint_bytes, "; rename column '%.60s' if it is that", near);
    }
}

static int missing_column(const struct table *t, const char *name, char *const cell[], size_t n)
{
    char header[121], hint[200];
    int status = other_separator(t->rows, t->cells.line, cell, n);

    if (status != SMG_OK) {
        return status;
    }
    join(cell, n, header, sizeof(header));
    hint_column(t, name, cell, n, hint, sizeof(hint));
    return smg_diag_set(t->rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': expected a column of that name, found '%s'%s",
                        t->rows->path, t->cells.line, name, header, hint);
}

static int find_column(struct table *t, int which, char *const cell[], size_t n)
{
    const char *name = t->layout->column[which];
    size_t first = place_of(name, cell, n), second;

    if (first == n) {
        return missing_column(t, name, cell, n);
    }
    second = first + 1 + place_of(name, cell + first + 1, n - first - 1);
    if (second < n) {
        return smg_diag_set(t->rows->diag, SMG_ERR_PARSE,
                            "%s:%u: field '%s': expected one column of that name, found columns %zu and %zu", t->rows->path,
                            t->cells.line, name, first + 1, second + 1);
    }
    t->at[which] = first;
    return SMG_OK;
}

static int read_header(struct table *t, char *const cell[], size_t n)
{
    int status = SMG_OK, i;

    while (n > 0 && cell[n - 1][0] == '\0') {
        n--;
    }
    for (i = t->first; i < COLUMNS && status == SMG_OK; i++) {
        if (t->layout->column[i] != NULL && (i != ONE || t->first == TIME)) {
            status = find_column(t, i, cell, n);
        }
    }
    memcpy(t->name, cell, n * sizeof(t->name[0]));
    t->fields = n;
    return status;
}

/* Data-frame libraries write a column of whole numbers as 374.0 when a value is missing somewhere. */
static void drop_zero_fraction(char *text)
{
    char *dot = strchr(text, '.');

    if (dot != NULL && dot > text && dot[1] != '\0' && dot[1 + strspn(dot + 1, "0")] == '\0') {
        *dot = '\0';
    }
}

static int bad_field(const struct table *t, int which, const char *expected, const char *found)
{
    return smg_trace_bad_field(t->rows, t->layout->format, t->cells.line, t->layout->column[which], expected, found);
}

static int read_tokens(const struct table *t, int which, char *text, uint32_t *out)
{
    uint64_t value;

    drop_zero_fraction(text);
    if (smg_text_u64(text, &value) != SMG_OK || value > SMG_TRACE_TOKENS_MAX) {
        return bad_field(t, which, "a whole number of tokens in [0, 16000000]", text);
    }
    *out = (uint32_t)value;
    return SMG_OK;
}

static int check_fields(const struct table *t, char *const cell[], size_t n)
{
    size_t i;

    if (n < t->fields) {
        return smg_diag_set(t->rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': expected %zu fields as in the header, found %zu",
                            t->rows->path, t->cells.line, t->name[n], t->fields, n);
    }
    for (i = t->fields; i < n; i++) {
        if (cell[i][0] != '\0') {
            return smg_diag_set(t->rows->diag, SMG_ERR_PARSE,
                                "%s:%u: field %zu: expected %zu fields as in the header, found '%.60s'", t->rows->path,
                                t->cells.line, i + 1, t->fields, cell[i]);
        }
    }
    return SMG_OK;
}

static int read_row(struct table *t, char *const cell[], size_t n)
{
    struct smg_trace_row row = {.line = t->cells.line, .arrival_s = NAN};
    const char *expected = NULL, *time;
    int status = check_fields(t, cell, n);

    if (status == SMG_OK && t->first == TIME) {
        time = cell[t->at[TIME]];
        expected = t->layout->time(time, &t->origin, &row.arrival_s);
        status = expected == NULL ? SMG_OK : bad_field(t, TIME, expected, time);
    }
    if (status == SMG_OK && t->first == TIME && t->layout->column[ONE] != NULL && strcmp(cell[t->at[ONE]], "1") != 0) {
        status = bad_field(t, ONE, "1: a row is one request", cell[t->at[ONE]]);
    }
    if (status == SMG_OK) {
        status = read_tokens(t, PROMPT, cell[t->at[PROMPT]], &row.prompt_tokens);
    }
    if (status == SMG_OK) {
        status = read_tokens(t, OUTPUT, cell[t->at[OUTPUT]], &row.output_tokens);
    }
    return status == SMG_OK ? smg_trace_rows_add(t->rows, &row) : status;
}

static int next_record(struct table *t, char *cell[SMG_CELLS_MAX], size_t *n)
{
    const char *complaint = smg_cells_next(&t->cells, cell, n);

    return complaint == NULL ? SMG_OK
                             : smg_diag_set(t->rows->diag, SMG_ERR_PARSE, "%s:%u: %s", t->rows->path, t->cells.line, complaint);
}

/* The header is cut already. */
static int read_rows(struct table *t, char *cell[SMG_CELLS_MAX], size_t n)
{
    int status = read_header(t, cell, n);

    while (status == SMG_OK && !smg_trace_rows_full(t->rows)) {
        status = next_record(t, cell, &n);
        if (status != SMG_OK || n == 0) {
            break;
        }
        status = read_row(t, cell, n);
    }
    return status;
}

int smg_trace_read_columns(enum smg_trace_format format, char *text, struct smg_trace_rows *rows)
{
    struct table t = {.layout = &layouts[format], .rows = rows, .first = TIME, .origin = SMG_TRACE_NO_ORIGIN};
    char *cell[SMG_CELLS_MAX], hint[160];
    size_t n;
    int status;

    if (rows->guess.json) {
        smg_trace_hint(rows, t.layout->format, hint, sizeof(hint));
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:1: expected a header with column '%s', found JSON%s", rows->path,
                            t.layout->column[TIME], hint);
    }
    smg_cells_begin(&t.cells, text);
    status = next_record(&t, cell, &n);
    return status == SMG_OK ? read_rows(&t, cell, n) : status;
}

int smg_trace_read_lengths(char *text, struct smg_trace_rows *rows)
{
    struct table t = {.rows = rows, .first = PROMPT};
    char *cell[SMG_CELLS_MAX], header[121];
    size_t n, i;
    int status;

    smg_cells_begin(&t.cells, text);
    status = next_record(&t, cell, &n);
    if (status != SMG_OK) {
        return status;
    }
    for (i = 0; i < LAYOUTS && !has_columns(&layouts[i], PROMPT, cell, n); i++) {
    }
    if (i == LAYOUTS) {
        status = other_separator(rows, t.cells.line, cell, n);
        if (status != SMG_OK) {
            return status;
        }
        join(cell, n, header, sizeof(header));
        return smg_diag_set(
            rows->diag, SMG_ERR_PARSE,
            "%s:%u: expected columns of lengths (prompt_tokens and output_tokens, or those of a trace format), found '%s'",
            rows->path, t.cells.line, header);
    }
    t.layout = &layouts[i];
    return read_rows(&t, cell, n);
}
