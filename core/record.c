#include "core/record.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/reserve.h"
#include "core/status.h"

int smg_records_init(struct smg_records *r, uint32_t n_requests)
{
    memset(r, 0, sizeof *r);
    r->request = calloc(n_requests ? n_requests : 1, sizeof *r->request);
    if (!r->request)
        return SMG_ERR_NOMEM;
    r->n_requests = n_requests;
    for (uint32_t i = 0; i < n_requests; i++) {
        struct smg_request_record *q = &r->request[i];
        q->prefill_start_s = q->prefill_end_s = q->push_done_s = q->ready_s = q->decode_join_s = NAN;
        q->first_token_s = q->second_token_s = q->finish_s = NAN;
    }
    return SMG_OK;
}

void smg_records_free(struct smg_records *r)
{
    free(r->request);
    free(r->token);
    memset(r, 0, sizeof *r);
}

int smg_records_reserve(struct smg_records *r, size_t tokens)
{
    struct smg_token_record *grown;

    if (tokens <= r->cap_tokens)
        return SMG_OK;
    grown = tokens <= SIZE_MAX / sizeof *grown ? realloc(r->token, tokens * sizeof *grown) : NULL;
    if (!grown)
        return SMG_ERR_NOMEM;
    r->token = grown;
    r->cap_tokens = tokens;
    return SMG_OK;
}

int smg_records_token(struct smg_records *r, const struct smg_token_record *t)
{
    if (r->n_tokens == r->cap_tokens && smg_records_reserve(r, r->cap_tokens ? 2 * r->cap_tokens : 256))
        return SMG_ERR_NOMEM;
    r->token[r->n_tokens++] = *t;
    return SMG_OK;
}

double smg_record_ttft_s(const struct smg_request_record *r)
{
    return r->first_token_s - r->arrival_s;
}

double smg_record_ttst_s(const struct smg_request_record *r)
{
    return r->second_token_s - r->first_token_s;
}

double smg_record_tbt_mean_s(const struct smg_request_record *r)
{
    if (r->output_tokens < 3)
        return NAN;
    return (r->finish_s - r->second_token_s) / (double)(r->output_tokens - 2);
}

double smg_record_on_demand_ratio(const struct smg_request_record *r)
{
    if (!r->selected_entries)
        return NAN;
    return (double)r->remote_entries / (double)r->selected_entries;
}
