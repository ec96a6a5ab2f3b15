/* Attention of emulated runs against the reference. Narrow and wide heads, every selector, several seeds, rows in another order
 * than the reference's: rounding alone. One wrong entry, K or V, is more, and so is an output that is no number. Models that
 * kernels do not take are refused by the key of their file. */
#include "tests/world_fixture.h"

#include <stdio.h>

#include "core/rng.h"
#include "emu/compute_priv.h"

enum { TOKENS = 160, STEPS = 3, LAYERS = 3, LAYER = 2 }; /* the third layer is the first that selects */

/* A world, its compute, and the rows of one step. */
struct fixture {
    struct smg_world w;
    struct smg_request_spec request;
    struct smg_compute_plan *plan;
    struct smg_compute *c;
    struct smg_layout l;
    uint8_t *kv, *metadata, *device;
    int32_t *ids; /* [heads][cap] */
    uint32_t row[SMG_COMPUTE_MAX_HEADS];
    struct smg_compute_rows rows;
};

static void open_fixture(struct fixture *f, uint32_t head_dim, enum smg_selector selector, uint64_t seed)
{
    struct smg_diag diag = {""};

    memset(f, 0, sizeof *f);
    fixture_world(&f->w);
    f->w.model.layers = LAYERS;
    f->w.model.q_heads = 8;
    f->w.model.kv_heads = 2;
    f->w.model.head_dim = head_dim;
    f->w.scenario.seed = seed;
    f->w.scenario.selector = selector;
    f->w.scenario.blocks_per_layer = 16;
    f->w.scenario.emu.backend = SMG_BACKEND_CPU;
    f->request = (struct smg_request_spec){.prompt_tokens = TOKENS, .output_tokens = STEPS + 1};
    f->w.requests = &f->request;
    f->w.n_requests = 1;
    if (smg_compute_plan_create(&f->w, &f->plan, &diag) || smg_compute_create(&f->w, f->plan, &f->c, &diag))
        fail_msg("%s", diag.text);
    smg_layout_init(&f->l, &f->w, 0, 1);
    f->kv = calloc(1, smg_layout_kv_bytes(&f->l));
    f->metadata = calloc(1, smg_layout_metadata_bytes(&f->l) + 1);
    f->ids = calloc((size_t)f->l.heads * TOKENS, sizeof *f->ids);
    f->device = calloc(2 * (size_t)f->l.heads * TOKENS, f->l.half_bytes);
    assert_true(f->kv && f->metadata && f->ids && f->device);
    f->rows = (struct smg_compute_rows){f->device, TOKENS, f->ids, f->row};
    assert_int_equal(smg_compute_fill(f->c, &f->l, 0, LAYER, f->kv), SMG_OK);
    assert_int_equal(smg_compute_metadata(f->c, &f->l, LAYER, f->kv, f->metadata), SMG_OK);
}

static void close_fixture(struct fixture *f)
{
    free(f->device);
    free(f->ids);
    free(f->metadata);
    free(f->kv);
    smg_compute_destroy(f->c);
    smg_compute_plan_destroy(f->plan);
}

/* Puts a token's K or V where entry j of a row is. */
static void put(struct fixture *f, uint32_t head, uint32_t j, uint32_t token, int v)
{
    uint64_t at = (((uint64_t)v * f->l.heads + head) * TOKENS + j) * f->l.half_bytes;

    smg_compute_half(f->c, 0, LAYER, head, token, v, f->device + at);
}

/* What the selector picks in a step, gathered in an order by chance. */
static void gather(struct fixture *f, uint32_t step)
{
    assert_int_equal(smg_compute_select(f->c, &f->l, 0, step, LAYER, f->metadata, f->ids, TOKENS, f->row), SMG_OK);
    for (uint32_t h = 0; h < f->l.heads; h++) {
        int32_t *ids = f->ids + (size_t)h * TOKENS;
        assert_true(f->row[h] > 0 && f->row[h] <= TOKENS);
        for (uint32_t j = f->row[h] - 1; j; j--) { /* Fisher and Yates */
            uint32_t i = (uint32_t)(smg_hash3(step, h, j) % (j + 1));
            int32_t id = ids[i];
            ids[i] = ids[j];
            ids[j] = id;
        }
        for (uint32_t j = 0; j < f->row[h]; j++)
            for (int v = 0; v < 2; v++)
                put(f, h, j, (uint32_t)ids[j], v);
    }
}

static double error_of(struct fixture *f, uint32_t step)
{
    uint64_t digest;
    struct smg_compute_error error = {-1, -1};

    assert_int_equal(smg_compute_attention(f->c, &f->l, 0, step, LAYER, &f->rows, 1, &digest, &error), SMG_OK);
    assert_true(error.of_head >= 0);
    return error.of_terms;
}

static const uint32_t widths[] = {6, 8, 10, 64, 256};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static void test_rounding(void **state)
{
    static const enum smg_selector selectors[] = {SMG_SELECTOR_INFINIGEN, SMG_SELECTOR_HATA, SMG_SELECTOR_QUEST,
                                                  SMG_SELECTOR_ORACLE};
    struct fixture f;

    (void)state;
    for (size_t d = 0; d < WIDTHS; d++)
        for (size_t s = 0; s < sizeof selectors / sizeof selectors[0]; s++)
            for (uint64_t seed = 1; seed <= 4; seed++) {
                open_fixture(&f, widths[d], selectors[s], seed);
                for (uint32_t step = 1; step <= STEPS; step++) {
                    double error;
                    gather(&f, step);
                    error = error_of(&f, step);
                    if (!(error > 0 && error <= SMG_COMPUTE_ROUNDING))
                        fail_msg("head_dim %u, selector %d, seed %u, step %u: off by %g", widths[d], (int)selectors[s],
                                 (unsigned)seed, step, error);
                }
                close_fixture(&f);
            }
}

/* K, or V, of each entry by itself is another token's. */
static void test_wrong_entry(void **state)
{
    struct fixture f;

    (void)state;
    for (size_t d = 0; d < WIDTHS; d++) {
        open_fixture(&f, widths[d], SMG_SELECTOR_ORACLE, 3);
        gather(&f, 1);
        for (uint32_t at = 0; at < 2 * f.l.heads * f.row[0]; at++) {
            uint32_t h = at / 2 / f.row[0], j = at / 2 % f.row[0], token = (uint32_t)f.ids[(size_t)h * TOKENS + j];
            double error;
            put(&f, h, j, token ^ 1, at % 2);
            error = error_of(&f, 1);
            if (!(error > SMG_COMPUTE_ROUNDING))
                fail_msg("head_dim %u: %c of token %u is wrong, and off by %g only", widths[d], at % 2 ? 'V' : 'K', token, error);
            put(&f, h, j, token, at % 2);
        }
        assert_true(error_of(&f, 1) <= SMG_COMPUTE_ROUNDING);
        close_fixture(&f);
    }
}

static void test_no_number(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, 6, SMG_SELECTOR_ORACLE, 1);
    gather(&f, 1);
    memset(f.device + (uint64_t)f.l.heads * TOKENS * f.l.half_bytes, 0xff, 2); /* a NaN in V of the first entry */
    assert_true(error_of(&f, 1) == HUGE_VAL);
    close_fixture(&f);
}

static void test_refused(void **state)
{
    static const struct {
        uint32_t head_dim, q_heads, value_bytes;
        const char *message;
    } cases[] = {
        {2, 8, 2, "key 'head_dim': emu.compute: kernels expects an even number in [6, 256], found 2"},
        {4, 8, 2, "key 'head_dim': emu.compute: kernels expects an even number in [6, 256], found 4"},
        {7, 8, 2, "key 'head_dim': emu.compute: kernels expects an even number in [6, 256], found 7"},
        {258, 8, 2, "key 'head_dim': emu.compute: kernels expects an even number in [6, 256], found 258"},
        {64, 1026, 2, "key 'num_attention_heads': emu.compute: kernels expects at most 1024, found 1026"},
        {64, 8, 4, "key 'dtype': emu.compute: kernels expects 2 bytes a number (bf16), found 4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct smg_world w;
        struct smg_compute_plan *plan = NULL;
        struct smg_diag diag = {""};
        char message[256];
        fixture_world(&w);
        strcpy(w.scenario.model, "narrow.json");
        w.model.layers = LAYERS;
        w.model.kv_heads = 2;
        w.model.head_dim = cases[i].head_dim;
        w.model.q_heads = cases[i].q_heads;
        w.model.value_bytes = cases[i].value_bytes;
        assert_int_equal(smg_compute_plan_create(&w, &plan, &diag), SMG_ERR_UNSUPPORTED);
        assert_null(plan);
        snprintf(message, sizeof message, "key 'model': narrow.json: %s", cases[i].message);
        assert_string_equal(diag.text, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_wrong_entry),
        cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
