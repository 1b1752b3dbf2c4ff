/* running.h: the statements at work on the pool: for system.processes and KILL QUERY, and so that an id runs once.
 *
 * Any thread. */
#ifndef SLUICE_GATEWAY_RUNNING_H
#define SLUICE_GATEWAY_RUNNING_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct request;
struct running;

struct running *running_new(void);
void running_free(struct running *running); /* nothing runs; NULL is fine */
/* From here to running_remove the request is one of them; its query_id is set. Errors:
 * QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING. */
must_use bool running_add(struct running *running, struct request *request, struct err *err);
void running_remove(struct running *running, struct request *request);
/* One call each, under a lock: each may only copy. */
void running_each(struct running *running, void (*each)(void *context, const struct request *request), void *context);
/* Asks the statement to end. False: it runs no more. */
bool running_cancel(struct running *running, struct str query_id);
/* Waits until no statement has the id, or mono_ns. False when the time came. */
bool running_wait_gone(struct running *running, struct str query_id, uint64_t mono_ns);
#endif
