/* Moving KV entries: runs of entries are shared among threads. Gathering reads at random, so it asks memory for entries some way
 * ahead of the one that it copies. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/blocks.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

enum {
    PIECE_BYTES = 256 * 1024, /* copied by a piece of a loop */
    AHEAD = 8,                /* entries asked for before they are copied */
    LINE = 64
};

/* Copies the K (or V) of one entry: halves are short, so a call of memcpy shows. One for each instruction set. */
#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_move_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_move_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

typedef void (*copy_fn)(char *k_to, char *v_to, const char *k_from, const char *v_from, uint32_t half);

static copy_fn copy_of(const struct smg_kernels *k)
{
    return k->isa == SMG_ISA_AVX2 ? copy_entry_avx2 : copy_entry_base;
}

/* Rows cut into chunks, row after row: piece p is chunk p % chunks of row p / chunks. */
struct pieces {
    uint32_t entries; /* of a chunk */
    uint64_t chunks;  /* of a row */
};

static struct pieces cut(uint32_t max_row_entries, uint32_t half_bytes)
{
    const uint32_t entries = 1 + PIECE_BYTES / 2 / half_bytes;

    return (struct pieces){entries, ((uint64_t)max_row_entries + entries - 1) / entries};
}

/* Entries [*j, *end) of row *h. */
static void piece_of(const struct pieces *p, uint64_t piece, const uint32_t *row_entries, uint32_t *h, uint32_t *j, uint32_t *end)
{
    const uint64_t lo = piece % p->chunks * p->entries, n = row_entries[ *h = (uint32_t)(piece / p->chunks)];

    *j = (uint32_t)(lo < n ? lo : n);
    *end = (uint32_t)(n - *j < p->entries ? n : *j + p->entries);
}

/* ---- gather ---- */

struct gathering {
    const struct smg_gather_args *a;
    struct pieces pieces;
    uint64_t scale;
    copy_fn copy;
};

struct entry {
    const char *k, *v; /* NULL: an id to leave out */
};

/* Finds an entry, and asks for its bytes. */
static struct entry look_ahead(const struct gathering *g, uint32_t h, int32_t id)
{
    const struct smg_kv_blocks *b = &g->a->blocks;
    struct entry e = {NULL, NULL};
    uint64_t to_v;

    if (!smg_id_kept(id, b->start[0], b->tokens))
        return e;
    e.k = (const char *)g->a->kv +
          smg_entry_at(b, smg_block_of(b->start, b->blocks, g->scale, (uint32_t)id), h, (uint32_t)id, &to_v);
    e.v = e.k + to_v;
    for (uint32_t at = 0; at < b->half_bytes; at += LINE) {
        __builtin_prefetch(e.k + at);
        __builtin_prefetch(e.v + at);
    }
    return e;
}

static void gather_run(const struct gathering *g, uint32_t h, uint32_t j, uint32_t end)
{
    const struct smg_gather_args *a = g->a;
    const uint32_t half = a->blocks.half_bytes, first = j;
    const int32_t *ids = a->ids + a->ids_start[h];
    char *k_out = (char *)a->k_out + a->to_start[h] * half, *v_out = (char *)a->v_out + a->to_start[h] * half;
    struct entry ring[AHEAD];

    for (; j < end && j - first < AHEAD; j++)
        ring[j - first] = look_ahead(g, h, ids[j]);
    for (uint32_t i = first, slot = 0; i < end; i++) {
        const struct entry e = ring[slot];
        if (j < end)
            ring[slot] = look_ahead(g, h, ids[j++]);
        slot = slot + 1 < AHEAD ? slot + 1 : 0;
        if (e.k)
            g->copy(k_out + (uint64_t)i * half, v_out + (uint64_t)i * half, e.k, e.v, half);
    }
}

static void gather_pieces(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct gathering *g = arg;

    (void)worker;
    for (uint64_t p = lo; p < hi; p++) {
        uint32_t h, j, end;
        piece_of(&g->pieces, p, g->a->row_entries, &h, &j, &end);
        if (j < end)
            gather_run(g, h, j, end);
    }
}

int smg_cpu_gather(struct smg_kernels *k, const struct smg_gather_args *a, struct smg_stream *stream)
{
    struct gathering g = {a, cut(a->max_row_entries, a->blocks.half_bytes), smg_block_scale(a->blocks.tokens, a->blocks.blocks),
                          copy_of(k)};

    (void)stream;
    smg_threads_run(k->threads, a->blocks.heads * g.pieces.chunks, 1, gather_pieces, &g);
    return SMG_OK;
}

/* ---- scatter ---- */

struct scattering {
    const struct smg_scatter_args *a;
    struct pieces pieces;
};

static void scatter_pieces(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct scattering *s = arg;
    const struct smg_scatter_args *a = s->a;

    (void)worker;
    for (uint64_t p = lo; p < hi; p++) {
        uint32_t h, j, end;
        piece_of(&s->pieces, p, a->row_entries, &h, &j, &end);
        if (j < end) {
            const uint64_t from = (a->from_start[h] + j) * a->half_bytes, to = (a->to_start[h] + j) * a->half_bytes;
            memcpy((char *)a->k_out + to, (const char *)a->k_in + from, (size_t)(end - j) * a->half_bytes);
            memcpy((char *)a->v_out + to, (const char *)a->v_in + from, (size_t)(end - j) * a->half_bytes);
        }
    }
}

int smg_cpu_scatter(struct smg_kernels *k, const struct smg_scatter_args *a, struct smg_stream *stream)
{
    struct scattering s = {a, cut(a->max_row_entries, a->half_bytes)};

    (void)stream;
    smg_threads_run(k->threads, a->heads * s.pieces.chunks, 1, scatter_pieces, &s);
    return SMG_OK;
}

/* ---- pack and unpack ---- */

struct packing {
    struct smg_kv_blocks blocks;
    uint64_t scale;
    char *k, *v, *kv;
    int pack; /* or unpack */
    copy_fn copy;
};

/* Tokens lo .. hi - 1 of those kept. */
static void pack_tokens(void *arg, uint64_t lo, uint64_t hi, uint32_t worker)
{
    const struct packing *p = arg;
    const struct smg_kv_blocks *b = &p->blocks;
    const uint32_t first = b->start[0];
    uint32_t m = smg_block_of(b->start, b->blocks, p->scale, first + (uint32_t)lo);

    (void)worker;
    for (uint64_t i = lo; i < hi; i++) {
        const uint32_t t = first + (uint32_t)i;
        while (t >= b->start[m + 1])
            m++;
        for (uint32_t h = 0; h < b->heads; h++) {
            uint64_t to_v, at = smg_entry_at(b, m, h, t, &to_v);
            const uint64_t row = ((uint64_t)t * b->heads + h) * b->half_bytes; /* [t][h] */
            if (p->pack)
                p->copy(p->kv + at, p->kv + at + to_v, p->k + row, p->v + row, b->half_bytes);
            else
                p->copy(p->k + row, p->v + row, p->kv + at, p->kv + at + to_v, b->half_bytes);
        }
    }
}

static void pack_run(struct smg_kernels *k, struct packing *p)
{
    const struct smg_kv_blocks *b = &p->blocks;

    p->scale = smg_block_scale(b->tokens, b->blocks);
    smg_threads_run(k->threads, b->tokens - b->start[0], 1 + PIECE_BYTES / ((uint64_t)b->heads * b->half_bytes), pack_tokens, p);
}

int smg_cpu_pack(struct smg_kernels *k, const struct smg_pack_args *a, struct smg_stream *stream)
{
    struct packing p = {a->blocks, 0, (char *)a->k, (char *)a->v, a->kv, 1, copy_of(k)};

    (void)stream;
    pack_run(k, &p);
    return SMG_OK;
}

int smg_cpu_unpack(struct smg_kernels *k, const struct smg_unpack_args *a, struct smg_stream *stream)
{
    struct packing p = {a->blocks, 0, a->k, a->v, (char *)a->kv, 0, copy_of(k)};

    (void)stream;
    pack_run(k, &p);
    return SMG_OK;
}
