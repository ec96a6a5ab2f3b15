/* Output files of this room: every write is checked, and a full disk is an error at the latest when the file is closed. */
#ifndef SMG_EXPERIMENTS_FILES_H
#define SMG_EXPERIMENTS_FILES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"
#include "core/world.h"

/* Opens path for writing, truncated. SMG_ERR_IO leaves *out as it was. */
int smg_output_open(const char *path, FILE **out, struct smg_diag *diag);
/* Closes f. Returns status when it is an error already, SMG_ERR_IO when anything written to f did not reach the file. */
int smg_output_close(FILE *f, const char *path, int status, struct smg_diag *diag);

/* Joins folder and name into path; SMG_ERR_RANGE when it does not fit. */
int smg_path_join(const char *folder, const char *name, char path[SMG_PATH_MAX]);
/* Whether path may be read as a file of a record folder. SMG_ERR_IO: what lies there is a pipe, a socket or a device, and may
 * never end. Of a folder, or where nothing lies, the reader says so. */
int smg_file_regular(const char *path, struct smg_diag *diag);
/* Makes a folder and its parents; one that exists is fine. */
int smg_folder_make(const char *path, struct smg_diag *diag);

/* Makes a folder and its parents where they are missing, and finds out whether files can be made there: before work whose output
 * goes there. */
int smg_folder_probe(const char *path, struct smg_diag *diag);
/* Keeps a folder for this process, and those that it forks, until the last of them ends. SMG_ERR_INVALID: another process has it.
 * Where the file system has no locks, nothing is kept. */
int smg_folder_lock(const char *path, struct smg_diag *diag);

/* A JSON number, or null when x is not finite; an integer when x is one that a double holds exactly. NULL: out of memory. */
json_t *smg_json_real(double x);
json_t *smg_json_count(double x);
/* 64 bits as 16 hexadecimal digits, since JSON readers lose integers above 2^53. */
json_t *smg_json_hex(uint64_t x);
/* Writes j, indented, keys in order of insertion, 9 significant digits. NULL is out of memory. Takes the reference. */
int smg_json_write(json_t *j, const char *path, struct smg_diag *diag);

#endif
