#include "experiments/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/files.h"
#include "traces/importance_bytes.h"
#include "traces/text.h"

enum { CSV_BYTES_MAX = 1 << 30 };

static size_t count(const char *text, char c)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == c;
    return n;
}

/* Ends the line at *cursor with a 0 byte and moves *cursor behind it; NULL when there is no more. */
static char *next_line(char **cursor)
{
    char *line = *cursor, *end;

    if (!*line)
        return NULL;
    end = line + strcspn(line, "\n");
    *cursor = *end ? end + 1 : end;
    *end = '\0';
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

/* Cuts a line at its commas; SMG_ERR_PARSE when it has not exactly `columns` cells. */
static int cut_line(char *line, const char **cell, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        char *comma = strchr(line, ',');
        cell[i] = line;
        if (!comma != (i + 1 == columns))
            return SMG_ERR_PARSE;
        if (!comma)
            break;
        *comma = '\0';
        line = comma + 1;
    }
    return SMG_OK;
}

/* A file that was cut short may end in a number that lost its last digits. */
static int check_text(const char *text, size_t bytes, const char *path, struct smg_diag *diag)
{
    const char *quote = strchr(text, '"'), *c;
    size_t line = 1;

    if (strlen(text) != bytes)
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: expected text, found a 0 byte", path);
    if (!bytes || *text == '\n' || *text == '\r')
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: expected a header line", path);
    for (c = text; c != (quote ? quote : text + bytes); c++)
        line += *c == '\n';
    if (quote)
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: found a quote, these files have none", path, line);
    if (text[bytes - 1] != '\n')
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: the line does not end: the file was cut short", path, line);
    return SMG_OK;
}

/* Spreadsheets put a byte order mark in front. */
static size_t drop_mark(char *text, size_t bytes)
{
    if (bytes < 3 || memcmp(text, "\xef\xbb\xbf", 3))
        return bytes;
    memmove(text, text + 3, bytes - 2); /* with the 0 byte behind */
    return bytes - 3;
}

static int check_names(const struct smg_csv *c, struct smg_diag *diag)
{
    for (size_t i = 0; i < c->columns; i++) {
        if (!c->cell[i][0])
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: column %zu has no name", c->path, i + 1);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(c->cell[i], c->cell[j]))
                return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: two columns '%.60s'", c->path, c->cell[i]);
    }
    return SMG_OK;
}

static int cut(struct smg_csv *c, struct smg_diag *diag)
{
    /* No line may have more cells than it has, so the file's cells bound what is kept. */
    size_t cells = count(c->text, '\n') + count(c->text, ',') + 1, n = 0;
    char *cursor = c->text, *line = next_line(&cursor);

    c->columns = count(line, ',') + 1;
    c->cell = calloc(cells, sizeof *c->cell);
    if (!c->cell)
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", c->path);
    for (; line; line = next_line(&cursor), n++) {
        size_t found = count(line, ',') + 1;
        if (cut_line(line, c->cell + n * c->columns, c->columns))
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: expected %zu cells, found %zu", c->path, n + 1, c->columns, found);
    }
    c->rows = n - 1;
    return check_names(c, diag);
}

int smg_csv_read(const char *path, struct smg_csv *out, struct smg_diag *diag)
{
    size_t bytes = 0;
    int status;

    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", path);
    status = smg_file_regular(path, diag);
    if (!status)
        status = smg_file_read(path, CSV_BYTES_MAX, &out->text, &bytes, diag);
    if (!status)
        bytes = drop_mark(out->text, bytes);
    if (!status)
        out->digest = smg_fnv1a64(SMG_FNV1A64_START, out->text, bytes);
    if (!status)
        status = check_text(out->text, bytes, path, diag);
    if (!status)
        status = cut(out, diag);
    if (status)
        smg_csv_free(out);
    return status;
}

void smg_csv_free(struct smg_csv *c)
{
    free(c->cell);
    free(c->text);
    memset(c, 0, sizeof *c);
}

int smg_csv_column(const struct smg_csv *c, const char *name, size_t *out, struct smg_diag *diag)
{
    for (size_t i = 0; i < c->columns; i++) {
        if (strcmp(c->cell[i], name))
            continue;
        *out = i;
        return SMG_OK;
    }
    return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: no column '%s'", c->path, name);
}

int smg_csv_header(const struct smg_csv *c, const char *expected, struct smg_diag *diag)
{
    size_t column = 0;

    while (*expected) {
        size_t n = strcspn(expected, ",");
        const char *found = column < c->columns ? c->cell[column] : "";
        column++;
        if (strlen(found) != n || strncmp(found, expected, n))
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: column %zu: expected '%.*s', found '%.60s'", c->path, column, (int)n,
                                expected, found);
        expected += n + (expected[n] == ',');
    }
    if (column < c->columns)
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: column %zu: expected none, found '%.60s'", c->path, column + 1,
                            c->cell[column]);
    return SMG_OK;
}

const char *smg_csv_cell(const struct smg_csv *c, size_t row, size_t column)
{
    return c->cell[(row + 1) * c->columns + column];
}

int smg_csv_number(const struct smg_csv *c, size_t row, size_t column, double *out, struct smg_diag *diag)
{
    const char *text = smg_csv_cell(c, row, column);

    if (!*text) {
        *out = NAN;
        return SMG_OK;
    }
    if (!smg_text_double(text, out))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: field '%s': expected a number, found '%.60s'", c->path, row + 2,
                        c->cell[column], text);
}

int smg_csv_bad_cell(const struct smg_csv *c, size_t row, size_t column, const char *expected, struct smg_diag *diag)
{
    return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: field '%s': expected %s, found '%.60s'", c->path, row + 2, c->cell[column],
                        expected, smg_csv_cell(c, row, column));
}
