/* HATA's hash weights: training by stochastic gradient descent, one KV head at a time, each with its own streams of randomness.
 */
#include "kernels/offline_hata.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/dtype.h"
#include "kernels/offline_blas.h"
#include "kernels/offline_calibration.h"
#include "kernels/threads.h"

void smg_hata_defaults(struct smg_hata_params *p)
{
    *p = (struct smg_hata_params){.bits = 256,
                                  .draws = 1,
                                  .epochs = 15,
                                  .steps = 20,
                                  .chunks = 3,
                                  .chunk_pairs = 32768,
                                  .top_share = 0.1f,
                                  .top_label = 20,
                                  .epsilon = 0.01f,
                                  .lambda = 1,
                                  .eta = 2,
                                  .sigma = 0.1f,
                                  .rate = 0.1f,
                                  .momentum = 0.9f,
                                  .decay = 1e-6f,
                                  .seed = 1};
}

const char *smg_hata_library(void)
{
    return smg_blas_name();
}

static void stream_of(struct smg_rng *r, uint64_t seed, uint32_t kv_head, const char *name)
{
    smg_rng_init(r, smg_hash2(seed, kv_head), name);
}

/* Box and Muller, both numbers of a pair. */
static void gaussian(struct smg_rng *r, float *to, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 2) {
        double radius = sqrt(-2 * log(1 - smg_rng_uniform(r))), angle = 6.283185307179586476925 * smg_rng_uniform(r);
        to[i] = (float)(radius * cos(angle));
        if (i + 1 < n)
            to[i + 1] = (float)(radius * sin(angle));
    }
}

void smg_hata_untrained(uint64_t seed, uint32_t kv_heads, uint32_t head_dim, uint32_t bits, float *weight)
{
    uint64_t n = (uint64_t)head_dim * bits;
    struct smg_rng r;

    for (uint32_t m = 0; m < kv_heads; m++) {
        stream_of(&r, seed, m, "hata-weights");
        gaussian(&r, weight + m * n, n);
    }
}

/* ---- Training pairs of one KV head ---- */

struct data {
    float *keys, *queries, *label;    /* of all prompts; keys[tokens][d] of each, queries and labels of each segment */
    struct smg_hata_segment *segment; /* [segments], in order of prompts and draws */
    uint32_t segments, d;
    uint64_t pairs;
};

static void data_free(struct data *data)
{
    free(data->keys);
    free(data->queries);
    free(data->label);
    free(data->segment);
}

struct ranked {
    float score;
    uint32_t key;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Labels of a segment by rank; ranked: n of them, scratch. */
static void label_keys(const struct smg_hata_params *p, uint32_t d, const struct smg_hata_segment *s, struct ranked *ranked,
                       float *label)
{
    uint32_t top = (uint32_t)((float)s->n * p->top_share);

    top = top ? top : 1;
    for (uint32_t j = 0; j < s->n; j++) {
        double dot = 0;
        for (uint32_t i = 0; i < d; i++)
            dot += (double)s->q[i] * (double)s->keys[(uint64_t)j * d + i];
        ranked[j] = (struct ranked){(float)dot, j};
    }
    qsort(ranked, s->n, sizeof *ranked, by_score);
    for (uint32_t r = 0; r < s->n; r++)
        label[ranked[r].key] = r >= top   ? -1
                               : top == 1 ? p->top_label
                                          : p->top_label - (p->top_label - 1) * (float)r / (float)(top - 1);
}

/* Memory for all prompts; upper bounds of tokens, segments and pairs. */
static int data_alloc(const struct smg_hata_params *p, const struct smg_calibration *c, uint32_t n, struct data *data,
                      struct ranked **ranked)
{
    uint64_t group = c->q_heads / c->kv_heads, tokens = 0, most = 0, segments = n * p->draws * group;

    for (uint32_t i = 0; i < n; i++) {
        tokens += c[i].tokens;
        most = c[i].tokens > most ? c[i].tokens : most;
    }
    *data = (struct data){.d = c->head_dim};
    data->keys = malloc(tokens * c->head_dim * sizeof *data->keys);
    data->queries = malloc(segments * c->head_dim * sizeof *data->queries);
    data->label = malloc(tokens * p->draws * group * sizeof *data->label);
    data->segment = malloc(segments * sizeof *data->segment);
    *ranked = malloc(most * sizeof **ranked);
    return data->keys && data->queries && data->label && data->segment && *ranked ? SMG_OK : SMG_ERR_NOMEM;
}

/* Draws queries of one prompt and pairs each with the keys up to it. */
static void add_prompt(const struct smg_hata_params *p, const struct smg_calibration *c, uint32_t kv_head, float *keys,
                       struct smg_rng *r, struct ranked *ranked, struct data *data)
{
    uint64_t group = c->q_heads / c->kv_heads, d = c->head_dim;

    smg_calibration_keys(c, kv_head, keys);
    for (uint32_t draw = 0; draw < p->draws; draw++) {
        uint32_t half = c->tokens / 2, at = half + (uint32_t)(smg_rng_uniform(r) * (c->tokens - half));
        for (uint64_t g = 0; g < group; g++) {
            struct smg_hata_segment *s = data->segment + data->segments;
            float *q = data->queries + data->segments * d, *label = data->label + data->pairs;
            for (uint64_t i = 0; i < d; i++)
                q[i] = smg_load(c->q, ((uint64_t)at * c->q_heads + kv_head * group + g) * d + i, c->type);
            *s = (struct smg_hata_segment){q, keys, label, at + 1};
            label_keys(p, c->head_dim, s, ranked, label);
            data->segments++;
            data->pairs += s->n;
        }
    }
}

static int data_build(const struct smg_hata_params *p, const struct smg_calibration *c, uint32_t n, uint32_t kv_head,
                      struct data *data)
{
    struct ranked *ranked;
    struct smg_rng r;
    int status = data_alloc(p, c, n, data, &ranked);

    if (!status) {
        float *keys = data->keys;
        stream_of(&r, p->seed, kv_head, "hata-queries");
        for (uint32_t i = 0; i < n; i++) {
            add_prompt(p, c + i, kv_head, keys, &r, ranked, data);
            keys += (uint64_t)c[i].tokens * c->head_dim;
        }
    }
    free(ranked);
    return status;
}

/* Pairs [chunk * size, ...) as segments; returns how many. */
static uint32_t cut_chunk(const struct data *data, uint64_t chunk, uint64_t size, struct smg_hata_segment *to)
{
    uint64_t lo = chunk * size, hi = lo + size, first = 0;
    uint32_t n = 0;

    for (uint32_t s = 0; s < data->segments && first < hi; first += data->segment[s++].n) {
        const struct smg_hata_segment *from = data->segment + s;
        uint64_t a = lo > first ? lo - first : 0, b = hi - first < from->n ? hi - first : from->n;
        if (a < b)
            to[n++] = (struct smg_hata_segment){from->q, from->keys + a * data->d, from->label + a, (uint32_t)(b - a)};
    }
    return n;
}

/* ---- Descent ---- */

static void descend(const struct smg_hata_params *p, uint64_t n, const float *gradient, float *speed, float *weight)
{
    for (uint64_t i = 0; i < n; i++) {
        speed[i] = p->momentum * speed[i] + gradient[i] + p->decay * weight[i];
        weight[i] -= p->rate * speed[i];
        if (p->round_bf16)
            weight[i] = smg_bf16_to_float(smg_float_to_bf16(weight[i]));
    }
}

/* memory: gradient[n], speed[n] of n = d bits, zero; segment: as many as data has. */
static void train(const struct smg_hata_params *p, const struct data *data, uint32_t kv_head, struct smg_hata_work *work,
                  struct smg_hata_segment *segment, float *memory, float *weight, double loss[2])
{
    uint64_t n = (uint64_t)data->d * p->bits, chunks = (data->pairs + p->chunk_pairs - 1) / p->chunk_pairs;
    uint64_t *drawn = (uint64_t *)(void *)(memory + 2 * n); /* [chunks of an epoch] */
    uint32_t segments = 0;
    struct smg_rng r;

    stream_of(&r, p->seed, kv_head, "hata-chunks");
    for (uint32_t e = 0; e < p->epochs; e++) {
        for (uint32_t i = 0; i < p->chunks; i++)
            drawn[i] = (uint64_t)(smg_rng_uniform(&r) * (double)chunks);
        for (uint32_t s = 0; s < p->steps; s++) {
            double before;
            segments = cut_chunk(data, drawn[s % p->chunks], p->chunk_pairs, segment);
            before = smg_hata_loss(p, data->d, weight, segment, segments, work, memory);
            loss[0] = e || s ? loss[0] : before;
            descend(p, n, memory, memory + n, weight);
        }
    }
    loss[1] = smg_hata_loss(p, data->d, weight, segment, segments, work, memory);
}

static int train_head(const struct smg_hata_params *p, const struct smg_calibration *c, uint32_t n, uint32_t kv_head,
                      float *weight, double loss[2])
{
    uint64_t size = (uint64_t)c->head_dim * p->bits;
    struct smg_hata_segment *segment = NULL;
    struct smg_hata_work work = {0};
    struct data data;
    float *memory = NULL;
    int status = data_build(p, c, n, kv_head, &data);

    if (!status) {
        uint64_t most = data.pairs < p->chunk_pairs ? data.pairs : p->chunk_pairs;
        memory = calloc(2 * size * sizeof *memory + p->chunks * sizeof(uint64_t), 1);
        segment = malloc(data.segments * sizeof *segment);
        status = memory && segment ? smg_hata_work_create(&work, data.d, p->bits, (uint32_t)most, data.segments) : SMG_ERR_NOMEM;
    }
    if (!status) {
        train(p, &data, kv_head, &work, segment, memory, weight, loss);
        smg_hata_work_destroy(&work);
    }
    free(segment);
    free(memory);
    data_free(&data);
    return status;
}

/* ---- All heads ---- */

struct job {
    const struct smg_hata_params *p;
    const struct smg_calibration *prompts;
    uint32_t n;
    float *weight;
    double (*loss)[2];
    int *status; /* [kv_heads] */
};

static void train_heads(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    struct job *job = arg;
    uint64_t size = (uint64_t)job->prompts->head_dim * job->p->bits;

    (void)worker;
    for (uint64_t m = lo; m < hi; m++)
        job->status[m] = train_head(job->p, job->prompts, job->n, (uint32_t)m, job->weight + m * size, job->loss[m]);
}

static int refuse(struct smg_diag *diag, const char *why)
{
    snprintf(diag->text, sizeof diag->text, "hash training: %s", why);
    return SMG_ERR_INVALID;
}

static int check(const struct smg_hata_params *p, const struct smg_calibration *prompts, uint32_t n, struct smg_diag *diag)
{
    if (!p->bits || p->bits % 32 || p->bits > 1024)
        return refuse(diag, "bits must be a multiple of 32, at most 1024");
    if (!n || !p->draws || !p->chunks || !p->chunk_pairs || p->chunk_pairs > 1u << 24)
        return refuse(diag, "prompts, draws, chunks and pairs of a chunk must be at least 1");
    if (!p->epochs || !p->steps)
        return refuse(diag, "epochs and steps must be at least 1");
    if (!(p->top_share > 0 && p->top_share <= 1))
        return refuse(diag, "top_share must be above 0, at most 1");
    for (uint32_t i = 0; i < n; i++) {
        int status = smg_calibration_check(prompts + i, diag);
        if (status)
            return status;
        if (prompts[i].head_dim != prompts->head_dim || prompts[i].q_heads != prompts->q_heads ||
            prompts[i].kv_heads != prompts->kv_heads)
            return refuse(diag, "prompts differ in heads or head_dim");
    }
    return SMG_OK;
}

static int finish(const struct job *job, double loss[2], struct smg_diag *diag)
{
    uint64_t heads = job->prompts->kv_heads, n = heads * job->prompts->head_dim * job->p->bits;

    for (uint64_t m = 0; m < heads; m++)
        if (job->status[m]) {
            snprintf(diag->text, sizeof diag->text, "hash training: out of memory");
            return job->status[m];
        }
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(job->weight[i]))
            return refuse(diag, "it diverged; lower the rate");
    for (uint64_t m = 0; loss && m < heads; m++) {
        loss[0] += job->loss[m][0] / (double)heads;
        loss[1] += job->loss[m][1] / (double)heads;
    }
    return SMG_OK;
}

int smg_hata_train(const struct smg_hata_params *p, const struct smg_calibration *prompts, uint32_t n, float *weight,
                   double loss[2], struct smg_diag *diag)
{
    struct job job = {.p = p, .prompts = prompts, .n = n, .weight = weight};
    struct smg_threads *threads = NULL;
    int status = check(p, prompts, n, diag);

    if (status)
        return status;
    if (loss)
        loss[0] = loss[1] = 0;
    smg_hata_untrained(p->seed, prompts->kv_heads, prompts->head_dim, p->bits, weight);
    job.loss = calloc(prompts->kv_heads, sizeof *job.loss);
    job.status = calloc(prompts->kv_heads, sizeof *job.status);
    if (!job.loss || !job.status || smg_threads_open(p->threads, &threads)) {
        snprintf(diag->text, sizeof diag->text, "hash training: out of memory");
        status = SMG_ERR_NOMEM;
        goto free_job;
    }
    smg_threads_run(threads, prompts->kv_heads, 1, train_heads, &job);
    smg_threads_close(threads);
    status = finish(&job, loss, diag);
free_job:
    free(job.loss);
    free(job.status);
    return status;
}
