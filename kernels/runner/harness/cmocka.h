/* Stands in for cmocka where the tests of kernels are built for the CPU runner or for a GPU: the memory sanitizer must see every write, and
 * a machine with a GPU may have no cmocka. The part of its interface that those tests use; a failed assertion ends its test. */
#ifndef SMG_RUNNER_HARNESS_CMOCKA_H
#define SMG_RUNNER_HARNESS_CMOCKA_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

static jmp_buf harness_failed;

#define cmocka_unit_test(function) {#function, function}
#define print_message(...)         printf(__VA_ARGS__)

static inline _Noreturn void harness_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    longjmp(harness_failed, 1);
}

#define fail_msg(...)                                                                                                            \
    do {                                                                                                                         \
        fprintf(stderr, __VA_ARGS__);                                                                                            \
        harness_fail(__FILE__, __LINE__, "");                                                                                    \
    } while (0)
#define fail()                          harness_fail(__FILE__, __LINE__, "failed")
#define assert_true(x)                  ((x) ? (void)0 : harness_fail(__FILE__, __LINE__, "not true: " #x))
#define assert_false(x)                 assert_true(!(x))
#define assert_null(x)                  assert_true((x) == NULL)
#define assert_non_null(x)              assert_true((x) != NULL)
#define assert_int_equal(a, b)          harness_int_equal((long long)(a), (long long)(b), __FILE__, __LINE__, #a ", " #b)
#define assert_int_not_equal(a, b)      assert_true((long long)(a) != (long long)(b))
#define assert_in_range(x, lo, hi)      assert_true((x) >= (lo) && (x) <= (hi))
#define assert_float_equal(a, b, e)     assert_true(fabs((double)(a) - (double)(b)) <= (double)(e))
#define assert_string_equal(a, b)       assert_true(strcmp((a), (b)) == 0)
#define assert_memory_equal(a, b, n)    assert_true(memcmp((a), (b), (n)) == 0)
#define assert_memory_not_equal(a, b, n) assert_true(memcmp((a), (b), (n)) != 0)

static inline void harness_int_equal(long long a, long long b, const char *file, int line, const char *what)
{
    if (a != b) {
        fprintf(stderr, "%lld is not %lld: ", a, b);
        harness_fail(file, line, what);
    }
}

#define cmocka_run_group_tests(tests, setup, teardown) harness_run(__FILE__, tests, sizeof(tests) / sizeof((tests)[0]))

static inline int harness_run(const char *file, const struct CMUnitTest *test, size_t n)
{
    void *state = NULL;
    volatile int failed = 0;

    for (volatile size_t i = 0; i < n; i++) {
        if (!setjmp(harness_failed)) {
            test[i].run(&state);
            continue;
        }
        fprintf(stderr, "FAIL %s\n", test[i].name);
        failed++;
    }
    printf("%s: %zu passed, %d failed\n", file, n - (size_t)failed, failed);
    return failed;
}

#endif
