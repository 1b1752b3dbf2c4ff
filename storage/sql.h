/* sql.h: read-only SQL over the tables and over system.*: SELECT through SQLite virtual tables on a frozen part set,
 * and SHOW, DESCRIBE, EXISTS, EXPLAIN, USE, SET.
 *
 * A statement is parsed (sql_parse), its names are bound and every expression gets its ClickHouse type (sql_resolve,
 * sql_bind), and only then is it printed as SQLite's SQL (sql_emit): what 1 / 2, NaN or a text beside a date mean
 * cannot be told from tokens. What is not understood is an error with the place, never a wrong answer. Any thread; one
 * statement uses one SQLite connection on the calling thread. */
#ifndef SLUICE_STORAGE_SQL_H
#define SLUICE_STORAGE_SQL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "format/block.h"
#include "format/format_settings.h"
#include "format/insert_head.h"
#include "storage/store.h"

/* A table of system.* whose rows come from elsewhere (buffers, dead letters, settings). */
struct sql_source {
    const char *name;    /* "asynchronous_inserts" */
    const char *columns; /* "query String, database String, total_bytes UInt64, ..." */
    /* Appends the rows now; block's columns are as named. */
    bool (*fill)(void *context, struct block *block, struct err *err);
    void *context;
};

/* Rows that a statement finds under a name, as if they were a table. */
struct sql_named_block {
    struct str name;
    struct block *block;
    const struct table_def *def; /* of a temporary table; NULL: came with the statement */
};

/* What a running statement has read so far; any thread may look. */
struct sql_counters {
    _Atomic uint64_t rows, bytes, memory_bytes;
};
struct sql_limits {
    uint64_t time_ns, rows, result_bytes, memory_bytes; /* 0 = none */
};
struct sql_session {
    struct store *store;
    const struct sql_source *sources;
    size_t sources_count;
    const struct block *input; /* what input() reads; NULL: nothing */
    const struct sql_named_block *tables;
    size_t tables_count;
    struct str database; /* current */
    struct str user, query_id, version, display_name;
    int64_t wall_ns;                   /* now() */
    const struct insert_param *params; /* param_* */
    size_t params_count;
    const struct format_settings *settings;
    struct sql_limits limits;
    struct sql_counters *progress; /* may be NULL */
    const atomic_bool *cancel;     /* may be NULL; set by another thread: the statement ends with QUERY_WAS_CANCELLED */
    /* getSetting(): the value in force and the setting's type, as in system.settings. False: unknown. */
    bool (*setting)(void *context, struct str name, struct str *value, struct str *type);
    /* May the statement read the table, also one of system? NULL: any. Errors: ACCESS_DENIED. */
    bool (*may_read)(void *context, struct str database, struct str table, struct err *err);
    /* Room for what the statement takes in what all of them share, asked for in large steps; NULL: none is needed.
     * Released by the end of the statement, and of its result. */
    bool (*reserve)(void *context, uint64_t bytes);
    void (*release)(void *context, uint64_t bytes);
    void *context; /* of these; lives as long as the result */
};
struct sql_result {
    struct arena *arena; /* holds types and names of block */
    struct block block;
    struct block totals; /* of WITH TOTALS: one row, like block */
    bool has_totals;
    bool has_block;                  /* false: a statement without a result (SET, USE) */
    struct str format;               /* of the FORMAT clause; empty without */
    struct insert_setting *settings; /* of the SETTINGS clause */
    size_t settings_count;
    struct str use_database; /* USE: the new current database */
    uint64_t rows_read, bytes_read;
    uint64_t rows_before_limit; /* at least; 0: the statement had no LIMIT */
    uint64_t parts_read, parts_skipped, row_groups_read, row_groups_skipped;
    uint64_t reserved; /* for block and totals; released with them */
    void (*release)(void *context, uint64_t bytes);
    void *release_context;
};

/* Runs one statement that only reads. On true the result is the caller's: sql_result_fini. Errors: SYNTAX_ERROR,
 * UNKNOWN_TABLE, UNKNOWN_IDENTIFIER, UNKNOWN_FUNCTION, MEMORY_LIMIT_EXCEEDED, TIMEOUT_EXCEEDED, ... */
must_use bool sql_run(const struct sql_session *session, struct str query, struct sql_result *result, struct err *err);
/* The ClickHouse type of an expression over these columns (those without a type do not count). In arena. Errors: those
 * of a SELECT of it. */
must_use bool sql_expression_type(struct str text, const struct schema_column *columns, size_t count,
                                  struct arena *arena, const struct type **type, struct err *err);
void sql_result_fini(struct sql_result *result);
#endif
