/* Arguments of the selectors: InfiniGen, HATA, Quest, exact top-k. Part of smg_kernels.h, which states the conventions.
 *
 * What they share: widths (head_dim, d') are at most 1024; tokens[b] beyond max_tokens are left out; scores are fp32; the order
 * of entries is (score descending, index ascending), so a top-k is unique; NaN counts as -inf, -0 as 0. The entry of the current
 * step is never a candidate. Sources: InfiniGen (OSDI'24, snu-comparch/InfiniGen), HATA (ACL Findings 2025, gpzlx1/HATA), Quest
 * (ICML'24, mit-han-lab/Quest); formulas in docs/kernels.md. */
#ifndef SMG_KERNELS_SMG_SELECT_H
#define SMG_KERNELS_SMG_SELECT_H

#include <stdint.h>

#include "kernels/smg_dtype.h"

/* In place: x[r][h][:] is divided by its root mean square and multiplied by weight (QK-norm; weight NULL: no norm), then rotated
 * (RoPE) at position[r]: pairs (j, j + d/2), angle position * theta^(-2j/d). theta 0: no rotation. d even. eps is added to the
 * mean square. */
struct smg_rotate_args {
    uint32_t rows, heads, head_dim;
    enum smg_dtype type;
    void *x;             /* [rows][heads][head_dim] */
    const float *weight; /* [head_dim] or NULL */
    float eps, theta;
    const uint32_t *position; /* [rows] */
};

/* y = x W, fp32 accumulation. InfiniGen's rehearsal: x is the attention input of layer l, W the query weight of layer l+1. */
struct smg_project_args {
    uint32_t rows, in, out;
    enum smg_dtype type; /* of x, w and y */
    const void *x;       /* [rows][in] */
    const void *w;       /* [in][out] */
    void *y;             /* [rows][out] */
};

/* y[r][h][c] = sum_j x[r][h][j] A[h / (heads / kv_heads)][j][columns[kv head][c]]: rows in the skewed basis A (orthogonal,
 * applied after RoPE), restricted to d' columns. columns NULL: all of them in order (d' = d). Columns beyond head_dim give 0. */
struct smg_skew_args {
    uint32_t rows, heads, kv_heads, head_dim, width; /* width d', at most head_dim; heads a multiple of kv_heads */
    enum smg_dtype type, out_type;
    const void *x;          /* [rows][heads][head_dim] */
    const float *basis;     /* [kv_heads][head_dim][head_dim] */
    const uint8_t *columns; /* [kv_heads][width], each < head_dim <= 256; or NULL */
    void *y;                /* [rows][heads][width] */
};

/* score[b][h][j] = scale * q[b][h] . key[b][j][h / G], j < tokens[b]; -inf for tokens[b] <= j < max_tokens. */
struct smg_scores_args {
    uint32_t requests, q_heads, kv_heads, width; /* width: elements of a query, d or d' */
    uint32_t max_tokens;
    enum smg_dtype type; /* of q and key */
    const void *q;       /* [requests][q_heads][width] */
    const void *key;     /* key[b][j][h] at b * request_stride + j * token_stride + h * head_stride, elements */
    uint64_t request_stride, token_stride, head_stride;
    const uint32_t *tokens; /* [requests] */
    float scale;            /* 1/sqrt(d), d the whole head_dim also for partial keys */
    float *score;           /* [requests][q_heads][max_tokens] */
};

/* n[b][h] = #{ j < tokens[b] : score[b][h][j] > max_j score[b][h][j] - alpha }, and keep[b] = clamp(floor(mean over h of n), 1,
 * min(k_max[b], tokens[b])); 0 where tokens[b] or k_max[b] is 0. Strict ">" as the speed code of InfiniGen; alpha = +inf gives
 * the bound, where all scores are finite. NaN scores are never counted; a row whose maximum is infinite counts nothing. */
struct smg_threshold_args {
    uint32_t requests, q_heads, max_tokens;
    const float *score;             /* [requests][q_heads][max_tokens] */
    const uint32_t *tokens, *k_max; /* [requests] */
    float alpha;                    /* >= 0, in logits */
    uint32_t *count;                /* [requests][q_heads] */
    uint32_t *keep;                 /* [requests] */
};

/* Score of a KV head from those of its G query heads. SOFTMAX_SUM: sum_g softmax_j(score[b][h][:])[j]; MAX: max_g; SUM: sum_g, g
 * in order. j >= tokens[b] gets -inf. A row of -inf only gives softmax 0; in a row with +inf these entries share the weight. */
enum smg_group_mode { SMG_GROUP_SOFTMAX_SUM = 0, SMG_GROUP_MAX = 1, SMG_GROUP_SUM = 2 };
struct smg_group_scores_args {
    uint32_t requests, q_heads, kv_heads, max_tokens;
    enum smg_group_mode mode;
    const float *score;     /* [requests][q_heads][max_tokens] */
    const uint32_t *tokens; /* [requests] */
    float *group;           /* [requests][kv_heads][max_tokens] */
};

/* The k best of each row, k <= min(k_of_row, n_of_row): ids in order of score (BY_SCORE: score descending, then id ascending) or
 * of id (BY_INDEX: the same set, ids ascending), then -1 up to k. Candidates are j < n_of_row[r]; -inf (and NaN) scores are
 * candidates, last. */
enum smg_topk_order { SMG_TOPK_BY_SCORE = 0, SMG_TOPK_BY_INDEX = 1 };
struct smg_topk_args {
    uint32_t rows, n, k;
    enum smg_topk_order order;
    const float *score;       /* [rows][n] */
    const uint32_t *n_of_row; /* [rows / row_group], NULL: n */
    const uint32_t *k_of_row; /* [rows / row_group], NULL: k; more than k counts as k */
    uint32_t row_group;       /* rows that share an element of the two: KV heads of a request; >= 1 */
    int32_t *index;           /* [rows][k] */
    uint32_t *length;         /* [rows] ids that are not padding */
};

/* Code of x[r][h]: bit i of word i / 32, at i % 32, is 1 iff x . W[kv head][:, i] > 0. bits a multiple of 32, at most 1024. norm:
 * L2 norm of x, or NULL. weight_heads: kv_heads, or 1 for one weight shared by all heads. */
struct smg_hash_encode_args {
    uint32_t rows, heads, kv_heads, head_dim, bits, weight_heads;
    enum smg_dtype type;
    const void *x;       /* [rows][heads][head_dim] */
    const float *weight; /* [weight_heads][head_dim][bits] */
    uint32_t *code;      /* [rows][heads][bits / 32] */
    float *norm;         /* [rows][heads] or NULL */
};

/* hd = sum_g popcount(q code[b][h g] xor key code[b][j][h]); score = (G - 2 hd / bits) * norm[b][j][h] with norm, else -hd.
 * Larger is better. j >= tokens[b] gets -inf; j < sink and j >= tokens[b] - recent get +inf. */
struct smg_hash_scores_args {
    uint32_t requests, q_heads, kv_heads, bits, max_tokens;
    const uint32_t *q_code;   /* [requests][q_heads][bits / 32] */
    const uint32_t *key_code; /* [requests][max_tokens][kv_heads][bits / 32] */
    const float *norm;        /* [requests][max_tokens][kv_heads] or NULL */
    const uint32_t *tokens;   /* [requests] */
    uint32_t sink, recent;
    float *score; /* [requests][kv_heads][max_tokens] */
};

/* Brings the bounds of pages up to date with tokens [first, first + count) of one request: page p covers tokens [p page, (p+1)
 * page). A page whose first token is among them starts anew, others are widened. key: those tokens. */
struct smg_page_update_args {
    uint32_t first, count, kv_heads, head_dim, page; /* page >= 1 */
    enum smg_dtype type;
    const void *key;    /* [count][kv_heads][head_dim] */
    float *kmin, *kmax; /* [pages][kv_heads][head_dim], in and out */
};

/* bound[b][m][p] = sum_g sum_i max(q[b][h]_i kmax[p][m]_i, q[b][h]_i kmin[p][m]_i), p < pages[b]; -inf up to max_pages. The last
 * page gets +inf: it is always taken. At least sum_g q . key for each key of the page. */
struct smg_page_scores_args {
    uint32_t requests, q_heads, kv_heads, head_dim, max_pages;
    enum smg_dtype type;      /* of q */
    const void *q;            /* [requests][q_heads][head_dim] */
    const float *kmin, *kmax; /* [requests][max_pages][kv_heads][head_dim] */
    const uint32_t *pages;    /* [requests] */
    float *bound;             /* [requests][kv_heads][max_pages] */
};

/* Ids of the tokens of chosen pages, page by page in the given order, tokens ascending, at most k; then -1. Ids >= tokens[b] are
 * left out, as are pages of -1. */
struct smg_page_expand_args {
    uint32_t rows, row_group, n_pages, page, k; /* row_group: KV heads of a request */
    const int32_t *chosen;                      /* [rows][n_pages], -1 is padding */
    const uint32_t *tokens;                     /* [rows / row_group] */
    int32_t *index;                             /* [rows][k] */
    uint32_t *length;                           /* [rows] */
};

#endif
