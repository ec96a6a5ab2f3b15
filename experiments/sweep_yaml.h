/* A YAML file read strictly; private to experiments/. Every complaint names file, line and column. */
#ifndef SMG_EXPERIMENTS_SWEEP_YAML_H
#define SMG_EXPERIMENTS_SWEEP_YAML_H

#include <stddef.h>
#include <yaml.h>

#include "core/status.h"
#include "core/world.h"

struct smg_yaml {
    char path[SMG_PATH_MAX];
    yaml_document_t document;
};

/* Reads a file that holds one document, a mapping. On error there is nothing to free. */
int smg_yaml_read(const char *path, struct smg_yaml *out, struct smg_diag *diag);
void smg_yaml_free(struct smg_yaml *y);
const yaml_node_t *smg_yaml_root(struct smg_yaml *y);
const yaml_node_t *smg_yaml_node(struct smg_yaml *y, int index);

/* Writes "FILE:LINE:COLUMN: ..." and returns status. */
int smg_yaml_fail(const struct smg_yaml *y, const yaml_node_t *at, struct smg_diag *diag, int status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Pairs of a mapping, items of a sequence; 0 for anything else. */
size_t smg_yaml_count(const yaml_node_t *node);
void smg_yaml_pair(struct smg_yaml *y, const yaml_node_t *map, size_t i, const yaml_node_t **key, const yaml_node_t **value);
const yaml_node_t *smg_yaml_item(struct smg_yaml *y, const yaml_node_t *list, size_t i);
/* Text of a scalar, NULL for anything else. Belongs to the document. */
const char *smg_yaml_text(const yaml_node_t *node);

/* SMG_ERR_PARSE unless map is a mapping whose keys are all in names[] (NULL-terminated) and given once. */
int smg_yaml_keys(struct smg_yaml *y, const yaml_node_t *map, const char *const *names, struct smg_diag *diag);
/* Value of a key; NULL when it is not there. */
const yaml_node_t *smg_yaml_member(struct smg_yaml *y, const yaml_node_t *map, const char *key);
/* Copies the text of a key into out; a key that is not there leaves out as it was, or is an error when `required`. */
int smg_yaml_string(struct smg_yaml *y, const yaml_node_t *map, const char *key, int required, char *out, size_t out_bytes,
                    struct smg_diag *diag);

#endif
