/* Little-endian files with a checksum at the end: 64-bit FNV-1a of every byte before it. */
#ifndef SMG_TRACES_IMPORTANCE_BYTES_H
#define SMG_TRACES_IMPORTANCE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define SMG_FNV1A64_START UINT64_C(0xcbf29ce484222325)

uint64_t smg_fnv1a64(uint64_t hash, const void *data, size_t bytes);

/* A file being written. It appears under its name at the end, complete or not at all. */
struct smg_byte_writer {
    FILE *file;
    char *path, *temporary;
    uint64_t hash, offset;
    int error; /* errno of the first write that failed, 0: none */
};

int smg_byte_writer_open(const char *path, struct smg_byte_writer *out, struct smg_diag *diag);
/* Errors of writing show in smg_byte_writer_close. */
void smg_put_bytes(struct smg_byte_writer *w, const void *data, size_t bytes);
void smg_put_u32(struct smg_byte_writer *w, uint32_t value);
void smg_put_u64(struct smg_byte_writer *w, uint64_t value);
void smg_put_floats(struct smg_byte_writer *w, const float *value, size_t n);
/* Fills up with `fill` to a multiple of 8 bytes. */
void smg_put_padding(struct smg_byte_writer *w, char fill);
/* Appends the checksum and moves the file into place; keep == 0: throws it away. Frees what the writer holds either way. */
int smg_byte_writer_close(struct smg_byte_writer *w, int keep, struct smg_diag *diag);

/* A file in memory. */
struct smg_byte_reader {
    const char *path;
    const unsigned char *data;
    size_t bytes, offset; /* without the checksum */
    struct smg_diag *diag;
};

/* Checks magic, size and checksum of data[bytes]; the reader stands behind the magic. */
int smg_byte_reader_open(const char *path, const void *data, size_t bytes, const char magic[4], struct smg_byte_reader *out,
                         struct smg_diag *diag);
int smg_get_u32(struct smg_byte_reader *r, const char *field, uint32_t *out);
int smg_get_u64(struct smg_byte_reader *r, const char *field, uint64_t *out);
int smg_get_floats(struct smg_byte_reader *r, const char *field, float *out, size_t n);
/* Points at `bytes` bytes of the file. */
int smg_get_bytes(struct smg_byte_reader *r, const char *field, const void **out, size_t bytes);
/* "FILE: offset N: field 'x': ..." */
int smg_byte_reader_fail(struct smg_byte_reader *r, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
