/* On-demand round trips: side 0 asks for entries by a list, side 1 gathers them and sends them back. */
#include "emu/bench_priv.h"

#include <string.h>

enum { WARM_TRIPS = 20, STRIDE = 1237 /* odd: visits all entries before one comes again */ };

static uint32_t entry_of(uint32_t trip, uint32_t i)
{
    return (trip * 61 + i * STRIDE) % BENCH_KV_ENTRIES;
}

static uint8_t content(uint32_t entry, uint32_t at)
{
    return (uint8_t)(entry * 31 + entry / 256 + at * 7);
}

/* Until so many receives and sends are complete, since the beginning. */
static int await(struct bench_side *s, uint64_t received, uint64_t sent)
{
    double since_s = smg_fabric_now_s();
    size_t n = 0;
    int status = SMG_OK;
    while (!status && (s->received < received || s->sent < sent)) {
        status = smg_bench_do_poll(s, &n);
        if (!status && !n && smg_fabric_now_s() - since_s > 0.1) {
            status = smg_bench_do_patience(s, since_s);
        }
    }
    return status;
}

/* ---- Side 0 asks ---- */

static void ask_for(struct bench_side *s, uint32_t trip, uint32_t entries)
{
    uint32_t header[BENCH_HEADER_BYTES / 4] = {trip, entries};
    memcpy(s->memory + s->request, header, sizeof(header));
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t id = entry_of(trip, i);
        memcpy(s->memory + s->request + BENCH_HEADER_BYTES + 4 * i, &id, 4);
    }
}

static int verify(struct bench_side *s, uint32_t trip, uint32_t entries)
{
    const uint8_t *reply = s->memory + s->reply;
    for (uint32_t i = 0; i < entries; i++) {
        for (uint32_t at = 0; at < s->config->entry_bytes; at++) {
            if (*reply++ != content(entry_of(trip, i), at)) {
                return smg_fabric_fail(s->diag, SMG_ERR_VERIFY, "a reply of %u entries: byte %u of entry %u is wrong", entries,
                                       at, i);
            }
        }
    }
    return SMG_OK;
}

static int ask(struct bench_side *s, uint32_t trip, const struct smg_bench_trip *point, double *took_s)
{
    struct smg_piece in = {s->memory + s->reply, point->reply_bytes, s->mr};
    struct smg_piece out = {s->memory + s->request, point->request_bytes, s->mr};
    ask_for(s, trip, point->entries);
    double start_s = smg_fabric_now_s();
    int status = smg_fabric_recv(smg_fabric_qp(s->fabric, 1, SMG_QUEUE_REPLY), &in, 1, 0, s->diag);
    if (!status) {
        status = smg_fabric_send(smg_fabric_qp(s->fabric, 1, SMG_QUEUE_CTL), &out, 1, 0, SMG_POST_SIGNALED, s->diag);
    }
    status = status ? status : await(s, s->received + 1, s->sent + 1);
    *took_s = smg_fabric_now_s() - start_s;
    return status ? status : verify(s, trip, point->entries);
}

/* ---- Side 1 answers ---- */

static int post_request(struct bench_side *s, const struct smg_bench_trip *point)
{
    struct smg_piece in = {s->memory + s->request, point->request_bytes, s->mr};
    return smg_fabric_recv(smg_fabric_qp(s->fabric, 0, SMG_QUEUE_CTL), &in, 1, 0, s->diag);
}

static int gather(struct bench_side *s, uint32_t entries)
{
    size_t bytes = s->config->entry_bytes;
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t id;
        memcpy(&id, s->memory + s->request + BENCH_HEADER_BYTES + 4 * i, 4);
        if (id >= BENCH_KV_ENTRIES) {
            return smg_fabric_fail(s->diag, SMG_ERR_VERIFY, "a request of %u entries: entry %u does not exist", entries, id);
        }
        memcpy(s->memory + s->reply + i * bytes, s->kv + id * bytes, bytes);
    }
    return SMG_OK;
}

/* The receive for the next request is posted before the answer that lets it come. */
static int answer(struct bench_side *s, const struct smg_bench_trip *point, int more)
{
    struct smg_piece out = {s->memory + s->reply, point->reply_bytes, s->mr};
    int status = await(s, s->received + 1, 0);
    if (!status) {
        status = gather(s, point->entries);
    }
    if (!status && more) {
        status = post_request(s, point);
    }
    if (!status) {
        status = smg_fabric_send(smg_fabric_qp(s->fabric, 0, SMG_QUEUE_REPLY), &out, 1, 0, SMG_POST_SIGNALED, s->diag);
    }
    return status;
}

static int answer_all(struct bench_side *s, const struct smg_bench_trip *point, uint32_t trips)
{
    uint64_t sent = s->sent + trips;
    int status = SMG_OK;
    for (uint32_t i = 0; i < trips && !status; i++) {
        status = answer(s, point, i + 1 < trips);
    }
    return status ? status : await(s, 0, sent);
}

int smg_bench_do_trip(struct bench_side *s, struct smg_bench_trip *point)
{
    uint32_t trips = WARM_TRIPS + s->config->samples;
    int status = SMG_OK;
    point->request_bytes = BENCH_HEADER_BYTES + 4 * point->entries;
    point->reply_bytes = point->entries * s->config->entry_bytes;
    for (uint32_t e = 0; e < BENCH_KV_ENTRIES && s->self == 1; e++) {
        for (uint32_t at = 0; at < s->config->entry_bytes; at++) {
            s->kv[(size_t)e * s->config->entry_bytes + at] = content(e, at);
        }
    }
    if (s->self == 1) {
        status = post_request(s, point);
    }
    if (!status) {
        status = smg_bench_do_meet(s, 0);
    }
    if (!status && s->self == 1) {
        status = answer_all(s, point, trips);
    }
    for (uint32_t i = 0; i < trips && !status && s->self == 0; i++) {
        double took_s;
        status = ask(s, i, point, &took_s);
        if (i >= WARM_TRIPS) {
            s->sample[0][i - WARM_TRIPS] = took_s;
        }
    }
    if (!status) {
        status = smg_bench_do_meet(s, 1);
    }
    if (!status && s->self == 0) {
        point->trip = smg_bench_do_percentiles(s->sample[0], s->config->samples);
    }
    return status;
}
