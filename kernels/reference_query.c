/* Queries and keys on their way to scores, in the plainest loops: norm and rotation, projection, skewing. Sums are in double. */
#include <math.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"

static void normalise(const struct smg_rotate_args *a, double *x)
{
    double square = 0;

    for (uint32_t j = 0; j < a->head_dim; j++)
        square += x[j] * x[j];
    for (uint32_t j = 0; j < a->head_dim; j++)
        x[j] = x[j] / sqrt(square / a->head_dim + (double)a->eps) * (double)a->weight[j];
}

static void turn(const struct smg_rotate_args *a, uint32_t position, double *x)
{
    uint32_t half = a->head_dim / 2;

    for (uint32_t j = 0; j < half; j++) {
        double angle = position * pow((double)a->theta, -2.0 * j / a->head_dim);
        double u = x[j], v = x[j + half];
        x[j] = u * cos(angle) - v * sin(angle);
        x[j + half] = v * cos(angle) + u * sin(angle);
    }
}

int smg_reference_rotate(struct smg_kernels *k, const struct smg_rotate_args *a, struct smg_stream *stream)
{
    double x[1024];

    (void)k;
    (void)stream;
    for (uint64_t i = 0; i < (uint64_t)a->rows * a->heads; i++) {
        for (uint32_t j = 0; j < a->head_dim; j++)
            x[j] = smg_load(a->x, i * a->head_dim + j, a->type);
        if (a->weight)
            normalise(a, x);
        if (a->theta != 0)
            turn(a, a->position[i / a->heads], x);
        for (uint32_t j = 0; j < a->head_dim; j++)
            smg_store(a->x, i * a->head_dim + j, a->type, (float)x[j]);
    }
    return SMG_OK;
}

int smg_reference_project(struct smg_kernels *k, const struct smg_project_args *a, struct smg_stream *stream)
{
    (void)k;
    (void)stream;
    for (uint64_t r = 0; r < a->rows; r++)
        for (uint64_t o = 0; o < a->out; o++) {
            double sum = 0;
            for (uint64_t i = 0; i < a->in; i++)
                sum += (double)smg_load(a->x, r * a->in + i, a->type) * smg_load(a->w, i * a->out + o, a->type);
            smg_store(a->y, r * a->out + o, a->type, (float)sum);
        }
    return SMG_OK;
}

int smg_reference_skew(struct smg_kernels *k, const struct smg_skew_args *a, struct smg_stream *stream)
{
    uint32_t group = a->heads / a->kv_heads, d = a->head_dim;

    (void)k;
    (void)stream;
    for (uint64_t i = 0; i < (uint64_t)a->rows * a->heads; i++) {
        uint64_t m = i % a->heads / group; /* the KV head */
        for (uint64_t c = 0; c < a->width; c++) {
            uint64_t column = a->columns ? a->columns[m * a->width + c] : c;
            double sum = 0;
            for (uint64_t j = 0; j < d && column < d; j++)
                sum += (double)smg_load(a->x, i * d + j, a->type) * (double)a->basis[(m * d + j) * d + column];
            smg_store(a->y, i * a->width + c, a->out_type, (float)sum);
        }
    }
    return SMG_OK;
}
