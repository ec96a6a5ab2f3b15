/* Model geometry, the world's accessors, and random substreams. */
#include "tests/world_fixture.h"

#include "core/model.h"
#include "core/rng.h"

static void test_kv_bytes(void **state)
{
    struct smg_model m = fixture_qwen3_14b();

    (void)state;
    assert_int_equal(smg_model_entry_bytes(&m), 512);
    assert_int_equal(smg_model_token_layer_bytes(&m), 4096);
    assert_int_equal(smg_model_token_bytes(&m), 163840);
    assert_int_equal(smg_model_prompt_bytes(&m, 48000), UINT64_C(7864320000));
    assert_int_equal(smg_model_prompt_bytes(&m, UINT32_MAX), (uint64_t)UINT32_MAX * 163840);
    assert_int_equal(smg_model_selecting_layers(&m), 38);
}

static void test_sliding_windows(void **state)
{
    struct smg_model m = fixture_sliding();
    uint64_t token = smg_model_token_layer_bytes(&m);

    (void)state;
    assert_int_equal(smg_model_layer_tokens(&m, 0, 8000), 1024);
    assert_int_equal(smg_model_layer_tokens(&m, 5, 8000), 8000);
    assert_int_equal(smg_model_layer_tokens(&m, 0, 1000), 1000);
    assert_int_equal(smg_model_prompt_bytes(&m, 8000), token * (40 * 1024 + 8 * 8000));
    assert_int_equal(smg_model_selecting_layers(&m), 8);
    assert_false(smg_model_layer_selects(&m, 2));
    assert_true(smg_model_layer_selects(&m, 5));

    m.window_tokens = 0;   /* layers are marked, but nothing slides */
    assert_int_equal(smg_model_layer_tokens(&m, 0, 8000), 8000);
    assert_int_equal(smg_model_selecting_layers(&m), 46);
}

/* The published size is 14.8e9 parameters, 29.5 GB in bf16; norms are left out (below 0.01%), the rest is the rounding of
 * 29.5. */
static void test_parameters(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    uint64_t untied = smg_model_params(&m);

    (void)state;
    assert_int_equal(smg_model_layer_params(&m), 2 * 5120 * (5120 + 1024) + 3 * 5120 * 17408);
    assert_int_equal(smg_model_body_params(&m), 40 * smg_model_layer_params(&m));
    assert_near(2.0 * (double)untied, 29.5e9, 0.005);
    m.tied_embeddings = 1;
    assert_int_equal(untied - smg_model_params(&m), UINT64_C(151936) * 5120);
}

/* 48K over 6 GPUs with 75% hits: 52.9 + 11.5 = 64.3 TFLOP each, stated with three digits. */
static void test_prefill_flop(void **state)
{
    struct smg_model m = fixture_qwen3_14b();
    double linear = 2.0 * (double)smg_model_body_params(&m) * 2000;

    (void)state;
    assert_near(linear, 52.9e12, 0.005);
    assert_near(smg_model_prefill_flop(&m, 6000, 2000) - linear, 11.5e12, 0.005);
    assert_near(smg_model_prefill_flop(&m, 6000, 2000), 64.3e12, 0.005);
}

/* Against a sum over query tokens. The closed form takes each query at its middle, and where the window's edge falls inside
 * one it differs by at most half a pair per layer: 1e-6 of these totals. */
static void test_prefill_attention_by_summation(void **state)
{
    static const uint32_t cases[][2] = {{0, 500}, {0, 5000}, {900, 500}, {6000, 2000}, {1024, 1}, {1023, 2}};
    struct smg_model m = fixture_sliding();

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint32_t context = cases[c][0], fresh = cases[c][1];
        double pairs = 0;

        for (uint32_t l = 0; l < m.layers; l++) {
            for (uint32_t i = 0; i < fresh; i++) {
                double keys = context + i + 0.5;
                pairs += m.sliding[l] && keys > m.window_tokens ? m.window_tokens : keys;
            }
        }
        double expected = 2.0 * (double)smg_model_body_params(&m) * fresh + 4.0 * 16 * 256 * pairs;
        assert_near(smg_model_prefill_flop(&m, context, fresh), expected, 1e-6);
    }
}

static void test_world_numbering(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_int_equal(smg_world_instances(&w), 8);
    assert_int_equal(smg_world_nodes(&w), 4);
    assert_int_equal(smg_world_node(&w, SMG_ROUTER), UINT32_MAX);
    for (uint32_t i = 1; i <= 6; i++) {
        assert_true(smg_world_is_prefill(&w, i) && !smg_world_is_decode(&w, i));
        assert_int_equal(smg_world_node(&w, i), (i - 1) / 2);
    }
    assert_true(smg_world_is_decode(&w, 7) && !smg_world_is_prefill(&w, 7));
    assert_int_equal(smg_world_node(&w, 7), 3);
    assert_false(smg_world_is_decode(&w, 8) || smg_world_is_prefill(&w, SMG_ROUTER) || smg_world_is_decode(&w, SMG_ROUTER));
    assert_int_equal(smg_world_node(&w, 8), UINT32_MAX);

    w.scenario.prefill.tp = 2;   /* one instance per prefill node; two decode nodes of four GPUs, tp 2 */
    w.prefill_instances = 3;
    w.scenario.decode.nodes = 2;
    w.scenario.decode.gpus_per_node = 4;
    w.scenario.decode.tp = 2;
    w.decode_instances = 4;
    assert_int_equal(smg_world_node(&w, 3), 2);
    assert_int_equal(smg_world_node(&w, 4), 3);
    assert_int_equal(smg_world_node(&w, 5), 3);
    assert_int_equal(smg_world_node(&w, 7), 4);
}

/* Tolerances of a few roundings: these are products of exact inputs. */
static void test_world_rates(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_near(smg_world_link_Bps(&w, 0), 4e9, 1e-15);
    assert_near(smg_world_link_Bps(&w, 3), 3.125e9, 1e-15);
    w.scenario.network.efficiency = 0.906;
    assert_near(smg_world_link_Bps(&w, 3), 0.906 * 3.125e9, 1e-15);
    assert_near(smg_world_gather_Bps(&w, 3), 6.06e9, 1e-15);
    w.host.gather_exponent = 0.5;
    assert_near(smg_world_gather_Bps(&w, 3), 6.06e9 / 4, 1e-15);
    assert_int_equal(smg_world_pool_bytes(&w, 1), UINT64_C(128) << 30);
    assert_int_equal(smg_world_pool_bytes(&w, 7), UINT64_C(128) << 30);
}

static void test_world_defaults(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_int_equal(smg_world_chunk_bytes(&w), 1 << 20);
    w.scenario.detail = SMG_DETAIL_ITERATION;
    assert_int_equal(smg_world_chunk_bytes(&w), 16 << 20);
    w.scenario.network.chunk_kib = 64;
    assert_int_equal(smg_world_chunk_bytes(&w), 65536);

    w.scenario.workload.kind = SMG_WORKLOAD_BATCH;
    assert_true(smg_world_barrier(&w));
    w.scenario.workload.kind = SMG_WORKLOAD_POISSON;
    assert_false(smg_world_barrier(&w));
    w.scenario.workload.batch_barrier_set = 1;
    w.scenario.workload.batch_barrier = 1;
    assert_true(smg_world_barrier(&w));
}

/* The first three numbers of splitmix64 from state 1234567 are public test values. */
static void test_rng_known_values(void **state)
{
    struct smg_rng r = {.state = 1234567};

    (void)state;
    assert_true(smg_rng_u64(&r) == UINT64_C(6457827717110365317));
    assert_true(smg_rng_u64(&r) == UINT64_C(3203168211198807973));
    assert_true(smg_rng_u64(&r) == UINT64_C(9817491932198370423));
}

static void test_rng_streams(void **state)
{
    struct smg_rng a, b, c, d;
    double sum = 0;

    (void)state;
    smg_rng_init(&a, 1, "arrivals");
    smg_rng_init(&b, 1, "arrivals");
    smg_rng_init(&c, 1, "lengths");
    smg_rng_init(&d, 2, "arrivals");
    assert_true(a.state == b.state && a.state != c.state && a.state != d.state && c.state != d.state);
    for (int i = 0; i < 10000; i++) {
        double u = smg_rng_uniform(&a);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    /* The mean of 10^4 uniform numbers has a standard deviation of 0.0029: 2% is 3.5 of them, and the seed is fixed. */
    assert_near(sum / 10000, 0.5, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kv_bytes),
        cmocka_unit_test(test_sliding_windows),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_prefill_flop),
        cmocka_unit_test(test_prefill_attention_by_summation),
        cmocka_unit_test(test_world_numbering),
        cmocka_unit_test(test_world_rates),
        cmocka_unit_test(test_world_defaults),
        cmocka_unit_test(test_rng_known_values),
        cmocka_unit_test(test_rng_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
