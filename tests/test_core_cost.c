/* The cost algebra and the costs of model work. Where nothing else is said the tolerance is a few roundings, 1e-14. */
#include "tests/world_fixture.h"

#include "core/cost.h"

static void test_apply(void **state)
{
    struct smg_cost c = smg_cost_make(2e-6, 1e9, 1e-6), nothing = smg_cost_make(0, INFINITY, 0);

    (void)state;
    assert_near(smg_cost_apply(&c, 1e6, 3), 2e-6 + 1e-3 + 3e-6, 1e-14);
    assert_true(smg_cost_apply(&c, 0, 0) == 2e-6);
    assert_true(smg_cost_apply(&nothing, 1e12, 1e6) == 0);
}

/* Gather at 6.06 GB/s in series with PCIe at 26 GB/s: the local lane's 4.92 GB/s, given with three digits. */
static void test_series(void **state)
{
    struct smg_cost gather = smg_cost_make(1e-6, 6.06e9, 1e-7), pcie = smg_cost_make(2e-6, 26e9, 2e-7);
    struct smg_cost nothing = smg_cost_make(0, INFINITY, 0);
    struct smg_cost lane = smg_cost_series(&gather, &pcie), same = smg_cost_series(&gather, &nothing);

    (void)state;
    assert_near(lane.Bps, 4.92e9, 0.005);
    assert_near(smg_cost_apply(&lane, 5e6, 4), smg_cost_apply(&gather, 5e6, 4) + smg_cost_apply(&pcie, 5e6, 4), 1e-14);
    assert_true(same.latency_s == gather.latency_s && same.Bps == gather.Bps && same.per_message_s == gather.per_message_s);
    same = smg_cost_series(&nothing, &gather);
    assert_true(same.Bps == gather.Bps);
    assert_true(isinf(smg_cost_series(&nothing, &nothing).Bps));
}

static void test_wire_bytes(void **state)
{
    (void)state;
    assert_true(smg_cost_wire_bytes(1e6, 10, 1e-6, 3.125e9) == 1e6);
    assert_near(smg_cost_wire_bytes(1000, 10, 1e-6, 3.125e9), 10 * 3125, 1e-14);
    assert_true(smg_cost_wire_bytes(1000, 10, 0, INFINITY) == 1000);
    /* A block at M = 1000, 7K tokens, is 28 KB: its wire time hides posting up to 9.2 us. */
    assert_true(smg_cost_wire_bytes(7 * 4096, 1, 9.17e-6, 3.125e9) == 7 * 4096);
}

static void test_roofline(void **state)
{
    (void)state;
    assert_true(smg_cost_roofline(4e12, 2e12, 1e9, 1e9) == 2);
    assert_true(smg_cost_roofline(1e12, 2e12, 3e9, 1e9) == 3);
    assert_true(smg_cost_roofline(0, 1, 0, 1) == 0);
}

/* P018: Tp(48K, DP 6) = 0.535 s, 1% as stated with it. */
static void test_prefill(void **state)
{
    struct smg_world w;
    struct smg_request_spec r = fixture_request(8000);

    (void)state;
    fixture_world(&w);
    assert_near(smg_cost_prefill_s(&w, &r), 0.535, 0.01);
    assert_near(40 * smg_cost_prefill_layer_s(&w, &r), smg_cost_prefill_s(&w, &r), 1e-14);
    w.scenario.prefill.tp = 2;
    assert_near(smg_cost_prefill_s(&w, &r), 0.535 / 2, 0.01);
    w.decode_gpu.prefill_flops = 1;   /* only the prefill GPU counts */
    assert_near(smg_cost_prefill_s(&w, &r), 0.535 / 2, 0.01);
    w.prefill_gpu.prefill_flops = 109e12;   /* with the NIC factor: 0.591 s */
    w.scenario.prefill.tp = 1;
    assert_near(smg_cost_prefill_s(&w, &r), 0.591, 0.01);
}

static void test_attention(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_near(smg_cost_attention_s(&w, 0), 1e-3, 1e-14);
    assert_near(smg_cost_attention_s(&w, 1000000), 1e-3 + 512e6 / 864e9, 1e-14);
    w.scenario.decode.tp = 2;   /* heads are divided, the overhead is not */
    assert_near(smg_cost_attention_s(&w, 1000000), 1e-3 + 256e6 / 864e9, 1e-14);
}

/* Reading all weights once takes 29.5 GB / 864 GB/s = 34 ms, given with two digits; the input embedding (1.6 GB) is not read. */
static void test_ffn(void **state)
{
    struct smg_world w;
    double step_s, head_s;

    (void)state;
    fixture_world(&w);
    head_s = smg_cost_ffn_s(&w, 1, 1) - smg_cost_ffn_s(&w, 1, 0);
    assert_near(head_s, 2.0 * 151936 * 5120 / 864e9, 1e-12);
    step_s = 40 * smg_cost_ffn_s(&w, 6, 0) + head_s;
    assert_near(step_s, 34e-3 - 1.56e9 / 864e9, 0.03);
    assert_near(smg_cost_ffn_s(&w, 6, 0), smg_cost_ffn_s(&w, 1, 0), 1e-14);   /* bound by memory */
    assert_near(smg_cost_ffn_s(&w, 4096, 0), 2.0 * (double)smg_model_layer_params(&w.model) * 4096 / 119.5e12, 1e-14);
    w.scenario.decode.tp = 2;
    assert_near(40 * smg_cost_ffn_s(&w, 6, 0) + head_s / 2, step_s / 2, 1e-12);
}

/* The table of metadata sizes, exact. */
static void test_metadata(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_int_equal(smg_metadata_token_bytes(&w), 608);
    assert_int_equal(smg_metadata_token_bytes(&w) * smg_model_selecting_layers(&w.model), 23104);
    w.scenario.selection.partial_ratio = 0.29;
    w.model.head_dim = 100;   /* 0.29 * 100 is 28.999999999999996 in binary */
    assert_int_equal(smg_metadata_token_bytes(&w), 2 * 8 * 29);
    w.model.head_dim = 128;
    w.scenario.selector = SMG_SELECTOR_HATA;
    assert_int_equal(smg_metadata_token_bytes(&w), 272);
    w.scenario.selection.hash_bits = 128;
    assert_int_equal(smg_metadata_token_bytes(&w), 144);
    w.scenario.selector = SMG_SELECTOR_QUEST;
    assert_int_equal(smg_metadata_token_bytes(&w), 256);
    w.scenario.selector = SMG_SELECTOR_ORACLE;
    assert_int_equal(smg_metadata_token_bytes(&w), 0);
}

/* InfiniGen over 48K tokens reads 29 MB in 34 us, HATA 13 MB in 15 us, both given with two digits. */
static void test_select(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_near(smg_cost_select_s(&w, 48000), 34e-6, 0.02);
    w.scenario.selector = SMG_SELECTOR_HATA;
    assert_near(smg_cost_select_s(&w, 48000), 15e-6, 0.02);
    w.scenario.selector = SMG_SELECTOR_ORACLE;
    assert_near(smg_cost_select_s(&w, 48000), 48000.0 * 8 * 128 * 2 / 864e9, 1e-14);
    w.scenario.decode.tp = 2;
    assert_near(smg_cost_select_s(&w, 48000), 48000.0 * 8 * 128 / 864e9, 1e-14);
    assert_true(smg_cost_select_s(&w, 0) == 0);
    w.model.layers = 2;   /* nothing selects */
    assert_true(smg_cost_select_s(&w, 48000) == 0);
}

/* What was measured replaces the memory rate, and adds its fixed part; without work there is none. */
static void test_measured(void **state)
{
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    assert_near(smg_cost_split_s(&w, 1e6), 9e6 / 864e9, 1e-14);
    w.decode_gpu.select_Bps = 1e9;
    w.decode_gpu.select_overhead_s = 1e-5;
    w.decode_gpu.split_Bps = 2e9;
    w.decode_gpu.split_overhead_s = 3e-6;
    assert_near(smg_cost_select_s(&w, 48000), 1e-5 + 48000.0 * 608 / 1e9, 1e-14);
    assert_near(smg_cost_split_s(&w, 1e6), 3e-6 + 9e6 / 2e9, 1e-14);
    assert_true(smg_cost_select_s(&w, 0) == 0 && smg_cost_split_s(&w, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_wire_bytes),
        cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_prefill),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_ffn),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
