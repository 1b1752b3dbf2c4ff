/* Locks know their order, whoever takes them. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/sync.h"
#include "support/dies.h"

static struct mutex early, late;

static void take_in_order(void *context)
{
    (void)context;
    mutex_lock(&early);
    mutex_lock(&late);
    mutex_unlock(&early); /* giving back in any order is fine */
    mutex_unlock(&late);
    mutex_lock(&late);
    mutex_unlock(&late);
}

static void take_out_of_order(void *context)
{
    (void)context;
    mutex_lock(&late);
    mutex_lock(&early);
}

static void take_twice(void *context)
{
    (void)context;
    mutex_lock(&early);
    mutex_lock(&early);
}

static void give_back_what_is_not_held(void *context)
{
    (void)context;
    mutex_unlock(&early);
}

static void order_is_checked(void **state)
{
    (void)state;
    mutex_init(&early, LOCK_TABLE);
    mutex_init(&late, LOCK_LOG);
    assert_int_equal(dies(take_in_order, NULL, NULL), 0);
    assert_int_equal(dies(take_out_of_order, NULL, NULL), SIGABRT);
    assert_int_equal(dies(take_twice, NULL, NULL), SIGABRT);
    assert_int_equal(dies(give_back_what_is_not_held, NULL, NULL), SIGABRT);
    mutex_fini(&early);
    mutex_fini(&late);
}

static void *hold(void *context)
{
    struct mutex *lock = context;
    mutex_lock(lock);
    mutex_unlock(lock);
    return NULL;
}

static void waits_are_counted_by_rank(void **state)
{
    struct mutex lock;
    pthread_t waiting;
    (void)state;
    mutex_init(&lock, LOCK_DLQ);
    hold(&lock);
    assert_true(mutex_waited_ns(LOCK_DLQ) == 0); /* nobody had it */
    while (mutex_waited_ns(LOCK_DLQ) == 0) {
        mutex_lock(&lock);
        must(pthread_create(&waiting, NULL, hold, &lock) == 0);
        sched_yield();
        mutex_unlock(&lock);
        must(pthread_join(waiting, NULL) == 0);
    }
    assert_true(mutex_waited_ns(LOCK_LEDGER) == 0);
    mutex_fini(&lock);
}

struct counter {
    struct mutex lock;
    struct cond changed;
    int value;
};

static void *count_up(void *context)
{
    struct counter *c = context;
    for (int i = 0; i < 10000; i++) {
        mutex_lock(&c->lock);
        c->value++;
        cond_signal(&c->changed);
        mutex_unlock(&c->lock);
    }
    return NULL;
}

static void waiters_see_every_change(void **state)
{
    struct counter c = { .value = 0 };
    pthread_t threads[3];
    (void)state;
    mutex_init(&c.lock, LOCK_TABLE);
    cond_init(&c.changed);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &c), 0);
    mutex_lock(&c.lock);
    while (c.value < 30000)
        assert_true(cond_wait_until(&c.changed, &c.lock, UINT64_MAX));
    mutex_unlock(&c.lock);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    cond_fini(&c.changed);
    mutex_fini(&c.lock);
}

static void a_wait_ends_when_its_time_has_come(void **state)
{
    struct counter c;
    (void)state;
    mutex_init(&c.lock, LOCK_TABLE);
    cond_init(&c.changed);
    mutex_lock(&c.lock);
    uint64_t until = clock_mono_ns(clock_real()) + 2 * NS_PER_MS;
    while (cond_wait_until(&c.changed, &c.lock, until))
        ;
    assert_true(clock_mono_ns(clock_real()) >= until);
    assert_false(cond_wait_until(&c.changed, &c.lock, 0));
    mutex_unlock(&c.lock);
    cond_fini(&c.changed);
    mutex_fini(&c.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_checked),
        cmocka_unit_test(waits_are_counted_by_rank),
        cmocka_unit_test(waiters_see_every_change),
        cmocka_unit_test(a_wait_ends_when_its_time_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
