/* Whether a requests.csv can be what a run wrote: the cells of each row by the kind of their column. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/csv.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

enum kind { ROW, STATUS, TEXT, MODE, SECONDS, COUNT, FROM_ONE, SHARE };

/* In the order of smg_requests_header. */
static const enum kind kinds[] = {ROW,     STATUS,  TEXT,    SECONDS, FROM_ONE, FROM_ONE, FROM_ONE, FROM_ONE, MODE,
                                  COUNT,   SECONDS, SECONDS, SECONDS, SECONDS,  SECONDS,  SECONDS,  SECONDS,  SECONDS,
                                  SECONDS, SECONDS, COUNT,   COUNT,   COUNT,    COUNT,    COUNT,    COUNT,    SHARE};

enum { COLUMNS = sizeof kinds / sizeof kinds[0] };

static const char *const statuses[] = {"finished", "failed", "waiting", NULL}, *const modes[] = {"full", "selective", "", NULL};

static int is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word))
        words++;
    return *words != NULL;
}

static int check_number(const struct smg_csv *c, size_t row, size_t column, enum kind kind, struct smg_diag *diag)
{
    static const struct {
        double low, high;
        int whole;
        const char *expected;
    } ranges[] = {[SECONDS] = {0, INFINITY, 0, "a number >= 0"},
                  [COUNT] = {0, INFINITY, 1, "a whole number >= 0"},
                  [FROM_ONE] = {1, UINT32_MAX, 1, "a whole number >= 1"},
                  [SHARE] = {0, 1, 0, "a number in [0, 1]"}};
    double x;
    int status = smg_csv_number(c, row, column, &x, diag);

    if (status || isnan(x)) /* empty: there is no such quantity */
        return status;
    if (x >= ranges[kind].low && x <= ranges[kind].high && !(ranges[kind].whole && x != floor(x)))
        return SMG_OK;
    return smg_csv_bad_cell(c, row, column, ranges[kind].expected, diag);
}

static int check_cell(const struct smg_csv *c, size_t row, size_t column, struct smg_diag *diag)
{
    const char *cell = smg_csv_cell(c, row, column);
    char id[24];

    switch (kinds[column]) {
    case ROW: /* ids count from 0 */
        snprintf(id, sizeof id, "%zu", row);
        return strcmp(cell, id) ? smg_csv_bad_cell(c, row, column, id, diag) : SMG_OK;
    case STATUS:
        return is_one_of(cell, statuses) ? SMG_OK : smg_csv_bad_cell(c, row, column, "finished, failed or waiting", diag);
    case MODE:
        return is_one_of(cell, modes) ? SMG_OK : smg_csv_bad_cell(c, row, column, "full, selective or nothing", diag);
    case TEXT:
        return SMG_OK;
    case SECONDS:
    case COUNT:
    case FROM_ONE:
    case SHARE:
        break;
    }
    return check_number(c, row, column, kinds[column], diag);
}

/* What no request lacks, and what there is only where tokens are. */
static int check_there(const struct smg_csv *c, size_t row, struct smg_diag *diag)
{
    enum { STATUS_AT = 1, ARRIVAL = 3, PROMPT, OUTPUT, MODE_AT = 8, TTFT = 17, TTST };
    const size_t needed[] = {ARRIVAL, PROMPT, OUTPUT};
    double tokens = 0;
    int finished;

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!smg_csv_cell(c, row, needed[i])[0])
            return smg_csv_bad_cell(c, row, needed[i], "a number", diag);
    if (smg_csv_number(c, row, OUTPUT, &tokens, diag))
        return SMG_ERR_PARSE;
    finished = !strcmp(smg_csv_cell(c, row, STATUS_AT), "finished");
    if (finished && !smg_csv_cell(c, row, TTFT)[0])
        return smg_csv_bad_cell(c, row, TTFT, "a number, since the request finished", diag);
    if (finished && tokens >= 2 && !smg_csv_cell(c, row, TTST)[0])
        return smg_csv_bad_cell(c, row, TTST, "a number, since the request finished", diag);
    if (finished && tokens >= 2 && !smg_csv_cell(c, row, MODE_AT)[0])
        return smg_csv_bad_cell(c, row, MODE_AT, "full or selective, since the request finished", diag);
    if (tokens < 2 && smg_csv_cell(c, row, TTST)[0])
        return smg_csv_bad_cell(c, row, TTST, "nothing, since the only token is the first", diag);
    return SMG_OK;
}

/* As the router sees them, whatever clocks others have. */
static int check_order(const struct smg_csv *c, size_t row, struct smg_diag *diag)
{
    static const size_t times[] = {3, 14, 15, 16}; /* arrival, first token, second token, end */
    double last = 0, x;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (smg_csv_number(c, row, times[i], &x, diag))
            return SMG_ERR_PARSE;
        if (x < last)
            return smg_csv_bad_cell(c, row, times[i], "a time that is not before those before it", diag);
        last = isnan(x) ? last : x;
    }
    return SMG_OK;
}

int smg_requests_check(const struct smg_csv *c, uint32_t requests, struct smg_diag *diag)
{
    int status = smg_csv_header(c, smg_requests_header, diag);

    for (size_t row = 0; row < c->rows && !status; row++) {
        for (size_t column = 0; column < COLUMNS && !status; column++)
            status = check_cell(c, row, column, diag);
        if (!status)
            status = check_there(c, row, diag);
        if (!status)
            status = check_order(c, row, diag);
    }
    if (!status && c->rows != requests)
        status = smg_diag_set(diag, SMG_ERR_PARSE, "%s: %zu rows, run.json says %u requests", c->path, c->rows, requests);
    return status;
}
