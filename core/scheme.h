/* Schemes: which of the three paths are on, and how. A scheme is a row in one table; a new one is a new file and a line there. */
#ifndef SMG_CORE_SCHEME_H
#define SMG_CORE_SCHEME_H

#include "core/world.h"

#pragma GCC visibility push(default)

/* What a scheme asks of the agents, after the scenario's switches were applied. */
struct smg_features {
    int metadata;            /* selector metadata is sent in selective mode */
    int always_full;         /* mode full for every request, whatever the budget */
    int parallel;            /* on demand: replies land beside the local lane */
    int reorder;
    int reuse;               /* fetched entries are kept */
    int speculative;
    int on_gpu;              /* KV stays on the decode GPU as codes: no selection, no lanes */
    int evict;               /* entries that are absent are left out, never fetched */
    int attend_present;      /* everything present is attended to: no selector */
    char ranking[SMG_NAME_MAX];
};

struct smg_scheme {
    const char *name;
    const char *doc;
    void (*features)(const struct smg_scenario *s, struct smg_features *out /* zeroed */);
};

/* What the world's scheme asks for; every field is set, also those that a scheme left alone. */
void smg_scheme_features(const struct smg_world *w, struct smg_features *out);

struct smg_grid;

/* The block grid of a prompt, with the bytes that this world's scheme stores per token. */
void smg_scheme_grid(const struct smg_world *w, uint32_t prompt_tokens, struct smg_grid *out);

/* All schemes, NULL-terminated. */
extern const struct smg_scheme *const smg_schemes[];
/* NULL when unknown. */
const struct smg_scheme *smg_scheme_find(const char *name);

#pragma GCC visibility pop

#endif
