/* loop.h: threads that run a step over and over: each step does one bounded piece of work and says when to come again.
 */
#ifndef SLUICE_GATEWAY_LOOP_H
#define SLUICE_GATEWAY_LOOP_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct loop;
struct metric_series;
/* Returns the monotonic time to run again: <= now: at once; UINT64_MAX: when woken. */
typedef uint64_t loop_step_fn(void *context, uint64_t now_ns);

enum { YIELDING_NICE = 10 }; /* of background work */
/* The calling thread yields disk and, with at least this nice value, the processor to those of inserts; where that is
 * not allowed it works all the same. */
void thread_yield(int least_nice);

/* How much its threads count beside those of inserts: EQUAL, or YIELDING processor and disk to them. */
enum loop_rank { LOOP_EQUAL, LOOP_YIELDING };
/* name: label "worker" of metrics; lives for ever. threads may be 0: then nothing runs. */
struct loop *loop_start(const char *name, size_t threads, enum loop_rank rank, struct clock *clock, loop_step_fn *step,
                        void *context);
/* Something came up: every thread takes a step. Any thread, under no lock. */
void loop_wake(struct loop *loop);
/* Lets the steps at work come to their end and ends the threads; waking it is without effect then. NULL is fine. */
void loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* stops it first; NULL is fine */
/* So many more threads of a kind, for metrics: the series that counts how long they work. */
struct metric_series *worker_add(const char *kind, size_t threads);
/* Starts a thread of that name. Where the system refuses, the log says so and the process ends: it could serve nobody.
 */
void thread_start(pthread_t *thread, const char *name, void *(*run)(void *context), void *context);
#endif
