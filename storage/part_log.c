/* part_log.c: see part_log.h. */
#include "storage/part_log.h"

#include <stdlib.h>

#include "base/strbuf.h"
#include "base/sync.h"

struct part_log {
    struct mutex lock;         /* LOCK_CACHE; guards what follows */
    struct part_log_row *rows; /* their texts are owned */
    size_t rows_max, next, count;
};

const char *part_reason_name(enum part_reason reason)
{
    static const char *const names[] = { "", "merged", "ttl", "empty", "max_bytes", "dropped", "detached", "damaged" };
    return names[reason];
}

struct part_log *part_log_new(size_t rows_max)
{
    struct part_log *log = NEW(struct part_log);
    log->rows_max = rows_max;
    log->rows = mem_zalloc(rows_max * sizeof *log->rows);
    mutex_init(&log->lock, LOCK_CACHE);
    return log;
}

static void row_fini(struct part_log_row *row)
{
    free(row->database);
    free(row->table);
    free(row->part_name);
    free(row->partition_id);
    free(row->partition);
    free(row->path);
    *row = (struct part_log_row){ 0 };
}

void part_log_free(struct part_log *log)
{
    if (log == NULL)
        return;
    for (size_t i = 0; i < log->count; i++)
        row_fini(&log->rows[i]);
    mutex_fini(&log->lock);
    free(log->rows);
    free(log);
}

static char *text_of(struct str text)
{
    struct strbuf copy = { 0 };
    strbuf_add(&copy, text);
    return strbuf_take(&copy);
}

void part_log_add(struct part_log *log, const struct table_def *def, const struct part *part, struct part_log_row row)
{
    struct strbuf name = { 0 };
    part_engine_name(part->partition.id, &part->name, &name);
    row.database = text_of(def->database);
    row.table = text_of(def->name);
    row.part_name = strbuf_take(&name);
    row.partition_id = mem_strdup(part->partition.id);
    row.partition = mem_strdup(part->partition.text);
    row.path = mem_strdup(part->path);
    row.rows = part->rows;
    row.bytes = part->bytes;
    memcpy(row.table_uuid, def->uuid, sizeof row.table_uuid);
    mutex_lock(&log->lock);
    row_fini(&log->rows[log->next]);
    log->rows[log->next] = row;
    log->next = (log->next + 1) % log->rows_max;
    log->count = MIN(log->count + 1, log->rows_max);
    mutex_unlock(&log->lock);
}

void part_log_each(struct part_log *log, void (*each)(void *context, const struct part_log_row *row), void *context)
{
    mutex_lock(&log->lock);
    size_t from = log->count < log->rows_max ? 0 : log->next;
    for (size_t i = 0; i < log->count; i++)
        each(context, &log->rows[(from + i) % log->rows_max]);
    mutex_unlock(&log->lock);
}
