/* LLMServingSim JSONL: a line is a request, or a session whose calls follow each other. A call starts when the one before it has
 * ended and its tool has run; when that is, only a run can tell. Here a call arrives when the session has arrived and the tools
 * before it have run, as if every call before it took no time: the earliest moment that is possible. */
#include <jansson.h>
#include <stdio.h>

#include "traces/trace_jsonl.h"
#include "traces/trace_rows.h"
#include "traces/trace_time.h"

struct reader {
    struct smg_jsonl json;
    int64_t origin;
};

/* Nanoseconds, whole or not. */
static int read_ns(const struct reader *r, const char *field, const json_t *value, int64_t *out)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= 0 && number < 0x1p63)) {
        return smg_jsonl_bad(&r->json, field, "nanoseconds in [0, 2^63-1]", value);
    }
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : (int64_t)number;
    return SMG_OK;
}

#define CALL_NONE SIZE_MAX

/* Name of a key for messages: of a request, or of a call of a session. */
static const char *name_of(const char *key, size_t call, char name[64])
{
    if (call == CALL_NONE) {
        return key;
    }
    snprintf(name, 64, "sub_requests[%zu].%s", call, key);
    return name;
}

static int read_lengths(const struct reader *r, const json_t *object, size_t call, struct smg_trace_row *row)
{
    char name[64];
    int status =
        smg_jsonl_tokens(&r->json, name_of("input_toks", call, name), json_object_get(object, "input_toks"), &row->prompt_tokens);

    if (status == SMG_OK) {
        status = smg_jsonl_tokens(&r->json, name_of("output_toks", call, name), json_object_get(object, "output_toks"),
                                  &row->output_tokens);
    }
    return status;
}

/* One call; *tools_ns is the time of the tools before it, and after it of its own too. */
static int read_call(struct reader *r, const json_t *object, size_t call, double start_s, double *tools_ns)
{
    struct smg_trace_row row = {.arrival_s = start_s + *tools_ns / 1e9, .line = r->json.line};
    const json_t *tool = json_object_get(object, "tool_duration_ns");
    size_t before = r->json.rows->n;
    int64_t ns = 0;
    char name[64];
    int status;

    if (!json_is_object(object)) {
        snprintf(name, sizeof(name), "sub_requests[%zu]", call);
        return smg_jsonl_bad(&r->json, name, "an object", object);
    }
    status = read_lengths(r, object, call, &row);
    if (status == SMG_OK && tool != NULL) {
        status = read_ns(r, name_of("tool_duration_ns", call, name), tool, &ns);
    }
    if (status == SMG_OK) {
        status = smg_trace_rows_add(r->json.rows, &row);
    }
    r->json.rows->chained += call > 0 && r->json.rows->n > before;
    *tools_ns += (double)ns;
    return status;
}

static int read_session(struct reader *r, const json_t *calls, double start_s)
{
    size_t i, n = json_array_size(calls);
    double tools_ns = 0;
    int status = SMG_OK;

    if (n == 0) {
        return smg_jsonl_bad(&r->json, "sub_requests", "an array of at least one call", calls);
    }
    for (i = 0; i < n && status == SMG_OK && !smg_trace_rows_full(r->json.rows); i++) {
        status = read_call(r, json_array_get(calls, i), i, start_s, &tools_ns);
    }
    return status;
}

static int read_object(void *context, const json_t *object)
{
    struct reader *r = context;
    const json_t *calls = json_object_get(object, "sub_requests"), *time = json_object_get(object, "arrival_time_ns");
    struct smg_trace_row row = {.line = r->json.line};
    int64_t ns;
    int status = read_ns(r, "arrival_time_ns", time, &ns);

    if (status != SMG_OK) {
        return status;
    }
    row.arrival_s = smg_trace_ns_after(ns, &r->origin);
    if (calls != NULL) {
        return read_session(r, calls, row.arrival_s);
    }
    status = read_lengths(r, object, CALL_NONE, &row);
    return status == SMG_OK ? smg_trace_rows_add(r->json.rows, &row) : status;
}

int smg_trace_read_llmservingsim(char *text, struct smg_trace_rows *rows)
{
    struct reader r = {.origin = SMG_TRACE_NO_ORIGIN};

    return smg_jsonl_each(&r.json, "llmservingsim", text, rows, read_object, &r);
}
