/* sql_result.c: SQLite, kept on a short leash: memory (sql_memory.c), time and cancelling watched, nothing allowed but
 * SELECT; and its rows as a typed block. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "storage/sql_run.h"

/* ---- the run ---- */

bool sql_run_fail(struct sql_run *run, const struct err *err)
{
    if (!run->failed) {
        run->err = *err;
        run->failed = true;
    }
    return false;
}

bool sql_run_check(struct sql_run *run)
{
    struct err err = { 0 };
    if (run->failed)
        return false;
    if (run->session->cancel != NULL && atomic_load_explicit(run->session->cancel, memory_order_relaxed)) {
        err_set(&err, ERR_QUERY_WAS_CANCELLED, "Query was cancelled");
        return sql_run_fail(run, &err);
    }
    if (run->deadline_ns != 0 && clock_mono_ns(clock_real()) >= run->deadline_ns) {
        err_set(&err, ERR_TIMEOUT_EXCEEDED, "Timeout exceeded: maximum: %llu ms",
                (unsigned long long)(run->session->limits.time_ns / NS_PER_MS));
        return sql_run_fail(run, &err);
    }
    return true;
}

bool sql_run_goes_on(void *run, struct err *err)
{
    bool ok = sql_run_check(run);
    if (!ok)
        *err = ((struct sql_run *)run)->err;
    return ok;
}

bool sql_run_take(struct sql_run *run, size_t bytes)
{
    struct err err = { 0 };
    return sql_memory_take(bytes) || (sql_memory_error(&err), sql_run_fail(run, &err));
}

void sql_run_publish(const struct sql_run *run)
{
    if (run->session->progress == NULL)
        return;
    uint64_t rows = run->result->rows_read, bytes = run->result->bytes_read;
    for (size_t i = 0; i < run->sources_count; i++) {
        rows += run->sources[i]->counts.rows_read;
        bytes += run->sources[i]->counts.bytes_read;
    }
    atomic_store_explicit(&run->session->progress->rows, rows, memory_order_relaxed);
    atomic_store_explicit(&run->session->progress->bytes, bytes, memory_order_relaxed);
}

static int watch(void *context)
{
    sql_run_publish(context);
    return sql_run_check(context) ? 0 : 1;
}

/* Only what the emitter prints. */
static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    static const char *const functions[] = { "ch",         "count",      "min",   "max",
                                             "coalesce",   "ifnull",     "iif",   "rank",
                                             "dense_rank", "row_number", "ntile", "percent_rank",
                                             "cume_dist",  "lag",        "lead",  "nth_value" };
    const struct sql_run *run = context;
    (void)a;
    (void)c;
    (void)d;
    if (action == SQLITE_SELECT || action == SQLITE_READ || run->declaring)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION && str_starts(str_of(b), STR(SQL_AGGREGATE_PREFIX)))
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
            if (strcmp(b, functions[i]) == 0)
                return SQLITE_OK;
    return SQLITE_DENY;
}

static bool open_database(struct sql_run *run, sqlite3 **db, struct err *err)
{
    static const int limits[][2] = {
        { SQLITE_LIMIT_LENGTH, 256 << 20 }, { SQLITE_LIMIT_SQL_LENGTH, 4 << 20 },  { SQLITE_LIMIT_COLUMN, 2000 },
        { SQLITE_LIMIT_EXPR_DEPTH, 1000 },  { SQLITE_LIMIT_COMPOUND_SELECT, 128 }, { SQLITE_LIMIT_ATTACHED, 0 },
        { SQLITE_LIMIT_VDBE_OP, 1000000 },  { SQLITE_LIMIT_TRIGGER_DEPTH, 0 },     { SQLITE_LIMIT_WORKER_THREADS, 0 },
    };
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(":memory:", db, flags, sql_memory_files()) != SQLITE_OK)
        return err_set(err, ERR_LOGICAL_ERROR, "cannot open the SQL engine: %s",
                       *db == NULL ? "no memory" : sqlite3_errmsg(*db));
    if (sqlite3_exec(*db, "PRAGMA temp_store = FILE", NULL, NULL, NULL) != SQLITE_OK)
        return err_set(err, ERR_LOGICAL_ERROR, "cannot set up the SQL engine: %s", sqlite3_errmsg(*db));
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++)
        sqlite3_limit(*db, limits[i][0], limits[i][1]);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    if (!sql_functions_register(*db, run, err) || !sql_unnest_register(*db, run, err))
        return false;
    for (size_t i = 0; i < run->sources_count; i++)
        if (!sql_vtab_register(*db, run->sources[i], err))
            return false;
    sqlite3_set_authorizer(*db, authorize, run);
    sqlite3_progress_handler(*db, 1000, watch, run);
    return true;
}

/* Our own failure goes first: SQLite only knows that something stopped. */
static bool sqlite_failed(struct sql_run *run, sqlite3 *db, int code, const char *doing, struct err *err)
{
    if (run->failed) {
        *err = run->err;
        return false;
    }
    if (code == SQLITE_NOMEM || sql_memory_was_short())
        return sql_memory_error(err);
    if (code == SQLITE_TOOBIG)
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "a value or the statement grows beyond what is supported");
    return err_set(err, ERR_NOT_IMPLEMENTED, "this statement is not supported here: %s: %s", doing, sqlite3_errmsg(db));
}

static bool bind_values(struct sql_run *run, sqlite3 *db, sqlite3_stmt *statement, struct err *err)
{
    size_t count = (size_t)sqlite3_bind_parameter_count(statement); /* those of WITH TOTALS come after the query's */
    for (size_t i = 0; i < count; i++) {
        const struct sql_value *value = &run->binds[i];
        int index = (int)i + 1, code = SQLITE_OK;
        switch (value->kind) {
        case SQL_NULL:
            break;
        case SQL_INT:
            code = sqlite3_bind_int64(statement, index, value->i);
            break;
        case SQL_REAL:
            code = sqlite3_bind_double(statement, index, value->r);
            break;
        case SQL_TEXT:
            code = sqlite3_bind_text64(statement, index, value->s.len == 0 ? "" : value->s.data, value->s.len,
                                       SQLITE_STATIC, SQLITE_UTF8);
            break;
        case SQL_BLOB:
            code = sqlite3_bind_blob64(statement, index, value->s.len == 0 ? "" : value->s.data, value->s.len,
                                       SQLITE_STATIC);
            break;
        }
        if (code != SQLITE_OK)
            return sqlite_failed(run, db, code, "bind", err);
    }
    return true;
}

static bool add_row(struct sql_run *run, sqlite3_stmt *statement, struct block *block, size_t *bytes, struct err *err)
{
    const struct sql_limits *limits = &run->session->limits;
    size_t added = 0;
    if (limits->rows != 0 && block->rows >= limits->rows)
        return err_set(err, ERR_TOO_MANY_ROWS_OR_BYTES, "Limit for result exceeded, max rows: %llu",
                       (unsigned long long)limits->rows);
    for (size_t i = 0; i < block->columns_count; i++) {
        struct sql_value value = sql_value_from(sqlite3_column_value(statement, (int)i));
        if (!sql_value_push(&value, &block->columns[i], err))
            return err_wrap(err, "column " STR_FMT, STR_ARG(block->names[i]));
        added += 8 + value.s.len;
    }
    block->rows++;
    *bytes += added;
    if (limits->result_bytes != 0 && *bytes > limits->result_bytes)
        return err_set(err, ERR_TOO_MANY_ROWS_OR_BYTES, "Limit for result exceeded, max bytes: %llu",
                       (unsigned long long)limits->result_bytes);
    if (!sql_run_take(run, added)) {
        *err = run->err;
        return false;
    }
    return true;
}

static void begin_block(struct sql_run *run, const struct sql_column *columns, size_t count, struct block *block)
{
    block_init(block, count);
    for (size_t i = 0; i < count; i++) {
        block->names[i] = columns[i].name;
        column_init(&block->columns[i], type_dup(columns[i].type, run->arena)); /* outlives the table */
    }
}

static bool step_all(struct sql_run *run, sqlite3 *db, sqlite3_stmt *statement, struct block *block, struct err *err)
{
    size_t bytes = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!add_row(run, statement, block, &bytes, err))
            return false;
    return code == SQLITE_DONE ? !run->failed || sqlite_failed(run, db, code, "run", err)
                               : sqlite_failed(run, db, code, "run", err);
}

bool sql_execute(struct sql_run *run, const struct strbuf *sql, const struct sql_column *columns, size_t columns_count,
                 struct block *block, struct err *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    bool ok = false;
    begin_block(run, columns, columns_count, block);
    if (!open_database(run, &db, err))
        goto done;
    int code = sqlite3_prepare_v2(db, strbuf_cstr(sql), (int)sql->len, &statement, NULL);
    if (code != SQLITE_OK) {
        sqlite_failed(run, db, code, "prepare", err);
        goto done;
    }
    must(sqlite3_stmt_readonly(statement) && (size_t)sqlite3_column_count(statement) == columns_count);
    ok = bind_values(run, db, statement, err) && step_all(run, db, statement, block, err);
done:
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return ok;
}
