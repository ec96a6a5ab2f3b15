/* Threads of the cpu backend. Pieces are taken from one counter; who takes which does not matter to any result. */
#define _GNU_SOURCE
#include "kernels/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/status.h"

enum { MOST = 64 };

struct loop {
    uint64_t n, grain;
    smg_loop_fn fn;
    void *arg;
};

struct worker {
    struct smg_threads *threads;
    uint32_t number;
    pthread_t thread;
};

struct smg_threads {
    pthread_mutex_t mutex;
    pthread_cond_t wake, idle;
    uint64_t round; /* counts loops; under the mutex */
    uint32_t busy;  /* workers still in this round; under the mutex */
    int ending;
    struct loop loop;
    atomic_uint_fast64_t next;
    uint32_t count;
    struct worker worker[MOST];
};

static void work(struct smg_threads *t, uint32_t number)
{
    const struct loop *l = &t->loop;

    for (;;) {
        uint64_t lo = atomic_fetch_add_explicit(&t->next, l->grain, memory_order_relaxed);
        if (lo >= l->n)
            return;
        l->fn(l->arg, lo, l->n - lo < l->grain ? l->n : lo + l->grain, number);
    }
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct smg_threads *t = w->threads;
    uint64_t seen = 0;

    pthread_mutex_lock(&t->mutex);
    for (;;) {
        while (t->round == seen && !t->ending)
            pthread_cond_wait(&t->wake, &t->mutex);
        if (t->ending)
            break;
        seen = t->round;
        pthread_mutex_unlock(&t->mutex);
        work(t, w->number);
        pthread_mutex_lock(&t->mutex);
        if (!--t->busy)
            pthread_cond_signal(&t->idle);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static uint32_t usable(void)
{
    cpu_set_t set;
    int n = 0;

    if (!sched_getaffinity(0, sizeof set, &set))
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MOST ? MOST : (uint32_t)n;
}

int smg_threads_open(uint32_t n, struct smg_threads **out)
{
    struct smg_threads *t = calloc(1, sizeof *t);

    if (!t)
        return SMG_ERR_NOMEM;
    n = n ? n : usable();
    n = n > MOST ? MOST : n;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->idle, NULL);
    for (t->count = 1; t->count < n; t->count++) {
        struct worker *w = &t->worker[t->count];
        w->threads = t;
        w->number = t->count;
        if (pthread_create(&w->thread, NULL, worker_main, w)) {
            smg_threads_close(t);
            return SMG_ERR_NOMEM;
        }
    }
    *out = t;
    return SMG_OK;
}

void smg_threads_close(struct smg_threads *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->mutex);
    t->ending = 1;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    for (uint32_t i = 1; i < t->count; i++)
        pthread_join(t->worker[i].thread, NULL);
    pthread_cond_destroy(&t->idle);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

uint32_t smg_threads_count(const struct smg_threads *t)
{
    return t->count;
}

void smg_threads_run(struct smg_threads *t, uint64_t n, uint64_t grain, smg_loop_fn fn, void *arg)
{
    grain = grain ? grain : 1;
    if (!n)
        return;
    t->loop = (struct loop){n, grain, fn, arg};
    atomic_store_explicit(&t->next, 0, memory_order_relaxed);
    if (n <= grain || t->count == 1) {
        work(t, 0);
        return;
    }
    pthread_mutex_lock(&t->mutex);
    t->busy = t->count - 1;
    t->round++;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    work(t, 0);
    pthread_mutex_lock(&t->mutex);
    while (t->busy)
        pthread_cond_wait(&t->idle, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}
