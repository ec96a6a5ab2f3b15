/* Subjects: split of one layer's index, and gather of entries by the CPU. */
#include <math.h>
#include <stdlib.h>

#include "core/cost.h"
#include "core/scheme.h"
#include "kernels/measure_priv.h"

/* ---- Split: a batch's index, half of it remote. The index is new when it is split, so caches hold it: no copies. ---- */

static const char *split_kernel(const struct smg_world *w)
{
    (void)w;
    return "split";
}

/* Requests of a call, and the share of the cap that their rows select, in quarters. */
static const struct {
    uint32_t requests, quarters;
} shapes[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {4, 4}, {8, 4}};

static uint32_t split_sizes(const struct smg_bench *b)
{
    return b->quick ? 4 : 6;
}

static int run_split(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    (void)turn;
    return smg_split(k, &c->a.split, NULL);
}

/* Index, mask and kept bits of the case, at random. kept NULL: none. */
static void split_inputs(const struct smg_split_args *a, int32_t *index, int8_t *mask, uint64_t *kept)
{
    uint32_t state = 88172645;

    for (uint32_t r = 0; r < a->rows; r++)
        smg_bench_ids(&state, a->width, a->k, index + (size_t)r * a->k);
    for (size_t i = 0; i < (size_t)a->rows / a->heads * a->width; i++)
        mask[i] = (int8_t)(1 + smg_bench_random(&state) % 2);
    for (size_t i = 0; kept && i < (size_t)a->rows * a->kept_words; i++)
        kept[i] = (uint64_t)smg_bench_random(&state) & smg_bench_random(&state); /* one entry in eight */
}

static int split_upload(struct smg_bench *b, struct smg_split_args *a, int reuse)
{
    size_t entries = (size_t)a->rows * a->k, width = (size_t)a->rows / a->heads * a->width,
           words = reuse ? (size_t)a->rows * a->kept_words : 0;
    int32_t *index = malloc(entries * sizeof *index);
    int8_t *mask = malloc(width);
    uint64_t *kept = malloc(words ? words * sizeof *kept : 1);
    int status = index && mask && kept ? SMG_OK : SMG_ERR_NOMEM;

    if (!status) {
        split_inputs(a, index, mask, reuse ? kept : NULL);
        status = smg_bench_upload(b, index, entries * sizeof *index, &a->index);
    }
    if (!status)
        status = smg_bench_upload(b, mask, width, &a->mask);
    if (!status && reuse)
        status = smg_bench_upload(b, kept, words * sizeof *kept, &a->kept);
    free(index);
    free(mask);
    free(kept);
    return status;
}

static int split_prepare(struct smg_bench *b, uint32_t i, struct smg_bench_case *c)
{
    const struct smg_world *w = b->world;
    uint32_t heads = w->model.kv_heads, tokens = smg_bench_prompt(w), k = smg_bench_selected(w, tokens) * shapes[i].quarters / 4;
    struct smg_split_args a = {.rows = heads * shapes[i].requests,
                               .heads = heads,
                               .k = k,
                               .width = tokens,
                               .kept_words = (tokens + 63) / 64,
                               .reorder = 1};
    size_t entries = (size_t)a.rows * k;
    struct smg_features features;
    int status;

    smg_scheme_features(w, &features);
    status = split_upload(b, &a, features.reuse);
    if (!status)
        status = smg_bench_alloc(b, entries * sizeof *a.out_index, &a.out_index);
    if (!status)
        status = smg_bench_alloc(b, a.rows * sizeof *a.n_remote, &a.n_remote);
    if (!status)
        status = smg_bench_alloc(b, a.rows * sizeof *a.n_local, &a.n_local);
    c->a.split = a;
    c->run = run_split;
    c->copies = 1;
    c->point = (struct smg_measure_point){.requests = shapes[i].requests,
                                          .tokens = tokens,
                                          .rows = a.rows,
                                          .k = k,
                                          .bytes = (double)SMG_SPLIT_ENTRY_BYTES * (double)entries};
    c->result = a.out_index;
    c->result_bytes = entries * sizeof *a.out_index;
    return status;
}

const struct smg_bench_subject smg_bench_split = {SMG_MEASURE_SPLIT, 0, split_kernel, NULL, split_sizes, split_prepare};

/* ---- Gather: what a prompt's cap selects, out of its blocks in host memory ---- */

static const char *gather_kernel(const struct smg_world *w)
{
    (void)w;
    return "gather";
}

static uint32_t gather_sizes(const struct smg_bench *b)
{
    return b->quick ? 3 : 4;
}

static int run_gather(struct smg_kernels *k, const struct smg_bench_case *c, uint64_t turn)
{
    struct smg_gather_args a = c->a.gather;

    a.kv = (const char *)a.kv + smg_bench_offset(c, turn);
    return smg_gather(k, &a, NULL);
}

/* Ids of all heads, one row after another, and where the rows start. */
static int gather_index(struct smg_bench *b, struct smg_gather_args *a, uint32_t k)
{
    uint32_t heads = a->blocks.heads, state = 362436069;
    size_t entries = (size_t)heads * k;
    int32_t *ids = malloc(entries * sizeof *ids);
    uint64_t *start = malloc(heads * sizeof *start);
    uint32_t *length = malloc(heads * sizeof *length);
    int status = ids && start && length ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t h = 0; h < heads && !status; h++) {
        smg_bench_ids(&state, a->blocks.tokens, k, ids + (size_t)h * k);
        start[h] = (uint64_t)h * k;
        length[h] = k;
    }
    if (!status)
        status = smg_bench_upload(b, ids, entries * sizeof *ids, &a->ids);
    if (!status)
        status = smg_bench_upload(b, start, heads * sizeof *start, &a->ids_start);
    if (!status)
        status = smg_bench_upload(b, length, heads * sizeof *length, &a->row_entries);
    a->to_start = a->ids_start;
    a->max_row_entries = k;
    free(ids);
    free(start);
    free(length);
    return status;
}

/* Blocks as floor(m N / M) cuts them. */
static int gather_grid(struct smg_bench *b, struct smg_kv_blocks *blocks)
{
    uint32_t *start = malloc((blocks->blocks + (size_t)1) * sizeof *start);
    int status = start ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t m = 0; m <= blocks->blocks && !status; m++)
        start[m] = (uint32_t)((uint64_t)m * blocks->tokens / blocks->blocks);
    if (!status)
        status = smg_bench_upload(b, start, (blocks->blocks + (size_t)1) * sizeof *start, &blocks->start);
    free(start);
    return status;
}

static int gather_prepare(struct smg_bench *b, uint32_t i, struct smg_bench_case *c)
{
    const struct smg_model *m = &b->world->model;
    uint32_t tokens = 1024u << i, k = smg_bench_selected(b->world, tokens),
             blocks = b->world->scenario.blocks_per_layer < tokens ? b->world->scenario.blocks_per_layer : tokens;
    struct smg_gather_args a = {
        .blocks = {.tokens = tokens, .blocks = blocks, .heads = m->kv_heads, .half_bytes = m->head_dim * m->value_bytes}};
    size_t bytes = (size_t)m->kv_heads * k * smg_model_entry_bytes(m);
    int status = smg_bench_pool(b, (size_t)tokens * smg_model_token_layer_bytes(m), smg_bench_type(b->world), c, &a.kv);

    if (!status)
        status = gather_grid(b, &a.blocks);
    if (!status)
        status = gather_index(b, &a, k);
    if (!status)
        status = smg_bench_alloc(b, bytes, &a.k_out);
    if (!status)
        a.v_out = (char *)a.k_out + bytes / 2;
    c->a.gather = a;
    c->run = run_gather;
    c->point = (struct smg_measure_point){.requests = 1, .tokens = tokens, .rows = m->kv_heads, .k = k, .bytes = (double)bytes};
    c->result = a.k_out;
    c->result_bytes = bytes;
    return status;
}

const struct smg_bench_subject smg_bench_gather = {SMG_MEASURE_GATHER, 1, gather_kernel, NULL, gather_sizes, gather_prepare};
