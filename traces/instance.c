/* Instance types: one name for the GPU, the link, the CPUs and the memory of a rented machine. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/data_dir.h"
#include "traces/hardware_file.h"
#include "traces/text.h"
#include "traces/world.h"

/* The ranges are those of the scenario keys: what a file says can be written into a scenario. */
static const struct smg_value_field fields[] = {
    {"gpu", "name", SMG_VALUE_NAME, offsetof(struct smg_instance, gpu), 0, 0, 0, 0},
    {"gpus_per_node", "1", SMG_VALUE_COUNT, offsetof(struct smg_instance, gpus_per_node), 1, 64, 0, 0},
    {"link_gbps", "Gbit/s", SMG_VALUE_NUMBER, offsetof(struct smg_instance, link_gbps), 1e-3, 1e5, 0, 0},
    {"vcpus", "1", SMG_VALUE_COUNT, offsetof(struct smg_instance, vcpus), 1, 4096, 0, 0},
    {"host_memory_gib", "GiB", SMG_VALUE_NUMBER, offsetof(struct smg_instance, host_memory_gib), 0.1, 1e6, 0, 0},
    {NULL, NULL, SMG_VALUE_NUMBER, 0, 0, 0, 0, 0},
};

/* A GPU's file may lie beside the instance's. */
static void beside(const char *file, char gpu[SMG_PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    char joined[2 * SMG_PATH_MAX];
    struct stat info;
    int length;

    if (slash == NULL || gpu[0] == '/') {
        return;
    }
    length = snprintf(joined, sizeof(joined), "%.*s/%s", (int)(slash - file), file, gpu);
    if (length < SMG_PATH_MAX && stat(joined, &info) == 0 && S_ISREG(info.st_mode)) {
        memset(gpu, 0, SMG_PATH_MAX);
        memcpy(gpu, joined, (size_t)length);
    }
}

/* A GPU that nobody knows is a fault of this file, whoever would read it next. */
static int check_gpu(const char *file, char gpu[SMG_PATH_MAX], struct smg_diag *diag)
{
    struct smg_diag found = {""};
    char path[SMG_PATH_MAX];
    int status;

    beside(file, gpu);
    status = smg_data_resolve("gpus", "GPU", gpu, path, &found);
    return status == SMG_OK ? SMG_OK : smg_diag_set(diag, SMG_ERR_PARSE, "%.300s: key 'gpu.value': %.160s", file, found.text);
}

int smg_instance_load(const char *name_or_path, struct smg_instance *out, struct smg_diag *diag)
{
    struct smg_instance instance;
    char path[SMG_PATH_MAX];
    int status;

    memset(&instance, 0, sizeof(instance));
    status = smg_hardware_read("instances", "instance type", name_or_path, fields, &instance, instance.name, path, diag);
    if (status == SMG_OK) {
        status = check_gpu(path, instance.gpu, diag);
    }
    if (status == SMG_OK) {
        *out = instance;
    }
    return status;
}

int smg_instance_idle(const struct smg_pool_config *p)
{
    return p->instance[0] != '\0' && p->given.gpu && p->given.gpus_per_node && p->given.link_gbps && p->given.vcpus &&
           p->given.host_memory_gib;
}

static void fill(struct smg_pool_config *p, const struct smg_instance *i)
{
    if (!p->given.gpu) {
        memcpy(p->gpu, i->gpu, sizeof(p->gpu));
    }
    if (!p->given.gpus_per_node) {
        p->gpus_per_node = i->gpus_per_node;
    }
    if (!p->given.link_gbps) {
        p->link_gbps = i->link_gbps;
    }
    if (!p->given.vcpus) {
        p->vcpus = i->vcpus;
    }
    if (!p->given.host_memory_gib) {
        p->host_memory_gib = i->host_memory_gib;
    }
}

int smg_instance_apply(struct smg_pool_config *p, struct smg_diag *diag)
{
    struct smg_instance instance;
    int status;

    if (p->instance[0] != '\0') {
        status = smg_instance_load(p->instance, &instance, diag);
        if (status != SMG_OK) {
            return status;
        }
        fill(p, &instance);
    }
    p->given.gpu = p->given.gpus_per_node = p->given.link_gbps = p->given.vcpus = p->given.host_memory_gib = 1;
    return SMG_OK;
}
