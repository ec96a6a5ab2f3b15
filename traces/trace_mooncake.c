/* Mooncake JSONL: one request a line, with the hashes of its 512-token prefix blocks. A block that an earlier row had is a hit:
 * the cache of the trace is infinite. */
#include <jansson.h>
#include <stdlib.h>

#include "core/rng.h"
#include "traces/text.h"
#include "traces/trace_jsonl.h"
#include "traces/trace_rows.h"

#define BLOCK_TOKENS 512u

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

/* State of one file. */
struct reader {
    struct smg_jsonl json;
    struct id_set seen;
};

static int read_id(const struct reader *r, const json_t *value, uint64_t *out)
{
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return SMG_OK;
    }
    if (json_is_string(value) && smg_text_u64(json_string_value(value), out) == SMG_OK) {
        return SMG_OK;
    }
    return smg_jsonl_bad(&r->json, "hash_ids", "64-bit integers", value);
}

/* Leading ids that were seen before are cached. Ids beyond the prompt's length (malformed rows) neither count nor enter the
 * cache. */
static int read_hashes(struct reader *r, const json_t *ids, struct smg_trace_row *row)
{
    size_t i, n = json_array_size(ids), blocks = (row->prompt_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    uint64_t id, hits = 0;
    int leading = 1, status;

    if (!json_is_array(ids)) {
        return smg_jsonl_bad(&r->json, "hash_ids", "an array of integers", ids);
    }
    for (i = 0; i < n && i < blocks; i++) {
        status = read_id(r, json_array_get(ids, i), &id);
        if (status != SMG_OK) {
            return status;
        }
        leading = leading && set_has(&r->seen, id);
        hits += leading ? BLOCK_TOKENS : 0;
        if (set_add(&r->seen, id) != SMG_OK) {
            return smg_trace_no_memory(r->json.rows);
        }
    }
    row->has_hit = 1;
    row->hit_tokens = hits < row->prompt_tokens ? (uint32_t)hits : row->prompt_tokens - 1;
    return SMG_OK;
}

/* A row that starts some time after another one has ended has no arrival of its own. */
static int read_time(const struct reader *r, const json_t *object, double *arrival_s)
{
    const char *field;
    json_t *time, *waits = json_object_get(object, "wait_for");
    int status = smg_jsonl_get(&r->json, object, "timestamp", "created_time", &field, &time);

    if (status != SMG_OK) {
        return status;
    }
    if (waits != NULL && !json_is_null(waits) && !(json_is_array(waits) && json_array_size(waits) == 0)) {
        return smg_jsonl_bad(&r->json, "wait_for", "nothing (a row that waits for others arrives when they end)", waits);
    }
    if (time == NULL && (json_object_get(object, "delay") != NULL || json_object_get(object, "delay_ms") != NULL)) {
        return smg_jsonl_bad(&r->json, "timestamp", "milliseconds >= 0 (a row with a delay alone arrives when another one ends)",
                             NULL);
    }
    if (!json_is_number(time) || json_number_value(time) < 0) {
        return smg_jsonl_bad(&r->json, field, "milliseconds >= 0", time);
    }
    *arrival_s = json_number_value(time) / 1000;
    return SMG_OK;
}

static int read_tokens(const struct reader *r, const json_t *object, const char *key, const char *other, uint32_t *out)
{
    const char *field;
    json_t *value;
    int status = smg_jsonl_get(&r->json, object, key, other, &field, &value);

    return status == SMG_OK ? smg_jsonl_tokens(&r->json, field, value, out) : status;
}

/* Writers with optional fields say null for hash ids that they do not have. */
static int read_object(void *context, const json_t *object)
{
    struct reader *r = context;
    json_t *ids = NULL;
    struct smg_trace_row row = {.line = r->json.line};
    int status = read_time(r, object, &row.arrival_s);

    if (status == SMG_OK) {
        status = smg_jsonl_optional(&r->json, object, "hash_ids", &ids);
    }
    if (status == SMG_OK) {
        status = read_tokens(r, object, "input_length", "input_tokens", &row.prompt_tokens);
    }
    if (status == SMG_OK) {
        status = read_tokens(r, object, "output_length", "output_tokens", &row.output_tokens);
    }
    if (status == SMG_OK && ids != NULL && !json_is_null(ids) && row.prompt_tokens > 0) {
        status = read_hashes(r, ids, &row);
    }
    return status == SMG_OK ? smg_trace_rows_add(r->json.rows, &row) : status;
}

int smg_trace_read_mooncake(char *text, struct smg_trace_rows *rows)
{
    struct reader r = {.seen = {NULL, 0, 0, 0}};
    int status = smg_jsonl_each(&r.json, "mooncake", text, rows, read_object, &r);

    free(r.seen.slot);
    return status;
}
