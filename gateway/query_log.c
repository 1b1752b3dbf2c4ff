/* query_log.c: see query_log.h. */
#include "gateway/query_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/sync.h"

enum { ROWS_MAX = 1000, TEXT_MAX = 4096, ARENA_BYTES = 512 };

struct entry {
    struct query_log_row row; /* its texts are in arena */
    struct arena *arena;
};

struct query_log {
    struct mutex lock; /* LOCK_CACHE; guards what follows */
    struct entry entries[ROWS_MAX];
    size_t next, count;
    struct query_log_error errors[
#define X(number, name, http, verdict) +1
        ERR_CODES(X)
#undef X
    ];
};

struct query_log *query_log_new(void)
{
    static const int codes[] = {
#define X(number, name, http, verdict) number,
        ERR_CODES(X)
#undef X
    };
    struct query_log *log = NEW(struct query_log);
    mutex_init(&log->lock, LOCK_CACHE);
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++)
        log->errors[i].code = (enum err_code)codes[i];
    return log;
}

void query_log_free(struct query_log *log)
{
    if (log == NULL)
        return;
    for (size_t i = 0; i < log->count; i++)
        arena_free(log->entries[i].arena);
    mutex_fini(&log->lock);
    free(log);
}

void query_log_add(struct query_log *log, const struct query_log_row *row)
{
    struct entry entry = { .row = *row, .arena = arena_new(ARENA_BYTES) };
    struct str *texts[] = { &entry.row.query,    &entry.row.query_id, &entry.row.user,
                            &entry.row.database, &entry.row.peer,     &entry.row.log_comment };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        *texts[i] = arena_dup(entry.arena, str_sub(*texts[i], 0, TEXT_MAX));
    mutex_lock(&log->lock);
    struct arena *old = log->entries[log->next].arena;
    log->entries[log->next] = entry;
    log->next = (log->next + 1) % ROWS_MAX;
    log->count = MIN(log->count + 1, (size_t)ROWS_MAX);
    mutex_unlock(&log->lock);
    if (old != NULL)
        arena_free(old);
}

void query_log_count(struct query_log *log, const struct err *err, int64_t wall_ns)
{
    mutex_lock(&log->lock);
    for (size_t i = 0; i < ARRAY_COUNT(log->errors); i++) {
        struct query_log_error *error = &log->errors[i];
        if (error->code != err->code)
            continue;
        error->count++;
        error->last_wall_ns = wall_ns;
        memcpy(error->text, err->text, sizeof(error->text));
        break;
    }
    mutex_unlock(&log->lock);
}

void query_log_each(struct query_log *log, void (*each)(void *context, const struct query_log_row *row), void *context)
{
    mutex_lock(&log->lock);
    size_t from = log->count < ROWS_MAX ? 0 : log->next;
    for (size_t i = 0; i < log->count; i++)
        each(context, &log->entries[(from + i) % ROWS_MAX].row);
    mutex_unlock(&log->lock);
}

void query_log_each_error(struct query_log *log, void (*each)(void *context, const struct query_log_error *error),
                          void *context)
{
    mutex_lock(&log->lock);
    for (size_t i = 0; i < ARRAY_COUNT(log->errors); i++)
        if (log->errors[i].count > 0)
            each(context, &log->errors[i]);
    mutex_unlock(&log->lock);
}
