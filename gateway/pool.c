/* pool.c: see pool.h. */
#include "gateway/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/metric.h"
#include "base/sync.h"
#include "gateway/loop.h"
#include "gateway/request.h"

struct pool {
    int nice;
    struct mutex lock; /* LOCK_RUNTIME; guards what follows */
    struct cond wanted;
    struct list waiting;            /* struct request, by job */
    size_t unfinished, waiting_max; /* unfinished: those that wait, and those that run */
    bool stopping;
    struct metric_series *busy;
    pthread_t *threads;
    size_t threads_count;
};

static struct request *take(struct pool *pool)
{
    struct request *request = NULL;
    mutex_lock(&pool->lock);
    while (list_empty(&pool->waiting) && !pool->stopping)
        cond_wait(&pool->wanted, &pool->lock);
    if (!list_empty(&pool->waiting)) {
        request = LIST_ENTRY(pool->waiting.next, struct request, job);
        list_remove(&request->job);
    }
    mutex_unlock(&pool->lock);
    return request;
}

static void finished(struct pool *pool)
{
    mutex_lock(&pool->lock);
    pool->unfinished--;
    mutex_unlock(&pool->lock);
}

/* Whether the request is decided now, or will be by somebody else. */
static bool work(struct pool *pool, struct request *request)
{
    struct clock *clock = request->gateway->clock; /* the request may be gone afterwards */
    if (atomic_load_explicit(&request->cancel, memory_order_relaxed))
        return true;
    uint64_t from_ns = clock_mono_ns(clock);
    bool decide = request->work(request);
    metric_series_add(pool->busy, clock_mono_ns(clock) - from_ns);
    return decide;
}

static void *pool_main(void *context)
{
    struct pool *pool = context;
    struct request *request;
    thread_yield(pool->nice); /* an insert is answered while ten of them compute */
    while ((request = take(pool)) != NULL) {
        bool decide = work(pool, request);
        finished(pool); /* before anybody is told */
        if (decide)
            request_decide(request, true);
    }
    return NULL;
}

struct pool *pool_new(const char *name, size_t threads, size_t waiting_max, int nice)
{
    struct pool *pool = NEW(struct pool);
    pool->nice = nice;
    pool->waiting_max = waiting_max;
    mutex_init(&pool->lock, LOCK_RUNTIME);
    cond_init(&pool->wanted);
    list_init(&pool->waiting);
    pool->busy = worker_add(name, threads);
    pool->threads = mem_zalloc(threads * sizeof(pool->threads[0]));
    for (size_t i = 0; i < threads; i++) {
        thread_start(&pool->threads[i], name, pool_main, pool);
        pool->threads_count++;
    }
    return pool;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    mutex_lock(&pool->lock);
    pool->stopping = true;
    cond_broadcast(&pool->wanted);
    mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->threads_count; i++)
        pthread_join(pool->threads[i], NULL);
    must(list_empty(&pool->waiting));
    cond_fini(&pool->wanted);
    mutex_fini(&pool->lock);
    free(pool->threads);
    free(pool);
}

void pool_submit(struct request *request)
{
    struct pool *pool = request->pool;
    mutex_lock(&pool->lock);
    bool room = pool->unfinished < pool->threads_count + pool->waiting_max && !pool->stopping;
    if (room) {
        list_push_back(&pool->waiting, &request->job);
        pool->unfinished++;
        cond_signal(&pool->wanted);
    }
    mutex_unlock(&pool->lock);
    if (room)
        return;
    err_set(&request->verdict.err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "Too many requests wait for a thread: %zu",
            pool->waiting_max);
    request_decide(request, true);
}
