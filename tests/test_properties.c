/* Properties that hold for every scenario, checked on random ones (seeded; the native engine). */
#include "tests/sim_fixture.h"

#include <math.h>

#include "core/rng.h"

/* Sanitizers make runs ten times slower: fewer cases there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CASES = 4 };
#else
enum { CASES = 20 };
#endif

static uint32_t pick(struct smg_rng *r, uint32_t low, uint32_t high)
{
    return low + (uint32_t)(smg_rng_uniform(r) * (high - low + 1));
}

/* A random scenario: model, pools, batch, link, blocks. Schemes and switches are left to the property. */
static void random_base(struct smg_rng *r, struct words *w)
{
    static const char *const models[] = {"qwen3-14b", "qwen3-8b", "llama-3.1-8b", "gemma-3-12b", "phi-4"};

    memset(w, 0, sizeof *w);
    words_add(w, "model=%s", models[pick(r, 0, 4)]);
    words_add(w, "seed=%u", pick(r, 1, 1000));
    words_add(w, "prefill.nodes=%u", pick(r, 1, 3));
    words_add(w, "prefill.gpus_per_node=%u", pick(r, 1, 2));
    words_add(w, "workload.requests=%u", pick(r, 1, 6));
    words_add(w, "workload.prompt_tokens=%u", pick(r, 600, 4000));
    words_add(w, "workload.output_tokens=%u", pick(r, 14, 20));
    words_add(w, "blocks_per_layer=%u", pick(r, 40, 200));
    words_add(w, "network.chunk_kib=%u", pick(r, 256, 4096));
}

static double link_gbps(struct smg_rng *r)
{
    return 5 + 45 * smg_rng_uniform(r);
}

static void assert_near(double a, double b, double tolerance, const char *what)
{
    if (!(fabs(a - b) <= tolerance * (fabs(a) + fabs(b))))
        fail_msg("%s: %.17g and %.17g", what, a, b);
}

/* Times of all requests equal to 1e-12 relative: the same events in the same order, so only printing could differ. */
static void assert_same_times(const struct finished_run *a, const struct finished_run *b)
{
    assert_int_equal(a->records->n_requests, b->records->n_requests);
    for (uint32_t i = 0; i < a->records->n_requests; i++) {
        const struct smg_request_record *x = &a->records->request[i], *y = &b->records->request[i];
        assert_near(x->first_token_s, y->first_token_s, 1e-12, "first token");
        assert_near(x->second_token_s, y->second_token_s, 1e-12, "second token");
        assert_near(x->finish_s, y->finish_s, 1e-12, "finish");
        assert_int_equal(x->proactive_bytes, y->proactive_bytes);
        assert_int_equal(x->on_demand_bytes, y->on_demand_bytes);
        assert_int_equal(x->metadata_bytes, y->metadata_bytes);
    }
}

static void smartgen_without_its_paths_is_partial(void **state)
{
    struct smg_rng r;

    (void)state;
    smg_rng_init(&r, 11, "properties");
    for (int i = 0; i < CASES; i++) {
        struct words w;
        struct finished_run a, b;
        random_base(&r, &w);
        words_add(&w, "decode.link_gbps=%.3f", link_gbps(&r));
        words_add(&w, "scheme=partial");
        run_words(&w, &a);
        w.n--;
        words_add(&w, "scheme=smartgen");
        words_add(&w, "proactive.ranking=sequential");
        words_add(&w, "on_demand.parallel=false");
        words_add(&w, "speculative.enabled=false");
        run_words(&w, &b);
        assert_same_times(&a, &b);
        run_free(&a);
        run_free(&b);
    }
}

static void all_blocks_pushed_is_full(void **state)
{
    struct smg_rng r;

    (void)state;
    smg_rng_init(&r, 12, "properties");
    for (int i = 0; i < CASES; i++) {
        struct words w;
        struct finished_run a, b;
        random_base(&r, &w);
        words_add(&w, "decode.link_gbps=%.3f", link_gbps(&r));
        words_add(&w, "scheme=full");
        run_words(&w, &a);
        w.n--;
        words_add(&w, "scheme=smartgen");
        words_add(&w, "proactive.kr_blocks=10000000");
        run_words(&w, &b);
        for (uint32_t q = 0; q < b.records->n_requests; q++)
            assert_int_equal(b.records->request[q].mode, 1);
        assert_same_times(&a, &b);
        run_free(&a);
        run_free(&b);
    }
}

/* One barrier batch, Kr fixed, speculation off: with everything else equal, a faster decode link never makes the second token
 * later. Tolerance 1e-9: chunk boundaries fall differently, which moves nothing but rounding. */
static void more_bandwidth_never_hurts(void **state)
{
    struct smg_rng r;

    (void)state;
    smg_rng_init(&r, 13, "properties");
    for (int i = 0; i < CASES; i++) {
        struct words w;
        struct finished_run a, b;
        double slow = link_gbps(&r);
        random_base(&r, &w);
        words_add(&w, "scheme=%s", pick(&r, 0, 1) ? "smartgen" : "partial");
        words_add(&w, "speculative.enabled=false");
        words_add(&w, "proactive.kr_blocks=%u", pick(&r, 100, 4000));
        words_add(&w, "decode.link_gbps=%.6f", slow);
        run_words(&w, &a);
        w.n--;
        words_add(&w, "decode.link_gbps=%.6f", slow * (1 + smg_rng_uniform(&r)));
        run_words(&w, &b);
        for (uint32_t q = 0; q < a.records->n_requests; q++) {
            double before = smg_record_ttst_s(&a.records->request[q]), after = smg_record_ttst_s(&b.records->request[q]);
            if (after > before * (1 + 1e-9))
                fail_msg("case %d, request %u: TTST %.17g at %.6f Gbit/s, %.17g at more", i, q, before, slow, after);
        }
        run_free(&a);
        run_free(&b);
    }
}

/* Bytes granted to a request by decode step (from 1). */
static void granted_by_step(const struct finished_run *run, uint32_t request, uint64_t *bytes, uint32_t steps)
{
    memset(bytes, 0, steps * sizeof *bytes);
    for (size_t i = 0; i < run->records->n_tokens; i++) {
        const struct smg_token_record *t = &run->records->token[i];
        if (t->request == request && t->token >= 2 && t->token - 1 < steps)
            bytes[t->token - 1] += t->speculative_bytes;
    }
}

/* All blocks outside the Kr set are granted within ceil((total - Kr) / (L * max(1, floor(ratio M)))) iterations, counted from the
 * second one; and when the run goes on, every granted block is delivered. */
static void everything_is_granted_and_delivered(void **state)
{
    struct smg_rng r;

    (void)state;
    smg_rng_init(&r, 14, "properties");
    for (int i = 0; i < CASES; i++) {
        static const double ratios[] = {0.1, 0.2, 0.25};
        double ratio = ratios[pick(&r, 0, 2)];
        struct words w;
        struct finished_run run;
        random_base(&r, &w);
        words_add(&w, "decode.link_gbps=%.3f", 25 + link_gbps(&r));
        words_add(&w, "scheme=smartgen");
        words_add(&w, "proactive.kr_blocks=1");
        words_add(&w, "workload.output_tokens=30");
        words_add(&w, "speculative.ratio=%.2f", ratio);
        run_words(&w, &run);
        for (uint32_t q = 0; q < run.records->n_requests; q++) {
            const struct smg_request_record *x = &run.records->request[q];
            uint64_t bytes[32], sum = 0, all = 0;
            uint32_t blocks = run.world.scenario.blocks_per_layer, layer = (uint32_t)(ratio * blocks + 1e-9), step;
            uint32_t bound =
                (x->total_blocks - x->kr_blocks + layer * run.world.model.layers - 1) / (layer * run.world.model.layers);
            granted_by_step(&run, q, bytes, 32);
            for (step = 1; step < 32; step++)
                all += bytes[step];
            for (step = 1; step < 32 && sum < all; step++)
                sum += bytes[step];
            assert_true(step - 1 <= 1 + bound);
            assert_int_equal(bytes[1], 0);
            assert_int_equal(x->speculative_bytes, all);
        }
        assert_int_equal(run.stats->blocks_written, (uint64_t)run.records->n_requests * run.records->request[0].total_blocks);
        run_free(&run);
    }
}

/* A request that arrives alone on a link wide enough falls back to full transfer and costs exactly what full transfer costs: the
 * stated overhead is 0. */
static void fallback_alone_is_full(void **state)
{
    struct smg_rng r;
    int fell_back = 0;

    (void)state;
    smg_rng_init(&r, 15, "properties");
    for (int i = 0; i < CASES; i++) {
        struct words w;
        struct finished_run a, b;
        random_base(&r, &w);
        words_add(&w, "workload.requests=1");
        words_add(&w, "decode.link_gbps=%.3f", 20 + 4 * link_gbps(&r));
        words_add(&w, "prefill.link_gbps=400");
        words_add(&w, "scheme=smartgen");
        run_words(&w, &b);
        words_add(&w, "scheme=full");
        run_words(&w, &a);
        if (b.records->request[0].mode) {
            fell_back++;
            assert_same_times(&a, &b);
        }
        run_free(&a);
        run_free(&b);
    }
    assert_true(fell_back >= CASES / 4); /* else the scenarios say nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smartgen_without_its_paths_is_partial), cmocka_unit_test(all_blocks_pushed_is_full),
        cmocka_unit_test(more_bandwidth_never_hurts),            cmocka_unit_test(everything_is_granted_and_delivered),
        cmocka_unit_test(fallback_alone_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
