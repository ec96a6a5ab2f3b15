/* The CSV reader's words about bad files, and smartgen summarize over folders made by hand. */
#include "tests/folder_fixture.h"

#include "experiments/csv.h"
#include "experiments/summarize.h"

static void assert_refused(const char *folder, const char *text, const char *complaint)
{
    struct smg_diag diag = {""};
    struct smg_csv c;

    file_put(file_in(folder, "x.csv"), text);
    assert_int_equal(smg_csv_read(file_in(folder, "x.csv"), &c, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, complaint));
    assert_null(c.text);
}

static void test_csv(void **state)
{
    struct smg_diag diag = {""};
    struct smg_csv c;
    size_t column = 9;
    double x;

    file_put(file_in(*state, "x.csv"), "a,b\r\n1.5,\r\ntwo,3");
    assert_int_equal(smg_csv_read(file_in(*state, "x.csv"), &c, &diag), SMG_OK);
    assert_int_equal(c.rows, 2);
    assert_int_equal(smg_csv_column(&c, "c", &column, &diag), SMG_ERR_PARSE);
    assert_int_equal(column, 9);
    assert_int_equal(smg_csv_column(&c, "b", &column, &diag), SMG_OK);
    assert_int_equal(smg_csv_number(&c, 0, column, &x, &diag), SMG_OK);
    assert_true(isnan(x));
    assert_int_equal(smg_csv_number(&c, 0, 0, &x, &diag), SMG_OK);
    assert_near(x, 1.5, 0);
    assert_int_equal(smg_csv_number(&c, 1, 0, &x, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "x.csv:3: field 'a': expected a number, found 'two'"));
    assert_string_equal(smg_csv_cell(&c, 1, 1), "3");
    smg_csv_free(&c);

    assert_refused(*state, "", "x.csv:1: expected a header line");
    assert_refused(*state, "a,b\n1,2\n1\n", "x.csv:3: expected 2 cells, found 1");
    assert_refused(*state, "a,b\n1,2,3\n", "x.csv:2: expected 2 cells, found 3");
}

static void put_run(const char *folder, const char *name, const char *rows)
{
    char text[1024];

    assert_int_equal(mkdir(file_in(folder, name), 0777), 0);
    snprintf(text, sizeof text, "request,status,ttft_s,ttst_s,tbt_mean_s,on_demand_ratio\n%s", rows);
    file_put(file_in(file_in(folder, name), "requests.csv"), text);
}

/* One blank where there were several. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++)
        if (*from != ' ' || to == text || to[-1] != ' ')
            *to++ = *from;
    *to = '\0';
}

static void test_summarize(void **state)
{
    char one[1024], two[1024], *text = NULL;
    const char *dirs[] = {one, two};
    struct smg_diag diag = {""};
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    put_run(*state, "one", "0,finished,1,2,0.5,\n1,finished,3,4,,\n2,failed,,,,\n");
    put_run(*state, "two", "0,finished,4,5,0.25,0.5\n");
    snprintf(one, sizeof one, "%s", file_in(*state, "one"));
    snprintf(two, sizeof two, "%s", file_in(*state, "two"));
    assert_int_equal(smg_summarize(dirs, 2, f, &diag), SMG_OK);
    assert_int_equal(fclose(f), 0);
    squeeze(text);
    /* two values 1 and 3: t(0.975, 1) = 12.706, standard error 1 */
    assert_non_null(strstr(text, "/one 3 1 2 +- 13 3 +- 13 0.5 -\n"));
    assert_non_null(strstr(text, "/two 1 0 4 5 0.25 0.5\n"));
    assert_non_null(strstr(text, "mean of runs 4 1 3 +- 13 4 +- 13 0.375 +- 1.6 0.5\n"));
    free(text);

    file_put(file_in(one, "requests.csv"), "request,status\n");
    assert_int_equal(smg_summarize(dirs, 2, stdout, &diag), SMG_ERR_PARSE);
    assert_non_null(strstr(diag.text, "no column 'ttft_s'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_csv, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_summarize, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
