/* Runs a scenario given by key=value words on the native engine and keeps its records. */
#ifndef SMG_TESTS_SIM_FIXTURE_H
#define SMG_TESTS_SIM_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/stats.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

enum { FIXTURE_WORDS = 48, FIXTURE_WORD = 512 };

/* Growing list of key=value words. */
struct words {
    char text[FIXTURE_WORDS][FIXTURE_WORD];
    const char *set[FIXTURE_WORDS];
    size_t n;
};

static inline void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void words_add(struct words *w, const char *format, ...)
{
    va_list args;

    assert_true(w->n < FIXTURE_WORDS);
    va_start(args, format);
    assert_in_range(vsnprintf(w->text[w->n], FIXTURE_WORD, format, args), 0, FIXTURE_WORD - 1);
    va_end(args);
    w->set[w->n] = w->text[w->n];
    w->n++;
}

struct finished_run {
    struct smg_world world;
    struct smg_selection *selection;
    struct smg_sim *sim;
    const struct smg_records *records;
    const struct smg_run_stats *stats;
};

/* Every run of a test must settle all requests and satisfy every conservation law. */
static inline void run_words(const struct words *w, struct finished_run *out)
{
    struct smg_law laws[SMG_LAWS];
    struct smg_scenario s;
    struct smg_diag diag = {""};
    size_t n;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < w->n; i++)
        if (w->set[i] != w->text[i])
            fail_msg("words were copied by value: word %zu", i);
    if (smg_scenario_load(NULL, w->set, w->n, &s, &diag) || smg_world_load(&s, &out->world, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(smg_selection_create(&out->world, &out->selection), SMG_OK);
    assert_int_equal(smg_sim_create(&out->world, smg_engine_find("native"), out->selection, NULL, &out->sim), SMG_OK);
    if (smg_sim_run(out->sim, &diag))
        fail_msg("%s", diag.text);
    out->records = smg_sim_records(out->sim);
    out->stats = smg_sim_stats(out->sim);
    if (smg_conservation_check(out->records, out->stats, laws, &n))
        for (size_t i = 0; i < n; i++)
            if (!laws[i].holds)
                fail_msg("conservation: %s: %.17g and %.17g", laws[i].name, laws[i].left, laws[i].right);
}

static inline void run_free(struct finished_run *r)
{
    smg_sim_destroy(r->sim);
    smg_selection_destroy(r->selection);
    smg_world_free(&r->world);
}

#endif
