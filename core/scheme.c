#include "core/scheme.h"

#include <string.h>

/* A new scheme is a file core/scheme_NAME.c, its declaration here, and its line in the table. */
extern const struct smg_scheme smg_scheme_full;
extern const struct smg_scheme smg_scheme_partial;
extern const struct smg_scheme smg_scheme_smartgen;

const struct smg_scheme *const smg_schemes[] = {
    &smg_scheme_full,
    &smg_scheme_partial,
    &smg_scheme_smartgen,
    NULL,
};

const struct smg_scheme *smg_scheme_find(const char *name)
{
    for (const struct smg_scheme *const *s = smg_schemes; *s != NULL; s++) {
        if (strcmp((*s)->name, name) == 0) {
            return *s;
        }
    }
    return NULL;
}
