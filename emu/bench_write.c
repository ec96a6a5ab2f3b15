/* WRITEs: streams of chains, single chains with their phases, and blocks with masks. */
#include "emu/bench_priv.h"

#include <string.h>

/* A stream: `chain` blocks are posted together, each followed by its mask where there are masks. */
struct stream {
    uint32_t block_bytes, chain, queues, slots;
    int masked;
    uint32_t next_slot;
};

enum { MASKED_ROUNDS = 5 };

/* ---- Contents ---- */

static uint64_t word(uint64_t round, uint64_t at)
{
    return (round << 40) ^ (at * UINT64_C(0x9e3779b97f4a7c15));
}

static uint8_t mask_value(uint64_t round)
{
    return (uint8_t)(1 + round % 255);
}

/* Whole words; the last bytes of a block that is no multiple of 8 stay as they are. */
static int fill(struct bench_side *s, const struct stream *t)
{
    size_t words = (size_t)t->slots * t->block_bytes / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t w = word(s->round, i);
        memcpy(s->memory + 8 * i, &w, 8);
    }
    memset(s->memory + s->masks, mask_value(s->round), (size_t)t->slots * BENCH_MASK_BYTES);
    return s->config->on_gpu ? smg_gpu_memory_put(&s->gpu, 0, s->memory, 8 * words, s->diag) : SMG_OK;
}

static int verify(struct bench_side *s, const struct stream *t)
{
    size_t words = (size_t)t->slots * t->block_bytes / 8;
    int status = s->config->on_gpu ? smg_gpu_memory_get(&s->gpu, 0, s->memory, 8 * words, s->diag) : SMG_OK;
    if (status) {
        return status;
    }
    for (size_t i = 0; i < words; i++) {
        uint64_t w = word(s->round, i);
        if (memcmp(s->memory + 8 * i, &w, 8) != 0) {
            return smg_fabric_fail(s->diag, SMG_ERR_VERIFY, "blocks of %u bytes: byte %zu of what arrived is wrong",
                                   t->block_bytes, 8 * i);
        }
    }
    for (size_t i = 0; i < (size_t)t->slots * BENCH_MASK_BYTES && t->masked; i++) {
        if (s->memory[s->masks + i] != mask_value(s->round)) {
            return smg_fabric_fail(s->diag, SMG_ERR_VERIFY, "blocks of %u bytes: byte %zu of the masks is wrong", t->block_bytes,
                                   i);
        }
    }
    return SMG_OK;
}

/* ---- Posting ---- */

static int write_block(struct bench_side *s, struct smg_qp *qp, size_t at, size_t bytes, uint64_t context, unsigned flags)
{
    struct smg_piece piece = {s->blocks + at, bytes, s->blocks_mr};
    return smg_fabric_write(qp, &piece, 1, &s->board->blocks[1], at, context, flags, s->diag);
}

static int write_mask(struct bench_side *s, struct smg_qp *qp, uint32_t slot, uint64_t context, unsigned flags)
{
    size_t at = s->masks + (size_t)slot * BENCH_MASK_BYTES;
    struct smg_piece piece = {s->memory + at, BENCH_MASK_BYTES, s->mr};
    return smg_fabric_write(qp, &piece, 1, &s->board->remote[1], at, context, flags, s->diag);
}

static int post_chain(struct bench_side *s, struct stream *t, unsigned queue)
{
    struct smg_qp *qp = smg_fabric_qp(s->fabric, 1, (enum smg_queue)queue);
    int status = SMG_OK;
    for (uint32_t i = 0; i < t->chain && !status; i++) {
        uint32_t slot = t->next_slot;
        unsigned flags = i + 1 == t->chain ? SMG_POST_DELIVERED : SMG_POST_MORE;
        t->next_slot = slot + 1 == t->slots ? 0 : slot + 1;
        status = write_block(s, qp, (size_t)slot * t->block_bytes, t->block_bytes, queue, t->masked ? SMG_POST_MORE : flags);
        if (!status && t->masked) {
            status = write_mask(s, qp, slot, queue, flags);
        }
    }
    s->in_flight[queue]++;
    return status;
}

static uint32_t flying(const struct bench_side *s)
{
    uint32_t n = 0;
    for (unsigned q = 0; q < SMG_QUEUES; q++) {
        n += s->in_flight[q];
    }
    return n;
}

/* For at least `seconds`, and until every slot was written. Returns blocks and the time that they took. */
static int run_stream(struct bench_side *s, struct stream *t, double seconds, uint64_t *blocks_out, double *took_s)
{
    uint32_t window = s->config->depth / t->chain ? s->config->depth / t->chain : 1;
    uint64_t chains = 0, enough = (t->slots + t->chain - 1) / t->chain;
    double start_s = smg_fabric_now_s(), last_s = start_s, now_s = start_s;
    int status = SMG_OK, posting = 1;
    while (!status && (posting || flying(s))) {
        size_t n = 0;
        for (unsigned q = 0; q < t->queues && posting && !status; q++) {
            while (!status && s->in_flight[q] < window) {
                status = post_chain(s, t, q);
                chains++;
            }
        }
        status = status ? status : smg_bench_do_poll(s, &n);
        now_s = smg_fabric_now_s();
        last_s = n ? now_s : last_s;
        posting = now_s - start_s < seconds || chains < enough;
        if (!status && now_s - last_s > 0.1) {
            status = smg_bench_do_patience(s, last_s);
        }
    }
    *blocks_out = chains * t->chain;
    *took_s = now_s - start_s;
    return status;
}

/* One chain at a time. */
static int run_samples(struct bench_side *s, struct stream *t)
{
    int status = SMG_OK;
    for (uint32_t i = 0; i < s->config->samples && !status; i++) {
        double start_s = smg_fabric_now_s(), posted_s, looked_s, there_s;
        size_t n = 0;
        status = post_chain(s, t, i % t->queues);
        posted_s = there_s = looked_s = smg_fabric_now_s();
        while (!status && !n) {
            looked_s = there_s;
            status = smg_bench_do_poll(s, &n);
            there_s = smg_fabric_now_s();
            if (!status && !n && there_s - posted_s > 0.1) {
                status = smg_bench_do_patience(s, posted_s);
            }
        }
        s->sample[0][i] = posted_s - start_s;
        s->sample[1][i] = looked_s - posted_s;
        s->sample[2][i] = there_s - looked_s;
    }
    return status;
}

/* ---- Points ---- */

/* Side 0 writes while side 1 lets it, then side 1 looks at what it got. */
static int begin(struct bench_side *s, struct stream *t)
{
    s->round++;
    t->next_slot = 0;
    int status = s->self == 0 ? fill(s, t) : SMG_OK;
    return status ? status : smg_bench_do_meet(s, s->self);
}

static int end(struct bench_side *s, const struct stream *t)
{
    int status = smg_bench_do_meet(s, s->self);
    if (!status && s->self == 1) {
        status = verify(s, t);
    }
    return status ? status : smg_bench_do_meet(s, s->self);
}

static int warm_up(struct bench_side *s, struct stream *t)
{
    uint64_t blocks;
    double took_s;
    int status = begin(s, t);
    if (!status && s->self == 0) {
        status = run_stream(s, t, 0.2 * s->config->seconds, &blocks, &took_s);
    }
    return status ? status : end(s, t);
}

static int stream_fits(struct bench_side *s, const struct stream *t)
{
    const struct smg_fabric_limits *l = smg_fabric_limits(s->fabric);
    uint32_t chain = t->masked ? 2 * t->chain : t->chain, posts = chain > s->config->depth ? chain : s->config->depth;
    if (t->block_bytes > l->max_message_bytes) {
        return smg_fabric_fail(s->diag, SMG_ERR_UNSUPPORTED, "blocks of %u bytes: the device takes %zu in one message",
                               t->block_bytes, l->max_message_bytes);
    }
    if (2 * posts > l->max_outstanding) {
        return smg_fabric_fail(s->diag, SMG_ERR_UNSUPPORTED, "%u posts in flight: the device takes %u on a queue pair", 2 * posts,
                               l->max_outstanding);
    }
    return SMG_OK;
}

int smg_bench_do_write(struct bench_side *s, struct smg_bench_write *point)
{
    struct stream t = {.block_bytes = point->block_bytes, .chain = point->batch, .queues = point->queues};
    uint64_t blocks = 0;
    double took_s = 1;
    t.slots = smg_bench_do_slots(s->config, t.block_bytes, t.queues);
    int status = stream_fits(s, &t);
    if (!status) {
        status = warm_up(s, &t);
    }
    if (!status) {
        status = begin(s, &t);
    }
    if (!status && s->self == 0) {
        status = run_stream(s, &t, s->config->seconds, &blocks, &took_s);
        status = status ? status : run_samples(s, &t);
    }
    if (!status) {
        status = end(s, &t);
    }
    if (status || s->self) {
        return status;
    }
    point->messages_per_s = (double)blocks / took_s;
    point->bytes_per_s = point->messages_per_s * point->block_bytes;
    point->post = smg_bench_do_percentiles(s->sample[0], s->config->samples);
    point->wire = smg_bench_do_percentiles(s->sample[1], s->config->samples);
    point->completion = smg_bench_do_percentiles(s->sample[2], s->config->samples);
    return SMG_OK;
}

int smg_bench_do_masked(struct bench_side *s, struct smg_bench_masked *point)
{
    double each_s[2][MASKED_ROUNDS];
    int status = SMG_OK;
    point->mask_bytes = BENCH_MASK_BYTES;
    for (unsigned i = 0; i < 2 * (MASKED_ROUNDS + 1) && !status; i++) {
        struct stream t = {.block_bytes = point->block_bytes, .chain = 1, .queues = 1, .masked = (int)(i % 2)};
        uint64_t blocks = 0;
        double took_s = 1;
        t.slots = smg_bench_do_slots(s->config, t.block_bytes, 1);
        status = stream_fits(s, &t);
        if (!status) {
            status = begin(s, &t);
        }
        if (!status && s->self == 0) {
            status = run_stream(s, &t, s->config->seconds / MASKED_ROUNDS, &blocks, &took_s);
        }
        if (!status) {
            status = end(s, &t);
        }
        if (i >= 2) { /* the first of each is the warm-up */
            each_s[i % 2][i / 2 - 1] = took_s / (double)(blocks ? blocks : 1);
        }
    }
    if (!status && s->self == 0) {
        point->alone_s = smg_bench_do_median(each_s[0], MASKED_ROUNDS);
        point->masked_s = smg_bench_do_median(each_s[1], MASKED_ROUNDS);
    }
    return status;
}
