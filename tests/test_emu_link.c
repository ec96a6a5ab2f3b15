/* Shaped links: the times that transfers get, and processes that are killed while they may hold the links. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/link.h"
#include "tests/world_fixture.h"

/* 1 MB, and the seconds that it takes at the 32 and 25 Gbit/s of the default world's prefill and decode machines. */
static const double megabyte = 1e6, prefill_s = 1e6 / 4e9, decode_s = 1e6 / 3.125e9;

enum { DECODE = 3, KILLS = 40, HANG_S = 60 };

static struct smg_links *links_of(const struct smg_world *w)
{
    struct smg_links *l = NULL;

    assert_int_equal(smg_links_create(w, &l), SMG_OK);
    assert_non_null(l);
    return l;
}

/* First come, first served: the slower side of a transfer sets its length, each side is held as long as it alone needs. */
static void test_times(void **state)
{
    struct smg_world w;
    struct smg_links *l;

    (void)state;
    fixture_world(&w);
    l = links_of(&w);
    assert_near(smg_links_take(l, 0, DECODE, megabyte, 1), 1 + decode_s, 1e-12);
    assert_near(smg_links_take(l, 1, DECODE, megabyte, 1), 1 + 2 * decode_s, 1e-12);
    assert_near(smg_links_take(l, 0, 1, megabyte, 1), 1 + 2 * prefill_s, 1e-12);
    assert_near(smg_links_take(l, 2, 1, megabyte, 5), 5 + prefill_s, 1e-12);
    smg_links_destroy(l);
    smg_links_destroy(NULL);
}

/* A process that does nothing but take the links holds them much of the time, so that some of the kills find it there. A lock
 * that dies with its holder would hang this test, which the alarm ends. */
static void test_killed_holder(void **state)
{
    struct smg_world w;
    struct smg_links *l;

    (void)state;
    fixture_world(&w);
    l = links_of(&w);
    alarm(HANG_S);
    for (int i = 0; i < KILLS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                smg_links_take(l, 0, DECODE, 1, 0);
        }
        usleep(2000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(smg_links_take(l, 1, DECODE, 1, 0) > 0);
    }
    alarm(0);
    smg_links_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_killed_holder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
