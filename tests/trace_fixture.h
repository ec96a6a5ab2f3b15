/* Shared by the tests of request traces. */
#ifndef SMG_TESTS_TRACE_FIXTURE_H
#define SMG_TESTS_TRACE_FIXTURE_H

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
#define DATA(name)                   SMG_TESTDIR "/data/" name
#define SHARED(name)                 SMG_TESTDIR "/../../shared/data/" name

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

struct loaded {
    struct smg_request_spec *r;
    uint32_t n;
    struct smg_diag note;
};

/* A trace that must load, all of it, as it is; free(result.r). */
static inline struct loaded load(const char *path, enum smg_trace_format format)
{
    struct loaded l = {NULL, 0, {""}};

    if (smg_trace_load(path, format, 0, 1, 0, &l.r, &l.n, &l.note) != SMG_OK) {
        fail_msg("%s", l.note.text);
    }
    return l;
}

static inline void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A text that must be refused with that message behind the file's name, outputs untouched. */
static inline void refused(const char *name, enum smg_trace_format format, const char *text, const char *message)
{
    struct smg_request_spec *r = NULL;
    char expected[512];
    struct smg_diag d;
    uint32_t n = 77;

    write_file(name, text);
    assert_true(smg_trace_load(name, format, 0, 1, 0, &r, &n, &d) < 0);
    remove(name);
    snprintf(expected, sizeof(expected), "%s%s", name, message);
    assert_string_equal(d.text, expected);
    assert_null(r);
    assert_int_equal(n, 77);
}

/* True when a public file lies beside the source tree; says so when not. */
static inline int at_hand(const char *path)
{
    if (access(path, R_OK) == 0) {
        return 1;
    }
    print_message("not here, not checked: %s\n", path);
    return 0;
}

#endif
