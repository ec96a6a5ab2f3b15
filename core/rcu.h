/* Read-copy-update: a value that is replaced while others read it.
 *
 * Readers take a reference to the current version and never wait. A writer publishes a new version; the old one is freed when its
 * last reader has left, by whoever leaves last. Any number of readers and writers, of any threads. */
#ifndef SMG_CORE_RCU_H
#define SMG_CORE_RCU_H

#include <stddef.h>
#include <stdint.h>

/* Versions that may be alive at once: the current one and those that readers still hold. */
#define SMG_RCU_VERSIONS 64u

struct smg_rcu;

/* Takes over `first` (not NULL); release is called once for each version, after its last reader. On error the caller keeps it. */
int smg_rcu_create(void *first, void (*release)(void *value), struct smg_rcu **out);
/* No reader holds a reference any more. NULL is accepted. */
void smg_rcu_destroy(struct smg_rcu *r);

struct smg_rcu_reference {
    const void *value;
    uint32_t version;
};

/* The current version; stays valid until smg_rcu_release. */
struct smg_rcu_reference smg_rcu_acquire(struct smg_rcu *r);
void smg_rcu_release(struct smg_rcu *r, struct smg_rcu_reference reference);
/* Publishes value and takes it over. SMG_ERR_CAPACITY when readers hold too many old versions: nothing changed, try again. */
int smg_rcu_replace(struct smg_rcu *r, void *value);
/* Versions that are alive. */
uint32_t smg_rcu_alive(const struct smg_rcu *r);

#endif
