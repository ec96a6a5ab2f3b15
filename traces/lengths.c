#include "traces/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/trace_rows.h"
#include "traces/world.h"

double smg_quantiles_at(const struct smg_quantiles *q, double u)
{
    double percent = 100 * u, share;
    uint32_t i = 1;

    while (i + 1 < q->n && q->percent[i] <= percent) {
        i++;
    }
    share = (percent - q->percent[i - 1]) / (q->percent[i] - q->percent[i - 1]);
    return q->tokens[i - 1] + share * (q->tokens[i] - q->tokens[i - 1]);
}

double smg_quantiles_mean(const struct smg_quantiles *q)
{
    double sum = 0;
    uint32_t i;

    for (i = 1; i < q->n; i++) {
        sum += (q->percent[i] - q->percent[i - 1]) / 100 * (q->tokens[i] + q->tokens[i - 1]) / 2;
    }
    return sum;
}

void smg_lengths_draw(const struct smg_lengths *l, struct smg_rng *rng, uint32_t *prompt_out, uint32_t *output_out)
{
    double u = smg_rng_uniform(rng);
    uint32_t i;

    if (l->pair != NULL) {
        i = (uint32_t)(u * l->n_pairs);
        i = i < l->n_pairs ? i : l->n_pairs - 1; /* the product may round up */
        *prompt_out = l->pair[i][0];
        *output_out = l->pair[i][1];
        return;
    }
    *prompt_out = (uint32_t)lround(smg_quantiles_at(&l->prompt, u));
    *output_out = (uint32_t)lround(smg_quantiles_at(&l->output, smg_rng_uniform(rng)));
}

static int ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);

    return n > m && strcmp(name + n - m, ending) == 0;
}

static int copy_pairs(const struct smg_trace_rows *rows, struct smg_lengths *l)
{
    size_t i;

    if (rows->n == 0) {
        return smg_diag_set(rows->diag, SMG_ERR_PARSE, "%s: expected a row with prompt and output tokens, found none in %u rows",
                            rows->path, rows->skipped);
    }
    l->pair = malloc(rows->n * sizeof(l->pair[0]));
    if (l->pair == NULL) {
        return smg_trace_no_memory(rows);
    }
    for (i = 0; i < rows->n; i++) {
        l->pair[i][0] = rows->row[i].prompt_tokens;
        l->pair[i][1] = rows->row[i].output_tokens;
    }
    l->n_pairs = (uint32_t)rows->n;
    if (rows->skipped > 0) {
        smg_diag_set(rows->diag, SMG_OK, "%s: %u of %llu rows have no prompt or no output tokens and were skipped", rows->path,
                     rows->skipped, (unsigned long long)rows->n + rows->skipped);
    }
    return SMG_OK;
}

static int read_pairs(const char *path, struct smg_lengths *l, struct smg_diag *diag)
{
    struct smg_trace_rows rows = {.path = path, .diag = diag};
    int status = smg_trace_rows_read_lengths(&rows);

    if (status == SMG_OK) {
        status = copy_pairs(&rows, l);
    }
    free(rows.row);
    return status;
}

/* The nearest name, or the first one that begins like this. */
static void hint_name(const char *name, char *hint, size_t hint_bytes)
{
    const char *mean[] = {"mean", NULL};
    char **names;
    size_t i;

    smg_text_hint(name, mean, hint, hint_bytes);
    if (hint[0] != '\0' || smg_names_list("lengths", &names) != SMG_OK) {
        return;
    }
    smg_text_hint(name, (const char *const *)names, hint, hint_bytes);
    for (i = 0; hint[0] == '\0' && names[i] != NULL; i++) {
        if (strncmp(names[i], name, strlen(name)) == 0) {
            snprintf(hint, hint_bytes, "; did you mean '%s'?", names[i]);
        }
    }
    smg_names_free(names);
}

static int unknown_name(const char *name, struct smg_diag *diag)
{
    char hint[160];

    hint_name(name, hint, sizeof(hint));
    return smg_diag_set(diag, SMG_ERR_NOT_FOUND,
                        "key 'workload.lengths': expected mean, a name of `smartgen list lengths` or a file, found '%.100s'%s",
                        name, hint);
}

static int read_any(const char *name, struct smg_lengths *l, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status;

    if (ends_in(name, ".csv") || ends_in(name, ".jsonl") || (strchr(name, '/') != NULL && !ends_in(name, ".json"))) {
        return read_pairs(name, l, diag);
    }
    status = smg_data_resolve("lengths", "length distribution", name, path, diag);
    if (status == SMG_ERR_NOT_FOUND) {
        return unknown_name(name, diag);
    }
    return status == SMG_OK ? smg_lengths_read_table(path, l, diag) : status;
}

int smg_lengths_open(const char *name_or_path, struct smg_lengths **out, struct smg_diag *diag)
{
    struct smg_lengths *l = calloc(1, sizeof(*l));
    int status;

    if (l == NULL) {
        return smg_diag_set(diag, SMG_ERR_NOMEM, "%.100s: out of memory", name_or_path);
    }
    status = read_any(name_or_path, l, diag);
    if (status != SMG_OK) {
        smg_lengths_close(l);
        return status;
    }
    *out = l;
    return SMG_OK;
}

void smg_lengths_close(struct smg_lengths *l)
{
    if (l != NULL) {
        free(l->pair);
        free(l);
    }
}
