/* A CSV file as this room writes them, read back: a header line of names that differ, no quotes, the same number of cells in
 * every line, and an end to the last one. */
#ifndef SMG_EXPERIMENTS_CSV_H
#define SMG_EXPERIMENTS_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

struct smg_csv {
    char path[SMG_PATH_MAX];
    char *text;        /* the file, cut into cells in place */
    const char **cell; /* [rows + 1][columns], the header first; into text */
    size_t rows, columns;
    uint64_t digest; /* FNV-1a of the bytes of the file, without a byte order mark */
};

/* Reads a whole file. SMG_ERR_PARSE names file and line. On error *out is zeroed. */
int smg_csv_read(const char *path, struct smg_csv *out, struct smg_diag *diag);
void smg_csv_free(struct smg_csv *c);
/* Index of a column. SMG_ERR_PARSE: there is none. */
int smg_csv_column(const struct smg_csv *c, const char *name, size_t *out, struct smg_diag *diag);
/* SMG_ERR_PARSE: the columns are not exactly those of `expected`, "a,b,c". */
int smg_csv_header(const struct smg_csv *c, const char *expected, struct smg_diag *diag);
/* Cell of a row from 0. */
const char *smg_csv_cell(const struct smg_csv *c, size_t row, size_t column);
/* The number in a cell, NAN when it is empty. SMG_ERR_PARSE names file, line and field. */
int smg_csv_number(const struct smg_csv *c, size_t row, size_t column, double *out, struct smg_diag *diag);
/* SMG_ERR_PARSE: the cell is not what was expected. */
int smg_csv_bad_cell(const struct smg_csv *c, size_t row, size_t column, const char *expected, struct smg_diag *diag);

#endif
