/* pool.h: the few threads on which statements run, or slow passwords are tried, so that polling threads never block. */
#ifndef SLUICE_GATEWAY_POOL_H
#define SLUICE_GATEWAY_POOL_H
#include <stddef.h>

struct pool;
struct request;

/* Starts the threads, of that name and at least that nice. At most waiting_max requests wait for one; more are refused
 * (202). */
struct pool *pool_new(const char *name, size_t threads, size_t waiting_max, int nice);
/* Runs what waits, then stops the threads. Nobody submits any more. NULL is fine. */
void pool_free(struct pool *pool);
/* request->publish of parked requests: request->work runs on a thread of request->pool, then the request is decided.
 * Any thread. */
void pool_submit(struct request *request);
#endif
