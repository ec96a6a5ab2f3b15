/* smartgen replay: a simulated run replays exactly, and one changed byte is found. Also: the same run twice writes the same
 * files. */
#include "tests/folder_fixture.h"

#include "experiments/run.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

static void simulate(const struct smg_world *w, const struct smg_outdir *o)
{
    char events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    struct smg_log_writer log;
    struct smg_observer observer = {&log, smg_log_step, NULL};
    struct smg_selection *selection;
    struct smg_sim *sim;
    struct smg_run run;
    struct smg_diag diag = {""};

    assert_int_equal(smg_outdir_file(o, "events.bin", events), SMG_OK);
    assert_int_equal(smg_outdir_file(o, "actions.bin", actions), SMG_OK);
    assert_int_equal(smg_log_create(events, actions, &log, &diag), SMG_OK);
    assert_int_equal(smg_selection_create(w, &selection), SMG_OK);
    assert_int_equal(smg_sim_create(w, smg_engine_find("native"), selection, &observer, &sim), SMG_OK);
    if (smg_sim_run(sim, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_log_close(&log, &diag), SMG_OK);
    run = (struct smg_run){w, smg_sim_records(sim), smg_sim_stats(sim), "sim", "native", NULL, NULL};
    if (smg_run_write(o, &run, &diag))
        fail_msg("%s", diag.text);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
}

static void run_into(const char *folder)
{
    static const char *const sets[] = {
        "workload.requests=2", "workload.prompt_tokens=500", "workload.output_tokens=4", "blocks_per_layer=50",
        "prefill.nodes=1",     "records.decisions=true",     "proactive.kr_blocks=200"};
    struct smg_scenario scenario;
    struct smg_world world;
    struct smg_outdir o;
    struct smg_diag diag = {""};

    if (smg_scenario_load(NULL, sets, sizeof sets / sizeof sets[0], &scenario, &diag) || smg_world_load(&scenario, &world, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_outdir_begin(folder, &o, &diag), SMG_OK);
    simulate(&world, &o);
    assert_int_equal(smg_outdir_commit(&o, &diag), SMG_OK);
    smg_world_free(&world);
}

static void test_replay(void **state)
{
    struct smg_diag diag = {""};
    uint64_t steps = 0;
    int status;

    run_into(file_in(*state, "run"));
    status = smg_replay(file_in(*state, "run"), &steps, &diag);
    if (status)
        fail_msg("%s", diag.text);
    assert_true(steps > 100);
}

static void change_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    int c;

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

static void test_changed_byte(void **state)
{
    struct smg_diag diag = {""};
    struct stat st;
    uint64_t steps = 0;

    run_into(file_in(*state, "run"));
    assert_int_equal(stat(file_in(*state, "run/actions.bin"), &st), 0);
    for (long at = 12; at < st.st_size; at += st.st_size / 23) {
        int status;
        change_byte(file_in(*state, "run/actions.bin"), at);
        status = smg_replay(file_in(*state, "run"), &steps, &diag);
        assert_int_equal(status, SMG_ERR_PARSE); /* before an agent acts on it */
        assert_non_null(strstr(diag.text, "damaged"));
        assert_ptr_equal(strstr(diag.text, file_in(*state, "run/actions.bin")), diag.text); /* it begins with the file */
        change_byte(file_in(*state, "run/actions.bin"), at);
    }
    assert_int_equal(smg_replay(file_in(*state, "run"), &steps, &diag), SMG_OK);
}

static void test_errors(void **state)
{
    struct smg_diag diag = {""};
    uint64_t steps = 5;

    assert_true(smg_replay(*state, &steps, &diag) < 0);
    assert_non_null(strstr(diag.text, "run.json"));
    file_put(file_in(*state, "run.json"), "{}");
    assert_int_equal(smg_replay(*state, &steps, &diag), SMG_ERR_PARSE);
    run_into(*state);
    assert_int_equal(unlink(file_in(*state, "events.bin")), 0);
    assert_true(smg_replay(*state, &steps, &diag) < 0);
    assert_int_equal(steps, 5);
}

/* Another text in the place of the first `from` of run.json; what replay says then begins with that file. */
static void assert_says(const char *folder, const char *from, const char *to, const char *complaint)
{
    char path[1024], *text, *at, *changed;
    struct smg_diag diag = {""};
    uint64_t steps = 0;

    snprintf(path, sizeof path, "%s", file_in(file_in(folder, "run"), "run.json"));
    text = file_text(path);
    at = strstr(text, from);
    assert_non_null(at);
    changed = calloc(1, strlen(text) + strlen(to) + 1);
    assert_non_null(changed);
    memcpy(changed, text, (size_t)(at - text));
    strcat(strcat(changed, to), at + strlen(from));
    file_put(path, changed);
    assert_true(smg_replay(file_in(folder, "run"), &steps, &diag) < 0);
    assert_ptr_equal(strstr(diag.text, path), diag.text);
    if (strcmp(diag.text + strlen(path), complaint))
        fail_msg("expected '%s', found '%s'", complaint, diag.text + strlen(path));
    file_put(path, text);
    free(changed);
    free(text);
}

static void test_names_the_file(void **state)
{
    run_into(file_in(*state, "run"));
    assert_says(*state, "\"scenario\": {", "\"scenery\": {", ": scenario: expected an object");
    assert_says(*state, "\"blocks_per_layer\": 50", "\"blocks_per_layer\": 0",
                ": scenario: key 'blocks_per_layer': expected an integer in [1, 65535], found '0'");
    assert_says(*state, "\"model\": \"qwen3-14b\",\n    \"scheme\"", "\"model\": \"qwen3-14\",\n    \"scheme\"",
                ": key 'model': unknown model 'qwen3-14'; did you mean 'qwen3-14b'?");
    assert_says(*state, "\"gpu\": \"l20\"", "\"gpu\": \"/no/l20.json\"",
                ": key 'prefill.gpu': /no/l20.json: cannot open: No such file or directory");
}

static void test_reproducible(void **state)
{
    static const char *const names[] = {"run.json",     "requests.csv", "tokens.csv", "decisions.csv",
                                        "summary.json", "events.bin",   "actions.bin"};

    run_into(file_in(*state, "one"));
    run_into(file_in(*state, "two"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat one, two;
        char *left = file_text(file_in(file_in(*state, "one"), names[i])),
             *right = file_text(file_in(file_in(*state, "two"), names[i]));
        assert_int_equal(stat(file_in(file_in(*state, "one"), names[i]), &one), 0);
        assert_int_equal(stat(file_in(file_in(*state, "two"), names[i]), &two), 0);
        assert_int_equal(one.st_size, two.st_size);
        assert_memory_equal(left, right, (size_t)one.st_size);
        free(left);
        free(right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replay, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_changed_byte, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_errors, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_names_the_file, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_reproducible, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
