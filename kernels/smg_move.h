/* Arguments of the kernels that count, split and move KV entries. Part of smg_kernels.h, which states the conventions. */
#ifndef SMG_KERNELS_SMG_MOVE_H
#define SMG_KERNELS_SMG_MOVE_H

#include <stdint.h>

/* The KV of one request in one layer, cut into blocks, as it lies in memory on both nodes: for each block in order K[H][n][d],
 * then V[H][n][d], n its tokens. Blocks follow one another. first_token: tokens before it are not kept (sliding layers, 0
 * otherwise). Block m covers tokens [start[m], start[m+1]) of those kept: start[0] = first_token, start[blocks] = tokens, not
 * descending; a block may be empty. Source of the grid: floor(m N/M). half_bytes: K (or V) of one entry, d elements; a multiple
 * of 4. What entries are copied from and to is aligned to 4 bytes; a GPU is faster with 16. */
struct smg_kv_blocks {
    uint32_t tokens, blocks, heads, half_bytes;
    const uint32_t *start; /* [blocks + 1] */
};

/* Counts selections by block: for each row and each id in index[row][0..k) with id >= 0, count[block of id] += 1. One layer of
 * one request; ids at or beyond tokens, or before start[0], are dropped. Adds to what is there (uint32, wraps). */
struct smg_importance_args {
    uint32_t rows, k;     /* rows = KV heads */
    const int32_t *index; /* [rows][k], -1 is padding */
    uint32_t tokens, blocks;
    const uint32_t *start; /* [blocks + 1] as in smg_kv_blocks */
    uint32_t *count;       /* [blocks], in and out */
};

/* Eq. 1, averaged over requests: I[m] = 1/R sum_r count[r][m] / (steps[r] H n[r][m]), n the tokens of block m in request r.
 * Requests with n = 0 or steps = 0 are left out of block m's mean; no request left: 0. In fp32, requests in order. */
struct smg_importance_mean_args {
    uint32_t requests, blocks, heads;
    const uint32_t *count;        /* [requests][blocks] */
    const uint32_t *block_tokens; /* [requests][blocks] */
    const uint32_t *steps;        /* [requests] decode steps counted */
    float *importance;            /* [blocks] */
};

/* Algorithm 1 in one pass: looks up the mask of each entry, splits by it, and puts remote entries first, each part in the order
 * of the input (a stable partition). mask: int8, 0 absent, 1 local, 2 remote; the row's request is row / heads. kept: bitmap of
 * entries that were fetched before, bit (id % 64) of word [row][id / 64]; such an entry is local. Dropped: index -1, id >= width,
 * mask 0. reorder 0: out_index keeps the input order of what is left. Then -1 up to k. out_index may not be index. */
struct smg_split_args {
    uint32_t rows, heads, k, width;
    const int32_t *index; /* [rows][k] */
    const int8_t *mask;   /* [rows / heads][width] */
    const uint64_t *kept; /* [rows][kept_words], or NULL */
    uint32_t kept_words;  /* at least (width + 63) / 64 with kept */
    int reorder;
    int32_t *out_index;           /* [rows][k] */
    uint32_t *n_remote, *n_local; /* [rows] */
    uint8_t *remote;              /* [rows][k] 1: remote, 0: local or padding, in the order of out_index; or NULL */
};

/* Token-major K[N][H][d] and V[N][H][d] (tokens before start[0] included) to blocks, or back; tokens before start[0] are not
 * touched. Bytes are copied as they are. */
struct smg_pack_args {
    struct smg_kv_blocks blocks;
    const void *k, *v; /* [tokens][heads][half_bytes] */
    void *kv;          /* blocks */
};
struct smg_unpack_args {
    struct smg_kv_blocks blocks;
    const void *kv;
    void *k, *v;
};

/* Collects entries out of blocks. Row h (one KV head) has row_entries[h] ids, ids[ids_start[h] + j]. Destination of entry j of
 * row h: K at k_out + (to_start[h] + j) * half_bytes, V at v_out + the same. With to_start = ids_start and v_out = k_out + all
 * entries * half_bytes that is the contiguous reply (all K rows, all V rows); with to_start[h] = h * cap (+ n_remote[h]) rows of
 * a device buffer. Ids outside [start[0], tokens) leave their place untouched. */
struct smg_gather_args {
    struct smg_kv_blocks blocks;
    const void *kv;
    const int32_t *ids;
    const uint64_t *ids_start;   /* [heads] */
    const uint32_t *row_entries; /* [heads] */
    uint32_t max_row_entries;    /* the largest of row_entries, or more */
    const uint64_t *to_start;    /* [heads] entries */
    void *k_out, *v_out;
};

/* Spreads a contiguous reply over rows: entry j of row h from k_in + (from_start[h] + j) * half_bytes to k_out + (to_start[h] +
 * j) * half_bytes, and V likewise. */
struct smg_scatter_args {
    uint32_t heads, half_bytes, max_row_entries;
    const uint32_t *row_entries;           /* [heads] */
    const uint64_t *from_start, *to_start; /* [heads] entries */
    const void *k_in, *v_in;
    void *k_out, *v_out;
};

#endif
