/* Every key of a scenario file, once: defaults, YAML, --set, run.json and the help text all read this table. */
#include "traces/scenario_keys.h"

#include <string.h>

#define FIELD(field) .offset = offsetof(struct smg_scenario, field), .bytes = sizeof(((struct smg_scenario *)0)->field)

#define TEXT(key, field, preset_, doc_)                                                                                          \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_TEXT, .preset = preset_, .unit = "", .doc = doc_, FIELD(field)                              \
    }
#define NAMED(key, field, preset_, names_, doc_)                                                                                 \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_TEXT, .preset = preset_, .unit = "", .doc = doc_, .names = names_, FIELD(field)             \
    }
#define CHOICE(key, field, preset_, names_, doc_)                                                                                \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_CHOICE, .preset = preset_, .unit = "", .doc = doc_, .names = names_, FIELD(field)           \
    }
#define FLAG(key, field, preset_, doc_)                                                                                          \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_FLAG, .preset = preset_, .unit = "", .doc = doc_, FIELD(field)                              \
    }
#define COUNT(key, field, preset_, unit_, lo_, hi_, doc_)                                                                        \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_U32, .preset = preset_, .unit = unit_, .doc = doc_, .lo = lo_, .hi = hi_, FIELD(field)      \
    }
#define SIZE(key, field, preset_, unit_, lo_, hi_, doc_)                                                                         \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_U64, .preset = preset_, .unit = unit_, .doc = doc_, .lo = lo_, .hi = hi_, FIELD(field)      \
    }
#define NUMBER(key, field, preset_, unit_, lo_, hi_, doc_)                                                                       \
    {                                                                                                                            \
        .path = key, .kind = SMG_KEY_NUMBER, .preset = preset_, .unit = unit_, .doc = doc_, .lo = lo_, .hi = hi_, FIELD(field)   \
    }
/* Above 0, and not so near that what is divided by it leaves the range of times and sizes that a run can hold. */
#define TINY 1e-6

/* A key that the pool's instance type can stand for. */
#define FILLED(pool, name, kind_, preset_, unit_, lo_, hi_, doc_)                                                                \
    {                                                                                                                            \
        .path = #pool "." #name, .kind = kind_, .preset = preset_, .unit = unit_, .doc = doc_, .lo = lo_, .hi = hi_,             \
        FIELD(pool.name), .given = offsetof(struct smg_scenario, pool.given.name),                                               \
        .filler = offsetof(struct smg_scenario, pool.instance)                                                                   \
    }
#define POOL_KEYS(pool, nodes_, gpus_, gbps_, vcpus_, gib_)                                                                      \
    COUNT(#pool ".nodes", pool.nodes, nodes_, "", 1, 100000, "Machines of the " #pool " pool."),                                 \
        FILLED(pool, gpus_per_node, SMG_KEY_U32, gpus_, "", 1, 64, "GPUs of one machine."),                                   \
        COUNT(#pool ".tp", pool.tp, "1", "", 1, 64, "Tensor-parallel degree: GPUs of one instance; divides gpus_per_node."),     \
        FILLED(pool, gpu, SMG_KEY_TEXT, "l20", "", 0, 0, "GPU: a built-in name or a description file."),                      \
        FILLED(pool, link_gbps, SMG_KEY_NUMBER, gbps_, "Gbit/s", TINY, 100000, "Link rate of one machine, each direction."),     \
        FILLED(pool, vcpus, SMG_KEY_U32, vcpus_, "", 1, 4096, "Virtual CPUs of one machine; they gather KV entries."),        \
        FILLED(pool, host_memory_gib, SMG_KEY_NUMBER, gib_, "GiB", TINY, 1e6, "Host memory of one machine."),                    \
        TEXT(#pool ".instance", pool.instance, "",                                                                               \
             "Instance type, a built-in name or a file: gpu, gpus_per_node, link_gbps, vcpus, host_memory_gib not given.")

static const char *const schemes[] = {"full", "partial", "smartgen", "hack", "proactive-only", "streamingllm", NULL};
static const char *const selectors[] = {"infinigen", "hata", "quest", "oracle", NULL};
static const char *const starts[] = {"ready", "pushed", "layer", NULL};
static const char *const routings[] = {"least-loaded", "round-robin", NULL};
static const char *const workloads[] = {"batch", "poisson", "trace", NULL};
static const char *const formats[] = {"azure", "mooncake", "burstgpt", "vidur", "splitwise", "llmservingsim", "csv", NULL};
static const char *const budgets[] = {"eq2", "window", NULL};
static const char *const spec_starts[] = {"first", "second", NULL};
static const char *const spec_queues[] = {"shared", "own", NULL};
static const char *const sources[] = {"layer", "entry", NULL};
static const char *const layouts[] = {"atc26", "v1", NULL};
static const char *const details[] = {"layer", "iteration", NULL};
static const char *const engines[] = {"simgrid", "native", NULL};
static const char *const computes[] = {"paced", "kernels", NULL};
static const char *const backends[] = {"cpu", "reference", NULL};
static const char *const verifies[] = {"none", "all", NULL};
static const char *const write_orders[] = {"device", "assume", "fence", NULL};
static const char *const links[] = {"shaped", "free", NULL};
static const char *const mutants[] = {"none", "flip-byte", "early-mask", NULL};

static const struct smg_key table[] = {
    TEXT("model", model, "qwen3-14b", "Model: a built-in name, or the path of a Hugging Face config.json."),
    NAMED("scheme", scheme, "smartgen", schemes, "Transfer scheme."),
    TEXT("policy", policy, "", "Path of a plug-in that takes the place of the scheme."),
    CHOICE("selector", selector, "infinigen", selectors, "Sparse-attention selector; sets the metadata that prefill sends."),
    {.path = "seed",
     .kind = SMG_KEY_U64,
     .preset = "1",
     .unit = "",
     .doc = "Seed of everything random.",
     .hi = 0x1p64,
     FIELD(seed)},

    POOL_KEYS(prefill, "3", "2", "32", "32", "256"),
    COUNT("prefill.chunk_tokens", prefill_chunk_tokens, "0", "tokens", 0, 16e6,
          "Chunked prefill: tokens of a chunk; 0: the whole prompt."),

    POOL_KEYS(decode, "1", "1", "25", "16", "128"),
    COUNT("decode.max_batch", decode_max_batch, "64", "", 1, 65535, "Most requests in one decode batch."),
    CHOICE("decode.start", decode_start, "ready", starts,
           "When a request may join the batch: with metadata and layers 0, 1; with all pushed blocks; layer by layer."),

    TEXT("host", host, "default", "CPU of all machines, which gathers KV entries: a built-in name or a description file."),

    NUMBER("network.latency_us", network.latency_us, "10", "us", 0, 1e6, "One-way latency of a message."),
    TEXT("network.nic", network.nic, "default", "NIC: a built-in name or a description file."),
    NUMBER("network.efficiency", network.efficiency, "1.0", "", TINY, 1, "Share of link_gbps that payload gets."),
    NUMBER("network.oversubscription", network.oversubscription, "1", "", 1, 1000,
           "Sum of link rates over the rate of the core."),
    NUMBER("network.handshake_us", network.handshake_us, "0", "us", 0, 1e9, "Hand-off: time to agree that decode may start."),
    NUMBER("network.dispatch_us", network.dispatch_us, "0", "us", 0, 1e9,
           "Hand-off: the router's work per request before its instances hear of it."),
    SIZE("network.chunk_kib", network.chunk_kib, "0", "KiB", 0, 1048576, "Most bytes of one WRITE chunk; 0: by level of detail."),

    CHOICE("routing", routing, "least-loaded", routings, "How the router picks instances."),
    {.path = "prefix_hit",
     .kind = SMG_KEY_NUMBER,
     .preset = "0.75",
     .unit = "",
     .hi = 1,
     .below = 1,
     FIELD(prefix_hit),
     .doc = "Share of a prompt whose KV is cached before prefill; ignored where the trace carries prefix hashes."},

    CHOICE("workload.kind", workload.kind, "batch", workloads, "All requests at time 0, Poisson arrivals, or a trace."),
    TEXT("workload.dataset", workload.dataset, "multifieldqa", "Data set whose mean prompt length is used."),
    COUNT("workload.requests", workload.requests, "6", "", 1, 1e6, "Requests of a batch or Poisson workload."),
    {.path = "workload.prompt_tokens",
     .kind = SMG_KEY_U32,
     .preset = "7000",
     .unit = "tokens",
     .lo = 1,
     .hi = 16e6,
     FIELD(workload.prompt_tokens),
     .given = offsetof(struct smg_scenario, workload.prompt_tokens_set),
     .doc = "Prompt length; when it is not given the data set decides."},
    {.path = "workload.output_tokens",
     .kind = SMG_KEY_U32,
     .preset = "64",
     .unit = "tokens",
     .lo = 1,
     .hi = 16e6,
     FIELD(workload.output_tokens),
     .given = offsetof(struct smg_scenario, workload.output_tokens_set),
     .doc = "Tokens to generate per request."},
    TEXT("workload.lengths", workload.lengths, "mean",
         "Lengths of a batch or Poisson workload: mean (the two keys above), a name of `smartgen list lengths`, or a file."),
    NUMBER("workload.rate", workload.rate, "1.0", "1/s", TINY, 1e6, "Requests per second of a Poisson workload."),
    TEXT("workload.file", workload.file, "", "Trace file."),
    CHOICE("workload.format", workload.format, "azure", formats, "Format of the trace file."),
    COUNT("workload.limit", workload.limit, "0", "", 0, 4294967295.0, "First requests of the trace; 0: all."),
    NUMBER("workload.speedup", workload.speedup, "1.0", "", TINY, 1e6, "Arrival times of the trace are divided by this."),
    {.path = "workload.batch_barrier",
     .kind = SMG_KEY_FLAG,
     .preset = "true",
     .unit = "",
     FIELD(workload.batch_barrier),
     .given = offsetof(struct smg_scenario, workload.batch_barrier_set),
     .doc = "Decoding starts when all requests have joined; when it is not given: only for kind batch."},

    COUNT("blocks_per_layer", blocks_per_layer, "1000", "blocks", 1, 65535, "KV blocks of a layer, M."),
    COUNT("min_block_tokens", min_block_tokens, "1", "tokens", 1, 16e6,
          "Least tokens of a block; coarsens the blocks of short prompts."),

    FLAG("proactive.enabled", proactive.enabled, "true",
         "Push ranked blocks during prefill; false: layers 0, 1 and metadata only."),
    CHOICE("proactive.budget", proactive.budget, "eq2", budgets,
           "Blocks to push: Eq. 2 as it stands, or with the metadata subtracted."),
    TEXT("proactive.ranking", proactive.ranking, "profile", "Order of the blocks; sequential switches the profile off."),
    TEXT("proactive.importance", proactive.importance, "auto", "Importance matrix: auto (built-in, synthetic) or a file."),
    {.path = "proactive.kr_blocks",
     .kind = SMG_KEY_COUNT_OR_AUTO,
     .preset = "auto",
     .unit = "blocks",
     .lo = 0,
     .hi = 16776960,
     FIELD(proactive.kr_blocks),
     .doc = "Blocks to push, Kr: auto (by the budget) or a fixed number."},

    FLAG("on_demand.parallel", on_demand.parallel, "true", "Replies land beside the local lane instead of before it."),
    FLAG("on_demand.reorder", on_demand.reorder, "true", "Remote entries first in each row: one landing segment per row."),
    COUNT("on_demand.scatter_limit", on_demand.scatter_limit, "20", "segments", 1, 64, "Segments of one receive's scatter list."),
    {.path = "on_demand.reuse",
     .kind = SMG_KEY_TRISTATE,
     .preset = "auto",
     .unit = "",
     FIELD(on_demand.reuse),
     .doc = "Keep fetched entries; auto: only the complete smartgen does."},

    FLAG("speculative.enabled", speculative.enabled, "true", "Send the remaining blocks in the background of decoding."),
    NUMBER("speculative.ratio", speculative.ratio, "0.10", "", TINY, 1, "Share of a layer's blocks granted per layer."),
    CHOICE("speculative.start", speculative.start, "second", spec_starts, "Decode iteration that grants first."),
    CHOICE("speculative.queue", speculative.queue, "shared", spec_queues,
           "Granted blocks share the replies' queue, or have their own."),

    NUMBER("selection.cap", selection.cap, "0.20", "", TINY, 1, "Most tokens a KV head selects, as a share of the prompt."),
    NUMBER("selection.alpha", selection.alpha, "5", "", 0, 1000, "InfiniGen's score threshold below the maximum."),
    NUMBER("selection.natural", selection.natural, "0.25", "", TINY, 1,
           "InfiniGen: share of tokens within alpha of the best (P158: about 25% at alpha 5); the cap binds below it."),
    NUMBER("selection.partial_ratio", selection.partial_ratio, "0.3", "", TINY, 1,
           "InfiniGen: share of key columns kept as metadata."),
    COUNT("selection.hash_bits", selection.hash_bits, "256", "bits", 8, 4096, "HATA: bits of a hash code."),
    FLAG("selection.batch_mean", selection.batch_mean, "false",
         "InfiniGen counts by the mean of the batch instead of each request."),
    CHOICE("selection.source", selection.source, "layer", sources, "Expected counts per layer, or real index lists."),
    TEXT("selection.file", selection.file, "", "Recorded selections for source entry; empty: generated."),

    NUMBER("profile.shift", profile_shift, "0", "", 0, 1, "Domain shift between profile and workload."),

    NAMED("hack.layout", hack.layout, "atc26", layouts, "Layout of quantised KV."),
    COUNT("hack.bits", hack.bits, "2", "bits", 1, 8, "Bits of a code."),
    COUNT("hack.group", hack.group, "64", "", 1, 4096, "Numbers that share a scale."),
    FLAG("hack.fused", hack.fused, "false", "Unpack inside the attention kernel."),

    FLAG("gdr", gdr, "true", "The NIC reads and writes GPU memory."),
    CHOICE("detail", detail, "layer", details, "Level of detail of a decode step."),
    CHOICE("engine", engine, "simgrid", engines, "Simulation engine."),

    CHOICE("emu.compute", emu.compute, "paced", computes,
           "Work around the KV cache: waited for, or also done by kernels on synthetic tensors."),
    CHOICE("emu.backend", emu.backend, "cpu", backends, "What the kernels of emu.compute run on."),
    CHOICE("emu.verify", emu.verify, "all", verifies, "Check every entry that attention reads."),
    TEXT("emu.token", emu.token, "none", "How emulated tokens are made."),
    CHOICE("emu.write_order", emu.write_order, "device", write_orders, "What keeps the mask behind the data."),
    CHOICE("emu.link", emu.link, "shaped", links, "Emulated links: held to link_gbps in software, or as fast as the fabric is."),
    CHOICE("emu.mutant", emu.mutant, "none", mutants, "Test only: plants a bug that verification must catch."),
    TEXT("emu.fault", emu.fault, "none", "Test only: what an instance does to itself, INSTANCE:ACT:WHEN:N."),
    NUMBER("emu.time_scale", emu.time_scale, "1.0", "", 0, 1000, "Paced durations are multiplied by this."),

    COUNT("faults.instance", faults.instance, "0", "", 0, 65535, "Simulation: this instance dies; 0: none."),
    NUMBER("faults.at_s", faults.at_s, "0", "s", 0, 1e9, "When it dies, from the start of the run."),
    NUMBER("faults.detect_s", faults.detect_s, "0.1", "s", 0, 1e9,
           "How long until the other instances know; the default is an assumption."),

    NUMBER("slo.ttft_s", slo.ttft_s, "2", "s", TINY, 1e9, "Goodput: most time to the first token."),
    NUMBER("slo.ttst_s", slo.ttst_s, "1", "s", TINY, 1e9, "Goodput: most time from the first to the second token."),
    NUMBER("slo.tbt_s", slo.tbt_s, "0.5", "s", TINY, 1e9, "Goodput: most mean time between later tokens."),

    FLAG("records.tokens", records.tokens, "true", "Write tokens.csv."),
    FLAG("records.decisions", records.decisions, "false", "Write decisions.csv."),
    FLAG("records.timeline", records.timeline, "false", "Write timeline.json."),
    FLAG("records.events", records.events, "true", "Write events.bin and actions.bin, which replay needs."),
};

const struct smg_key *smg_keys(size_t *n_out)
{
    _Static_assert(sizeof(table) / sizeof(table[0]) <= SMG_KEYS_MAX, "SMG_KEYS_MAX is too small");
    *n_out = sizeof(table) / sizeof(table[0]);
    return table;
}

const struct smg_key *smg_key_find(const char *path)
{
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].path, path) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

int smg_key_is_group(const char *path)
{
    size_t i, length = strlen(path);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strncmp(table[i].path, path, length) == 0 && table[i].path[length] == '.') {
            return 1;
        }
    }
    return 0;
}
