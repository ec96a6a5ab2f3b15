/* Reference cases: a whole serving timeline composed on the engine port, against values of an independent model.
 *
 * The model, in short. All requests arrive at 0, each on a node; layer l of its prefill is complete at (l+1)*prefill_layer_s and
 * its chunk (metadata first, where the scheme has it) joins the FIFO of the request's push queue pair. Decode starts for all
 * requests when all prefills and all pushes are complete. A layer of a step: its lanes (local copies; on-demand replies over the
 * network), then grants of speculative blocks (smartgen), then fixed compute. Push, on-demand and speculative queue pairs are
 * three per request; each serves one chunk at a time.
 */
#include "config.h"

#include <jansson.h>

#include "tests/test_engine_util.h"

/* Relative. */
#define REFERENCE_TOLERANCE 1e-9
#define CASES               30
#define REQUESTS_MAX        16
#define NODES_MAX           16
#define LAYERS_MAX          64
#define STEPS_MAX           64
#define CHUNKS_MAX          4096

enum scheme { FULL, PARTIAL, SMARTGEN_NOSPEC, SMARTGEN, SCHEMES };
static const char *const scheme_names[SCHEMES] = {"full", "partial", "smartgen-nospec", "smartgen"};

struct reference_request {
    uint32_t node;
    double layer_bytes, metadata_bytes, prefill_layer_s;
};

struct reference_case {
    enum scheme scheme;
    uint32_t requests, nodes, layers, blocks_per_layer, output_tokens, speculative_blocks;
    struct reference_request request[REQUESTS_MAX];
    double nic_Bps[NODES_MAX], gather_Bps[NODES_MAX];
    double decode_nic_Bps, lane_Bps, fixed_layer_s, rpc_s, selected_share, on_demand_ratio;
    uint32_t pushed_blocks[LAYERS_MAX]; /* as the scheme has it */
};

/* Only doubles: it travels as an array. NAN stands for null. */
struct reference_result {
    double ttft_s[REQUESTS_MAX], ttst_s[REQUESTS_MAX], tbt_mean_s[REQUESTS_MAX];
    double pushes_done_s, decode_begin_s, step_end_s[STEPS_MAX];
    double on_demand_bytes, proactive_bytes, speculative_bytes_posted, speculative_done_s;
};

/* ---- The model on the port ---- */
enum queue { QUEUE_PUSH, QUEUE_ON_DEMAND, QUEUE_SPECULATIVE, QUEUES };
/* A tag is a kind and an index: request * layers + layer, request * QUEUES + queue, request, or none. */
enum tag_kind { TAG_PREFILL, TAG_CHUNK, TAG_REPLY, TAG_LOCAL, TAG_COMPUTE };

struct chunk_fifo {
    double bytes[CHUNKS_MAX];
    uint32_t head, tail;
};

struct timeline {
    const struct reference_case *c;
    struct reference_result *out;
    struct smg_engine *e;
    struct chunk_fifo fifo[REQUESTS_MAX][QUEUES];
    double unsent_blocks[REQUESTS_MAX];
    uint32_t prefill_layers_left, pushes_open, speculative_open;
    uint32_t step, layer, replies_open;
    bool decoding, local_open, done;
};

static uint64_t tag_make(enum tag_kind kind, uint32_t index)
{
    return (uint64_t)kind << 32 | index;
}

static int timer_start(struct timeline *t, double delay_s, enum tag_kind kind, uint32_t index)
{
    return smg_engine_timer(t->e, delay_s, tag_make(kind, index));
}

static int chunk_start(struct timeline *t, uint32_t request, enum queue queue)
{
    const struct chunk_fifo *fifo = &t->fifo[request][queue];

    return smg_engine_flow(t->e, t->c->request[request].node, t->c->nodes, fifo->bytes[fifo->head % CHUNKS_MAX],
                           tag_make(TAG_CHUNK, request * QUEUES + queue));
}

static int chunk_post(struct timeline *t, uint32_t request, enum queue queue, double bytes)
{
    struct chunk_fifo *fifo = &t->fifo[request][queue];

    fifo->bytes[fifo->tail++ % CHUNKS_MAX] = bytes;
    return fifo->tail - fifo->head == 1 ? chunk_start(t, request, queue) : SMG_OK;
}

/* An empty chunk is complete when it is posted, even behind others. */
static int push_post(struct timeline *t, uint32_t request, double bytes)
{
    t->out->proactive_bytes += bytes;
    t->out->pushes_done_s = smg_engine_now(t->e);
    if (bytes == 0)
        return SMG_OK;
    t->pushes_open++;
    return chunk_post(t, request, QUEUE_PUSH, bytes);
}

static double block_bytes(const struct reference_case *c, uint32_t request)
{
    return c->request[request].layer_bytes / c->blocks_per_layer;
}

static int prefill_done(struct timeline *t, uint32_t request, uint32_t layer)
{
    const struct reference_case *c = t->c;
    int status = SMG_OK;

    t->prefill_layers_left--;
    if (c->scheme != FULL && layer >= 2)
        status = push_post(t, request, c->request[request].metadata_bytes);
    return status ? status : push_post(t, request, c->pushed_blocks[layer] * block_bytes(c, request));
}

/* ---- A decode layer ---- */

/* Bytes of all requests' selected entries in one layer. */
static double layer_bytes_sum(const struct reference_case *c)
{
    double sum = 0;

    for (uint32_t i = 0; i < c->requests; i++)
        sum += c->request[i].layer_bytes;
    return sum;
}

static bool layer_is_split(const struct timeline *t)
{
    return t->layer >= 2 && t->c->scheme != FULL;
}

static double local_s(const struct timeline *t)
{
    const struct reference_case *c = t->c;
    double share = t->layer < 2 ? 1 : c->selected_share;

    return (layer_is_split(t) ? 1 - c->on_demand_ratio : 1) * share * layer_bytes_sum(c) / c->lane_Bps;
}

static double reply_bytes(const struct reference_case *c, uint32_t request)
{
    return c->on_demand_ratio * c->selected_share * c->request[request].layer_bytes;
}

static int replies_start(struct timeline *t)
{
    const struct reference_case *c = t->c;
    double node_bytes[NODES_MAX] = {0};
    int status = SMG_OK;

    for (uint32_t i = 0; i < c->requests; i++)
        node_bytes[c->request[i].node] += reply_bytes(c, i);
    for (uint32_t i = 0; i < c->requests && status == 0; i++) {
        uint32_t node = c->request[i].node;

        t->replies_open++;
        t->out->on_demand_bytes += reply_bytes(c, i);
        status = timer_start(t, c->rpc_s + node_bytes[node] / c->gather_Bps[node], TAG_REPLY, i);
    }
    return status;
}

/* Local copies and replies overlap, except in the partial scheme, where the copies follow the last reply. */
static int lanes_start(struct timeline *t)
{
    bool remote = layer_is_split(t) && t->c->on_demand_ratio > 0;

    t->local_open = true;
    if (remote) {
        int status = replies_start(t);

        if (status != SMG_OK || t->c->scheme == PARTIAL)
            return status;
    }
    return timer_start(t, local_s(t), TAG_LOCAL, 0);
}

static int grants_post(struct timeline *t)
{
    const struct reference_case *c = t->c;
    int status = SMG_OK;

    for (uint32_t i = 0; i < c->requests && c->scheme == SMARTGEN && status == 0; i++) {
        double blocks = fmin(c->speculative_blocks, t->unsent_blocks[i]);

        if (blocks == 0)
            continue;
        t->unsent_blocks[i] -= blocks;
        t->out->speculative_bytes_posted += blocks * block_bytes(c, i);
        t->speculative_open++;
        status = chunk_post(t, i, QUEUE_SPECULATIVE, blocks * block_bytes(c, i));
    }
    return status;
}

static int lanes_done_check(struct timeline *t)
{
    int status;

    if (t->local_open || t->replies_open > 0)
        return SMG_OK;
    status = grants_post(t);
    return status ? status : timer_start(t, t->c->fixed_layer_s, TAG_COMPUTE, 0);
}

static int reply_done(struct timeline *t)
{
    if (--t->replies_open == 0 && t->c->scheme == PARTIAL)
        return timer_start(t, local_s(t), TAG_LOCAL, 0);
    return lanes_done_check(t);
}

static int compute_done(struct timeline *t)
{
    if (++t->layer == t->c->layers) {
        t->layer = 0;
        t->out->step_end_s[t->step++] = smg_engine_now(t->e);
        t->done = t->step == t->c->output_tokens - 1;
    }
    return t->done ? SMG_OK : lanes_start(t);
}

/* ---- Events ---- */

static int chunk_done(struct timeline *t, uint32_t request, enum queue queue)
{
    struct chunk_fifo *fifo = &t->fifo[request][queue];
    int status = SMG_OK;

    if (++fifo->head < fifo->tail)
        status = chunk_start(t, request, queue);
    if (status != SMG_OK)
        return status;
    switch (queue) {
    case QUEUE_PUSH:
        t->pushes_open--;
        t->out->pushes_done_s = smg_engine_now(t->e);
        return SMG_OK;
    case QUEUE_ON_DEMAND:
        return reply_done(t);
    default:
        t->speculative_open--;
        t->out->speculative_done_s = smg_engine_now(t->e);
        return SMG_OK;
    }
}

static int timeline_step(struct timeline *t, uint64_t tag)
{
    uint32_t index = (uint32_t)tag;

    switch ((enum tag_kind)(tag >> 32)) {
    case TAG_PREFILL:
        return prefill_done(t, index / t->c->layers, index % t->c->layers);
    case TAG_CHUNK:
        return chunk_done(t, index / QUEUES, (enum queue)(index % QUEUES));
    case TAG_REPLY:
        return chunk_post(t, index, QUEUE_ON_DEMAND, reply_bytes(t->c, index));
    case TAG_LOCAL:
        t->local_open = false;
        return lanes_done_check(t);
    default:
        return compute_done(t);
    }
}

static int prefills_start(struct timeline *t)
{
    const struct reference_case *c = t->c;
    int status = SMG_OK;

    for (uint32_t i = 0; i < c->requests; i++)
        for (uint32_t l = 0; l < c->layers && status == 0; l++) {
            t->prefill_layers_left++;
            t->unsent_blocks[i] += (double)c->blocks_per_layer - c->pushed_blocks[l];
            status = timer_start(t, (l + 1) * c->request[i].prefill_layer_s, TAG_PREFILL, i * c->layers + l);
        }
    return status;
}

static void summary_fill(struct timeline *t)
{
    const struct reference_case *c = t->c;
    struct reference_result *out = t->out;
    uint32_t steps = c->output_tokens - 1;

    for (uint32_t i = 0; i < c->requests; i++) {
        out->ttft_s[i] = c->layers * c->request[i].prefill_layer_s;
        out->ttst_s[i] = out->step_end_s[0] - out->ttft_s[i];
        out->tbt_mean_s[i] = (out->step_end_s[steps - 1] - out->step_end_s[0]) / (steps - 1);
    }
    if (t->speculative_open > 0)
        out->speculative_done_s = NAN;
}

static int timeline_body(struct smg_engine *e, void *arg)
{
    struct timeline *t = arg;
    uint64_t tags[64];
    size_t n;
    int status;

    t->e = e;
    t->out->speculative_done_s = NAN;
    status = prefills_start(t);
    while (status == 0 && !t->done) {
        status = smg_engine_next(e, tags, 64, &n);
        if (status == 0 && n == 0)
            return SMG_ERR_DEADLOCK;
        for (size_t i = 0; i < n && status == 0; i++)
            status = timeline_step(t, tags[i]);
        if (status == 0 && !t->decoding && t->prefill_layers_left == 0 && t->pushes_open == 0) {
            t->decoding = true;
            t->out->decode_begin_s = smg_engine_now(e);
            status = lanes_start(t);
        }
    }
    summary_fill(t);
    return status;
}

static int network_build(struct smg_engine *e, const struct reference_case *c)
{
    uint32_t id;
    int status = SMG_OK;

    for (uint32_t i = 0; i < c->nodes && status == 0; i++)
        status = smg_engine_endpoint(e, c->nic_Bps[i], INFINITY, &id);
    return status ? status : smg_engine_endpoint(e, INFINITY, c->decode_nic_Bps, &id);
}

static int timeline_job(const struct smg_engine_type *type, const void *in, double *out, size_t n_out)
{
    struct reference_result result = {.pushes_done_s = 0};
    struct timeline *t = calloc(1, sizeof(*t));
    struct smg_engine *e = NULL;
    int status = t ? smg_engine_create(type, &e) : SMG_ERR_NOMEM;

    if (status == 0) {
        t->c = in;
        t->out = &result;
        status = network_build(e, t->c);
    }
    if (status == 0)
        status = smg_engine_run(e, timeline_body, t);
    smg_engine_destroy(e);
    free(t);
    memcpy(out, &result, n_out * sizeof(*out));
    return status;
}

/* ---- The file ---- */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_null(value))
        return NAN;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static uint32_t count(const json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return (uint32_t)json_integer_value(json_object_get(object, key));
}

static uint32_t array_size(const json_t *object, const char *key, uint32_t max)
{
    assert_true(json_is_array(json_object_get(object, key)));
    assert_in_range(json_array_size(json_object_get(object, key)), 1, max);
    return (uint32_t)json_array_size(json_object_get(object, key));
}

static void requests_read(struct reference_case *c, const json_t *scenario)
{
    const json_t *nodes = json_object_get(scenario, "nodes"), *requests = json_object_get(scenario, "requests");

    c->nodes = array_size(scenario, "nodes", NODES_MAX);
    c->requests = array_size(scenario, "requests", REQUESTS_MAX);
    for (uint32_t i = 0; i < c->nodes; i++) {
        c->nic_Bps[i] = number(json_array_get(nodes, i), "nic_Bps");
        c->gather_Bps[i] = number(json_array_get(nodes, i), "gather_Bps");
    }
    for (uint32_t i = 0; i < c->requests; i++) {
        const json_t *r = json_array_get(requests, i);

        c->request[i] = (struct reference_request){count(r, "node"), number(r, "layer_bytes"), number(r, "metadata_bytes"),
                                                   number(r, "prefill_layer_s")};
        assert_true(c->request[i].node < c->nodes);
    }
}

static void pushed_read(struct reference_case *c, const json_t *scenario)
{
    const json_t *pushed = json_object_get(scenario, "pushed_blocks");
    const char *key = c->scheme == PARTIAL ? "partial" : "smartgen";

    assert_int_equal(array_size(pushed, key, LAYERS_MAX), c->layers);
    for (uint32_t l = 0; l < c->layers; l++)
        c->pushed_blocks[l] = c->scheme == FULL ? c->blocks_per_layer
                                                : (uint32_t)json_integer_value(json_array_get(json_object_get(pushed, key), l));
}

static void case_read(struct reference_case *c, const json_t *scenario, enum scheme scheme)
{
    const json_t *decode = json_object_get(scenario, "decode");

    memset(c, 0, sizeof(*c));
    c->scheme = scheme;
    c->layers = count(scenario, "layers");
    c->blocks_per_layer = count(scenario, "blocks_per_layer");
    c->output_tokens = count(scenario, "output_tokens");
    c->speculative_blocks = count(scenario, "speculative_blocks");
    c->decode_nic_Bps = number(decode, "nic_Bps");
    c->lane_Bps = number(decode, "lane_Bps");
    c->fixed_layer_s = number(scenario, "fixed_layer_s");
    c->rpc_s = number(scenario, "rpc_s");
    c->selected_share = number(scenario, "selected_share");
    c->on_demand_ratio = number(scenario, "on_demand_ratio");
    assert_in_range(c->output_tokens, 3, STEPS_MAX);
    requests_read(c, scenario);
    pushed_read(c, scenario);
}

/* ---- Comparison ---- */

struct comparison {
    int id;
    enum scheme scheme;
    double worst;
    size_t values;
};

static void value_compare(struct comparison *cmp, const char *what, double value, double expected)
{
    double error = isnan(value) && isnan(expected) ? 0 : relative_error(value, expected);

    if (!(error <= REFERENCE_TOLERANCE))
        fail_msg("case %d, %s: %s = %.17g, expected %.17g (relative error %.3g)", cmp->id, scheme_names[cmp->scheme], what, value,
                 expected, error);
    cmp->worst = fmax(cmp->worst, error);
    cmp->values++;
}

static void result_compare(struct comparison *cmp, const struct reference_case *c, const struct reference_result *r,
                           const json_t *expected)
{
    const json_t *ends = json_object_get(expected, "step_end_s"), *requests = json_object_get(expected, "requests");

    assert_int_equal(json_array_size(requests), c->requests);
    assert_int_equal(json_array_size(ends), c->output_tokens - 1);
    for (uint32_t i = 0; i < c->requests; i++) {
        const json_t *request = json_array_get(requests, i);

        value_compare(cmp, "ttft_s", r->ttft_s[i], number(request, "ttft_s"));
        value_compare(cmp, "ttst_s", r->ttst_s[i], number(request, "ttst_s"));
        value_compare(cmp, "tbt_mean_s", r->tbt_mean_s[i], number(request, "tbt_mean_s"));
    }
    for (uint32_t s = 0; s < c->output_tokens - 1; s++)
        value_compare(cmp, "step_end_s", r->step_end_s[s], json_number_value(json_array_get(ends, s)));
    value_compare(cmp, "pushes_done_s", r->pushes_done_s, number(expected, "pushes_done_s"));
    value_compare(cmp, "decode_begin_s", r->decode_begin_s, number(expected, "decode_begin_s"));
    value_compare(cmp, "on_demand_bytes", r->on_demand_bytes, number(expected, "on_demand_bytes"));
    value_compare(cmp, "proactive_bytes", r->proactive_bytes, number(expected, "proactive_bytes"));
    value_compare(cmp, "speculative_bytes_posted", r->speculative_bytes_posted, number(expected, "speculative_bytes_posted"));
    value_compare(cmp, "speculative_done_s", r->speculative_done_s, number(expected, "speculative_done_s"));
}

static void case_compare(const struct smg_engine_type *type, struct comparison *cmp, const json_t *reference)
{
    const json_t *scenario = json_object_get(reference, "scenario"), *expected = json_object_get(reference, "expected");
    struct reference_case c;
    struct reference_result result;
    double out[sizeof(result) / sizeof(double)];

    cmp->id = (int)count(scenario, "id");
    for (cmp->scheme = FULL; cmp->scheme < SCHEMES; cmp->scheme++) {
        case_read(&c, scenario, cmp->scheme);
        assert_int_equal(engine_job(type, timeline_job, &c, out, sizeof(out) / sizeof(double)), 0);
        memcpy(&result, out, sizeof(result));
        result_compare(cmp, &c, &result, json_object_get(expected, scheme_names[cmp->scheme]));
    }
}

static void test_reference(void **state)
{
    const struct smg_engine_type *type = *state;
    struct comparison cmp = {0};
    json_error_t error;
    json_t *root = json_load_file(SMG_TESTDIR "/timing_reference.json", 0, &error);
    const json_t *cases = json_object_get(root, "cases");

    assert_non_null(root);
    assert_int_equal(json_array_size(cases), CASES);
    for (size_t i = 0; i < CASES; i++)
        case_compare(type, &cmp, json_array_get(cases, i));
    print_message("%s: %d cases x %d schemes, %zu values: worst relative error %.2g\n", type->name, CASES, SCHEMES, cmp.values,
                  cmp.worst);
    json_decref(root);
}

int main(void)
{
    static const struct engine_test tests[] = {{"reference timelines", test_reference}};

    return engine_tests_run("timing reference", tests, 1);
}
