/* loop.c: see loop.h. */
#include "gateway/loop.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/must.h"
#include "base/sync.h"
#include "gateway/runtime.h"

enum { IO_WHO_PROCESS = 1, IO_CLASS_BEST_EFFORT = 2 << 13, IO_LOWEST = 7 }; /* linux/ioprio.h */

struct loop {
    enum loop_rank rank;
    struct clock *clock;
    loop_step_fn *step;
    void *context;
    struct metric_series *busy;
    struct mutex lock; /* LOCK_RUNTIME; guards the next three */
    struct cond changed;
    uint64_t wakes;
    bool stopping;
    pthread_t *threads;
    size_t threads_count;
};

/* Linux counts both by thread. */
void thread_yield(int least_nice)
{
    pid_t self = (pid_t)syscall(SYS_gettid);
    int nice = MAX(getpriority(PRIO_PROCESS, (id_t)self), least_nice);
    if (setpriority(PRIO_PROCESS, (id_t)self, nice) != 0 ||
        syscall(SYS_ioprio_set, IO_WHO_PROCESS, self, IO_CLASS_BEST_EFFORT | IO_LOWEST) != 0)
        log_debug("work that should yield has the priority of all other work, which cannot be lowered");
}

static void *loop_main(void *context)
{
    struct loop *loop = context;
    if (loop->rank == LOOP_YIELDING)
        thread_yield(YIELDING_NICE);
    mutex_lock(&loop->lock);
    while (!loop->stopping) {
        uint64_t wakes = loop->wakes;
        mutex_unlock(&loop->lock);
        uint64_t from_ns = clock_mono_ns(loop->clock);
        uint64_t next_ns = loop->step(loop->context, from_ns);
        uint64_t now_ns = clock_mono_ns(loop->clock);
        metric_series_add(loop->busy, now_ns - from_ns);
        mutex_lock(&loop->lock);
        while (next_ns > now_ns && wakes == loop->wakes && !loop->stopping) {
            if (!cond_wait_until(&loop->changed, &loop->lock, next_ns))
                break;
        }
    }
    mutex_unlock(&loop->lock);
    return NULL;
}

struct birth {
    const char *name;
    void *(*run)(void *context);
    void *context;
};

/* The thread names itself, for top and perf: to name another is to write a file, which the sandbox forbids. */
static void *thread_main(void *context)
{
    struct birth birth = *(struct birth *)context;
    free(context);
    pthread_setname_np(pthread_self(), birth.name);
    return birth.run(birth.context);
}

void thread_start(pthread_t *thread, const char *name, void *(*run)(void *context), void *context)
{
    struct birth *birth = NEW(struct birth);
    *birth = (struct birth){ name, run, context };
    int problem = pthread_create(thread, NULL, thread_main, birth);
    if (problem != 0) {
        log_error(
            "no thread: for=%s reason=\"%s\" hint=\"see ulimit -u, TasksMax= of the unit, pids.max of the container\"",
            name, strerror(problem));
        _exit(RUNTIME_FAILED); /* other threads are at work; what they promised is safe on disk */
    }
}

struct metric_series *worker_add(const char *kind, size_t threads)
{
    struct metric_series *number = metric_series1(METRIC_WORKER_THREADS, str_of(kind));
    metric_series_set(number, metric_series_value(number) + (double)threads);
    return metric_series1(METRIC_WORKER_BUSY, str_of(kind));
}

struct loop *loop_start(const char *name, size_t threads, enum loop_rank rank, struct clock *clock, loop_step_fn *step,
                        void *context)
{
    struct loop *loop = NEW(struct loop);
    loop->rank = rank;
    loop->clock = clock;
    loop->step = step;
    loop->context = context;
    loop->busy = worker_add(name, threads);
    mutex_init(&loop->lock, LOCK_RUNTIME);
    cond_init(&loop->changed);
    loop->threads = mem_zalloc((threads + 1) * sizeof(loop->threads[0]));
    for (size_t i = 0; i < threads; i++)
        thread_start(&loop->threads[i], name, loop_main, loop);
    loop->threads_count = threads;
    return loop;
}

void loop_wake(struct loop *loop)
{
    mutex_lock(&loop->lock);
    loop->wakes++;
    cond_broadcast(&loop->changed);
    mutex_unlock(&loop->lock);
}

void loop_stop(struct loop *loop)
{
    if (loop == NULL)
        return;
    mutex_lock(&loop->lock);
    loop->stopping = true;
    cond_broadcast(&loop->changed);
    mutex_unlock(&loop->lock);
    for (size_t i = 0; i < loop->threads_count; i++)
        pthread_join(loop->threads[i], NULL);
    loop->threads_count = 0;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    loop_stop(loop);
    cond_fini(&loop->changed);
    mutex_fini(&loop->lock);
    free(loop->threads);
    free(loop);
}
