/* What moves in a measurement: streams, chains, round trips. Side 0 asks and takes the times, side 1 answers. */
#include <stdio.h>
#include <string.h>

#include "emu/measure_priv.h"

/* Longest wait of a poll, s, as in the loop of a process. */
#define LOOK_S 0.02

enum {
    WINDOW = 2, /* chains in flight: as many chunks as a prefill instance posts ahead */
    SMALL_BYTES = 64,
    LARGE_BYTES = 256 * 1024,
    WARM = 5
};

/* ---- Waiting ---- */

static int await(struct bench_side *s, uint64_t received, uint64_t sent, uint32_t in_flight)
{
    struct smg_completion c[16];
    double since_s = smg_fabric_now_s();
    size_t n = 0;
    int status = SMG_OK;
    while (!status && (s->received < received || s->sent < sent || s->in_flight[0] > in_flight)) {
        status = smg_fabric_poll(s->fabric, c, sizeof(c) / sizeof(c[0]), LOOK_S, &n, s->diag);
        for (size_t i = 0; i < n && !status; i++) {
            if (c[i].status) {
                status = smg_fabric_fail(s->diag, c[i].status, "a transfer failed: %s (%s)", smg_status_string(c[i].status),
                                         smg_fabric_cause(s->fabric, c[i].cause));
            } else if (c[i].kind == SMG_DONE_WRITE) {
                s->in_flight[0]--;
            } else {
                *(c[i].kind == SMG_DONE_RECV ? &s->received : &s->sent) += 1;
            }
        }
        if (!status) {
            status = n ? smg_bench_do_look(s) : smg_bench_do_patience(s, since_s);
        }
    }
    return status;
}

/* ---- WRITEs ---- */

static int post(struct bench_side *s, size_t at, size_t bytes, unsigned flags)
{
    struct smg_piece piece = {s->memory + at, bytes, s->mr};
    return smg_fabric_write(smg_fabric_qp(s->fabric, 1, SMG_QUEUE_PUSH), &piece, 1, &s->board->remote[1], at, 0, flags, s->diag);
}

/* n blocks in one chain, each followed by its mask where there are masks. */
static int post_chain(struct bench_side *s, uint32_t n, size_t block_bytes, size_t mask_bytes)
{
    int status = SMG_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        unsigned last = i + 1 == n ? SMG_POST_DELIVERED : SMG_POST_MORE;
        status = post(s, i * block_bytes, block_bytes, mask_bytes ? SMG_POST_MORE : last);
        if (!status && mask_bytes) {
            status = post(s, s->masks + i * mask_bytes, mask_bytes, last);
        }
    }
    s->in_flight[0]++;
    return status;
}

/* Chains, WINDOW in flight, for `seconds` and at least 16 of them: payload rate behind the beginning. Of more chains than fit,
 * every second, fourth ... is a point. */
int smg_measure_do_stream(struct bench_side *s, uint32_t n, size_t block_bytes, size_t mask_bytes, double *Bps_out)
{
    double done[MEASURE_POINTS], time_s[MEASURE_POINTS], start_s = smg_fabric_now_s(), now_s = start_s;
    double payload = (double)n * (double)(block_bytes + mask_bytes);
    uint64_t posted = 0, complete = 0, stride = 1;
    size_t points = 0;
    int status = SMG_OK, more = 1;
    while (!status && (more || s->in_flight[0])) {
        for (; more && s->in_flight[0] < WINDOW && !status; posted++) {
            status = post_chain(s, n, block_bytes, mask_bytes);
        }
        uint32_t before = s->in_flight[0];
        status = status ? status : await(s, 0, 0, before - 1);
        now_s = smg_fabric_now_s();
        complete += before - s->in_flight[0];
        if (points == MEASURE_POINTS) {
            for (points = 0; points < MEASURE_POINTS / 2; points++) {
                done[points] = done[2 * points + 1];
                time_s[points] = time_s[2 * points + 1];
            }
            stride *= 2;
        }
        if (complete % stride == 0 && complete) {
            done[points] = (double)complete * payload;
            time_s[points++] = now_s - start_s;
        }
        more = now_s - start_s < s->config->seconds || posted < 16;
    }
    return status ? status : smg_measured_rate(done, time_s, points, Bps_out, s->diag);
}

/* Post until completion of one chain, the median of the samples. */
int smg_measure_do_chain(struct bench_side *s, uint32_t n, double *seconds_out)
{
    int status = SMG_OK;
    for (uint32_t i = 0; i < WARM + s->config->samples && !status; i++) {
        double start_s = smg_fabric_now_s();
        status = post_chain(s, n, SMALL_BYTES, 0);
        status = status ? status : await(s, 0, 0, 0);
        s->sample[0][i < WARM ? 0 : i - WARM] = smg_fabric_now_s() - start_s;
    }
    *seconds_out = smg_measured_median(s->sample[0], s->config->samples).value;
    return status;
}

/* ---- Messages ---- */

static struct smg_piece request_piece(const struct bench_side *s, uint32_t entries)
{
    return (struct smg_piece){s->memory + s->request, BENCH_HEADER_BYTES + 4 * (size_t)entries, s->mr};
}

/* Without entries a reply is as small as a request. */
static struct smg_piece reply_piece(const struct bench_side *s, uint32_t entries)
{
    return (struct smg_piece){s->memory + s->reply, entries ? (size_t)entries * s->config->entry_bytes : BENCH_HEADER_BYTES,
                              s->mr};
}

void smg_measure_do_gather(struct bench_side *s, uint32_t entries)
{
    size_t half = s->config->entry_bytes / 2;
    uint8_t *out = s->memory + s->reply;
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t id;
        memcpy(&id, s->memory + s->request + BENCH_HEADER_BYTES + 4 * (size_t)i, 4);
        const uint8_t *entry = s->kv + (size_t)(id % BENCH_KV_ENTRIES) * 2 * half;
        memcpy(out + i * half, entry, half);
        memcpy(out + (entries + i) * half, entry + half, half);
    }
}

void smg_measure_do_list(struct bench_side *s, uint32_t entries, uint32_t first)
{
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t id = (first + i) * 1237 % BENCH_KV_ENTRIES; /* an odd stride visits all */
        memcpy(s->memory + s->request + BENCH_HEADER_BYTES + 4 * (size_t)i, &id, 4);
    }
}

static int ask(struct bench_side *s, uint32_t entries, double *seconds_out)
{
    struct smg_piece in = reply_piece(s, entries), out = request_piece(s, entries);
    int status = SMG_OK;
    smg_measure_do_list(s, entries, 0);
    for (uint32_t i = 0; i < WARM + s->config->samples && !status; i++) {
        double start_s = smg_fabric_now_s();
        status = smg_fabric_recv(smg_fabric_qp(s->fabric, 1, SMG_QUEUE_REPLY), &in, 1, 0, s->diag);
        if (!status) {
            status = smg_fabric_send(smg_fabric_qp(s->fabric, 1, SMG_QUEUE_CTL), &out, 1, 0, SMG_POST_SIGNALED, s->diag);
        }
        status = status ? status : await(s, s->received + 1, s->sent + 1, 0);
        s->sample[0][i < WARM ? 0 : i - WARM] = smg_fabric_now_s() - start_s;
    }
    *seconds_out = smg_measured_median(s->sample[0], s->config->samples).value;
    return status;
}

static int post_request(struct bench_side *s, uint32_t entries)
{
    struct smg_piece in = request_piece(s, entries);
    return smg_fabric_recv(smg_fabric_qp(s->fabric, 0, SMG_QUEUE_CTL), &in, 1, 0, s->diag);
}

/* The receive for the next request is posted before the answer that lets it come. */
static int answer(struct bench_side *s, uint32_t entries)
{
    struct smg_piece out = reply_piece(s, entries);
    uint32_t trips = WARM + s->config->samples;
    uint64_t received = s->received, sent = s->sent; /* the next request may come with the completion of this answer */
    int status = SMG_OK;
    for (uint32_t i = 0; i < trips && !status; i++) {
        status = await(s, ++received, 0, 0);
        if (!status) {
            smg_measure_do_gather(s, entries);
        }
        if (!status && i + 1 < trips) {
            status = post_request(s, entries);
        }
        if (!status) {
            status = smg_fabric_send(smg_fabric_qp(s->fabric, 0, SMG_QUEUE_REPLY), &out, 1, 0, SMG_POST_SIGNALED, s->diag);
        }
        status = status ? status : await(s, 0, ++sent, 0);
    }
    return status;
}

int smg_measure_do_trips(struct bench_side *s, uint32_t entries, double *seconds_out)
{
    int status = s->self ? post_request(s, entries) : SMG_OK;
    if (!status) {
        status = smg_bench_do_meet(s, 0);
    }
    if (status) {
        return status;
    }
    return s->self ? answer(s, entries) : ask(s, entries, seconds_out);
}

int smg_measure_do_large(struct bench_side *s, double *seconds_out, double *bytes_out)
{
    size_t bytes = s->masks < LARGE_BYTES ? s->masks : LARGE_BYTES;
    struct smg_piece piece = {s->memory, bytes, s->mr};
    struct smg_qp *qp = smg_fabric_qp(s->fabric, !s->self, SMG_QUEUE_REPLY);
    int status = s->self ? smg_fabric_recv(qp, &piece, 1, 0, s->diag) : SMG_OK;
    uint64_t received = s->received, sent = s->sent;
    status = status ? status : smg_bench_do_meet(s, 0);
    if (!status && s->self) {
        status = await(s, received + 1, 0, 0);
    } else if (!status) {
        double start_s = smg_fabric_now_s();
        status = smg_fabric_send(qp, &piece, 1, 0, SMG_POST_SIGNALED, s->diag);
        status = status ? status : await(s, 0, sent + 1, 0);
        *seconds_out = smg_fabric_now_s() - start_s;
        *bytes_out = (double)bytes;
    }
    return status ? status : smg_bench_do_meet(s, 1);
}
