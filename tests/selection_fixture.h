/* Worlds from settings, and a selection source of one of their requests. For tests of traces/. Includes cmocka with what it
 * needs. */
#ifndef SMG_TESTS_SELECTION_FIXTURE_H
#define SMG_TESTS_SELECTION_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/importance.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "traces/scenario.h"
#include "traces/world.h"

#define assert_within(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

static inline int fixture_load(struct smg_world *w, struct smg_diag *d, const char *const *sets)
{
    struct smg_scenario s;
    size_t n = 0;

    while (sets[n] != NULL) {
        n++;
    }
    memset(d, 0, sizeof(*d));
    assert_int_equal(smg_scenario_load(NULL, sets, n, &s, d), SMG_OK);
    return smg_world_load(&s, w, d);
}

static inline struct smg_world fixture_world_of(const char *const *sets)
{
    struct smg_world w;
    struct smg_diag d;

    if (fixture_load(&w, &d, sets) != SMG_OK) {
        fail_msg("%s", d.text);
    }
    return w;
}

#define WORLD(...) fixture_world_of((const char *const[]){__VA_ARGS__, NULL})

struct source {
    struct smg_world world;
    struct smg_grid grid;
    struct smg_ledger *ledger;
    struct smg_selection *selection;
    uint32_t request;
};

/* Opens another request of the source; nothing of it is present. */
static inline void fixture_open(struct source *s, uint32_t request)
{
    struct smg_features f;

    s->request = request;
    smg_scheme_features(&s->world, &f);
    smg_grid_init(&s->grid, &s->world.model, s->world.requests[request].prompt_tokens, s->world.scenario.blocks_per_layer, 1);
    assert_int_equal(smg_ledger_create(&s->grid, s->world.requests[request].output_tokens, f.reuse, NULL, &s->ledger), SMG_OK);
    assert_int_equal(s->selection->type->open(s->selection, request, s->ledger), SMG_OK);
}

static inline void fixture_shut(struct source *s)
{
    s->selection->type->close(s->selection, s->request);
    smg_ledger_destroy(s->ledger);
}

static inline void fixture_source(struct source *s, uint32_t request, const char *const *sets)
{
    s->world = fixture_world_of(sets);
    assert_int_equal(smg_selection_create(&s->world, &s->selection), SMG_OK);
    fixture_open(s, request);
}

#define SOURCE(s, request, ...) fixture_source(s, request, (const char *const[]){__VA_ARGS__, NULL})

static inline void fixture_source_free(struct source *s)
{
    fixture_shut(s);
    smg_selection_destroy(s->selection);
    smg_world_free(&s->world);
}

static inline void fixture_write(struct source *s, uint32_t layer, uint32_t first, uint32_t count)
{
    smg_ledger_write(s->ledger, layer, first, count, 1);
    s->selection->type->visible(s->selection, s->request, layer, first, count);
}

static inline struct smg_split_count fixture_split(struct source *s, uint32_t step, uint32_t layer)
{
    struct smg_split_count c;

    assert_int_equal(s->selection->type->split(s->selection, s->request, step, layer, 0, &c), SMG_OK);
    return c;
}

#endif
