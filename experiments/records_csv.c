/* requests.csv and tokens.csv. A cell is empty where its quantity does not exist; columns and units are in docs/records.md. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "experiments/files.h"
#include "experiments/run_priv.h"

const char smg_requests_header[] =
    "request,status,reason,arrival_s,prompt_tokens,output_tokens,prefill_instance,decode_instance,mode,kr_blocks,prefill_start_s,"
    "prefill_end_s,push_done_s,decode_join_s,first_token_s,second_token_s,finish_s,ttft_s,ttst_s,tbt_mean_s,metadata_bytes,"
    "proactive_bytes,on_demand_bytes,speculative_bytes,duplicate_bytes,messages,on_demand_ratio";

const char smg_tokens_header[] =
    "request,token,time_s,gap_s,selected_entries,remote_entries,on_demand_ratio,on_demand_bytes,speculative_bytes";

static void cell_s(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, ",%.9g", x);
    else
        fputc(',', f);
}

static void cell_count(FILE *f, int exists, uint64_t x)
{
    if (exists)
        fprintf(f, ",%" PRIu64, x);
    else
        fputc(',', f);
}

/* Text without what would end a cell. */
static void cell_text(FILE *f, const char *text)
{
    fputc(',', f);
    for (; *text; text++)
        fputc(*text == ',' || *text == '"' || *text == '\n' || *text == '\r' ? ';' : *text, f);
}

static const char *status_word(uint32_t status)
{
    if (status == SMG_REQUEST_FINISHED)
        return "finished";
    return status == SMG_REQUEST_FAILED ? "failed" : "waiting";
}

void smg_request_reason(const struct smg_request_record *q, char *text, size_t text_bytes)
{
    if (q->reason == SMG_ERR_LOST && q->culprit)
        snprintf(text, text_bytes, "lost instance %u", q->culprit);
    else if (q->reason == SMG_ERR_PROTOCOL && q->culprit)
        snprintf(text, text_bytes, "instance %u broke the protocol", q->culprit);
    else
        snprintf(text, text_bytes, "%s", smg_status_string(q->reason));
}

static void put_request(FILE *f, const struct smg_run *run, uint32_t id)
{
    const struct smg_request_record *q = &run->records->request[id];
    int handed_off = q->decode_instance != 0, finished = q->status == SMG_REQUEST_FINISHED;
    int sent = finished && !(q->uncounted & SMG_UNCOUNTED_PREFILL), received = finished && !(q->uncounted & SMG_UNCOUNTED_DECODE);
    char reason[64];

    smg_request_reason(q, reason, sizeof reason);
    fprintf(f, "%" PRIu32 ",%s", id, status_word(q->status));
    cell_text(f, q->status == SMG_REQUEST_FAILED ? reason : "");
    cell_s(f, q->arrival_s);
    fprintf(f, ",%" PRIu32 ",%" PRIu32, q->prompt_tokens, q->output_tokens);
    cell_count(f, q->prefill_instance != 0, q->prefill_instance);
    cell_count(f, handed_off, q->decode_instance);
    cell_text(f, !handed_off ? "" : q->mode == SMG_MODE_FULL ? "full" : "selective");
    cell_count(f, handed_off, q->kr_blocks);
    cell_s(f, q->prefill_start_s);
    cell_s(f, q->prefill_end_s);
    cell_s(f, q->push_done_s);
    cell_s(f, q->decode_join_s);
    cell_s(f, q->first_token_s);
    cell_s(f, q->second_token_s);
    cell_s(f, q->finish_s);
    cell_s(f, smg_record_ttft_s(q));
    cell_s(f, smg_record_ttst_s(q));
    cell_s(f, smg_record_tbt_mean_s(q));
    /* The instances report their counts when a request is finished; of others only the wire totals are known. */
    cell_count(f, sent, q->metadata_bytes);
    cell_count(f, sent, q->proactive_bytes);
    cell_count(f, received, q->on_demand_bytes);
    cell_count(f, sent, q->speculative_bytes);
    cell_count(f, received, id < run->stats->n_requests ? run->stats->duplicate_bytes[id] : 0);
    cell_count(f, sent && received, q->messages);
    cell_s(f, smg_record_on_demand_ratio(q));
    fputc('\n', f);
}

int smg_write_requests_csv(const struct smg_run *run, const char *path, struct smg_diag *diag)
{
    FILE *f = NULL;
    int status = smg_output_open(path, &f, diag);

    if (status)
        return status;
    fprintf(f, "%s\n", smg_requests_header);
    for (uint32_t i = 0; i < run->records->n_requests; i++)
        put_request(f, run, i);
    return smg_output_close(f, path, SMG_OK, diag);
}

static int by_request_and_token(const void *a, const void *b)
{
    const struct smg_token_record *x = *(const struct smg_token_record *const *)a,
                                  *y = *(const struct smg_token_record *const *)b;

    if (x->request != y->request)
        return x->request < y->request ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static void put_token(FILE *f, const struct smg_token_record *t, const struct smg_token_record *before)
{
    int follows = before && before->request == t->request && before->token + 1 == t->token;

    fprintf(f, "%" PRIu32 ",%" PRIu32, t->request, t->token);
    cell_s(f, t->time_s);
    cell_s(f, follows ? t->time_s - before->time_s : NAN);
    fprintf(f, ",%" PRIu64 ",%" PRIu64, t->selected_entries, t->remote_entries);
    cell_s(f, t->selected_entries ? (double)t->remote_entries / (double)t->selected_entries : NAN);
    fprintf(f, ",%" PRIu64 ",%" PRIu64 "\n", t->on_demand_bytes, t->speculative_bytes);
}

int smg_write_tokens_csv(const struct smg_run *run, const char *path, struct smg_diag *diag)
{
    const struct smg_records *r = run->records;
    const struct smg_token_record **sorted = malloc((r->n_tokens + 1) * sizeof *sorted);
    FILE *f = NULL;
    int status = sorted ? smg_output_open(path, &f, diag) : SMG_ERR_NOMEM;

    if (status)
        goto free_sorted;
    for (size_t i = 0; i < r->n_tokens; i++)
        sorted[i] = &r->token[i];
    qsort(sorted, r->n_tokens, sizeof *sorted, by_request_and_token);
    fprintf(f, "%s\n", smg_tokens_header);
    for (size_t i = 0; i < r->n_tokens; i++)
        put_token(f, sorted[i], i ? sorted[i - 1] : NULL);
    status = smg_output_close(f, path, SMG_OK, diag);
free_sorted:
    free(sorted);
    return status;
}
