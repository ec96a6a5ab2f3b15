#include "traces/trace_cells.h"

void smg_cells_begin(struct smg_cells *c, char *text)
{
    c->cursor = text;
    c->line = 0;
    c->next = 1;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the quotes off the cell that opens at *open, doubled ones become one; *stop is where its text ends. Returns the character
 * behind the closing quote, NULL when there is none. */
static char *unquote(struct smg_cells *c, char *open, char **stop)
{
    char *from = open + 1, *to = from;

    for (; *from != '\0'; *to++ = *from++) {
        if (*from == '"' && *++from != '"') {
            *stop = to;
            return from;
        }
        c->next += *from == '\n';
    }
    return NULL;
}

/* One cell, ended by a 0 byte in place of what delimited it: ',', '\n', or 0 at the end of the text, which is in *delimiter. */
static const char *read_cell(struct smg_cells *c, char **cell, char *delimiter)
{
    char *p = c->cursor, *stop;

    while (is_blank(*p)) {
        p++;
    }
    *cell = p;
    if (*p == '"') {
        *cell = p + 1;
        p = unquote(c, p, &stop);
        if (p == NULL) {
            return "expected a closing quote, found the end of the file";
        }
        while (is_blank(*p)) {
            p++;
        }
        if (*p != ',' && *p != '\n' && *p != '\0') {
            return "expected a comma after a closing quote, found more text";
        }
    } else {
        while (*p != ',' && *p != '\n' && *p != '\0') {
            p++;
        }
        for (stop = p; stop > *cell && is_blank(stop[-1]); stop--) {
        }
    }
    *delimiter = *p;
    c->cursor = *p == '\0' ? p : p + 1;
    *stop = '\0';
    return NULL;
}

static const char *read_record(struct smg_cells *c, char *cell[SMG_CELLS_MAX], size_t *n)
{
    const char *complaint;
    char delimiter;

    c->line = c->next;
    *n = 0;
    do {
        if (*n == SMG_CELLS_MAX) {
            return "expected at most 256 fields, found more";
        }
        complaint = read_cell(c, &cell[*n], &delimiter);
        if (complaint != NULL) {
            return complaint;
        }
        ++*n;
    } while (delimiter == ',');
    c->next++;
    return NULL;
}

const char *smg_cells_next(struct smg_cells *c, char *cell[SMG_CELLS_MAX], size_t *n)
{
    const char *complaint;

    while (*c->cursor != '\0') {
        complaint = read_record(c, cell, n);
        if (complaint != NULL || *n > 1 || cell[0][0] != '\0') {
            return complaint;
        }
    }
    *n = 0;
    return NULL;
}
