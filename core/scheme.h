/* Schemes: which of the three paths are on, and how. A scheme is a row in one table; a new one is a new file and a line there. */
#ifndef SMG_CORE_SCHEME_H
#define SMG_CORE_SCHEME_H

#include "core/world.h"

/* What a scheme asks of the agents, after the scenario's switches were applied. */
struct smg_features {
    int metadata;            /* selector metadata is sent in selective mode */
    int always_full;         /* mode full for every request, whatever the budget */
    int parallel;            /* on demand: replies land beside the local lane */
    int reorder;
    int reuse;               /* fetched entries are kept */
    int speculative;
    char ranking[SMG_NAME_MAX];
};

struct smg_scheme {
    const char *name;
    const char *doc;
    void (*features)(const struct smg_scenario *s, struct smg_features *out);
};

/* All schemes, NULL-terminated. */
extern const struct smg_scheme *const smg_schemes[];
/* NULL when unknown. */
const struct smg_scheme *smg_scheme_find(const char *name);

#endif
