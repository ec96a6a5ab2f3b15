/* The sub-commands of smartgen kernels. */
#ifndef SMG_CLI_CMD_KERNELS_H
#define SMG_CLI_CMD_KERNELS_H

#include "cli/cli.h"

/* a: without the sub-command's name. */
int smg_kernels_measure(const struct smg_args *a);

#endif
