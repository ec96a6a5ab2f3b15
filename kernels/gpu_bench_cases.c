/* The cases of the timing program: how each kernel is called, with synthetic contents, and the bytes that it has to move. */
#include "kernels/gpu_bench.h"

#define TYPE    SMG_BF16
#define ELEMENT 2 /* bytes */

/* Block m of the grid begins at token m N / M; here N / M rounded down, the last block longer. */
static struct smg_kv_blocks grid(struct smg_bench *b)
{
    const struct smg_bench_sizes *s = &b->s;
    uint32_t *start = smg_bench_filled(b, s->blocks + 1, sizeof *start, smg_bench_one_number, s->tokens / s->blocks),
             last = s->tokens;

    smg_bench_need(!smg_memory_copy(b->k, start + s->blocks, &last, sizeof last, NULL) && !smg_stream_sync(b->k, NULL), "copy",
                   smg_kernels_diag(b->k));
    return (struct smg_kv_blocks){s->tokens, s->blocks, s->kv_heads, s->head_dim * ELEMENT, start};
}

#define S    (&b->s)
#define ROWS ((uint64_t)S->requests * S->kv_heads)
#define HQ   (S->kv_heads * S->group)

/* ---- Counting, splitting, moving ---- */

static void set_importance(struct smg_bench *b, union smg_bench_args *a)
{
    const struct smg_kv_blocks blocks = grid(b);

    a->importance = (struct smg_importance_args){
        .rows = S->kv_heads, .k = S->k, .tokens = S->tokens, .blocks = S->blocks, .start = blocks.start};
    a->importance.index = smg_bench_filled(b, (uint64_t)S->kv_heads * S->k, 4, smg_bench_one_below, S->tokens);
    a->importance.count = smg_bench_numbers(b, S->blocks, 0);
    b->bytes = 4.0 * S->kv_heads * S->k + 8.0 * S->blocks;
}

static void set_importance_mean(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->requests * S->blocks;

    a->importance_mean = (struct smg_importance_mean_args){.requests = S->requests, .blocks = S->blocks, .heads = S->kv_heads};
    a->importance_mean.count = smg_bench_filled(b, n, 4, smg_bench_one_below, 100);
    a->importance_mean.block_tokens = smg_bench_numbers(b, n, 7);
    a->importance_mean.steps = smg_bench_numbers(b, S->requests, 64);
    a->importance_mean.importance = smg_bench_fresh(b, S->blocks * 4);
    b->bytes = 8.0 * (double)n + 4.0 * S->blocks;
}

static void set_split(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = ROWS * S->k;

    a->split = (struct smg_split_args){.rows = (uint32_t)ROWS, .heads = S->kv_heads, .k = S->k, .width = S->tokens, .reorder = 1};
    a->split.index = smg_bench_filled(b, n, 4, smg_bench_one_below, S->tokens);
    a->split.mask = smg_bench_filled(b, (uint64_t)S->requests * S->tokens, 1, smg_bench_one_place, 0);
    a->split.out_index = smg_bench_fresh(b, n * 4);
    a->split.n_remote = smg_bench_fresh(b, ROWS * 4);
    a->split.n_local = smg_bench_fresh(b, ROWS * 4);
    a->split.remote = smg_bench_fresh(b, n);
    b->bytes = 10.0 * (double)n; /* id, mask, id, flag */
}

static void set_pack(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads * S->head_dim;

    a->pack.blocks = grid(b);
    a->pack.k = smg_bench_elements(b, n);
    a->pack.v = smg_bench_elements(b, n);
    a->pack.kv = smg_bench_fresh(b, 2 * n * ELEMENT);
    b->bytes = 4.0 * ELEMENT * (double)n;
}

static void set_unpack(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads * S->head_dim;

    a->unpack.blocks = grid(b);
    a->unpack.kv = smg_bench_elements(b, 2 * n);
    a->unpack.k = smg_bench_fresh(b, n * ELEMENT);
    a->unpack.v = smg_bench_fresh(b, n * ELEMENT);
    b->bytes = 4.0 * ELEMENT * (double)n;
}

static void set_gather(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->kv_heads * S->k;

    a->gather = (struct smg_gather_args){.blocks = grid(b), .max_row_entries = S->k};
    a->gather.kv = smg_bench_elements(b, (uint64_t)2 * S->tokens * S->kv_heads * S->head_dim);
    a->gather.ids = smg_bench_filled(b, n, 4, smg_bench_one_below, S->tokens);
    a->gather.ids_start = smg_bench_filled(b, S->kv_heads, 8, smg_bench_one_offset, S->k);
    a->gather.row_entries = smg_bench_numbers(b, S->kv_heads, S->k);
    a->gather.to_start = a->gather.ids_start;
    a->gather.k_out = smg_bench_fresh(b, n * S->head_dim * ELEMENT);
    a->gather.v_out = smg_bench_fresh(b, n * S->head_dim * ELEMENT);
    b->bytes = 4.0 * ELEMENT * (double)n * S->head_dim;
}

static void set_scatter(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->kv_heads * S->k;

    a->scatter = (struct smg_scatter_args){.heads = S->kv_heads, .half_bytes = S->head_dim * ELEMENT, .max_row_entries = S->k};
    a->scatter.row_entries = smg_bench_numbers(b, S->kv_heads, S->k);
    a->scatter.from_start = smg_bench_filled(b, S->kv_heads, 8, smg_bench_one_offset, S->k);
    a->scatter.to_start = a->scatter.from_start;
    a->scatter.k_in = smg_bench_elements(b, n * S->head_dim);
    a->scatter.v_in = smg_bench_elements(b, n * S->head_dim);
    a->scatter.k_out = smg_bench_fresh(b, n * S->head_dim * ELEMENT);
    a->scatter.v_out = smg_bench_fresh(b, n * S->head_dim * ELEMENT);
    b->bytes = 4.0 * ELEMENT * (double)n * S->head_dim;
}

/* ---- Selecting ---- */

static void set_rotate(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads * S->head_dim;

    a->rotate = (struct smg_rotate_args){
        .rows = S->tokens, .heads = S->kv_heads, .head_dim = S->head_dim, .type = TYPE, .eps = 1e-6f, .theta = 1e6f};
    a->rotate.x = smg_bench_elements(b, n);
    a->rotate.weight = smg_bench_filled(b, S->head_dim, 4, smg_bench_one_positive, 0);
    a->rotate.position = smg_bench_filled(b, S->tokens, 4, smg_bench_one_number, 1);
    b->bytes = 2.0 * ELEMENT * (double)n;
}

static void set_project(struct smg_bench *b, union smg_bench_args *a)
{
    a->project = (struct smg_project_args){.rows = S->requests, .in = S->in, .out = HQ * S->head_dim, .type = TYPE};
    a->project.x = smg_bench_elements(b, (uint64_t)S->requests * S->in);
    a->project.w = smg_bench_elements(b, (uint64_t)S->in * HQ * S->head_dim);
    a->project.y = smg_bench_fresh(b, (uint64_t)S->requests * HQ * S->head_dim * ELEMENT);
    b->bytes = (double)ELEMENT * ((double)S->in * HQ * S->head_dim + (double)S->requests * (S->in + HQ * S->head_dim));
}

static void set_skew(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads;

    a->skew = (struct smg_skew_args){.rows = S->tokens,
                                     .heads = S->kv_heads,
                                     .kv_heads = S->kv_heads,
                                     .head_dim = S->head_dim,
                                     .width = S->columns,
                                     .type = TYPE,
                                     .out_type = TYPE};
    a->skew.x = smg_bench_elements(b, n * S->head_dim);
    a->skew.basis = smg_bench_floats(b, (uint64_t)S->kv_heads * S->head_dim * S->head_dim);
    a->skew.columns = smg_bench_filled(b, (uint64_t)S->kv_heads * S->columns, 1, smg_bench_one_column, S->columns);
    a->skew.y = smg_bench_fresh(b, n * S->columns * ELEMENT);
    b->bytes = (double)ELEMENT * (double)n * (S->head_dim + S->columns);
}

static void set_scores(struct smg_bench *b, union smg_bench_args *a)
{
    a->scores = (struct smg_scores_args){.requests = S->requests,
                                         .q_heads = HQ,
                                         .kv_heads = S->kv_heads,
                                         .width = S->columns,
                                         .max_tokens = S->tokens,
                                         .type = TYPE,
                                         .request_stride = (uint64_t)S->tokens * S->kv_heads * S->columns,
                                         .token_stride = (uint64_t)S->kv_heads * S->columns,
                                         .head_stride = S->columns,
                                         .scale = 0.1f};
    a->scores.q = smg_bench_elements(b, (uint64_t)S->requests * HQ * S->columns);
    a->scores.key = smg_bench_elements(b, ROWS * S->tokens * S->columns);
    a->scores.tokens = smg_bench_numbers(b, S->requests, S->tokens);
    a->scores.score = smg_bench_fresh(b, (uint64_t)S->requests * HQ * S->tokens * 4);
    b->bytes = (double)ROWS * S->tokens * (ELEMENT * S->columns + 4.0 * S->group);
}

static void set_threshold(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->requests * HQ;

    a->threshold = (struct smg_threshold_args){.requests = S->requests, .q_heads = HQ, .max_tokens = S->tokens, .alpha = 0.5f};
    a->threshold.score = smg_bench_floats(b, n * S->tokens);
    a->threshold.tokens = smg_bench_numbers(b, S->requests, S->tokens);
    a->threshold.k_max = smg_bench_numbers(b, S->requests, S->k);
    a->threshold.count = smg_bench_fresh(b, n * 4);
    a->threshold.keep = smg_bench_fresh(b, S->requests * 4);
    b->bytes = 4.0 * (double)n * S->tokens;
}

static void set_group_scores(struct smg_bench *b, union smg_bench_args *a)
{
    a->group_scores = (struct smg_group_scores_args){
        .requests = S->requests, .q_heads = HQ, .kv_heads = S->kv_heads, .max_tokens = S->tokens, .mode = SMG_GROUP_SOFTMAX_SUM};
    a->group_scores.score = smg_bench_floats(b, ROWS * S->group * S->tokens);
    a->group_scores.tokens = smg_bench_numbers(b, S->requests, S->tokens);
    a->group_scores.group = smg_bench_fresh(b, ROWS * S->tokens * 4);
    b->bytes = 4.0 * (double)ROWS * S->tokens * (S->group + 1);
}

static void set_topk(struct smg_bench *b, union smg_bench_args *a)
{
    a->topk = (struct smg_topk_args){
        .rows = (uint32_t)ROWS, .n = S->tokens, .k = S->k, .order = SMG_TOPK_BY_INDEX, .row_group = S->kv_heads};
    a->topk.score = smg_bench_floats(b, ROWS * S->tokens);
    a->topk.index = smg_bench_fresh(b, ROWS * S->k * 4);
    a->topk.length = smg_bench_fresh(b, ROWS * 4);
    b->bytes = 4.0 * (double)ROWS * (S->tokens + S->k);
}

static void set_hash_encode(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads;

    a->hash_encode = (struct smg_hash_encode_args){.rows = S->tokens,
                                                   .heads = S->kv_heads,
                                                   .kv_heads = S->kv_heads,
                                                   .head_dim = S->head_dim,
                                                   .bits = S->bits,
                                                   .weight_heads = S->kv_heads,
                                                   .type = TYPE};
    a->hash_encode.x = smg_bench_elements(b, n * S->head_dim);
    a->hash_encode.weight = smg_bench_floats(b, (uint64_t)S->kv_heads * S->head_dim * S->bits);
    a->hash_encode.code = smg_bench_fresh(b, n * S->bits / 8);
    a->hash_encode.norm = smg_bench_fresh(b, n * 4);
    b->bytes = (double)n * (S->head_dim * ELEMENT + S->bits / 8.0 + 4);
}

static void set_hash_scores(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = ROWS * S->tokens;

    a->hash_scores = (struct smg_hash_scores_args){
        .requests = S->requests, .q_heads = HQ, .kv_heads = S->kv_heads, .bits = S->bits, .max_tokens = S->tokens};
    a->hash_scores.q_code = smg_bench_filled(b, ROWS * S->group * S->bits / 32, 4, smg_bench_one_word, 0);
    a->hash_scores.key_code = smg_bench_filled(b, n * S->bits / 32, 4, smg_bench_one_word, 0);
    a->hash_scores.norm = smg_bench_filled(b, n, 4, smg_bench_one_positive, 0);
    a->hash_scores.tokens = smg_bench_numbers(b, S->requests, S->tokens);
    a->hash_scores.score = smg_bench_fresh(b, n * 4);
    b->bytes = (double)n * (S->bits / 8.0 + 8);
}

static void set_page_update(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t pages = (S->tokens + S->page - 1) / S->page, n = (uint64_t)S->kv_heads * S->head_dim;

    a->page_update = (struct smg_page_update_args){
        .count = S->tokens, .kv_heads = S->kv_heads, .head_dim = S->head_dim, .page = S->page, .type = TYPE};
    a->page_update.key = smg_bench_elements(b, S->tokens * n);
    a->page_update.kmin = smg_bench_fresh(b, pages * n * 4);
    a->page_update.kmax = smg_bench_fresh(b, pages * n * 4);
    b->bytes = (double)n * (ELEMENT * (double)S->tokens + 8.0 * (double)pages);
}

static void set_page_scores(struct smg_bench *b, union smg_bench_args *a)
{
    const uint32_t pages = (S->tokens + S->page - 1) / S->page;

    a->page_scores = (struct smg_page_scores_args){.requests = S->requests,
                                                   .q_heads = HQ,
                                                   .kv_heads = S->kv_heads,
                                                   .head_dim = S->head_dim,
                                                   .max_pages = pages,
                                                   .type = TYPE};
    a->page_scores.q = smg_bench_elements(b, ROWS * S->group * S->head_dim);
    a->page_scores.kmin = smg_bench_floats(b, ROWS * pages * S->head_dim);
    a->page_scores.kmax = smg_bench_floats(b, ROWS * pages * S->head_dim);
    a->page_scores.pages = smg_bench_numbers(b, S->requests, pages);
    a->page_scores.bound = smg_bench_fresh(b, ROWS * pages * 4);
    b->bytes = (double)ROWS * pages * (8.0 * S->head_dim + 4);
}

static void set_page_expand(struct smg_bench *b, union smg_bench_args *a)
{
    const uint32_t chosen = S->k / S->page, pages = S->tokens / S->page;

    a->page_expand = (struct smg_page_expand_args){
        .rows = (uint32_t)ROWS, .row_group = S->kv_heads, .n_pages = chosen, .page = S->page, .k = S->k};
    a->page_expand.chosen = smg_bench_filled(b, ROWS * chosen, 4, smg_bench_one_below, pages);
    a->page_expand.tokens = smg_bench_numbers(b, S->requests, S->tokens);
    a->page_expand.index = smg_bench_fresh(b, ROWS * S->k * 4);
    a->page_expand.length = smg_bench_fresh(b, ROWS * 4);
    b->bytes = 4.0 * (double)ROWS * (S->k + chosen);
}

/* ---- Attention ---- */

static void set_attention(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = ROWS * S->k * S->head_dim;

    a->attention = (struct smg_attention_args){.requests = S->requests,
                                               .q_heads = HQ,
                                               .kv_heads = S->kv_heads,
                                               .head_dim = S->head_dim,
                                               .type = TYPE,
                                               .n_runs = 1,
                                               .scale = 0.1f};
    a->attention.q = smg_bench_elements(b, ROWS * S->group * S->head_dim);
    a->attention.run[0] = (struct smg_attention_run){.k = smg_bench_elements(b, n),
                                                     .v = smg_bench_elements(b, n),
                                                     .request_stride = (uint64_t)S->kv_heads * S->k * S->head_dim,
                                                     .head_stride = (uint64_t)S->k * S->head_dim,
                                                     .entry_stride = S->head_dim,
                                                     .max_length = S->k};
    a->attention.out = smg_bench_fresh(b, ROWS * S->group * S->head_dim * 4);
    a->attention.lse = smg_bench_fresh(b, ROWS * S->group * 4);
    b->bytes = 2.0 * ELEMENT * (double)n;
}

/* A cache of 2-bit codes in groups of 64: 84 bytes for each token and KV head at head_dim 128; never more than the elements. */
static struct smg_hack_shape hack_shape(const struct smg_bench *b)
{
    return (struct smg_hack_shape){.layout = SMG_HACK_V1,
                                   .tokens = S->tokens,
                                   .kv_heads = S->kv_heads,
                                   .head_dim = S->head_dim,
                                   .group = 64,
                                   .bits = 2,
                                   .type = TYPE};
}

static void set_hack_quantize(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads * S->head_dim;

    a->hack_quantize = (struct smg_hack_quantize_args){.shape = hack_shape(b)};
    a->hack_quantize.k = smg_bench_elements(b, n);
    a->hack_quantize.v = smg_bench_elements(b, n);
    a->hack_quantize.cache = smg_bench_fresh(b, 2 * n * ELEMENT + 4096);
    b->bytes = (double)n * (2 * ELEMENT + 84.0 / 128);
}

/* The cache that the other two read. */
static const void *hack_cache(struct smg_bench *b)
{
    union smg_bench_args a;

    set_hack_quantize(b, &a);
    smg_bench_need(!smg_hack_quantize(b->k, &a.hack_quantize, NULL), "hack_quantize", smg_kernels_diag(b->k));
    return a.hack_quantize.cache;
}

static void set_hack_dequantize(struct smg_bench *b, union smg_bench_args *a)
{
    const uint64_t n = (uint64_t)S->tokens * S->kv_heads * S->head_dim;

    a->hack_dequantize = (struct smg_hack_dequantize_args){.shape = hack_shape(b), .cache = hack_cache(b)};
    a->hack_dequantize.k = smg_bench_fresh(b, n * ELEMENT);
    a->hack_dequantize.v = smg_bench_fresh(b, n * ELEMENT);
    b->bytes = (double)n * (2 * ELEMENT + 84.0 / 128);
}

static void set_hack_attention(struct smg_bench *b, union smg_bench_args *a)
{
    a->hack_attention =
        (struct smg_hack_attention_args){.shape = hack_shape(b), .q_heads = HQ, .cache = hack_cache(b), .scale = 0.1f};
    a->hack_attention.q = smg_bench_elements(b, (uint64_t)HQ * S->head_dim);
    a->hack_attention.out = smg_bench_fresh(b, (uint64_t)HQ * S->head_dim * 4);
    a->hack_attention.lse = smg_bench_fresh(b, (uint64_t)HQ * 4);
    b->bytes = 84.0 / 128 * S->tokens * S->kv_heads * S->head_dim;
}

/* ---- The table ---- */

#define SMG_BENCH_CALL(name, text)                                                                                               \
    static int call_##name(struct smg_kernels *k, const union smg_bench_args *a)                                                 \
    {                                                                                                                            \
        return smg_##name(k, &a->name, NULL);                                                                                    \
    }
SMG_KERNEL_MAP(SMG_BENCH_CALL)

#define SMG_BENCH_CASE(name, text) {#name, set_##name, call_##name},
const struct smg_bench_case smg_bench_cases[] = {SMG_KERNEL_MAP(SMG_BENCH_CASE){NULL, NULL, NULL}};
