/* sync.h: mutexes that know their order (lock_order.h), and condition variables on the monotonic clock. */
#ifndef SLUICE_BASE_SYNC_H
#define SLUICE_BASE_SYNC_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock_order.h"

struct mutex {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};
void mutex_init(struct mutex *m, enum lock_rank rank);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m); /* must: no lock of the same or a later rank is held by this thread */
void mutex_unlock(struct mutex *m);
/* How long threads have waited for all locks of a rank together. */
uint64_t mutex_waited_ns(enum lock_rank rank);

struct cond {
    pthread_cond_t cond;
};
void cond_init(struct cond *c);
void cond_fini(struct cond *c);
void cond_wait(struct cond *c, struct mutex *m);
/* Until CLOCK_MONOTONIC reaches mono_ns (UINT64_MAX: for ever). False when the time came. */
bool cond_wait_until(struct cond *c, struct mutex *m, uint64_t mono_ns);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);
#endif
