/* flusher.h: due -> sink -> verdicts: retry with backoff, reject, dead letter. One step is one batch.
 *
 * Several threads may run flusher_step of one flusher at once: different shapes flush in parallel. */
#ifndef SLUICE_BUFFER_FLUSHER_H
#define SLUICE_BUFFER_FLUSHER_H
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "buffer/sink.h"
#include "buffer/spool.h"
#include "dlq/dlq.h"

struct flusher;
struct flusher_options {
    struct buffers *buffers;
    struct sink *sink;
    struct ledger *ledger;
    struct dlq *dlq;     /* NULL: refused fire-and-forget inserts are only logged and counted */
    struct spool *spool; /* NULL: none, and no shape is spooled */
    struct clock *clock;
    struct rng *rng;
    unsigned attempts_max;               /* then letters, or the error to waiters */
    uint64_t retry_ns_min, retry_ns_max; /* backoff with full jitter */
    /* One call per insert with its verdict, before done: for system.asynchronous_insert_log. May be NULL. */
    void (*log)(void *context, const struct insert *insert, const struct batch *batch);
    void *log_context;
};
struct flusher *flusher_new(const struct flusher_options *options);
void flusher_free(struct flusher *flusher);
/* Writes the most overdue batch, if any. Returns when to run again (<= now: at once; UINT64_MAX: when woken). */
uint64_t flusher_step(struct flusher *flusher, uint64_t now_ns);
/* Changes what the options said; for what is tried from now on. */
void flusher_set_retry(struct flusher *flusher, unsigned attempts_max, uint64_t retry_ns_min, uint64_t retry_ns_max);
/* At a stop, once no thread runs flusher_step any more: what is left in the buffers goes to the spool, and waiters are
 * told so (done, outcome PENDING). */
void flusher_spool_rest(struct flusher *flusher);
/* From now on a failed attempt is the last: shutdown. */
void flusher_last_try(struct flusher *flusher);
#endif
