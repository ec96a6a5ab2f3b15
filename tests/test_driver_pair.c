/* The simulated driver on both engines: random scenarios must give the same times and bytes on the native engine and on SimGrid.
 * Beside that, what schemes have in common, and closed forms of one request alone. */
#include "config.h"

#include <unistd.h>

#include "core/agent.h"
#include "core/cost.h"
#include "sim/driver.h"
#include "tests/test_engine_util.h"
#include "traces/scenario.h"
#include "traces/world.h"

#define PAIR_TOLERANCE     1e-9
#define PAIR_SCENARIOS     100
#define PROPERTY_SCENARIOS 25
#define CLOSED_FORMS       30

/* ---- A run, reduced to numbers ---- */

enum { REQUESTS_MAX = 10 };

/* Times of a request, then its counts, which must be equal to the last bit. */
enum { FIRST_TOKEN, SECOND_TOKEN, FINISH, PUSH_DONE, PREFILL_START, TIMES };
enum { STATUS, MODE, KR, METADATA, PROACTIVE, ON_DEMAND, SPECULATIVE, MESSAGES, SELECTED, REMOTE, TOKENS, COUNTS };
enum { PER_REQUEST = TIMES + COUNTS };

static const char *const time_names[] = {"first_token_s", "second_token_s", "finish_s", "push_done_s", "prefill_start_s"};
static const char *const count_names[] = {
    "status",   "mode",     "kr_blocks", "metadata_bytes", "proactive_bytes", "on_demand_bytes", "speculative_bytes",
    "messages", "selected", "remote",    "tokens"};

struct run_result {
    double request[REQUESTS_MAX][PER_REQUEST];
    double sent[SMG_PATHS], received[SMG_PATHS], messages[SMG_PATHS];
    double blocks_written, mask_bytes, broken_laws;
    double steps_hash; /* of what agents were told and how much they answered, 48 bits */
};

enum { RESULT_DOUBLES = sizeof(struct run_result) / sizeof(double) };

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static int hash_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    uint64_t *hash = arg;

    *hash = mix(*hash, &instance, sizeof instance);
    *hash = mix(*hash, &e->now_s, sizeof e->now_s);
    *hash = mix(*hash, &e->kind, sizeof e->kind);
    *hash = mix(*hash, &e->request, sizeof e->request);
    *hash = mix(*hash, &actions->n, sizeof actions->n);
    return SMG_OK;
}

static void take_request(const struct smg_request_record *q, double out[PER_REQUEST])
{
    const double values[PER_REQUEST] = {
        q->first_token_s,
        q->second_token_s,
        q->finish_s,
        q->push_done_s,
        q->prefill_start_s,
        (double)q->status,
        (double)q->mode,
        (double)q->kr_blocks,
        (double)q->metadata_bytes,
        (double)q->proactive_bytes,
        (double)q->on_demand_bytes,
        (double)q->speculative_bytes,
        (double)q->messages,
        (double)q->selected_entries,
        (double)q->remote_entries,
        (double)q->tokens,
    };

    memcpy(out, values, sizeof values);
}

static int take_result(const struct smg_sim *sim, uint64_t hash, struct run_result *out)
{
    const struct smg_records *r = smg_sim_records(sim);
    const struct smg_run_stats *s = smg_sim_stats(sim);
    struct smg_law laws[SMG_LAWS];
    size_t n = 0;
    int status = smg_conservation_check(r, s, laws, &n);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        out->broken_laws += !laws[i].holds;
        if (!laws[i].holds)
            fprintf(stderr, "does not hold: %s (%.17g, %.17g)\n", laws[i].name, laws[i].left, laws[i].right);
    }
    for (uint32_t i = 0; i < r->n_requests; i++)
        take_request(&r->request[i], out->request[i]);
    for (int p = 0; p < SMG_PATHS; p++) {
        out->sent[p] = (double)s->sent_bytes[p];
        out->received[p] = (double)s->received_bytes[p];
        out->messages[p] = (double)s->messages[p];
    }
    out->blocks_written = (double)s->blocks_written;
    out->mask_bytes = (double)s->mask_bytes;
    out->steps_hash = (double)(hash >> 16);
    return status;
}

/* An engine_job_fn: in is a world, out a run_result. */
static int run_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    const struct smg_world *w = in;
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_diag diag = {""};
    uint64_t hash = 14695981039346656037u;
    struct smg_observer observer = {.arg = &hash, .step = hash_step};
    int status = n_out == RESULT_DOUBLES ? smg_selection_create(w, &selection) : SMG_ERR_RANGE;

    if (!status)
        status = smg_sim_create(w, type, selection, &observer, &sim);
    if (!status)
        status = smg_sim_run(sim, &diag);
    if (!status)
        status = take_result(sim, hash, (struct run_result *)out);
    if (status)
        fprintf(stderr, "%s: %s: %s\n", type->name, smg_status_string(status), diag.text);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    return status;
}

static void run(const char *engine, const struct smg_world *w, struct run_result *out)
{
    assert_int_equal(engine_job(smg_engine_find(engine), run_job, w, (double *)out, RESULT_DOUBLES), 0);
    assert_true(out->broken_laws == 0);
    for (uint32_t i = 0; i < w->n_requests; i++)
        assert_true(out->request[i][TIMES + STATUS] == SMG_REQUEST_FINISHED);
}

/* ---- Random worlds ---- */

enum { SETS_MAX = 64, SET_BYTES = 160 };

struct sets {
    char text[SETS_MAX][SET_BYTES];
    const char *at[SETS_MAX];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void set(struct sets *s, const char *format, ...)
{
    va_list arguments;

    assert_true(s->n < SETS_MAX);
    va_start(arguments, format);
    vsnprintf(s->text[s->n], SET_BYTES, format, arguments);
    va_end(arguments);
    s->at[s->n] = s->text[s->n];
    s->n++;
}

static uint32_t draw(uint64_t *rng, uint32_t lo, uint32_t hi)
{
    return lo + (uint32_t)(test_rng(rng) % (hi - lo + 1));
}

static const char *pick(uint64_t *rng, const char *a, const char *b)
{
    return test_rng(rng) >> 33 & 1 ? a : b;
}

/* A model's description in a file of its own, read like any other. */
static void model_file(uint64_t *rng, char path[])
{
    uint32_t kv_heads = draw(rng, 1, 4), group = draw(rng, 1, 4), dim = 16 * draw(rng, 2, 8), layers = draw(rng, 3, 9);
    uint32_t intermediate = 64 * draw(rng, 4, 30);
    int fd = mkstemps(path, 5);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    assert_non_null(f);
    fprintf(f,
            "{\"model_type\": \"llama\", \"num_hidden_layers\": %u, \"hidden_size\": %u, \"num_attention_heads\": %u, "
            "\"num_key_value_heads\": %u, \"head_dim\": %u, \"intermediate_size\": %u, \"vocab_size\": 32000, "
            "\"max_position_embeddings\": 8192, \"torch_dtype\": \"bfloat16\", \"tie_word_embeddings\": false}\n",
            layers, kv_heads * group * dim, kv_heads * group, kv_heads, dim, intermediate);
    assert_int_equal(fclose(f), 0);
}

static void set_cluster(struct sets *s, uint64_t *rng)
{
    set(s, "prefill.nodes=%u", draw(rng, 1, 3));
    set(s, "prefill.gpus_per_node=%u", draw(rng, 1, 2));
    set(s, "prefill.link_gbps=%.9f", test_uniform(rng, 0.5, 8));
    set(s, "prefill.vcpus=%u", draw(rng, 2, 32));
    set(s, "decode.nodes=%u", draw(rng, 1, 2));
    set(s, "decode.gpus_per_node=%u", draw(rng, 1, 2));
    set(s, "decode.link_gbps=%.9f", test_uniform(rng, 0.3, 6));
    set(s, "decode.vcpus=%u", draw(rng, 2, 32));
    set(s, "decode.max_batch=%u", draw(rng, 2, 8));
    set(s, "network.latency_us=%.9f", test_uniform(rng, 1, 50));
    set(s, "network.efficiency=%.9f", test_uniform(rng, 0.8, 1));
    set(s, "network.oversubscription=%.9f", test_rng(rng) % 3 ? 1 : test_uniform(rng, 1, 3));
    set(s, "network.chunk_kib=%u", draw(rng, 0, 3) * 24);
    set(s, "routing=%s", pick(rng, "least-loaded", "round-robin"));
}

static void set_policy(struct sets *s, uint64_t *rng)
{
    static const char *const schemes[] = {"full", "partial", "smartgen", "smartgen"};
    static const char *const rankings[] = {"profile", "sequential", "random", "streamingllm"};
    static const char *const selectors[] = {"infinigen", "hata", "quest", "oracle"};

    set(s, "scheme=%s", schemes[test_rng(rng) % 4]);
    set(s, "selector=%s", selectors[test_rng(rng) % 4]);
    set(s, "proactive.ranking=%s", rankings[test_rng(rng) % 4]);
    set(s, "proactive.enabled=%s", test_rng(rng) % 5 ? "true" : "false");
    set(s, "proactive.budget=%s", pick(rng, "eq2", "window"));
    if (test_rng(rng) % 3 == 0)
        set(s, "proactive.kr_blocks=%u", draw(rng, 0, 300));
    set(s, "on_demand.parallel=%s", test_rng(rng) % 3 ? "true" : "false");
    set(s, "on_demand.reorder=%s", pick(rng, "true", "false"));
    set(s, "on_demand.reuse=%s", test_rng(rng) % 3 ? pick(rng, "true", "false") : "auto");
    set(s, "speculative.enabled=%s", test_rng(rng) % 3 ? "true" : "false");
    set(s, "speculative.ratio=%.9f", test_uniform(rng, 0.02, 0.6));
    set(s, "speculative.start=%s", pick(rng, "first", "second"));
    set(s, "speculative.queue=%s", pick(rng, "shared", "own"));
    set(s, "selection.cap=%.9f", test_uniform(rng, 0.05, 0.5));
    set(s, "selection.source=%s", pick(rng, "entry", "layer"));
    set(s, "decode.start=%s", test_rng(rng) % 3 ? "ready" : "pushed");
    set(s, "gdr=%s", test_rng(rng) % 3 ? "true" : "false");
    set(s, "detail=%s", pick(rng, "layer", "iteration"));
}

static void set_work(struct sets *s, uint64_t *rng)
{
    int poisson = test_rng(rng) % 2 != 0;

    set(s, "seed=%u", draw(rng, 1, 1u << 30));
    set(s, "prefix_hit=%.9f", test_uniform(rng, 0, 0.9));
    set(s, "workload.kind=%s", poisson ? "poisson" : "batch");
    if (poisson)
        set(s, "workload.rate=%.9f", test_uniform(rng, 5, 200));
    set(s, "workload.requests=%u", draw(rng, 1, REQUESTS_MAX));
    set(s, "workload.prompt_tokens=400");
    set(s, "blocks_per_layer=%u", draw(rng, 8, 64));
    set(s, "min_block_tokens=%u", draw(rng, 1, 8));
}

/* All lengths differ, so that nothing but its number tells one request from another nowhere. */
static void draw_lengths(struct smg_world *w, uint64_t *rng)
{
    for (uint32_t i = 0; i < w->n_requests; i++) {
        struct smg_request_spec *r = &w->requests[i];
        r->prompt_tokens = 60 + 97 * i % 700 + draw(rng, 0, 90);
        r->output_tokens = draw(rng, 1, 7);
        r->hit_tokens = (uint32_t)(w->scenario.prefix_hit * r->prompt_tokens);
    }
}

/* Rates without common factors; the time of a layer is some milliseconds, that of a chunk as well. */
static void draw_gpus(struct smg_world *w, uint64_t *rng)
{
    struct smg_gpu *gpus[2] = {&w->prefill_gpu, &w->decode_gpu};

    for (int i = 0; i < 2; i++) {
        gpus[i]->prefill_flops = exp(test_uniform(rng, log(2e11), log(2e13)));
        gpus[i]->peak_flops = exp(test_uniform(rng, log(1e12), log(1e14)));
        gpus[i]->memory_Bps = exp(test_uniform(rng, log(5e10), log(1e12)));
        gpus[i]->pcie_Bps = exp(test_uniform(rng, log(5e8), log(3e10)));
        gpus[i]->decode_layer_overhead_s = exp(test_uniform(rng, log(1e-5), log(3e-3)));
    }
}

static void load(const struct sets *s, struct smg_world *w)
{
    struct smg_scenario scenario;
    struct smg_diag diag = {""};
    int status = smg_scenario_load(NULL, s->at, s->n, &scenario, &diag);

    if (!status)
        status = smg_world_load(&scenario, w, &diag);
    if (status)
        fail_msg("%s", diag.text);
}

/* World number seed, with up to two settings more (NULL: none), which take precedence. */
static void random_world(uint64_t seed, const char *const *more, struct smg_world *w)
{
    char path[] = "/tmp/smartgen-model-XXXXXX.json";
    uint64_t rng = 0x9e3779b97f4a7c15u * (seed + 1), lengths_rng;
    struct sets s = {.n = 0};

    model_file(&rng, path);
    set(&s, "model=%s", path);
    set_cluster(&s, &rng);
    set_policy(&s, &rng);
    set_work(&s, &rng);
    for (; more && *more; more++)
        set(&s, "%s", *more);
    lengths_rng = rng;
    load(&s, w);
    assert_int_equal(unlink(path), 0);
    draw_lengths(w, &lengths_rng);
    draw_gpus(w, &lengths_rng);
}

/* ---- Comparing ---- */

static double time_difference(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y) ? 0 : INFINITY;
    return relative_error(x, y);
}

/* Worst relative difference of times; counts must not differ at all. */
static double compare(uint64_t seed, const struct run_result *x, const struct run_result *y, uint32_t n_requests,
                      double tolerance)
{
    double worst = 0;

    for (uint32_t i = 0; i < n_requests; i++) {
        for (int t = 0; t < TIMES; t++) {
            double difference = time_difference(x->request[i][t], y->request[i][t]);
            if (!(difference <= tolerance))
                fail_msg("scenario %u, request %u: %s is %.17g and %.17g", (unsigned)seed, i, time_names[t], x->request[i][t],
                         y->request[i][t]);
            worst = fmax(worst, difference);
        }
        for (int c = 0; c < COUNTS; c++)
            if (x->request[i][TIMES + c] != y->request[i][TIMES + c])
                fail_msg("scenario %u, request %u: %s is %.17g and %.17g", (unsigned)seed, i, count_names[c],
                         x->request[i][TIMES + c], y->request[i][TIMES + c]);
    }
    assert_memory_equal(x->sent, y->sent, sizeof x->sent);
    assert_memory_equal(x->received, y->received, sizeof x->received);
    assert_memory_equal(x->messages, y->messages, sizeof x->messages);
    assert_true(x->blocks_written == y->blocks_written && x->mask_bytes == y->mask_bytes);
    return worst;
}

/* ---- Tests ---- */

static void test_pair(void **state)
{
    double worst = 0;
    uint32_t used[SMG_PATHS] = {0}, requests = 0;

    (void)state;
    if (!smg_engine_find("simgrid")) {
        print_message("%s\n", ENGINE_TEST_MISSING);
        skip();
    }
    for (uint64_t seed = 0; seed < PAIR_SCENARIOS; seed++) {
        struct run_result native, simgrid;
        struct smg_world w;

        random_world(seed, NULL, &w);
        run("native", &w, &native);
        run("simgrid", &w, &simgrid);
        worst = fmax(worst, compare(seed, &native, &simgrid, w.n_requests, PAIR_TOLERANCE));
        for (int p = 0; p < SMG_PATHS; p++)
            used[p] += native.received[p] > 0;
        requests += w.n_requests;
        smg_world_free(&w);
    }
    for (int p = 0; p < SMG_PATHS; p++) {
        print_message("%s: %u scenarios send on it\n", smg_path_name((enum smg_path)p), used[p]);
        assert_true(used[p] >= 15);
    }
    print_message("%d scenarios, %u requests: worst relative difference %.2g\n", PAIR_SCENARIOS, requests, worst);
}

/* Runs two variants of the same world on the native engine. */
static void two_runs(uint64_t seed, const char *const *more_x, const char *const *more_y, struct run_result *x,
                     struct run_result *y, uint32_t *n_requests)
{
    struct smg_world w;

    random_world(seed, more_x, &w);
    run("native", &w, x);
    smg_world_free(&w);
    random_world(seed, more_y, &w);
    run("native", &w, y);
    *n_requests = w.n_requests;
    smg_world_free(&w);
}

static void test_same_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROPERTY_SCENARIOS; seed++) {
        struct run_result x, y;
        uint32_t n;

        two_runs(seed, NULL, NULL, &x, &y, &n);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* smartgen with every factor off is partial: the same steps at the same times. */
static void test_factors_off(void **state)
{
    static const char *const off[] = {"scheme=smartgen",           "proactive.ranking=sequential", "on_demand.parallel=false",
                                      "speculative.enabled=false", "on_demand.reuse=auto",         NULL};
    static const char *const partial[] = {"scheme=partial", "on_demand.reuse=auto", NULL};
    uint32_t selective = 0;

    (void)state;
    for (uint64_t seed = 0; seed < PROPERTY_SCENARIOS; seed++) {
        struct run_result x, y;
        uint32_t n;

        two_runs(seed, off, partial, &x, &y, &n);
        assert_memory_equal(&x, &y, sizeof x);
        selective += x.received[SMG_PATH_ON_DEMAND] > 0;
    }
    assert_true(selective >= PROPERTY_SCENARIOS / 3);
}

/* With Kr as large as it gets a request is sent in full, whatever else is switched on: the times of scheme full. */
static void test_all_blocks(void **state)
{
    static const char *const all[] = {"scheme=smartgen", "proactive.enabled=true", "proactive.kr_blocks=16776960", NULL};
    static const char *const full[] = {"scheme=full", NULL};

    (void)state;
    for (uint64_t seed = 0; seed < PROPERTY_SCENARIOS; seed++) {
        struct run_result x, y;
        uint32_t n;

        two_runs(seed, all, full, &x, &y, &n);
        for (uint32_t i = 0; i < n; i++)
            if (x.request[i][TIMES + TOKENS] > 1)
                assert_true(x.request[i][TIMES + MODE] == SMG_MODE_FULL);
        compare(seed, &x, &y, n, 0);
        assert_true(x.received[SMG_PATH_ON_DEMAND] == 0 && x.received[SMG_PATH_SPECULATIVE] == 0 &&
                    x.received[SMG_PATH_METADATA] == 0);
    }
}

/* One request alone, everything pushed. Layer by layer the stages are: compute c, copy to host memory d, wire x (k chunks). A
 * flow shop of L equal jobs ends after c + d + x + (L-1) max(c, d, x); the word of it reaches the router one latency after the
 * last byte, as the word of the start did. */
static void closed_form(uint64_t seed, const char *engine, uint32_t chunks, uint32_t bound[3])
{
    const char *const alone[] = {"scheme=full",
                                 "workload.kind=batch",
                                 "workload.requests=1",
                                 "blocks_per_layer=24",
                                 "min_block_tokens=1",
                                 "network.oversubscription=1",
                                 NULL};
    struct smg_world w;
    struct run_result r;
    double from_Bps, Bps, latency_s, bytes, fresh, c, d, x, worst;
    uint32_t L;

    random_world(1000 + seed, alone, &w);
    w.requests[0].prompt_tokens = 24 * (10 + (uint32_t)seed);
    w.requests[0].hit_tokens = w.requests[0].prompt_tokens / 2;
    w.requests[0].output_tokens = 3;
    L = w.model.layers;
    /* a layer is 24 blocks of one size, more than 1 KiB each: the limit leaves room for 24/k of them and not for another */
    bytes = (double)w.requests[0].prompt_tokens * (double)smg_model_token_layer_bytes(&w.model);
    w.scenario.network.chunk_kib = chunks == 1 ? 1u << 20 : (uint64_t)(bytes / chunks / 1024 + 1);
    latency_s = w.scenario.network.latency_us * 1e-6;
    from_Bps = smg_world_link_Bps(&w, 0);
    Bps = fmin(from_Bps, smg_world_link_Bps(&w, w.scenario.prefill.nodes));
    c = smg_cost_prefill_layer_s(&w, &w.requests[0]);
    /* a chunk is one range and its mask, one byte a token */
    x = chunks * smg_cost_wire_bytes((bytes + w.requests[0].prompt_tokens) / chunks, 2, w.nic.post_cost_s, from_Bps) / Bps;
    fresh = (double)(w.requests[0].prompt_tokens - w.requests[0].hit_tokens) * (double)smg_model_token_layer_bytes(&w.model);
    if (seed % 3 == 0)
        w.prefill_gpu.pcie_Bps = fresh / (1.3 * fmax(c, x)); /* as slow as no bus is */
    d = fresh / w.prefill_gpu.pcie_Bps;
    assert_true(x / chunks > latency_s && c + d > latency_s); /* the window is never the limit, memory is known in time */
    run(engine, &w, &r);
    worst = fmax(c, fmax(d, x));
    bound[worst == c ? 0 : worst == d ? 1 : 2]++;
    assert_close(r.request[0][FIRST_TOKEN] - r.request[0][PREFILL_START], L * c, PAIR_TOLERANCE);
    assert_close(r.request[0][PUSH_DONE] - r.request[0][PREFILL_START], c + d + x + (L - 1) * worst + latency_s, PAIR_TOLERANCE);
    assert_true(r.sent[SMG_PATH_PUSH] == bytes * L && r.mask_bytes == (double)w.requests[0].prompt_tokens * L);
    assert_true(r.messages[SMG_PATH_PUSH] == 2.0 * L * chunks);
    smg_world_free(&w);
}

static void test_closed_form(void **state)
{
    uint32_t bound[3] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < CLOSED_FORMS; seed++) {
        closed_form(seed, "native", 1, bound);
        closed_form(seed, "native", 3, bound);
        if (smg_engine_find("simgrid"))
            closed_form(seed, "simgrid", seed % 2 ? 1 : 4, bound);
    }
    print_message("bound by compute %u times, by the copy %u, by the link %u\n", bound[0], bound[1], bound[2]);
    assert_true(bound[0] && bound[1] && bound[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair),       cmocka_unit_test(test_same_twice),  cmocka_unit_test(test_factors_off),
        cmocka_unit_test(test_all_blocks), cmocka_unit_test(test_closed_form),
    };

    return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}
