/* The public traces, where a copy lies beside the source tree. Of the Azure and Mooncake ones rows, span, mean, p50, p99 and
 * maximum are the published figures, of the others they were counted. */
#include "tests/trace_fixture.h"

/* Of one length of a trace. The mean is published rounded to a whole number, the others are values of the file. */
struct facts {
    uint32_t mean, p50, p99, max;
};

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Quantile q is the value of rank floor(q n), from 0: so were the published ones taken. */
static void check_lengths(const struct loaded *l, int output, const struct facts *f)
{
    uint32_t *v = malloc(l->n * sizeof(*v)), i;
    double sum = 0;

    assert_non_null(v);
    for (i = 0; i < l->n; i++) {
        v[i] = output ? l->r[i].output_tokens : l->r[i].prompt_tokens;
        sum += v[i];
    }
    qsort(v, l->n, sizeof(*v), by_value);
    assert_int_equal((uint32_t)(sum / l->n + 0.5), f->mean);
    assert_int_equal(v[l->n / 2], f->p50);
    assert_int_equal(v[(size_t)l->n * 99 / 100], f->p99);
    assert_int_equal(v[l->n - 1], f->max);
    free(v);
}

/* Nothing left out, the first arrival at 0, the last one at span_s. */
static void check(const char *path, enum smg_trace_format format, uint32_t rows, double span_s, double tolerance_s,
                  const struct facts *prompt, const struct facts *output)
{
    struct loaded l;

    if (!at_hand(path)) {
        return;
    }
    l = load(path, format);
    assert_int_equal(l.n, rows);
    assert_string_equal(l.note.text, "");
    assert_true(l.r[0].arrival_s == 0);
    assert_near(l.r[rows - 1].arrival_s, span_s, tolerance_s);
    check_lengths(&l, 0, prompt);
    check_lengths(&l, 1, output);
    free(l.r);
}

/* 18:15:46.6805900 to 19:14:08.4025270, to the 100 ns that the file has; published: 58 min. */
static void test_azure(void **state)
{
    static const struct facts prompt = {1155, 1020, 4142, 14050}, output = {211, 129, 601, 1000};

    (void)state;
    check(SHARED("AzureLLMInferenceTrace_conv.csv"), SMG_TRACE_AZURE, 19366, 3501.721937, 1e-7, &prompt, &output);
}

/* Published: 59 min. */
static void test_mooncake(void **state)
{
    static const struct facts prompt = {12035, 6909, 85401, 126195}, output = {343, 350, 1120, 2000};

    (void)state;
    check(SHARED("mooncake_conversation_trace.jsonl"), SMG_TRACE_MOONCAKE, 12031, 3536.999, 1e-9, &prompt, &output);
}

/* 36.6% of the blocks were seen before. Hits are whole blocks except that at least one token of a prompt is new, and only leading
 * ones count, so that the tokens of the hits stay a little below. */
static void test_mooncake_reuse(void **state)
{
    const char *path = SHARED("mooncake_conversation_trace.jsonl");
    struct loaded l;
    double hits = 0;
    uint32_t i;

    (void)state;
    if (!at_hand(path)) {
        return;
    }
    l = load(path, SMG_TRACE_MOONCAKE);
    for (i = 0; i < l.n; i++) {
        hits += l.r[i].hit_tokens / 512.0;
    }
    assert_near(hits / 288500, 0.366, 0.002);
    free(l.r);
}

static void test_splitwise(void **state)
{
    static const struct facts prompt = {2731, 2048, 4096, 4096}, output = {19, 16, 32, 32};

    (void)state;
    check(SHARED("splitwise-sim_test_trace.csv"), SMG_TRACE_SPLITWISE, 3, 3, 0, &prompt, &output);
}

static void test_llmservingsim(void **state)
{
    static const struct facts prompt = {12, 15, 22, 22}, output = {59, 69, 104, 104};

    (void)state;
    check(SHARED("llmservingsim_example_trace.jsonl"), SMG_TRACE_LLMSERVINGSIM, 10, 0.980043269, 1e-9, &prompt, &output);
}

/* Published: 300 requests in about 30 s. */
static void test_sharegpt(void **state)
{
    static const struct facts prompt = {857, 733, 2884, 3998}, output = {653, 633, 796, 1021};

    (void)state;
    check(SHARED("llmservingsim_sharegpt_llama31_8b_300_lengths.csv"), SMG_TRACE_LLMSERVINGSIM, 300, 29.136836395, 1e-9, &prompt,
          &output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_azure),     cmocka_unit_test(test_mooncake),      cmocka_unit_test(test_mooncake_reuse),
        cmocka_unit_test(test_splitwise), cmocka_unit_test(test_llmservingsim), cmocka_unit_test(test_sharegpt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
