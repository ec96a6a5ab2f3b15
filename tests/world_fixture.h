/* A world built by hand: Qwen3-14B, three prefill nodes with two L20 and one decode node with one, 25 Gbit/s. For tests of the
 * core, which must not depend on the readers. Includes cmocka with what it needs. */
#ifndef SMG_TESTS_WORLD_FIXTURE_H
#define SMG_TESTS_WORLD_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/scheme.h"
#include "core/status.h"
#include "core/world.h"

/* |actual - expected| <= tolerance * |expected| */
#define assert_near(actual, expected, tolerance) \
    assert_true(fabs((double)(actual) - (double)(expected)) <= (tolerance) * fabs((double)(expected)))

static inline struct smg_model fixture_qwen3_14b(void)
{
    return (struct smg_model){
        .name = "qwen3-14b",
        .layers = 40,
        .hidden = 5120,
        .q_heads = 40,
        .kv_heads = 8,
        .head_dim = 128,
        .intermediate = 17408,
        .vocab = 151936,
        .max_positions = 40960,
        .value_bytes = 2,
    };
}

/* Like Gemma-3: of 48 layers the 6th, 12th, ... keep everything, the others 1024 tokens. */
static inline struct smg_model fixture_sliding(void)
{
    struct smg_model m = {
        .name = "sliding",
        .layers = 48,
        .hidden = 3840,
        .q_heads = 16,
        .kv_heads = 8,
        .head_dim = 256,
        .intermediate = 15360,
        .vocab = 262208,
        .value_bytes = 2,
        .window_tokens = 1024,
        .tied_embeddings = 1,
    };

    for (uint32_t l = 0; l < m.layers; l++) {
        m.sliding[l] = (l + 1) % 6 != 0;
    }
    return m;
}

static inline struct smg_gpu fixture_l20(void)
{
    return (struct smg_gpu){
        .name = "l20",
        .peak_flops = 119.5e12,
        .prefill_flops = 120e12,
        .memory_Bps = 864e9,
        .memory_bytes = 48e9,
        .pcie_Bps = 26e9,
        .decode_layer_overhead_s = 1e-3,
    };
}

static inline void fixture_scenario(struct smg_scenario *s)
{
    memset(s, 0, sizeof(*s));
    strcpy(s->scheme, "smartgen");
    s->prefill = (struct smg_pool_config){
        .nodes = 3, .gpus_per_node = 2, .tp = 1, .gpu = "l20", .link_gbps = 32, .vcpus = 32, .host_memory_gib = 256};
    s->decode = (struct smg_pool_config){
        .nodes = 1, .gpus_per_node = 1, .tp = 1, .gpu = "l20", .link_gbps = 25, .vcpus = 16, .host_memory_gib = 128};
    s->decode_max_batch = 6;
    s->network.efficiency = 1;
    s->network.oversubscription = 1;
    s->prefix_hit = 0.75;
    s->blocks_per_layer = 1000;
    s->min_block_tokens = 1;
    s->proactive.enabled = 1;
    strcpy(s->proactive.ranking, "profile");
    s->proactive.kr_blocks = SMG_KR_AUTO;
    s->on_demand.parallel = 1;
    s->on_demand.reorder = 1;
    s->on_demand.scatter_limit = 20;
    s->on_demand.reuse = SMG_AUTO;
    s->speculative.enabled = 1;
    s->speculative.ratio = 0.1;
    s->speculative.start = SMG_SPEC_SECOND;
    s->selection.cap = 0.2;
    s->selection.alpha = 5;
    s->selection.partial_ratio = 0.3;
    s->selection.hash_bits = 256;
    s->gdr = 1;
}

static inline void fixture_world(struct smg_world *w)
{
    memset(w, 0, sizeof(*w));
    fixture_scenario(&w->scenario);
    w->model = fixture_qwen3_14b();
    w->prefill_gpu = fixture_l20();
    w->decode_gpu = fixture_l20();
    w->nic = (struct smg_nic){.name = "nic", .post_cost_s = 1e-6, .max_message_bytes = 1u << 30};
    w->host = (struct smg_host){.name = "host", .gather_Bps_per_vcpu = 6.06e9 / 16, .gather_exponent = 1};
    w->scheme = smg_scheme_find("smartgen");
    w->prefill_instances = 6;
    w->decode_instances = 1;
}

/* One request with a prefix-cache hit of 75%. */
static inline struct smg_request_spec fixture_request(uint32_t prompt_tokens)
{
    return (struct smg_request_spec){.prompt_tokens = prompt_tokens, .output_tokens = 64, .hit_tokens = prompt_tokens / 4 * 3};
}

/* xorshift32 with shifts 13, 17, 5: 1 yields 270369, 67634689, 2647435461, 307599695. */
static inline uint32_t fixture_xorshift32(uint32_t *state)
{
    uint32_t x = *state;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* In [-1, 1). */
static inline float fixture_float(uint32_t *state)
{
    return (float)(fixture_xorshift32(state) >> 8) / 8388608.0f - 1.0f;
}

#endif
