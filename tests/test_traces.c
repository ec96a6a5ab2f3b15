/* Request traces with columns: formats, the forms that cells and rows may have, order. */
#include "tests/trace_fixture.h"

#define FILE_NAME "test_traces.tmp.csv"

static void assert_lengths(const struct loaded *l, const uint32_t (*expected)[2], uint32_t n)
{
    uint32_t i;

    assert_int_equal(l->n, n);
    for (i = 0; i < n; i++) {
        assert_int_equal(l->r[i].prompt_tokens, expected[i][0]);
        assert_int_equal(l->r[i].output_tokens, expected[i][1]);
    }
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
    assert_string_equal(d.text, DATA("azure.csv") ": 1 of 4 requests have no prompt or no output tokens and were skipped");
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

/* The newer Azure traces end in +00:00; a leap day; a leap second. */
static void test_time_stamps(void **state)
{
    static const double expected[] = {0, 1.25, 86400, 86401.5};
    struct loaded l;
    uint32_t i;

    (void)state;
    write_file(FILE_NAME, "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-02-28 23:59:59+00:00,1,1\n2024-02-28 23:59:60.25Z,2,1\n"
                          "2024-02-29T23:59:59.000000+00:00,3,1\n2024-03-01T00:00:00.5,4,1\n");
    l = load(FILE_NAME, SMG_TRACE_AZURE);
    remove(FILE_NAME);
    assert_int_equal(l.n, 4);
    for (i = 0; i < 4; i++) {
        assert_int_equal(l.r[i].prompt_tokens, i + 1);
        assert_near(l.r[i].arrival_s, expected[i], 1e-9);
    }
    free(l.r);
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

/* Byte order mark, quoted names and cells, blanks around them, doubled quotes, commas and line ends in quotes, blank lines,
 * 300.0, a comma at the end of a row, no line end at the end. */
static void test_forms(void **state)
{
    static const uint32_t expected[][2] = {{200, 9}, {400, 6}, {300, 7}, {100, 8}};
    struct loaded l = load(DATA("forms.csv"), SMG_TRACE_CSV);

    (void)state;
    assert_lengths(&l, expected, 4);
    assert_true(l.r[1].arrival_s == 0 && l.r[2].arrival_s == 1 && l.r[3].arrival_s == 2);
    free(l.r);
}

/* Lines are counted over line ends in quotes. */
static void test_line_numbers(void **state)
{
    const char *head = "arrival_s,note,prompt_tokens,output_tokens\n";
    char text[512];

    (void)state;
    snprintf(text, sizeof(text), "\n%s1,\"a\n\nb\",2,3\n\n2,c,x,3\n", head);
    refused(FILE_NAME, SMG_TRACE_CSV, text,
            ":7: field 'prompt_tokens': expected a whole number of tokens in [0, 16000000], found 'x'");
    snprintf(text, sizeof(text), "%s1,\"a\"b,2,3\n", head);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":2: expected a comma after a closing quote, found more text");
    snprintf(text, sizeof(text), "%s1,a,2,3\n2,\"\",1,1,,x\n", head);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":3: field 6: expected 4 fields as in the header, found 'x'");
    snprintf(text, sizeof(text), "%s1,a,2,\n", head);
    refused(FILE_NAME, SMG_TRACE_CSV, text,
            ":2: field 'output_tokens': expected a whole number of tokens in [0, 16000000], found ''");
}

static void test_too_many_fields(void **state)
{
    char text[1024] = "arrival_s,prompt_tokens,output_tokens";
    size_t i, n = strlen(text);

    (void)state;
    for (i = 3; i < 256; i++) {
        text[n++] = ',';
    }
    snprintf(text + n, sizeof(text) - n, "\n0,1,2\n");
    write_file(FILE_NAME, text);
    free(load(FILE_NAME, SMG_TRACE_CSV).r);
    memmove(text + 1, text, strlen(text) + 1);
    text[0] = ',';
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":1: expected at most 256 fields, found more");
}

/* The later version has more columns in another order, and cells that are empty: the requests are the same. */
static void test_burstgpt(void **state)
{
    static const char *const files[] = {DATA("burstgpt.csv"), DATA("burstgpt-v1.2.csv")};
    static const uint32_t expected[][2] = {{472, 18}, {1087, 230}, {417, 276}};
    struct loaded l;
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        l = load(files[i], SMG_TRACE_BURSTGPT);
        assert_lengths(&l, expected, 3);
        assert_true(l.r[0].arrival_s == 0 && l.r[1].arrival_s == 40 && l.r[2].arrival_s == 113.5);
        assert_non_null(strstr(l.note.text, ": 1 of 4 requests have no prompt or no output tokens and were skipped"));
        free(l.r);
    }
}

static void test_splitwise(void **state)
{
    static const uint32_t expected[][2] = {{4096, 32}, {2048, 8}, {512, 1}};
    struct loaded l = load(DATA("splitwise.csv"), SMG_TRACE_SPLITWISE);

    (void)state;
    assert_lengths(&l, expected, 3);
    assert_true(l.r[0].arrival_s == 0 && l.r[1].arrival_s == 1.75 && l.r[2].arrival_s == 1.75);
    free(l.r);
}

static void test_vidur(void **state)
{
    static const uint32_t expected[][2] = {{374, 44}, {396, 109}, {879, 55}};
    struct loaded l = load(DATA("vidur.csv"), SMG_TRACE_VIDUR);

    (void)state;
    assert_lengths(&l, expected, 3);
    assert_near(l.r[1].arrival_s, 4.314579, 1e-12);
    free(l.r);
}

/* The first arrival becomes 0 whatever the origin, also before 0; a row without tokens does not count as the first. */
static void test_first_arrival(void **state)
{
    struct loaded l;

    (void)state;
    write_file(FILE_NAME, "arrival_s,prompt_tokens,output_tokens\n-7,0,5\n3,100,1\n-1.5,200,1\n");
    l = load(FILE_NAME, SMG_TRACE_CSV);
    remove(FILE_NAME);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.r[0].prompt_tokens, 200);
    assert_true(l.r[0].arrival_s == 0 && l.r[1].arrival_s == 4.5);
    free(l.r);
}

/* A million rows with a quoted cell each, in two interleaved ascending runs with many ties: only a reader and a sort that are
 * about linear finish before the time limit of a test, and only a stable sort keeps rows of one time in the order of the file. */
static void test_million_rows(void **state)
{
    const uint32_t rows = 1000000;
    FILE *f = fopen(FILE_NAME, "wb");
    struct loaded l;
    uint32_t i, previous = 0;

    (void)state;
    assert_non_null(f);
    fputs("arrival_s,note,prompt_tokens,output_tokens\n", f);
    for (i = 0; i < rows; i++) {
        fprintf(f, "%u,\"n, %u\",%u,1\n", (i % 2 == 0 ? i : rows - i) / 1000, i, i + 1);
    }
    assert_int_equal(fclose(f), 0);
    l = load(FILE_NAME, SMG_TRACE_CSV);
    remove(FILE_NAME);
    assert_int_equal(l.n, rows);
    for (i = 1; i < rows; i++) {
        if (l.r[i].arrival_s == l.r[i - 1].arrival_s) {
            previous++;
            assert_true(l.r[i].prompt_tokens > l.r[i - 1].prompt_tokens);
        } else {
            assert_true(l.r[i].arrival_s > l.r[i - 1].arrival_s);
        }
    }
    assert_true(previous > 900000);
    free(l.r);
}

static void test_refusals(void **state)
{
    const char *csv = "arrival_s,prompt_tokens,output_tokens\n";
    char text[512];

    (void)state;
    refused(FILE_NAME, SMG_TRACE_CSV, "", ":1: expected a request trace, found an empty file");
    refused(FILE_NAME, SMG_TRACE_CSV, "\xEF\xBB\xBF\r\n", ":1: expected a request trace, found an empty file");
    refused(FILE_NAME, SMG_TRACE_CSV, csv, ": expected a request with prompt and output tokens, found none in 0 rows");
    refused(FILE_NAME, SMG_TRACE_CSV, "arrival,prompt_tokens\n1,2\n",
            ":1: field 'arrival_s': expected a column of that name, found 'arrival,prompt_tokens'; rename column 'arrival' if it "
            "is that");
    snprintf(text, sizeof(text), "%s1,2,3\nx,2,3\n", csv);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":3: field 'arrival_s': expected a number of seconds, found 'x'");
    snprintf(text, sizeof(text), "%s1,2,3\nnan,2,3\n", csv);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":3: field 'arrival_s': expected a number of seconds, found 'nan'");
    snprintf(text, sizeof(text), "%s2000000001,2,3\n1,2,3\n1000000001,2,3\n", csv);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":2: arrival: expected at most 1e9 s after the first one (line 3), found 2e+09 s");
    snprintf(text, sizeof(text), "%s1,16000001,3\n", csv);
    refused(FILE_NAME, SMG_TRACE_CSV, text,
            ":2: field 'prompt_tokens': expected a whole number of tokens in [0, 16000000], found '16000001'");
    snprintf(text, sizeof(text), "%s1,2\n", csv);
    refused(FILE_NAME, SMG_TRACE_CSV, text, ":2: field 'output_tokens': expected 3 fields as in the header, found 2");
    refused(FILE_NAME, SMG_TRACE_CSV,
            "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 4, \"hash_ids\": [18446744073709551615]}\n",
            ":1: expected a header with column 'arrival_s', found JSON; this looks like format mooncake");
    refused(
        FILE_NAME, SMG_TRACE_VIDUR, "prompt_size,arrival_timestamp,batch_size,token_size\n1,1,1,1\n",
        ":1: field 'arrived_at': expected a column of that name, found 'prompt_size,arrival_timestamp,batch_size,token_size'; "
        "this looks like format splitwise");
    refused(FILE_NAME, SMG_TRACE_CSV, "TIMESTAMP,ContextTokens,GeneratedTokens\n",
            ":1: field 'arrival_s': expected a column of that name, found 'TIMESTAMP,ContextTokens,GeneratedTokens'; "
            "this looks like format azure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_azure),         cmocka_unit_test(test_time_stamps),  cmocka_unit_test(test_plain_csv),
        cmocka_unit_test(test_forms),         cmocka_unit_test(test_line_numbers), cmocka_unit_test(test_too_many_fields),
        cmocka_unit_test(test_burstgpt),      cmocka_unit_test(test_splitwise),    cmocka_unit_test(test_vidur),
        cmocka_unit_test(test_first_arrival), cmocka_unit_test(test_million_rows), cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
