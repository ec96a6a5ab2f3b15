/* From a scenario to a resolved world: model, hardware, requests, importance. */
#ifndef SMG_TRACES_WORLD_H
#define SMG_TRACES_WORLD_H

#include "core/selection.h"
#include "core/status.h"
#include "core/world.h"

#pragma GCC visibility push(default)

/* Builds the world. On error *out is zeroed, diag says what is wrong. Free with smg_world_free. */
int smg_world_load(const struct smg_scenario *s, struct smg_world *out, struct smg_diag *diag);
void smg_world_free(struct smg_world *w);

/* Reads a Hugging Face config.json as it is (text_config honoured). path or built-in name. */
int smg_model_load(const char *name_or_path, struct smg_model *out, struct smg_diag *diag);
/* Whether the file of a model that could be loaded has a key that is not read and may be one that is, misspelt; note says which.
 */
int smg_model_note(const char *name_or_path, struct smg_diag *note);
/* Hardware descriptions by name, from the data folder, or by path of a file in the same form. */
int smg_gpu_load(const char *name_or_path, struct smg_gpu *out, struct smg_diag *diag);
int smg_nic_load(const char *name_or_path, struct smg_nic *out, struct smg_diag *diag);
int smg_host_load(const char *name_or_path, struct smg_host *out, struct smg_diag *diag);

/* What an instance type stands for. */
struct smg_instance {
    char name[SMG_NAME_MAX];
    char gpu[SMG_PATH_MAX];
    uint32_t gpus_per_node;
    double link_gbps;
    uint32_t vcpus;
    double host_memory_gib;
};
int smg_instance_load(const char *name_or_path, struct smg_instance *out, struct smg_diag *diag);
/* Fills what the pool's instance type says and the scenario does not give; then every key counts as given. */
int smg_instance_apply(struct smg_pool_config *p, struct smg_diag *diag);
/* True when an instance type is named but every key it stands for is given. */
int smg_instance_idle(const struct smg_pool_config *p);

/* Reads a request trace: the first limit requests of the file (0: all), arrivals divided by speedup and shifted so that the
 * first is at 0, sorted stably by arrival. hit: share of each prompt that is cached; Mooncake rows with hash ids derive it from
 * the ids already seen instead. *out is malloc'ed. On success diag may hold a note: what was left out or assumed. */
int smg_trace_load(const char *path, enum smg_trace_format format, uint32_t limit, double speedup, double hit,
                   struct smg_request_spec **out, uint32_t *n_out, struct smg_diag *diag);

/* Names of built-in things of a kind ("models", "gpus", "nics", "hosts", "instances", "workloads", "lengths"), sorted,
 * NULL-terminated; free with smg_names_free. */
int smg_names_list(const char *kind, char ***out);
void smg_names_free(char **names);

/* Folder of the data files: $SMARTGEN_DATA, else installed beside the program, else the source folder it was built from, else the
 * configured one. Static storage. */
const char *smg_data_dir(void);

/* Selection sources: NULL-terminated table. */
extern const struct smg_selection_type *const smg_selection_types[];
/* The source a scenario asks for. */
int smg_selection_create(const struct smg_world *w, struct smg_selection **out);
void smg_selection_destroy(struct smg_selection *s);

#pragma GCC visibility pop

#endif
