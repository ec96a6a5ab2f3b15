/* smartgen kernels measure: what was measured, as values of hardware files. */
#ifndef SMG_CLI_KERNELS_MEASURE_H
#define SMG_CLI_KERNELS_MEASURE_H

#include "core/world.h"
#include "experiments/run.h"
#include "kernels/smg_measure.h"
#include "traces/hardware_file.h"

enum { SMG_MEASURE_VALUES = 9 };

/* One value of gpu.json or host.json that a kernel tells. */
struct smg_measure_value {
    const struct smg_value_field *field;
    int host;                                /* of host.json */
    const struct smg_measure_series *series; /* of gather: the last one */
    double value, present;                   /* measured; of the scenario's files now */
    const char *present_key;                 /* the key that stands for it there, where it is another */
    const char *kept;                        /* why the file's value is kept; NULL: the measured one is written */
    char derivation[768];
};

/* What is written about where it was measured. */
struct smg_measure_origin {
    char machine[128]; /* the CPU's name */
    char source[512];
    char host_source[512];
};

void smg_measure_origin(const struct smg_measure_plan *plan, const struct smg_measurement *m, struct smg_measure_origin *out);
/* Fills out[SMG_MEASURE_VALUES]; returns how many. */
size_t smg_measure_values(const struct smg_world *w, const struct smg_measure_plan *plan, const struct smg_measurement *m,
                          struct smg_measure_value *out);

/* Whether path may become such a folder: it does not exist, is empty, or is one already. SMG_ERR_INVALID: it holds something
 * else. */
int smg_measure_claim(const char *path, struct smg_diag *diag);
/* gpu.json, host.json and measurements.csv into a folder that was begun. Values that are not measured are those of the scenario's
 * decode GPU and host. The files are read back: what is written is what the reader takes. */
int smg_measure_write(const struct smg_outdir *dir, const struct smg_world *w, const struct smg_measurement *m,
                      const struct smg_measure_value *values, size_t n, const struct smg_measure_origin *origin,
                      struct smg_diag *diag);

#endif
