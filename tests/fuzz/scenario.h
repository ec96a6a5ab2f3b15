/* What holds for every scenario that a reader has accepted. */
#ifndef SMG_TESTS_FUZZ_SCENARIO_H
#define SMG_TESTS_FUZZ_SCENARIO_H

#include <jansson.h>

#include "tests/fuzz/fuzz.h"
#include "traces/scenario.h"

/* It can be written, and what was written is read as the same scenario. */
static inline void fuzz_scenario(const struct smg_scenario *s)
{
    struct smg_diag diag = {""};
    struct smg_scenario again;
    json_t *first = smg_scenario_json(s), *second;

    fuzz_must(first);
    fuzz_must(smg_scenario_from_json(first, &again, &diag) == SMG_OK);
    second = smg_scenario_json(&again);
    fuzz_must(json_equal(first, second));
    json_decref(first);
    json_decref(second);
}

#endif
