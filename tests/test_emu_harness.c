/* The harness of an emulation against children that stop answering, die, or die in the middle of a report: it gives up within the
 * time that it was given, names the instance, and leaves no process. A harness that waits for ever is ended by the alarm. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/harness.h"

enum { INSTANCES = 4, REQUESTS = 3, HANG_S = 60 };

/* Long enough for a child of a busy machine to answer, short enough to wait for one that does not. */
static const double answer_s = 20, give_up_s = 0.3;

static const struct smg_harness_ending well = {SMG_OK, ""};

typedef int (*child_fn)(void *arg, struct smg_harness *h);

static int report(struct smg_harness *h, int outcome)
{
    struct smg_run_stats stats;
    struct smg_diag diag = {""};
    int status = smg_run_stats_init(&stats, REQUESTS);

    if (status)
        return status;
    stats.events = 10u * h->self;
    stats.digest[1] = h->self;
    snprintf(diag.text, sizeof diag.text, "what %u says", h->self);
    status = smg_harness_report(h, outcome, &stats, &diag);
    smg_run_stats_free(&stats);
    return status;
}

static int swap(struct smg_harness *h, double seconds, struct smg_diag *diag)
{
    struct smg_publication own, all[INSTANCES];

    memset(&own, 0, sizeof own);
    return smg_harness_swap(h, seconds, &own, all, diag);
}

/* ---- Children ---- */

static int good(void *arg, struct smg_harness *h)
{
    struct smg_diag diag = {""};
    int status = swap(h, 0, &diag); /* the time is the parent's: a child waits for it */

    if (!status)
        status = smg_harness_start(h, 0, &diag);
    if (!status && !smg_harness_stopped(h, answer_s))
        status = SMG_ERR_LOST;
    return status ? status : report(h, arg && h->self == 2 ? SMG_ERR_VERIFY : SMG_OK);
}

static int stopped_at_once(void *arg, struct smg_harness *h)
{
    if (h->self == 2)
        raise(SIGSTOP);
    return good(arg, h);
}

static int killed_at_once(void *arg, struct smg_harness *h)
{
    if (h->self == 2)
        raise(SIGKILL);
    return good(arg, h);
}

/* Sends the first half of the report; then this child is stopped, or ends. */
static void half_report(struct smg_harness *h, int signal)
{
    char whole[8192];
    int pair[2], fd = h->fd[0];
    ssize_t bytes;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        _exit(1);
    h->fd[0] = pair[0];
    if (report(h, SMG_OK))
        _exit(1);
    bytes = recv(pair[1], whole, sizeof whole, MSG_DONTWAIT);
    h->fd[0] = fd;
    if (bytes < 8 || send(fd, whole, (size_t)bytes / 2, 0) != bytes / 2)
        _exit(1);
    raise(signal);
}

static int stopped_in_report(void *arg, struct smg_harness *h)
{
    (void)arg;
    if (h->self == 2)
        half_report(h, SIGSTOP);
    return report(h, SMG_OK);
}

static int killed_in_report(void *arg, struct smg_harness *h)
{
    (void)arg;
    if (h->self == 2)
        half_report(h, SIGKILL);
    return report(h, SMG_OK);
}

static int stopped_after_report(void *arg, struct smg_harness *h)
{
    int status = report(h, SMG_OK);

    (void)arg;
    if (h->self == 2)
        raise(SIGSTOP);
    return status;
}

/* ---- The parent's side ---- */

static void begin(child_fn child, void *arg, struct smg_harness *h)
{
    struct smg_diag diag = {""};

    alarm(HANG_S);
    if (smg_harness_fork(INSTANCES, child, arg, NULL, h, &diag))
        fail_msg("%s", diag.text);
}

/* Takes what the children report within `seconds`, and checks that none is left. */
static int end(struct smg_harness *h, double seconds, struct smg_run_stats *stats, struct smg_diag *diag)
{
    int status;

    assert_int_equal(smg_run_stats_init(stats, REQUESTS), SMG_OK);
    diag->text[0] = '\0';
    status = smg_harness_collect(h, seconds, stats, diag);
    smg_harness_close(h);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    alarm(0);
    return status;
}

static void test_good(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    begin(good, NULL, &h);
    assert_int_equal(swap(&h, answer_s, &diag), SMG_OK);
    assert_int_equal(smg_harness_start(&h, answer_s, &diag), SMG_OK);
    smg_harness_stop(&h, &well);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_OK);
    assert_int_equal(stats.events, 10 + 20 + 30);
    smg_run_stats_free(&stats);
}

/* The one that failed explains it, whatever the others say. */
static void test_failure_is_told(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    begin(good, &h, &h);
    assert_int_equal(swap(&h, answer_s, &diag), SMG_OK);
    assert_int_equal(smg_harness_start(&h, answer_s, &diag), SMG_OK);
    smg_harness_stop(&h, &well);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_ERR_VERIFY);
    assert_string_equal(diag.text, "what 2 says");
    smg_run_stats_free(&stats);
}

static void test_stopped_before_swap(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    begin(stopped_at_once, NULL, &h);
    assert_int_equal(swap(&h, give_up_s, &diag), SMG_ERR_DEADLOCK);
    assert_non_null(strstr(diag.text, "does not answer"));
    smg_harness_stop(&h, &well);
    assert_int_equal(end(&h, give_up_s, &stats, &diag), SMG_ERR_LOST);
    smg_run_stats_free(&stats);
}

static void test_killed_before_swap(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    begin(killed_at_once, NULL, &h);
    assert_int_equal(swap(&h, answer_s, &diag), SMG_ERR_LOST);
    assert_string_equal(diag.text, "instance 2 ended before the cluster was up");
    smg_harness_stop(&h, &well);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_ERR_LOST);
    smg_run_stats_free(&stats);
}

static void half(child_fn child, double seconds, const char *message)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag;

    begin(child, NULL, &h);
    assert_int_equal(end(&h, seconds, &stats, &diag), SMG_ERR_LOST);
    assert_string_equal(diag.text, message);
    assert_int_equal(stats.digest[1], 1 + 3); /* the others' counts are there */
    smg_run_stats_free(&stats);
}

static void test_half_a_report(void **state)
{
    (void)state;
    half(stopped_in_report, 2, "instance 2 does not answer");
    half(killed_in_report, answer_s, "instance 2 ended without a report");
}

static void test_stopped_after_report(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag;

    (void)state;
    begin(stopped_after_report, NULL, &h);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_OK);
    smg_run_stats_free(&stats);
}

/* A stopped child is seen while it is stopped, and no longer; seeing does not take its end away. */
static void test_halted(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};
    char how[40];
    int unused;

    (void)state;
    begin(stopped_at_once, NULL, &h);
    while (!smg_harness_halted(&h, 2)) {
        usleep(1000);
    }
    assert_int_equal(smg_harness_halted(&h, 1), 0);
    assert_int_equal(smg_harness_child(&h, 2, &unused, how, sizeof how), SMG_CHILD_RUNS);
    assert_int_equal(kill(h.pid[2], SIGCONT), 0);
    while (smg_harness_halted(&h, 2)) {
        usleep(1000);
    }
    assert_int_equal(swap(&h, answer_s, &diag), SMG_OK);
    assert_int_equal(smg_harness_start(&h, answer_s, &diag), SMG_OK);
    smg_harness_stop(&h, &well);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_OK);
    smg_run_stats_free(&stats);
}

static int beats_and_dies(void *arg, struct smg_harness *h)
{
    (void)arg;
    for (uint32_t i = 0; i < h->self; i++)
        smg_harness_beat(h);
    if (h->self == 1)
        raise(SIGKILL);
    if (h->self == 2)
        _exit(3);
    return report(h, SMG_ERR_LOST);
}

static void becomes(struct smg_harness *h, uint16_t instance, enum smg_child what, const char *how)
{
    char text[40] = "";
    int status = SMG_OK;

    while (smg_harness_child(h, instance, &status, text, sizeof text) == SMG_CHILD_RUNS)
        usleep(1000);
    assert_int_equal(smg_harness_child(h, instance, &status, text, sizeof text), what);
    assert_string_equal(text, how);
    assert_int_equal(status, what == SMG_CHILD_REPORTED ? SMG_ERR_LOST : SMG_OK);
    assert_int_equal(smg_harness_beats(h, instance), instance);
}

/* What became of each child is known before anything is collected; those that are given up are no failure. */
static void test_ends(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    begin(beats_and_dies, NULL, &h);
    becomes(&h, 1, SMG_CHILD_GONE, "signal 9");
    becomes(&h, 2, SMG_CHILD_GONE, "ended with status 3");
    becomes(&h, 3, SMG_CHILD_REPORTED, "");
    for (uint16_t i = 1; i < INSTANCES; i++)
        smg_harness_lose(&h, i);
    assert_int_equal(smg_run_stats_init(&stats, REQUESTS), SMG_OK);
    assert_int_equal(smg_harness_collect(&h, answer_s, &stats, &diag), SMG_OK);
    assert_true(h.lost[1] == 2 && h.lost[2] == 2 && h.lost[3] == 1);
    assert_int_equal(stats.digest[1], 3); /* what the one that reported has counted is there */
    smg_harness_close(&h);
    alarm(0);
    smg_run_stats_free(&stats);
}

/* ---- The end, as it is told ---- */

static const struct smg_harness_ending badly = {SMG_ERR_VERIFY, "the end of it"};

/* Fine when it is told of the end, wherever it waits. */
static int is_told(void *arg, struct smg_harness *h)
{
    struct smg_harness_ending e = well;
    struct smg_diag diag = {""};
    int status = swap(h, 0, &diag);

    (void)arg;
    if (!status)
        status = smg_harness_start(h, 0, &diag);
    if (!smg_harness_stopped(h, answer_s) || smg_harness_told(h, answer_s, &e) != SMG_HARNESS_TOLD || e.status != badly.status ||
        strcmp(e.why, badly.why))
        return report(h, SMG_ERR_INVALID);
    return report(h, SMG_OK);
}

static void test_told(void **state)
{
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    for (int steps = 0; steps <= 2; steps++) {
        begin(is_told, NULL, &h);
        if (steps > 0)
            assert_int_equal(swap(&h, answer_s, &diag), SMG_OK);
        if (steps > 1)
            assert_int_equal(smg_harness_start(&h, answer_s, &diag), SMG_OK);
        smg_harness_stop(&h, &badly);
        assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_OK);
        smg_run_stats_free(&stats);
    }
}

/* Takes what a router says of the end, the first bytes of it. */
static size_t last_words(char *out, size_t room)
{
    const int none[INSTANCES] = {-1, -1, -1, -1};
    struct smg_harness router;
    int pair[2];
    ssize_t n;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(smg_harness_of_router(INSTANCES, none, &router), SMG_OK);
    router.fd[1] = pair[0];
    smg_harness_stop(&router, &badly);
    n = recv(pair[1], out, room, 0);
    smg_harness_close(&router);
    close(pair[1]);
    assert_true(n > 8);
    return (size_t)n;
}

/* An instance whose router says nothing, goes without a word, or in the middle of one. */
static void test_untold(void **state)
{
    struct smg_harness_ending e = well;
    struct smg_harness h;
    char words[512];
    size_t n = last_words(words, sizeof words);
    int pair[2];

    (void)state;
    for (int half = 0; half <= 1; half++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(smg_harness_of_instance(INSTANCES, 1, pair[1], &h), SMG_OK);
        assert_int_equal(smg_harness_told(&h, 0.01, &e), SMG_HARNESS_SILENT);
        if (half)
            assert_int_equal(send(pair[0], words, n / 2, 0), (ssize_t)n / 2);
        close(pair[0]);
        assert_int_equal(smg_harness_told(&h, 0.01, &e), SMG_HARNESS_GONE);
        smg_harness_close(&h);
    }
}

/* ---- Somebody wants the end ---- */

static unsigned asked, ends_at;

static int ends(void)
{
    return ++asked >= ends_at;
}

/* An instance elsewhere that waits for the others. */
static void test_instance_interrupted(void **state)
{
    struct smg_harness h;
    struct smg_diag diag = {""};
    int pair[2];

    (void)state;
    asked = 0;
    ends_at = 2;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(smg_harness_of_instance(INSTANCES, 1, pair[1], &h), SMG_OK);
    h.stop = ends;
    assert_int_equal(swap(&h, 0, &diag), SMG_ERR_INTERRUPTED);
    assert_int_equal(smg_harness_start(&h, 0, &diag), SMG_ERR_INTERRUPTED);
    smg_harness_close(&h);
    close(pair[0]);
}

static int works_for_long(void *arg, struct smg_harness *h)
{
    (void)arg;
    (void)h;
    while (pause())
        continue;
    return 0;
}

/* While children are started, those that are there end. */
static void test_fork_interrupted(void **state)
{
    struct smg_harness h;
    struct smg_diag diag = {""};

    (void)state;
    alarm(HANG_S);
    for (ends_at = 1; ends_at < INSTANCES; ends_at++) {
        asked = 0;
        assert_int_equal(smg_harness_fork(INSTANCES, works_for_long, NULL, ends, &h, &diag), SMG_ERR_INTERRUPTED);
        assert_string_equal(diag.text, "interrupted");
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    alarm(0);
}

/* Children end while the parent does something else; after the guard they are left alone. */
static void test_guard(void **state)
{
    struct smg_harness_guard guard;
    struct smg_run_stats stats;
    struct smg_harness h;
    struct smg_diag diag = {""};
    int unused;

    (void)state;
    asked = 0;
    ends_at = 1000000;
    begin(works_for_long, NULL, &h);
    h.stop = ends;
    smg_harness_guard_begin(&h, &guard);
    assert_int_equal(smg_harness_child(&h, 1, &unused, NULL, 0), SMG_CHILD_RUNS);
    smg_harness_guard_end(&guard);
    ends_at = 1;
    usleep(100000);
    for (uint16_t i = 1; i < INSTANCES; i++)
        assert_int_equal(smg_harness_child(&h, i, &unused, NULL, 0), SMG_CHILD_RUNS);
    smg_harness_guard_begin(&h, &guard);
    for (uint16_t i = 1; i < INSTANCES; i++)
        while (smg_harness_child(&h, i, &unused, NULL, 0) != SMG_CHILD_GONE)
            usleep(1000);
    smg_harness_guard_end(&guard);
    assert_int_equal(end(&h, answer_s, &stats, &diag), SMG_ERR_LOST);
    smg_run_stats_free(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_untold),
        cmocka_unit_test(test_instance_interrupted),
        cmocka_unit_test(test_fork_interrupted),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_failure_is_told),
        cmocka_unit_test(test_stopped_before_swap),
        cmocka_unit_test(test_killed_before_swap),
        cmocka_unit_test(test_half_a_report),
        cmocka_unit_test(test_stopped_after_report),
        cmocka_unit_test(test_halted),
        cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
