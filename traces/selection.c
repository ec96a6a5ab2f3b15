/* The table of selection sources, and what they share. */
#include "core/selection.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "traces/world.h"

extern const struct smg_selection_type smg_selection_layer;
extern const struct smg_selection_type smg_selection_entry;

const struct smg_selection_type *const smg_selection_types[] = {
    &smg_selection_layer,
    &smg_selection_entry,
    NULL,
};

int smg_selection_create(const struct smg_world *w, struct smg_selection **out)
{
    const struct smg_selection_type *type =
        w->scenario.selection.source == SMG_SOURCE_ENTRY ? &smg_selection_entry : &smg_selection_layer;

    return type->create(w, out);
}

void smg_selection_destroy(struct smg_selection *s)
{
    if (s != NULL) {
        s->type->destroy(s);
    }
}
