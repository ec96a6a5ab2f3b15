/* Request traces. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "traces/world.h"

#ifndef SMG_TESTDIR
#define SMG_TESTDIR "tests"
#endif
#define FILE_NAME                    "test_traces.tmp"
#define DATA(name)                   SMG_TESTDIR "/data/" name
#define SHARED(name)                 SMG_TESTDIR "/../../shared/data/" name

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

static void write_file(const char *text)
{
    FILE *f = fopen(FILE_NAME, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* CRLF, a last line without end, 7 fraction digits over midnight, equal times, a failed request. */
static void test_azure(void **state)
{
    struct smg_diag d = {""};
    struct smg_request_spec *r;
    uint32_t n;

    (void)state;
    assert_int_equal(smg_trace_load(DATA("azure.csv"), SMG_TRACE_AZURE, 0, 1, 0.5, &r, &n, &d), SMG_OK);
    assert_int_equal(n, 3);
    assert_non_null(strstr(d.text, "1 rows without prompt or output tokens were skipped"));
    assert_true(r[0].arrival_s == 0 && r[1].arrival_s == 0);
    assert_near(r[2].arrival_s, 2.5000001, 1e-10);
    assert_int_equal(r[0].prompt_tokens, 374);
    assert_int_equal(r[1].prompt_tokens, 3);
    assert_int_equal(r[1].output_tokens, 1);
    assert_int_equal(r[1].hit_tokens, 1);
    assert_int_equal(r[2].hit_tokens, 7025);
    free(r);
    assert_int_equal(smg_trace_load(DATA("azure.csv"), SMG_TRACE_AZURE, 2, 1, 0, &r, &n, &d), SMG_OK);
    assert_int_equal(n, 2);
    free(r);
}

/* Columns by name, stable sort, speed-up. */
static void test_plain_csv(void **state)
{
    static const uint32_t order[] = {200, 400, 100, 300};
    struct smg_diag d = {""};
    struct smg_request_spec *r;
    uint32_t n, i;

    (void)state;
    assert_int_equal(smg_trace_load(DATA("plain.csv"), SMG_TRACE_CSV, 0, 4, 0, &r, &n, &d), SMG_OK);
    assert_int_equal(n, 4);
    assert_string_equal(d.text, "");
    for (i = 0; i < n; i++) {
        assert_int_equal(r[i].prompt_tokens, order[i]);
        assert_true(r[i].arrival_s == (i < 2 ? 0 : 0.5));
    }
    free(r);
}

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
    for (i = 0; i < n; i++) {
        assert_int_equal(r[i].hit_tokens, hits[i]);
    }
    assert_near(r[2].arrival_s, 0.5005, 1e-12);
    free(r);
}

static void check_bad_trace(enum smg_trace_format format, const char *text, const char *message)
{
    struct smg_request_spec *r = NULL;
    struct smg_diag d;
    uint32_t n = 77;

    write_file(text);
    assert_true(smg_trace_load(FILE_NAME, format, 0, 1, 0, &r, &n, &d) < 0);
    remove(FILE_NAME);
    assert_string_equal(d.text, message);
    assert_null(r);
    assert_int_equal(n, 77);
}

static void test_bad_traces(void **state)
{
    const char *csv = "arrival_s,prompt_tokens,output_tokens\n", *azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    char text[512];

    (void)state;
    check_bad_trace(SMG_TRACE_CSV, "", FILE_NAME ": empty file");
    check_bad_trace(SMG_TRACE_CSV, csv, FILE_NAME ": no usable request (0 without tokens)");
    check_bad_trace(SMG_TRACE_CSV, "arrival,prompt_tokens\n1,2\n", FILE_NAME ":1: column 'arrival_s' is missing");
    snprintf(text, sizeof(text), "%s1,2,3\nx,2,3\n", csv);
    check_bad_trace(SMG_TRACE_CSV, text, FILE_NAME ":3: field 'arrival_s': expected a number of seconds, found 'x'");
    snprintf(text, sizeof(text), "%s2000000001,2,3\n1,2,3\n1000000001,2,3\n", csv);
    check_bad_trace(SMG_TRACE_CSV, text,
                    FILE_NAME ":2: arrival: expected at most 1e9 s after the first one (line 3), found 2e+09 s");
    check_bad_trace(SMG_TRACE_MOONCAKE,
                    "{\"timestamp\": 0, \"input_length\": 4, \"output_length\": 4}\n"
                    "{\"timestamp\": 1e13, \"input_length\": 4, \"output_length\": 4}\n",
                    FILE_NAME ":2: arrival: expected at most 1e9 s after the first one (line 1), found 1e+10 s");
    snprintf(text, sizeof(text), "%s1,2.5,3\n", csv);
    check_bad_trace(SMG_TRACE_CSV, text, FILE_NAME ":2: field 'prompt_tokens': expected tokens in [0, 16000000], found '2.5'");
    snprintf(text, sizeof(text), "%s1,2\n", csv);
    check_bad_trace(SMG_TRACE_CSV, text, FILE_NAME ":2: field 'output_tokens': missing: the row has 2 fields");
    snprintf(text, sizeof(text), "%s2023-13-16 18:15:46.6805900,1,1\n", azure);
    check_bad_trace(SMG_TRACE_AZURE, text,
                    FILE_NAME
                    ":2: field 'TIMESTAMP': expected a time YYYY-MM-DD HH:MM:SS.fffffff, found '2023-13-16 18:15:46.6805900'");
    snprintf(text, sizeof(text), "%s2023-1\n", azure);
    check_bad_trace(SMG_TRACE_AZURE, text, FILE_NAME ":2: field 'ContextTokens': missing: the row has 1 fields");
    check_bad_trace(SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": -4}\n",
                    FILE_NAME ":1: field 'input_length': expected tokens in [0, 16000000], found '-4'");
    check_bad_trace(SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": 4}\n",
                    FILE_NAME ":1: field 'output_length': expected tokens in [0, 16000000], found 'nothing'");
    check_bad_trace(SMG_TRACE_MOONCAKE, "{\"timestamp\": \"a\", \"input_length\": 4, \"output_length\": 4}\n",
                    FILE_NAME ":1: field 'timestamp': expected milliseconds >= 0, found '\"a\"'");
    check_bad_trace(SMG_TRACE_MOONCAKE, "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 4, \"hash_ids\": [1.5]}\n",
                    FILE_NAME ":1: field 'hash_ids': expected 64-bit integers, found '1.5'");
    check_bad_trace(SMG_TRACE_MOONCAKE, "\n[1]\n", FILE_NAME ":2: expected a JSON object");
    check_bad_trace(SMG_TRACE_VIDUR, "x", FILE_NAME ": this trace format is not available yet; use azure, mooncake or csv");
}

static void mean_tokens(const struct smg_request_spec *r, uint32_t n, double *in, double *out, double *hit)
{
    uint32_t i;

    *in = *out = *hit = 0;
    for (i = 0; i < n; i++) {
        *in += (double)r[i].prompt_tokens / n;
        *out += (double)r[i].output_tokens / n;
        *hit += (double)r[i].hit_tokens / n;
    }
}

/* The public traces, where a copy lies beside the source tree; their published statistics. */
static void test_public_traces(void **state)
{
    struct smg_diag d = {""};
    struct smg_request_spec *r;
    double in, out, hit;
    uint32_t n;

    (void)state;
    if (access(SHARED("AzureLLMInferenceTrace_conv.csv"), R_OK) != 0 ||
        access(SHARED("mooncake_conversation_trace.jsonl"), R_OK) != 0) {
        print_message("the public traces are not here: their statistics were not checked\n");
        return;
    }
    assert_int_equal(smg_trace_load(SHARED("AzureLLMInferenceTrace_conv.csv"), SMG_TRACE_AZURE, 0, 1, 0, &r, &n, &d), SMG_OK);
    mean_tokens(r, n, &in, &out, &hit);
    free(r);
    assert_int_equal(n, 19366);
    assert_near(in, 1155, 1);
    assert_near(out, 211, 1);
    assert_int_equal(smg_trace_load(SHARED("mooncake_conversation_trace.jsonl"), SMG_TRACE_MOONCAKE, 0, 1, 0, &r, &n, &d),
                     SMG_OK);
    mean_tokens(r, n, &in, &out, &hit);
    free(r);
    assert_int_equal(n, 12031);
    assert_near(in, 12035, 1);
    assert_near(out, 343, 1);
    /* 36.6% of the 288,500 blocks were seen before; whole blocks are counted, so the last one may be cut. */
    assert_near(hit * n / 512 / 288500, 0.366, 0.002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_azure),      cmocka_unit_test(test_plain_csv),     cmocka_unit_test(test_mooncake),
        cmocka_unit_test(test_bad_traces), cmocka_unit_test(test_public_traces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
