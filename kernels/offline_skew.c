/* InfiniGen's skewing: the basis from the queries of a prompt, and the columns that count. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/dtype.h"
#include "kernels/offline_blas.h"
#include "kernels/offline_calibration.h"

/* ---- Calibration tensors ---- */

static int invalid(struct smg_diag *diag, const char *why)
{
    snprintf(diag->text, sizeof diag->text, "calibration: %s", why);
    return SMG_ERR_INVALID;
}

static int all_finite(const void *x, uint64_t n, enum smg_dtype type)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(smg_load(x, i, type)))
            return 0;
    return 1;
}

int smg_calibration_check(const struct smg_calibration *c, struct smg_diag *diag)
{
    if (!c->kv_heads || !c->q_heads || c->q_heads % c->kv_heads)
        return invalid(diag, "q_heads must be a multiple of kv_heads, and neither 0");
    if (!c->head_dim || c->head_dim > 256)
        return invalid(diag, "head_dim must be 1 to 256");
    if (!c->tokens || (uint64_t)c->tokens * (c->q_heads / c->kv_heads) > INT32_MAX)
        return invalid(diag, "too few or too many tokens");
    if (!smg_dtype_bytes(c->type))
        return invalid(diag, "unknown type of elements");
    if (!all_finite(c->q, (uint64_t)c->tokens * c->q_heads * c->head_dim, c->type) ||
        !all_finite(c->k, (uint64_t)c->tokens * c->kv_heads * c->head_dim, c->type))
        return invalid(diag, "an element is not finite");
    return SMG_OK;
}

/* x[tokens][heads][d] of `heads` heads from `first`, as floats. */
static void take_heads(const void *x, const struct smg_calibration *c, uint32_t all, uint32_t first, uint32_t heads, float *to)
{
    uint64_t d = c->head_dim;

    for (uint64_t t = 0; t < c->tokens; t++)
        for (uint64_t i = 0; i < heads * d; i++)
            *to++ = smg_load(x, (t * all + first) * d + i, c->type);
}

void smg_calibration_keys(const struct smg_calibration *c, uint32_t kv_head, float *to)
{
    take_heads(c->k, c, c->kv_heads, kv_head, 1, to);
}

void smg_calibration_queries(const struct smg_calibration *c, uint32_t kv_head, float *to)
{
    uint32_t group = c->q_heads / c->kv_heads;

    take_heads(c->q, c, c->q_heads, kv_head * group, group, to);
}

/* ---- Basis ---- */

/* Queries averaged over the group, and rows of zeros where there are fewer tokens than channels. */
static void average(const struct smg_calibration *c, uint32_t kv_head, gsl_matrix *to)
{
    uint32_t group = c->q_heads / c->kv_heads;

    gsl_matrix_set_zero(to);
    for (uint64_t t = 0; t < c->tokens; t++)
        for (uint64_t j = 0; j < c->head_dim; j++) {
            double sum = 0;
            for (uint64_t h = (uint64_t)kv_head * group; h < (kv_head + 1) * (uint64_t)group; h++)
                sum += smg_load(c->q, (t * c->q_heads + h) * c->head_dim + j, c->type);
            gsl_matrix_set(to, t, j, sum / group);
        }
}

/* One-sided Jacobi would be shorter, but GSL's gives wrong results at 128 columns. */
int smg_skew_basis(const struct smg_calibration *c, float *basis, struct smg_diag *diag)
{
    size_t d = c->head_dim, rows = c->tokens < d ? d : c->tokens;
    gsl_matrix *u, *v;
    gsl_vector *s, *work;
    int status = smg_calibration_check(c, diag), code = GSL_SUCCESS;

    if (status)
        return status;
    u = gsl_matrix_alloc(rows, d);
    v = gsl_matrix_alloc(d, d);
    s = gsl_vector_alloc(d);
    work = gsl_vector_alloc(d);
    if (!u || !v || !s || !work) {
        snprintf(diag->text, sizeof diag->text, "out of memory for a basis of %zu tokens", rows);
        status = SMG_ERR_NOMEM;
    }
    for (uint32_t m = 0; !status && m < c->kv_heads; m++) {
        average(c, m, u);
        code = gsl_linalg_SV_decomp(u, v, s, work);
        if (code) {
            snprintf(diag->text, sizeof diag->text, "singular values of KV head %u: %s", m, gsl_strerror(code));
            status = SMG_ERR_INVALID;
        }
        for (size_t i = 0; !code && i < d * d; i++)
            basis[m * d * d + i] = (float)gsl_matrix_get(v, i / d, i % d);
    }
    gsl_matrix_free(u);
    gsl_matrix_free(v);
    gsl_vector_free(s);
    gsl_vector_free(work);
    return status;
}

/* ---- Columns ---- */

uint32_t smg_skew_width(uint32_t head_dim)
{
    uint32_t width = head_dim * 3 / 10;

    return width ? width : 1;
}

/* sum[j] = sum over rows of |x A|, x[rows][d]; skewed: as large as x. */
static void add_magnitudes(const float *x, uint64_t rows, uint32_t d, const float *basis, float *skewed, double *sum)
{
    const struct smg_gemm g = {
        .m = (int)rows, .n = (int)d, .k = (int)d, .a = x, .lda = (int)d, .b = basis, .ldb = (int)d, .c = skewed, .ldc = (int)d};

    smg_gemm(&g);
    for (uint64_t i = 0; i < rows * d; i++)
        sum[i % d] += fabs((double)skewed[i]);
}

/* Takes the best column that is free; ties: the lowest. */
static void take_best(const double *sum, uint32_t d, unsigned char *taken)
{
    uint32_t best = d;

    for (uint32_t j = 0; j < d; j++)
        if (!taken[j] && (best == d || sum[j] > sum[best]))
            best = j;
    taken[best] = 1;
}

/* The best of q and of k in turn; one that the other has taken already counts as its. */
static void take_union(const double *q, const double *k, uint32_t d, uint32_t width, unsigned char *taken)
{
    unsigned char of_q[256] = {0}, of_k[256] = {0};
    uint32_t n = 0;

    while (n < width) {
        take_best(q, d, of_q);
        take_best(k, d, of_k);
        for (int side = 0; side < 2; side++)
            for (uint32_t j = 0; j < d && n < width; j++)
                if ((side ? of_k : of_q)[j] && !taken[j]) {
                    taken[j] = 1;
                    n++;
                }
    }
}

static void choose(const double *q, const double *k, uint32_t d, enum smg_skew_mode mode, uint32_t width, uint8_t *columns)
{
    unsigned char taken[256] = {0};
    double sum[256];

    for (uint32_t j = 0; j < d; j++)
        sum[j] = q[j] + (mode == SMG_SKEW_QK_SUM ? k[j] : 0);
    if (mode == SMG_SKEW_UNION)
        take_union(q, k, d, width, taken);
    else
        for (uint32_t i = 0; i < width; i++)
            take_best(sum, d, taken);
    for (uint32_t j = 0; j < d; j++)
        if (taken[j])
            *columns++ = (uint8_t)j;
}

int smg_skew_columns(const struct smg_calibration *c, const float *basis, enum smg_skew_mode mode, uint32_t width,
                     uint8_t *columns, struct smg_diag *diag)
{
    int status = smg_calibration_check(c, diag);
    uint32_t d = c->head_dim;
    uint64_t rows;
    float *x, *skewed;

    if (status)
        return status;
    if (!width || width > d)
        return invalid(diag, "the columns kept must be 1 to head_dim");
    rows = (uint64_t)c->tokens * (c->q_heads / c->kv_heads);
    x = malloc(rows * d * sizeof *x);
    skewed = malloc(rows * d * sizeof *skewed);
    if (!x || !skewed) {
        snprintf(diag->text, sizeof diag->text, "out of memory for the columns of %u tokens", c->tokens);
        status = SMG_ERR_NOMEM;
    }
    for (uint32_t m = 0; !status && m < c->kv_heads; m++) {
        const float *a = basis + (uint64_t)m * d * d;
        double q[256] = {0}, k[256] = {0};
        smg_calibration_queries(c, m, x);
        add_magnitudes(x, rows, d, a, skewed, q);
        smg_calibration_keys(c, m, x);
        add_magnitudes(x, c->tokens, d, a, skewed, k);
        choose(q, k, d, mode, width, columns + (uint64_t)m * width);
    }
    free(x);
    free(skewed);
    return status;
}
