/* sql_run.h: one statement while it is resolved and while it runs. Inside storage/sql_*.c only.
 *
 * One thread from beginning to end. SQLite sees functions of ours, ch (whose first argument is the index of a struct
 * sql_call) and one per aggregate, and one virtual table per table in the statement. */
#ifndef SLUICE_STORAGE_SQL_RUN_H
#define SLUICE_STORAGE_SQL_RUN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "storage/sql.h"
#include "storage/sql_ast.h"
#include "storage/sql_value.h"

struct sqlite3;
struct format_settings;
struct time_zone;

struct sql_run {
    const struct sql_session *session;
    const struct format_settings *settings; /* the default ones, but for session_timezone */
    const struct time_zone *zone;           /* of times whose type names none */
    struct sql_result *result;              /* counters */
    struct arena *arena;
    struct err err; /* the first failure of a function or a virtual table */
    bool failed;
    bool explain;         /* terms are noted */
    bool input_read;      /* input() was named */
    bool declaring;       /* a virtual table tells SQLite its columns: more is allowed */
    uint64_t deadline_ns; /* monotonic; 0: none */

    unsigned subqueries; /* named so far */
    struct sql_call **calls;
    size_t calls_count, calls_cap;
    struct sql_source_table **sources;
    size_t sources_count, sources_cap;
    struct sql_value *binds; /* parameters ?1 ... */
    size_t binds_count, binds_cap;
};

/* As in the engine, a table's DateTime without a zone stays one of the server's zone, UTC, when the session has
 * another: it is UTC's in `timezone`, but not in its text, and its text is how it is printed and what is made of it is
 * typed. */
const struct type *sql_type_of_column(const struct sql_run *run, const struct type *type);
/* The type that the text says. */
const struct type *sql_type_written(const struct sql_run *run, const struct type *type);
/* Of times of the type: the type's own, else the session's. */
const struct time_zone *sql_run_zone(const struct sql_run *run, const struct type *type);
/* Notes the first failure; false. */
bool sql_run_fail(struct sql_run *run, const struct err *err);
/* Tells session->progress what was read so far. */
void sql_run_publish(const struct sql_run *run);
/* False when the statement was cancelled, ran out of time or failed already. */
bool sql_run_check(struct sql_run *run);
/* The same for who reads for the run, a struct sql_run: *err is why. */
bool sql_run_goes_on(void *run, struct err *err);
/* Accounts for memory outside of SQLite; sql_memory_give() gives it back. Errors: MEMORY_LIMIT_EXCEEDED, noted in run.
 */
bool sql_run_take(struct sql_run *run, size_t bytes);

/* ---- functions ---- */

struct sql_resolver {
    struct sql_run *run;
    struct arena *arena;
    struct sql_select *select; /* whose names count now; NULL: none */
    unsigned tables;           /* ids given */
    unsigned depth;
    bool no_aggregates; /* inside WHERE or an aggregate's arguments */
    bool no_windows;    /* inside HAVING or another window function */
    const char *where;  /* for messages: "WHERE" */
};

/* Checks the arguments (resolved already), sets type and how to print. */
typedef bool sql_bind_fn(struct sql_resolver *r, struct sql_node *node, struct err *err);
/* args: one per argument, as SQLite gave them; what *out points at lives in call->out or in the arguments. */
typedef bool sql_scalar_fn(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err);

struct sql_function {
    const char *name;
    const char *canonical; /* an alias of that one; "" if it is itself */
    bool fold;             /* any case */
    bool keeps_null;       /* sees NULL arguments, and says itself what becomes of Nullable */
    const char *spec;      /* arguments: sql_functions.c says how to read it */
    int result;            /* enum sql_result_kind */
    sql_bind_fn *bind;     /* instead of spec and result, or after them */
    sql_scalar_fn *run;
    int op;
};

struct sql_state; /* of one aggregate in one group */
struct sql_aggregate {
    const char *name;
    bool fold;
    uint8_t args_min, args_max, params_max;
    sql_bind_fn *bind;
    bool (*step)(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err);
    bool (*final)(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err);
    int op;
};

struct sql_call { /* one place in the statement where a function of ours is called */
    size_t index;
    const struct sql_function *function;
    const struct sql_aggregate *aggregate;
    struct sql_bridge *bridge; /* of a function of the expressions' evaluator; else NULL */
    sql_scalar_fn *run_fn;
    int op;
    const struct type *type;   /* of the result */
    const struct type *decode; /* of sql_call_target(), where Nullable was added to type; NULL: type */
    const struct type **types;
    size_t types_count;
    struct sql_value *args; /* of the call that runs; here, as large locals cost more than most functions */
    struct err err;
    bool distinct;     /* aggregate: each row counts once */
    bool moves;        /* aggregate: over a frame whose beginning moves */
    struct str text;   /* groupConcat: between the values */
    double levels[16]; /* quantiles */
    size_t levels_count;
    struct sql_run *run;
    struct strbuf out;
    struct column *in; /* scratch, one per argument, made at first use */
    struct column result;
    bool result_ready;
};

const struct sql_function *sql_function_find(struct str name);
struct sql_combinators { /* sumIf, avgOrNull, ... */
    bool filtered, or_null, or_default, distinct;
};
/* An aggregate of the name without the combinators at its end; NULL: there is none. */
const struct sql_aggregate *sql_aggregate_find(struct str name, struct sql_combinators *combinators);
const struct sql_function *sql_function_at(size_t index);   /* NULL behind the last */
const struct sql_aggregate *sql_aggregate_at(size_t index); /* likewise */
/* A near name, or an empty one. */
struct str sql_function_hint(struct str name);

struct sql_call *sql_call_new(struct sql_resolver *r, struct sql_node *node);
void sql_calls_fini(struct sql_run *run);
/* Scratch column of argument i with the value as its only row. NULL after a failure. */
const struct column *sql_call_column(struct sql_call *call, size_t i, const struct sql_value *value, struct err *err);
/* The empty result column, to push one row to; sql_call_result() turns that into a value. */
struct column *sql_call_target(struct sql_call *call);
bool sql_call_result(struct sql_call *call, struct sql_value *out);
/* State of an aggregate in the group that SQLite is at; made where call is given. NULL: none, or no memory. */
struct sqlite3_context;
struct sql_state *sql_aggregate_state(struct sqlite3_context *context, struct sql_call *call);
struct sql_call *sql_aggregate_call(const struct sql_state *state);
void sql_aggregate_free(struct sql_state *state); /* what it points at; the state itself is SQLite's */
/* Takes a row, call->args, which counts once where the call is distinct. */
bool sql_aggregate_step(struct sql_state *state, size_t count, struct err *err);
/* Of a call that moves: its state is the rows of the frame, aggregated anew for each value. */
bool sql_frame_push(struct sql_state *state, size_t count, struct err *err); /* call->args */
void sql_frame_pop(struct sql_state *state, size_t count);
bool sql_frame_value(struct sql_state *state, struct sql_value *out, struct err *err);
/* Registers ch, which calls functions by their index, and a function for each aggregate: this and its index. */
#define SQL_AGGREGATE_PREFIX "agg"
bool sql_functions_register(struct sqlite3 *db, struct sql_run *run, struct err *err);

/* Converts one cell: what CAST and toX() do. from and to are columns; pushes one row to to. */
bool sql_cast_cell(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                   struct err *err);
sql_scalar_fn sql_cast_run; /* call->op: enum sql_cast_mode */
enum sql_cast_mode { SQL_CAST_THROW, SQL_CAST_NULL, SQL_CAST_ZERO };

/* ---- resolving (sql_resolve.c) ---- */

bool sql_resolve_query(struct sql_resolver *r, struct sql_query *query, struct sql_select *outer, struct err *err);
bool sql_resolve_node(struct sql_resolver *r, struct sql_node *node, struct err *err);
/* node made by us: literal of a type. */
struct sql_node *sql_node_literal(struct sql_resolver *r, const struct type *type, const struct sql_value *value);
struct sql_node *sql_node_call(struct sql_resolver *r, const char *name, struct sql_node **args, size_t count,
                               size_t offset);
/* The literal a node is, through aliases, or NULL. */
const struct sql_node *sql_node_constant(const struct sql_node *node);
/* The node converted to a type: itself, a converted literal, or a call of CAST. */
bool sql_node_convert(struct sql_resolver *r, struct sql_node **node, const struct type *type, struct err *err);
void sql_node_set_value(struct sql_resolver *r, struct sql_node *node, const struct type *type,
                        const struct sql_value *value);
bool sql_bind_error(const struct sql_node *node, enum err_code code, const char *what, struct err *err);

/* Both are the same of the same columns. */
bool sql_same_expression(const struct sql_node *a, const struct sql_node *b);
/* sql_fill.c: WITH FILL of the ORDER BY; its rows, put into the block. bounds: FROM and TO, those that there are. */
bool sql_resolve_fill(struct sql_resolver *r, struct sql_select *select, struct err *err);
bool sql_fill_rows(struct sql_run *run, const struct sql_select *select, const struct block *bounds,
                   struct block *block, struct err *err);
/* sql_unnest.c: the arrays of an ARRAY JOIN, whose table is the next of the select; a call of arrayJoin. */
bool sql_resolve_array_join(struct sql_resolver *r, struct sql_select *select, struct sql_table *table,
                            struct err *err);
bool sql_resolve_array_join_call(struct sql_resolver *r, struct sql_node *node, struct err *err);
bool sql_unnest_register(struct sqlite3 *db, struct sql_run *run, struct err *err);

/* A Bool setting: of the statement's own clause, else of the session (sql.c). */
bool sql_setting_is_on(const struct sql_run *run, const char *name);

/* ---- printing (sql_emit.c) ---- */

/* SQLite's SQL of a resolved query; what it does not have is empty. They run in this order. */
struct sql_emitted {
    struct strbuf query, totals; /* totals: of WITH TOTALS */
    struct strbuf bounds;        /* of WITH FILL: FROM and TO */
};
/* Errors: QUERY_IS_TOO_LARGE. */
bool sql_emit_query(struct sql_run *run, struct sql_query *query, struct sql_emitted *out, struct err *err);

/* ---- sources: what virtual tables read (sql_vtab.c, sql_system.c) ---- */

/* What a scan passed over, by the first thing that told it could: a part counts where its last row group does. */
enum sql_prune { SQL_BY_PARTITION, SQL_BY_BOUNDS, SQL_BY_PAGES, SQL_BY_DICTIONARY, SQL_BY_BLOOM, SQL_PRUNES };
struct sql_scan_counts {
    uint64_t parts_read, groups_read;
    uint64_t parts_skipped[SQL_PRUNES], groups_skipped[SQL_PRUNES];
    uint64_t pages, pages_skipped; /* of columns with terms, in row groups whose page index was looked at */
    uint64_t rows_read;            /* in pieces that were read */
    uint64_t bytes_read;           /* of files */
};

struct sql_map_term { /* each row wanted of a table has this entry in a map of its texts */
    size_t column;    /* of the table */
    struct str key, value;
};

enum sql_source_kind { SQL_SOURCE_TABLE, SQL_SOURCE_BLOCK, SQL_SOURCE_NUMBERS };
enum { SQL_MAP_TERMS_MAX = 8 };
struct sql_source_table {
    enum sql_source_kind kind;
    struct sql_run *run;
    struct table *table; /* TABLE: referenced */
    struct part_set *parts;
    struct schema *schema;       /* the table's, now */
    const struct table_def *def; /* the same moment's */
    struct block block;          /* BLOCK */
    bool block_ready;
    bool (*fill)(void *context, struct block *block, struct err *err);
    void *context;
    const struct type **types;                        /* BLOCK: of the columns */
    uint64_t number_first, number_count, number_step; /* NUMBERS */
    struct sql_table *ast;
    size_t *columns; /* by column of the virtual table: the column read (emitter) */
    size_t columns_count;
    char module[24];
    struct sql_scan_counts counts;
    struct strbuf terms;                              /* of the last scan, for EXPLAIN; owned */
    struct sql_map_term map_terms[SQL_MAP_TERMS_MAX]; /* of the WHERE (sql_imply.c) */
    size_t map_terms_count;
};
struct sql_source_table *sql_source_new(struct sql_run *run, enum sql_source_kind kind);
void sql_sources_fini(struct sql_run *run);
/* Finds what FROM names, sets table->columns and table->source. Errors: UNKNOWN_DATABASE, UNKNOWN_TABLE. */
bool sql_source_find(struct sql_run *run, struct sql_table *table, struct err *err);
bool sql_source_system(struct sql_run *run, struct sql_table *table, bool *found, struct err *err);
/* Errors: ACCESS_DENIED. */
bool sql_may_read(const struct sql_session *session, struct str database, struct str table, struct err *err);
/* Names of the tables of system. */
size_t sql_system_count(const struct sql_session *session);
struct str sql_system_name(const struct sql_session *session, size_t index);
/* system and information_schema. */
bool sql_database_is_own(struct str name);
/* Views: *query is NULL where the name is none. */
bool sql_view_query(struct arena *arena, struct str database, struct str name, struct sql_query **query,
                    struct err *err);
bool sql_view_database(struct str database);
const char *sql_view_name(size_t index); /* NULL behind the last */
const char *sql_view_select(size_t index);
/* One column of one row group of a part, into an empty column; its memory is accounted for. A column that is younger
 * than the part has its defaults. */
bool sql_source_read(struct sql_source_table *source, struct part *part, size_t group, const struct sql_column *wanted,
                     struct column *column, struct err *err);
/* The fill of a BLOCK source that stands for a table under FINAL (sql_final.c); context is the source. */
bool sql_final_fill(void *context, struct block *block, struct err *err);
bool sql_vtab_register(struct sqlite3 *db, struct sql_source_table *source, struct err *err);

/* ---- SQLite ---- */

/* Once per process: an allocator that counts per thread. */
void sql_memory_setup(void);
/* Once per process, by that: temporary files in memory (sql_temp.c). The name to open databases with. */
const char *sql_temp_register(void);
const char *sql_memory_files(void); /* that name */
/* The calling thread counts for the statement, until its end, which leaves with the result what its rows take. */
void sql_memory_begin(const struct sql_session *session);
void sql_memory_end(struct sql_result *result);
/* False: there is no room for so much; then sql_memory_error() says of what. */
bool sql_memory_take(size_t bytes);
void sql_memory_give(size_t bytes);
bool sql_memory_was_short(void); /* since the beginning */
bool sql_memory_error(struct err *err);

/* Runs the SQL and fills block, which has not been initialised, with columns of the given types. */
bool sql_execute(struct sql_run *run, const struct strbuf *sql, const struct sql_column *columns, size_t columns_count,
                 struct block *block, struct err *err);
#endif
