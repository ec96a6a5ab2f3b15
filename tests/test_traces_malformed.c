/* Every file of tests/data/malformed/traces, named FORMAT-CASE.EXT, is refused with exactly the line in FORMAT-CASE.expected. */
#include <dirent.h>

#include "tests/trace_fixture.h"

#include "traces/text.h"

#define FOLDER DATA("malformed/traces")

/* The format that a file's name begins with. */
static enum smg_trace_format format_of(const char *file)
{
    static const struct {
        const char *name;
        enum smg_trace_format format;
    } formats[] = {
        {"azure-", SMG_TRACE_AZURE}, {"mooncake-", SMG_TRACE_MOONCAKE},   {"burstgpt-", SMG_TRACE_BURSTGPT},
        {"vidur-", SMG_TRACE_VIDUR}, {"splitwise-", SMG_TRACE_SPLITWISE}, {"llmservingsim-", SMG_TRACE_LLMSERVINGSIM},
        {"csv-", SMG_TRACE_CSV},
    };
    size_t i;

    for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strncmp(file, formats[i].name, strlen(formats[i].name)) == 0) {
            return formats[i].format;
        }
    }
    fail_msg("%s: the name begins with no format", file);
    return SMG_TRACE_CSV;
}

static void check(const char *file)
{
    struct smg_request_spec *r = NULL;
    struct smg_diag d = {""};
    char name[256], *expected;
    size_t bytes;
    uint32_t n = 0;

    snprintf(name, sizeof(name), "%.*s.expected", (int)(strrchr(file, '.') - file), file);
    assert_int_equal(smg_file_read(name, 4096, &expected, &bytes, &d), SMG_OK);
    assert_true(bytes > 1 && strchr(expected, '\n') == expected + bytes - 1);
    expected[bytes - 1] = '\0';
    assert_true(smg_trace_load(file, format_of(file), 0, 1, 0, &r, &n, &d) < 0);
    assert_string_equal(d.text, expected);
    free(expected);
}

static void test_folder(void **state)
{
    struct dirent *entry;
    DIR *dir = opendir(FOLDER);
    int cases = 0;

    (void)state;
    assert_non_null(dir);
    assert_int_equal(chdir(FOLDER), 0);
    while ((entry = readdir(dir)) != NULL) {
        const char *ending = strrchr(entry->d_name, '.');

        if (entry->d_name[0] != '.' && ending != NULL && strcmp(ending, ".expected") != 0) {
            check(entry->d_name);
            cases++;
        }
    }
    closedir(dir);
    assert_true(cases >= 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folder)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
