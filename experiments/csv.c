#include "experiments/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int cut(struct smg_csv *c, struct smg_diag *diag)
{
    size_t lines = count(c->text, '\n') + 1, n = 0;
    char *cursor = c->text, *line = next_line(&cursor);

    if (!line || !*line)
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1: expected a header line", c->path);
    c->columns = count(line, ',') + 1;
    c->cell = calloc(lines * c->columns, sizeof *c->cell);
    if (!c->cell)
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", c->path);
    for (; line; line = next_line(&cursor), n++) {
        size_t found = count(line, ',') + 1;
        if (cut_line(line, c->cell + n * c->columns, c->columns))
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%zu: expected %zu cells, found %zu", c->path, n + 1, c->columns, found);
    }
    c->rows = n - 1;
    return SMG_OK;
}

int smg_csv_read(const char *path, struct smg_csv *out, struct smg_diag *diag)
{
    size_t bytes = 0;
    int status;

    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", path);
    status = smg_file_read(path, CSV_BYTES_MAX, &out->text, &bytes, diag);
    if (!status && strlen(out->text) != bytes)
        status = smg_diag_set(diag, SMG_ERR_PARSE, "%s: expected text, found a 0 byte", path);
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
