/* The validation table: every published number that constants were derived from beside ours, and numbers that are only predicted.
 *
 * experiments/validation.yaml holds sweeps of its own (as in experiments/sweep.h) and rows:
 *
 *     - {row: P102, quantity: ..., condition: ..., paper: 3.7, label: calibrated, ours: EXPRESSION, maximum: ...}
 *
 * row        P-number, with a suffix after '.' where a number has several parts; or a name of its own without a P-number
 * relation   '=' (default) or '<' (at most)
 * paper      left out where nothing is compared yet
 * maximum    how a published "up to" was read
 * each       a list of texts: the row once per text, which takes the place of {} in row, quantity, condition and ours
 *
 * An expression is made of numbers, + - * /, parentheses, and
 *
 *     METRIC(POINT)                      a column of the data files, of a point such as fig11/full/6
 *     gap_s(POINT, T), token_ratio(POINT, T)   of token id T
 *     last_remote(POINT)                 last token id that fetched anything; 1: none did
 *     max_gap_over(POINT, A, B, T, T)    greatest ratio, over these token ids, of the gap to the greater one of A and B
 *     max(X, ...), min(X, ...)
 *
 * experiments/validation_reasons.yaml maps rows to {ours: NUMBER, text: ...}: the arithmetic of a miss, and the number it was
 * written for. Where ours has moved away from that number the table says so. */
#ifndef SMG_EXPERIMENTS_VALIDATION_H
#define SMG_EXPERIMENTS_VALIDATION_H

#include "experiments/figure_points.h"

struct smg_validation_row {
    char row[48], id[16], quantity[160], condition[160], label[16], ours[640], maximum[256], reason[1024];
    char relation;
    double paper;       /* NAN: not compared */
    double reason_ours; /* what `reason` was written for */
    double value;       /* NAN: could not be computed; why says so */
    struct smg_diag why;
    int status;
};

struct smg_validation {
    struct smg_validation_row *row;
    size_t rows;
};

/* Reads validation.yaml and validation_reasons.yaml of a folder; the file's own sweeps go into the book. On error *out is zeroed.
 */
int smg_validation_read(const char *folder, struct smg_book *b, struct smg_validation *out, struct smg_diag *diag);
void smg_validation_free(struct smg_validation *v);
/* Asks the book for every point that a row names. An expression that cannot be read is an error that names its row. */
int smg_validation_want(const struct smg_validation *v, struct smg_book *b, struct smg_diag *diag);
/* Computes the rows from a book that has been run, and writes validation.csv and validation.txt into outdir. A row whose points
 * failed has no value; the first such failure is returned after the files are written. */
int smg_validation_write(struct smg_validation *v, const struct smg_book *b, const char *outdir, struct smg_diag *diag);

/* The value of an expression. b has been run: evaluates; else: asks b for the points, and the value means nothing. */
int smg_expression(const char *text, struct smg_book *b, double *out, struct smg_diag *diag);

#endif
