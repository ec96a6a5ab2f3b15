/* The actions of smartgen kernels. */
#ifndef SMG_CLI_CMD_KERNELS_H
#define SMG_CLI_CMD_KERNELS_H

#include "cli/cli.h"

struct smg_kernels;

/* a: without the action's name. */
int smg_kernels_measure(const struct smg_args *a);
/* Opens the backend that --backend names; else says why not, with the nearest name, and returns an exit status. */
int smg_kernels_backend(const char *name, struct smg_kernels **k);

#endif
