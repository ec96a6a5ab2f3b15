/* Two runs side by side: whether they may be compared, and the errors. */
#include "experiments/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare_priv.h"
#include "traces/text.h"

/* ---- Whether they may ---- */

static const char *text_of(const struct compare_run *run, const char *key)
{
    const char *text = json_string_value(json_object_get(run->settings, key));

    return text ? text : "";
}

static int refuse(const struct compare_run *run, const char *what, const char *a, const char *b, struct smg_diag *diag)
{
    return smg_diag_set(diag, SMG_ERR_INVALID, "%s and %s cannot be compared: %s: %.100s and %.100s", run[0].dir, run[1].dir,
                        what, a, b);
}

static int check_request(const struct compare_run *run, uint32_t r, struct smg_diag *diag)
{
    static const struct {
        enum compare_cell cell;
        const char *what;
    } same[] = {{COMPARE_PROMPT, "prompt_tokens"}, {COMPARE_OUTPUT, "output_tokens"}};

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        double a = run[0].request[r].cell[same[i].cell], b = run[1].request[r].cell[same[i].cell];
        char what[64], x[32], y[32];
        if (a == b)
            continue;
        snprintf(what, sizeof what, "%s of request %" PRIu32, same[i].what, r);
        snprintf(x, sizeof x, "%g", a);
        snprintf(y, sizeof y, "%g", b);
        return refuse(run, what, x, y, diag);
    }
    return SMG_OK;
}

static int check_requests(const struct compare_run *run, struct smg_diag *diag)
{
    char a[24], b[24];
    int status = SMG_OK;

    snprintf(a, sizeof a, "%" PRIu32, run[0].n);
    snprintf(b, sizeof b, "%" PRIu32, run[1].n);
    if (run[0].n != run[1].n)
        return refuse(run, "number of requests", a, b, diag);
    for (uint32_t r = 0; r < run[0].n && !status; r++)
        status = check_request(run, r, diag);
    return status;
}

static int same_model(const struct compare_run *run)
{
    if (run[0].model_digest[0] && run[1].model_digest[0])
        return !strcmp(run[0].model_digest, run[1].model_digest);
    return !strcmp(run[0].model, run[1].model);
}

static int check(const struct compare_run *run, struct smg_diag *diag)
{
    char a[24], b[24];

    snprintf(a, sizeof a, "%" PRIu64, run[0].seed);
    snprintf(b, sizeof b, "%" PRIu64, run[1].seed);
    if (!same_model(run))
        return refuse(run, "model", run[0].model, run[1].model, diag);
    if (strcmp(text_of(&run[0], "scheme"), text_of(&run[1], "scheme")))
        return refuse(run, "scheme", text_of(&run[0], "scheme"), text_of(&run[1], "scheme"), diag);
    if (run[0].seed != run[1].seed)
        return refuse(run, "seed", a, b, diag);
    return check_requests(run, diag);
}

/* ---- The rows ---- */

static double error_of(double a, double b)
{
    if (isnan(a) || isnan(b))
        return INFINITY;
    if (b == 0)
        return a == 0 ? 0 : INFINITY;
    return (a - b) / b;
}

static int add(struct smg_comparison *c, uint32_t request, uint32_t token, enum smg_compared what, double a, double b)
{
    double error = error_of(a, b);

    if (isnan(a) && isnan(b))
        return SMG_OK;
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        struct smg_compare_row *grown = realloc(c->row, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        c->row = grown;
        c->cap = cap;
    }
    c->row[c->n++] = (struct smg_compare_row){request, token, what, a, b, error};
    c->largest = fmax(c->largest, fabs(error));
    return SMG_OK;
}

static int add_request(struct smg_comparison *c, const struct compare_run *run, uint32_t r)
{
    static const struct {
        enum smg_compared what;
        enum compare_cell cell;
    } cells[] = {{SMG_COMPARE_TTFT, COMPARE_TTFT},
                 {SMG_COMPARE_TTST, COMPARE_TTST},
                 {SMG_COMPARE_TBT, COMPARE_TBT},
                 {SMG_COMPARE_METADATA, COMPARE_METADATA},
                 {SMG_COMPARE_PROACTIVE, COMPARE_PROACTIVE},
                 {SMG_COMPARE_ON_DEMAND, COMPARE_ON_DEMAND},
                 {SMG_COMPARE_SPECULATIVE, COMPARE_SPECULATIVE}};
    const struct compare_request *a = &run[0].request[r], *b = &run[1].request[r];
    int status = SMG_OK;

    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && !status; i++) {
        status = add(c, r, 0, cells[i].what, a->cell[cells[i].cell], b->cell[cells[i].cell]);
        if (!status && cells[i].what == SMG_COMPARE_TTST)
            status = add(c, r, 0, SMG_COMPARE_TRANSFER, a->transfer_s, b->transfer_s);
    }
    return status;
}

static int before(const struct compare_token *x, const struct compare_token *y)
{
    return x->request < y->request || (x->request == y->request && x->token < y->token);
}

/* Both lists are in order; a token that only one run has is a row too. */
static int add_tokens(struct smg_comparison *c, const struct compare_run *run)
{
    size_t i = 0, j = 0;
    int status = SMG_OK;

    if (!run[0].token || !run[1].token)
        return SMG_OK;
    while ((i < run[0].n_tokens || j < run[1].n_tokens) && !status) {
        const struct compare_token *a = i < run[0].n_tokens ? &run[0].token[i] : NULL;
        const struct compare_token *b = j < run[1].n_tokens ? &run[1].token[j] : NULL;
        const struct compare_token *first = !b || (a && before(a, b)) ? a : b;
        int in_a = a && !before(first, a), in_b = b && !before(first, b);
        status = add(c, first->request, first->token, SMG_COMPARE_GAP, in_a ? a->gap_s : NAN, in_b ? b->gap_s : NAN);
        i += (size_t)in_a;
        j += (size_t)in_b;
    }
    return status;
}

static void summarize(struct smg_comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct smg_compare_summary *s = &c->summary[c->row[i].what];
        s->rows++;
        if (!isfinite(c->row[i].error))
            continue;
        s->n++;
        s->mean += fabs(c->row[i].error);
        s->bias += c->row[i].error;
        s->max = fmax(s->max, fabs(c->row[i].error));
    }
    for (size_t k = 0; k < SMG_COMPARED; k++) {
        struct smg_compare_summary *s = &c->summary[k];
        s->mean = s->n ? s->mean / (double)s->n : NAN;
        s->bias = s->n ? s->bias / (double)s->n : NAN;
        s->max = s->n ? s->max : NAN;
    }
}

/* ---- What is told about the runs ---- */

/* Names of the settings that differ, as many as there is room for. */
static void name_differences(const struct compare_run *run, char *text, size_t room)
{
    const char *key;
    json_t *value;
    size_t used = 0;

    text[0] = '\0';
    json_object_foreach(run[0].settings, key, value)
    {
        int n;
        if (json_equal(value, json_object_get(run[1].settings, key)) || used + strlen(key) + 8 > room)
            continue;
        n = snprintf(text + used, room - used, "%s%s", used ? ", " : "", key);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void name_synthetic(const struct compare_run *run, char *text, size_t room)
{
    const char *what;
    json_t *is;
    size_t used = 0;

    text[0] = '\0';
    if (!json_is_object(run->synthetic))
        snprintf(text, room, "not said");
    json_object_foreach(run->synthetic, what, is)
    {
        int n = json_is_true(is) && used < room ? snprintf(text + used, room - used, "%s%s", used ? ", " : "", what) : 0;
        used += n > 0 ? (size_t)n : 0;
    }
}

static void name_runs(const struct compare_run *run, struct smg_comparison *c)
{
    for (size_t i = 0; i < 2; i++)
        snprintf(c->name[i], sizeof c->name[i], "%.300s (%.20s, %.150s)", run[i].dir, text_of(&run[i], "driver"),
                 text_of(&run[i], "engine"));
    for (size_t i = 0; i < 2; i++)
        name_synthetic(&run[i], c->synthetic[i], sizeof c->synthetic[i]);
    name_differences(run, c->differs, sizeof c->differs);
}

int smg_compare(const char *dir_a, const char *dir_b, struct smg_comparison *out, struct smg_diag *diag)
{
    const char *dir[2] = {dir_a, dir_b};
    struct compare_run *run = calloc(2, sizeof *run);
    int status = run ? SMG_OK : smg_diag_set(diag, SMG_ERR_NOMEM, "compare: out of memory"), rows = SMG_OK;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < 2 && !status; i++)
        status = smg_compare_read(dir[i], &run[i], diag);
    if (!status)
        status = check(run, diag);
    for (uint32_t r = 0; !status && r < run[0].n && !rows; r++)
        rows = add_request(out, run, r);
    if (!status && !rows)
        rows = add_tokens(out, run);
    if (rows)
        status = smg_diag_set(diag, rows, "compare: out of memory");
    if (!status) {
        summarize(out);
        name_runs(run, out);
    } else {
        smg_comparison_free(out);
    }
    for (size_t i = 0; run && i < 2; i++)
        smg_compare_run_free(&run[i]);
    free(run);
    return status;
}

void smg_comparison_free(struct smg_comparison *c)
{
    free(c->row);
    memset(c, 0, sizeof *c);
}
