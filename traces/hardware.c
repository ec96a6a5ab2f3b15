/* Hardware descriptions: JSON objects whose values carry unit, source and derivation. */
#include <stddef.h>
#include <string.h>

#include "traces/data_dir.h"
#include "traces/text.h"
#include "traces/world.h"

struct field {
    const char *key, *unit;
    size_t offset;
    int zero; /* 0 is a value */
};

#define FIELDS_MAX 10

/* Nonzero values outside are typing errors, and would drive times out of the clock's range. */
#define VALUE_MIN 1e-12
#define VALUE_MAX 1e21

static const struct field gpu_fields[] = {
    {"peak_flops", "FLOP/s", offsetof(struct smg_gpu, peak_flops), 0},
    {"prefill_flops", "FLOP/s", offsetof(struct smg_gpu, prefill_flops), 0},
    {"memory_Bps", "B/s", offsetof(struct smg_gpu, memory_Bps), 0},
    {"memory_bytes", "B", offsetof(struct smg_gpu, memory_bytes), 0},
    {"pcie_Bps", "B/s", offsetof(struct smg_gpu, pcie_Bps), 0},
    {"decode_layer_overhead_s", "s", offsetof(struct smg_gpu, decode_layer_overhead_s), 1},
    {"hack_layer_overhead_s", "s", offsetof(struct smg_gpu, hack_layer_overhead_s), 1},
    {"hack_unpack_Bps", "B/s", offsetof(struct smg_gpu, hack_unpack_Bps), 0},
    {NULL, NULL, 0, 0},
};

static const struct field nic_fields[] = {
    {"post_cost_s", "s", offsetof(struct smg_nic, post_cost_s), 1},
    {"max_message_bytes", "B", offsetof(struct smg_nic, max_message_bytes), 0},
    {"rpc_overhead_s", "s", offsetof(struct smg_nic, rpc_overhead_s), 1},
    {NULL, NULL, 0, 0},
};

static const struct field host_fields[] = {
    {"gather_Bps_per_vcpu", "B/s", offsetof(struct smg_host, gather_Bps_per_vcpu), 0},
    {"gather_exponent", "1", offsetof(struct smg_host, gather_exponent), 1},
    {NULL, NULL, 0, 0},
};

static const char *const value_keys[] = {"value", "unit", "source", "derivation", NULL};

static int known(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Every key of object is one of names. */
static int only_known(const json_t *object, const char *const *names, const char *where, struct smg_diag *diag)
{
    const char *name;
    json_t *value;
    char hint[160];

    json_object_foreach((json_t *)object, name, value)
    {
        if (!known(name, names)) {
            smg_text_hint(name, names, hint, sizeof(hint));
            return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%.60s': unknown key%s", where, name, hint);
        }
    }
    return SMG_OK;
}

static int read_field(const json_t *root, const struct field *f, const char *path, void *out, struct smg_diag *diag)
{
    json_t *entry = json_object_get(root, f->key), *value, *unit;
    char where[SMG_PATH_MAX + 64];
    double number;
    int status;

    if (entry == NULL) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s' is missing", path, f->key);
    }
    if (!json_is_object(entry)) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key '%s': expected {\"value\", \"unit\", \"source\", \"derivation\"}", path,
                            f->key);
    }
    snprintf(where, sizeof(where), "%s: key '%s'", path, f->key);
    status = only_known(entry, value_keys, where, diag);
    if (status != SMG_OK) {
        return status;
    }
    value = json_object_get(entry, "value");
    unit = json_object_get(entry, "unit");
    number = json_number_value(value);
    if (!json_is_number(value) || number < 0 || (number == 0 && !f->zero)) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: 'value': expected a number %s 0", where, f->zero ? ">=" : ">");
    }
    if (number != 0 && !(number >= VALUE_MIN && number <= VALUE_MAX)) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: 'value': expected a number in [1e-12, 1e21], found %g", where, number);
    }
    if (!json_is_string(unit) || strcmp(json_string_value(unit), f->unit) != 0) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: 'unit': expected \"%s\"", where, f->unit);
    }
    if (!json_is_string(json_object_get(entry, "source"))) {
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: 'source' is missing: where does the value come from?", where);
    }
    memcpy((char *)out + f->offset, &number, sizeof(number));
    return SMG_OK;
}

static int read_fields(const json_t *root, const struct field *fields, const char *path, void *out, struct smg_diag *diag)
{
    const char *names[FIELDS_MAX + 1];
    size_t n;
    int status;

    for (n = 0; fields[n].key != NULL; n++) {
        names[n] = fields[n].key;
    }
    names[n] = NULL;
    status = only_known(root, names, path, diag);
    for (n = 0; fields[n].key != NULL && status == SMG_OK; n++) {
        status = read_field(root, &fields[n], path, out, diag);
    }
    return status;
}

/* Fills out and its name; on error out may be half filled, so callers pass a temporary. */
static int load(const char *kind, const char *noun, const char *name_or_path, const struct field *fields, void *out, char *name,
                struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    json_t *root;
    int status = smg_data_resolve(kind, noun, name_or_path, path, diag);

    if (status == SMG_OK) {
        status = smg_file_json(path, &root, diag);
    }
    if (status != SMG_OK) {
        return status;
    }
    status = read_fields(root, fields, path, out, diag);
    json_decref(root);
    smg_data_name(path, name);
    return status;
}

int smg_gpu_load(const char *name_or_path, struct smg_gpu *out, struct smg_diag *diag)
{
    struct smg_gpu gpu;
    int status;

    memset(&gpu, 0, sizeof(gpu));
    status = load("gpus", "GPU", name_or_path, gpu_fields, &gpu, gpu.name, diag);
    if (status == SMG_OK) {
        *out = gpu;
    }
    return status;
}

int smg_nic_load(const char *name_or_path, struct smg_nic *out, struct smg_diag *diag)
{
    struct smg_nic nic;
    int status;

    memset(&nic, 0, sizeof(nic));
    status = load("nics", "NIC", name_or_path, nic_fields, &nic, nic.name, diag);
    if (status == SMG_OK) {
        *out = nic;
    }
    return status;
}

int smg_host_load(const char *name_or_path, struct smg_host *out, struct smg_diag *diag)
{
    struct smg_host host;
    int status;

    memset(&host, 0, sizeof(host));
    status = load("hosts", "host", name_or_path, host_fields, &host, host.name, diag);
    if (status == SMG_OK) {
        *out = host;
    }
    return status;
}
