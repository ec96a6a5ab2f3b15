/* Planted tensors: see the header. All randomness is a hash of what is asked for. Arithmetic is element by element, in one order,
 * so that results do not depend on the compiler's choice of vectors. */
#include "kernels/smg_planted.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/vec.h"
#define SMG_ISA_NAME(name) name##_base
#include "kernels/planted_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/planted_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

/* Positions over which the AR(1) process is summed: rho^16 is 0.07 of the newest at 0.85. */
enum { LAGS = 16, MOST_DIM = 256 };

/* What a hash is for. */
enum purpose {
    FOR_DIRECTION = 1,
    FOR_CLUSTER,
    FOR_STRENGTH,
    FOR_BACKGROUND,
    FOR_KEY,
    FOR_VALUE,
    FOR_HEAD,
    FOR_REQUEST,
    FOR_SHARED,
    FOR_OWN,
    FOR_QUERY,
    FOR_PHASE,
    FOR_REHEARSAL
};

void smg_planted_defaults(struct smg_planted *p, uint64_t seed, uint32_t q_heads, uint32_t kv_heads, uint32_t head_dim)
{
    *p = (struct smg_planted){.seed = seed,
                              .q_heads = q_heads,
                              .kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .topics = 16,
                              .cluster_every = 160,
                              .cluster_tokens = 24,
                              .sinks = 4,
                              .rotated = 3,
                              .theta = 1e6f,
                              .cluster = 3,
                              .background = 1.2f,
                              .interest_head = 0.4f,
                              .interest_request = 0.6f,
                              .interest_step = 0.6f,
                              .agree = 0.7f,
                              .rho = 0.85f,
                              .rotated_logit = 0.8f,
                              .rotated_size = 8,
                              .sink = 6,
                              .noise = 1,
                              .rehearsal = 0.95f};
}

static int refuse(struct smg_diag *diag, const char *why)
{
    snprintf(diag->text, sizeof diag->text, "planted tensors: %s", why);
    return SMG_ERR_INVALID;
}

int smg_planted_check(const struct smg_planted *p, struct smg_diag *diag)
{
    const float amount[] = {p->cluster,          p->background,    p->interest_head,
                            p->interest_request, p->interest_step, p->rotated_logit,
                            p->rotated_size,     p->sink,          p->noise};

    if (!p->kv_heads || !p->q_heads || p->q_heads % p->kv_heads)
        return refuse(diag, "q_heads must be a multiple of kv_heads, and neither 0");
    if (!p->head_dim || p->head_dim % 2 || p->head_dim > MOST_DIM)
        return refuse(diag, "head_dim must be even, 2 to 256");
    if (!p->topics || p->topics > SMG_PLANTED_MAX_TOPICS)
        return refuse(diag, "topics must be 1 to 64");
    if (!p->cluster_tokens || p->cluster_tokens > p->cluster_every)
        return refuse(diag, "cluster_tokens must be 1 to cluster_every");
    if (p->rotated > SMG_PLANTED_MAX_ROTATED || p->rotated > p->head_dim / 2)
        return refuse(diag, "rotated must be at most 8 and at most head_dim / 2");
    if (!(p->theta > 1) || !(p->agree >= 0 && p->agree <= 1) || !(p->rho >= 0 && p->rho <= 0.9f) ||
        !(p->rehearsal >= 0 && p->rehearsal <= 1))
        return refuse(diag, "theta must be above 1, agree and rehearsal 0 to 1, rho 0 to 0.9");
    for (size_t i = 0; i < sizeof amount / sizeof amount[0]; i++)
        if (!(amount[i] >= 0 && amount[i] < 1e6f))
            return refuse(diag, "strengths must be 0 to 1e6");
    if (p->rotated && !(p->rotated_size > 0))
        return refuse(diag, "rotated_size must be above 0");
    return SMG_OK;
}

/* ---- Numbers from hashes ---- */

static uint64_t hash_of(const struct smg_planted *p, enum purpose purpose, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return smg_hash3(smg_hash3(p->seed, (uint64_t)purpose, a), b, c << 32 ^ d);
}

static float uniform(uint64_t h)
{
    return (float)(h >> 40) * 0x1p-24f;
}

/* Whichever gives the same bits faster. */
static int has_avx2(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* x[i] += scale * normal, i < n rounded up to 8. */
static void add_normal(float *x, uint32_t n, uint64_t h, float scale)
{
    if (has_avx2())
        add_normal_avx2(x, n, (uint32_t)(h ^ h >> 32), scale);
    else
        add_normal_base(x, n, (uint32_t)(h ^ h >> 32), scale);
}

/* x[i] += scale * sign, the signs of one direction; likewise. */
static void add_direction(float *x, uint32_t n, uint64_t h, float scale)
{
    if (has_avx2())
        add_direction_avx2(x, n, h, scale);
    else
        add_direction_base(x, n, h, scale);
}

static void store(const float *x, uint32_t n, enum smg_dtype type, void *to)
{
    if (type == SMG_F32)
        memcpy(to, x, n * sizeof *x);
    else if (type == SMG_BF16 && has_avx2())
        store_bf16_avx2(x, n, to);
    else if (type == SMG_BF16)
        store_bf16_base(x, n, to);
    else
        for (uint32_t i = 0; i < n; i++)
            smg_store(to, i, type, x[i]);
}

/* ---- What keys and queries share ---- */

/* Both sides of a product of `logit`, divided by sqrt(d), over d channels of +-1. */
static float side(const struct smg_planted *p, float logit)
{
    return sqrtf(logit / sqrtf((float)p->head_dim));
}

/* Topic `topics` is the sinks' direction. */
static uint64_t direction(const struct smg_planted *p, uint32_t layer, uint32_t kv_head, uint32_t topic)
{
    return hash_of(p, FOR_DIRECTION, layer, kv_head, topic, 0);
}

/* Adds the rotated pairs at a position. They lie evenly in the slower half of the spectrum (three of 64, theta 1e6: a turn in
 * about 700, 6000 and 70000 tokens), with the same phase in keys and queries. */
static void add_rotated(const struct smg_planted *p, uint32_t layer, uint32_t kv_head, uint32_t position, float radius, float *x)
{
    uint32_t half = p->head_dim / 2;

    for (uint32_t i = 0; i < p->rotated; i++) {
        uint32_t j = half * 7 / 20 + half * i / (2 * p->rotated);
        double phase = 6.283185307179586 * uniform(hash_of(p, FOR_PHASE, layer, kv_head, i, 0));
        double angle = position * pow(p->theta, -(double)j / half) + phase;
        x[j] += radius * (float)cos(angle);
        x[j + half] += radius * (float)sin(angle);
    }
}

/* ---- Keys and values ---- */

/* Cluster number n lies around a token of [n every, (n+1) every). Its strength at a token: 1 in the centre, 0 beyond the width.
 */
static float cluster_at(const struct smg_planted *p, uint64_t request, uint32_t layer, uint64_t n, uint32_t token,
                        uint32_t *topic)
{
    uint64_t h = hash_of(p, FOR_CLUSTER, request, layer, n, 0);
    float centre = (float)p->cluster_every * uniform(h);
    float distance = fabsf((float)((int64_t)token - (int64_t)(n * p->cluster_every)) - centre);

    *topic = (uint32_t)(h & 0xffff) % p->topics;
    return distance < (float)p->cluster_tokens ? 1 - distance / (float)p->cluster_tokens : 0;
}

void smg_planted_key(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t kv_head, uint32_t token,
                     enum smg_dtype type, void *x)
{
    float v[MOST_DIM] = {0}, unit = side(p, 1);
    uint64_t n = token / p->cluster_every, h = hash_of(p, FOR_BACKGROUND, request, layer, token, kv_head);
    uint32_t topic;

    add_normal(v, p->head_dim, hash_of(p, FOR_KEY, request, layer, token, kv_head), 1);
    add_direction(v, p->head_dim, direction(p, layer, kv_head, (uint32_t)(h & 0xffff) % p->topics),
                  unit * p->background * (2 * uniform(h) - 1));
    for (uint64_t near = n ? n - 1 : 0; near <= n + 1; near++) {
        float strength = cluster_at(p, request, layer, near, token, &topic);
        if (strength <= 0)
            continue;
        strength *= 0.5f + uniform(hash_of(p, FOR_STRENGTH, request, layer, near, kv_head));
        add_direction(v, p->head_dim, direction(p, layer, kv_head, topic), unit * p->cluster * strength);
    }
    if (token < p->sinks)
        add_direction(v, p->head_dim, direction(p, layer, kv_head, p->topics), side(p, p->sink));
    add_rotated(p, layer, kv_head, token, p->rotated_size, v);
    store(v, p->head_dim, type, x);
}

void smg_planted_value(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t kv_head, uint32_t token,
                       enum smg_dtype type, void *x)
{
    float v[MOST_DIM] = {0};
    uint64_t n = token / p->cluster_every;
    uint32_t topic;

    add_normal(v, p->head_dim, hash_of(p, FOR_VALUE, request, layer, token, kv_head), 0.7f);
    for (uint64_t near = n ? n - 1 : 0; near <= n + 1; near++) {
        float strength = cluster_at(p, request, layer, near, token, &topic);
        if (strength > 0)
            add_direction(v, p->head_dim, ~direction(p, layer, kv_head, topic), strength);
    }
    store(v, p->head_dim, type, x);
}

/* ---- Queries ---- */

/* x[i] += scale * a stationary AR(1) process of deviation 1 along positions, one for each i; cut off after LAGS. */
static void add_process(const struct smg_planted *p, enum purpose purpose, uint64_t request, uint32_t layer, uint32_t head,
                        uint32_t position, float scale, uint32_t n, float *x)
{
    double total = 0, weight = 1;
    uint32_t lags = p->rho > 0 ? LAGS : 1;

    for (uint32_t i = 0; i < lags; i++, weight *= p->rho)
        total += weight * weight;
    weight = scale / sqrt(total);
    for (uint32_t i = 0; i < lags; i++, weight *= p->rho)
        add_normal(x, n, hash_of(p, purpose, request, layer, position - i, head), (float)weight);
}

/* interest[topic] of a query head at a position; on average 0.3, so that clusters matter more often than not. */
static void interest_of(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head,
                        float *interest)
{
    uint32_t kv_head = q_head / (p->q_heads / p->kv_heads);

    for (uint32_t i = 0; i < p->topics; i++)
        interest[i] = 0.3f;
    add_normal(interest, p->topics, hash_of(p, FOR_HEAD, layer, q_head, 0, 0), p->interest_head);
    add_normal(interest, p->topics, hash_of(p, FOR_REQUEST, request, layer, kv_head, 0), p->interest_request);
    add_process(p, FOR_SHARED, request, layer, kv_head, position, p->interest_step * sqrtf(p->agree), p->topics, interest);
    add_process(p, FOR_OWN, request, layer, q_head, position, p->interest_step * sqrtf(1 - p->agree), p->topics, interest);
}

static void query(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head, float *v)
{
    float interest[SMG_PLANTED_MAX_TOPICS], unit = side(p, 1);
    uint32_t kv_head = q_head / (p->q_heads / p->kv_heads);

    interest_of(p, request, layer, position, q_head, interest);
    add_process(p, FOR_QUERY, request, layer, q_head, position, p->noise, p->head_dim, v);
    for (uint32_t i = 0; i < p->topics; i++)
        add_direction(v, p->head_dim, direction(p, layer, kv_head, i), unit * interest[i]);
    add_direction(v, p->head_dim, direction(p, layer, kv_head, p->topics), side(p, p->sink));
    if (p->rotated)
        add_rotated(p, layer, kv_head, position, p->rotated_logit * sqrtf((float)p->head_dim) / p->rotated_size, v);
}

void smg_planted_query(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head,
                       enum smg_dtype type, void *x)
{
    float v[MOST_DIM] = {0};

    query(p, request, layer, position, q_head, v);
    store(v, p->head_dim, type, x);
}

void smg_planted_rehearsed(const struct smg_planted *p, uint64_t request, uint32_t layer, uint32_t position, uint32_t q_head,
                           enum smg_dtype type, void *x)
{
    float v[MOST_DIM] = {0}, sum = 0;

    query(p, request, layer, position, q_head, v);
    for (uint32_t i = 0; i < p->head_dim; i++)
        sum += v[i] * v[i];
    for (uint32_t i = 0; i < p->head_dim; i++)
        v[i] *= p->rehearsal;
    add_normal(v, p->head_dim, hash_of(p, FOR_REHEARSAL, request, layer, position, q_head),
               sqrtf((1 - p->rehearsal * p->rehearsal) * sum / (float)p->head_dim));
    store(v, p->head_dim, type, x);
}

void smg_planted_fill(const struct smg_planted *p, enum smg_planted_what what, uint64_t request, uint32_t layer, uint32_t first,
                      uint32_t count, enum smg_dtype type, void *x)
{
    uint32_t heads = what >= SMG_PLANTED_QUERY ? p->q_heads : p->kv_heads;
    size_t bytes = p->head_dim * smg_dtype_bytes(type);
    unsigned char *to = x;

    for (uint32_t t = first; t < first + count; t++)
        for (uint32_t h = 0; h < heads; h++, to += bytes)
            switch (what) {
            case SMG_PLANTED_KEY:
                smg_planted_key(p, request, layer, h, t, type, to);
                break;
            case SMG_PLANTED_VALUE:
                smg_planted_value(p, request, layer, h, t, type, to);
                break;
            case SMG_PLANTED_QUERY:
                smg_planted_query(p, request, layer, t, h, type, to);
                break;
            case SMG_PLANTED_REHEARSED:
                smg_planted_rehearsed(p, request, layer, t, h, type, to);
                break;
            }
}
