/* Request traces: any format in, request specs sorted by arrival out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"
#include "traces/trace_rows.h"
#include "traces/world.h"

/* Simulated time is a double: later than this, a step of 1e-7 s is lost in it. */
#define ARRIVAL_MAX_S 1e9

static int by_arrival(const void *a, const void *b)
{
    const struct smg_trace_row *x = a, *y = b;

    if (x->arrival_s != y->arrival_s) {
        return x->arrival_s < y->arrival_s ? -1 : 1;
    }
    return (x->order > y->order) - (x->order < y->order);
}

/* Rows are sorted. */
static int check_arrivals(const struct smg_trace_rows *rows, double speedup)
{
    size_t i;

    for (i = 0; i < rows->n; i++) {
        double after = (rows->row[i].arrival_s - rows->row[0].arrival_s) / speedup;

        if (!(after <= ARRIVAL_MAX_S)) {
            return smg_diag_set(rows->diag, SMG_ERR_PARSE,
                                "%s:%u: arrival: expected at most 1e9 s after the first one (line %u), found %g s", rows->path,
                                rows->row[i].line, rows->row[0].line, after);
        }
    }
    return SMG_OK;
}

static int convert(struct smg_trace_rows *rows, double speedup, double hit, struct smg_request_spec **out, uint32_t *n_out)
{
    struct smg_request_spec *specs;
    size_t i;
    int status;

    if (rows->n == 0) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE,
                            "%s: expected a request with prompt and output tokens, found none in %u rows", rows->path,
                            rows->skipped);
    }
    qsort(rows->row, rows->n, sizeof(*rows->row), by_arrival);
    status = check_arrivals(rows, speedup);
    if (status != SMG_OK) {
        return status;
    }
    specs = calloc(rows->n, sizeof(*specs));
    if (specs == NULL) {
        return smg_diag_set(rows->diag, SMG_ERR_NOMEM, "%s: out of memory", rows->path);
    }
    for (i = 0; i < rows->n; i++) {
        const struct smg_trace_row *row = &rows->row[i];
        uint32_t hits = row->has_hit ? row->hit_tokens : (uint32_t)(hit * row->prompt_tokens);

        specs[i].arrival_s = (row->arrival_s - rows->row[0].arrival_s) / speedup;
        specs[i].prompt_tokens = row->prompt_tokens;
        specs[i].output_tokens = row->output_tokens;
        specs[i].hit_tokens = hits < row->prompt_tokens ? hits : row->prompt_tokens - 1;
    }
    *out = specs;
    *n_out = (uint32_t)rows->n;
    return SMG_OK;
}

/* A note, not an error: what was left out or had to be assumed must not go unsaid. */
static void note(const struct smg_trace_rows *rows)
{
    char skipped[100] = "", chained[200] = "";
    uint64_t all = (uint64_t)rows->n + rows->skipped;

    if (rows->skipped > 0) {
        snprintf(skipped, sizeof(skipped), "%u of %llu requests have no prompt or no output tokens and were skipped",
                 rows->skipped, (unsigned long long)all);
    }
    if (rows->chained > 0) {
        snprintf(
            chained, sizeof(chained),
            "%u of %zu requests follow another of their session: they arrive when the tools before them have run, the earliest "
            "moment possible",
            rows->chained, rows->n);
    }
    if (skipped[0] != '\0' || chained[0] != '\0') {
        smg_diag_set(rows->diag, SMG_OK, "%s: %s%s%s", rows->path, skipped, skipped[0] != '\0' && chained[0] != '\0' ? "; " : "",
                     chained);
    }
}

int smg_trace_load(const char *path, enum smg_trace_format format, uint32_t limit, double speedup, double hit,
                   struct smg_request_spec **out, uint32_t *n_out, struct smg_diag *diag)
{
    struct smg_trace_rows rows = {.path = path, .limit = limit, .diag = diag};
    int status;

    if (!(speedup > 0) || !(hit >= 0 && hit < 1)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: speedup must be above 0 and the hit ratio in [0, 1)", path);
    }
    status = smg_trace_rows_read(&rows, format);
    if (status == SMG_OK) {
        status = convert(&rows, speedup, hit, out, n_out);
    }
    if (status == SMG_OK) {
        note(&rows);
    }
    free(rows.row);
    return status;
}
