/* Sizes of the selectors' kernels. */
#include <math.h>

#include "kernels/backend.h"

/* Rows of queries and keys are held in fast memory: no model has wider ones. */
enum { MOST_WIDTH = 1024, MOST_BITS = 1024 };

/* Does [a][b][c] of 4 bytes fit into the memory of a machine? */
static int too_large(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t n;

    return __builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, c, &n) || n > (SIZE_MAX >> 4);
}

static int refuse_large(struct smg_kernels *k, const char *name)
{
    return smg_kernels_refuse(k, "%s: the product of the sizes does not fit", name);
}

static int check_type(struct smg_kernels *k, const char *name, enum smg_dtype type)
{
    return smg_dtype_bytes(type) ? SMG_OK : smg_kernels_refuse(k, "%s: %d is no type of elements", name, (int)type);
}

static int check_groups(struct smg_kernels *k, const char *name, uint32_t heads, uint32_t kv_heads)
{
    if (kv_heads && heads % kv_heads == 0)
        return SMG_OK;
    return smg_kernels_refuse(k, "%s: %u query heads cannot be shared out to %u KV heads", name, heads, kv_heads);
}

static int check_width(struct smg_kernels *k, const char *name, const char *what, uint32_t width)
{
    if (width <= MOST_WIDTH)
        return SMG_OK;
    return smg_kernels_refuse(k, "%s: %s %u, at most %d", name, what, width, MOST_WIDTH);
}

/* ---- Queries and keys ---- */

int smg_check_rotate(struct smg_kernels *k, const struct smg_rotate_args *a)
{
    int status = check_type(k, "rotate", a->type);

    if (!status)
        status = check_width(k, "rotate", "head_dim", a->head_dim);
    if (status)
        return status;
    if (a->head_dim % 2)
        return smg_kernels_refuse(k, "rotate: head_dim %u is odd", a->head_dim);
    if (a->theta != 0 && !(a->theta > 0 && isfinite(a->theta)))
        return smg_kernels_refuse(k, "rotate: theta %g, expected 0 or a positive number", (double)a->theta);
    if (!(a->eps >= 0))
        return smg_kernels_refuse(k, "rotate: eps %g, expected at least 0", (double)a->eps);
    if (too_large(a->rows, a->heads, a->head_dim))
        return refuse_large(k, "rotate");
    if (!a->rows || !a->heads || !a->head_dim || (!a->weight && a->theta == 0))
        return SMG_KERNEL_IDLE;
    return SMG_OK;
}

int smg_check_project(struct smg_kernels *k, const struct smg_project_args *a)
{
    int status = check_type(k, "project", a->type);

    if (status)
        return status;
    if (too_large(a->rows, a->in, 1) || too_large(a->in, a->out, 1) || too_large(a->rows, a->out, 1))
        return refuse_large(k, "project");
    return a->rows && a->out ? SMG_OK : SMG_KERNEL_IDLE;
}

int smg_check_skew(struct smg_kernels *k, const struct smg_skew_args *a)
{
    int status = check_type(k, "skew", a->type);

    if (!status)
        status = check_type(k, "skew", a->out_type);
    if (status)
        return status;
    if (!a->rows || !a->heads || !a->width)
        return SMG_KERNEL_IDLE;
    if (a->head_dim > 256)
        return smg_kernels_refuse(k, "skew: head_dim %u, at most 256", a->head_dim);
    if (a->width > a->head_dim)
        return smg_kernels_refuse(k, "skew: width %u is more than head_dim %u", a->width, a->head_dim);
    status = check_groups(k, "skew", a->heads, a->kv_heads);
    if (status)
        return status;
    return too_large(a->rows, a->heads, a->head_dim) ? refuse_large(k, "skew") : SMG_OK;
}

/* ---- Scores ---- */

int smg_check_scores(struct smg_kernels *k, const struct smg_scores_args *a)
{
    int status = check_type(k, "scores", a->type);

    if (!status)
        status = check_width(k, "scores", "width", a->width);
    if (status)
        return status;
    if (!a->requests || !a->q_heads || !a->max_tokens)
        return SMG_KERNEL_IDLE;
    status = check_groups(k, "scores", a->q_heads, a->kv_heads);
    if (status)
        return status;
    return too_large(a->requests, a->q_heads, a->max_tokens) ? refuse_large(k, "scores") : SMG_OK;
}

int smg_check_threshold(struct smg_kernels *k, const struct smg_threshold_args *a)
{
    if (!(a->alpha >= 0))
        return smg_kernels_refuse(k, "threshold: alpha %g, expected at least 0", (double)a->alpha);
    if (!a->requests)
        return SMG_KERNEL_IDLE;
    if (!a->q_heads)
        return smg_kernels_refuse(k, "threshold: q_heads is 0");
    return too_large(a->requests, a->q_heads, a->max_tokens) ? refuse_large(k, "threshold") : SMG_OK;
}

int smg_check_group_scores(struct smg_kernels *k, const struct smg_group_scores_args *a)
{
    int status;

    if (a->mode != SMG_GROUP_SOFTMAX_SUM && a->mode != SMG_GROUP_MAX && a->mode != SMG_GROUP_SUM)
        return smg_kernels_refuse(k, "group_scores: %d is no mode", (int)a->mode);
    if (!a->requests || !a->q_heads || !a->max_tokens)
        return SMG_KERNEL_IDLE;
    status = check_groups(k, "group_scores", a->q_heads, a->kv_heads);
    if (status)
        return status;
    return too_large(a->requests, a->q_heads, a->max_tokens) ? refuse_large(k, "group_scores") : SMG_OK;
}

/* ---- HATA ---- */

static int check_bits(struct smg_kernels *k, const char *name, uint32_t bits)
{
    if (bits && bits % 32 == 0 && bits <= MOST_BITS)
        return SMG_OK;
    return smg_kernels_refuse(k, "%s: %u bits, expected a multiple of 32, at most %d", name, bits, MOST_BITS);
}

int smg_check_hash_encode(struct smg_kernels *k, const struct smg_hash_encode_args *a)
{
    int status = check_type(k, "hash_encode", a->type);

    if (!status)
        status = check_bits(k, "hash_encode", a->bits);
    if (!status)
        status = check_width(k, "hash_encode", "head_dim", a->head_dim);
    if (status)
        return status;
    if (!a->rows || !a->heads)
        return SMG_KERNEL_IDLE;
    status = check_groups(k, "hash_encode", a->heads, a->kv_heads);
    if (status)
        return status;
    if (a->weight_heads != 1 && a->weight_heads != a->kv_heads)
        return smg_kernels_refuse(k, "hash_encode: %u weight heads, expected 1 or %u", a->weight_heads, a->kv_heads);
    if (too_large(a->rows, a->heads, a->head_dim) || too_large(a->rows, a->heads, a->bits / 32))
        return refuse_large(k, "hash_encode");
    return SMG_OK;
}

int smg_check_hash_scores(struct smg_kernels *k, const struct smg_hash_scores_args *a)
{
    int status = check_bits(k, "hash_scores", a->bits);

    if (status)
        return status;
    if (!a->requests || !a->max_tokens || !a->kv_heads)
        return SMG_KERNEL_IDLE;
    status = check_groups(k, "hash_scores", a->q_heads, a->kv_heads);
    if (status)
        return status;
    if (too_large((uint64_t)a->requests * a->max_tokens, a->kv_heads, a->bits / 32))
        return refuse_large(k, "hash_scores");
    return SMG_OK;
}

/* ---- Quest ---- */

int smg_check_page_update(struct smg_kernels *k, const struct smg_page_update_args *a)
{
    int status = check_type(k, "page_update", a->type);

    if (status)
        return status;
    if (!a->page)
        return smg_kernels_refuse(k, "page_update: page is 0");
    if (a->count > UINT32_MAX - a->first)
        return smg_kernels_refuse(k, "page_update: first %u and count %u are too many tokens", a->first, a->count);
    if (too_large(a->count, a->kv_heads, a->head_dim))
        return refuse_large(k, "page_update");
    return a->count && a->kv_heads && a->head_dim ? SMG_OK : SMG_KERNEL_IDLE;
}

int smg_check_page_scores(struct smg_kernels *k, const struct smg_page_scores_args *a)
{
    int status = check_type(k, "page_scores", a->type);

    if (!status)
        status = check_width(k, "page_scores", "head_dim", a->head_dim);
    if (status)
        return status;
    if (!a->requests || !a->kv_heads || !a->max_pages)
        return SMG_KERNEL_IDLE;
    status = check_groups(k, "page_scores", a->q_heads, a->kv_heads);
    if (status)
        return status;
    if (too_large((uint64_t)a->requests * a->max_pages, a->kv_heads, a->head_dim))
        return refuse_large(k, "page_scores");
    return SMG_OK;
}

int smg_check_page_expand(struct smg_kernels *k, const struct smg_page_expand_args *a)
{
    if (!a->row_group || !a->page)
        return smg_kernels_refuse(k, "page_expand: %s is 0", a->page ? "row_group" : "page");
    if (too_large(a->rows, a->n_pages, 1) || too_large(a->rows, a->k, 1))
        return refuse_large(k, "page_expand");
    return a->rows ? SMG_OK : SMG_KERNEL_IDLE;
}
