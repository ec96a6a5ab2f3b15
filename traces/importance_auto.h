/* The built-in importance matrix: the generator's calibration requests, counted. Synthetic, and labelled so. */
#ifndef SMG_TRACES_IMPORTANCE_AUTO_H
#define SMG_TRACES_IMPORTANCE_AUTO_H

#include "core/importance.h"
#include "core/model.h"

/* One group for all prompt lengths. tokens: the workload's mean prompt; calibration prompts are no longer than that. A function
 * of its arguments. */
int smg_importance_auto(const struct smg_model *m, uint64_t seed, double cap, uint32_t blocks, uint32_t tokens,
                        struct smg_importance **out);

#endif
