#include "traces/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "traces/scenario.h"

#define JSON_MAX_BYTES ((size_t)16 << 20)
#define WORD_MAX       128

int smg_diag_set(struct smg_diag *diag, int status, const char *format, ...)
{
    va_list args;
    char *c;

    if (diag == NULL) {
        return status;
    }
    va_start(args, format);
    vsnprintf(diag->text, sizeof(diag->text), format, args);
    va_end(args);
    for (c = diag->text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
    }
    return status;
}

int smg_text_u64(const char *text, uint64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long long value;

    if (digits == 0 || text[digits] != '\0' || (digits > 1 && text[0] == '0')) {
        return SMG_ERR_PARSE;
    }
    errno = 0;
    value = strtoull(text, NULL, 10);
    if (errno != 0) {
        return SMG_ERR_RANGE;
    }
    *out = value;
    return SMG_OK;
}

int smg_text_double(const char *text, double *out)
{
    const char *digits = text + (text[0] == '-');
    char *end;
    double value;

    /* The character set keeps strtod away from blanks, hex, inf and nan. */
    if (text[strspn(text, "0123456789.eE+-")] != '\0' || strchr("0123456789.", digits[0]) == NULL || digits[0] == '\0') {
        return SMG_ERR_PARSE;
    }
    if (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') {
        return SMG_ERR_PARSE;
    }
    value = strtod(text, &end);
    if (end == text || *end != '\0') {
        return SMG_ERR_PARSE;
    }
    if (!isfinite(value)) {
        return SMG_ERR_RANGE;
    }
    *out = value;
    return SMG_OK;
}

/* Bytes of the UTF-8 sequence at s, 0: it is none. Surrogates, overlong forms and what lies behind U+10FFFF are none. */
static size_t sequence(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0, i;

    for (i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return n;
}

int smg_text_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = 1;

    for (; *s != '\0' && n > 0; s += n) {
        n = sequence(s);
    }
    return n > 0;
}

static char lower(char c)
{
    return (c >= 'A' && c <= 'Z') ? (char)(c - 'A' + 'a') : c;
}

/* Letters to change, add, drop or swap with their neighbour (optimal string alignment), case ignored; of the usual matrix three
 * rows are kept. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2], *spare, n = strlen(b), i, j, best;

    for (j = 0; j <= n; j++) {
        above[j] = j;
    }
    for (i = 1; a[i - 1] != '\0'; i++) {
        row[0] = i;
        for (j = 1; j <= n; j++) {
            best = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
        spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[n];
}

size_t smg_text_distance(const char *a, const char *b)
{
    return strlen(a) <= WORD_MAX && strlen(b) <= WORD_MAX ? edit_distance(a, b) : SIZE_MAX;
}

/* The shortest name that begins with word, case ignored; three letters or more say enough. The key of a group is no longer form
 * of the group's name. */
static const char *beginning_with(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    const char *found = NULL;

    for (; length >= 3 && *names != NULL; names++) {
        if (strncasecmp(word, *names, length) == 0 && strchr(*names + length, '.') == NULL &&
            (found == NULL || strlen(*names) < strlen(found))) {
            found = *names;
        }
    }
    return found;
}

const char *smg_nearest(const char *word, const char *const *names)
{
    size_t length = strlen(word), best = (length + 2) / 3 + 1, distance, n;
    const char *found = NULL;

    if (length == 0 || length > WORD_MAX) {
        return NULL;
    }
    if ((found = beginning_with(word, names)) != NULL) {
        return found;
    }
    for (; *names != NULL; names++) {
        n = strlen(*names);
        /* Lengths alone put many names out of reach. */
        distance = n <= WORD_MAX && n < length + best && length < n + best ? edit_distance(word, *names) : best;
        if (distance < best) {
            best = distance;
            found = *names;
        }
    }
    return found;
}

void smg_text_hint(const char *word, const char *const *names, char *hint, size_t hint_bytes)
{
    const char *near = smg_nearest(word, names);

    hint[0] = '\0';
    if (near != NULL) {
        snprintf(hint, hint_bytes, "; did you mean '%s'?", near);
    }
}

void smg_text_join(const char *const *names, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (; *names != NULL && used < text_bytes; names++) {
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", *names);
    }
}

int smg_stream_read(FILE *f, const char *name, size_t max_bytes, char **data_out, size_t *bytes_out, struct smg_diag *diag)
{
    size_t bytes = 0, cap = 0, got;
    char *data = NULL, *grown;

    do {
        if (bytes + 1 >= cap) {
            cap = cap == 0 ? 65536 : 2 * cap;
            grown = realloc(data, cap);
            if (grown == NULL) {
                free(data);
                return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", name);
            }
            data = grown;
        }
        got = fread(data + bytes, 1, cap - bytes - 1, f);
        bytes += got;
    } while (got > 0 && bytes <= max_bytes);
    if (ferror(f) || bytes > max_bytes) {
        free(data);
        return ferror(f) ? smg_diag_set(diag, SMG_ERR_IO, "%s: cannot read: %s", name, strerror(errno))
                         : smg_diag_set(diag, SMG_ERR_RANGE, "%s: larger than %zu bytes", name, max_bytes);
    }
    data[bytes] = '\0';
    /* To size, so that tools that watch memory see a read behind the end. */
    grown = realloc(data, bytes + 1);
    *data_out = grown != NULL ? grown : data;
    *bytes_out = bytes;
    return SMG_OK;
}

int smg_file_read(const char *path, size_t max_bytes, char **data_out, size_t *bytes_out, struct smg_diag *diag)
{
    FILE *f = fopen(path, "rb");
    struct stat info;
    int status;

    if (f == NULL) {
        return smg_diag_set(diag, SMG_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    /* A pipe may end; a device such as /dev/zero need not. */
    if (fstat(fileno(f), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
        fclose(f);
        return smg_diag_set(diag, SMG_ERR_IO, "%s: expected a file, found a device", path);
    }
    status = smg_stream_read(f, path, max_bytes, data_out, bytes_out, diag);
    fclose(f);
    return status;
}

int smg_file_json(const char *path, json_t **out, struct smg_diag *diag)
{
    json_error_t error;
    size_t bytes, mark;
    json_t *root;
    char *data;
    int status = smg_file_read(path, JSON_MAX_BYTES, &data, &bytes, diag);

    if (status != SMG_OK) {
        return status;
    }
    mark = bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a byte order mark, as some editors put it */
    root = json_loadb(data + mark, bytes - mark, JSON_REJECT_DUPLICATES, &error);
    free(data);
    if (root == NULL) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:%d:%d: %s", path, error.line, error.column, error.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s:1:1: expected a JSON object", path);
    }
    *out = root;
    return SMG_OK;
}
