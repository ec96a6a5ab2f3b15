/* Recall and kept softmax mass of every selector against the oracle, on planted tensors. */
#include "kernels/quality.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

const char *smg_quality_name(enum smg_quality_selector s)
{
    static const char *const names[] = {
#define NAME(id, name, text) name,
        SMG_QUALITY_MAP(NAME)
#undef NAME
    };

    return names[s];
}

void smg_quality_defaults(struct smg_quality_params *p, uint64_t seed, uint32_t q_heads, uint32_t kv_heads, uint32_t head_dim)
{
    static const float ratio[] = {0.05f, 0.1f, 0.2f, 0.3f, 0.4f};

    *p = (struct smg_quality_params){.type = SMG_BF16,
                                     .layer = 2,
                                     .requests = 2,
                                     .tokens = 2048,
                                     .steps = 8,
                                     .stride = 8,
                                     .calibration_tokens = 1024,
                                     .alpha = 5,
                                     .page = 16,
                                     .sinks = 4,
                                     .ratios = sizeof ratio / sizeof ratio[0]};
    memcpy(p->ratio, ratio, sizeof ratio);
    smg_planted_defaults(&p->planted, seed, q_heads, kv_heads, head_dim);
    smg_hata_defaults(&p->hata);
    p->hata.seed = seed;
    p->hata.draws = 8;
    p->hata.steps = 8;
    p->hata.chunk_pairs = 256;
}

static int refuse(struct smg_diag *diag, const char *why)
{
    snprintf(diag->text, sizeof diag->text, "selector quality: %s", why);
    return SMG_ERR_INVALID;
}

static int check(const struct smg_quality_params *p, struct smg_diag *diag)
{
    int status = smg_planted_check(&p->planted, diag);

    if (status)
        return status;
    if (!p->requests || !p->steps || !p->tokens || !p->calibration_tokens)
        return refuse(diag, "requests, steps and tokens must be at least 1");
    if (p->tokens > 1u << 22 || p->calibration_tokens > 1u << 22)
        return refuse(diag, "at most 4194304 tokens");
    if (p->width > p->planted.head_dim)
        return refuse(diag, "the columns kept must be at most head_dim");
    if (!p->page || !smg_dtype_bytes(p->type) || p->ratios > SMG_QUALITY_RATIOS)
        return refuse(diag, "page, type or number of ratios cannot be");
    for (uint32_t i = 0; i < p->ratios; i++)
        if (!(p->ratio[i] > 0 && p->ratio[i] <= 1))
            return refuse(diag, "ratios must be above 0, at most 1");
    return SMG_OK;
}

/* ---- Rankings ---- */

struct ranked {
    float score;
    int32_t id;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int smg_quality_rank(struct smg_quality_state *s, uint32_t n)
{
    struct ranked *r = malloc((n + 1) * sizeof *r);

    if (!r)
        return SMG_ERR_NOMEM;
    for (uint64_t m = 0; m < s->p->planted.kv_heads; m++) {
        for (uint32_t j = 0; j < n; j++)
            r[j] = (struct ranked){s->row[m * n + j], (int32_t)j};
        qsort(r, n, sizeof *r, by_score);
        for (uint32_t j = 0; j < n; j++)
            s->order[m * n + j] = r[j].id;
    }
    free(r);
    return SMG_OK;
}

/* The first tokens, then from the last one backwards. */
static void rank_streaming(struct smg_quality_state *s)
{
    uint32_t n = s->p->tokens, sinks = s->p->sinks < n ? s->p->sinks : n;

    for (uint64_t m = 0; m < s->p->planted.kv_heads; m++)
        for (uint32_t i = 0; i < n; i++)
            s->order[m * n + i] = (int32_t)(i < sinks ? i : n - 1 - (i - sinks));
}

/* Fisher and Yates. */
static void rank_random(struct smg_quality_state *s, struct smg_rng *rng)
{
    uint32_t n = s->p->tokens;

    for (uint64_t m = 0; m < s->p->planted.kv_heads; m++) {
        int32_t *order = s->order + m * n;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = (uint32_t)(smg_rng_uniform(rng) * (i + 1));
            order[i] = order[j];
            order[j] = (int32_t)i;
        }
    }
}

/* The oracle's scores become mass, its ranking the places that others are held against. */
static int keep_oracle(struct smg_quality_state *s)
{
    uint64_t n = s->p->tokens, cells = n * s->p->planted.kv_heads;
    float group = (float)(s->p->planted.q_heads / s->p->planted.kv_heads);
    int status = smg_quality_rank(s, s->p->tokens);

    for (uint64_t i = 0; !status && i < cells; i++) {
        s->mass[i] = s->row[i] / group;
        s->place[i / n * n + (uint64_t)s->order[i]] = (uint32_t)(i % n);
    }
    return status;
}

static int rank_by(struct smg_quality_state *s, enum smg_quality_selector selector, struct smg_rng *rng, uint32_t *keep)
{
    int status = SMG_OK;

    switch (selector) {
    case SMG_QUALITY_ORACLE:
        status = smg_quality_exact(s);
        return status ? status : keep_oracle(s);
    case SMG_QUALITY_INFINIGEN:
        status = smg_quality_infinigen(s, keep);
        break;
    case SMG_QUALITY_HATA:
        status = smg_quality_hata(s, 0);
        break;
    case SMG_QUALITY_HATA_UNTRAINED:
        status = smg_quality_hata(s, 1);
        break;
    case SMG_QUALITY_QUEST:
        return smg_quality_quest(s);
    case SMG_QUALITY_STREAMINGLLM:
        rank_streaming(s);
        return SMG_OK;
    default:
        rank_random(s, rng);
        return SMG_OK;
    }
    return status ? status : smg_quality_rank(s, s->p->tokens);
}

/* ---- Means ---- */

static void add(const struct smg_quality_state *s, enum smg_quality_selector selector, struct smg_quality *out)
{
    const struct smg_quality_params *p = s->p;
    uint64_t n = p->tokens, heads = p->planted.kv_heads;
    double share = 1.0 / ((double)heads * p->requests * p->steps);

    for (uint32_t r = 0; r < p->ratios; r++) {
        uint64_t k = (uint64_t)((double)p->ratio[r] * (double)n + 1e-6);
        k = k ? k : 1;
        for (uint64_t m = 0; m < heads; m++) {
            uint64_t found = 0;
            double mass = 0;
            for (uint64_t i = 0; i < k; i++) {
                uint64_t id = m * n + (uint64_t)s->order[m * n + i];
                found += s->place[id] < k;
                mass += (double)s->mass[id];
            }
            out->at[selector][r].recall += share * (double)found / (double)k;
            out->at[selector][r].mass += share * mass;
        }
    }
}

static int evaluate_step(struct smg_quality_state *s, uint64_t request, uint32_t position, struct smg_rng *rng,
                         struct smg_quality *out)
{
    const struct smg_quality_params *p = s->p;
    uint32_t keep = 0;

    for (int i = 0; i < SMG_QUALITY_SELECTORS; i++) {
        enum smg_quality_selector selector = (enum smg_quality_selector)i;
        enum smg_planted_what what = selector == SMG_QUALITY_INFINIGEN ? SMG_PLANTED_REHEARSED : SMG_PLANTED_QUERY;
        int status = smg_quality_query(s, request, position, what);
        if (!status)
            status = rank_by(s, selector, rng, &keep);
        if (status)
            return status;
        add(s, selector, out);
    }
    out->keep += (double)keep / p->tokens / ((double)p->requests * p->steps);
    return SMG_OK;
}

int smg_selector_quality(struct smg_kernels *k, const struct smg_quality_params *p, struct smg_quality *out,
                         struct smg_diag *diag)
{
    struct smg_quality_state s = {.p = p, .k = k};
    struct smg_rng rng;
    int status = check(p, diag);

    if (status)
        return status;
    memset(out, 0, sizeof *out);
    s.width = p->width ? p->width : smg_skew_width(p->planted.head_dim);
    s.pages = (p->tokens - 1) / p->page + 1;
    smg_rng_init(&rng, p->planted.seed, "quality-random");
    status = smg_quality_state_create(&s);
    if (status) {
        snprintf(diag->text, sizeof diag->text, "selector quality: out of memory for %u tokens", p->tokens);
        goto destroy;
    }
    status = smg_quality_calibrate(&s, out->loss, diag);
    if (status)
        goto destroy;
    for (uint32_t r = 0; !status && r < p->requests; r++) {
        status = smg_quality_keys(&s, r);
        for (uint32_t i = 0; !status && i < p->steps; i++)
            status = evaluate_step(&s, r, p->tokens + i * p->stride, &rng, out);
    }
    if (status)
        snprintf(diag->text, sizeof diag->text, "selector quality: %.200s (%.200s)", smg_status_string(status),
                 smg_kernels_diag(k));
destroy:
    smg_quality_state_destroy(&s);
    return status;
}
