/* Where the data files are, and how a name becomes a file. */
#ifndef SMG_TRACES_DATA_DIR_H
#define SMG_TRACES_DATA_DIR_H

#include "core/status.h"
#include "core/world.h"

/* A folder that comes with the program: what the environment variable says; else share/smartgen/folder of the tree in which the
 * program or the library itself lies, so that an installed tree can be moved; else in_source of the source tree, else of the
 * prefix that was configured. Returns the variable's value, or path. */
const char *smg_shared_folder(const char *variable, const char *folder, const char *in_source, char path[SMG_PATH_MAX]);

/* File of a built-in name of a kind ("models", "gpus", "nics", "hosts", "instances"), or of a path: a name with a '/' or the
 * ending .json is a path; the folder of a model stands for the config.json in it. The file need not be readable. Unknown names
 * are reported with the nearest known one. */
int smg_data_resolve(const char *kind, const char *noun, const char *name_or_path, char path[SMG_PATH_MAX],
                     struct smg_diag *diag);
/* Name of a description: its file's name without .json; the folder's name for a config.json. */
void smg_data_name(const char *path, char name[SMG_NAME_MAX]);
/* Mean prompt length of a data set of workloads.json. */
int smg_dataset_tokens(const char *dataset, uint32_t *tokens_out, struct smg_diag *diag);

#endif
