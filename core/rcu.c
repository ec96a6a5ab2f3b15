#include "core/rcu.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/status.h"

/* The current slot and how many references to it were taken share one word, so that taking a reference is one addition. */
#define SLOT_SHIFT 56
#define TAKEN_MASK ((UINT64_C(1) << SLOT_SHIFT) - 1)

struct slot {
    void *value;
    atomic_int used;
    /* Released references count down while the version is current; retiring it adds those that were taken. What remains are its
     * readers, and only then can the sum become 0. */
    atomic_int_fast64_t readers;
};

struct smg_rcu {
    void (*release)(void *value);
    atomic_uint_fast64_t current; /* slot << SLOT_SHIFT | references taken */
    struct slot slot[SMG_RCU_VERSIONS];
};

static uint32_t slot_of(uint64_t current)
{
    return (uint32_t)(current >> SLOT_SHIFT);
}

static void free_version(struct smg_rcu *r, struct slot *s)
{
    r->release(s->value);
    s->value = NULL;
    atomic_store(&s->used, 0);
}

/* A slot of one's own. */
static struct slot *claim(struct smg_rcu *r)
{
    for (uint32_t i = 0; i < SMG_RCU_VERSIONS; i++) {
        int unused = 0;
        if (atomic_compare_exchange_strong(&r->slot[i].used, &unused, 1)) {
            return &r->slot[i];
        }
    }
    return NULL;
}

int smg_rcu_create(void *first, void (*release)(void *value), struct smg_rcu **out)
{
    struct smg_rcu *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    r->release = release;
    r->slot[0].value = first;
    atomic_init(&r->current, 0);
    for (uint32_t i = 0; i < SMG_RCU_VERSIONS; i++) {
        atomic_init(&r->slot[i].used, i == 0);
        atomic_init(&r->slot[i].readers, 0);
    }
    *out = r;
    return SMG_OK;
}

void smg_rcu_destroy(struct smg_rcu *r)
{
    if (r == NULL) {
        return;
    }
    free_version(r, &r->slot[slot_of(atomic_load(&r->current))]);
    free(r);
}

struct smg_rcu_reference smg_rcu_acquire(struct smg_rcu *r)
{
    uint32_t version = slot_of(atomic_fetch_add(&r->current, 1));

    return (struct smg_rcu_reference){r->slot[version].value, version};
}

void smg_rcu_release(struct smg_rcu *r, struct smg_rcu_reference reference)
{
    struct slot *s = &r->slot[reference.version];

    if (atomic_fetch_sub(&s->readers, 1) == 1) {
        free_version(r, s);
    }
}

int smg_rcu_replace(struct smg_rcu *r, void *value)
{
    struct slot *s = claim(r), *old;
    uint64_t before;
    int_fast64_t taken;

    if (s == NULL) {
        return SMG_ERR_CAPACITY;
    }
    s->value = value;
    atomic_store(&s->readers, 0);
    before = atomic_exchange(&r->current, (uint64_t)(s - r->slot) << SLOT_SHIFT);
    old = &r->slot[slot_of(before)];
    taken = (int_fast64_t)(before & TAKEN_MASK);
    if (atomic_fetch_add(&old->readers, taken) + taken == 0) {
        free_version(r, old);
    }
    return SMG_OK;
}

uint32_t smg_rcu_alive(const struct smg_rcu *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < SMG_RCU_VERSIONS; i++) {
        n += (uint32_t)atomic_load(&((struct smg_rcu *)(uintptr_t)r)->slot[i].used);
    }
    return n;
}
