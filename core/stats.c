#include "core/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

const char *smg_path_name(enum smg_path p)
{
    static const char *const names[] = {"metadata", "proactive", "speculative", "on_demand", "control"};

    return p < SMG_PATHS ? names[p] : "unknown";
}

int smg_run_stats_init(struct smg_run_stats *s, uint32_t n_requests)
{
    size_t n = n_requests ? n_requests : 1;

    memset(s, 0, sizeof *s);
    s->n_requests = n_requests;
    s->duplicate_bytes = calloc(n, sizeof *s->duplicate_bytes);
    s->digest = calloc(n, sizeof *s->digest);
    if (s->duplicate_bytes && s->digest)
        return SMG_OK;
    smg_run_stats_free(s);
    return SMG_ERR_NOMEM;
}

void smg_run_stats_free(struct smg_run_stats *s)
{
    free(s->duplicate_bytes);
    free(s->digest);
    memset(s, 0, sizeof *s);
}

void smg_run_stats_add(struct smg_run_stats *a, const struct smg_run_stats *b)
{
    for (size_t p = 0; p < SMG_PATHS; p++) {
        a->sent_bytes[p] += b->sent_bytes[p];
        a->received_bytes[p] += b->received_bytes[p];
        a->messages[p] += b->messages[p];
    }
    for (uint32_t i = 0; i < a->n_requests && i < b->n_requests; i++) {
        a->duplicate_bytes[i] += b->duplicate_bytes[i];
        a->digest[i] += b->digest[i];
    }
    a->mask_bytes += b->mask_bytes;
    a->blocks_written += b->blocks_written;
    a->blocks_rewritten += b->blocks_rewritten;
    a->blocks_unknown += b->blocks_unknown;
    a->invalid_entries += b->invalid_entries;
    a->attention_outputs += b->attention_outputs;
    a->attention_digest += b->attention_digest;
    a->attention_error = a->attention_error > b->attention_error ? a->attention_error : b->attention_error;
    a->attention_relative = a->attention_relative > b->attention_relative ? a->attention_relative : b->attention_relative;
    a->events += b->events;
    a->actions += b->actions;
    a->end_s = a->end_s > b->end_s ? a->end_s : b->end_s;
}

struct laws {
    struct smg_law *law;
    size_t n;
    int broken;
};

static void law(struct laws *l, const char *name, double left, double right, double tolerance)
{
    int holds = fabs(left - right) <= tolerance * (fabs(left) + fabs(right));

    l->law[l->n++] = (struct smg_law){name, holds, left, right};
    l->broken |= !holds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Little's law, L = lambda W, from two independent sums: the area under the number in the system, swept over sorted arrivals and
 * departures, against the sum of the requests' own times in it. */
static int little(const struct smg_records *r, struct laws *l)
{
    double *in = malloc((2 * (size_t)r->finished + 1) * sizeof *in), *out, sum = 0, area = 0, last = 0;
    uint32_t n = 0, i = 0, j = 0;

    if (!in)
        return SMG_ERR_NOMEM;
    out = in + r->finished;
    for (uint32_t q = 0; q < r->n_requests; q++) {
        if (r->request[q].status != SMG_REQUEST_FINISHED || n >= r->finished)
            continue;
        in[n] = r->request[q].arrival_s;
        out[n++] = r->request[q].finish_s;
        sum += r->request[q].finish_s - r->request[q].arrival_s;
    }
    qsort(in, n, sizeof *in, by_value);
    qsort(out, n, sizeof *out, by_value);
    while (j < n) {
        double t = i < n && in[i] <= out[j] ? in[i] : out[j];
        area += ((double)i - (double)j) * (t - last);
        last = t;
        if (i < n && in[i] <= out[j])
            i++;
        else
            j++;
    }
    free(in);
    law(l, "little: area under requests in system = sum of their times", area, sum, 1e-9);
    return SMG_OK;
}

int smg_conservation_check(const struct smg_records *r, const struct smg_run_stats *s, struct smg_law laws[SMG_LAWS],
                           size_t *n_out)
{
    struct laws l = {laws, 0, 0};
    uint64_t meta = 0, push = 0, spec = 0, fetched = 0, sent = 0;

    for (uint32_t i = 0; i < r->n_requests; i++) {
        const struct smg_request_record *q = &r->request[i];
        meta += q->metadata_bytes;
        push += q->proactive_bytes;
        spec += q->speculative_bytes;
        fetched += q->on_demand_bytes;
        sent += q->on_demand_sent_bytes;
    }
    law(&l, "requests in = finished + failed", r->n_requests, (double)r->finished + r->failed, 0);
    law(&l, "blocks written more than once", (double)s->blocks_rewritten, 0, 0);
    law(&l, "blocks written without memory", (double)s->blocks_unknown, 0, 0);
    law(&l, "entries used before they were valid", (double)s->invalid_entries, 0, 0);
    if (!r->failed && !r->lost) { /* the bytes of failed requests are on the wire but in no record */
        law(&l, "metadata: recorded = received", (double)meta, (double)s->received_bytes[SMG_PATH_METADATA], 0);
        law(&l, "proactive: recorded = received", (double)push, (double)s->received_bytes[SMG_PATH_PUSH], 0);
        law(&l, "speculative: recorded = received", (double)spec, (double)s->received_bytes[SMG_PATH_SPECULATIVE], 0);
        law(&l, "on demand: sent = received", (double)sent, (double)fetched, 0);
    }
    if (!r->lost) /* what is sent to a lost instance does not arrive, and what it counted nobody knows */
        law(&l, "wire: sent = received",
            (double)(s->sent_bytes[0] + s->sent_bytes[1] + s->sent_bytes[2] + s->sent_bytes[3] + s->sent_bytes[4]),
            (double)(s->received_bytes[0] + s->received_bytes[1] + s->received_bytes[2] + s->received_bytes[3] +
                     s->received_bytes[4]),
            0);
    if (little(r, &l))
        return SMG_ERR_NOMEM;
    *n_out = l.n;
    return l.broken ? SMG_ERR_CONSERVATION : SMG_OK;
}
