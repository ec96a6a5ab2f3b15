/* Subject: selector scores of one layer, by the scenario's selector. Metadata lies as kernels keep it, and is counted as the
 * simulator counts it (smg_metadata_token_bytes; the keys themselves for oracle). */
#include <math.h>

#include "core/cost.h"
#include "kernels/measure_priv.h"

/* Sums of a few hundred fp32 terms in another order. */
#define TOLERANCE 1e-4

enum { PAGE = 16 };

static uint32_t sizes(const struct smg_bench *b)
{
    return b->quick ? 4 : 5;
}

/* Prompts from short to long; a layer's metadata of the longest is some 20 MB. */
static uint32_t tokens_of(const struct smg_bench *b, uint32_t i)
{
    return (b->quick ? 1024u : 2048u) << i;
}

static const char *kernel(const struct smg_world *w)
{
    switch (w->scenario.selector) {
    case SMG_SELECTOR_HATA:
        return "hash_scores";
    case SMG_SELECTOR_QUEST:
        return "page_scores";
    case SMG_SELECTOR_INFINIGEN:
    case SMG_SELECTOR_ORACLE:
        break;
    }
    return "scores";
}

static const char *skip(const struct smg_world *w)
{
    uint32_t bits = w->scenario.selection.hash_bits;

    if (w->scenario.selector == SMG_SELECTOR_HATA && (bits % 32 || bits > 1024))
        return "kernels take selection.hash_bits that are a multiple of 32, at most 1024";
    if (w->scenario.selector == SMG_SELECTOR_INFINIGEN && !smg_metadata_token_bytes(w))
        return "selection.partial_ratio leaves no column of a key";
    return NULL;
}

/* ---- InfiniGen and oracle: dot products ---- */

static int run_scores(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_scores_args a = c->a.scores;

    a.key = (const char *)a.key + smg_bench_offset(c, turn);
    return smg_scores(k, &a, NULL);
}

static int prepare_scores(struct smg_bench *b, const uint32_t *tokens, struct smg_bench_case *c, void *score)
{
    const struct smg_model *m = &b->world->model;
    int oracle = b->world->scenario.selector == SMG_SELECTOR_ORACLE;
    enum smg_dtype type = oracle ? smg_bench_type(b->world) : SMG_BF16;
    uint32_t width = oracle ? m->head_dim : (uint32_t)(smg_metadata_token_bytes(b->world) / (2 * m->kv_heads));
    struct smg_scores_args a = {.requests = 1,
                                .q_heads = m->q_heads,
                                .kv_heads = m->kv_heads,
                                .width = width,
                                .max_tokens = c->point.tokens,
                                .type = type,
                                .token_stride = (uint64_t)m->kv_heads * width,
                                .head_stride = width,
                                .tokens = tokens,
                                .scale = 1 / sqrtf((float)m->head_dim),
                                .score = score};
    size_t bytes = (size_t)c->point.tokens * m->kv_heads * width * smg_dtype_bytes(type);
    int status = smg_bench_pool(b, bytes, type, c, &a.key);

    a.request_stride = a.token_stride * c->point.tokens;
    if (!status)
        status = smg_bench_elements(b, (size_t)m->q_heads * width, type, &a.q);
    c->a.scores = a;
    c->run = run_scores;
    c->point.bytes = (double)bytes;
    return status;
}

/* ---- HATA: codes and norms ---- */

static int run_hash(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_hash_scores_args a = c->a.hash;
    size_t offset = smg_bench_offset(c, turn);

    a.key_code = (const uint32_t *)((const char *)a.key_code + offset);
    a.norm = (const float *)((const char *)a.norm + offset);
    return smg_hash_scores(k, &a, NULL);
}

static int prepare_hash(struct smg_bench *b, const uint32_t *tokens, struct smg_bench_case *c, void *score)
{
    const struct smg_model *m = &b->world->model;
    uint32_t bits = b->world->scenario.selection.hash_bits;
    size_t rows = (size_t)c->point.tokens * m->kv_heads, code_bytes = rows * bits / 8;
    struct smg_hash_scores_args a = {.requests = 1,
                                     .q_heads = m->q_heads,
                                     .kv_heads = m->kv_heads,
                                     .bits = bits,
                                     .max_tokens = c->point.tokens,
                                     .tokens = tokens,
                                     .score = score};
    int status = smg_bench_pool(b, code_bytes + rows * sizeof *a.norm, SMG_F32, c, &a.key_code);

    if (!status)
        status = smg_bench_elements(b, (size_t)m->q_heads * bits / 32, SMG_F32, &a.q_code);
    if (!status)
        a.norm = (const float *)((const char *)a.key_code + code_bytes);
    c->a.hash = a;
    c->run = run_hash;
    return status;
}

/* ---- Quest: bounds of pages ---- */

static int run_page(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_page_scores_args a = c->a.page;
    size_t offset = smg_bench_offset(c, turn);

    a.kmin = (const float *)((const char *)a.kmin + offset);
    a.kmax = (const float *)((const char *)a.kmax + offset);
    return smg_page_scores(k, &a, NULL);
}

static int prepare_page(struct smg_bench *b, struct smg_bench_case *c, void *score)
{
    const struct smg_model *m = &b->world->model;
    uint32_t pages = c->point.tokens / PAGE;
    size_t n = (size_t)pages * m->kv_heads * m->head_dim;
    struct smg_page_scores_args a = {.requests = 1,
                                     .q_heads = m->q_heads,
                                     .kv_heads = m->kv_heads,
                                     .head_dim = m->head_dim,
                                     .max_pages = pages,
                                     .type = smg_bench_type(b->world),
                                     .bound = score};
    int status = smg_bench_pool(b, 2 * n * sizeof *a.kmin, SMG_F32, c, &a.kmin);

    if (!status)
        status = smg_bench_upload(b, &pages, sizeof pages, &a.pages);
    if (!status)
        status = smg_bench_elements(b, (size_t)m->q_heads * m->head_dim, a.type, &a.q);
    if (!status)
        a.kmax = a.kmin + n;
    c->a.page = a;
    c->run = run_page;
    c->result_bytes = (size_t)m->kv_heads * pages * sizeof *a.bound;
    return status;
}

static int prepare(struct smg_bench *b, uint32_t i, struct smg_bench_case *c)
{
    const struct smg_model *m = &b->world->model;
    enum smg_selector selector = b->world->scenario.selector;
    uint32_t tokens = tokens_of(b, i), *tokens_at = NULL;
    size_t rows = selector == SMG_SELECTOR_HATA ? m->kv_heads : m->q_heads;
    float *score = NULL;
    int status = smg_bench_upload(b, &tokens, sizeof tokens, &tokens_at);

    c->point.requests = 1;
    c->point.tokens = tokens;
    c->point.rows = m->kv_heads;
    c->point.bytes = (double)tokens * (double)smg_metadata_token_bytes(b->world);
    c->result_bytes = rows * tokens * sizeof *score;
    c->result_type = SMG_F32;
    c->tolerance = TOLERANCE;
    if (!status)
        status = smg_bench_alloc(b, c->result_bytes, &score);
    if (status)
        return status;
    c->result = score;
    if (selector == SMG_SELECTOR_QUEST)
        return prepare_page(b, c, score);
    return selector == SMG_SELECTOR_HATA ? prepare_hash(b, tokens_at, c, score) : prepare_scores(b, tokens_at, c, score);
}

const struct smg_bench_subject smg_bench_select = {SMG_MEASURE_SELECT, 0, kernel, skip, sizes, prepare};
