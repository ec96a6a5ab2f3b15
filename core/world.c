#include "core/world.h"

#include <math.h>

static const double BYTES_PER_GIB = 1024.0 * 1024.0 * 1024.0;

/* At least one, so that a tensor-parallel group wider than its node does not divide by zero. */
static uint32_t instances_per_node(const struct smg_pool_config *p)
{
    uint32_t n = p->tp > 0 ? p->gpus_per_node / p->tp : p->gpus_per_node;

    return n > 0 ? n : 1;
}

static const struct smg_pool_config *node_pool(const struct smg_world *w, uint32_t node)
{
    return node < w->scenario.prefill.nodes ? &w->scenario.prefill : &w->scenario.decode;
}

uint32_t smg_world_instances(const struct smg_world *w)
{
    return 1 + w->prefill_instances + w->decode_instances;
}

int smg_world_is_prefill(const struct smg_world *w, uint32_t instance)
{
    return instance != SMG_ROUTER && instance <= w->prefill_instances;
}

int smg_world_is_decode(const struct smg_world *w, uint32_t instance)
{
    return instance > w->prefill_instances && instance < smg_world_instances(w);
}

uint32_t smg_world_node(const struct smg_world *w, uint32_t instance)
{
    if (smg_world_is_prefill(w, instance)) {
        return (instance - 1) / instances_per_node(&w->scenario.prefill);
    }
    if (smg_world_is_decode(w, instance)) {
        uint32_t index = instance - 1 - w->prefill_instances;
        return w->scenario.prefill.nodes + index / instances_per_node(&w->scenario.decode);
    }
    return UINT32_MAX;
}

uint32_t smg_world_nodes(const struct smg_world *w)
{
    return w->scenario.prefill.nodes + w->scenario.decode.nodes;
}

double smg_world_link_Bps(const struct smg_world *w, uint32_t node)
{
    double nominal = node_pool(w, node)->link_gbps * 1e9 * w->scenario.network.efficiency / 8;

    return w->nic.rate_Bps > 0 && w->nic.rate_Bps < nominal ? w->nic.rate_Bps : nominal;
}

double smg_world_gather_Bps(const struct smg_world *w, uint32_t node)
{
    return w->host.gather_Bps_per_vcpu * pow(node_pool(w, node)->vcpus, w->host.gather_exponent);
}

uint64_t smg_world_pool_bytes(const struct smg_world *w, uint32_t instance)
{
    const struct smg_pool_config *p = smg_world_is_prefill(w, instance) ? &w->scenario.prefill : &w->scenario.decode;

    return (uint64_t)(p->host_memory_gib * BYTES_PER_GIB / instances_per_node(p));
}

uint64_t smg_world_chunk_bytes(const struct smg_world *w)
{
    uint64_t kib = w->scenario.network.chunk_kib;

    if (kib == 0) {
        kib = w->scenario.detail == SMG_DETAIL_LAYER ? 1024 : 16384;
    }
    return kib * 1024;
}

int smg_world_barrier(const struct smg_world *w)
{
    return w->scenario.workload.batch_barrier_set ? w->scenario.workload.batch_barrier
                                                  : w->scenario.workload.kind == SMG_WORKLOAD_BATCH;
}
