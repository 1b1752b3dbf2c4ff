/* Loops step when they should, at once when woken, and end when told. */
#include "support/cmocka_all.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/must.h"
#include "base/sync.h"
#include "gateway/loop.h"

struct counter {
    struct mutex lock;
    struct cond changed;
    uint64_t steps, next_ns;
};

static uint64_t step(void *context, uint64_t now_ns)
{
    struct counter *counter = context;
    mutex_lock(&counter->lock);
    counter->steps++;
    cond_broadcast(&counter->changed);
    uint64_t next_ns = counter->next_ns;
    mutex_unlock(&counter->lock);
    return next_ns == 0 ? now_ns : next_ns;
}

static void counter_init(struct counter *counter, uint64_t next_ns)
{
    mutex_init(&counter->lock, LOCK_TABLE);
    cond_init(&counter->changed);
    counter->steps = 0;
    counter->next_ns = next_ns;
}

static void counter_fini(struct counter *counter)
{
    cond_fini(&counter->changed);
    mutex_fini(&counter->lock);
}

/* Waits, for at most a minute, until there were so many steps. */
static bool reaches(struct counter *counter, uint64_t steps)
{
    uint64_t deadline_ns = clock_mono_ns(clock_real()) + 60 * NS_PER_S;
    mutex_lock(&counter->lock);
    while (counter->steps < steps && cond_wait_until(&counter->changed, &counter->lock, deadline_ns)) {
    }
    bool ok = counter->steps >= steps;
    mutex_unlock(&counter->lock);
    return ok;
}

static void a_step_that_has_more_to_do_comes_again_at_once(void **state)
{
    struct counter counter;
    (void)state;
    counter_init(&counter, 0);
    struct loop *loop = loop_start("flush", 2, LOOP_EQUAL, clock_real(), step, &counter);
    assert_true(reaches(&counter, 1000));
    loop_free(loop);
    counter_fini(&counter);
}

static void a_step_without_work_sleeps_until_woken(void **state)
{
    struct counter counter;
    (void)state;
    counter_init(&counter, UINT64_MAX);
    struct loop *loop = loop_start("flush", 1, LOOP_EQUAL, clock_real(), step, &counter);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_true(reaches(&counter, i));
        assert_true(counter.steps == i); /* nobody else steps */
        loop_wake(loop);
    }
    loop_stop(loop);
    uint64_t steps = counter.steps;
    assert_true(steps == 100 || steps == 101); /* the last wake may have met the end */
    loop_wake(loop);                           /* without effect */
    assert_true(counter.steps == steps);
    loop_free(loop);
    counter_fini(&counter);
}

static uint64_t note_priority(void *context, uint64_t now_ns)
{
    struct counter *counter = context;
    (void)now_ns;
    int priority = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    mutex_lock(&counter->lock);
    counter->next_ns = (uint64_t)priority;
    counter->steps++;
    cond_broadcast(&counter->changed);
    mutex_unlock(&counter->lock);
    return UINT64_MAX;
}

static void background_work_yields(void **state)
{
    struct counter counter;
    (void)state;
    int own = getpriority(PRIO_PROCESS, 0);
    for (enum loop_rank rank = LOOP_EQUAL; rank <= LOOP_YIELDING; rank++) {
        counter_init(&counter, 0);
        struct loop *loop = loop_start("merge", 1, rank, clock_real(), note_priority, &counter);
        assert_true(reaches(&counter, 1));
        assert_int_equal(counter.next_ns, rank == LOOP_EQUAL ? own : MAX(own, 10));
        loop_free(loop);
        counter_fini(&counter);
    }
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own); /* no other thread is changed */
}

static void no_threads_and_no_loop_are_fine(void **state)
{
    struct counter counter;
    (void)state;
    counter_init(&counter, 0);
    struct loop *loop = loop_start("merge", 0, LOOP_EQUAL, clock_real(), step, &counter);
    loop_wake(loop);
    loop_free(loop);
    assert_true(counter.steps == 0);
    loop_stop(NULL);
    loop_free(NULL);
    counter_fini(&counter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_has_more_to_do_comes_again_at_once),
        cmocka_unit_test(a_step_without_work_sleeps_until_woken),
        cmocka_unit_test(background_work_yields),
        cmocka_unit_test(no_threads_and_no_loop_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
