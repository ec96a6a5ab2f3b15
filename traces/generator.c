#include "traces/generator.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/status.h"

#define CLUSTERS_MAX  8u
#define CONTEXT_REACH 8 /* in context_tokens: exp(-8), nothing is left beyond */
#define OUT_OF_WINDOW -100.0f

/* Substreams, so that no two uses of the seed share numbers. */
enum { STREAM_LAYER = 1, STREAM_REQUEST, STREAM_HEAD, STREAM_STEP, STREAM_SHIFT, STREAM_SHIFTED_LAYER, STREAM_BOUNDARY };

static uint64_t stream_key(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b)
{
    return smg_hash3(smg_hash2(seed, stream), a, b);
}

/* The i-th uniform in [lo, hi) of a stream. */
static double uniform(uint64_t key, uint64_t i, double lo, double hi)
{
    return lo + (hi - lo) * (double)(smg_hash2(key, i) >> 11) * 0x1p-53;
}

/* ---- Life ---- */

static void fill_normal(struct smg_generator *g)
{
    uint32_t i;

    for (i = 0; i < SMG_GENERATOR_LEVELS; i++) {
        g->normal[i] = (float)gsl_cdf_ugaussian_Pinv((i + 0.5) / SMG_GENERATOR_LEVELS);
    }
}

int smg_generator_make(const struct smg_generator_params *p, const struct smg_model *m, uint64_t seed, double shift,
                       struct smg_generator **out)
{
    struct smg_generator *g = calloc(1, sizeof(*g));
    double speed = 0x1p32 / p->rotation_steps;

    if (g == NULL) {
        return SMG_ERR_NOMEM;
    }
    g->p = *p;
    g->model = m;
    g->seed = seed;
    g->shift = shift;
    g->wave_gain = (float)sqrt(p->persistence);
    g->step_gain = (float)sqrt(1 - p->persistence);
    g->speed = (uint32_t)(speed * (1 - p->rotation_spread));
    g->speed_spread = (uint32_t)(speed * 2 * p->rotation_spread / SMG_GENERATOR_LEVELS);
    fill_normal(g);
    *out = g;
    return SMG_OK;
}

int smg_generator_create(const struct smg_model *m, uint64_t seed, double shift, struct smg_generator **out,
                         struct smg_diag *diag)
{
    struct smg_generator_params p;
    int status = smg_generator_params_load(&p, diag);

    return status == SMG_OK ? smg_generator_make(&p, m, seed, shift, out) : status;
}

void smg_generator_destroy(struct smg_generator *g)
{
    free(g);
}

/* ---- Weights ---- */

static double depth_of(const struct smg_generator *g, uint32_t layer)
{
    return g->model->layers > 1 ? (double)layer / (g->model->layers - 1) : 0;
}

/* 1 in the sparse middle of the depth, 0 away from it. */
static double dip_of(const struct smg_generator *g, uint32_t layer)
{
    double d = (depth_of(g, layer) - g->p.dip_depth) / g->p.dip_width;

    return exp(-d * d);
}

uint32_t smg_generator_k(const struct smg_generator *g, uint32_t layer, uint32_t k)
{
    uint32_t fewer = g->p.dip_selected > 0 ? (uint32_t)(k * (1 - g->p.dip_selected * dip_of(g, layer))) : k;

    return fewer > 0 ? fewer : 1;
}

/* Shape of a layer; a function of its relative depth and of the seed. */
struct layer_shape {
    double plateau;
    uint32_t clusters, window_start;
    double centre[CLUSTERS_MAX], width[CLUSTERS_MAX], weight[CLUSTERS_MAX];
};

/* Domain shift: in some layers evaluated requests find other things important than calibration did. A larger shift takes in the
 * layers of a smaller one. */
static uint64_t cluster_key(const struct smg_generator *g, uint32_t request, uint32_t layer)
{
    int shifted = request < SMG_GENERATOR_CALIBRATION && uniform(stream_key(g->seed, STREAM_SHIFT, layer, 0), 0, 0, 1) < g->shift;

    return stream_key(g->seed, shifted ? STREAM_SHIFTED_LAYER : STREAM_LAYER, layer, 0);
}

static void shape_of(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t tokens, struct layer_shape *s)
{
    const struct smg_generator_params *p = &g->p;
    uint64_t key = cluster_key(g, request, layer);
    uint32_t c;

    s->plateau =
        p->plateau_weight * (p->plateau_mean + p->plateau_swing * cos(2 * M_PI * (depth_of(g, layer) - p->plateau_peak)));
    s->plateau *= 1 - p->dip_plateau * dip_of(g, layer);
    s->window_start = tokens - smg_model_layer_tokens(g->model, layer, tokens);
    s->clusters = (uint32_t)uniform(key, 0, floor(p->clusters_min), floor(p->clusters_max) + 1);
    for (c = 0; c < s->clusters; c++) {
        s->centre[c] = uniform(key, 3 * c + 1, 0, 1);
        s->width[c] = uniform(key, 3 * c + 2, p->cluster_width_min, p->cluster_width_max);
        s->weight[c] = uniform(key, 3 * c + 3, p->cluster_weight_min, p->cluster_weight_max);
    }
}

static double universal_weight(const struct smg_generator_params *p, const struct layer_shape *s, uint32_t token, uint32_t tokens)
{
    double u = (token + 0.5) / tokens, v = p->floor_weight, d;
    uint32_t c;

    v += token < p->sink_tokens ? p->sink_weight : 0;
    v += s->plateau / (1 + exp(-(u - p->plateau_start) / p->plateau_edge));
    d = (tokens - 1 - token) / p->near_tokens;
    v += d < 40 ? p->near_weight * exp(-d) : 0;
    for (c = 0; c < s->clusters; c++) {
        d = (u - s->centre[c]) / s->width[c];
        v += fabs(d) < 6 ? s->weight[c] * exp(-d * d / 2) : 0;
    }
    return v;
}

void smg_generator_universal(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t tokens, uint32_t first,
                             uint32_t stride, uint32_t n, float *out)
{
    struct layer_shape shape;
    uint32_t i, token;

    shape_of(g, request, layer, tokens, &shape);
    for (i = 0; i < n; i++) {
        token = first + i * stride;
        out[i] = token < shape.window_start ? OUT_OF_WINDOW
                                            : (float)(g->p.universal_gain * log(universal_weight(&g->p, &shape, token, tokens)));
    }
}

static void add_context_cluster(const struct smg_generator *g, struct smg_generator_weight *weight, uint32_t tokens,
                                uint32_t stride, uint32_t centre, double strength)
{
    double reach = CONTEXT_REACH * g->p.context_tokens;
    uint32_t first = centre > reach ? (uint32_t)(centre - reach) : 0, i;
    uint32_t end = centre + reach < tokens ? (uint32_t)(centre + reach) : tokens;

    for (i = (first + stride - 1) / stride; i * stride < end; i++) {
        double distance = fabs((double)i * stride - centre) / g->p.context_tokens;
        weight[i].context += (float)(g->p.context_gain * strength * exp(-distance));
    }
}

void smg_generator_weights(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t tokens, uint32_t stride,
                           struct smg_generator_weight *weight)
{
    const struct smg_generator_params *p = &g->p;
    uint64_t key = stream_key(g->seed, STREAM_REQUEST, request, layer);
    uint32_t clusters = (uint32_t)ceil(p->context_per_token * tokens), n = (tokens + stride - 1) / stride, i;

    for (i = 0; i < n; i += 256) {
        float universal[256];
        uint32_t part = n - i < 256 ? n - i : 256, j;

        smg_generator_universal(g, request, layer, tokens, i * stride, stride, part, universal);
        for (j = 0; j < part; j++) {
            weight[i + j] = (struct smg_generator_weight){universal[j], 0};
        }
    }
    for (i = 0; i < clusters; i++) {
        add_context_cluster(g, weight, tokens, stride, (uint32_t)uniform(key, 2 * i, 0, tokens),
                            uniform(key, 2 * i + 1, p->context_strength_min, p->context_strength_max));
    }
}

int smg_generator_scratch_create(uint32_t tokens, struct smg_generator_scratch *out)
{
    out->key = malloc(2 * ((size_t)tokens + 1) * sizeof(*out->key));
    out->near = out->key != NULL ? out->key + tokens : NULL;
    out->tokens = tokens;
    return out->key != NULL ? SMG_OK : SMG_ERR_NOMEM;
}

void smg_generator_scratch_destroy(struct smg_generator_scratch *s)
{
    free(s->key);
    *s = (struct smg_generator_scratch){NULL, NULL, 0};
}

/* ---- Scores ---- */

/* z as an unsigned number of fixed point, so that selection needs no comparison of floats: z of -16 to 48 becomes 0 to 2^32. */
static uint32_t fixed_point(float z)
{
    float shifted = (z + 16.0f) * 0x1p26f;

    if (shifted <= 0) {
        return 0;
    }
    return shifted < 0x1.fffffep31f ? (uint32_t)shifted : 0xffffff00u;
}

/* A head in a step. */
struct head {
    uint64_t persistent_key, step_key;
    uint32_t step;
    float universal, context;
};

/* Semantic boundaries of a request's decode up to a step. */
static uint64_t boundaries(const struct smg_generator *g, uint32_t request, uint32_t step)
{
    uint64_t n = 0;
    uint32_t s;

    for (s = 2; s <= step && g->p.boundary_rate > 0; s++) {
        n += uniform(stream_key(g->seed, STREAM_BOUNDARY, request, s), 0, 0, 1) < g->p.boundary_rate;
    }
    return n;
}

static float variate(const struct smg_generator *g, uint32_t bits)
{
    return g->normal[bits >> 21];
}

static struct head head_of(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t head, uint32_t step)
{
    uint64_t key = smg_hash2(stream_key(g->seed, STREAM_HEAD, request, layer), head), bits = smg_hash2(key, 1);
    uint64_t drawn_anew = boundaries(g, request, step);
    struct head h = {.step = step};

    h.universal = 1 + (float)g->p.head_universal_spread * variate(g, (uint32_t)bits);
    h.context = 1 + (float)g->p.head_context_spread * variate(g, (uint32_t)(bits >> 32));
    h.context = h.context > 0 ? h.context : 0;
    h.persistent_key = drawn_anew > 0 ? smg_hash2(key, drawn_anew << 32) : key;
    h.step_key = smg_hash2(smg_hash2(key, STREAM_STEP), step);
    return h;
}

/* The wave of a token: 21 bits of phase, 11 bits of speed; it rises and falls through the quantiles once in a rotation. */
static inline float wave(const struct smg_generator *g, uint32_t bits, uint32_t step)
{
    uint32_t speed = g->speed + (bits & (SMG_GENERATOR_LEVELS - 1)) * g->speed_spread, phase = bits + step * speed;
    uint32_t triangle = phase & UINT32_C(0x80000000) ? ~phase : phase;

    return g->normal[triangle >> 20];
}

static inline uint32_t score_of(const struct smg_generator *g, const struct smg_generator_weight *w, const struct head *h,
                                uint32_t persistent, uint32_t fresh)
{
    return fixed_point(h->universal * w->universal + h->context * w->context + g->wave_gain * wave(g, persistent, h->step) +
                       g->step_gain * variate(g, fresh));
}

/* One hash serves a pair of tokens, half of its bits each. */
static void score(const struct smg_generator *g, const struct head *h, const struct smg_generator_weight *weight, uint32_t n,
                  uint32_t *key)
{
    uint64_t persistent, fresh;
    uint32_t p;

    for (p = 0; p < n; p += 2) {
        persistent = smg_mix64(h->persistent_key ^ p);
        fresh = smg_mix64(h->step_key ^ p);
        key[p] = score_of(g, &weight[p], h, (uint32_t)persistent, (uint32_t)fresh);
        if (p + 1 < n) {
            key[p + 1] = score_of(g, &weight[p + 1], h, (uint32_t)(persistent >> 32), (uint32_t)(fresh >> 32));
        }
    }
}

/* ---- Selection ---- */

/* Bits of a key that a pass of the selection looks at. */
#define TOP_SHIFT   20u
#define TOP_BUCKETS (1u << (32 - TOP_SHIFT))
#define DIGIT_SHIFT 10u
#define DIGITS      (1u << DIGIT_SHIFT)

/* The bucket that holds the *k-th largest; *k becomes its rank inside it. */
static uint32_t bucket_of_kth(const uint32_t *count, uint32_t buckets, uint32_t *k)
{
    uint32_t b = buckets - 1;

    while (count[b] < *k) {
        *k -= count[b--];
    }
    return b;
}

/* The k-th largest of n keys that agree above the digit at shift; keys outside are counted out by their prefix. */
static uint32_t refine(const uint32_t *key, uint32_t n, uint32_t prefix, uint32_t shift, uint32_t *k)
{
    uint32_t count[DIGITS] = {0}, p;

    for (p = 0; p < n; p++) {
        count[key[p] >> shift & (DIGITS - 1)] += key[p] >> (shift + DIGIT_SHIFT) == prefix;
    }
    return prefix << DIGIT_SHIFT | bucket_of_kth(count, DIGITS, k);
}

/* The k-th largest key, by digits from the top; *equal_out: how many keys equal to it belong to the k. near[n] is work space. */
static uint32_t kth_largest(const uint32_t *key, uint32_t n, uint32_t k, uint32_t *near, uint32_t *equal_out)
{
    uint32_t count[TOP_BUCKETS] = {0}, bucket, prefix, p, m = 0;

    for (p = 0; p < n; p++) {
        count[key[p] >> TOP_SHIFT]++;
    }
    bucket = bucket_of_kth(count, TOP_BUCKETS, &k);
    for (p = 0; p < n; p++) {
        near[m] = key[p];
        m += key[p] >> TOP_SHIFT == bucket;
    }
    prefix = refine(near, m, bucket, TOP_SHIFT - DIGIT_SHIFT, &k);
    prefix = refine(near, m, prefix, 0, &k);
    *equal_out = k;
    return prefix;
}

void smg_generator_row(const struct smg_generator *g, uint32_t request, uint32_t layer, uint32_t head, uint32_t step,
                       const struct smg_generator_weight *weight, uint32_t n, uint32_t k, struct smg_generator_scratch *scratch,
                       int32_t *index)
{
    struct head h = head_of(g, request, layer, head, step);
    uint32_t threshold, equal, p, found = 0;

    score(g, &h, weight, n, scratch->key);
    threshold = kth_largest(scratch->key, n, k, scratch->near, &equal);
    for (p = 0; p < n && found < k; p++) {
        if (scratch->key[p] > threshold) {
            index[found++] = (int32_t)p;
        } else if (scratch->key[p] == threshold && equal > 0) {
            index[found++] = (int32_t)p;
            equal--;
        }
    }
}
