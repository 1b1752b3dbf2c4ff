/* part_log.h: what became of the last parts: the rows of system.part_log. A ring; any thread. */
#ifndef SLUICE_STORAGE_PART_LOG_H
#define SLUICE_STORAGE_PART_LOG_H
#include <stdint.h>

#include "base/err.h"
#include "storage/ddl.h"
#include "storage/part.h"

struct part_log;

enum part_event { PART_EVENT_NEW, PART_EVENT_MERGE, PART_EVENT_REMOVE };
enum part_reason { /* why a part went, or was merged */
                   PART_REASON_NONE,
                   PART_REASON_MERGED,   /* a merge replaced it */
                   PART_REASON_TTL,      /* its rows are over their time */
                   PART_REASON_EMPTY,    /* a merge left no row */
                   PART_REASON_CAP,      /* max_bytes, storage.max_bytes */
                   PART_REASON_DROPPED,  /* DROP PARTITION, DROP PART, TRUNCATE */
                   PART_REASON_DETACHED, /* DETACH PARTITION, DETACH PART */
                   PART_REASON_DAMAGED   /* it did not check */
};
const char *part_reason_name(enum part_reason reason); /* "", "merged", "ttl", ... */

struct part_log_row {
    enum part_event event;
    enum part_reason reason;
    int64_t wall_ns;
    uint64_t duration_ms, read_rows;
    /* of the table and the part, set by part_log_add */
    char *database, *table, *part_name, *partition_id, *partition, *path;
    char table_uuid[37];
    uint64_t rows, bytes;
};

struct part_log *part_log_new(size_t rows_max);
void part_log_free(struct part_log *log); /* NULL is fine */
void part_log_add(struct part_log *log, const struct table_def *def, const struct part *part, struct part_log_row row);
/* Oldest first; what a row points at is valid within the call, which runs under the lock. */
void part_log_each(struct part_log *log, void (*each)(void *context, const struct part_log_row *row), void *context);
#endif
