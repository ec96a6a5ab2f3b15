/* Hardware descriptions; the first byte picks GPU, NIC, host or instance type. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "traces/world.h"

static int positive(double x)
{
    return isfinite(x) && x > 0;
}

static int cost(double x)
{
    return isfinite(x) && x >= 0;
}

static int read_gpu(const char *path, struct smg_diag *diag)
{
    struct smg_gpu g;
    int status = smg_gpu_load(path, &g, diag);

    if (!status) {
        fuzz_must(positive(g.peak_flops) && positive(g.prefill_flops) && positive(g.memory_Bps) && positive(g.memory_bytes));
        fuzz_must(positive(g.pcie_Bps) && cost(g.decode_layer_overhead_s) && cost(g.hack_layer_overhead_s));
    }
    return status;
}

static int read_nic(const char *path, struct smg_diag *diag)
{
    struct smg_nic n;
    int status = smg_nic_load(path, &n, diag);

    if (!status) {
        fuzz_must(cost(n.post_cost_s) && positive(n.max_message_bytes) && cost(n.rpc_overhead_s));
        fuzz_must(cost(n.rate_Bps) && cost(n.latency_s) && cost(n.message_bytes) && cost(n.completion_s) && cost(n.send_early));
    }
    return status;
}

static int read_host(const char *path, struct smg_diag *diag)
{
    struct smg_host h;
    int status = smg_host_load(path, &h, diag);

    if (!status)
        fuzz_must(positive(h.gather_Bps_per_vcpu) && isfinite(h.gather_exponent) && cost(h.copy_Bps) && cost(h.timer_late_s));
    return status;
}

static int read_instance(const char *path, struct smg_diag *diag)
{
    struct smg_instance i;
    int status = smg_instance_load(path, &i, diag);

    if (!status)
        fuzz_must(i.gpu[0] && i.gpus_per_node >= 1 && i.vcpus >= 1 && positive(i.link_gbps) && positive(i.host_memory_gib));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int (*const readers[])(const char *path, struct smg_diag *diag) = {read_gpu, read_nic, read_host, read_instance};
    struct smg_diag diag = {""};

    if (bytes)
        fuzz_told(readers[data[0] % 4](fuzz_file(0, data + 1, bytes - 1), &diag), &diag);
    return 0;
}
