/* smartgen kernels: what can be done with the kernels around the KV cache. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cmd_kernels.h"
#include "traces/scenario.h"

static const struct {
    const char *name;
    int (*run)(const struct smg_args *a);
} verbs[] = {
    {"measure", smg_kernels_measure},
};

int smg_cmd_kernels(const struct smg_args *a)
{
    const char *names[sizeof verbs / sizeof verbs[0] + 1] = {NULL}, *near;
    struct smg_args rest = *a;

    rest.operand++;
    rest.n_operands--;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (!strcmp(a->operand[0], verbs[i].name))
            return verbs[i].run(&rest);
        names[i] = verbs[i].name;
    }
    near = smg_nearest(a->operand[0], names);
    fprintf(stderr, "smartgen kernels: unknown word '%s'%s%s%s; `smartgen kernels --help` tells more\n", a->operand[0],
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}
