#include "cli/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/plugin.h"
#include "core/scheme.h"
#include "core/stats.h"

static double mean(const struct smg_records *r, double (*f)(const struct smg_request_record *))
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        double x = f(&r->request[i]);
        if (isnan(x) || r->request[i].status != SMG_REQUEST_FINISHED)
            continue;
        sum += x;
        n++;
    }
    return n ? sum / n : NAN;
}

/* "0.42 s", or "-" where the quantity does not exist. */
static void print_seconds(const char *name, double seconds)
{
    if (isnan(seconds))
        printf("%s -", name);
    else
        printf("%s %.4g s", name, seconds);
}

static int failed_by_loss(const struct smg_request_record *q)
{
    return q->status == SMG_REQUEST_FAILED && q->culprit;
}

/* One line for all requests that lost instances took with them. */
static void name_losses(const struct smg_run *run)
{
    const struct smg_records *r = run->records;
    const struct smg_request_record *first = NULL;
    char reason[64];
    uint32_t n = 0;

    for (uint32_t i = r->n_requests; i-- > 0;) {
        n += (uint32_t)failed_by_loss(&r->request[i]);
        first = failed_by_loss(&r->request[i]) ? &r->request[i] : first;
    }
    if (first)
        smg_request_reason(first, reason, sizeof reason);
    if (first)
        fprintf(stderr, "smartgen: %u of %u requests failed: %s\n", n, r->n_requests, run->losses ? run->losses : reason);
    else if (r->lost)
        fprintf(stderr, "smartgen: warning: %s; no request failed of it\n", run->losses ? run->losses : "lost an instance");
}

/* Failed requests are an outcome that is never silent. */
static void name_failures(const struct smg_run *run)
{
    const struct smg_records *r = run->records;
    uint32_t named = 0, others = 0;

    name_losses(run);
    for (uint32_t i = 0; i < r->n_requests; i++) {
        const struct smg_request_record *q = &r->request[i];
        if (q->status != SMG_REQUEST_FAILED || failed_by_loss(q) || ++others > 8)
            continue;
        named++;
        fprintf(stderr, "smartgen: request %u (%u + %u tokens, instances %u and %u) failed: %s%s\n", i, q->prompt_tokens,
                q->output_tokens, q->prefill_instance, q->decode_instance, smg_status_string(q->reason),
                q->reason == SMG_ERR_CAPACITY ? "; its KV cache is larger than an instance's host memory (host_memory_gib)" : "");
    }
    if (others > named)
        fprintf(stderr, "smartgen: and %u more\n", others - named);
}

static void print_outcome(const struct smg_run *run, const char *output)
{
    const struct smg_records *r = run->records;
    const struct smg_world *w = run->world;
    double ratio = mean(r, smg_record_on_demand_ratio);

    if (w->plugin)
        printf("policy %s, ranking %s; ", w->plugin->name, w->scenario.proactive.ranking);
    printf("%s, %s on %s: %u finished, %u failed; ", w->scheme->name, run->driver, run->engine, r->finished, r->failed);
    print_seconds("mean TTFT", mean(r, smg_record_ttft_s));
    print_seconds(", TTST", mean(r, smg_record_ttst_s));
    print_seconds(", TBT", mean(r, smg_record_tbt_mean_s));
    if (!isnan(ratio))
        printf("; on-demand ratio %.3f over all steps", ratio);
    printf("\n  received MB:");
    for (int p = 0; p < SMG_PATHS; p++)
        printf(" %s %.4g", smg_path_name((enum smg_path)p), (double)run->stats->received_bytes[p] * 1e-6);
    printf("\n");
    if (run->stats->attention_outputs)
        printf("  attention by kernels: %llu outputs, from the reference at most %.2g of a head's largest value, %.2g of the "
               "terms\n",
               (unsigned long long)run->stats->attention_outputs, run->stats->attention_relative, run->stats->attention_error);
    if (r->lost)
        printf("  conservation: the laws over bytes are left out, what lost instances counted is not known\n");
    smg_cli_synthetic(w, run->stats->attention_outputs > 0, "  ");
    if (output)
        printf("  records in %s\n", output);
}

int smg_outcome_refuse(struct smg_run_folder *rec, int status, const struct smg_diag *diag)
{
    struct smg_diag explained = *diag;
    int begun = rec->active, code;

    smg_outdir_explain(&rec->dir, &explained);
    code = smg_cli_fail(status, &explained);
    smg_run_folder_abort(rec);
    return begun ? SMG_EXIT_FAILED : code;
}

/* A log that cannot be written ends the run: the disk is full, most likely. Why, closing it has said. Everything else says itself
 * what it is. */
static int run_failed(int status, const struct smg_diag *run_diag, int written, const struct smg_diag *write_diag)
{
    if (status != SMG_ERR_IO)
        return smg_cli_fail(status, run_diag);
    return smg_cli_fail(SMG_ERR_LOST, written == SMG_ERR_IO ? write_diag : run_diag);
}

int smg_outcome_finish(struct smg_run_folder *rec, const struct smg_run *run, const struct smg_args *a, int status,
                       const struct smg_diag *run_diag)
{
    struct smg_diag diag = {""}, failure = *run_diag;
    int written = run->records ? smg_run_folder_commit(rec, run, &diag) : SMG_OK;

    smg_outdir_explain(&rec->dir, &diag);
    smg_outdir_explain(&rec->dir, &failure);
    smg_run_folder_abort(rec);
    if (status)
        return run_failed(status, &failure, written, &diag);
    if (written) {
        smg_cli_fail(written, &diag);
        return SMG_EXIT_FAILED; /* the input was good */
    }
    if (!a->quiet)
        print_outcome(run, a->output);
    name_failures(run);
    return run->records->failed ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}
