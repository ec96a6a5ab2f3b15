/* Replacing an importance matrix while others read it: no reader sees a freed or half-made version. */
#include "tests/selection_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/rcu.h"

#define READERS  3
#define VERSIONS 400
#define LAYERS   4u
#define BLOCKS   50u

static atomic_int freed, stop;

static void release(void *value)
{
    struct smg_importance *im = value;

    im->value[2 * BLOCKS] = -1; /* a reader that still looks must notice */
    smg_importance_destroy(im);
    atomic_fetch_add(&freed, 1);
}

/* All frequencies of version v are v. */
static struct smg_importance *version(uint32_t v)
{
    struct smg_importance *im;
    uint32_t i;

    if (smg_importance_create(1, LAYERS, BLOCKS, &im) != SMG_OK) {
        abort();
    }
    for (i = 2 * BLOCKS; i < LAYERS * BLOCKS; i++) {
        im->value[i] = (float)v;
    }
    return im;
}

static void *read_on(void *context)
{
    struct smg_rcu *r = context;
    float newest = 0;
    intptr_t wrong = 0;

    while (!atomic_load(&stop)) {
        struct smg_rcu_reference ref = smg_rcu_acquire(r);
        const struct smg_importance *im = ref.value;
        float first = im->value[2 * BLOCKS];
        uint32_t i;

        for (i = 2 * BLOCKS; i < LAYERS * BLOCKS; i++) {
            wrong += im->value[i] != first;
        }
        wrong += first < newest;
        newest = first;
        smg_rcu_release(r, ref);
    }
    return (void *)wrong;
}

static void test_readers_and_writer(void **state)
{
    pthread_t reader[READERS];
    struct smg_rcu *r;
    void *wrong;
    uint32_t v, i;

    (void)state;
    atomic_store(&freed, 0);
    atomic_store(&stop, 0);
    assert_int_equal(smg_rcu_create(version(0), release, &r), SMG_OK);
    for (i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&reader[i], NULL, read_on, r), 0);
    }
    for (v = 1; v <= VERSIONS; v++) {
        struct smg_importance *im = version(v);
        while (smg_rcu_replace(r, im) == SMG_ERR_CAPACITY) {
        }
    }
    atomic_store(&stop, 1);
    for (i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(reader[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_int_equal(atomic_load(&freed), VERSIONS);
    assert_int_equal(smg_rcu_alive(r), 1);
    smg_rcu_destroy(r);
    assert_int_equal(atomic_load(&freed), VERSIONS + 1);
}

/* The last reader frees; a version nobody read goes at once; too many held versions refuse a new one and change nothing. */
static void test_life(void **state)
{
    struct smg_rcu_reference held[SMG_RCU_VERSIONS], again;
    struct smg_rcu *r;
    struct smg_importance *late;
    uint32_t i;

    (void)state;
    atomic_store(&freed, 0);
    assert_int_equal(smg_rcu_create(version(0), release, &r), SMG_OK);
    assert_int_equal(smg_rcu_replace(r, version(1)), SMG_OK);
    assert_int_equal(atomic_load(&freed), 1);
    again = smg_rcu_acquire(r);
    held[0] = smg_rcu_acquire(r);
    assert_int_equal(smg_rcu_replace(r, version(2)), SMG_OK);
    assert_int_equal(atomic_load(&freed), 1);
    smg_rcu_release(r, again);
    assert_int_equal(atomic_load(&freed), 1);
    smg_rcu_release(r, held[0]);
    assert_int_equal(atomic_load(&freed), 2);
    for (i = 0; i + 1 < SMG_RCU_VERSIONS; i++) {
        held[i] = smg_rcu_acquire(r);
        assert_int_equal(smg_rcu_replace(r, version(3 + i)), SMG_OK);
    }
    late = version(99);
    assert_int_equal(smg_rcu_replace(r, late), SMG_ERR_CAPACITY);
    assert_int_equal(smg_rcu_alive(r), SMG_RCU_VERSIONS);
    for (i = 0; i + 1 < SMG_RCU_VERSIONS; i++) {
        smg_rcu_release(r, held[i]);
    }
    assert_int_equal(smg_rcu_replace(r, late), SMG_OK);
    assert_int_equal(smg_rcu_alive(r), 1);
    smg_rcu_destroy(r);
    smg_rcu_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_and_writer),
        cmocka_unit_test(test_life),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
