/* The resolved world of one run: scenario, model, hardware, requests, importance. Plain data; filled by traces/, read by
 * everybody. */
#ifndef SMG_CORE_WORLD_H
#define SMG_CORE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "core/model.h"
#include "core/status.h"

#pragma GCC visibility push(default)

struct smg_importance;
struct smg_plugin;
struct smg_scheme;

#define SMG_PATH_MAX 1024

/* ---- Scenario: the keys of a scenario file, one field each, names as in the file ---- */

enum smg_selector { SMG_SELECTOR_INFINIGEN, SMG_SELECTOR_HATA, SMG_SELECTOR_QUEST, SMG_SELECTOR_ORACLE };
enum smg_start { SMG_START_READY, SMG_START_PUSHED, SMG_START_LAYER };
enum smg_workload_kind { SMG_WORKLOAD_BATCH, SMG_WORKLOAD_POISSON, SMG_WORKLOAD_TRACE };
enum smg_trace_format {
    SMG_TRACE_AZURE,
    SMG_TRACE_MOONCAKE,
    SMG_TRACE_BURSTGPT,
    SMG_TRACE_VIDUR,
    SMG_TRACE_SPLITWISE,
    SMG_TRACE_LLMSERVINGSIM,
    SMG_TRACE_CSV
};
enum smg_budget { SMG_BUDGET_EQ2, SMG_BUDGET_WINDOW };
enum smg_tristate { SMG_FALSE, SMG_TRUE, SMG_AUTO };
enum smg_spec_start { SMG_SPEC_FIRST, SMG_SPEC_SECOND };
enum smg_spec_queue { SMG_SPEC_SHARED, SMG_SPEC_OWN };
enum smg_source { SMG_SOURCE_LAYER, SMG_SOURCE_ENTRY };
enum smg_detail { SMG_DETAIL_LAYER, SMG_DETAIL_ITERATION };
enum smg_engine_kind { SMG_ENGINE_SIMGRID, SMG_ENGINE_NATIVE };
enum smg_routing { SMG_ROUTING_LEAST_LOADED, SMG_ROUTING_ROUND_ROBIN };
enum smg_write_order { SMG_ORDER_DEVICE, SMG_ORDER_ASSUME, SMG_ORDER_FENCE };
enum smg_verify { SMG_VERIFY_NONE, SMG_VERIFY_ALL };
enum smg_emu_compute { SMG_EMU_PACED, SMG_EMU_KERNELS };
enum smg_backend { SMG_BACKEND_CPU, SMG_BACKEND_REFERENCE };
enum smg_link { SMG_LINK_SHAPED, SMG_LINK_FREE };
enum smg_mutant { SMG_MUTANT_NONE, SMG_MUTANT_FLIP_BYTE, SMG_MUTANT_EARLY_MASK };

#define SMG_KR_AUTO UINT32_MAX

struct smg_pool_config { /* prefill: / decode: */
    uint32_t nodes;
    uint32_t gpus_per_node;
    uint32_t tp; /* tensor-parallel degree; instances per node = gpus_per_node / tp */
    char gpu[SMG_PATH_MAX];
    double link_gbps; /* per node, Gbit/s */
    uint32_t vcpus;
    double host_memory_gib;
    char instance[SMG_PATH_MAX]; /* instance type, fills those of the keys below that are not given; "" none */
    struct {
        int gpu, gpus_per_node, link_gbps, vcpus, host_memory_gib;
    } given; /* in the file or by --set; all set once the scenario is resolved */
};

struct smg_scenario {
    char model[SMG_PATH_MAX];
    char scheme[SMG_NAME_MAX];
    char policy[SMG_PATH_MAX]; /* plug-in, "" none */
    enum smg_selector selector;
    uint64_t seed;
    struct smg_pool_config prefill;
    uint32_t prefill_chunk_tokens; /* 0: whole prompt */
    struct smg_pool_config decode;
    uint32_t decode_max_batch;
    enum smg_start decode_start;
    char host[SMG_PATH_MAX]; /* CPU of all machines */
    struct {
        double latency_us;
        char nic[SMG_PATH_MAX];
        double efficiency;       /* 0..1, of link_gbps */
        double oversubscription; /* >= 1 */
        double handshake_us;     /* per hand-off: agreeing that decode may start */
        double dispatch_us;      /* per request: the router's work before its instances hear of it */
        uint64_t chunk_kib;      /* WRITE chunk, KiB; 0: auto (1024 at detail layer, 16384 at iteration) */
    } network;
    enum smg_routing routing;
    double prefix_hit; /* 0..1 */
    struct {
        enum smg_workload_kind kind;
        char dataset[SMG_NAME_MAX];
        uint32_t requests;
        uint32_t prompt_tokens;
        uint32_t output_tokens;
        double rate; /* poisson, requests per second */
        char file[SMG_PATH_MAX];
        enum smg_trace_format format;
        uint32_t limit; /* first rows of the trace, 0: all */
        double speedup;
        int batch_barrier;
        int batch_barrier_set; /* given in the file or by --set (default depends on kind) */
        int prompt_tokens_set;
        int output_tokens_set;
        char lengths[SMG_PATH_MAX]; /* "mean", a built-in distribution, or FILE */
    } workload;
    uint32_t blocks_per_layer; /* M */
    uint32_t min_block_tokens;
    struct {
        int enabled;
        enum smg_budget budget;
        char ranking[SMG_NAME_MAX];
        char importance[SMG_PATH_MAX]; /* "auto" or FILE */
        uint32_t kr_blocks;            /* SMG_KR_AUTO or a fixed Kr */
    } proactive;
    struct {
        int parallel;
        int reorder;
        uint32_t scatter_limit;
        enum smg_tristate reuse;
    } on_demand;
    struct {
        int enabled;
        double ratio;
        enum smg_spec_start start;
        enum smg_spec_queue queue;
    } speculative;
    struct {
        double cap;
        double alpha;
        double partial_ratio;
        double natural; /* InfiniGen: share of tokens within alpha of the best; the cap binds below it */
        uint32_t hash_bits;
        int batch_mean;
        enum smg_source source;
        char file[SMG_PATH_MAX]; /* recorded selections, "" none: generated */
    } selection;
    double profile_shift;
    struct {
        char layout[SMG_NAME_MAX];
        uint32_t bits;
        uint32_t group;
        int fused;
    } hack;
    int gdr;
    enum smg_detail detail;
    enum smg_engine_kind engine;
    struct {
        enum smg_emu_compute compute;
        enum smg_backend backend; /* of the kernels */
        enum smg_verify verify;
        char token[SMG_NAME_MAX];
        enum smg_write_order write_order;
        enum smg_link link;       /* shaped in software to link_gbps, or as fast as the fabric is */
        enum smg_mutant mutant;   /* test only: plants a bug that verification must catch */
        char fault[SMG_NAME_MAX]; /* test only: what an instance does to itself, or "none" (emu/fault.h) */
        double time_scale;        /* paced compute durations are multiplied by this, default 1 */
    } emu;
    struct {
        uint32_t instance;     /* simulation: this one dies, 0: none */
        double at_s, detect_s; /* when, and how long until the others know */
    } faults;
    struct {
        double ttft_s, ttst_s, tbt_s;
    } slo;
    struct {
        int tokens, decisions, timeline, events;
    } records;
};

/* ---- Hardware, as read from data files (each value there with unit, source, derivation) ---- */

struct smg_gpu {
    char name[SMG_NAME_MAX];
    double peak_flops;    /* dense 16-bit tensor FLOP/s */
    double prefill_flops; /* effective FLOP/s of prefill */
    double memory_Bps;
    double memory_bytes;
    double pcie_Bps;                /* practical, one direction */
    double decode_layer_overhead_s; /* per layer and step: attention and launch cost outside the lanes */
    double hack_layer_overhead_s;   /* the same of unfused HACK attention */
    double hack_unpack_Bps;         /* unfused HACK: 16-bit KV bytes unpacked per second */
    /* Measured kernels (smartgen kernels measure); 0 where nobody has: rates are then memory_Bps, fixed parts nothing. */
    double select_Bps, select_overhead_s; /* selector scores of a layer: metadata bytes per second; fixed part */
    double split_Bps, split_overhead_s;   /* split of a layer: index and mask bytes per second; fixed part */
};

struct smg_nic {
    char name[SMG_NAME_MAX];
    double post_cost_s; /* per message (work request) */
    double max_message_bytes;
    double rpc_overhead_s; /* software cost of serving one on-demand request */
    /* Measured with the engine (smartgen emu measure); 0 where nobody has. */
    double rate_Bps;      /* payload rate: no link of the world is faster */
    double latency_s;     /* one way, of a small message: in place of network.latency_us */
    double message_bytes; /* payload that a message's headers would have been */
    double completion_s;  /* a WRITE's completion reaches its sender so long after the bytes are there */
    double send_early; /* share of a reply's time on the wire that its sender does not wait for: 1, where a buffer takes it all */
};

struct smg_host {
    char name[SMG_NAME_MAX];
    double gather_Bps_per_vcpu; /* CPU gather rate of 512-byte entries */
    double gather_exponent;     /* rate = per_vcpu * vcpus^exponent */
    /* Of an emulation, whose GPU is host memory and a clock (smartgen emu measure); 0: none. */
    double copy_Bps;     /* copies of a decode instance: in place of the GPU's pcie_Bps */
    double timer_late_s; /* a computation ends so much late */
};

/* One request of the workload. Ids run from 0 in order of arrival. */
struct smg_request_spec {
    double arrival_s;
    uint32_t prompt_tokens; /* >= 1 */
    uint32_t output_tokens; /* >= 1 */
    uint32_t hit_tokens;    /* prompt tokens already cached on the prefill side, < prompt_tokens */
};

/* Instances are numbered: 0 the router, then prefill instances, then decode instances. */
struct smg_world {
    struct smg_scenario scenario;
    struct smg_model model;
    struct smg_gpu prefill_gpu, decode_gpu;
    struct smg_nic nic;
    struct smg_host host;
    struct smg_request_spec *requests; /* [n_requests], owned */
    uint32_t n_requests;
    struct smg_importance *importance; /* owned; NULL when no ranking needs it */
    const struct smg_scheme *scheme;   /* not owned */
    const struct smg_plugin *plugin;   /* NULL: none; valid while plugin_handle is open */
    void *plugin_handle;               /* owned */
    uint32_t prefill_instances, decode_instances;
    uint32_t over_length; /* requests whose prompt exceeds the model's positions (a counted warning) */
    int synthetic_importance, synthetic_selection, synthetic_workload;
    struct smg_diag workload_note; /* what was left out of a trace or assumed about it, "" nothing (a warning) */
};

#define SMG_ROUTER 0u

uint32_t smg_world_instances(const struct smg_world *w); /* router included */
int smg_world_is_prefill(const struct smg_world *w, uint32_t instance);
int smg_world_is_decode(const struct smg_world *w, uint32_t instance);
/* Node of an instance; prefill nodes first, then decode nodes, from 0. The router's node is UINT32_MAX. */
uint32_t smg_world_node(const struct smg_world *w, uint32_t instance);
uint32_t smg_world_nodes(const struct smg_world *w);
/* Effective NIC rate of a node in bytes/s and direction: link_gbps * efficiency / 8, or what the NIC was measured to carry where
 * that is less. */
double smg_world_link_Bps(const struct smg_world *w, uint32_t node);
/* CPU gather rate of a node in bytes/s. */
double smg_world_gather_Bps(const struct smg_world *w, uint32_t node);
/* Bytes of KV pool of an instance: host memory of its node shared equally by its instances. */
uint64_t smg_world_pool_bytes(const struct smg_world *w, uint32_t instance);
/* WRITE chunk in bytes. */
uint64_t smg_world_chunk_bytes(const struct smg_world *w);
/* Whether the barrier holds for this workload (the default depends on the kind). */
int smg_world_barrier(const struct smg_world *w);

#pragma GCC visibility pop

#endif
