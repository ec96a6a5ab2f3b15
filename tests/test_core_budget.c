/* Kr, Eq. 2: golden values, calibration points, the fallback to full transfer, both budgets, windows, and switches. */
#include "tests/world_fixture.h"

#include "core/cost.h"
#include "core/grid.h"

#define DECODE_NODE 3u

static struct smg_budget_result decide(const struct smg_world *w, uint32_t prompt_tokens, uint32_t sharers)
{
    struct smg_request_spec r = fixture_request(prompt_tokens);
    struct smg_budget_result b;

    memset(&b, 0xee, sizeof(b));   /* every field must be set */
    smg_budget_decide(w, &r, DECODE_NODE, sharers, &b);
    return b;
}

/* Golden vector 3, exact. */
static void test_golden(void **state)
{
    (void)state;
    assert_int_equal(smg_kr_raw(40000, 40, 0.55, 2.585), 8297);
    assert_int_equal(smg_kr_raw(40000, 40, 0.1, 3.0), 1300);
    assert_int_equal(smg_kr_clip(1300, 2000, 40000), 2000);
    assert_int_equal(smg_kr_raw(40000, 40, 3, 2.5), 46800);
    assert_int_equal(smg_kr_clip(46800, 2000, 40000), 40000);
    assert_int_equal(smg_kr_clip(8297, 2000, 40000), 8297);
    assert_int_equal(smg_kr_raw(40000, 40, 1, 4.7), 8297);   /* Tt/Tp at 48K */
}

/* Quotients that are whole on paper must not lose a block to binary rounding: n blocks in n/39000 of the time, for all n. */
static void test_whole_quotients(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= 39000; n++) {
        assert_int_equal(smg_kr_raw(40000, 40, n * 0.1, 39000 * 0.1), n);
        assert_int_equal(smg_kr_raw(40000, 40, n / 3.0, 13000), n);
    }
}

static void test_raw_limits(void **state)
{
    (void)state;
    assert_int_equal(smg_kr_raw(40000, 40, 0, 1), 0);
    assert_int_equal(smg_kr_raw(40000, 1, 1, 1), 0);   /* one layer: nothing overlaps */
    assert_int_equal(smg_kr_raw(40000, 40, 1, 0), UINT32_MAX);
    assert_int_equal(smg_kr_raw(40000, 40, 1e30, 1e-30), UINT32_MAX);
}

/* 48K batched over 6 GPUs at 25 Gbit/s: P018 by arithmetic. 1% as stated with the constants. Kr is 8297 at Tt/Tp = 4.7
 * exactly; the FLOP count gives 4.69, so 0.3% here and at 42K ("about 8112"). */
static void test_calibration_points(void **state)
{
    struct smg_world w;
    struct smg_budget_result b;

    (void)state;
    fixture_world(&w);
    b = decide(&w, 8000, 6);
    assert_near(b.tp_s, 0.535, 0.01);
    assert_near(b.tt_s, 2.52, 0.01);
    assert_near(b.tt_s / b.tp_s, 4.7, 0.01);
    assert_near(b.kr_raw, 8297, 0.003);
    assert_int_equal(b.kr_blocks, b.kr_raw);
    assert_int_equal(b.total_blocks, 40000);
    assert_int_equal(b.dense_blocks, 2000);
    assert_int_equal(b.kv_bytes, UINT64_C(8000) * 163840);
    assert_int_equal(b.metadata_bytes, UINT64_C(8000) * 23104);
    assert_near(b.window_s, b.tp_s * 39 / 40, 1e-15);
    assert_int_equal(b.full, 0);
    b = decide(&w, 7000, 6);
    assert_near(b.kr_blocks, 8112, 0.003);
    assert_near(b.tt_s / b.tp_s, 4.81, 0.003);
}

/* The window holds 20.3% of the KV cache at 42K. Literal Eq. 2 ignores the metadata; `window` takes away its 14.1% (HATA:
 * 6.3%). The shares are known to three digits, and a difference of two of them to 1%. */
static void test_window_budget(void **state)
{
    struct smg_world w;
    struct smg_budget_result eq2, window;

    (void)state;
    fixture_world(&w);
    eq2 = decide(&w, 7000, 6);
    assert_near((double)eq2.metadata_bytes / (double)eq2.kv_bytes, 0.141, 0.003);
    w.scenario.proactive.budget = SMG_BUDGET_WINDOW;
    window = decide(&w, 7000, 6);
    assert_near(window.window_s, eq2.window_s - (double)eq2.metadata_bytes * 6 / 3.125e9, 1e-9);
    assert_near(window.kr_raw, 40000 * (0.2030 - 0.141), 0.01);
    assert_int_equal(window.kr_blocks, window.kr_raw);
    assert_int_equal(window.metadata_bytes, eq2.metadata_bytes);

    w.scenario.selector = SMG_SELECTOR_HATA;
    window = decide(&w, 7000, 6);
    assert_near(window.kr_raw, 40000 * (0.2030 - 0.0631), 0.01);
    w.scenario.selector = SMG_SELECTOR_INFINIGEN;
    w.scenario.decode.link_gbps = 15;
    window = decide(&w, 7000, 6);   /* the metadata alone is longer than the window */
    assert_true(window.window_s == 0);
    assert_int_equal(window.kr_raw, 0);
    assert_int_equal(window.kr_blocks, 2000);
}

/* Full transfer iff Tp/Tt >= L/(L-1), under either budget. The link is set so that the ratio is 1e-9 below, exactly at, and
 * above. */
static void test_fallback(void **state)
{
    static const double offsets[] = {-0.5, -1e-3, -1e-9, 0, 1e-9, 1e-3, 0.5};
    struct smg_world w;

    (void)state;
    fixture_world(&w);
    for (int budget = SMG_BUDGET_EQ2; budget <= SMG_BUDGET_WINDOW; budget++) {
        w.scenario.proactive.budget = (enum smg_budget)budget;
        for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
            struct smg_request_spec r = fixture_request(7000);
            double tt_s = smg_cost_prefill_s(&w, &r) / (40.0 / 39) / (1 + offsets[i]);
            struct smg_budget_result b;

            w.scenario.decode.link_gbps = 7000.0 * 163840 * 8 / tt_s / 1e9;
            b = decide(&w, 7000, 1);
            assert_int_equal(b.full, offsets[i] >= 0);
            assert_int_equal(b.kr_blocks == b.total_blocks, b.full);
            assert_int_equal(b.metadata_bytes == 0, b.full);
        }
    }
}

static void test_boundary_is_exact(void **state)
{
    (void)state;
    assert_int_equal(smg_kr_raw(40000, 40, 40, 39), 40000);
    assert_int_equal(smg_kr_raw(40000, 40, 40 * (1 - 1e-9), 39), 39999);
}

/* Fewer sharers: a wider share of the link, up to full transfer (01, 3.5). */
static void test_sharers(void **state)
{
    struct smg_world w;
    uint32_t last = UINT32_MAX;

    (void)state;
    fixture_world(&w);
    for (uint32_t sharers = 1; sharers <= 64; sharers++) {
        struct smg_budget_result b = decide(&w, 7000, sharers);

        assert_true(b.kr_blocks <= last);
        assert_true(b.kr_blocks >= b.dense_blocks);
        last = b.kr_blocks;
    }
    assert_int_equal(last, 2000);
    assert_int_equal(decide(&w, 7000, 1).full, 1);
    assert_int_equal(decide(&w, 7000, 0).full, 1);   /* itself at least */
}

/* N < M: the non-empty blocks take the place of L*M, those of layers 0 and 1 that of 2M. */
static void test_short_prompt(void **state)
{
    struct smg_world w;
    struct smg_budget_result b;

    (void)state;
    fixture_world(&w);
    b = decide(&w, 100, 6);
    assert_int_equal(b.total_blocks, 4000);
    assert_int_equal(b.dense_blocks, 200);
    assert_int_equal(b.kr_raw, smg_kr_raw(4000, 40, b.tp_s, b.tt_s));
    w.scenario.min_block_tokens = 10;
    assert_int_equal(decide(&w, 100, 6).total_blocks, 400);
}

static void test_sliding_windows(void **state)
{
    struct smg_world w;
    struct smg_budget_result b;

    (void)state;
    fixture_world(&w);
    w.model = fixture_sliding();
    b = decide(&w, 8000, 6);
    assert_int_equal(b.total_blocks, 40 * 128 + 8 * 1000);
    assert_int_equal(b.dense_blocks, 256);
    assert_int_equal(b.kv_bytes, UINT64_C(8192) * (40 * 1024 + 8 * 8000));
    assert_int_equal(b.kr_raw, smg_kr_raw(b.total_blocks, 48, b.tp_s, b.tt_s));
    assert_int_equal(b.metadata_bytes, UINT64_C(8000) * 8 * 2 * 8 * 76);   /* 8 selecting layers, 76 columns */
}

static void test_switches(void **state)
{
    struct smg_world w;
    struct smg_budget_result b;

    (void)state;
    fixture_world(&w);
    w.scenario.proactive.kr_blocks = 20000;
    b = decide(&w, 7000, 6);
    assert_true(b.kr_blocks == 20000 && !b.full && b.metadata_bytes > 0);
    w.scenario.proactive.kr_blocks = 0;
    assert_int_equal(decide(&w, 7000, 6).kr_blocks, 2000);
    w.scenario.proactive.kr_blocks = 50000;
    b = decide(&w, 7000, 6);
    assert_true(b.kr_blocks == 40000 && b.full && b.metadata_bytes == 0);
    w.scenario.proactive.enabled = 0;   /* metadata and layers 0, 1 only, even alone on the link */
    b = decide(&w, 7000, 1);
    assert_true(b.kr_blocks == 2000 && !b.full && b.metadata_bytes > 0);
}

static void test_scheme_full(void **state)
{
    struct smg_world w;
    struct smg_budget_result b;

    (void)state;
    fixture_world(&w);
    w.scheme = smg_scheme_find("full");
    w.scenario.proactive.kr_blocks = 3000;
    b = decide(&w, 7000, 6);
    assert_true(b.kr_blocks == 40000 && b.full && b.metadata_bytes == 0);
    w.scenario.proactive.enabled = 0;
    assert_int_equal(decide(&w, 7000, 6).full, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_whole_quotients),
        cmocka_unit_test(test_raw_limits),
        cmocka_unit_test(test_calibration_points),
        cmocka_unit_test(test_window_budget),
        cmocka_unit_test(test_fallback),
        cmocka_unit_test(test_boundary_is_exact),
        cmocka_unit_test(test_sharers),
        cmocka_unit_test(test_short_prompt),
        cmocka_unit_test(test_sliding_windows),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_scheme_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
