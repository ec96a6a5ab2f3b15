/* Files that describe hardware: one JSON object whose values carry unit, source and derivation. */
#ifndef SMG_TRACES_HARDWARE_FILE_H
#define SMG_TRACES_HARDWARE_FILE_H

#include <stddef.h>

#include "core/status.h"
#include "core/world.h"

enum smg_value_kind {
    SMG_VALUE_NUMBER, /* double */
    SMG_VALUE_COUNT,  /* uint32_t */
    SMG_VALUE_NAME    /* char[SMG_PATH_MAX]: name or file of another description */
};

/* One key of a kind of file. A value outside [lo, hi] is a typing error, or a wrong unit. */
struct smg_value_field {
    const char *key, *unit;
    enum smg_value_kind kind;
    size_t offset; /* in the struct that is filled */
    double lo, hi;
    int zero; /* 0 is a value too */
    int optional; /* may be absent: then what was there before stays */
};

/* Most keys of a kind of file. */
#define SMG_VALUE_FIELDS_MAX 16

/* The keys of a GPU's file, of a NIC's and of a host's. */
extern const struct smg_value_field smg_gpu_value_fields[], smg_nic_value_fields[], smg_host_value_fields[];

/* Reads a description by built-in name of a kind of data, or by path. fields ends with a NULL key, at most SMG_VALUE_FIELDS_MAX
 * before it. Fills out at the fields' offsets and name[SMG_NAME_MAX]; on error both may be half filled, so callers pass a
 * temporary. path_out: the file, may be NULL. */
int smg_hardware_read(const char *kind, const char *noun, const char *name_or_path, const struct smg_value_field *fields,
                      void *out, char *name, char path_out[SMG_PATH_MAX], struct smg_diag *diag);

#endif
