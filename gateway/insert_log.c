/* insert_log.c: see insert_log.h. A ring of entries, the oldest of which go when a limit is passed. */
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
    enum insert_outcome outcome;
    int code, status;
    bool dead_letter;
    uint64_t added_ns, memory;
};
struct insert_log {
    struct clock *clock;
    struct insert_log_limits limits;
    struct mutex lock; /* LOCK_CACHE; guards what follows */
    struct entry *entries;
    uint64_t next, count, memory;
};

struct insert_log *insert_log_new(struct clock *clock, const struct insert_log_limits *limits)
{
    struct insert_log *log = NEW(struct insert_log);
    log->clock = clock;
    log->limits = *limits;
    log->entries = mem_zalloc(limits->rows_max * sizeof(log->entries[0]));
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
    for (uint64_t i = 0; i < log->limits.rows_max; i++)
        entry_fini(&log->entries[i]);
    mutex_fini(&log->lock);
    free(log->entries);
    free(log);
}

static const char *outcome_name(enum insert_outcome outcome)
{
    static const char *const names[] = { "pending", "stored", "duplicate", "refused", "unknown" };
    must((size_t)outcome < ARRAY_COUNT(names));
    return names[outcome];
}

/* Counted in full for each entry, though entries may share a shape. */
static uint64_t entry_memory(const struct entry *entry)
{
    size_t exception = entry->exception == NULL ? 0 : strlen(entry->exception) + 1;
    return sizeof(*entry) + exception + entry->shape->key.len + entry->shape->query.len;
}

static struct entry *oldest(struct insert_log *log)
{
    return &log->entries[(log->next + log->limits.rows_max - log->count) % log->limits.rows_max];
}

/* Whether the oldest entry has to go before another one of so many bytes comes. */
static bool is_over(struct insert_log *log, uint64_t memory, uint64_t now_ns)
{
    const struct insert_log_limits *limits = &log->limits;
    return log->count > 0 && (log->count == limits->rows_max || log->memory + memory > limits->bytes_max ||
                              now_ns - oldest(log)->added_ns > limits->age_ns_max);
}

/* Takes the oldest off the ring; the caller frees it. */
static struct entry take_oldest(struct insert_log *log)
{
    struct entry *entry = oldest(log), taken = *entry;
    *entry = (struct entry){ 0 };
    log->count--;
    log->memory -= taken.memory;
    return taken;
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
                           .arrival_wall_ns = insert->arrival_wall_ns,
                           .outcome = insert->outcome,
                           .dead_letter = insert->letter_written,
                           .added_ns = clock_mono_ns(log->clock) };
    memcpy(entry.query_id, insert->query_id, sizeof(entry.query_id));
    memcpy(entry.batch_id, batch->id, sizeof(entry.batch_id));
    if (insert->outcome == INSERT_REJECTED || insert->outcome == INSERT_UNKNOWN) {
        entry.exception = mem_strdup(insert->err.text);
        entry.code = (int)insert->err.code;
        entry.status = insert->error_row != 0 ? 1 : 2;
    }
    if (entry.status != 1)
        entry.flush_wall_ns = clock_wall_ns(log->clock);
    entry.memory = entry_memory(&entry);
    mutex_lock(&log->lock);
    while (is_over(log, entry.memory, entry.added_ns)) {
        struct entry old = take_oldest(log);
        entry_fini(&old);
    }
    log->entries[log->next] = entry;
    log->next = (log->next + 1) % log->limits.rows_max;
    log->count++;
    log->memory += entry.memory;
    mutex_unlock(&log->lock);
}

void insert_log_each(struct insert_log *log, void (*each)(void *, const struct insert_log_row *), void *context)
{
    uint64_t now_ns = clock_mono_ns(log->clock), rows_max = log->limits.rows_max;
    mutex_lock(&log->lock);
    for (uint64_t i = 0; i < log->count; i++) {
        const struct entry *entry = &log->entries[(log->next + rows_max - log->count + i) % rows_max];
        if (now_ns - entry->added_ns > log->limits.age_ns_max)
            continue;
        struct insert_log_row row = { .shape = entry->shape,
                                      .query_id = entry->query_id,
                                      .batch_id = entry->batch_id,
                                      .exception = entry->exception == NULL ? "" : entry->exception,
                                      .outcome = outcome_name(entry->outcome),
                                      .code = entry->code,
                                      .dead_letter = entry->dead_letter,
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
