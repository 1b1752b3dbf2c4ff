/* buffers.h: inserts that wait to be written together.
 *
 * One struct buffers holds every pending insert of the process, grouped by shape (shape.h). It does no I/O and reads no
 * clock: the caller passes the time, so a test can make an hour pass in one call.
 *
 * Threads: any function, any thread. LOCK_BUFFERS guards the whole object and is never held while a callback runs. */
#ifndef SLUICE_BUFFER_BUFFERS_H
#define SLUICE_BUFFER_BUFFERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/str.h"
#include "buffer/batch.h"

struct buffers;
struct ledger;

struct buffers_limits {       /* 0: none */
    uint64_t total_bytes_max; /* inserts beyond this are refused: MEMORY_LIMIT_EXCEEDED */
    uint64_t pressure_bytes;  /* above this the largest shapes become due, and nobody takes more than his share; an
                               * eighth of all is for who has no more than that */
    uint64_t shapes_max;      /* live buffers; over it the oldest of the user who has most is flushed early */
    uint64_t shape_bytes; /* what each batch takes beside its inserts: shape, buffer and the like; counted with them */
};
/* Called when a shape became due sooner than any waiter of buffers_take_due knew. Any thread, under no lock. */
typedef void buffers_wake_fn(void *context);

/* limits are copied; the ledger is told what is taken. buffers_free() needs it empty. */
struct buffers *buffers_new(const struct buffers_limits *limits, struct rng *rng, struct ledger *ledger,
                            buffers_wake_fn *wake, void *context);
void buffers_free(struct buffers *buffers);

/* Adds one insert and gives it the batch id of its buffer. True: the buffers own it now (it may be flushed, answered
 * and freed before this returns). False: the caller still does. Errors: MEMORY_LIMIT_EXCEEDED;
 * TOO_MANY_SIMULTANEOUS_QUERIES where this user has his share of the memory for this table; ABORTED once closed. */
must_use bool buffers_put(struct buffers *buffers, struct insert *insert, uint64_t now_ns, struct err *err);

/* Whether an insert of so many bytes would be taken at this moment; its errors if not, or QUERY_IS_TOO_LARGE where it
 * never will. */
must_use bool buffers_have_room(struct buffers *buffers, const struct shape *shape, uint64_t cost, struct err *err);

/* Two steps, for an insert that has to go elsewhere in between: room for it, which can fail as buffers_put can; then
 * the put, which cannot, also once closed (then it is due at once), or the room is given back. */
must_use bool buffers_reserve(struct buffers *buffers, const struct insert *insert, struct err *err);
void buffers_put_reserved(struct buffers *buffers, struct insert *insert, uint64_t now_ns);
void buffers_release(struct buffers *buffers, const struct insert *insert);
/* A batch as it was recorded in the spool before a restart: this id, these inserts of one shape, in this order;
 * *spooled is taken over. Due at once, whatever the limits say. */
void buffers_put_batch(struct buffers *buffers, const char *id, struct list *inserts, struct ranges *spooled,
                       uint64_t now_ns);

/* The batch most overdue at now_ns, where users and tables take turns, or NULL; then *again_ns is when to ask next
 * (UINT64_MAX: when woken). Ends with batch_finish(). */
struct batch *buffers_take_due(struct buffers *buffers, uint64_t now_ns, uint64_t *again_ns);
/* The flush is over: every insert has its verdict, has been told, and is freed. cost_ns feeds the pace. */
void batch_finish(struct buffers *buffers, struct batch *batch, uint64_t now_ns, uint64_t cost_ns, bool stored);
/* Not now: the same batch, members unchanged, is due again at retry_at_ns. */
void batch_retry(struct buffers *buffers, struct batch *batch, uint64_t retry_at_ns);

/* Makes everything that is pending due at once: of one table, or (database empty) all. Returns a mark; buffers_flushed
 * says whether all that was pending or in flight at that time has been finished. A batch in backoff keeps its time. */
uint64_t buffers_flush(struct buffers *buffers, struct str database, struct str table, enum flush_trigger trigger);
bool buffers_flushed(struct buffers *buffers, uint64_t mark);
/* Waits until then, or until deadline_ns. False: not flushed in time. */
bool buffers_wait_flushed(struct buffers *buffers, uint64_t mark, uint64_t deadline_ns);
/* No more puts; everything is due at once. */
void buffers_close(struct buffers *buffers);

struct buffers_stats {
    uint64_t shapes; /* buffers that take inserts */
    uint64_t inserts,
        bytes;          /* unfinished, in flight or not, room that is reserved too; bytes of memory (insert_cost) */
    uint64_t bytes_max; /* beyond it only those find room who have little; 0: no limit */
    uint64_t in_flight_batches, in_flight_bytes;
    uint64_t oldest_ns; /* arrival of the oldest unfinished insert; 0 when empty */
};
void buffers_get_stats(struct buffers *buffers, struct buffers_stats *stats);
/* How long it will take to write what waits now; UINT64_MAX when nothing was written lately. */
uint64_t buffers_drain_ns(struct buffers *buffers, uint64_t now_ns);
/* One call per batch that is filling or waits for a flusher, oldest first; the callback copies what it needs. Runs
 * under the lock: quick, and takes none. */
struct buffer_info {
    const struct shape *shape;
    uint64_t first_ns, last_ns, due_ns, bytes, inserts, wait_ns;
    int64_t first_wall_ns, last_wall_ns;
    const char *batch_id;
    const struct list *members;
};
void buffers_each(struct buffers *buffers, void (*each)(void *context, const struct buffer_info *info), void *context);
/* One call per shape that is remembered: how long its buffer waited for company when it last opened. Under the lock,
 * too. */
void buffers_each_wait(struct buffers *buffers,
                       void (*each)(void *context, const struct shape *shape, uint64_t wait_ns), void *context);
#endif
