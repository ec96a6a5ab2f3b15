/* The cuda backend when CUDA refuses: every runtime call and launch fails once, in turn; a status and a line come back, and
 * nothing is left allocated. Only for the CPU runner of the CUDA sources, which can let the n-th call fail. */
#include "tests/kernel_fixture.h"

#include "kernels/runner/cuda_cpu_control.h"

enum { MOST_CALLS = 400, ROWS = 2, N = 40, K = 8, D = 8, HEADS = 2 };

/* Inputs of a kernel that takes them from one buffer of zeros; outputs go to another. */
struct bench {
    struct smg_kernels *k;
    void *in, *out;
};

static int run_split(struct bench *b)
{
    struct smg_split_args a = {.rows = ROWS,
                               .heads = ROWS,
                               .k = K,
                               .width = N,
                               .index = b->in,
                               .mask = b->in,
                               .reorder = 1,
                               .out_index = b->out,
                               .n_remote = (uint32_t *)b->out + 64,
                               .n_local = (uint32_t *)b->out + 128};

    return smg_split(b->k, &a, NULL);
}

static int run_topk(struct bench *b)
{
    struct smg_topk_args a = {.rows = ROWS,
                              .n = N,
                              .k = K,
                              .order = SMG_TOPK_BY_SCORE,
                              .score = b->in,
                              .row_group = 1,
                              .index = b->out,
                              .length = (uint32_t *)b->out + 64};

    return smg_topk(b->k, &a, NULL);
}

static int run_attention(struct bench *b)
{
    struct smg_attention_args a = {.requests = 1,
                                   .q_heads = HEADS,
                                   .kv_heads = HEADS,
                                   .head_dim = D,
                                   .q = b->in,
                                   .n_runs = 1,
                                   .run = {{.k = b->in, .v = b->in, .head_stride = 8 * D, .entry_stride = D, .max_length = 8}},
                                   .scale = 1,
                                   .out = b->out};

    return smg_attention(b->k, &a, NULL);
}

static int run_hack(struct bench *b)
{
    struct smg_hack_attention_args a = {
        .shape = {.layout = SMG_HACK_ATC26, .tokens = 9, .kv_heads = HEADS, .head_dim = D, .group = 8, .bits = 2},
        .q_heads = HEADS,
        .q = b->in,
        .cache = b->in,
        .scale = 1,
        .out = b->out};

    return smg_hack_attention(b->k, &a, NULL);
}

/* Those that take scratch memory, each on a backend of its own: scratch is kept. */
static int (*const kernels[])(struct bench *) = {run_split, run_topk, run_attention, run_hack};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* A backend from opening to closing, with its own buffers. calls: runtime calls before it begins to free. */
static int whole_life(int kernel, unsigned long *calls, struct smg_diag *diag)
{
    struct smg_stream *stream = NULL;
    struct bench b = {0};
    int status = smg_kernels_open_type(&smg_kernels_cuda, NULL, &b.k, diag);

    *calls = smg_cuda_calls();
    if (status)
        return status;
    status = smg_memory_alloc(b.k, 8192, &b.in);
    if (!status)
        status = smg_memory_alloc(b.k, 8192, &b.out);
    if (!status)
        status = smg_memory_fill(b.k, b.in, 0, 8192, NULL);
    if (!status)
        status = smg_stream_open(b.k, &stream);
    if (!status)
        status = kernels[kernel](&b);
    if (!status)
        status = smg_stream_sync(b.k, NULL);
    *diag = b.k->diag;
    *calls = smg_cuda_calls();
    smg_cuda_fail(0); /* a failure to free leaks by its nature */
    smg_stream_close(stream);
    smg_memory_free(b.k, b.in);
    smg_memory_free(b.k, b.out);
    smg_kernels_close(b.k);
    return status;
}

/* Fails each call of one kernel's life in turn; returns how many were seen to fail. */
static unsigned fail_in_turn(int kernel)
{
    unsigned failed = 0;

    for (unsigned n = 1; n < MOST_CALLS; n++) {
        struct smg_diag diag = {""};
        unsigned long before = smg_cuda_calls(), after;
        int status;

        smg_cuda_fail(n);
        status = whole_life(kernel, &after, &diag);
        smg_cuda_fail(0);
        if (after - before < n) {
            assert_int_equal(status, SMG_OK);
            return failed;
        }
        /* Freeing what is not there may fail unnoticed. */
        assert_true(!status || diag.text[0]);
        failed += status != SMG_OK;
    }
    return 0;
}

static void test_each_call_fails(void **state)
{
    (void)state;
    for (int kernel = 0; kernel < KERNELS; kernel++)
        assert_true(fail_in_turn(kernel) > 5);
}

static void test_nothing_left(void **state)
{
    struct smg_diag diag = {""};
    unsigned long calls;

    (void)state;
    for (int kernel = 0; kernel < KERNELS; kernel++)
        assert_int_equal(whole_life(kernel, &calls, &diag), SMG_OK);
    assert_int_equal(smg_cuda_live(), 0);
}

static void test_no_such_device(void **state)
{
    struct smg_kernels_options options = {.device = 1000};
    struct smg_kernels *k = NULL;
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_kernels_open_type(&smg_kernels_cuda, &options, &k, &diag), SMG_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "1000"));
    assert_null(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_no_such_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
