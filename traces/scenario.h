/* Scenario files: one key table reads YAML, --set, defaults, and writes the resolved scenario and the help text. */
#ifndef SMG_TRACES_SCENARIO_H
#define SMG_TRACES_SCENARIO_H

#include <jansson.h>
#include <stdio.h>

#include "core/status.h"
#include "core/world.h"

#pragma GCC visibility push(default)

/* Sets every key to its default. */
void smg_scenario_default(struct smg_scenario *s);
/* Reads a scenario file (path, "-": standard input, NULL: defaults only), then applies sets[n] ("a.b=c") in order. On error *out
 * is unchanged and diag names file and line (or --set and key), what was found, what was expected, and the nearest known name. A
 * relative file name inside the scenario (model, trace, importance) is taken relative to the scenario file's folder when it
 * exists there. */
int smg_scenario_load(const char *path, const char *const *sets, size_t n, struct smg_scenario *out, struct smg_diag *diag);
/* The same, and where each key was given (traces/scenario_origin.h), for what is found wrong later; origins may be NULL, and
 * points at path and sets. */
struct smg_origins;
int smg_scenario_load_origins(const char *path, const char *const *sets, size_t n, struct smg_scenario *out,
                              struct smg_origins *origins, struct smg_diag *diag);
/* The resolved scenario, every key, nested as in the file. New reference. NULL: out of memory. */
json_t *smg_scenario_json(const struct smg_scenario *s);
/* Reads what smg_scenario_json wrote (run.json). */
int smg_scenario_from_json(const json_t *j, struct smg_scenario *out, struct smg_diag *diag);
/* Writes one line per key: name, default, unit or range, sentence. */
void smg_scenario_help(FILE *f);

/* Nearest of names[] (NULL-terminated) to word by edit distance; NULL when nothing is near. */
const char *smg_nearest(const char *word, const char *const *names);

#pragma GCC visibility pop

#endif
