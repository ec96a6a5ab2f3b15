/* Length distributions: files of pairs, tables of quantiles, and the workloads that are drawn from them. */
#include "tests/trace_fixture.h"

#include "traces/lengths.h"
#include "traces/scenario.h"

#define FILE_NAME  "test_lengths.tmp.json"
#define CSV_NAME   "test_lengths.tmp.csv"

#define WORLD(...) world_of((const char *const[]){__VA_ARGS__, NULL})

/* The world of the default scenario with these sets, which must load. */
static struct smg_world world_of(const char *const *sets)
{
    struct smg_diag d = {""};
    struct smg_scenario s;
    struct smg_world w;
    size_t n;

    for (n = 0; sets[n] != NULL; n++) {
    }
    memset(&w, 0, sizeof(w));
    if (smg_scenario_load(NULL, sets, n, &s, &d) != SMG_OK || smg_world_load(&s, &w, &d) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    return w;
}

static struct smg_lengths *open_lengths(const char *name)
{
    struct smg_lengths *l = NULL;
    struct smg_diag d = {""};

    if (smg_lengths_open(name, &l, &d) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    return l;
}

/* Pairs stay together and come about equally often; rows without tokens are left out and told. */
static void test_pairs(void **state)
{
    struct smg_lengths *l = NULL;
    struct smg_diag d = {""};
    struct smg_rng rng;
    uint32_t i, first = 0, prompt, output;

    (void)state;
    assert_int_equal(smg_lengths_open(DATA("vidur-lengths.csv"), &l, &d), SMG_OK);
    assert_string_equal(d.text, DATA("vidur-lengths.csv") ": 1 of 3 rows have no prompt or no output tokens and were skipped");
    smg_rng_init(&rng, 7, "lengths");
    for (i = 0; i < 10000; i++) {
        smg_lengths_draw(l, &rng, &prompt, &output);
        assert_true((prompt == 1000 && output == 100) || (prompt == 3000 && output == 200));
        first += prompt == 1000;
    }
    /* Standard deviation 50; the seed is fixed. */
    assert_near(first, 5000, 200);
    smg_lengths_close(l);
    smg_lengths_close(NULL);
}

/* Any file with lengths: each format's columns, and JSON rows. */
static void test_any_format(void **state)
{
    static const struct {
        const char *file;
        uint32_t pairs, prompt, output;
    } files[] = {
        {DATA("azure.csv"), 3, 374, 44},    {DATA("plain.csv"), 4, 100, 8},          {DATA("forms.csv"), 4, 100, 8},
        {DATA("burstgpt.csv"), 3, 472, 18}, {DATA("burstgpt-v1.2.csv"), 3, 472, 18}, {DATA("splitwise.csv"), 3, 4096, 32},
        {DATA("vidur.csv"), 3, 374, 44},    {DATA("mooncake.jsonl"), 6, 1500, 5},    {DATA("llmservingsim.jsonl"), 5, 128, 16},
        {DATA("dynamo.jsonl"), 3, 1500, 5},
    };
    struct smg_lengths *l;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        l = open_lengths(files[i].file);
        assert_int_equal(l->n_pairs, files[i].pairs);
        assert_int_equal(l->pair[0][0], files[i].prompt);
        assert_int_equal(l->pair[0][1], files[i].output);
        smg_lengths_close(l);
    }
    /* Only the lengths are looked at: a batch of two is two requests of that length, and times need not be there. */
    write_file(CSV_NAME, "batch_size,prompt_size,token_size\n2,5,6\n");
    l = open_lengths(CSV_NAME);
    remove(CSV_NAME);
    assert_int_equal(l->pair[0][0], 5);
    smg_lengths_close(l);
}

static void test_quantiles(void **state)
{
    static const struct smg_quantiles q = {4, {0, 50, 90, 100}, {10, 20, 20, 120}};

    (void)state;
    assert_near(smg_quantiles_at(&q, 0), 10, 0);
    assert_near(smg_quantiles_at(&q, 0.25), 15, 1e-12);
    assert_near(smg_quantiles_at(&q, 0.5), 20, 1e-12);
    assert_near(smg_quantiles_at(&q, 0.7), 20, 1e-12);
    assert_near(smg_quantiles_at(&q, 0.95), 70, 1e-9);
    assert_near(smg_quantiles_at(&q, 1 - 0x1p-53), 120, 1e-9);
    assert_near(smg_quantiles_mean(&q), 0.5 * 15 + 0.4 * 20 + 0.1 * 70, 1e-12);
}

/* Each built-in table opens (which checks its means), and draws follow it: mean, median, p99, bounds. */
static void test_built_in(void **state)
{
    const uint32_t draws = 200000;
    struct smg_lengths *l;
    struct smg_rng rng;
    uint32_t prompt, output, i;
    char **names;
    size_t k;

    (void)state;
    assert_int_equal(smg_names_list("lengths", &names), SMG_OK);
    assert_string_equal(names[0], "azure-conversation");
    for (k = 0; names[k] != NULL; k++) {
        double sum[2] = {0, 0}, below[2] = {0, 0};

        l = open_lengths(names[k]);
        assert_null(l->pair);
        smg_rng_init(&rng, 1, "lengths");
        for (i = 0; i < draws; i++) {
            smg_lengths_draw(l, &rng, &prompt, &output);
            sum[0] += prompt;
            sum[1] += output;
            below[0] += prompt <= smg_quantiles_at(&l->prompt, 0.99);
            below[1] += output <= smg_quantiles_at(&l->output, 0.5);
            assert_true(prompt >= l->prompt.tokens[0] && prompt <= l->prompt.tokens[l->prompt.n - 1]);
            assert_true(output >= l->output.tokens[0] && output <= l->output.tokens[l->output.n - 1]);
        }
        /* The coefficient of variation is below 2: the mean of 200,000 has a standard error below 0.45%. */
        assert_near(sum[0] / draws, smg_quantiles_mean(&l->prompt), 0.015 * smg_quantiles_mean(&l->prompt));
        assert_near(sum[1] / draws, smg_quantiles_mean(&l->output), 0.015 * smg_quantiles_mean(&l->output));
        /* Rounding to whole tokens moves shares: a quantile may hold a few percent of the output lengths. */
        assert_near(below[0] / draws, 0.99, 0.002);
        assert_near(below[1] / draws, 0.5, 0.02);
        smg_lengths_close(l);
    }
    assert_int_equal(k, 3);
    smg_names_free(names);
}

/* The tables against the public files that they were made from. */
static void test_built_in_origin(void **state)
{
    static const struct {
        const char *name, *file;
    } origins[] = {
        {"azure-conversation", SHARED("AzureLLMInferenceTrace_conv.csv")},
        {"mooncake-conversation", SHARED("mooncake_conversation_trace.jsonl")},
        {"sharegpt", SHARED("llmservingsim_sharegpt_llama31_8b_300_lengths.csv")},
    };
    struct smg_lengths *table, *file;
    double below[2];
    size_t i, j;
    uint32_t p;

    (void)state;
    for (i = 0; i < 3; i++) {
        if (!at_hand(origins[i].file)) {
            continue;
        }
        table = open_lengths(origins[i].name);
        file = open_lengths(origins[i].file);
        for (p = 0; p < table->prompt.n; p++) {
            below[0] = below[1] = 0;
            for (j = 0; j < file->n_pairs; j++) {
                below[0] += file->pair[j][0] < table->prompt.tokens[p] - 0.06;
                below[1] += file->pair[j][0] <= table->prompt.tokens[p] + 0.06;
            }
            /* A rank either way, of which the smallest file has 300. */
            assert_true(100 * below[0] / file->n_pairs <= table->prompt.percent[p] + 100.0 / file->n_pairs);
            assert_true(100 * below[1] / file->n_pairs >= table->prompt.percent[p] - 100.0 / file->n_pairs);
        }
        smg_lengths_close(table);
        smg_lengths_close(file);
    }
}

#define FACT(value, unit) "{\"value\": " value ", \"unit\": \"" unit "\", \"source\": \"x\"}"
#define GOOD              "\"prompt_tokens\": " FACT("[[0, 1], [100, 3]]", "%, tokens")

static void test_bad_tables(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"{" GOOD "}", "key 'output_tokens': 'value': expected a list of 2 to 256 quantiles [percent, tokens]"},
        {"{" GOOD ", \"output_tokens\": 7}", "key 'output_tokens': expected {\"value\", \"unit\", \"source\", \"derivation\"}"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 1], [100, 3]]", "tokens") "}",
         "key 'output_tokens': 'unit': expected \"%, tokens\", found \"tokens\""},
        {"{" GOOD ", \"output_tokens\": {\"value\": [[0, 1], [100, 3]], \"unit\": \"%, tokens\"}}",
         "key 'output_tokens': 'source' is missing: where does the value come from?"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 1], [50, 3], [50, 4], [100, 5]]", "%, tokens") "}",
         "key 'output_tokens': quantile 2: expected percents that rise from 0 to 100, found 50"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[1, 1], [100, 5]]", "%, tokens") "}",
         "key 'output_tokens': quantile 0: expected percents that rise from 0 to 100, found 1"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 5], [100, 4]]", "%, tokens") "}",
         "key 'output_tokens': quantile 1: expected tokens in [1, 16000000] that do not fall, found 4"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 0], [100, 4]]", "%, tokens") "}",
         "key 'output_tokens': quantile 0: expected tokens in [1, 16000000] that do not fall, found 0"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 1], [99, 4]]", "%, tokens") "}",
         "key 'output_tokens': 'value': expected a last quantile at 100 %"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 1], [100]]", "%, tokens") "}",
         "key 'output_tokens': quantile 1: expected [percent, tokens]"},
        {"{" GOOD ", \"output_tokens\": " FACT("[[0, 1], [100, 3]]", "%, tokens") ", \"prompt_mean\": " FACT("2.1", "tokens") "}",
         "key 'prompt_mean': 'value': expected the mean of the quantiles, 2, within 2%, found 2.1"},
        {"{\"prompt_token\": 1}", "key 'prompt_token': unknown key; did you mean 'prompt_tokens'?"},
        {"{\"prompt_tokens\": {\"vale\": 1}}", "key 'prompt_tokens.vale': unknown key; did you mean 'value'?"},
    };
    struct smg_lengths *l = NULL;
    char expected[512];
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(FILE_NAME, bad[i].text);
        assert_int_equal(smg_lengths_open("./" FILE_NAME, &l, &d), SMG_ERR_PARSE);
        remove(FILE_NAME);
        snprintf(expected, sizeof(expected), "./%s: %s", FILE_NAME, bad[i].message);
        assert_string_equal(d.text, expected);
        assert_null(l);
    }
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"a,b\n1,2\n",
         ":1: expected columns of lengths (prompt_tokens and output_tokens, or those of a trace format), found 'a,b'"},
        {"prompt_tokens|output_tokens\n1|2\n",
         ":1: expected columns separated by ',', found 'prompt_tokens|output_tokens', separated by '|'"},
        {"prompt_tokens,output_tokens\n1,x\n",
         ":2: field 'output_tokens': expected a whole number of tokens in [0, 16000000], found 'x'"},
        {"prompt_tokens,output_tokens\n0,5\n", ": expected a row with prompt and output tokens, found none in 1 rows"},
        {"{\"a\": 1}\n", ":1: expected lengths: columns, or rows of format mooncake or llmservingsim, found other JSON"},
        {"", ":1: expected a request trace, found an empty file"},
    };
    static const struct {
        const char *name, *hint;
    } unknown[] = {{"maen", "; did you mean 'mean'?"},
                   {"azure", "; did you mean 'azure-conversation'?"},
                   {"share-gpt", "; did you mean 'sharegpt'?"},
                   {"nothing", ""}};
    struct smg_lengths *l = NULL;
    char expected[512];
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(CSV_NAME, bad[i].text);
        assert_int_equal(smg_lengths_open(CSV_NAME, &l, &d), SMG_ERR_PARSE);
        remove(CSV_NAME);
        snprintf(expected, sizeof(expected), "%s%s", CSV_NAME, bad[i].message);
        assert_string_equal(d.text, expected);
    }
    for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_int_equal(smg_lengths_open(unknown[i].name, &l, &d), SMG_ERR_NOT_FOUND);
        snprintf(expected, sizeof(expected),
                 "key 'workload.lengths': expected mean, a name of `smartgen list lengths` or a file, found '%s'%s",
                 unknown[i].name, unknown[i].hint);
        assert_string_equal(d.text, expected);
    }
    assert_int_equal(smg_lengths_open("no/such.csv", &l, &d), SMG_ERR_IO);
    assert_null(l);
}

/* Lengths have a stream of their own: the same requests at any rate, other ones with another seed; arrivals are those of equal
 * lengths. */
static void test_workload(void **state)
{
    struct smg_world a = WORLD("workload.lengths=sharegpt", "workload.requests=50", "scheme=full");
    struct smg_world b = WORLD("workload.lengths=sharegpt", "workload.requests=50", "scheme=full", "workload.kind=poisson");
    struct smg_world c = WORLD("workload.lengths=sharegpt", "workload.requests=50", "scheme=full", "seed=2");
    struct smg_world d = WORLD("workload.requests=50", "scheme=full", "workload.kind=poisson");
    uint32_t i, same = 0;

    (void)state;
    for (i = 0; i < 50; i++) {
        assert_int_equal(a.requests[i].prompt_tokens, b.requests[i].prompt_tokens);
        assert_int_equal(a.requests[i].output_tokens, b.requests[i].output_tokens);
        assert_int_equal(a.requests[i].hit_tokens, (uint32_t)(0.75 * a.requests[i].prompt_tokens));
        assert_true(b.requests[i].arrival_s == d.requests[i].arrival_s);
        same += a.requests[i].prompt_tokens == c.requests[i].prompt_tokens;
    }
    assert_true(same < 10);
    assert_true(a.synthetic_workload && d.synthetic_workload);
    assert_string_equal(a.workload_note.text, "");
    /* The resolved scenario can be read again: it states no lengths that would contradict the drawn ones. */
    assert_true(!a.scenario.workload.prompt_tokens_set && !a.scenario.workload.output_tokens_set);
    assert_true(d.scenario.workload.prompt_tokens_set && d.scenario.workload.output_tokens_set);
    smg_world_free(&a);
    smg_world_free(&b);
    smg_world_free(&c);
    smg_world_free(&d);
}

static void test_notes(void **state)
{
    struct smg_world w = WORLD("workload.lengths=" DATA("vidur-lengths.csv"), "scheme=full");

    (void)state;
    assert_non_null(strstr(w.workload_note.text, "vidur-lengths.csv: 1 of 3 rows"));
    smg_world_free(&w);
    w = WORLD("workload.kind=trace", "workload.file=" DATA("azure.csv"), "scheme=full");
    assert_non_null(strstr(w.workload_note.text, "azure.csv: 1 of 4 requests"));
    smg_world_free(&w);
}

static void test_conflicts(void **state)
{
    static const struct {
        const char *sets[3], *message;
    } bad[] = {
        {{"workload.lengths=sharegpt", "workload.prompt_tokens=7"},
         "key 'workload.prompt_tokens': expected it absent, as workload.lengths 'sharegpt' draws the lengths, found 7"},
        {{"workload.lengths=sharegpt", "workload.output_tokens=8"},
         "key 'workload.output_tokens': expected it absent, as workload.lengths 'sharegpt' draws the lengths, found 8"},
        {{"workload.lengths=sharegpt", "workload.kind=trace", "workload.file=" DATA("azure.csv")},
         "key 'workload.lengths': expected mean with workload.kind trace, whose requests have lengths, found 'sharegpt'"},
    };
    struct smg_scenario s;
    struct smg_world w;
    struct smg_diag d;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(smg_scenario_load(NULL, bad[i].sets, bad[i].sets[2] != NULL ? 3 : 2, &s, &d), SMG_OK);
        assert_int_equal(smg_world_load(&s, &w, &d), SMG_ERR_INVALID);
        assert_string_equal(d.text, bad[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_any_format),      cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_built_in),  cmocka_unit_test(test_built_in_origin), cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_workload),        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_conflicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
