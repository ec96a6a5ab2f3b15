/* CSV traces: columns are found by name, so order and further columns do not matter. */
#include <stdio.h>
#include <string.h>

#include "traces/text.h"
#include "traces/trace_rows.h"

#define COLUMNS_MAX 64

/* Converts a time field to seconds; *day is the origin, set by the first row. Returns the complaint, or NULL. */
typedef const char *(*time_fn)(const char *text, int64_t *day, double *seconds_out);

struct layout {
    const char *column[3]; /* time, prompt, output */
    time_fn time;
};

static const char *time_seconds(const char *text, int64_t *day, double *seconds_out)
{
    (void)day;
    return smg_text_double(text, seconds_out) == SMG_OK ? NULL : "a number of seconds";
}

/* Days since 1970-01-01 of a Gregorian date; H. Hinnant, "chrono-compatible low-level date algorithms", days_from_civil. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t era, year_of_era, day_of_year;

    year -= month <= 2;
    era = year / 400;
    year_of_era = year - era * 400;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

/* Reads exactly n digits at *cursor and the separator after them (0: none). -1: something else is there. */
static int digits(const char **cursor, int n, char separator)
{
    int value = 0;

    for (; n > 0; n--, (*cursor)++) {
        if (**cursor < '0' || **cursor > '9') {
            return -1;
        }
        value = 10 * value + (**cursor - '0');
    }
    if (separator != '\0') {
        if (**cursor != separator) {
            return -1;
        }
        (*cursor)++;
    }
    return value;
}

/* Reads ".ddd" of any length; false when a dot has no digit behind it. */
static int fraction(const char **cursor, double *out)
{
    double scale = 0.1;

    *out = 0;
    if (**cursor != '.') {
        return 1;
    }
    (*cursor)++;
    if (**cursor < '0' || **cursor > '9') {
        return 0;
    }
    for (; **cursor >= '0' && **cursor <= '9'; (*cursor)++, scale /= 10) {
        *out += (**cursor - '0') * scale;
    }
    return 1;
}

/* YYYY-MM-DD HH:MM:SS.fffffff, as the Azure traces write it; newer ones end in +00:00. Counting from the day of the first row
 * keeps 100 ns exact in a double. */
static const char *time_stamp(const char *text, int64_t *day, double *seconds_out)
{
    static const char *const expected = "a time YYYY-MM-DD HH:MM:SS.fffffff";
    const char *c = text;
    int year = digits(&c, 4, '-'), month = year < 0 ? -1 : digits(&c, 2, '-'), date = month < 0 ? -1 : digits(&c, 2, ' ');
    int hour = date < 0 ? -1 : digits(&c, 2, ':'), minute = hour < 0 ? -1 : digits(&c, 2, ':'), second;
    double part;

    second = minute < 0 ? -1 : digits(&c, 2, '\0');
    if (second < 0 || month < 1 || month > 12 || date < 1 || date > 31 || hour > 23 || minute > 59 || second > 60) {
        return expected;
    }
    if (!fraction(&c, &part) || (*c != '\0' && strcmp(c, "+00:00") != 0 && strcmp(c, "Z") != 0)) {
        return expected;
    }
    if (*day == INT64_MIN) {
        *day = days_of(year, month, date);
    }
    *seconds_out = (double)((days_of(year, month, date) - *day) * 86400 + hour * 3600 + minute * 60 + second) + part;
    return NULL;
}

/* Cuts a line at its commas, in place. */
static size_t cut(char *line, char *cell[COLUMNS_MAX])
{
    size_t n = 0;

    for (;;) {
        cell[n++] = line;
        line = strchr(line, ',');
        if (line == NULL || n == COLUMNS_MAX) {
            return n;
        }
        *line++ = '\0';
    }
}

static int find_columns(const struct layout *layout, char *header, struct smg_trace_rows *rows, size_t column[3])
{
    char *cell[COLUMNS_MAX];
    size_t i, j, n;

    if (header == NULL) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s: empty file", rows->path);
    }
    /* Spreadsheets put a byte order mark in front. */
    n = cut(strncmp(header, "\xEF\xBB\xBF", 3) == 0 ? header + 3 : header, cell);
    for (i = 0; i < 3; i++) {
        for (j = 0; j < n && strcmp(cell[j], layout->column[i]) != 0; j++) {
        }
        if (j == n) {
            return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:1: column '%s' is missing", rows->path, layout->column[i]);
        }
        column[i] = j;
    }
    return SMG_OK;
}

static int read_tokens(const struct smg_trace_rows *rows, uint32_t line, const char *field, const char *text, uint32_t *out)
{
    uint64_t value;

    if (smg_text_u64(text, &value) != SMG_OK || value > SMG_TRACE_TOKENS_MAX) {
        return smg_trace_bad_field(rows, line, field, "tokens in [0, 16000000]", text);
    }
    *out = (uint32_t)value;
    return SMG_OK;
}

static int read_row(const struct layout *layout, const size_t column[3], char *text, uint32_t line, int64_t *day,
                    struct smg_trace_rows *rows)
{
    struct smg_trace_row row = {.line = line};
    char *cell[COLUMNS_MAX];
    const char *expected;
    size_t i, n = cut(text, cell);
    int status;

    for (i = 0; i < 3; i++) {
        if (column[i] >= n) {
            return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s:%u: field '%s': missing: the row has %zu fields", rows->path, line,
                                layout->column[i], n);
        }
    }
    expected = layout->time(cell[column[0]], day, &row.arrival_s);
    if (expected != NULL) {
        return smg_trace_bad_field(rows, line, layout->column[0], expected, cell[column[0]]);
    }
    status = read_tokens(rows, line, layout->column[1], cell[column[1]], &row.prompt_tokens);
    if (status == SMG_OK) {
        status = read_tokens(rows, line, layout->column[2], cell[column[2]], &row.output_tokens);
    }
    return status == SMG_OK ? smg_trace_rows_add(rows, &row) : status;
}

static int read_layout(const struct layout *layout, char *text, size_t bytes, struct smg_trace_rows *rows)
{
    char *cursor = text, *row;
    const char *end = text + bytes;
    size_t column[3];
    uint32_t line = 1;
    int64_t day = INT64_MIN;
    int status = find_columns(layout, smg_trace_line(&cursor, end), rows, column);

    while (status == SMG_OK && !smg_trace_rows_full(rows) && (row = smg_trace_line(&cursor, end)) != NULL) {
        line++;
        if (row[0] != '\0') {
            status = read_row(layout, column, row, line, &day, rows);
        }
    }
    return status;
}

int smg_trace_read_azure(char *text, size_t bytes, struct smg_trace_rows *rows)
{
    static const struct layout azure = {{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, time_stamp};

    return read_layout(&azure, text, bytes, rows);
}

int smg_trace_read_csv(char *text, size_t bytes, struct smg_trace_rows *rows)
{
    static const struct layout plain = {{"arrival_s", "prompt_tokens", "output_tokens"}, time_seconds};

    return read_layout(&plain, text, bytes, rows);
}
