/* sync.c: each thread keeps the ranks it holds, rising, in a small array of its own; taking one out of order is a
 * broken promise and stops the process at once, where a deadlock would need luck to be seen. */
#include "base/sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/must.h"

enum { HELD_MAX = 16 };
static _Thread_local enum lock_rank held[HELD_MAX];
static _Thread_local unsigned held_count;
static _Atomic uint64_t waited_ns[LOCK_RANK_COUNT];

static void note_taken(enum lock_rank rank)
{
    must(held_count == 0 || held[held_count - 1] < rank); /* lock_order.h */
    must(held_count < HELD_MAX);
    held[held_count++] = rank;
}

static void note_given_back(enum lock_rank rank)
{
    unsigned at = held_count;
    while (at > 0 && held[at - 1] != rank)
        at--;
    must(at > 0); /* this thread holds it */
    for (; at < held_count; at++)
        held[at - 1] = held[at];
    held_count--;
}

static bool holds(enum lock_rank rank)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i] == rank)
            return true;
    return false;
}

void mutex_init(struct mutex *m, enum lock_rank rank)
{
    must(rank != LOCK_NONE);
    must(pthread_mutex_init(&m->mutex, NULL) == 0);
    m->rank = rank;
}

void mutex_fini(struct mutex *m)
{
    must(pthread_mutex_destroy(&m->mutex) == 0);
}

/* Only who has to wait reads the clock. */
static void wait_for(struct mutex *m)
{
    uint64_t from_ns = clock_mono_ns(clock_real());
    must(pthread_mutex_lock(&m->mutex) == 0);
    uint64_t took_ns = clock_mono_ns(clock_real()) - from_ns;
    atomic_fetch_add_explicit(&waited_ns[m->rank], took_ns, memory_order_relaxed);
}

void mutex_lock(struct mutex *m)
{
    note_taken(m->rank);
    int result = pthread_mutex_trylock(&m->mutex);
    must(result == 0 || result == EBUSY);
    if (result == EBUSY)
        wait_for(m);
}

uint64_t mutex_waited_ns(enum lock_rank rank)
{
    return atomic_load_explicit(&waited_ns[rank], memory_order_relaxed);
}

void mutex_unlock(struct mutex *m)
{
    note_given_back(m->rank);
    must(pthread_mutex_unlock(&m->mutex) == 0);
}

void cond_init(struct cond *c)
{
    pthread_condattr_t attributes;
    must(pthread_condattr_init(&attributes) == 0);
    must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    must(pthread_cond_init(&c->cond, &attributes) == 0);
    must(pthread_condattr_destroy(&attributes) == 0);
}

void cond_fini(struct cond *c)
{
    must(pthread_cond_destroy(&c->cond) == 0);
}

void cond_wait(struct cond *c, struct mutex *m)
{
    must(holds(m->rank));
    must(pthread_cond_wait(&c->cond, &m->mutex) == 0);
}

bool cond_wait_until(struct cond *c, struct mutex *m, uint64_t mono_ns)
{
    if (mono_ns == UINT64_MAX) {
        cond_wait(c, m);
        return true;
    }
    struct timespec until = { .tv_sec = (time_t)(mono_ns / NS_PER_S), .tv_nsec = (long)(mono_ns % NS_PER_S) };
    must(holds(m->rank));
    int result = pthread_cond_timedwait(&c->cond, &m->mutex, &until);
    must(result == 0 || result == ETIMEDOUT);
    return result == 0;
}

void cond_signal(struct cond *c)
{
    must(pthread_cond_signal(&c->cond) == 0);
}

void cond_broadcast(struct cond *c)
{
    must(pthread_cond_broadcast(&c->cond) == 0);
}
