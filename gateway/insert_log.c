/* insert_log.c: see insert_log.h. A ring of entries. */
#include "gateway/insert_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/sync.h"

struct entry {
    struct shape *shape; /* a reference */
    char query_id[64];
    char batch_id[UUID_TEXT_BYTES];
    char *exception; /* owned; NULL when it went well */
    uint64_t bytes, rows, fields_skipped, wait_ms;
    int64_t arrival_wall_ns, flush_wall_ns;
    int status;
};
struct insert_log {
    struct clock *clock;
    struct mutex lock; /* LOCK_CACHE; guards what follows */
    struct entry *entries;
    uint64_t rows_max, next, count;
};

struct insert_log *insert_log_new(struct clock *clock, uint64_t rows_max)
{
    struct insert_log *log = NEW(struct insert_log);
    log->clock = clock;
    log->rows_max = rows_max;
    log->entries = mem_zalloc(rows_max * sizeof(log->entries[0]));
    mutex_init(&log->lock, LOCK_CACHE);
    return log;
}

static void entry_fini(struct entry *entry)
{
    shape_unref(entry->shape);
    free(entry->exception);
    *entry = (struct entry){ 0 };
}

void insert_log_free(struct insert_log *log)
{
    if (log == NULL)
        return;
    for (uint64_t i = 0; i < log->rows_max; i++)
        entry_fini(&log->entries[i]);
    mutex_fini(&log->lock);
    free(log->entries);
    free(log);
}

void insert_log_add(void *context, const struct insert *insert, const struct batch *batch)
{
    struct insert_log *log = context;
    struct entry entry = { .shape = shape_ref(insert->shape),
                           .bytes = insert->body_bytes,
                           .rows = insert->rows,
                           .fields_skipped = insert->fields_skipped,
                           .wait_ms = batch->sealed_ns > batch->opened_ns
                                          ? (batch->sealed_ns - batch->opened_ns) / NS_PER_MS
                                          : 0,
                           .arrival_wall_ns = insert->arrival_wall_ns };
    memcpy(entry.query_id, insert->query_id, sizeof(entry.query_id));
    memcpy(entry.batch_id, batch->id, sizeof(entry.batch_id));
    if (insert->outcome == INSERT_REJECTED || insert->outcome == INSERT_UNKNOWN) {
        entry.exception = mem_strdup(insert->err.text);
        entry.status = insert->error_row != 0 ? 1 : 2;
    }
    if (entry.status != 1)
        entry.flush_wall_ns = clock_wall_ns(log->clock);
    mutex_lock(&log->lock);
    struct entry old = log->entries[log->next];
    log->entries[log->next] = entry;
    log->next = (log->next + 1) % log->rows_max;
    if (log->count < log->rows_max)
        log->count++;
    mutex_unlock(&log->lock);
    entry_fini(&old);
}

void insert_log_each(struct insert_log *log, void (*each)(void *, const struct insert_log_row *), void *context)
{
    mutex_lock(&log->lock);
    for (uint64_t i = 0; i < log->count; i++) {
        const struct entry *entry = &log->entries[(log->next + log->rows_max - log->count + i) % log->rows_max];
        struct insert_log_row row = { .shape = entry->shape,
                                      .query_id = entry->query_id,
                                      .batch_id = entry->batch_id,
                                      .exception = entry->exception == NULL ? "" : entry->exception,
                                      .bytes = entry->bytes,
                                      .rows = entry->rows,
                                      .fields_skipped = entry->fields_skipped,
                                      .wait_ms = entry->wait_ms,
                                      .arrival_wall_ns = entry->arrival_wall_ns,
                                      .flush_wall_ns = entry->flush_wall_ns,
                                      .status = entry->status };
        each(context, &row);
    }
    mutex_unlock(&log->lock);
}
