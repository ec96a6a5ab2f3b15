/* Options that name an engine or a fabric: what is allowed, and what may have been meant. */
#include <string.h>

#include "cli/cli.h"
#include "emu/fabric.h"
#include "sim/engine.h"
#include "traces/scenario.h"

static int unknown(const char *option, const char *name, const char *const *names)
{
    const char *near = smg_nearest(name, names);

    fprintf(stderr, "smartgen: --%s %s: expected %s or %s%s%s%s\n", option, name, names[0], names[1],
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

int smg_cli_engine(const char *name)
{
    static const char *const names[] = {"simgrid", "native", NULL};

    if (strcmp(name, names[0]) && strcmp(name, names[1]))
        return unknown("engine", name, names);
    if (smg_engine_find(name))
        return SMG_EXIT_OK;
    fprintf(stderr, "smartgen: this program was built without engine '%s'; use --engine native\n", name);
    return SMG_EXIT_USAGE;
}

int smg_cli_fabric(const char *name)
{
    static const char *const names[] = {"ofi", "verbs", NULL};
    struct smg_diag diag = {""};

    if (!name || smg_fabric_find(name))
        return SMG_EXIT_OK;
    if (strcmp(name, names[0]) && strcmp(name, names[1]))
        return unknown("fabric", name, names);
    return smg_cli_fail(smg_fabric_unknown(name, &diag), &diag);
}
