/* Loading libfabric: once, and without a change to how the process answers signals. */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/ofi_library.h"

#ifdef HAVE_LIBFABRIC

static volatile sig_atomic_t heard;
static int missing;

static const struct smg_ofi_library *load(void)
{
    const struct smg_ofi_library *lib = NULL;
    struct smg_diag diag = {""};

    if (smg_ofi_load(&lib, &diag)) {
        missing = 1;
        printf("skip: %s\n", diag.text);
        skip();
    }
    return lib;
}

static void on_signal(int number)
{
    heard = number;
}

/* The six that libinfinipath takes when it is loaded: one with a handler, one ignored, the rest at their default. */
static const int watched[] = {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static void test_signals_stay(void **state)
{
    struct sigaction act = {.sa_handler = on_signal}, before[WATCHED], after;
    sigset_t mask, later;

    (void)state;
    act.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGTERM, &act, NULL);
    signal(SIGINT, SIG_IGN);
    for (size_t i = 0; i < WATCHED; i++)
        sigaction(watched[i], NULL, &before[i]);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)load();
    for (size_t i = 0; i < WATCHED; i++) {
        sigaction(watched[i], NULL, &after);
        assert_ptr_equal(after.sa_handler, before[i].sa_handler);
        assert_int_equal(after.sa_flags & (int)SA_RESETHAND, before[i].sa_flags & (int)SA_RESETHAND);
    }
    sigprocmask(SIG_SETMASK, NULL, &later);
    assert_int_equal(sigismember(&later, SIGTERM), sigismember(&mask, SIGTERM));
    raise(SIGTERM);
    assert_int_equal(heard, SIGTERM);
}

static void test_loaded_once(void **state)
{
    const struct smg_ofi_library *first = load(), *second = NULL;
    char version[32];

    (void)state;
    assert_int_equal(smg_ofi_load(&second, NULL), SMG_OK);
    assert_ptr_equal(first, second);
    smg_ofi_version(version, sizeof version);
    assert_true(strtod(version, NULL) >= 1.17);
    assert_string_equal(first->strerror(0), "Success");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signals_stay), cmocka_unit_test(test_loaded_once)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed ? failed : missing ? 77 : 0;
}

#else

static void test_refused(void **state)
{
    const struct smg_ofi_library *lib = NULL;
    struct smg_diag diag = {""};
    char version[8] = "x";

    (void)state;
    assert_int_equal(smg_ofi_load(&lib, &diag), SMG_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "libfabric"));
    smg_ofi_version(version, sizeof version);
    assert_string_equal(version, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
