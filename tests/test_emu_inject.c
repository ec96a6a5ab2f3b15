/* Every failing call of the real engine: a small run over ofi, its instances in processes, while the n-th allocation,
 * registration, post or poll of one process fails, for n = 1, 2, ... until a run does not reach it. Each run ends by itself,
 * without a crash, and leaves nothing behind: no process, no block of memory, no descriptor, no shared memory. It is right, or
 * it says what failed: an error with a message, or failed requests with a reason; what has finished all the same has read the
 * right bytes. A run that does not reach n is right in everything. */
#include "tests/emu_wrap.h"

#include <dirent.h>

enum { REQUESTS = 2 };

/* Every n up to EVERY; then steps of 1/PART of n, the same in every run. With sanitizers a run takes several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 12, PART = 2 };
#else
enum { EVERY = 64, PART = 8 };
#endif

static struct smg_world world;
static uint64_t digest[REQUESTS];
static struct run run; /* too large for the stack */

static uint64_t after(uint64_t n)
{
    return n + 1 + (n > EVERY ? n / PART : 0);
}

/* Entries of a folder, or those that have this number in their name. */
static unsigned entries_of(const char *folder, pid_t pid)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    char text[24] = "";
    unsigned n = 0;

    if (pid)
        snprintf(text, sizeof text, "%ld", (long)pid);
    while (d && (e = readdir(d)))
        n += strstr(e->d_name, text) != NULL;
    if (d)
        closedir(d);
    return n;
}

#define WRONG(...)                                                                                                            \
    do {                                                                                                                      \
        fprintf(stderr, "instance %u, %s %llu, %s:\n", watch->process, call_names[watch->kind],                               \
                (unsigned long long)watch->n, smg_status_string(watch->status));                                              \
        watch->n = 0;                                                                                                         \
        fail_msg(__VA_ARGS__);                                                                                                \
    } while (0)

/* ---- What a run leaves ---- */

static void check_instances(void)
{
    int found = waitpid(-1, NULL, WNOHANG);

    if (found != -1 || errno != ECHILD)
        WRONG("a process is left");
    if (watch->crashed)
        WRONG("an instance crashed: wait status %#x", (unsigned)watch->crashed);
    for (unsigned i = 1; i < smg_world_instances(&world); i++) {
        if (watch->of[i].pid && !watch->of[i].looped)
            WRONG("instance %u did not end, the router had to end it", i);
        if (watch->of[i].ended && watch->of[i].left)
            WRONG("instance %u: %lld blocks are lost", i, (long long)watch->of[i].left);
        if (watch->of[i].pid && entries_of("/dev/shm", watch->of[i].pid)) /* libraries name what is theirs by the process */
            WRONG("instance %u: shared memory is left", i);
    }
}

/* ---- What it says ---- */

/* Nobody is accused of what he has not done: a call that failed here is no broken protocol of another instance. */
static int may_end_with(int status)
{
    return status == SMG_ERR_NOMEM || status == SMG_ERR_IO || status == SMG_ERR_LOST;
}

static void check_request(uint32_t i)
{
    const struct smg_request_record *q = &run.records.request[i];

    if (q->status == SMG_REQUEST_FINISHED) {
        if (run.stats.digest[i] != digest[i] && !(run.losses.silent[2] && !run.stats.digest[i]))
            WRONG("request %u has read other entries", i);
        if (q->tokens != q->output_tokens)
            WRONG("request %u: %u of %u tokens", i, q->tokens, q->output_tokens);
        return;
    }
    if (q->status != SMG_REQUEST_FAILED && !run.status)
        WRONG("request %u: status %u, and the run is over", i, q->status);
    if (q->status == SMG_REQUEST_FAILED && !may_end_with(q->reason))
        WRONG("request %u failed: %s", i, smg_status_string(q->reason));
}

static void check_failed(void)
{
    if (run.status && !may_end_with(run.status))
        WRONG("the run ends with: %s: %s", smg_status_string(run.status), run.diag.text);
    if (run.status && !run.diag.text[0])
        WRONG("%s, without a message", smg_status_string(run.status));
    if (!run.status && run.records.failed && !run.losses.text[0])
        WRONG("%u requests failed, without a message", run.records.failed);
    if (strstr(run.losses.text, "protocol"))
        WRONG("%s", run.losses.text);
    for (uint32_t i = 0; run.records.request && i < REQUESTS; i++)
        check_request(i);
}

static void check_right(void)
{
    struct smg_law laws[SMG_LAWS];
    size_t n;

    if (run.status)
        WRONG("the run was not touched, and fails: %s", run.diag.text);
    if (run.records.finished != REQUESTS || run.losses.text[0] || smg_conservation_check(&run.records, &run.stats, laws, &n))
        WRONG("the run was not touched, and is not right");
    for (uint32_t i = 0; i < REQUESTS; i++)
        check_request(i);
}

/* Returns whether the run came to the call. */
static int run_case(uint16_t process, enum calls kind, uint64_t n, int status)
{
    unsigned descriptors = entries_of("/proc/self/fd", 0);
    int64_t live = heap_live;
    int reached;

    watch->process = process;
    watch->kind = kind;
    watch->status = status;
    watch->n = n;
    run_world(&world, &run);
    reached = watch->of[process].calls[kind] >= n;
    check_instances();
    if (reached)
        check_failed();
    else
        check_right();
    run_free(&run);
    if (heap_live != live)
        WRONG("%lld blocks are lost", (long long)(heap_live - live));
    if (entries_of("/proc/self/fd", 0) != descriptors)
        WRONG("a descriptor is left");
    watch->n = 0;
    return reached;
}

static void sweep(enum calls kind, int status)
{
    for (uint16_t process = 0; process < smg_world_instances(&world); process++) {
        uint64_t n = 1;
        unsigned runs = 1;
        while (run_case(process, kind, n, status)) {
            n = after(n);
            runs++;
        }
        printf("instance %u: %s until n = %llu, %u runs\n", process, call_names[kind], (unsigned long long)n, runs);
        assert_true(n > 1); /* the faults were there */
    }
}

static void test_registration(void **state)
{
    (void)state;
    sweep(REGISTER, SMG_ERR_IO);
}

static void test_allocation(void **state)
{
    (void)state;
    sweep(ALLOCATE, SMG_ERR_NOMEM);
}

static void test_post_refused(void **state)
{
    (void)state;
    sweep(POST, SMG_ERR_IO);
}

static void test_post_lost(void **state)
{
    (void)state;
    sweep(POST, SMG_ERR_LOST);
}

static void test_poll(void **state)
{
    (void)state;
    sweep(POLL, SMG_ERR_IO);
}

/* What the faults are held against; and all three paths are in use. */
static int reference(void **state)
{
    (void)state;
    load_world(&world, (const char *const[]){"scheme=smartgen", "workload.requests=2", "workload.prompt_tokens=64",
                                             "workload.output_tokens=3", "blocks_per_layer=8", "proactive.kr_blocks=20",
                                             "network.chunk_kib=64", NULL});
    run_world(&world, &run);
    if (run.status)
        fprintf(stderr, "%s\n", run.diag.text);
    assert_int_equal(run.status, SMG_OK);
    assert_int_equal(run.records.finished, REQUESTS);
    assert_true(run.stats.sent_bytes[SMG_PATH_PUSH] && run.stats.sent_bytes[SMG_PATH_ON_DEMAND] &&
                run.stats.sent_bytes[SMG_PATH_SPECULATIVE]);
    memcpy(digest, run.stats.digest, sizeof digest);
    run_free(&run);
    return 0;
}

static int forget(void **state)
{
    (void)state;
    smg_world_free(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registration),
        cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_post_refused),
        cmocka_unit_test(test_post_lost),
        cmocka_unit_test(test_poll),
    };

    need_fabric();
    return cmocka_run_group_tests(tests, reference, forget);
}
