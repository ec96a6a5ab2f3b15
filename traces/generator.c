#include "traces/generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/status.h"

/* How universal (beta), how context-dependent (kappa), how persistent over steps (rho, life). Set so that at 7,000 tokens, 1,000
 * blocks and 20% selected, consecutive steps overlap by 0.65 and the best 47.4% of the blocks hold 0.66 of the selections
 * (calibration point P023); tests/test_world.c measures both. */
#define BETA              0.5f
#define KAPPA             0.35f
#define PERSISTENT        0.9f        /* sqrt(rho), rho = 0.81 */
#define FRESH             0.43588989f /* sqrt(1 - rho) */
#define LIFE              16u         /* a power of 2 */

#define FLOOR_WEIGHT      0.35
#define SINKS             4u
#define SINK_WEIGHT       6.0
#define NEAR_WEIGHT       3.0
#define NEAR_TOKENS       64.0
#define CONTEXT_TOKENS    12.0
#define CONTEXT_REACH     96u /* exp(-8): nothing is left beyond */
#define CONTEXT_PER_TOKEN 0.006

/* Substreams, so that no two uses of the seed share numbers. */
enum { STREAM_LAYER = 1, STREAM_REQUEST, STREAM_HEAD, STREAM_STEP };

static uint64_t stream_key(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b)
{
    return smg_hash3(smg_hash2(seed, stream), a, b);
}

/* The i-th uniform in [lo, hi) of a stream. */
static double uniform(uint64_t key, uint64_t i, double lo, double hi)
{
    return lo + (hi - lo) * (double)(smg_hash2(key, i) >> 11) * 0x1p-53;
}

/* Sum of two uniforms, variance 1. A score adds two of these, which is close enough to a normal variate and cheap. */
static inline float noise(uint32_t bits)
{
    return (float)((int32_t)(bits & 0xffff) + (int32_t)(bits >> 16) - 65535) * (2.4494897f / 65536.0f);
}

/* Shape of a layer at relative depth x: the middle is sparse, the recency plateau strongest near a fifth of the depth. */
struct layer_shape {
    double plateau;
    uint32_t clusters;
    double centre[5], width[5], weight[5];
};

static void shape_of(uint64_t seed, uint32_t layer, uint32_t layers, struct layer_shape *s)
{
    uint64_t key = stream_key(seed, STREAM_LAYER, layer, 0);
    double x = layers > 1 ? (double)layer / (layers - 1) : 0, from_dip = (x - 0.36) / 0.07, dip = exp(-from_dip * from_dip);
    uint32_t c;

    s->plateau = 1.3 * (0.55 + 0.45 * cos(2 * M_PI * (x - 0.2))) * (1 - 0.8 * dip);
    s->clusters = 2 + (uint32_t)uniform(key, 0, 0, 4);
    for (c = 0; c < s->clusters; c++) {
        s->centre[c] = uniform(key, 3 * c + 1, 0, 1);
        s->width[c] = uniform(key, 3 * c + 2, 0.015, 0.065);
        s->weight[c] = uniform(key, 3 * c + 3, 0.3, 1.2);
    }
}

static double universal_weight(const struct layer_shape *s, uint32_t token, uint32_t tokens)
{
    double u = (token + 0.5) / tokens, v = FLOOR_WEIGHT, d;
    uint32_t c;

    v += token < SINKS ? SINK_WEIGHT : 0;
    v += s->plateau / (1 + exp(-(u - 0.75) / 0.015));
    v += NEAR_WEIGHT * exp(-(double)(tokens - 1 - token) / NEAR_TOKENS);
    for (c = 0; c < s->clusters; c++) {
        d = (u - s->centre[c]) / s->width[c];
        v += fabs(d) < 6 ? s->weight[c] * exp(-d * d / 2) : 0;
    }
    return v;
}

static void add_context_cluster(struct smg_generator_weight *weight, uint32_t tokens, uint32_t centre, double strength)
{
    uint32_t first = centre > CONTEXT_REACH ? centre - CONTEXT_REACH : 0, p;
    uint32_t end = centre + CONTEXT_REACH < tokens ? centre + CONTEXT_REACH : tokens;

    for (p = first; p < end; p++) {
        weight[p].context += KAPPA * (float)(strength * exp(-fabs((double)p - centre) / CONTEXT_TOKENS));
    }
}

void smg_generator_weights(uint64_t seed, uint32_t request, uint32_t layer, uint32_t layers, uint32_t tokens,
                           struct smg_generator_weight *weight)
{
    uint64_t key = stream_key(seed, STREAM_REQUEST, request, layer);
    uint32_t clusters = (uint32_t)ceil(CONTEXT_PER_TOKEN * tokens), p, j;
    struct layer_shape shape;

    shape_of(seed, layer, layers, &shape);
    for (p = 0; p < tokens; p++) {
        weight[p].universal = BETA * (float)log(universal_weight(&shape, p, tokens));
        weight[p].context = 0;
    }
    for (j = 0; j < clusters; j++) {
        add_context_cluster(weight, tokens, (uint32_t)uniform(key, 2 * j, 0, tokens), uniform(key, 2 * j + 1, 0.5, 2));
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

/* z as an unsigned number of fixed point, so that selection needs no comparison of floats: z of -16 to 48 becomes 0 to 2^32. */
static uint32_t fixed_point(float z)
{
    float shifted = (z + 16.0f) * 0x1p26f;

    if (shifted <= 0) {
        return 0;
    }
    return shifted < 0x1.fffffep31f ? (uint32_t)shifted : 0xffffff00u;
}

/* Universal and context factors of a head. */
struct head_factor {
    float universal, context;
};

static struct head_factor factor_of(uint64_t head_key)
{
    uint64_t bits = smg_hash2(head_key, 1);
    float context = 1 + 0.5f * noise((uint32_t)(bits >> 32));

    return (struct head_factor){1 + 0.25f * noise((uint32_t)bits), context > 0 ? context : 0};
}

static inline uint32_t score_of(const struct smg_generator_weight *w, struct head_factor f, uint32_t persistent, uint32_t fresh)
{
    return fixed_point(f.universal * w->universal + f.context * w->context + PERSISTENT * noise(persistent) +
                       FRESH * noise(fresh));
}

/* What persists is renewed every LIFE steps, pair by pair at different steps, so that entries nobody selected before keep coming.
 */
static uint64_t epoch_of(uint32_t step, uint32_t pair)
{
    return (uint64_t)((step + (pair * 0x9E3779B9u >> 28)) / LIFE) << 32;
}

/* One hash serves a pair of tokens, half of its bits each. */
static void score(uint64_t head_key, uint32_t step, const struct smg_generator_weight *weight, uint32_t tokens, uint32_t *key)
{
    struct head_factor f = factor_of(head_key);
    uint64_t step_key = smg_hash2(smg_hash2(head_key, STREAM_STEP), step), persistent, fresh;
    uint32_t p;

    for (p = 0; p < tokens; p += 2) {
        persistent = smg_mix64(head_key ^ (epoch_of(step, p / 2) | p));
        fresh = smg_mix64(step_key ^ p);
        key[p] = score_of(&weight[p], f, (uint32_t)persistent, (uint32_t)fresh);
        if (p + 1 < tokens) {
            key[p + 1] = score_of(&weight[p + 1], f, (uint32_t)(persistent >> 32), (uint32_t)(fresh >> 32));
        }
    }
}

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

void smg_generator_row(uint64_t seed, uint32_t request, uint32_t layer, uint32_t head, uint32_t step,
                       const struct smg_generator_weight *weight, uint32_t tokens, uint32_t k,
                       struct smg_generator_scratch *scratch, int32_t *index)
{
    uint64_t head_key = smg_hash2(stream_key(seed, STREAM_HEAD, request, layer), head);
    uint32_t threshold, equal, p, n = 0;

    score(head_key, step, weight, tokens, scratch->key);
    threshold = kth_largest(scratch->key, tokens, k, scratch->near, &equal);
    for (p = 0; p < tokens && n < k; p++) {
        if (scratch->key[p] > threshold) {
            index[n++] = (int32_t)p;
        } else if (scratch->key[p] == threshold && equal > 0) {
            index[n++] = (int32_t)p;
            equal--;
        }
    }
}
