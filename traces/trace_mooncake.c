/* Mooncake JSONL: one request a line, with the hashes of its 512-token prefix blocks. A block that an earlier row had is a hit:
 * the cache of the trace is infinite. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "traces/text.h"
#include "traces/trace_rows.h"

#define BLOCK_TOKENS 512u
#define INT64_DIGITS 18 /* every number of so many digits fits in 63 bits */

/* Set of ids: open addressing, linear probing. Id 0 is common, so a slot keeps id + 1 and the one id that wraps has a flag. */
struct id_set {
    uint64_t *slot;
    size_t mask, n;
    int has_max;
};

static int set_has(const struct id_set *s, uint64_t id)
{
    size_t i;

    if (id == UINT64_MAX || s->slot == NULL) {
        return id == UINT64_MAX && s->has_max;
    }
    for (i = smg_mix64(id) & s->mask; s->slot[i] != 0; i = (i + 1) & s->mask) {
        if (s->slot[i] == id + 1) {
            return 1;
        }
    }
    return 0;
}

static void set_place(struct id_set *s, uint64_t id)
{
    size_t i = smg_mix64(id) & s->mask;

    while (s->slot[i] != 0) {
        i = (i + 1) & s->mask;
    }
    s->slot[i] = id + 1;
}

static int set_grow(struct id_set *s)
{
    size_t slots = s->slot == NULL ? 1024 : 2 * (s->mask + 1), i;
    struct id_set bigger = {calloc(slots, sizeof(uint64_t)), slots - 1, s->n, s->has_max};

    if (bigger.slot == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (i = 0; s->slot != NULL && i <= s->mask; i++) {
        if (s->slot[i] != 0) {
            set_place(&bigger, s->slot[i] - 1);
        }
    }
    free(s->slot);
    *s = bigger;
    return SMG_OK;
}

static int set_add(struct id_set *s, uint64_t id)
{
    if (id == UINT64_MAX) {
        s->has_max = 1;
        return SMG_OK;
    }
    if (set_has(s, id)) {
        return SMG_OK;
    }
    if ((s->slot == NULL || 2 * s->n > s->mask) && set_grow(s) != SMG_OK) {
        return SMG_ERR_NOMEM;
    }
    set_place(s, id);
    s->n++;
    return SMG_OK;
}

/* Length of the run of digits at c, if it is a whole integer that is too long. */
static size_t long_integer(const char *c, char before)
{
    size_t run = strspn(c, "0123456789");

    /* Part of a real, of a negative number, or the tail of a run is left alone. */
    if (run <= INT64_DIGITS || c[run] == '.' || c[run] == 'e' || c[run] == 'E' || strchr(".eE+-0123456789", before) != NULL) {
        return 0;
    }
    return run;
}

/* Copies a line and puts quotes around integers that a JSON reader of 63 bits would refuse. out holds 2 * strlen(in) + 1 bytes.
 */
static void quote_long_integers(const char *in, char *out)
{
    char before = ' ';
    int inside = 0;
    size_t run;

    for (; *in != '\0'; before = *in++) {
        run = inside ? 0 : long_integer(in, before);
        if (run > 0) {
            *out++ = '"';
            memcpy(out, in, run);
            out += run;
            *out++ = '"';
            in += run - 1;
            continue;
        }
        if (*in == '"') {
            inside = !inside;
        } else if (inside && *in == '\\' && in[1] != '\0') {
            *out++ = *in++;
        }
        *out++ = *in;
    }
    *out = '\0';
}

/* State of one file. */
struct reader {
    struct smg_trace_rows *rows;
    struct id_set seen;
    uint32_t line;
};

static int bad_value(const struct reader *r, const char *field, const char *expected, const json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    int status = smg_trace_bad_field(r->rows, r->line, field, expected, text != NULL ? text : "nothing");

    free(text);
    return status;
}

static int read_tokens(const struct reader *r, const json_t *row, const char *field, uint32_t *out)
{
    const json_t *value = json_object_get(row, field);
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > (json_int_t)SMG_TRACE_TOKENS_MAX) {
        return bad_value(r, field, "tokens in [0, 16000000]", value);
    }
    *out = (uint32_t)number;
    return SMG_OK;
}

static int read_id(const struct reader *r, const json_t *value, uint64_t *out)
{
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return SMG_OK;
    }
    if (json_is_string(value) && smg_text_u64(json_string_value(value), out) == SMG_OK) {
        return SMG_OK;
    }
    return bad_value(r, "hash_ids", "64-bit integers", value);
}

/* Leading ids that were seen before are cached. Ids beyond the prompt's length (malformed rows) neither count nor enter the
 * cache. */
static int read_hashes(struct reader *r, const json_t *ids, struct smg_trace_row *row)
{
    size_t i, n = json_array_size(ids), blocks = (row->prompt_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    uint64_t id, hits = 0;
    int leading = 1, status;

    if (!json_is_array(ids)) {
        return bad_value(r, "hash_ids", "an array of integers", ids);
    }
    for (i = 0; i < n && i < blocks; i++) {
        status = read_id(r, json_array_get(ids, i), &id);
        if (status != SMG_OK) {
            return status;
        }
        leading = leading && set_has(&r->seen, id);
        hits += leading ? BLOCK_TOKENS : 0;
        if (set_add(&r->seen, id) != SMG_OK) {
            return smg_diag_set(r->rows->diag, SMG_ERR_NOMEM, "%s: out of memory", r->rows->path);
        }
    }
    row->has_hit = 1;
    row->hit_tokens = hits < row->prompt_tokens ? (uint32_t)hits : row->prompt_tokens - 1;
    return SMG_OK;
}

static int read_object(struct reader *r, const json_t *object)
{
    const json_t *time = json_object_get(object, "timestamp"), *ids = json_object_get(object, "hash_ids");
    struct smg_trace_row row = {.line = r->line};
    int status = read_tokens(r, object, "input_length", &row.prompt_tokens);

    if (status == SMG_OK) {
        status = read_tokens(r, object, "output_length", &row.output_tokens);
    }
    if (status == SMG_OK && (!json_is_number(time) || json_number_value(time) < 0)) {
        status = bad_value(r, "timestamp", "milliseconds >= 0", time);
    }
    row.arrival_s = json_number_value(time) / 1000;
    if (status == SMG_OK && ids != NULL && row.prompt_tokens > 0) {
        status = read_hashes(r, ids, &row);
    }
    return status == SMG_OK ? smg_trace_rows_add(r->rows, &row) : status;
}

static int read_line(struct reader *r, const char *text)
{
    char *quoted = malloc(2 * strlen(text) + 1);
    json_error_t error;
    json_t *object;
    int status;

    if (quoted == NULL) {
        return smg_diag_set(r->rows->diag, SMG_ERR_NOMEM, "%s: out of memory", r->rows->path);
    }
    quote_long_integers(text, quoted);
    object = json_loads(quoted, JSON_REJECT_DUPLICATES, &error);
    free(quoted);
    if (object == NULL) {
        return smg_diag_set(r->rows->diag, SMG_ERR_PARSE, "%s:%u:%d: %s", r->rows->path, r->line, error.column, error.text);
    }
    if (json_is_object(object)) {
        status = read_object(r, object);
    } else {
        status = smg_diag_set(r->rows->diag, SMG_ERR_PARSE, "%s:%u: expected a JSON object", r->rows->path, r->line);
    }
    json_decref(object);
    return status;
}

int smg_trace_read_mooncake(char *text, size_t bytes, struct smg_trace_rows *rows)
{
    struct reader r = {.rows = rows};
    char *cursor = text, *line;
    const char *end = text + bytes;
    int status = SMG_OK;

    while (status == SMG_OK && !smg_trace_rows_full(rows) && (line = smg_trace_line(&cursor, end)) != NULL) {
        r.line++;
        if (line[strspn(line, " \t")] != '\0') {
            status = read_line(&r, line);
        }
    }
    free(r.seen.slot);
    return status;
}
