/* Loading a policy plug-in (core/plugin.h). */
#ifndef SMG_TRACES_PLUGIN_H
#define SMG_TRACES_PLUGIN_H

#include "core/plugin.h"
#include "core/status.h"

/* Opens the shared object at path (never searched for elsewhere) and checks what it exports. On success *handle_out is closed
 * with smg_plugin_close when nothing uses *out any more. */
int smg_plugin_open(const char *path, const struct smg_plugin **out, void **handle_out, struct smg_diag *diag);
void smg_plugin_close(void *handle);

#endif
