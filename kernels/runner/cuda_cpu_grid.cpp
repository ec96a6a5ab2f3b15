/* Runs a grid, its blocks one after another: their order, what the driver would check, and shared memory for each. */
#include "kernels/runner/cuda_cpu_control.h"
#include "kernels/runner/cuda_cpu_internal.h"

#include <link.h>
#include <pthread.h>

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

pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;

char end_order; /* threads release when they end, the host acquires */

const char *const order_names[] = {"fwd", "rev", "rand"};
enum smg_order order_chosen;
unsigned order_seed;
bool order_known; /* by a call */
/*
 * The thread sanitizer tells some 250 threads apart. Where each CUDA thread counts as one, it sees races within a block, but a
 * block has used up most of them when the next one starts. So other runs let each block count as one thread, which shows races
 * between blocks.
 */
bool block_identity;

/* splitmix64 */
uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
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

/* ---- Blocks ---- */

void *block_main(void *g)
{
    prepare_shared(((const struct smg_grid *)g)->config->dynamicSmemBytes);
    smg_block_run((const struct smg_grid *)g);
    return nullptr;
}

/*
 * Under the thread sanitizer each block has an OS thread of its own, hence thread-local, that is shared, memory of its own.
 * Starting and joining these threads one by one gives no order between blocks: what the fibers did is not acquired by the threads
 * that switch to them.
 */
void run_block_alone(struct smg_grid *g)
{
    pthread_t thread;

    if (pthread_create(&thread, nullptr, block_main, g) != 0 || pthread_join(thread, nullptr) != 0) {
        smg_cuda_die("no OS thread for a block");
    }
}

bool known_order(const char *name, enum smg_order *order)
{
    for (int i = SMG_ORDER_FORWARD; i <= SMG_ORDER_RANDOM; i++) {
        if (!strcmp(name, order_names[i])) {
            *order = (enum smg_order)i;
            return true;
        }
    }
    return false;
}

/* Once; an order that the program has chosen stays. */
void read_environment()
{
    const char *name = getenv("SMG_CUDA_ORDER"), *seed = getenv("SMG_CUDA_SEED"), *identity = getenv("SMG_CUDA_IDENTITY");
    static bool done;

    if (done) {
        return;
    }
    done = true;
    block_identity = identity && !strcmp(identity, "block");
    if (order_known) {
        return;
    }
    if (name && !known_order(name, &order_chosen)) {
        smg_cuda_die("SMG_CUDA_ORDER: expected fwd, rev or rand, found '%s'", name);
    }
    order_seed = seed ? (unsigned)strtoul(seed, nullptr, 10) : 0;
}

void run_grid(struct smg_grid *g, unsigned blocks)
{
    uint64_t random = order_seed;
    unsigned *sequence = (unsigned *)malloc(blocks * sizeof *sequence);

    if (!sequence) {
        smg_cuda_die("no memory for %u blocks", blocks);
    }
    for (unsigned i = 0; i < blocks; i++) {
        sequence[i] = g->order == SMG_ORDER_REVERSE ? blocks - 1 - i : i;
    }
    if (g->order == SMG_ORDER_RANDOM) {
        smg_shuffle(sequence, blocks, &random);
    }
    for (unsigned i = 0; i < blocks; i++) {
        g->block = sequence[i];
        g->random = draw(&random);
        if (smg_cuda_tsan()) {
            run_block_alone(g);
        } else {
            block_main(g);
        }
    }
    free(sequence);
    smg_cuda_acquire(&end_order);
}

} // namespace

void smg_shuffle(unsigned *a, unsigned n, uint64_t *random)
{
    for (unsigned i = n; i > 1; i--) {
        const unsigned j = (unsigned)(draw(random) % i), t = a[i - 1];
        a[i - 1] = a[j];
        a[j] = t;
    }
}

int smg_cuda_order(const char *order, unsigned seed)
{
    if (!known_order(order, &order_chosen)) {
        return -1;
    }
    order_seed = seed;
    order_known = true;
    return 0;
}

/* A launch as the driver would check it. */
static cudaError_t check_launch(const cudaLaunchConfig_t *c, const void *kernel)
{
    const dim3 g = c->gridDim, b = c->blockDim;
    const unsigned long long threads = 1ull * b.x * b.y * b.z;

    if (c->numAttrs != 0) {
        return cudaErrorNotSupported;
    }
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535 || threads == 0 ||
        threads > SMG_CUDA_MAX_THREADS || b.z > 64) {
        return cudaErrorInvalidConfiguration;
    }
    return c->dynamicSmemBytes > smg_cuda_smem_limit(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t smg_cuda_run(const cudaLaunchConfig_t *config, const void *kernel, void (*call)(const void *), const void *body)
{
    const cudaError_t status = smg_cuda_injected() ? cudaErrorUnknown : check_launch(config, kernel);

    if (status != cudaSuccess) {
        return smg_cuda_status(status);
    }
    pthread_mutex_lock(&launching);
    read_environment();
    struct smg_grid g = {config, call, body, order_chosen, block_identity, 0, 0, &end_order};
    smg_cuda_device_open();
    run_grid(&g, config->gridDim.x * config->gridDim.y * config->gridDim.z);
    smg_cuda_device_close();
    pthread_mutex_unlock(&launching);
    return cudaSuccess;
}
