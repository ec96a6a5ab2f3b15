/* The record folder: nothing half-written is left, nothing of an earlier run survives. */
#include "tests/folder_fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include "experiments/files.h"
#include "experiments/run.h"

static void put(const struct smg_outdir *o, const char *name, const char *text)
{
    char path[SMG_PATH_MAX];

    assert_int_equal(smg_outdir_file(o, name, path), SMG_OK);
    file_put(path, text);
}

static void test_commit(void **state)
{
    const char *out = file_in(*state, "a/b/run/");
    struct smg_outdir o;
    struct smg_diag diag;

    assert_int_equal(smg_outdir_begin(out, &o, &diag), SMG_OK);
    put(&o, "run.json", "{}");
    put(&o, "fig.svg", "svg");
    assert_false(file_exists(file_in(*state, "a/b/run")));
    assert_int_equal(smg_outdir_commit(&o, &diag), SMG_OK);
    assert_file_is(file_in(*state, "a/b/run/run.json"), "{}");
    assert_file_is(file_in(*state, "a/b/run/fig.svg"), "svg");
    assert_int_equal(entries_in(file_in(*state, "a/b")), 1);
    smg_outdir_abort(&o); /* nothing left to undo */
    assert_true(file_exists(file_in(*state, "a/b/run/run.json")));
}

static void test_replaces_records_only(void **state)
{
    struct smg_outdir o;

    assert_int_equal(mkdir(file_in(*state, "run"), 0777), 0);
    file_put(file_in(*state, "run/tokens.csv"), "old");
    file_put(file_in(*state, "run/run.json"), "old");
    file_put(file_in(*state, "run/notes.txt"), "mine");
    assert_int_equal(smg_outdir_begin(file_in(*state, "run"), &o, NULL), SMG_OK);
    put(&o, "run.json", "new");
    assert_int_equal(smg_outdir_commit(&o, NULL), SMG_OK);
    assert_file_is(file_in(*state, "run/run.json"), "new");
    assert_false(file_exists(file_in(*state, "run/tokens.csv")));
    assert_file_is(file_in(*state, "run/notes.txt"), "mine");
}

static void test_abort(void **state)
{
    struct smg_outdir o;

    assert_int_equal(smg_outdir_begin(file_in(*state, "run"), &o, NULL), SMG_OK);
    put(&o, "run.json", "{}");
    put(&o, "events.bin", "");
    put(&o, "other", "");
    assert_int_equal(entries_in(*state), 1);
    smg_outdir_abort(&o);
    assert_int_equal(entries_in(*state), 0);
}

/* One process at a time; the lock goes with abort and commit. */
static void test_one_at_a_time(void **state)
{
    const char *out = file_in(*state, "run");
    struct smg_outdir first, second;
    struct smg_diag diag = {""};

    assert_int_equal(smg_outdir_begin(out, &first, NULL), SMG_OK);
    assert_int_equal(smg_outdir_begin(out, &second, &diag), SMG_ERR_INVALID);
    assert_non_null(strstr(diag.text, "/run: another run is writing there"));
    assert_int_equal(smg_outdir_begin(file_in(*state, "other"), &second, NULL), SMG_OK); /* another folder */
    smg_outdir_abort(&second);
    smg_outdir_abort(&first);
    assert_int_equal(smg_outdir_begin(out, &first, NULL), SMG_OK);
    put(&first, "run.json", "1");
    assert_int_equal(smg_outdir_commit(&first, NULL), SMG_OK);
    assert_int_equal(smg_outdir_begin(out, &second, NULL), SMG_OK);
    smg_outdir_abort(&second);
    assert_file_is(file_in(*state, "run/run.json"), "1");
}

/* A killed process clears nothing up; the next one does. */
static void test_after_a_kill(void **state)
{
    const char *out = file_in(*state, "run");
    struct smg_outdir o;
    pid_t pid = fork();
    int how;

    if (!pid) {
        if (smg_outdir_begin(out, &o, NULL))
            _exit(1);
        put(&o, "tokens.csv", "of the killed one");
        put(&o, "events.1.bin", "of the killed one");
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(entries_in(*state), 1);
    assert_int_equal(smg_outdir_begin(out, &o, NULL), SMG_OK);
    put(&o, "run.json", "{}");
    assert_int_equal(smg_outdir_commit(&o, NULL), SMG_OK);
    assert_int_equal(entries_in(*state), 1);
    assert_int_equal(entries_in(out), 1);
}

static void test_messages_name_final_paths(void **state)
{
    struct smg_outdir o;
    struct smg_diag diag = {"no temporary name"};
    char expected[512];

    assert_int_equal(smg_outdir_begin(file_in(*state, "run"), &o, NULL), SMG_OK);
    smg_outdir_explain(&o, &diag);
    assert_string_equal(diag.text, "no temporary name");
    snprintf(diag.text, sizeof diag.text, "%.200s/a: not %.200s/b", o.temporary, o.temporary);
    snprintf(expected, sizeof expected, "%.200s/a: not %.200s/b", o.path, o.path);
    smg_outdir_explain(&o, &diag);
    assert_string_equal(diag.text, expected);
    smg_outdir_abort(&o);
}

static void test_errors(void **state)
{
    struct smg_outdir o;
    struct smg_diag diag = {""};
    char longest[2 * SMG_PATH_MAX];

    file_put(file_in(*state, "file"), "x");
    assert_int_equal(smg_outdir_begin(file_in(*state, "file/run"), &o, &diag), SMG_ERR_IO);
    assert_non_null(strstr(diag.text, "Not a directory"));
    assert_int_equal(smg_outdir_begin("", &o, &diag), SMG_ERR_RANGE);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(smg_outdir_begin(longest, &o, &diag), SMG_ERR_RANGE);

    assert_int_equal(smg_outdir_begin(file_in(*state, "file"), &o, &diag), SMG_ERR_IO); /* before anything runs */
    assert_file_is(file_in(*state, "file"), "x");
    assert_int_equal(entries_in(*state), 1);
}

static void test_full_disk(void **state)
{
    struct smg_diag diag = {""};
    FILE *f;

    (void)state;
    if (!file_exists("/dev/full"))
        skip();
    assert_int_equal(smg_output_open("/dev/full", &f, &diag), SMG_OK);
    fputs("a few bytes that fit the buffer", f);
    assert_int_equal(smg_output_close(f, "/dev/full", SMG_OK, &diag), SMG_ERR_IO);
    assert_non_null(strstr(diag.text, "No space left"));
    assert_int_equal(smg_json_write(json_object(), "/dev/full", &diag), SMG_ERR_IO);
    assert_int_equal(smg_json_write(NULL, "/dev/null", &diag), SMG_ERR_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commit, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_replaces_records_only, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_abort, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_after_a_kill, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_messages_name_final_paths, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_errors, folder_setup, folder_teardown),
        cmocka_unit_test(test_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
