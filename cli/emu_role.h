/* smartgen emu --role: which process of a run over several hosts this is, and what it must know to join. */
#ifndef SMG_CLI_EMU_ROLE_H
#define SMG_CLI_EMU_ROLE_H

#include "cli/cli.h"
#include "emu/emu.h"

/* Whether the options ask for one process of a run over several hosts. Non-zero *code: a message was printed, exit with it. */
int smg_emu_role_given(const struct smg_args *a, int *code);
/* Fills *out for the world. Returns 0, or the exit status after a message. out->router points into *a. */
int smg_emu_role(const struct smg_args *a, const struct smg_world *w, struct smg_emu_cluster *out);
/* "prefill", "decode", "router" of an instance. */
const char *smg_emu_role_name(const struct smg_world *w, uint32_t instance);

#endif
