#include "core/plugin.h"

#include <string.h>

const struct smg_rank_type *smg_world_ranking(const struct smg_world *w, const char *name)
{
    const struct smg_rank_type *const *own = w->plugin != NULL ? w->plugin->rankings : NULL;

    for (; own != NULL && *own != NULL; own++) {
        if (strcmp((*own)->name, name) == 0) {
            return *own;
        }
    }
    return smg_rank_find(name);
}
