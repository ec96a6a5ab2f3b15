/* The kinds of hardware, and what each file holds. docs/models-and-hardware.md has the same tables for people. */
#include <stddef.h>
#include <string.h>

#include "traces/hardware_file.h"
#include "traces/world.h"

#define END                                                                                                                      \
    {                                                                                                                            \
        NULL, NULL, SMG_VALUE_NUMBER, 0, 0, 0, 0, 0                                                                              \
    }
/* A number in [lo, hi]; 0 or such a number. */
#define NUMBER(type, key, unit, lo, hi)                                                                                          \
    {                                                                                                                            \
#key, unit, SMG_VALUE_NUMBER, offsetof(struct type, key), lo, hi, 0, 0                                                   \
    }
#define OR_ZERO(type, key, unit, lo, hi)                                                                                         \
    {                                                                                                                            \
#key, unit, SMG_VALUE_NUMBER, offsetof(struct type, key), lo, hi, 1, 0                                                   \
    }
/* May be absent. */
#define MEASURED(type, key, unit, lo, hi)                                                                                        \
    {                                                                                                                            \
#key, unit, SMG_VALUE_NUMBER, offsetof(struct type, key), lo, hi, 1, 1                                                   \
    }

/* The ranges hold devices from a slow CPU to several times today's best: a value outside has the wrong unit or a slip. */
const struct smg_value_field smg_gpu_value_fields[] = {
    NUMBER(smg_gpu, peak_flops, "FLOP/s", 1e9, 1e18),
    NUMBER(smg_gpu, prefill_flops, "FLOP/s", 1e9, 1e18),
    NUMBER(smg_gpu, memory_Bps, "B/s", 1e9, 1e14),
    NUMBER(smg_gpu, memory_bytes, "B", 1e8, 1e13),
    NUMBER(smg_gpu, pcie_Bps, "B/s", 1e8, 1e13),
    OR_ZERO(smg_gpu, decode_layer_overhead_s, "s", 1e-9, 1),
    OR_ZERO(smg_gpu, hack_layer_overhead_s, "s", 1e-9, 1),
    NUMBER(smg_gpu, hack_unpack_Bps, "B/s", 1e7, 1e14),
    MEASURED(smg_gpu, select_Bps, "B/s", 1e7, 1e14),
    MEASURED(smg_gpu, select_overhead_s, "s", 1e-9, 1),
    MEASURED(smg_gpu, split_Bps, "B/s", 1e7, 1e14),
    MEASURED(smg_gpu, split_overhead_s, "s", 1e-9, 1),
    END,
};

_Static_assert(sizeof(smg_gpu_value_fields) / sizeof(smg_gpu_value_fields[0]) - 1 <= SMG_VALUE_FIELDS_MAX,
               "SMG_VALUE_FIELDS_MAX is too small");

const struct smg_value_field smg_nic_value_fields[] = {
    OR_ZERO(smg_nic, post_cost_s, "s", 1e-10, 1e-2),
    NUMBER(smg_nic, max_message_bytes, "B", 256, 1e13),
    OR_ZERO(smg_nic, rpc_overhead_s, "s", 1e-9, 1),
    MEASURED(smg_nic, rate_Bps, "B/s", 1e3, 1e13),
    MEASURED(smg_nic, latency_s, "s", 1e-9, 1),
    MEASURED(smg_nic, message_bytes, "B", 1e-3, 1e6),
    MEASURED(smg_nic, completion_s, "s", 1e-9, 1),
    MEASURED(smg_nic, send_early, "1", 1e-3, 1),
    END,
};

const struct smg_value_field smg_host_value_fields[] = {
    NUMBER(smg_host, gather_Bps_per_vcpu, "B/s", 1e6, 1e12),
    OR_ZERO(smg_host, gather_exponent, "1", 1e-3, 2),
    MEASURED(smg_host, copy_Bps, "B/s", 1e6, 1e13),
    MEASURED(smg_host, timer_late_s, "s", 1e-9, 1),
    END,
};

int smg_gpu_load(const char *name_or_path, struct smg_gpu *out, struct smg_diag *diag)
{
    struct smg_gpu gpu;
    int status;

    memset(&gpu, 0, sizeof(gpu));
    status = smg_hardware_read("gpus", "GPU", name_or_path, smg_gpu_value_fields, &gpu, gpu.name, NULL, diag);
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
    status = smg_hardware_read("nics", "NIC", name_or_path, smg_nic_value_fields, &nic, nic.name, NULL, diag);
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
    status = smg_hardware_read("hosts", "host", name_or_path, smg_host_value_fields, &host, host.name, NULL, diag);
    if (status == SMG_OK) {
        *out = host;
    }
    return status;
}
