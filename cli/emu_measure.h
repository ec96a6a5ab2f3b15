/* What smartgen emu bench and measure share. */
#ifndef SMG_CLI_EMU_MEASURE_H
#define SMG_CLI_EMU_MEASURE_H

#include <stdint.h>

#include "emu/bench.h"

/* "4K,64K,1M": numbers in [low, high]; K and M are 1024 and 1024 * 1024. Non-zero: exit status, message printed. */
int smg_emu_list(const char *action, const char *option, const char *text, uint32_t low, uint32_t high,
                 struct smg_bench_list *out);

#endif
