/* Request traces of one JSON object a line: mooncake with its hash ids and other names, llmservingsim with its sessions. */
#include "tests/trace_fixture.h"

#define FILE_NAME "test_traces_jsonl.tmp"

/* Ids of 64 bits; hits are leading ids only, below the prompt; more ids than blocks; no ids. */
static void test_mooncake(void **state)
{
    static const uint32_t hits[] = {0, 1024, 1023, 512, 0, 90};
    struct smg_diag d = {""};
    struct smg_request_spec *r;
    uint32_t n, i;

    (void)state;
    assert_int_equal(smg_trace_load(DATA("mooncake.jsonl"), SMG_TRACE_MOONCAKE, 0, 1, 0.9, &r, &n, &d), SMG_OK);
    assert_int_equal(n, 6);
    assert_string_equal(d.text, DATA("mooncake.jsonl") ": 1 of 7 requests have no prompt or no output tokens and were skipped");
    for (i = 0; i < n; i++) {
        assert_int_equal(r[i].hit_tokens, hits[i]);
    }
    assert_near(r[2].arrival_s, 0.5005, 1e-12);
    free(r);
}

/* Other names of the same keys, hash_ids: null, a delay beside a time; rows out of order, whose hits follow the file. */
static void test_other_names(void **state)
{
    static const uint32_t expected[][3] = {{700, 7, 0}, {1500, 5, 0}, {1024, 6, 1023}};
    struct loaded l = load(DATA("dynamo.jsonl"), SMG_TRACE_MOONCAKE);
    uint32_t i;

    (void)state;
    assert_int_equal(l.n, 3);
    for (i = 0; i < 3; i++) {
        assert_int_equal(l.r[i].prompt_tokens, expected[i][0]);
        assert_int_equal(l.r[i].output_tokens, expected[i][1]);
        assert_int_equal(l.r[i].hit_tokens, expected[i][2]);
    }
    assert_near(l.r[1].arrival_s, 0.1, 1e-12);
    assert_near(l.r[2].arrival_s, 0.3505, 1e-12);
    assert_string_equal(l.note.text, "");
    free(l.r);
}

/* Rows and sessions in one file. Times since 1970 in ns do not fit in a double: differences are exact all the same. A call
 * arrives when the tools before it have run, also after a call that failed. */
static void test_llmservingsim(void **state)
{
    static const struct {
        double ns;
        uint32_t prompt, output;
    } expected[] = {{0, 1472, 133}, {100, 128, 16}, {127348767, 1582, 125}, {127350267, 1700, 7}, {1e9, 64, 8}};
    struct loaded l = load(DATA("llmservingsim.jsonl"), SMG_TRACE_LLMSERVINGSIM);
    uint32_t i;

    (void)state;
    assert_int_equal(l.n, 5);
    for (i = 0; i < 5; i++) {
        assert_near(l.r[i].arrival_s, expected[i].ns / 1e9, 1e-12);
        assert_int_equal(l.r[i].prompt_tokens, expected[i].prompt);
        assert_int_equal(l.r[i].output_tokens, expected[i].output);
    }
    assert_string_equal(l.note.text, DATA("llmservingsim.jsonl") ": 1 of 6 requests have no prompt or no output tokens and were "
                                                                 "skipped; 2 of 5 requests follow another of "
                                                                 "their session: they arrive when the tools before them have "
                                                                 "run, the earliest moment possible");
    free(l.r);
}

/* The limit counts requests, not lines: it may fall inside a session. */
static void test_limit(void **state)
{
    struct smg_diag d = {""};
    struct smg_request_spec *r;
    uint32_t n;

    (void)state;
    assert_int_equal(smg_trace_load(DATA("llmservingsim.jsonl"), SMG_TRACE_LLMSERVINGSIM, 2, 1, 0, &r, &n, &d), SMG_OK);
    assert_int_equal(n, 2);
    assert_int_equal(r[0].prompt_tokens, 1472);
    assert_string_equal(d.text, "");
    free(r);
}

/* The same names as columns. */
static void test_llmservingsim_columns(void **state)
{
    struct loaded l;

    (void)state;
    write_file(FILE_NAME, "arrival_time_ns,input_toks,output_toks\n1700000000000000101,5,6\n1700000000000000100,7,8\n");
    l = load(FILE_NAME, SMG_TRACE_LLMSERVINGSIM);
    remove(FILE_NAME);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.r[0].prompt_tokens, 7);
    assert_near(l.r[1].arrival_s, 1e-9, 1e-15);
    free(l.r);
}

/* Digits in a text are not an id; escapes end where they end. */
static void test_long_digits_in_text(void **state)
{
    struct loaded l;

    (void)state;
    write_file(FILE_NAME,
               "{\"note\": \"\\\"99999999999999999999\\\\\", \"timestamp\": 0, \"input_length\": 513, \"output_length\": 1, "
               "\"x\": 99999999999999999999, \"hash_ids\": [9223372036854775808,-1]}\n"
               "{\"timestamp\": 1, \"input_length\": 513, \"output_length\": 1, "
               "\"hash_ids\": [9223372036854775808, 18446744073709551615]}");
    l = load(FILE_NAME, SMG_TRACE_MOONCAKE);
    remove(FILE_NAME);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.r[1].hit_tokens, 512);
    free(l.r);
}

static void test_refusals(void **state)
{
    (void)state;
    refused(FILE_NAME, SMG_TRACE_MOONCAKE,
            "{\"timestamp\": 0, \"input_length\": 4, \"output_length\": 4}\n"
            "{\"timestamp\": 1e13, \"input_length\": 4, \"output_length\": 4}\n",
            ":2: arrival: expected at most 1e9 s after the first one (line 1), found 1e+10 s");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": -4}\n",
            ":1: field 'input_length': expected a whole number of tokens in [0, 16000000], found '-4'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": 4}\n",
            ":1: field 'output_length': expected a whole number of tokens in [0, 16000000], found nothing");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"created_time\": \"a\", \"input_length\": 4, \"output_length\": 4}\n",
            ":1: field 'created_time': expected milliseconds >= 0, found '\"a\"'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 4, \"hash_ids\": [1.5]}\n",
            ":1: field 'hash_ids': expected 64-bit integers, found '1.5'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 4, \"hash_ids\": 7}\n",
            ":1: field 'hash_ids': expected an array of integers, found '7'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "\n[1]\n", ":2: expected a JSON object, found '[1]'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"timestamp\": 1}\n",
            ":1:28: duplicate object key near '\"timestamp\"'");
    refused(FILE_NAME, SMG_TRACE_MOONCAKE, "{\"hash_ids\": [99999999999999999999}\n", ":1: ']' expected near '}'");
    refused(FILE_NAME, SMG_TRACE_LLMSERVINGSIM, "{\"arrival_time_ns\": 1e99, \"input_toks\": 1, \"output_toks\": 1}\n",
            ":1: field 'arrival_time_ns': expected nanoseconds in [0, 2^63-1], found '1e99'");
    refused(FILE_NAME, SMG_TRACE_LLMSERVINGSIM, "{\"arrival_time_ns\": 9, \"sub_requests\": [3]}\n",
            ":1: field 'sub_requests[0]': expected an object, found '3'");
    refused(FILE_NAME, SMG_TRACE_LLMSERVINGSIM, "{\"arrival_time_ns\": 9, \"sub_requests\": {}}\n",
            ":1: field 'sub_requests': expected an array of at least one call, found '{}'");
    refused(FILE_NAME, SMG_TRACE_LLMSERVINGSIM, "arrival_time,input_toks,output_toks\n1,1,1\n",
            ":1: field 'arrival_time_ns': expected a column of that name, found 'arrival_time,input_toks,output_toks'; "
            "rename column 'arrival_time' if it is that");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mooncake), cmocka_unit_test(test_other_names),           cmocka_unit_test(test_llmservingsim),
        cmocka_unit_test(test_limit),    cmocka_unit_test(test_llmservingsim_columns), cmocka_unit_test(test_long_digits_in_text),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
