/* summary.json: what a run comes to. */
#include <math.h>
#include <stdlib.h>

#include "experiments/distribution.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/importance_bytes.h"

/* ---- Latencies ---- */

static double since_arrival(const struct smg_request_record *q)
{
    return q->second_token_s - q->arrival_s;
}

static double e2e(const struct smg_request_record *q)
{
    return q->finish_s - q->arrival_s;
}

/* CTL at the last token: time since arrival over the number of tokens. */
static double ctl(const struct smg_request_record *q)
{
    return q->output_tokens ? e2e(q) / q->output_tokens : NAN;
}

static double prefill_wait(const struct smg_request_record *q)
{
    return q->prefill_start_s - q->arrival_s;
}

static double handoff(const struct smg_request_record *q)
{
    return q->ready_s - q->first_token_s;
}

static double join_wait(const struct smg_request_record *q)
{
    return q->decode_join_s - q->ready_s;
}

static double push(const struct smg_request_record *q)
{
    return q->push_done_s - q->prefill_start_s;
}

static const struct quantity {
    const char *name;
    double (*of)(const struct smg_request_record *q);
} quantities[] = {
    {"ttft_s", smg_record_ttft_s},
    {"ttst_s", smg_record_ttst_s},
    {"second_token_since_arrival_s", since_arrival},
    {"tbt_request_mean_s", smg_record_tbt_mean_s},
    {"gap_s", NULL}, /* pooled over tokens, not one value a request */
    {"ctl_s", ctl},
    {"e2e_s", e2e},
    {"prefill_wait_s", prefill_wait},
    {"handoff_s", handoff},
    {"join_wait_s", join_wait},
    {"push_s", push},
};

/* Gaps between tokens 2..n of every request; the first gap is TTST. Tokens of one request arrive in order, those of several
 * interleaved. */
static void pool_gaps(const struct smg_records *r, struct smg_sample *s)
{
    double *last = malloc((r->n_requests + (size_t)1) * sizeof *last);

    s->failed |= !last;
    if (!last)
        return;
    for (size_t i = 0; i < r->n_tokens; i++) {
        const struct smg_token_record *t = &r->token[i];
        if (t->token >= 3)
            smg_sample_add(s, t->time_s - last[t->request]);
        last[t->request] = t->time_s;
    }
    free(last);
}

static json_t *describe(const struct smg_records *r, const struct quantity *q)
{
    struct smg_sample s = {0};
    json_t *j;

    for (uint32_t i = 0; q->of && i < r->n_requests; i++)
        smg_sample_add(&s, q->of(&r->request[i]));
    if (!q->of)
        pool_gaps(r, &s);
    j = smg_sample_json(&s);
    smg_sample_free(&s);
    return j;
}

/* ---- Traffic ---- */

static json_t *path_json(const struct smg_run_stats *s, enum smg_path p)
{
    return json_pack("{s:I, s:I, s:I}", "sent_bytes", (json_int_t)s->sent_bytes[p], "received_bytes",
                     (json_int_t)s->received_bytes[p], "messages", (json_int_t)s->messages[p]);
}

static json_t *traffic(const struct smg_run_stats *s)
{
    json_t *j = json_object();
    int bad = !j;

    for (int p = 0; p < SMG_PATHS && !bad; p++)
        bad = json_object_set_new(j, smg_path_name((enum smg_path)p), path_json(s, (enum smg_path)p));
    if (!bad)
        return j;
    json_decref(j);
    return NULL;
}

static uint64_t duplicates(const struct smg_run_stats *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->n_requests; i++)
        sum += s->duplicate_bytes[i];
    return sum;
}

static double on_demand_ratio(const struct smg_records *r)
{
    double selected = 0, remote = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        selected += (double)r->request[i].selected_entries;
        remote += (double)r->request[i].remote_entries;
    }
    return selected > 0 ? remote / selected : NAN;
}

/* ---- Goodput ---- */

/* From the first arrival to the last token. */
static double makespan(const struct smg_records *r)
{
    double first = INFINITY, last = -INFINITY;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        first = fmin(first, r->request[i].arrival_s);
        last = fmax(last, r->request[i].finish_s); /* fmax passes over NAN */
    }
    return last - first;
}

/* A quantity that does not exist cannot miss its objective. */
static int meets(const struct smg_scenario *sc, const struct smg_request_record *q)
{
    return q->status == SMG_REQUEST_FINISHED && !(smg_record_ttft_s(q) > sc->slo.ttft_s) &&
           !(smg_record_ttst_s(q) > sc->slo.ttst_s) && !(smg_record_tbt_mean_s(q) > sc->slo.tbt_s);
}

static json_t *goodput(const struct smg_run *run)
{
    const struct smg_records *r = run->records;
    double span = makespan(r), tokens = 0;
    uint32_t met = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        met += (uint32_t)meets(&run->world->scenario, &r->request[i]);
        tokens += r->request[i].status == SMG_REQUEST_FINISHED ? r->request[i].output_tokens : 0;
    }
    return json_pack("{s:i, s:o, s:o, s:o}", "requests_within_slo", (int)met, "requests_per_s", smg_json_real(met / span),
                     "all_requests_per_s", smg_json_real(r->finished / span), "tokens_per_s", smg_json_real(tokens / span));
}

/* ---- Conservation ---- */

static json_t *laws_json(const struct smg_law *laws, size_t n)
{
    json_t *list = json_array();
    int bad = !list;

    for (size_t i = 0; i < n && !bad; i++)
        bad = json_array_append_new(list, json_pack("{s:s, s:b, s:o, s:o}", "law", laws[i].name, "holds", laws[i].holds, "left",
                                                    smg_json_count(laws[i].left), "right", smg_json_count(laws[i].right)));
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

/* One digest of all entries that attention read, request by request; equal wherever the same entries were used. */
static uint64_t digest(const struct smg_run_stats *s)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < s->n_requests; i++)
        any |= s->digest[i];
    return any ? smg_fnv1a64(SMG_FNV1A64_START, s->digest, s->n_requests * sizeof *s->digest) : 0;
}

/* The same of each request by itself: where some failed, the others can still be compared. */
static json_t *request_digests(const struct smg_run_stats *s)
{
    json_t *list = json_array();
    int bad = !list;

    for (uint32_t i = 0; i < s->n_requests && !bad; i++)
        bad = json_array_append_new(list, smg_json_hex(s->digest[i]));
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

/* What kernels computed: equal digests are equal bits. */
static json_t *attention(const struct smg_run_stats *s)
{
    return json_pack("{s:I, s:o, s:o, s:o}", "outputs", (json_int_t)s->attention_outputs, "digest", smg_json_hex(s->attention_digest),
                     "largest_error", smg_json_real(s->attention_error), "largest_relative",
                     smg_json_real(s->attention_relative));
}

int smg_write_summary_json(const struct smg_run *run, const struct smg_law *laws, size_t n_laws, const char *path,
                           struct smg_diag *diag)
{
    const struct smg_records *r = run->records;
    json_t *j = json_object();
    uint64_t entries = digest(run->stats);
    int bad = !j || json_object_set_new(j, "requests",
                                        json_pack("{s:i, s:i, s:i}", "count", (int)r->n_requests, "finished", (int)r->finished,
                                                  "failed", (int)r->failed));

    if (!bad)
        bad = json_object_set_new(j, "synthetic", smg_synthetic_json(run)) ||
              json_object_set_new(j, "makespan_s", smg_json_real(makespan(r)));
    for (size_t i = 0; i < sizeof quantities / sizeof quantities[0] && !bad; i++)
        bad = json_object_set_new(j, quantities[i].name, describe(r, &quantities[i]));
    if (!bad)
        bad = json_object_set_new(j, "on_demand_ratio", smg_json_real(on_demand_ratio(r))) ||
              json_object_set_new(j, "paths", traffic(run->stats)) ||
              json_object_set_new(j, "mask_bytes", json_integer((json_int_t)run->stats->mask_bytes)) ||
              json_object_set_new(j, "duplicate_bytes", json_integer((json_int_t)duplicates(run->stats))) ||
              json_object_set_new(j, "blocks_written", json_integer((json_int_t)run->stats->blocks_written)) ||
              json_object_set_new(j, "goodput", goodput(run)) || json_object_set_new(j, "conservation", laws_json(laws, n_laws));
    if (!bad && r->lost)
        bad = json_object_set_new(j, "lost_instances", json_integer(r->lost)) ||
              json_object_set_new(j, "conservation_left_out",
                                  json_string("laws over bytes: what lost instances counted is not known"));
    if (!bad && entries)
        bad = json_object_set_new(j, "digest", smg_json_hex(entries));
    if (!bad && entries)
        bad = json_object_set_new(j, "request_digests", request_digests(run->stats));
    if (!bad && run->stats->attention_outputs)
        bad = json_object_set_new(j, "attention", attention(run->stats));
    if (bad) {
        json_decref(j);
        j = NULL;
    }
    return smg_json_write(j, path, diag);
}
