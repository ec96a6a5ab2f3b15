/* What the header of a file with columns looks like. */
#ifndef SMG_TRACES_TRACE_COLUMNS_H
#define SMG_TRACES_TRACE_COLUMNS_H

#include <stddef.h>

#include "traces/trace_rows.h"

struct smg_trace_guess smg_trace_guess_columns(char *const cell[], size_t n);

#endif
