/* What a trace looks like, from its first line: for the messages about files of another format. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "traces/trace_cells.h"
#include "traces/trace_columns.h"
#include "traces/trace_jsonl.h"
#include "traces/trace_rows.h"

static const char *after_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

static int has(const json_t *object, const char *a, const char *b)
{
    return json_object_get(object, a) != NULL || json_object_get(object, b) != NULL;
}

static const char *format_of_keys(const json_t *object)
{
    if (has(object, "input_toks", "sub_requests")) {
        return "llmservingsim";
    }
    if (has(object, "hash_ids", "input_length") ||
        (has(object, "input_tokens", "input_tokens") && has(object, "timestamp", "created_time"))) {
        return "mooncake";
    }
    return NULL;
}

static const char *format_of_json(const char *line)
{
    char *quoted = malloc(2 * strlen(line) + 1);
    const char *format;
    json_t *object;

    if (quoted == NULL) {
        return NULL;
    }
    smg_jsonl_quote(line, quoted);
    object = json_loads(quoted, 0, NULL);
    free(quoted);
    format = object != NULL ? format_of_keys(object) : NULL;
    json_decref(object);
    return format;
}

struct smg_trace_guess smg_trace_guess(const char *text)
{
    const char *from = after_blanks(text);
    char *line = strndup(from, strcspn(from, "\n")), *cell[SMG_CELLS_MAX];
    struct smg_trace_guess guess = {NULL, *from == '{' || *from == '[', 0};
    struct smg_cells cells;
    size_t n;

    if (line == NULL) {
        return guess;
    }
    if (guess.json) {
        guess.format = format_of_json(line);
    } else {
        smg_cells_begin(&cells, line);
        if (smg_cells_next(&cells, cell, &n) == NULL) {
            guess = smg_trace_guess_columns(cell, n);
        }
    }
    free(line);
    return guess;
}
