/* The loss of HATA's training and its gradient. h(x) = 2 sigmoid(sigma x W) - 1 = tanh(sigma x W / 2), so dh/dz = sigma/2 (1 -
 * h^2). Sums of the loss are in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/offline_blas.h"
#include "kernels/offline_hata.h"

int smg_hata_work_create(struct smg_hata_work *w, uint32_t d, uint32_t bits, uint32_t pairs, uint32_t segments)
{
    size_t b = bits;

    *w = (struct smg_hata_work){.key_hash = malloc(pairs * b * sizeof(float)),
                                .query_hash = malloc(segments * b * sizeof(float)),
                                .query_side = malloc(segments * b * sizeof(float)),
                                .queries = malloc((size_t)segments * d * sizeof(float)),
                                .gram = malloc(b * b * sizeof(float)),
                                .balance = malloc(b * sizeof(double))};
    if (w->key_hash && w->query_hash && w->query_side && w->queries && w->gram && w->balance)
        return SMG_OK;
    smg_hata_work_destroy(w);
    return SMG_ERR_NOMEM;
}

void smg_hata_work_destroy(struct smg_hata_work *w)
{
    free(w->key_hash);
    free(w->query_hash);
    free(w->query_side);
    free(w->queries);
    free(w->gram);
    free(w->balance);
}

/* h[n][bits] of x[n][d]. */
static void hash(const struct smg_hata_params *p, uint32_t d, const float *weight, const float *x, uint32_t n, float *h)
{
    int bits = (int)p->bits;
    const struct smg_gemm g = {p->portable, 0, 0, (int)n, bits, (int)d, x, (int)d, weight, bits, 0, h, bits};

    smg_gemm(&g);
    for (uint64_t i = 0; i < (uint64_t)n * p->bits; i++)
        h[i] = tanhf(0.5f * p->sigma * h[i]);
}

/* gradient[d][bits] += x^T side, x[n][d] and side[n][bits]. */
static void add_outer(const struct smg_hata_params *p, uint32_t d, const float *x, uint32_t n, const float *side, float *gradient)
{
    int bits = (int)p->bits;
    const struct smg_gemm g = {p->portable, 1, 0, (int)d, bits, (int)n, x, (int)d, side, bits, 1, gradient, bits};

    smg_gemm(&g);
}

/* eta ||W^T W - I||_F, and its gradient 2 eta W (W^T W - I) / ||.||_F into gradient. */
static double decorrelation(const struct smg_hata_params *p, uint32_t d, const float *weight, float *gram, float *gradient)
{
    int bits = (int)p->bits;
    const struct smg_gemm product = {p->portable, 1, 0, bits, bits, (int)d, weight, bits, weight, bits, 0, gram, bits};
    const struct smg_gemm back = {p->portable, 0, 0, (int)d, bits, bits, weight, bits, gram, bits, 0, gradient, bits};
    double square = 0, norm;

    smg_gemm(&product);
    for (uint64_t i = 0; i < p->bits; i++)
        gram[i * p->bits + i] -= 1;
    for (uint64_t i = 0; i < (uint64_t)p->bits * p->bits; i++)
        square += (double)gram[i] * (double)gram[i];
    norm = sqrt(square);
    smg_gemm(&back);
    for (uint64_t i = 0; i < (uint64_t)d * p->bits; i++)
        gradient[i] *= norm > 0 ? (float)(2 * (double)p->eta / norm) : 0;
    return (double)p->eta * norm;
}

/* balance = 1/(n r) sum over pairs of h(q) + h(k); returns lambda ||balance||^2. */
static double balance_of(const struct smg_hata_params *p, const struct smg_hata_segment *segment, uint32_t segments,
                         uint64_t pairs, struct smg_hata_work *w)
{
    const float *key = w->key_hash;
    double square = 0;

    memset(w->balance, 0, p->bits * sizeof *w->balance);
    for (uint32_t s = 0; s < segments; s++)
        for (uint32_t j = 0; j < segment[s].n; j++, key += p->bits)
            for (uint32_t i = 0; i < p->bits; i++)
                w->balance[i] += (double)key[i] + (double)w->query_hash[(uint64_t)s * p->bits + i];
    for (uint32_t i = 0; i < p->bits; i++) {
        w->balance[i] /= (double)pairs * p->bits;
        square += w->balance[i] * w->balance[i];
    }
    return (double)p->lambda * square;
}

/* epsilon / n sum label ||h(q) - h(k)||^2 of one segment. Turns its key hashes into gradients at x W, and adds those of its query
 * to `side`. */
static double similarity(const struct smg_hata_params *p, const struct smg_hata_segment *segment, uint64_t pairs,
                         const double *balance, const float *query, float *key, float *side)
{
    float slope = 0.5f * p->sigma, even = 2 * p->lambda / ((float)pairs * (float)p->bits), near = p->epsilon / (float)pairs;
    double loss = 0;

    for (uint32_t j = 0; j < segment->n; j++, key += p->bits) {
        float weight = 2 * near * segment->label[j], square = 0;
        for (uint32_t i = 0; i < p->bits; i++) {
            float h = key[i], apart = h - query[i], level = even * (float)balance[i];
            square += apart * apart;
            side[i] += (level - weight * apart) * slope * (1 - query[i] * query[i]);
            key[i] = (level + weight * apart) * slope * (1 - h * h);
        }
        loss += (double)(near * segment->label[j]) * (double)square;
    }
    return loss;
}

double smg_hata_loss(const struct smg_hata_params *p, uint32_t d, const float *weight, const struct smg_hata_segment *segment,
                     uint32_t segments, struct smg_hata_work *w, float *gradient)
{
    double loss = decorrelation(p, d, weight, w->gram, gradient);
    uint64_t pairs = 0;

    for (uint32_t s = 0; s < segments; s++) {
        memcpy(w->queries + (uint64_t)s * d, segment[s].q, d * sizeof(float));
        hash(p, d, weight, segment[s].keys, segment[s].n, w->key_hash + pairs * p->bits);
        pairs += segment[s].n;
    }
    if (!pairs)
        return loss;
    hash(p, d, weight, w->queries, segments, w->query_hash);
    loss += balance_of(p, segment, segments, pairs, w);
    memset(w->query_side, 0, (size_t)segments * p->bits * sizeof(float));
    for (uint64_t s = 0, first = 0; s < segments; first += segment[s++].n) {
        float *key = w->key_hash + first * p->bits;
        loss += similarity(p, segment + s, pairs, w->balance, w->query_hash + s * p->bits, key, w->query_side + s * p->bits);
        add_outer(p, d, segment[s].keys, segment[s].n, key, gradient);
    }
    add_outer(p, d, w->queries, segments, w->query_side, gradient);
    return loss;
}
