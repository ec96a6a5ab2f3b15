/* Pack, unpack, gather and scatter on every backend. Copies, so all exact: bytes are compared, whatever type they are of; random
 * bytes stand for elements. The layout is held against emu/layout.h, the rest against loops of one entry. */
#include "emu/layout.h"
#include "tests/kernel_fixture.h"
#include "tests/kernel_grid.h"
#include "tests/world_fixture.h"

static void *room(size_t bytes)
{
    void *p = malloc(bytes + 1);

    assert_non_null(p);
    memset(p, 0xff, bytes + 1);
    return p;
}

static void *random_bytes(uint32_t *seed, size_t bytes)
{
    uint8_t *p = room(bytes);

    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(kf_random(seed) >> 11);
    return p;
}

/* One request's layer in both forms: token-major, and blocks. */
struct layer {
    uint32_t tokens, blocks, heads, half, first;
    uint32_t *start;
    uint8_t *k, *v; /* [tokens][heads][half] */
    uint8_t *kv;    /* of the kept tokens */
    size_t row_bytes, kv_bytes;
};

/* Offset in kv of half v (0 K, 1 V) of an entry. */
static size_t entry_at(const struct layer *l, uint32_t head, uint32_t token, int v)
{
    const uint32_t m = kg_block_of(l->start, l->blocks, token), n = l->start[m + 1] - l->start[m];

    return ((size_t)(l->start[m] - l->first) * 2 * l->heads + (size_t)v * l->heads * n + (size_t)head * n + token - l->start[m]) *
           l->half;
}

static struct layer make_layer(uint32_t *seed, uint32_t tokens, uint32_t blocks, uint32_t heads, uint32_t half, int even)
{
    struct layer l = {.tokens = tokens, .blocks = blocks, .heads = heads, .half = half, .first = even % 2 ? 0 : tokens / 4};

    l.start = room((blocks + 1) * sizeof *l.start);
    if (even / 2)
        kg_even(tokens, blocks, l.first, l.start);
    else
        kg_uneven(seed, tokens, blocks, l.first, l.start);
    l.row_bytes = (size_t)tokens * heads * half;
    l.kv_bytes = (size_t)(tokens - l.first) * 2 * heads * half;
    l.k = random_bytes(seed, l.row_bytes);
    l.v = random_bytes(seed, l.row_bytes);
    l.kv = room(l.kv_bytes);
    for (uint32_t t = l.first; t < tokens; t++) {
        for (uint32_t h = 0; h < heads; h++) {
            memcpy(l.kv + entry_at(&l, h, t, 0), l.k + ((size_t)t * heads + h) * half, half);
            memcpy(l.kv + entry_at(&l, h, t, 1), l.v + ((size_t)t * heads + h) * half, half);
        }
    }
    return l;
}

static void free_layer(struct layer *l)
{
    free(l->start);
    free(l->k);
    free(l->v);
    free(l->kv);
}

static struct smg_kv_blocks blocks_of(struct kernel_fixture *f, const struct layer *l)
{
    return (struct smg_kv_blocks){.tokens = l->tokens,
                                  .blocks = l->blocks,
                                  .heads = l->heads,
                                  .half_bytes = l->half,
                                  .start = kf_in(f, l->start, (l->blocks + 1) * sizeof *l->start)};
}

/* ---- pack, unpack ---- */

static void check_pack(const struct layer *l)
{
    const size_t before = (size_t)l->first * l->heads * l->half;
    uint8_t *kv = room(l->kv_bytes), *k = room(l->row_bytes), *v = room(l->row_bytes), *untouched = room(before);

    FOR_EACH_BACKEND(f)
    {
        struct smg_pack_args p = {.blocks = blocks_of(f, l),
                                  .k = kf_in(f, l->k, l->row_bytes),
                                  .v = kf_in(f, l->v, l->row_bytes),
                                  .kv = kf_out(f, l->kv_bytes)};
        struct smg_unpack_args u = {.blocks = p.blocks, .kv = p.kv, .k = kf_out(f, l->row_bytes), .v = kf_out(f, l->row_bytes)};
        kf_ok(f, smg_pack(f->k, &p, NULL));
        kf_get(f, kv, p.kv, l->kv_bytes);
        kf_same(f, kv, l->kv, l->kv_bytes);
        kf_ok(f, smg_unpack(f->k, &u, NULL)); /* and back */
        kf_get(f, k, u.k, l->row_bytes);
        kf_get(f, v, u.v, l->row_bytes);
        kf_same(f, k, untouched, before);
        kf_same(f, v, untouched, before);
        kf_same(f, k + before, l->k + before, l->row_bytes - before);
        kf_same(f, v + before, l->v + before, l->row_bytes - before);
    }
    free(kv);
    free(k);
    free(v);
    free(untouched);
}

/* tokens, blocks, heads, half_bytes: lengths around a warp, fewer tokens than blocks, halves of 4 to 512 bytes, one block. */
static const uint32_t sizes[][4] = {{1, 1, 1, 4},      {1, 5, 3, 8},     {31, 7, 2, 12},   {32, 32, 1, 16},  {33, 4, 8, 64},
                                    {10, 40, 2, 256},  {100, 1, 2, 260}, {64, 3, 3, 512},  {257, 33, 4, 32}, {65, 64, 5, 4},
                                    {700, 100, 2, 16}, {40, 7, 2, 1024}, {3, 2, 1, 131072}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_pack(void **state)
{
    uint32_t seed = 21;

    (void)state;
    for (int i = 0; i < SIZES; i++) {
        for (int even = 0; even < 4; even++) {
            struct layer l = make_layer(&seed, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], even);
            check_pack(&l);
            free_layer(&l);
        }
    }
}

/* ---- gather, scatter ---- */

/* What a reply asks for: ids row by row, some of them out of range. */
struct reply {
    uint32_t heads, longest;
    uint32_t *rows;
    uint64_t *start, entries; /* start: of a row, in ids and in the reply */
    int32_t *ids;
};

static struct reply make_reply(uint32_t *seed, const struct layer *l, uint32_t longest, int wild)
{
    struct reply r = {.heads = l->heads, .longest = longest};

    r.rows = room(l->heads * sizeof *r.rows);
    r.start = room(l->heads * sizeof *r.start);
    for (uint32_t h = 0; h < l->heads; h++) {
        r.rows[h] = h % 3 == 1 ? 0 : h % 3 == 2 ? longest : kf_random(seed) % (longest + 1);
        r.start[h] = r.entries;
        r.entries += r.rows[h];
    }
    r.ids = room(r.entries * sizeof *r.ids);
    for (uint64_t i = 0; i < r.entries; i++) {
        const uint32_t x = kf_random(seed) >> 8;
        r.ids[i] = (int32_t)(l->first + x % (l->tokens - l->first));
        if (wild && x % 9 == 0)
            r.ids[i] = (int32_t[]){-1, INT32_MIN, INT32_MAX, (int32_t)l->tokens, (int32_t)l->first - 1}[x / 9 % 5];
    }
    return r;
}

static void free_reply(struct reply *r)
{
    free(r->rows);
    free(r->start);
    free(r->ids);
}

/* Row h of the destination begins at to[h] entries; bytes of ids out of range stay 0xff. */
static void expect(const struct layer *l, const struct reply *r, const uint64_t *to, uint8_t *k, uint8_t *v)
{
    for (uint32_t h = 0; h < l->heads; h++) {
        for (uint32_t j = 0; j < r->rows[h]; j++) {
            const int32_t id = r->ids[r->start[h] + j];
            if (id < (int32_t)l->first || id >= (int32_t)l->tokens)
                continue;
            memcpy(k + (to[h] + j) * l->half, l->kv + entry_at(l, h, (uint32_t)id, 0), l->half);
            memcpy(v + (to[h] + j) * l->half, l->kv + entry_at(l, h, (uint32_t)id, 1), l->half);
        }
    }
}

/* To a buffer of K rows, V rows: rows of `cap` entries each, behind `skip` others; or, with cap 0, one after another. shift:
 * bytes by which the buffers are off, 0 or 4. */
static void check_gather(const struct layer *l, const struct reply *r, uint32_t cap, uint32_t skip, uint32_t shift)
{
    const uint64_t area = (cap ? (uint64_t)cap * l->heads : r->entries) * l->half; /* of K, and of V */
    uint64_t *to = room(l->heads * sizeof *to);
    uint8_t *expected = room(2 * area + shift), *got = room(2 * area + shift), *kv = room(l->kv_bytes + shift);

    for (uint32_t h = 0; h < l->heads; h++)
        to[h] = cap ? h * (uint64_t)cap + skip : r->start[h];
    expect(l, r, to, expected + shift, expected + shift + area);
    memcpy(kv + shift, l->kv, l->kv_bytes);
    FOR_EACH_BACKEND(f)
    {
        uint8_t *out = kf_out(f, 2 * area + shift);
        struct smg_gather_args a = {.blocks = blocks_of(f, l),
                                    .kv = (uint8_t *)kf_in(f, kv, l->kv_bytes + shift) + shift,
                                    .ids = kf_in(f, r->ids, r->entries * sizeof *r->ids),
                                    .ids_start = kf_in(f, r->start, l->heads * sizeof *r->start),
                                    .row_entries = kf_in(f, r->rows, l->heads * sizeof *r->rows),
                                    .max_row_entries = r->longest + skip,
                                    .to_start = kf_in(f, to, l->heads * sizeof *to),
                                    .k_out = out + shift,
                                    .v_out = out + shift + area};
        if (r->entries) {
            kf_ok(f, smg_gather(f->k, &a, NULL));
            kf_get(f, got, out, 2 * area + shift);
            kf_same(f, got, expected, 2 * area + shift);
        }
    }
    free(to);
    free(expected);
    free(got);
    free(kv);
}

/* A contiguous reply, spread over rows, is what a gather straight into rows gives. */
static void check_scatter(const struct layer *l, const struct reply *r, uint32_t skip)
{
    const uint64_t cap = r->longest + skip, area = cap * l->heads * l->half, part = r->entries * l->half;
    uint64_t *to = room(l->heads * sizeof *to);
    uint8_t *rows = room(2 * area), *spread = room(2 * area);

    for (uint32_t h = 0; h < l->heads; h++)
        to[h] = h * cap + skip;
    FOR_EACH_BACKEND(f)
    {
        uint8_t *direct = kf_out(f, 2 * area), *reply = kf_out(f, 2 * part), *landed = kf_out(f, 2 * area);
        struct smg_gather_args g = {.blocks = blocks_of(f, l),
                                    .kv = kf_in(f, l->kv, l->kv_bytes),
                                    .ids = kf_in(f, r->ids, r->entries * sizeof *r->ids),
                                    .ids_start = kf_in(f, r->start, l->heads * sizeof *r->start),
                                    .row_entries = kf_in(f, r->rows, l->heads * sizeof *r->rows),
                                    .max_row_entries = r->longest,
                                    .to_start = kf_in(f, to, l->heads * sizeof *to),
                                    .k_out = direct,
                                    .v_out = direct + area};
        struct smg_scatter_args s = {.heads = l->heads,
                                     .half_bytes = l->half,
                                     .max_row_entries = r->longest,
                                     .row_entries = g.row_entries,
                                     .from_start = g.ids_start,
                                     .to_start = g.to_start,
                                     .k_in = reply,
                                     .v_in = reply + part,
                                     .k_out = landed,
                                     .v_out = landed + area};
        if (!r->entries)
            continue;
        kf_ok(f, smg_gather(f->k, &g, NULL));
        g.to_start = g.ids_start;
        g.k_out = reply;
        g.v_out = reply + part;
        kf_ok(f, smg_gather(f->k, &g, NULL));
        kf_ok(f, smg_scatter(f->k, &s, NULL));
        kf_get(f, rows, direct, 2 * area);
        kf_get(f, spread, landed, 2 * area);
        kf_same(f, spread, rows, 2 * area);
    }
    free(to);
    free(rows);
    free(spread);
}

static void gather_case(uint32_t *seed, const uint32_t size[4], uint32_t longest, int how)
{
    struct layer l = make_layer(seed, size[0], size[1], size[2], size[3], how);
    struct reply wild = make_reply(seed, &l, longest, 1), tame = make_reply(seed, &l, longest, 0);

    check_gather(&l, &wild, 0, 0, 0);
    check_gather(&l, &wild, longest + 3, 2, 4);
    check_gather(&l, &tame, longest, 0, 0);
    check_scatter(&l, &tame, 0);
    check_scatter(&l, &wild, 5); /* places left out are 0xff in both */
    free_reply(&wild);
    free_reply(&tame);
    free_layer(&l);
}

/* Rows around the look-ahead of the cpu backend (8 entries), a warp, and a block of warps. */
static void test_gather(void **state)
{
    static const uint32_t longest[] = {0, 1, 7, 8, 9, 16, 17, 31, 32, 33, 100};
    uint32_t seed = 22;

    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int n = 0; n < 3; n++) /* each size with three of the lengths, and each length often enough */
            gather_case(&seed, sizes[i], sizes[i][3] > 4096 ? (uint32_t)n : longest[(i + 4 * n) % 11], (i + n) % 4);
}

/* Rows of several pieces: a piece is 128 KiB of K. */
static void test_gather_pieces(void **state)
{
    static const uint32_t size[] = {300, 50, 2, 1024}, longest[] = {129, 260};
    uint32_t seed = 23;

    (void)state;
    for (int i = 0; i < 2; i++)
        gather_case(&seed, size, longest[i], i + 2);
}

/* ---- The layout of the emulation ---- */

/* All entries of a layer in a mixed order, gathered from the emulation's bytes, are what the emulation says they are. */
static void check_emulated(const struct smg_layout *layout, uint32_t request, uint32_t number)
{
    const uint32_t heads = layout->heads, half = (uint32_t)layout->half_bytes, first = layout->kept_lo[number],
                   tokens = layout->grid.tokens, kept = tokens - first;
    const size_t entries = (size_t)heads * kept, bytes = entries * half;
    uint8_t *kv = room(smg_layout_kv_bytes(layout)), *got = room(2 * bytes);
    uint32_t *rows = room(heads * sizeof *rows), *start = room((layout->grid.blocks + 1) * sizeof *start), hi = 0;
    uint64_t *at = room(heads * sizeof *at);
    int32_t *ids = room(entries * sizeof *ids);

    smg_content_layer(layout, 77, request, number, kv);
    for (uint32_t m = 0; m < layout->grid.blocks; m++)
        smg_grid_block(&layout->grid, number, m, &start[m], &hi);
    start[layout->grid.blocks] = hi;
    for (uint32_t h = 0; h < heads; h++) {
        rows[h] = kept;
        at[h] = (uint64_t)h * kept;
        for (uint32_t j = 0; j < kept; j++)
            ids[at[h] + j] = (int32_t)(first + (j * 7919 + h) % kept);
    }
    FOR_EACH_BACKEND(f)
    {
        uint8_t *out = kf_out(f, 2 * bytes);
        struct smg_gather_args a = {
            .blocks = {tokens, layout->grid.blocks, heads, half, kf_in(f, start, (layout->grid.blocks + 1) * sizeof *start)},
            .kv = kf_in(f, kv + layout->layer_offset[number], 2 * bytes),
            .ids = kf_in(f, ids, entries * sizeof *ids),
            .ids_start = kf_in(f, at, heads * sizeof *at),
            .row_entries = kf_in(f, rows, heads * sizeof *rows),
            .max_row_entries = kept,
            .k_out = out,
            .v_out = out + bytes};
        a.to_start = a.ids_start;
        kf_ok(f, smg_gather(f->k, &a, NULL));
        kf_get(f, got, out, 2 * bytes);
        for (uint32_t h = 0; h < heads; h++)
            for (uint64_t i = at[h]; i < at[h] + kept; i++)
                for (int v = 0; v < 2; v++)
                    if (!smg_content_is(77, request, number, h, (uint32_t)ids[i], v, half, got + v * bytes + i * half))
                        fail_msg("%s: head %u, token %d, %c", smg_kernels_where(f->k), h, ids[i], "KV"[v]);
    }
    free(kv);
    free(got);
    free(rows);
    free(start);
    free(at);
    free(ids);
}

static void test_emulated(void **state)
{
    static const uint32_t prompts[] = {1, 33, 300};
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    for (int sliding = 0; sliding < 2; sliding++) {
        w.model = sliding ? fixture_sliding() : fixture_qwen3_14b();
        w.model.head_dim = 16; /* short entries: this is about where they lie */
        w.model.kv_heads = 3;
        w.model.window_tokens = sliding ? 100 : 0;
        w.scenario.blocks_per_layer = 41;
        for (uint32_t i = 0; i < 3; i++) {
            struct smg_request_spec request = fixture_request(prompts[i]);
            struct smg_layout layout;
            w.requests = &request;
            w.n_requests = 1;
            smg_layout_init(&layout, &w, 0, 0);
            check_emulated(&layout, 0, 3);  /* slides, if any does */
            check_emulated(&layout, 0, 11); /* keeps everything */
        }
    }
}

/* ---- Sizes ---- */

static void test_idle(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        for (int i = 0; i < 4; i++) { /* a size of 0: nothing is read or written */
            struct smg_kv_blocks b = {1, 1, 1, 4, NULL};
            *(i == 0 ? &b.tokens : i == 1 ? &b.blocks : i == 2 ? &b.heads : &b.half_bytes) = 0;
            kf_ok(f, smg_pack(f->k, &(struct smg_pack_args){.blocks = b}, NULL));
            kf_ok(f, smg_unpack(f->k, &(struct smg_unpack_args){.blocks = b}, NULL));
            kf_ok(f, smg_gather(f->k, &(struct smg_gather_args){.blocks = b, .max_row_entries = 1}, NULL));
        }
        kf_ok(f, smg_gather(f->k, &(struct smg_gather_args){.blocks = {1, 1, 1, 4, NULL}}, NULL));
        kf_ok(f, smg_scatter(f->k, &(struct smg_scatter_args){.heads = 1, .half_bytes = 4}, NULL));
        kf_ok(f, smg_scatter(f->k, &(struct smg_scatter_args){.heads = 1, .max_row_entries = 1}, NULL));
        kf_ok(f, smg_scatter(f->k, &(struct smg_scatter_args){.max_row_entries = 1, .half_bytes = 4}, NULL));
    }
}

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_pack_args p = {.blocks = {1, 1, 1, 6, NULL}};
        struct smg_unpack_args u = {.blocks = {UINT32_C(1) << 31, 1, 1, 4, NULL}};
        struct smg_gather_args g = {.blocks = {INT32_MAX, 1, UINT32_MAX, 64, NULL}, .max_row_entries = 1};
        struct smg_scatter_args s = {.heads = 1, .max_row_entries = 1, .half_bytes = 2};
        assert_int_equal(smg_pack(f->k, &p, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "pack: half_bytes 6 is no multiple of 4");
        assert_int_equal(smg_unpack(f->k, &u, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "unpack: 2147483648 tokens in 1 blocks, ids reach 2^31 - 1");
        assert_int_equal(smg_gather(f->k, &g, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k),
                            "gather: 2147483647 tokens of 4294967295 heads of 2 * 64 bytes are too many bytes");
        assert_int_equal(smg_scatter(f->k, &s, NULL), SMG_ERR_INVALID);
        assert_string_equal(smg_kernels_diag(f->k), "scatter: half_bytes 2 is no multiple of 4");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),     cmocka_unit_test(test_gather), cmocka_unit_test(test_gather_pieces),
        cmocka_unit_test(test_emulated), cmocka_unit_test(test_idle),   cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
