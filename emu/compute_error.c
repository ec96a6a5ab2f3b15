/* How far an output of attention is from what it should be, measured by what rounding can do to it.
 *
 * In fp32 each product of a score is rounded by up to u = 2^-24 of its size, so the score of entry j is off by some u times
 * a_j = sum_i |q_i k_ji|, and its weight p_j by as much of itself, directly and through the sum of all weights; exponentials and
 * sums add some u. So channel c may be off by some u times the sizes of its terms,
 *
 *     sum_j p_j |v_jc| (8 + a_j + sum_i p_i a_i).
 *
 * That the output itself is small is no reason for it to be exact: its terms may cancel. With heads of 6 channels, the scores of
 * the planted tensors reach 100 and terms cancel to a tenth; the same u is then 1e-5 of the output. */
#include <math.h>

#include "emu/compute_priv.h"
#include "kernels/dtype.h"

/* What exponentials and sums add beside scores, in u. */
static const double other_roundings = 8;

/* The entries of one query head: weights p_j, and a_j beside them. */
struct terms {
    uint32_t n;
    double *weight, *size, mean; /* mean: sum_j p_j a_j */
};

static uint32_t length_of(const struct smg_attention_run *run, uint32_t head)
{
    return run->length ? run->length[head] : run->max_length;
}

static uint64_t place(const struct smg_attention_run *run, uint32_t head, uint32_t j)
{
    return head * run->head_stride + j * run->entry_stride;
}

/* Scores as the kernels make them, in double. */
static void score(const struct smg_attention_args *a, uint32_t query, uint32_t head, struct terms *t)
{
    t->n = 0;
    for (uint32_t r = 0; r < a->n_runs; r++) {
        const uint32_t length = length_of(&a->run[r], head);
        for (uint32_t j = 0; j < length; j++, t->n++) {
            const uint64_t at = place(&a->run[r], head, j);
            double sum = 0, size = 0;
            for (uint32_t c = 0; c < a->head_dim; c++) {
                float q = a->scale * smg_load(a->q, (uint64_t)query * a->head_dim + c, a->type);
                double product = (double)q * (double)smg_load(a->run[r].k, at + c, a->type);
                sum += product;
                size += fabs(product);
            }
            t->weight[t->n] = sum;
            t->size[t->n] = size;
        }
    }
}

static void weigh(struct terms *t)
{
    double most = -HUGE_VAL, sum = 0;

    for (uint32_t j = 0; j < t->n; j++)
        most = t->weight[j] > most ? t->weight[j] : most;
    for (uint32_t j = 0; j < t->n; j++)
        sum += t->weight[j] = exp(t->weight[j] - most);
    t->mean = 0;
    for (uint32_t j = 0; j < t->n; j++) {
        t->weight[j] /= sum;
        t->mean += t->weight[j] * t->size[j];
    }
}

/* sum[c]: the sizes of what channel c is made of. */
static void add_up(const struct smg_attention_args *a, uint32_t head, const struct terms *t, double *sum)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < a->head_dim; c++)
        sum[c] = 0;
    for (uint32_t r = 0; r < a->n_runs; r++) {
        const uint32_t length = length_of(&a->run[r], head);
        for (uint32_t j = 0; j < length; j++, n++) {
            const uint64_t at = place(&a->run[r], head, j);
            const double part = t->weight[n] * (other_roundings + t->size[n] + t->mean);
            for (uint32_t c = 0; c < a->head_dim; c++)
                sum[c] += part * fabs((double)smg_load(a->run[r].v, at + c, a->type));
        }
    }
}

static double ratio(double off, double of)
{
    double x = off > 0 ? off / of : 0;

    return isnan(off) || isnan(x) ? HUGE_VAL : x; /* an output that is no number is as wrong as can be */
}

/* One query head. */
static void note(const struct smg_attention_args *a, const float *out, const float *expected, const double *sum,
                 struct smg_compute_error *error)
{
    double most = 0;

    for (uint32_t c = 0; c < a->head_dim; c++)
        most = fmax(most, fabs((double)expected[c]));
    for (uint32_t c = 0; c < a->head_dim; c++) {
        double off = fabs((double)out[c] - (double)expected[c]);
        error->of_terms = fmax(error->of_terms, ratio(off, sum[c]));
        error->of_head = fmax(error->of_head, ratio(off, most));
    }
}

int smg_compute_error_of(struct smg_compute *c, const struct smg_attention_args *a, const float *out,
                         struct smg_compute_error *error)
{
    const uint32_t group = a->q_heads / a->kv_heads;
    double *buffer, sum[SMG_COMPUTE_MAX_DIM];
    struct terms t = {0};
    size_t most = 0;

    for (uint32_t r = 0; r < a->n_runs; r++)
        most += a->run[r].max_length;
    buffer = smg_compute_buffer(c, SMG_BUF_TERMS, 2 * most * sizeof *buffer);
    if (!buffer)
        return SMG_ERR_NOMEM;
    t.weight = buffer;
    t.size = buffer + most;
    *error = (struct smg_compute_error){0, 0};
    for (uint32_t query = 0; query < a->q_heads; query++) {
        const uint64_t at = (uint64_t)query * a->head_dim;
        score(a, query, query / group, &t);
        weigh(&t);
        add_up(a, query / group, &t, sum);
        note(a, out + at, a->out + at, sum, error);
    }
    return SMG_OK;
}
