/* HATA on every backend: codes and norms, scores from Hamming distances. Scores are exact on the same codes; a bit may differ
 * between backends only where its projection is within rounding of 0. */
#include "tests/select_fixture.h"

struct encode_case {
    uint32_t rows, heads, kv_heads, d, bits, weight_heads;
    enum smg_dtype type;
};

static void run_encode(struct kernel_fixture *f, const struct encode_case *c, const void *x, const float *weight, uint32_t *code,
                       float *norm)
{
    size_t vectors = (size_t)c->rows * c->heads;
    struct smg_hash_encode_args a = {.rows = c->rows,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->d,
                                     .bits = c->bits,
                                     .weight_heads = c->weight_heads,
                                     .type = c->type};

    a.x = kf_in(f, x, vectors * c->d * smg_dtype_bytes(c->type));
    a.weight = kf_in(f, weight, (size_t)c->weight_heads * c->d * c->bits * sizeof *weight);
    a.code = kf_out(f, vectors * c->bits / 8);
    a.norm = norm ? kf_out(f, vectors * sizeof *norm) : NULL;
    kf_ok(f, smg_hash_encode(f->k, &a, NULL));
    kf_get(f, code, a.code, vectors * c->bits / 8);
    if (norm)
        kf_get(f, norm, a.norm, vectors * sizeof *norm);
}

static void run_scores(struct kernel_fixture *f, struct smg_hash_scores_args a, const uint32_t *q_code, const uint32_t *key_code,
                       const float *norm, const uint32_t *tokens, float *score)
{
    size_t keys = (size_t)a.requests * a.max_tokens * a.kv_heads;

    a.q_code = kf_in(f, q_code, (size_t)a.requests * a.q_heads * a.bits / 8);
    a.key_code = kf_in(f, key_code, keys * a.bits / 8);
    a.norm = norm ? kf_in(f, norm, keys * sizeof *norm) : NULL;
    a.tokens = kf_in(f, tokens, a.requests * sizeof *tokens);
    a.score = kf_out(f, keys * sizeof *score);
    kf_ok(f, smg_hash_scores(f->k, &a, NULL));
    kf_get(f, score, a.score, keys * sizeof *score);
}

/* d = 4, 8 bits, two query heads, from seed 7 in the order W[4][8], K[6][4], Q[2][4]. Four copies of the 8 columns make 32 bits:
 * codes repeat, and hd / bits stays the same. */
static void test_golden(void **state)
{
    static const uint32_t key_codes[6] = {0x1c, 0x2c, 0xe5, 0xe7, 0xc3, 0x77}, q_codes[2] = {0x18, 0x34}, best[3] = {0, 1, 5};
    static const float distances[6] = {-12, -20, -44, -52, -52, -36}, /* four times 3 5 11 13 13 9 */
        scores[6] = {1.861585f, 0.688371f, -0.396681f, -1.547055f, -1.427895f, -0.228447f};
    static const struct encode_case keys = {6, 1, 1, 4, 32, 1, SMG_F32}, queries = {1, 2, 1, 4, 32, 1, SMG_F32};
    static const struct smg_hash_scores_args args = {.requests = 1, .q_heads = 2, .kv_heads = 1, .bits = 32, .max_tokens = 6};
    static const uint32_t tokens = 6;
    float w[4][32], key[6][4], q[2][4], norm[6], score[6];
    uint32_t seed = 7, code[8], index[3];

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 8; j++)
            w[i][j] = w[i][j + 8] = w[i][j + 16] = w[i][j + 24] = kf_uniform(&seed);
    for (int i = 0; i < 24; i++)
        key[i / 4][i % 4] = kf_uniform(&seed);
    for (int i = 0; i < 8; i++)
        q[i / 4][i % 4] = kf_uniform(&seed);
    FOR_EACH_BACKEND(f)
    {
        run_encode(f, &keys, key, w[0], code, norm);
        for (int i = 0; i < 6; i++)
            assert_int_equal(code[i], key_codes[i] * 0x01010101u);
        run_encode(f, &queries, q, w[0], code + 6, NULL);
        for (int i = 0; i < 2; i++)
            assert_int_equal(code[6 + i], q_codes[i] * 0x01010101u);
        run_scores(f, args, code + 6, code, NULL, &tokens, score);
        kf_close(f, score, distances, 6, 0, 0);
        run_scores(f, args, code + 6, code, norm, &tokens, score);
        kf_close(f, score, scores, 6, 6e-7, 0); /* six digits were given */
        sf_top(score, 6, 3, index);
        assert_memory_equal(index, best, sizeof best);
    }
}

/* Is bit i of vector v within rounding of a tie? Projections of inputs in [-1, 1): 1e-6 a term. */
static int near_tie(const struct encode_case *c, const void *x, const float *weight, size_t v, uint32_t i)
{
    size_t m = c->weight_heads == 1 ? 0 : v % c->heads / (c->heads / c->kv_heads);
    double sum = 0;

    for (size_t j = 0; j < c->d; j++)
        sum += (double)smg_load(x, v * c->d + j, c->type) * (double)weight[(m * c->d + j) * c->bits + i];
    return fabs(sum) < 1e-6 * c->d;
}

static void check_encode(const struct encode_case *c)
{
    size_t vectors = (size_t)c->rows * c->heads, words = vectors * c->bits / 32;
    uint32_t seed = 31 + c->d + c->bits;
    void *x = kf_elements(&seed, vectors * c->d, c->type);
    float *weight = sf_floats(&seed, (size_t)c->weight_heads * c->d * c->bits), *norm = malloc((vectors + 1) * sizeof *norm),
          *norms = malloc((vectors + 1) * sizeof *norms);
    uint32_t *code = malloc((words + 1) * sizeof *code), *codes = malloc((words + 1) * sizeof *codes);

    assert_true(norm && norms && code && codes);
    FOR_EACH_BACKEND(f)
    {
        run_encode(f, c, x, weight, kf_reference(f) ? codes : code, kf_reference(f) ? norms : norm);
        if (kf_reference(f))
            continue;
        kf_close(f, norm, norms, vectors, 1e-7, 1e-5);
        for (size_t i = 0; i < words; i++)
            for (uint32_t bit = 0; code[i] != codes[i] && bit < 32; bit++)
                if ((code[i] ^ codes[i]) >> bit & 1)
                    assert_true(near_tie(c, x, weight, i * 32 / c->bits, (uint32_t)(i * 32 % c->bits) + bit));
    }
    free(x);
    free(weight);
    free(norm);
    free(norms);
    free(code);
    free(codes);
}

static void test_encode(void **state)
{
    static const uint32_t rows[] = {0, 1, 2, 3, 4, 7, 8, 9}, dims[] = {0, 1, 31, 32, 33, 128};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_encode(&(struct encode_case){rows[i], 4, 2, 20, 64, i % 2 ? 1 : 2, SMG_F32});
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int t = 0; t < 3; t++)
            check_encode(&(struct encode_case){3, 2, 2, dims[i], 96, 2, sf_types[t]});
    check_encode(&(struct encode_case){2, 3, 1, 64, 256, 1, SMG_BF16});
    check_encode(&(struct encode_case){1, 1, 1, 12, 1024, 1, SMG_F32});
}

/* Bits of a vector and weights of which nothing is in doubt: +-1 in one channel each; 0 is no bit, nor are -0 and NaN. */
static void test_encode_exact(void **state)
{
    static const struct encode_case c = {3, 1, 1, 3, 32, 1, SMG_F32};
    static const float x[3][3] = {{1, 0, 0}, {-0.0f, 0, 0}, {0, 0x1p-140f, NAN}};
    static const uint32_t expected[3] = {0x55555555u, 0, 0};
    float weight[3][32];

    (void)state;
    for (int i = 0; i < 96; i++)
        weight[i / 32][i % 32] = i % 2 ? -1 : 1;
    FOR_EACH_BACKEND(f)
    {
        uint32_t code[3];
        run_encode(f, &c, x, weight[0], code, NULL);
        kf_same(f, code, expected, sizeof code);
    }
}

/* Sinks and recent tokens are taken, absent ones never; distances of packed words are those of bits. Exact. */
static void test_scores(void **state)
{
    static const uint32_t sizes[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 129}, widths[] = {32, 64, 96, 128, 256, 1024};
    static float got[4 * 2 * 129], expected[4 * 2 * 129];
    uint32_t seed = 37;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i], bits = widths[i % 6], tokens[4] = {n, 0, n / 2, n + 9}, group = 1 + (uint32_t)i % 5;
        struct smg_hash_scores_args a = {.requests = 4, .q_heads = 2 * group, .kv_heads = 2, .bits = bits, .max_tokens = n};
        size_t keys = (size_t)8 * n;
        uint32_t *key = malloc(keys * bits / 8), *q = malloc((size_t)8 * group * bits / 8);
        float *norm = sf_floats(&seed, keys);
        assert_true(key && q);
        a.sink = (uint32_t)i % 3;
        a.recent = (uint32_t)i % 4;
        for (size_t w = 0; w < keys * bits / 32; w++)
            key[w] = kf_random(&seed);
        for (size_t w = 0; w < (size_t)8 * group * bits / 32; w++)
            q[w] = kf_random(&seed);
        for (int with_norm = 0; with_norm < 2; with_norm++)
            FOR_EACH_BACKEND(f)
            {
                run_scores(f, a, q, key, with_norm ? norm : NULL, tokens, kf_reference(f) ? expected : got);
                if (!kf_reference(f))
                    kf_same(f, got, expected, keys * sizeof *got);
            }
        free(key);
        free(q);
        free(norm);
    }
}

/* With random weights and without norms, the ranking comes closer to that of cosines as codes grow. Mean over 8 queries of the
 * share of the 40 best of 200 that are found. */
static double recall(struct kernel_fixture *f, uint32_t bits, const float *weight, const float *key, const float *q)
{
    enum { N = 200, D = 64, K = 40, QUERIES = 8 };
    const struct encode_case keys = {N, 1, 1, D, bits, 1, SMG_F32}, queries = {QUERIES, 1, 1, D, bits, 1, SMG_F32};
    const struct smg_hash_scores_args args = {.requests = 1, .q_heads = 1, .kv_heads = 1, .bits = bits, .max_tokens = N};
    static uint32_t key_code[N * 32], q_code[QUERIES * 32];
    uint32_t tokens = N, got[K], want[K], found = 0;
    float score[N], cosine[N];

    run_encode(f, &keys, key, weight, key_code, NULL);
    run_encode(f, &queries, q, weight, q_code, NULL);
    for (int s = 0; s < QUERIES; s++) {
        run_scores(f, args, q_code + s * (int)bits / 32, key_code, NULL, &tokens, score);
        for (int j = 0; j < N; j++) {
            double dot = 0, square = 0;
            for (int i = 0; i < D; i++) {
                dot += (double)key[j * D + i] * q[s * D + i];
                square += (double)key[j * D + i] * key[j * D + i];
            }
            cosine[j] = (float)(dot / sqrt(square));
        }
        sf_top(score, N, K, got);
        sf_top(cosine, N, K, want);
        for (int i = 0; i < K * K; i++)
            found += got[i / K] == want[i % K];
    }
    return (double)found / (K * QUERIES);
}

static void test_recall(void **state)
{
    static const uint32_t bits[3] = {64, 256, 1024};
    uint32_t seed = 41;
    float *key = sf_floats(&seed, 200 * 64), *q = sf_floats(&seed, 8 * 64);

    (void)state;
    FOR_EACH_BACKEND(f)
    {
        double r[3];
        uint32_t fixed = 43;
        for (int i = 0; i < 3; i++) {
            float *weight = sf_floats(&fixed, (size_t)64 * bits[i]);
            for (size_t j = 0; j < (size_t)64 * bits[i]; j++) /* nearly normal */
                weight[j] += kf_uniform(&fixed) + kf_uniform(&fixed) + kf_uniform(&fixed);
            r[i] = recall(f, bits[i], weight, key, q);
            free(weight);
            kf_free_all(f);
        }
        /* 0.47, 0.62, 0.79; chance is 0.2 */
        assert_true(r[0] > 0.3 && r[1] > r[0] + 0.05 && r[2] > r[1] + 0.05 && r[2] > 0.7);
    }
    free(key);
    free(q);
}

static void test_refused(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(f)
    {
        struct smg_hash_encode_args e = {.rows = 1, .heads = 2, .kv_heads = 2, .head_dim = 8, .bits = 40, .weight_heads = 1};
        struct smg_hash_scores_args s = {.requests = 1, .q_heads = 3, .kv_heads = 2, .bits = 32, .max_tokens = 1};
        sf_refused(f, smg_hash_encode(f->k, &e, NULL), "hash_encode: 40 bits");
        e.bits = 1056;
        sf_refused(f, smg_hash_encode(f->k, &e, NULL), "hash_encode: 1056 bits");
        e.bits = 32;
        e.weight_heads = 3;
        sf_refused(f, smg_hash_encode(f->k, &e, NULL), "hash_encode: 3 weight heads");
        e.kv_heads = 0;
        sf_refused(f, smg_hash_encode(f->k, &e, NULL), "hash_encode: 2 query heads");
        sf_refused(f, smg_hash_scores(f->k, &s, NULL), "hash_scores: 3 query heads");
        s.bits = 0;
        sf_refused(f, smg_hash_scores(f->k, &s, NULL), "hash_scores: 0 bits");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_encode), cmocka_unit_test(test_encode_exact),
        cmocka_unit_test(test_scores), cmocka_unit_test(test_recall), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
