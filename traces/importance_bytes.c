#include "traces/importance_bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/text.h"

uint64_t smg_fnv1a64(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data, *end = p + bytes;

    while (p < end) {
        hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t load_le(const unsigned char *p, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) {
        value = value << 8 | p[bytes];
    }
    return value;
}

static void store_le(unsigned char *p, uint64_t value, unsigned bytes)
{
    unsigned i;

    for (i = 0; i < bytes; i++) {
        p[i] = (unsigned char)(value >> 8 * i);
    }
}

/* ---- Writing ---- */

int smg_byte_writer_open(const char *path, struct smg_byte_writer *out, struct smg_diag *diag)
{
    struct smg_byte_writer w = {.hash = SMG_FNV1A64_START};
    struct stat there;
    int status = SMG_ERR_NOMEM;

    /* The rename at the end would put a file in the place of a device, a pipe or a link. */
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: not a regular file", path);
    }
    w.path = strdup(path);
    w.temporary = malloc(strlen(path) + 5);
    if (w.path == NULL || w.temporary == NULL) {
        goto err_free_names;
    }
    sprintf(w.temporary, "%s.new", path);
    w.file = fopen(w.temporary, "wb");
    if (w.file == NULL) {
        status = smg_diag_set(diag, SMG_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        goto err_free_names;
    }
    *out = w;
    return SMG_OK;

err_free_names:
    free(w.temporary);
    free(w.path);
    return status;
}

void smg_put_bytes(struct smg_byte_writer *w, const void *data, size_t bytes)
{
    w->hash = smg_fnv1a64(w->hash, data, bytes);
    w->offset += bytes;
    if (fwrite(data, 1, bytes, w->file) != bytes && w->error == 0) {
        w->error = errno;
    }
}

void smg_put_u32(struct smg_byte_writer *w, uint32_t value)
{
    unsigned char bytes[4];

    store_le(bytes, value, 4);
    smg_put_bytes(w, bytes, 4);
}

void smg_put_u64(struct smg_byte_writer *w, uint64_t value)
{
    unsigned char bytes[8];

    store_le(bytes, value, 8);
    smg_put_bytes(w, bytes, 8);
}

void smg_put_floats(struct smg_byte_writer *w, const float *value, size_t n)
{
    uint32_t bits;
    size_t i;

    for (i = 0; i < n; i++) {
        memcpy(&bits, &value[i], sizeof(bits));
        smg_put_u32(w, bits);
    }
}

void smg_put_padding(struct smg_byte_writer *w, char fill)
{
    while (w->offset % 8 != 0) {
        smg_put_bytes(w, &fill, 1);
    }
}

int smg_byte_writer_close(struct smg_byte_writer *w, int keep, struct smg_diag *diag)
{
    int status = SMG_OK;

    smg_put_u64(w, w->hash);
    if (fclose(w->file) != 0 && w->error == 0) {
        w->error = errno;
    }
    if (keep && w->error != 0) {
        status = smg_diag_set(diag, SMG_ERR_IO, "%s: cannot write: %s", w->path, strerror(w->error));
    } else if (keep && rename(w->temporary, w->path) != 0) {
        status = smg_diag_set(diag, SMG_ERR_IO, "%s: cannot be replaced: %s", w->path, strerror(errno));
    }
    if (!keep || status != SMG_OK) {
        remove(w->temporary);
    }
    free(w->temporary);
    free(w->path);
    memset(w, 0, sizeof(*w));
    return status;
}

/* ---- Reading ---- */

int smg_byte_reader_fail(struct smg_byte_reader *r, const char *field, const char *format, ...)
{
    char what[256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return smg_diag_set(r->diag, SMG_ERR_PARSE, "%.200s: offset %zu: field '%s': %s", r->path, r->offset, field, what);
}

int smg_byte_reader_open(const char *path, const void *data, size_t bytes, const char magic[4], struct smg_byte_reader *out,
                         struct smg_diag *diag)
{
    struct smg_byte_reader r = {.path = path, .data = data, .diag = diag};
    uint64_t found, expected;

    if (bytes < 16) {
        return smg_byte_reader_fail(&r, "magic", "the file has %zu bytes, expected at least 16", bytes);
    }
    if (memcmp(data, magic, 4) != 0) {
        return smg_byte_reader_fail(&r, "magic", "expected \"%.4s\", found \"%.4s\"", magic, (const char *)data);
    }
    r.bytes = bytes - 8;
    expected = smg_fnv1a64(SMG_FNV1A64_START, data, r.bytes);
    found = load_le(r.data + r.bytes, 8);
    if (found != expected) {
        r.offset = r.bytes;
        return smg_byte_reader_fail(&r, "checksum",
                                    "found %016llx, expected %016llx (FNV-1a 64 of the bytes before): damaged or cut short",
                                    (unsigned long long)found, (unsigned long long)expected);
    }
    r.offset = 4;
    *out = r;
    return SMG_OK;
}

int smg_get_bytes(struct smg_byte_reader *r, const char *field, const void **out, size_t bytes)
{
    if (bytes > r->bytes - r->offset) {
        return smg_byte_reader_fail(r, field, "expected %zu bytes, the file ends after %zu", bytes, r->bytes - r->offset);
    }
    *out = r->data + r->offset;
    r->offset += bytes;
    return SMG_OK;
}

int smg_get_u32(struct smg_byte_reader *r, const char *field, uint32_t *out)
{
    const void *at = NULL;
    int status = smg_get_bytes(r, field, &at, 4);

    if (status == SMG_OK) {
        *out = (uint32_t)load_le(at, 4);
    }
    return status;
}

int smg_get_u64(struct smg_byte_reader *r, const char *field, uint64_t *out)
{
    const void *at = NULL;
    int status = smg_get_bytes(r, field, &at, 8);

    if (status == SMG_OK) {
        *out = load_le(at, 8);
    }
    return status;
}

int smg_get_floats(struct smg_byte_reader *r, const char *field, float *out, size_t n)
{
    const void *at = NULL;
    size_t i;
    int status = n <= SIZE_MAX / 4 ? smg_get_bytes(r, field, &at, 4 * n) : SMG_ERR_RANGE;

    for (i = 0; i < n && status == SMG_OK; i++) {
        uint32_t bits = (uint32_t)load_le((const unsigned char *)at + 4 * i, 4);
        memcpy(&out[i], &bits, sizeof(bits));
    }
    return status;
}
