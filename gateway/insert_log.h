/* insert_log.h: what became of the last inserts: the rows of system.asynchronous_insert_log. Bounded by number, bytes
 * and age; any thread. */
#ifndef SLUICE_GATEWAY_INSERT_LOG_H
#define SLUICE_GATEWAY_INSERT_LOG_H
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "buffer/batch.h"

struct insert_log;
struct insert_log_row {
    const struct shape *shape;
    const char *query_id, *batch_id, *exception; /* exception: "" when it went well */
    const char *outcome;                         /* "stored", "duplicate", "refused", "unknown" */
    int code;                                    /* 0 when it went well */
    bool dead_letter;                            /* it is one now */
    uint64_t bytes, rows, fields_skipped, wait_ms;
    int64_t arrival_wall_ns, flush_wall_ns; /* flush: 0 for a parsing error */
    int status;                             /* 0 Ok, 1 ParsingError, 2 FlushError */
};

struct insert_log_limits {
    uint64_t rows_max, bytes_max, age_ns_max;
};
struct insert_log *insert_log_new(struct clock *clock, const struct insert_log_limits *limits);
void insert_log_free(struct insert_log *log); /* NULL is fine */
/* flusher_options.log: one insert with its verdict. */
void insert_log_add(void *log, const struct insert *insert, const struct batch *batch);
/* Oldest first; what a row points at is valid within the call, which runs under the lock. */
void insert_log_each(struct insert_log *log, void (*each)(void *context, const struct insert_log_row *row),
                     void *context);
#endif
