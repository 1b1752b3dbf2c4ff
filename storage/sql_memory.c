/* sql_memory.c: what a statement takes, held against its own limit and against what all statements share.
 *
 * A statement runs on one thread from beginning to end, so what it takes is counted by thread, SQLite's and ours
 * together; SQLite's allocator is the process's. Room in what is shared is asked for in steps, as that may cost a lock,
 * and given back when the statement is over; what its rows take, when they go. Running out is SQLITE_NOMEM for this
 * statement alone. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "storage/sql_run.h"

enum { STEP_BYTES = 256 << 10, HEADER_BYTES = 16 /* keeps the size, and the alignment */ };

static _Thread_local struct {
    const struct sql_session *session; /* NULL: no statement runs, nothing is bounded */
    uint64_t used, reserved;
    bool was_short, was_short_of_shared;
} meter;

static bool reserve(uint64_t bytes)
{
    const struct sql_session *session = meter.session;
    if (bytes <= meter.reserved || session->reserve == NULL)
        return true;
    uint64_t more = (bytes - meter.reserved + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    meter.was_short_of_shared = !session->reserve(session->context, more);
    if (meter.was_short_of_shared)
        return false;
    meter.reserved += more;
    if (session->progress != NULL)
        atomic_store_explicit(&session->progress->memory_bytes, meter.reserved, memory_order_relaxed);
    return true;
}

bool sql_memory_take(size_t bytes)
{
    uint64_t used = meter.used + bytes;
    if (meter.session != NULL) {
        uint64_t limit = meter.session->limits.memory_bytes;
        if ((limit != 0 && used > limit) || !reserve(used)) {
            meter.was_short = true;
            return false;
        }
    }
    meter.used = used;
    return true;
}

void sql_memory_give(size_t bytes)
{
    meter.used -= MIN(meter.used, (uint64_t)bytes);
}

void sql_memory_begin(const struct sql_session *session)
{
    memset(&meter, 0, sizeof meter);
    meter.session = session;
}

static uint64_t result_bytes(const struct sql_result *result)
{
    return (result->has_block ? block_bytes(&result->block) : 0) +
           (result->has_totals ? block_bytes(&result->totals) : 0);
}

void sql_memory_end(struct sql_result *result)
{
    const struct sql_session *session = meter.session;
    if (meter.reserved > 0) {
        result->release = session->release;
        result->release_context = session->context;
        result->reserved = MIN(meter.reserved, result_bytes(result));
        session->release(session->context, meter.reserved - result->reserved);
    }
    meter.session = NULL;
}

bool sql_memory_was_short(void)
{
    return meter.was_short;
}

bool sql_memory_error(struct err *err)
{
    if (meter.was_short_of_shared)
        return err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                       "Memory limit (total) exceeded: this query has taken %llu bytes, and inserts and other queries "
                       "leave no more of memory.max",
                       (unsigned long long)meter.reserved);
    return err_set(err, ERR_MEMORY_LIMIT_EXCEEDED, "Query memory limit exceeded: maximum: %llu bytes",
                   (unsigned long long)meter.session->limits.memory_bytes);
}

/* ---- SQLite's allocator ---- */

static int size_of(void *memory)
{
    size_t size = 0;
    if (memory != NULL)
        memcpy(&size, (char *)memory - HEADER_BYTES, sizeof size);
    return (int)size;
}

static void *allocate(int bytes)
{
    size_t size = (size_t)bytes;
    if (!sql_memory_take(size))
        return NULL;
    char *block = mem_alloc(size + HEADER_BYTES);
    memcpy(block, &size, sizeof size);
    return block + HEADER_BYTES;
}

static void release(void *memory)
{
    if (memory == NULL)
        return;
    sql_memory_give((size_t)size_of(memory));
    free((char *)memory - HEADER_BYTES);
}

static void *reallocate(void *memory, int bytes)
{
    size_t old = (size_t)size_of(memory), size = (size_t)bytes;
    if (size > old && !sql_memory_take(size - old))
        return NULL;
    if (size < old)
        sql_memory_give(old - size);
    char *block = mem_realloc((char *)memory - HEADER_BYTES, size + HEADER_BYTES);
    memcpy(block, &size, sizeof size);
    return block + HEADER_BYTES;
}

static int round_up(int bytes)
{
    return (bytes + 7) & ~7;
}

static int nothing_to_start(void *context)
{
    (void)context;
    return SQLITE_OK;
}

static void nothing_to_stop(void *context)
{
    (void)context;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *temp_files; /* what databases are opened with */

static void install(void)
{
    static const sqlite3_mem_methods methods = { allocate, release,          reallocate,      size_of,
                                                 round_up, nothing_to_start, nothing_to_stop, NULL };
    bool ok = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
              sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK && sqlite3_initialize() == SQLITE_OK;
    must(ok);
    temp_files = sql_temp_register();
}

void sql_memory_setup(void)
{
    pthread_once(&once, install);
}

const char *sql_memory_files(void)
{
    return temp_files;
}
