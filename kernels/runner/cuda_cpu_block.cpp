/*
 * Runs a block, its threads as fibers. Every ready thread runs until it waits or has ended; only then are warp operations
 * completed, and when none could be, the barrier of the block. For a missing barrier this is the harshest schedule.
 */
#include "kernels/runner/cuda_cpu_internal.h"

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

constexpr unsigned WARP = 32;

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
     * Order for the thread sanitizer: a thread releases to one of its two when it arrives at __syncwarp, in turns, since it may
     * arrive at the next one before the others have left this one. On leaving it acquires those of the lanes that took part.
     */
    char *order[2];
    unsigned char turn;
    void *partners[WARP];
    unsigned n_partners;
};

struct block {
    struct thread threads[SMG_CUDA_MAX_THREADS];
    unsigned run_order[SMG_CUDA_MAX_THREADS];
    unsigned n, live;
    struct smg_fiber scheduler;
    struct thread *self;
    const struct smg_grid *grid;
    char *barrier_order[2]; /* of the even and the odd barriers, for the same reason */
    unsigned barriers;
};

struct block blk;

void thread_main()
{
    smg_fiber_begin(&blk.scheduler);
    struct thread *me = blk.self;
    blk.grid->call(blk.grid->body);
    smg_cuda_release(blk.grid->end_order);
    me->state = ENDED;
    blk.live--;
    smg_fiber_switch(&me->fiber, &blk.scheduler, true);
    abort();
}

[[noreturn]] void die_at(const struct thread *t, const char *what)
{
    smg_cuda_die("block (%u,%u,%u), thread (%u,%u,%u): %s: %s", blockIdx.x, blockIdx.y, blockIdx.z, t->index.x, t->index.y,
                 t->index.z, t->where, what);
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
                smg_cuda_die(
                    "block (%u,%u,%u), warp %u: %s: lane %u reads lane %d, which does not take part (mask 0x%08x, taking part "
                    "0x%08x)",
                    blockIdx.x, blockIdx.y, blockIdx.z, t->warp, t->where, j, t->source, t->mask, lanes);
            }
            t->result = warp[t->source].payload;
        }
        t->n_partners = 0;
        if (t->op == SMG_CUDA_SYNCWARP && smg_cuda_tsan()) {
            for (unsigned k = 0; k < n; k++) {
                if (lanes >> k & 1) {
                    t->partners[t->n_partners++] = warp[k].order[warp[k].turn];
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
            smg_cuda_die("block (%u,%u,%u): divergent __syncthreads: thread %u waits at %s, thread %u at %s", blockIdx.x,
                         blockIdx.y, blockIdx.z, (unsigned)(first - blk.threads), first->where, i, t->where);
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
            smg_cuda_die("block (%u,%u,%u): deadlock: warp %u lane %u waits at %s for mask 0x%08x%s%s", blockIdx.x, blockIdx.y,
                         blockIdx.z, t->warp, t->lane, t->where, t->mask, at_barrier ? ", others at " : "",
                         at_barrier ? at_barrier->where : "");
        }
    }
    smg_cuda_die("block (%u,%u,%u): deadlock of %u threads", blockIdx.x, blockIdx.y, blockIdx.z, blk.live);
}

/* ---- The loop ---- */

/* of_block: the identity that all of them have, or NULL. */
void start_threads(void *stacks, void *of_block)
{
    for (unsigned i = 0; i < blk.n; i++) {
        struct thread *t = &blk.threads[i];
        t->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        t->state = READY;
        t->warp = i / WARP;
        t->lane = i % WARP;
        t->turn = 0;
        t->n_partners = 0;
        t->order[0] = smg_stack_word(stacks, i, 0);
        t->order[1] = smg_stack_word(stacks, i, 1);
        smg_fiber_create(&t->fiber, stacks, i, thread_main, of_block ? of_block : smg_identity_create());
        blk.run_order[i] = blk.grid->order == SMG_ORDER_REVERSE ? blk.n - 1 - i : i;
    }
}

void run_ready(uint64_t *random)
{
    if (blk.grid->order == SMG_ORDER_RANDOM) {
        smg_shuffle(blk.run_order, blk.n, random);
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

} // namespace

void smg_block_run(const struct smg_grid *g)
{
    const dim3 dims = g->config->gridDim, threads = g->config->blockDim;
    uint64_t random = g->random;

    gridDim = {dims.x, dims.y, dims.z};
    blockDim = {threads.x, threads.y, threads.z};
    blockIdx = {g->block % dims.x, g->block / dims.x % dims.y, g->block / (dims.x * dims.y)};
    blk.n = blk.live = threads.x * threads.y * threads.z;
    blk.grid = g;
    blk.barriers = 0;
    smg_fiber_adopt(&blk.scheduler);
    void *stacks = smg_stacks_get(blk.n);
    blk.barrier_order[0] = smg_stack_word(stacks, 0, 2);
    blk.barrier_order[1] = smg_stack_word(stacks, 0, 3);
    void *of_block = g->block_identity ? smg_identity_create() : nullptr;
    start_threads(stacks, of_block);
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
    for (unsigned i = 0; !of_block && i < blk.n; i++) {
        smg_identity_keep(blk.threads[i].fiber.identity);
    }
    smg_identity_keep(of_block);
    smg_stacks_put(stacks, blk.n);
}

int smg_cuda_lane(void)
{
    return (int)blk.self->lane;
}

uint64_t smg_cuda_wait(enum smg_cuda_op op, unsigned mask, uint64_t payload, int source, const char *where)
{
    struct thread *me = blk.self;
    char *barrier = op == SMG_CUDA_SYNCTHREADS ? blk.barrier_order[blk.barriers & 1] : nullptr;

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
        smg_cuda_release(me->order[me->turn]);
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
