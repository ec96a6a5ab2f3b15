/* One side of a comparison: run.json, requests.csv, tokens.csv of a record folder. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cost.h"
#include "experiments/compare_priv.h"
#include "experiments/csv.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/scenario.h"
#include "traces/text.h"
#include "traces/world.h"

static const char *const columns[COMPARE_CELLS] = {[COMPARE_PROMPT] = "prompt_tokens",
                                                   [COMPARE_OUTPUT] = "output_tokens",
                                                   [COMPARE_DECODE] = "decode_instance",
                                                   [COMPARE_JOIN] = "decode_join_s",
                                                   [COMPARE_SECOND] = "second_token_s",
                                                   [COMPARE_FINISH] = "finish_s",
                                                   [COMPARE_TTFT] = "ttft_s",
                                                   [COMPARE_TTST] = "ttst_s",
                                                   [COMPARE_TBT] = "tbt_mean_s",
                                                   [COMPARE_METADATA] = "metadata_bytes",
                                                   [COMPARE_PROACTIVE] = "proactive_bytes",
                                                   [COMPARE_ON_DEMAND] = "on_demand_bytes",
                                                   [COMPARE_SPECULATIVE] = "speculative_bytes"};

static int no_memory(const char *path, struct smg_diag *diag)
{
    return smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);
}

/* ---- run.json ---- */

/* The bytes of a model file decide, not its path: the two runs may have been made on two machines. */
static int read_model(const json_t *root, const struct smg_scenario *s, struct compare_run *run)
{
    const json_t *input;
    size_t i;

    snprintf(run->model, sizeof run->model, "%s", s->model);
    json_array_foreach(json_object_get(root, "inputs"), i, input)
    {
        const char *what = json_string_value(json_object_get(input, "input")),
                   *digest = json_string_value(json_object_get(input, "fnv1a64"));
        if (what && digest && !strcmp(what, "model"))
            snprintf(run->model_digest, sizeof run->model_digest, "%s", digest);
    }
    return SMG_OK;
}

/* What the closed form of an iteration needs: model and hardware. Nothing is made or read that only requests need. */
static int load_world(const struct smg_scenario *s, const char *path, struct compare_run *run, struct smg_diag *diag)
{
    struct smg_scenario bare = *s;
    struct smg_diag found = {""};
    int status;

    bare.workload.kind = SMG_WORKLOAD_BATCH;
    bare.workload.requests = 1;
    snprintf(bare.workload.lengths, sizeof bare.workload.lengths, "mean");
    snprintf(bare.proactive.ranking, sizeof bare.proactive.ranking, "sequential");
    snprintf(bare.proactive.importance, sizeof bare.proactive.importance, "auto");
    bare.selection.file[0] = '\0';
    status = smg_world_load(&bare, &run->world, &found);
    if (status)
        return smg_diag_set(diag, status, "%s: %s", path, found.text[0] ? found.text : smg_status_string(status));
    run->has_world = 1;
    return SMG_OK;
}

static int read_run_json(const char *dir, struct compare_run *run, struct smg_diag *diag)
{
    struct smg_scenario s;
    struct smg_diag found = {""};
    char path[SMG_PATH_MAX];
    json_t *root = NULL;
    int status = smg_path_join(dir, "run.json", path);

    if (status)
        return smg_diag_set(diag, status, "%.100s...: name is too long", dir);
    status = smg_run_settings(dir, &run->settings, &run->n, &run->seed, &run->synthetic, diag);
    if (!status)
        status = smg_file_json(path, &root, diag);
    if (status)
        return status;
    status = smg_scenario_from_json(json_object_get(root, "scenario"), &s, &found);
    if (status)
        smg_diag_set(diag, status, "%s: %s", path, found.text);
    if (!status)
        status = read_model(root, &s, run);
    if (!status)
        status = load_world(&s, path, run, diag);
    json_decref(root);
    return status;
}

/* ---- requests.csv ---- */

static int read_row(const struct smg_csv *c, size_t row, const size_t *at, struct compare_request *q, struct smg_diag *diag)
{
    const char *mode = smg_csv_cell(c, row, at[COMPARE_CELLS]);
    int status = SMG_OK;

    for (size_t i = 0; i < COMPARE_CELLS && !status; i++)
        status = smg_csv_number(c, row, at[i], &q->cell[i], diag);
    q->full = !strcmp(mode, "full");
    q->finished = !strcmp(smg_csv_cell(c, row, 1), "finished");
    return status;
}

static int read_requests(const char *dir, struct compare_run *run, struct smg_diag *diag)
{
    size_t at[COMPARE_CELLS + 1];
    char path[SMG_PATH_MAX];
    struct smg_csv c;
    int status = smg_path_join(dir, "requests.csv", path);

    status = status ? smg_diag_set(diag, status, "%.100s...: name is too long", dir) : smg_csv_read(path, &c, diag);
    if (status)
        return status;
    status = smg_requests_check(&c, run->n, diag);
    for (size_t i = 0; i <= COMPARE_CELLS && !status; i++)
        status = smg_csv_column(&c, i < COMPARE_CELLS ? columns[i] : "mode", &at[i], diag);
    if (!status && !(run->request = calloc(c.rows + 1, sizeof *run->request)))
        status = no_memory(path, diag);
    for (size_t i = 0; i < c.rows && !status; i++)
        status = read_row(&c, i, at, &run->request[i], diag);
    smg_csv_free(&c);
    return status;
}

/* ---- The transfer part of TTST ---- */

/* Who shares the iteration that makes the second token of request r: joined before it, not finished when r joined. A token is
 * told before the next request joins, and a last token before that too, so the router's times tell. */
static int shares(const struct compare_request *r, const struct compare_request *q)
{
    return r == q || (q->cell[COMPARE_DECODE] == r->cell[COMPARE_DECODE] && q->cell[COMPARE_JOIN] < r->cell[COMPARE_SECOND] &&
                      !(q->cell[COMPARE_FINISH] <= r->cell[COMPARE_JOIN]));
}

static int find_transfers(struct compare_run *run)
{
    uint32_t *tokens = malloc((run->n + 1) * sizeof *tokens);
    int *full = malloc((run->n + 1) * sizeof *full), status = tokens && full ? SMG_OK : SMG_ERR_NOMEM;
    int paced = !strcmp(json_string_value(json_object_get(run->settings, "driver")), "emu");
    double scale = paced ? run->world.scenario.emu.time_scale : 1;

    for (uint32_t r = 0; r < run->n && !status; r++) {
        struct compare_request *q = &run->request[r];
        size_t n = 0;
        q->transfer_s = NAN;
        if (isnan(q->cell[COMPARE_TTST]))
            continue;
        for (uint32_t i = 0; i < run->n; i++) {
            if (!shares(q, &run->request[i]))
                continue;
            tokens[n] = (uint32_t)run->request[i].cell[COMPARE_PROMPT];
            full[n++] = run->request[i].full;
        }
        q->transfer_s = q->cell[COMPARE_TTST] - scale * smg_cost_decode_s(&run->world, tokens, full, n);
    }
    free(tokens);
    free(full);
    return status;
}

/* ---- tokens.csv ---- */

/* In the order of smg_tokens_header. */
enum {
    TOKEN_REQUEST,
    TOKEN_NUMBER,
    TOKEN_TIME,
    TOKEN_GAP,
    TOKEN_SELECTED,
    TOKEN_REMOTE,
    TOKEN_RATIO,
    TOKEN_ON_DEMAND,
    TOKEN_SPECULATIVE,
    TOKEN_CELLS
};

static int is_count(double x)
{
    return x >= 0 && x == floor(x);
}

/* Rows are sorted by request and token, each once, and no request has more tokens than requests.csv says. */
static int check_place(const struct smg_csv *c, size_t row, const struct compare_run *run, const double *cell, const double *last,
                       struct smg_diag *diag)
{
    int same = cell[TOKEN_REQUEST] == last[TOKEN_REQUEST];

    if (!(is_count(cell[TOKEN_REQUEST]) && cell[TOKEN_REQUEST] < run->n))
        return smg_csv_bad_cell(c, row, TOKEN_REQUEST, "a request of requests.csv", diag);
    if (!(is_count(cell[TOKEN_NUMBER]) && cell[TOKEN_NUMBER] >= 1 &&
          cell[TOKEN_NUMBER] <= run->request[(uint32_t)cell[TOKEN_REQUEST]].cell[COMPARE_OUTPUT]))
        return smg_csv_bad_cell(c, row, TOKEN_NUMBER, "one of the request's output_tokens", diag);
    if (cell[TOKEN_REQUEST] < last[TOKEN_REQUEST] || (same && cell[TOKEN_NUMBER] <= last[TOKEN_NUMBER]))
        return smg_csv_bad_cell(c, row, TOKEN_NUMBER, "rows by request and token, each once", diag);
    if (!(cell[TOKEN_TIME] >= (same ? last[TOKEN_TIME] : 0)))
        return smg_csv_bad_cell(c, row, TOKEN_TIME, "a time that is not before the token before it", diag);
    if (cell[TOKEN_GAP] < 0)
        return smg_csv_bad_cell(c, row, TOKEN_GAP, "a number >= 0", diag);
    if (isnan(cell[TOKEN_GAP]) && same && cell[TOKEN_NUMBER] == last[TOKEN_NUMBER] + 1)
        return smg_csv_bad_cell(c, row, TOKEN_GAP, "a number, since the token before it is there", diag);
    return SMG_OK;
}

static int check_counts(const struct smg_csv *c, size_t row, const double *cell, struct smg_diag *diag)
{
    static const size_t counts[] = {TOKEN_SELECTED, TOKEN_REMOTE, TOKEN_ON_DEMAND, TOKEN_SPECULATIVE};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (!is_count(cell[counts[i]]))
            return smg_csv_bad_cell(c, row, counts[i], "a whole number >= 0", diag);
    if (cell[TOKEN_REMOTE] > cell[TOKEN_SELECTED])
        return smg_csv_bad_cell(c, row, TOKEN_REMOTE, "no more than selected_entries", diag);
    if (cell[TOKEN_RATIO] < 0 || cell[TOKEN_RATIO] > 1)
        return smg_csv_bad_cell(c, row, TOKEN_RATIO, "a number in [0, 1]", diag);
    return SMG_OK;
}

static int read_token(const struct smg_csv *c, size_t row, struct compare_run *run, double last[TOKEN_CELLS],
                      struct smg_diag *diag)
{
    double cell[TOKEN_CELLS] = {0};
    int status = SMG_OK;

    for (size_t i = 0; i < TOKEN_CELLS && !status; i++)
        status = smg_csv_number(c, row, i, &cell[i], diag);
    if (!status)
        status = check_place(c, row, run, cell, last, diag);
    if (!status)
        status = check_counts(c, row, cell, diag);
    if (status)
        return status;
    memcpy(last, cell, sizeof cell);
    run->request[(uint32_t)cell[TOKEN_REQUEST]].tokens++;
    if (!isnan(cell[TOKEN_GAP]))
        run->token[run->n_tokens++] =
            (struct compare_token){(uint32_t)cell[TOKEN_REQUEST], (uint32_t)cell[TOKEN_NUMBER], cell[TOKEN_GAP]};
    return SMG_OK;
}

/* A request that finished has all its tokens. */
static int check_complete(const char *path, const struct compare_run *run, struct smg_diag *diag)
{
    for (uint32_t r = 0; r < run->n; r++)
        if (run->request[r].finished && run->request[r].tokens != run->request[r].cell[COMPARE_OUTPUT])
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s: %u tokens of request %u, which finished with %g", path,
                                run->request[r].tokens, r, run->request[r].cell[COMPARE_OUTPUT]);
    return SMG_OK;
}

static int read_tokens(const char *dir, struct compare_run *run, struct smg_diag *diag)
{
    double last[TOKEN_CELLS] = {-1};
    struct smg_csv c;
    char path[SMG_PATH_MAX];
    int status = smg_path_join(dir, "tokens.csv", path);

    status = status ? smg_diag_set(diag, status, "%.100s...: name is too long", dir) : smg_csv_read(path, &c, diag);
    if (status)
        return status;
    status = smg_csv_header(&c, smg_tokens_header, diag);
    if (!status && !(run->token = calloc(c.rows + 1, sizeof *run->token)))
        status = no_memory(path, diag);
    for (size_t i = 0; i < c.rows && !status; i++)
        status = read_token(&c, i, run, last, diag);
    smg_csv_free(&c);
    return status ? status : check_complete(path, run, diag);
}

/* ---- All of it ---- */

int smg_compare_read(const char *dir, struct compare_run *run, struct smg_diag *diag)
{
    int status;

    run->dir = dir;
    status = read_run_json(dir, run, diag);
    if (!status)
        status = read_requests(dir, run, diag);
    if (!status && find_transfers(run))
        status = no_memory(dir, diag);
    if (!status && run->world.scenario.records.tokens)
        status = read_tokens(dir, run, diag);
    return status;
}

void smg_compare_run_free(struct compare_run *run)
{
    if (run->has_world)
        smg_world_free(&run->world);
    json_decref(run->settings);
    json_decref(run->synthetic);
    free(run->request);
    free(run->token);
}
