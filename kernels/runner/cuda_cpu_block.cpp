/*
 * Runs a grid: blocks one after another, the threads of a block as fibers. Every ready thread runs until it waits or has ended; only then
 * are warp operations completed, and when none could be, the barrier of the block. For a missing barrier this is the harshest schedule.
 */
#include "kernels/runner/cuda_cpu_control.h"
#include "kernels/runner/cuda_cpu_internal.h"

#include <link.h>
#include <pthread.h>

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

/* The dynamic shared memory, the one array of all kernels. */
extern thread_local unsigned char smg_smem[];
alignas(1024) thread_local unsigned char smg_smem[SMG_CUDA_SMEM_MAX];

/* Bounds of the section that clang puts static shared memory into; absent in a program without any. */
extern "C" {
extern char __start_smg_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_smg_shared[] __attribute__((weak, visibility("hidden")));
}

namespace
{

constexpr unsigned MAX_THREADS = 1024, WARP = 32;

enum state { READY, WAITING, ENDED };

struct thread {
    struct smg_fiber fiber;
    uint3 index;
    enum state state;
    unsigned warp, lane;
    /* what it waits for */
    enum smg_cuda_op op;
    unsigned mask;
    uint64_t payload, result;
    int source;
    const char *where;
    /*
     * Order for the thread sanitizer: a thread releases to one of its two when it arrives at __syncwarp, in turns, since it may arrive at
     * the next one before the others have left this one. On leaving it acquires those of the lanes that took part.
     */
    char order[2];
    unsigned char turn;
    void *partners[WARP];
    unsigned n_partners;
};

struct block {
    struct thread threads[MAX_THREADS];
    unsigned run_order[MAX_THREADS];
    unsigned n, live;
    struct smg_fiber scheduler;
    struct thread *self;
    void (*call)(const void *);
    const void *body;
    char barrier_order[2]; /* of the even and the odd barriers, for the same reason */
    unsigned barriers;
};

struct grid {
    const cudaLaunchConfig_t *config;
    void (*call)(const void *);
    const void *body;
    unsigned block; /* linear */
    uint64_t random;
};

struct block blk;
char launch_order; /* threads release when they end, the host acquires */
pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;

enum order { FORWARD, REVERSE, RANDOM };
const char *const order_names[] = {"fwd", "rev", "rand"};
enum order order_chosen;
unsigned order_seed;
bool order_known;

/* splitmix64 */
uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void shuffle(unsigned *a, unsigned n, uint64_t *random)
{
    for (unsigned i = n; i > 1; i--) {
        const unsigned j = (unsigned)(draw(random) % i), t = a[i - 1];
        a[i - 1] = a[j];
        a[j] = t;
    }
}

void thread_main()
{
    smg_fiber_begin(&blk.scheduler);
    struct thread *me = blk.self;
    blk.call(blk.body);
    smg_cuda_release(&launch_order);
    me->state = ENDED;
    blk.live--;
    smg_fiber_switch(&me->fiber, &blk.scheduler, true);
    abort();
}

[[noreturn]] void die_at(const struct thread *t, const char *what)
{
    smg_cuda_die("block (%u,%u,%u), thread (%u,%u,%u): %s: %s", blockIdx.x, blockIdx.y, blockIdx.z, t->index.x, t->index.y, t->index.z,
                 t->where, what);
}

/* ---- Warp operations ---- */

bool waits_in_warp(const struct thread *t)
{
    return t->state == WAITING && t->op != SMG_CUDA_SYNCTHREADS;
}

unsigned lanes_where(const struct thread *warp, unsigned n, bool (*is)(const struct thread *))
{
    unsigned lanes = 0;
    for (unsigned i = 0; i < n; i++) {
        lanes |= (unsigned)is(&warp[i]) << i;
    }
    return lanes;
}

/* The lanes that must wait with lane i for its operation to complete; 0: some do not yet. */
unsigned partners_of(const struct thread *warp, unsigned n, unsigned i, unsigned live, unsigned waiting)
{
    const struct thread *t = &warp[i];
    unsigned need = t->mask & live;

    if (t->op == SMG_CUDA_ACTIVE) {
        need = 0;
        for (unsigned j = 0; j < n; j++) {
            const bool together = waiting >> j & 1 && warp[j].op == SMG_CUDA_ACTIVE && !strcmp(warp[j].where, t->where);
            need |= (unsigned)together << j;
        }
        return need;
    }
    if (!(t->mask >> i & 1)) {
        die_at(t, "this lane is not in the mask that it gives");
    }
    if (need & ~waiting) {
        return 0;
    }
    for (unsigned j = 0; j < n; j++) {
        if (need >> j & 1 && (warp[j].op != t->op || warp[j].mask != t->mask)) {
            return 0;
        }
    }
    return need;
}

void complete(struct thread *warp, unsigned n, unsigned lanes)
{
    unsigned ballot = 0;
    for (unsigned j = 0; j < n; j++) {
        ballot |= (unsigned)(lanes >> j & 1 && warp[j].payload != 0) << j;
    }
    for (unsigned j = 0; j < n; j++) {
        struct thread *t = &warp[j];
        if (!(lanes >> j & 1)) {
            continue;
        }
        t->result = t->op == SMG_CUDA_ACTIVE ? lanes : ballot;
        if (t->op == SMG_CUDA_SHFL) {
            if (t->source < 0 || t->source >= (int)n || !(lanes >> t->source & 1)) {
                smg_cuda_die("block (%u,%u,%u), warp %u: %s: lane %u reads lane %d, which does not take part (mask 0x%08x, taking part "
                             "0x%08x)",
                             blockIdx.x, blockIdx.y, blockIdx.z, t->warp, t->where, j, t->source, t->mask, lanes);
            }
            t->result = warp[t->source].payload;
        }
        t->n_partners = 0;
        if (t->op == SMG_CUDA_SYNCWARP && smg_cuda_tsan()) {
            for (unsigned k = 0; k < n; k++) {
                if (lanes >> k & 1) {
                    t->partners[t->n_partners++] = &warp[k].order[warp[k].turn];
                }
            }
        }
    }
    for (unsigned j = 0; j < n; j++) {
        if (lanes >> j & 1) {
            warp[j].state = READY;
        }
    }
}

/* Completes what can be completed in a warp of n threads; false: nothing. */
bool resolve_warp(struct thread *warp, unsigned n)
{
    const unsigned live = lanes_where(warp, n, [](const struct thread *t) { return t->state != ENDED; });
    unsigned waiting = lanes_where(warp, n, waits_in_warp);
    bool any = false;

    for (unsigned i = 0; i < n; i++) {
        const unsigned lanes = waiting >> i & 1 ? partners_of(warp, n, i, live, waiting) : 0;
        if (lanes) {
            complete(warp, n, lanes);
            waiting &= ~lanes;
            any = true;
        }
    }
    return any;
}

/* ---- The barrier of the block ---- */

bool resolve_barrier()
{
    const struct thread *first = nullptr;
    uint64_t sum = 0;

    for (unsigned i = 0; i < blk.n; i++) {
        const struct thread *t = &blk.threads[i];
        if (t->state == ENDED) {
            continue;
        }
        if (t->state != WAITING || t->op != SMG_CUDA_SYNCTHREADS) {
            return false;
        }
        if (!first) {
            first = t;
        } else if (strcmp(t->where, first->where) != 0) {
            smg_cuda_die("block (%u,%u,%u): divergent __syncthreads: thread %u waits at %s, thread %u at %s", blockIdx.x, blockIdx.y,
                         blockIdx.z, (unsigned)(first - blk.threads), first->where, i, t->where);
        }
        sum += t->payload;
    }
    for (unsigned i = 0; i < blk.n; i++) {
        if (blk.threads[i].state != ENDED) {
            blk.threads[i].result = sum;
            blk.threads[i].state = READY;
        }
    }
    blk.barriers++;
    return true;
}

[[noreturn]] void deadlock()
{
    const struct thread *at_barrier = nullptr;

    for (unsigned i = 0; i < blk.n; i++) {
        const struct thread *t = &blk.threads[i];
        if (t->state == WAITING && t->op == SMG_CUDA_SYNCTHREADS) {
            at_barrier = t;
        }
    }
    for (unsigned i = 0; i < blk.n; i++) {
        const struct thread *t = &blk.threads[i];
        if (waits_in_warp(t)) {
            smg_cuda_die("block (%u,%u,%u): deadlock: warp %u lane %u waits at %s for mask 0x%08x%s%s", blockIdx.x, blockIdx.y, blockIdx.z,
                         t->warp, t->lane, t->where, t->mask, at_barrier ? ", others at " : "", at_barrier ? at_barrier->where : "");
        }
    }
    smg_cuda_die("block (%u,%u,%u): deadlock of %u threads", blockIdx.x, blockIdx.y, blockIdx.z, blk.live);
}

/* ---- Shared memory at the start of a block: NaN, unwritten for the memory sanitizer, out of bounds past its size ---- */

void fill(void *p, size_t bytes)
{
    memset(p, 0xff, bytes);
#ifdef SMG_CUDA_MSAN
    __msan_poison(p, bytes);
#endif
}

/* Finds this OS thread's copy of the section. */
int find_static_shared(struct dl_phdr_info *info, size_t, void *found)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *image = (const char *)info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_TLS && __start_smg_shared >= image && __start_smg_shared < image + part->p_memsz) {
            *(char **)found = (char *)info->dlpi_tls_data + (__start_smg_shared - image);
        }
    }
    return 0;
}

void prepare_shared(size_t dynamic_bytes)
{
    static __thread char *static_shared;
    const size_t static_bytes = (size_t)(__stop_smg_shared - __start_smg_shared);

#ifdef SMG_CUDA_ASAN
    __asan_unpoison_memory_region(smg_smem, dynamic_bytes);
    __asan_poison_memory_region(smg_smem + dynamic_bytes, sizeof smg_smem - dynamic_bytes);
#endif
    fill(smg_smem, dynamic_bytes);
    if (static_bytes > 0) {
        if (!static_shared) {
            dl_iterate_phdr(find_static_shared, &static_shared);
        }
        fill(static_shared, static_bytes);
    }
}

/* ---- Blocks and the grid ---- */

void start_threads(void *stacks)
{
    for (unsigned i = 0; i < blk.n; i++) {
        struct thread *t = &blk.threads[i];
        t->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        t->state = READY;
        t->warp = i / WARP;
        t->lane = i % WARP;
        t->turn = 0;
        t->n_partners = 0;
        smg_fiber_create(&t->fiber, stacks, i, thread_main);
        blk.run_order[i] = order_chosen == REVERSE ? blk.n - 1 - i : i;
    }
}

void run_ready(uint64_t *random)
{
    if (order_chosen == RANDOM) {
        shuffle(blk.run_order, blk.n, random);
    }
    for (unsigned k = 0; k < blk.n; k++) {
        struct thread *t = &blk.threads[blk.run_order[k]];
        if (t->state == READY) {
            blk.self = t;
            threadIdx = t->index;
            smg_fiber_switch(&blk.scheduler, &t->fiber, false);
        }
    }
}

void run_block(const struct grid *g)
{
    const dim3 dims = g->config->gridDim, threads = g->config->blockDim;
    uint64_t random = g->random;

    gridDim = {dims.x, dims.y, dims.z};
    blockDim = {threads.x, threads.y, threads.z};
    blockIdx = {g->block % dims.x, g->block / dims.x % dims.y, g->block / (dims.x * dims.y)};
    blk.n = blk.live = threads.x * threads.y * threads.z;
    blk.call = g->call;
    blk.body = g->body;
    blk.barriers = 0;
    smg_fiber_adopt(&blk.scheduler);
    prepare_shared(g->config->dynamicSmemBytes);
    void *stacks = smg_stacks_get(blk.n);
    start_threads(stacks);
    while (blk.live > 0) {
        bool moved = false;
        run_ready(&random);
        for (unsigned i = 0; i < blk.n; i += WARP) {
            moved |= resolve_warp(&blk.threads[i], blk.n - i < WARP ? blk.n - i : WARP);
        }
        if (!moved && blk.live > 0 && !resolve_barrier()) {
            deadlock();
        }
    }
    for (unsigned i = 0; i < blk.n; i++) {
        smg_fiber_destroy(&blk.threads[i].fiber);
    }
    smg_stacks_put(stacks, blk.n);
}

void *block_main(void *g)
{
    run_block((const struct grid *)g);
    return nullptr;
}

/*
 * Under the thread sanitizer each block has an OS thread of its own, hence thread-local, that is shared, memory of its own. Starting and
 * joining these threads one by one gives no order between blocks: what the fibers did is not acquired by the threads that switch to them.
 */
void run_block_alone(struct grid *g)
{
    pthread_t thread;

    if (pthread_create(&thread, nullptr, block_main, g) != 0 || pthread_join(thread, nullptr) != 0) {
        smg_cuda_die("no OS thread for a block");
    }
}

bool known_order(const char *name, enum order *order)
{
    for (int i = FORWARD; i <= RANDOM; i++) {
        if (!strcmp(name, order_names[i])) {
            *order = (enum order)i;
            return true;
        }
    }
    return false;
}

void order_from_environment()
{
    const char *name = getenv("SMG_CUDA_ORDER"), *seed = getenv("SMG_CUDA_SEED");

    order_known = true;
    if (name && !known_order(name, &order_chosen)) {
        smg_cuda_die("SMG_CUDA_ORDER: expected fwd, rev or rand, found '%s'", name);
    }
    order_seed = seed ? (unsigned)strtoul(seed, nullptr, 10) : 0;
}

void run_grid(struct grid *g, unsigned blocks)
{
    uint64_t random = order_seed;
    unsigned *sequence = (unsigned *)malloc(blocks * sizeof *sequence);

    if (!sequence) {
        smg_cuda_die("no memory for %u blocks", blocks);
    }
    for (unsigned i = 0; i < blocks; i++) {
        sequence[i] = order_chosen == REVERSE ? blocks - 1 - i : i;
    }
    if (order_chosen == RANDOM) {
        shuffle(sequence, blocks, &random);
    }
    for (unsigned i = 0; i < blocks; i++) {
        g->block = sequence[i];
        g->random = draw(&random);
        if (smg_cuda_tsan()) {
            run_block_alone(g);
        } else {
            run_block(g);
        }
    }
    free(sequence);
    smg_cuda_acquire(&launch_order);
}

} // namespace

int smg_cuda_order(const char *order, unsigned seed)
{
    if (!known_order(order, &order_chosen)) {
        return -1;
    }
    order_seed = seed;
    order_known = true;
    return 0;
}

int smg_cuda_lane(void)
{
    return (int)blk.self->lane;
}

uint64_t smg_cuda_wait(enum smg_cuda_op op, unsigned mask, uint64_t payload, int source, const char *where)
{
    struct thread *me = blk.self;
    char *barrier = op == SMG_CUDA_SYNCTHREADS ? &blk.barrier_order[blk.barriers & 1] : nullptr;

    me->op = op;
    me->mask = mask;
    me->payload = payload;
    me->source = source;
    me->where = where;
    me->state = WAITING;
    if (barrier) {
        smg_cuda_release(barrier);
    }
    if (op == SMG_CUDA_SYNCWARP) {
        me->turn ^= 1;
        smg_cuda_release(&me->order[me->turn]);
    }
    smg_fiber_switch(&me->fiber, &blk.scheduler, false);
    if (barrier) {
        smg_cuda_acquire(barrier);
    }
    for (unsigned i = 0; op == SMG_CUDA_SYNCWARP && i < me->n_partners; i++) {
        smg_cuda_acquire(me->partners[i]);
    }
    return me->result;
}

/* A launch as the driver would check it. */
static cudaError_t check_launch(const cudaLaunchConfig_t *c, const void *kernel)
{
    const dim3 g = c->gridDim, b = c->blockDim;
    const unsigned long long threads = 1ull * b.x * b.y * b.z;

    if (c->numAttrs != 0) {
        return cudaErrorNotSupported;
    }
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535 || threads == 0 || threads > MAX_THREADS ||
        b.z > 64) {
        return cudaErrorInvalidConfiguration;
    }
    return c->dynamicSmemBytes > smg_cuda_smem_limit(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t smg_cuda_run(const cudaLaunchConfig_t *config, const void *kernel, void (*call)(const void *), const void *body)
{
    struct grid g = {config, call, body, 0, 0};
    const cudaError_t status = smg_cuda_injected() ? cudaErrorUnknown : check_launch(config, kernel);

    if (status != cudaSuccess) {
        return smg_cuda_status(status);
    }
    pthread_mutex_lock(&launching);
    if (!order_known) {
        order_from_environment();
    }
    smg_cuda_device_open();
    run_grid(&g, config->gridDim.x * config->gridDim.y * config->gridDim.z);
    smg_cuda_device_close();
    pthread_mutex_unlock(&launching);
    return cudaSuccess;
}
