/* Text helpers of the readers: one-line diagnostics, strict numbers, whole files. */
#ifndef SMG_TRACES_TEXT_H
#define SMG_TRACES_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* Writes a line into diag (NULL: nowhere) and returns status. Control characters become blanks, so that it stays one line. */
int smg_diag_set(struct smg_diag *diag, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Decimal digits only, no sign, no leading zero. SMG_ERR_PARSE or SMG_ERR_RANGE leave *out as it was. */
int smg_text_u64(const char *text, uint64_t *out);
/* A finite decimal number: no hex, no inf, no nan, no blanks. SMG_ERR_PARSE or SMG_ERR_RANGE leave *out as it was. */
int smg_text_double(const char *text, double *out);

/* Whether a text can be written to JSON. */
int smg_text_is_utf8(const char *text);

/* Letters to change, add, drop or swap with their neighbour between two words of at most 128 bytes, case ignored; SIZE_MAX:
 * longer. */
size_t smg_text_distance(const char *a, const char *b);

/* "; did you mean 'x'?" for the nearest of names, "" when nothing is near. */
void smg_text_hint(const char *word, const char *const *names, char *hint, size_t hint_bytes);

/* "a, b, c", cut off where the room ends. */
void smg_text_join(const char *const *names, char *text, size_t text_bytes);

/* Reads a whole file of at most max_bytes; data[bytes] is followed by a 0 byte and is the caller's to free. */
int smg_file_read(const char *path, size_t max_bytes, char **data_out, size_t *bytes_out, struct smg_diag *diag);
/* The same for a stream, from where it stands; name is for messages. */
int smg_stream_read(FILE *f, const char *name, size_t max_bytes, char **data_out, size_t *bytes_out, struct smg_diag *diag);
/* Reads a file that holds one JSON object; duplicate keys are refused. New reference. */
int smg_file_json(const char *path, json_t **out, struct smg_diag *diag);

#endif
