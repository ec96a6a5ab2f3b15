/* Schemes: what each asks of the agents under the scenario's switches. */
#include "tests/world_fixture.h"

static struct smg_features features_of(const char *scheme, const struct smg_scenario *s)
{
    struct smg_features f;

    memset(&f, 0x77, sizeof(f));
    smg_scheme_find(scheme)->features(s, &f);
    return f;
}

static void assert_same(const struct smg_features *a, const struct smg_features *b)
{
    assert_int_equal(a->metadata, b->metadata);
    assert_int_equal(a->always_full, b->always_full);
    assert_int_equal(a->parallel, b->parallel);
    assert_int_equal(a->reorder, b->reorder);
    assert_int_equal(a->reuse, b->reuse);
    assert_int_equal(a->speculative, b->speculative);
    assert_string_equal(a->ranking, b->ranking);
}

/* Sets the switches from the bits of n; 0 <= n < 96. */
static void set_switches(struct smg_scenario *s, uint32_t n)
{
    fixture_scenario(s);
    s->on_demand.parallel = n & 1;
    s->on_demand.reorder = n >> 1 & 1;
    s->speculative.enabled = n >> 2 & 1;
    s->proactive.enabled = n >> 3 & 1;
    strcpy(s->proactive.ranking, n >> 4 & 1 ? "profile" : "sequential");
    s->on_demand.reuse = (enum smg_tristate)(n / 32);
}

static void test_find(void **state)
{
    (void)state;
    assert_null(smg_scheme_find("smart"));
    for (size_t i = 0; smg_schemes[i] != NULL; i++) {
        assert_ptr_equal(smg_scheme_find(smg_schemes[i]->name), smg_schemes[i]);
        assert_non_null(smg_schemes[i]->doc);
    }
}

static void test_full_ignores_switches(void **state)
{
    const struct smg_features expected = {.always_full = 1, .ranking = "sequential"};

    (void)state;
    for (uint32_t n = 0; n < 96; n++) {
        struct smg_scenario s;
        struct smg_features f;

        set_switches(&s, n);
        f = features_of("full", &s);
        assert_same(&f, &expected);
    }
}

static void test_partial_honours_reuse_only(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 96; n++) {
        struct smg_features expected = {.metadata = 1, .ranking = "sequential"}, f;
        struct smg_scenario s;

        set_switches(&s, n);
        expected.reuse = s.on_demand.reuse == SMG_TRUE;
        f = features_of("partial", &s);
        assert_same(&f, &expected);
    }
}

static void test_smartgen_follows_switches(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 96; n++) {
        struct smg_features expected = {.metadata = 1}, f;
        struct smg_scenario s;
        int complete;

        set_switches(&s, n);
        complete = s.on_demand.parallel && s.speculative.enabled && strcmp(s.proactive.ranking, "profile") == 0;
        expected.parallel = s.on_demand.parallel;
        expected.reorder = s.on_demand.parallel && s.on_demand.reorder;
        expected.speculative = s.speculative.enabled;
        expected.reuse = s.on_demand.reuse == SMG_TRUE || (s.on_demand.reuse == SMG_AUTO && complete);
        strcpy(expected.ranking, s.proactive.ranking);
        f = features_of("smartgen", &s);
        assert_same(&f, &expected);
    }
}

/* The factor analysis starts from partial: with all factors off, smartgen is partial, whatever else is set. */
static void test_smartgen_without_factors_is_partial(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 96; n++) {
        struct smg_features a, b;
        struct smg_scenario s;

        set_switches(&s, n);
        s.on_demand.parallel = 0;
        s.speculative.enabled = 0;
        strcpy(s.proactive.ranking, "sequential");
        a = features_of("smartgen", &s);
        b = features_of("partial", &s);
        assert_same(&a, &b);
    }
}

static void test_longest_ranking_name(void **state)
{
    struct smg_scenario s;
    struct smg_features f;

    (void)state;
    fixture_scenario(&s);
    memset(s.proactive.ranking, 'x', SMG_NAME_MAX - 1);
    s.proactive.ranking[SMG_NAME_MAX - 1] = '\0';
    f = features_of("smartgen", &s);
    assert_string_equal(f.ranking, s.proactive.ranking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_full_ignores_switches),
        cmocka_unit_test(test_partial_honours_reuse_only),
        cmocka_unit_test(test_smartgen_follows_switches),
        cmocka_unit_test(test_smartgen_without_factors_is_partial),
        cmocka_unit_test(test_longest_ranking_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
