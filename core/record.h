/* Records of a run, kept by the router agent on its one clock. Times in s from the start of the run; NAN: the quantity does not
 * exist. */
#ifndef SMG_CORE_RECORD_H
#define SMG_CORE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* A finished request may lack the counts of an instance that was lost after it was needed. */
enum { SMG_UNCOUNTED_PREFILL = 1u, SMG_UNCOUNTED_DECODE = 2u };

enum smg_request_status { SMG_REQUEST_WAITING, SMG_REQUEST_RUNNING, SMG_REQUEST_FINISHED, SMG_REQUEST_FAILED };

struct smg_request_record {
    uint32_t status;                 /* enum smg_request_status */
    int32_t reason;                  /* enum smg_status of a failed request */
    uint16_t culprit;                /* SMG_ERR_LOST, SMG_ERR_PROTOCOL: the instance that is to blame; else 0 */
    uint16_t uncounted;              /* SMG_UNCOUNTED_ bits: whose counts are missing of a finished request */
    double arrival_s;
    uint32_t prompt_tokens, output_tokens;
    uint16_t prefill_instance, decode_instance;   /* 0: none yet */
    uint16_t mode;                   /* enum smg_mode */
    uint32_t kr_blocks, total_blocks;
    double prefill_start_s, prefill_end_s, push_done_s, ready_s, decode_join_s;
    double first_token_s, second_token_s, finish_s;
    uint32_t tokens;                 /* made so far */
    uint64_t metadata_bytes, proactive_bytes, on_demand_bytes, speculative_bytes, duplicate_bytes, messages;
    uint64_t on_demand_sent_bytes;   /* as counted by the prefill instance: equals on_demand_bytes when the run is sound */
    uint64_t selected_entries, remote_entries;    /* over the layers that select */
};

struct smg_token_record {
    uint32_t request, token;         /* token 1.. */
    double time_s;
    uint64_t selected_entries, remote_entries, on_demand_bytes, speculative_bytes;
};

struct smg_records {
    struct smg_request_record *request;   /* [n_requests] */
    uint32_t n_requests;
    struct smg_token_record *token;       /* in order of arrival at the router */
    size_t n_tokens, cap_tokens;
    uint32_t finished, failed;
    uint32_t lost;                        /* instances that the router lost, or was told not to trust */
};

int smg_records_init(struct smg_records *r, uint32_t n_requests);
void smg_records_free(struct smg_records *r);
int smg_records_token(struct smg_records *r, const struct smg_token_record *t);

/* Derived quantities of a request; NAN when they do not exist. */
double smg_record_ttft_s(const struct smg_request_record *r);       /* first token - arrival */
double smg_record_ttst_s(const struct smg_request_record *r);       /* second token - first token */
double smg_record_tbt_mean_s(const struct smg_request_record *r);   /* mean gap between tokens 2..n */
double smg_record_on_demand_ratio(const struct smg_request_record *r);

#pragma GCC visibility pop

#endif
