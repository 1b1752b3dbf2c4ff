/* sql_ast.h: a SELECT as a tree. Inside storage/sql_*.c only.
 *
 * The parser (sql_parse.c) makes it, the resolver (sql_resolve.c) binds names and gives every expression its ClickHouse
 * type, the emitter (sql_emit.c) prints it as SQLite's SQL. Everything lives in the arena of one statement. */
#ifndef SLUICE_STORAGE_SQL_AST_H
#define SLUICE_STORAGE_SQL_AST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "format/insert_head.h"
#include "format/type.h"
#include "storage/sql_value.h"

struct sql_aggregate;
struct sql_call;
struct sql_function;
struct sql_query;
struct sql_select;
struct sql_table;
struct sql_window;

enum { SQL_DEPTH_MAX = 120, SQL_NAME_PARTS = 4, SQL_TABLES_MAX = 32, SQL_ARRAYS_MAX = 16, SQL_SETS_MAX = 64 };

enum sql_node_kind {
    SQL_LITERAL, /* value, type */
    SQL_NAME,    /* parts: a, t.a, db.t.a, t.tuple.a */
    SQL_STAR,    /* parts: the table of t.*; names: of EXCEPT */
    SQL_CALL,    /* name(params)(args); every operator is one, under the name ClickHouse gives it */
    SQL_SUBQUERY /* (SELECT ...) */
};

/* How the emitter prints a resolved call. */
enum sql_emit_kind {
    SQL_EMIT_VALUE,     /* a constant: value */
    SQL_EMIT_COLUMN,    /* table, column */
    SQL_EMIT_NODE,      /* the same as target (an alias, a positional argument) */
    SQL_EMIT_TEMPLATE,  /* template with $0..$9 and $* for the arguments */
    SQL_EMIT_SCALAR,    /* ch(call, args...) */
    SQL_EMIT_AGGREGATE, /* cha(call, args...), and what has an OVER */
    SQL_EMIT_IN,        /* args[0] IN (the rest, or the subquery) */
    SQL_EMIT_SUBQUERY,  /* scalar subquery */
    SQL_EMIT_EXISTS
};

enum sql_progress { SQL_UNRESOLVED, SQL_RESOLVING, SQL_RESOLVED };

struct sql_node {
    enum sql_node_kind kind;
    struct str name;    /* CALL: as spelled, then canonical; LITERAL: as ClickHouse prints it */
    struct str spelled; /* CALL: as spelled, where name is canonical */
    struct str parts[SQL_NAME_PARTS];
    size_t parts_count;
    struct sql_node **args, **params;
    size_t args_count, params_count;
    bool params_given, distinct;
    struct str *names; /* STAR: EXCEPT */
    size_t names_count;
    struct str alias;
    struct sql_query *query; /* SUBQUERY */
    struct sql_window *over; /* CALL: OVER (...); NULL without */
    size_t offset;           /* in the statement, for messages */
    struct sql_value value;  /* LITERAL; of a lambda its text */

    /* from here on: the resolver's */
    enum sql_progress state;
    enum sql_emit_kind emit;
    const struct type *type;
    struct sql_table *table;
    size_t column;
    struct sql_node
        *peer;      /* COLUMN of USING of a RIGHT or FULL JOIN: that of the right side, where this one is missing */
    bool qualified; /* another table before has a column of this name: the name shows the table */
    struct sql_node *target;
    struct sql_node **shown; /* args as they were, for the name; NULL: args */
    size_t shown_count;
    struct sql_node *filter; /* aggregate: of the -If combinator */
    const char *template;
    const char *if_empty; /* aggregate: SQL of its value over no rows; NULL: NULL */
    struct sql_call *call;
    bool aggregate;     /* is one */
    bool has_aggregate; /* is one or holds one */
    bool constant;      /* holds no column */
};

enum sql_join {
    SQL_JOIN_FIRST,
    SQL_JOIN_CROSS,
    SQL_JOIN_INNER,
    SQL_JOIN_LEFT,
    SQL_JOIN_RIGHT,
    SQL_JOIN_FULL,
    SQL_JOIN_ARRAY,
    SQL_JOIN_LEFT_ARRAY
};

enum sql_strictness { SQL_JOIN_ALL, SQL_JOIN_ANY, SQL_JOIN_SEMI, SQL_JOIN_ANTI, SQL_JOIN_ASOF };

/* What is joined of a table: of its rows that meet the conditions, the first one for each of the keys. With a moment,
 * for each of the keys at each moment, and with the next moment of its key, the later or the earlier one. */
struct sql_thinning {
    struct sql_node **keys, **conditions;
    size_t keys_count, conditions_count;
    struct sql_node *moment; /* NULL without */
    bool next_is_later;
};

struct sql_column { /* what a table or subquery offers */
    struct str name;
    const struct type *type;
    bool hidden;                    /* not part of * */
    struct str alias_text;          /* ALIAS column: its expression */
    struct sql_table *shadow_table; /* ARRAY JOIN: the column whose place the elements take; NULL: none */
    size_t shadow_column;
    struct sql_node *peer; /* see sql_node */
};

/* One thing in FROM. */
struct sql_table {
    enum sql_join join;
    enum sql_strictness strictness;
    struct str database, name, alias;
    struct sql_query *query;   /* a subquery */
    struct sql_node *function; /* a table function */
    struct sql_node *on;
    struct str *using_names;
    size_t using_count;
    bool final_;
    struct sql_node **arrays; /* of ARRAY JOIN; arrays_count were written, each of columns has one */
    size_t arrays_count;
    size_t offset;

    struct sql_thinning *thinning; /* NULL: all rows are joined */
    struct sql_node *closeness;    /* of ASOF JOIN: the inequality of its ON */
    bool is_to_be_absent;          /* of ANTI JOIN: rows with one of this table's do not count */
    bool implicit;                 /* of an arrayJoin() */
    struct sql_call *unnest;       /* of ARRAY JOIN: its arrays' types */
    struct sql_column *columns;
    size_t columns_count;
    bool *used;                      /* by column: the emitter read it */
    size_t outer_since;              /* join from which on it may be missing in a row: columns then fall back to their
                                      * defaults; SIZE_MAX: never */
    unsigned id;                     /* tID in the SQL */
    struct sql_source_table *source; /* not a subquery */
};

/* WITH FILL [FROM x] [TO y] [STEP z] */
struct sql_fill {
    struct sql_node *from, *to, *step;
    double by; /* the step, of `unit`s where it has one */
    int unit;
    bool has_unit;
    size_t column; /* the output that is filled */
};

struct sql_order {
    struct sql_node *node;
    bool descending, nulls_first;
    struct sql_fill *fill; /* NULL: without */
};

/* One end of a frame: offset rows (or units of the ORDER BY) before or after the current row. */
struct sql_bound {
    enum { SQL_BOUND_UNBOUNDED, SQL_BOUND_CURRENT, SQL_BOUND_OFFSET } kind;
    bool following;
    struct sql_node *offset;
};

/* OVER (...), or one of the WINDOW clause. */
struct sql_window {
    struct str name; /* of the WINDOW clause; in OVER: the window that it is, or builds on; empty: none */
    bool bare;       /* OVER name */
    struct sql_node **partition;
    size_t partition_count;
    struct sql_order *order;
    size_t order_count;
    bool framed, rows; /* a frame was written; in ROWS, not RANGE */
    struct sql_bound from, to;
    size_t offset;
};

struct sql_with {
    struct str name;
    struct sql_node *node;   /* WITH expr AS name */
    struct sql_query *query; /* WITH name AS (SELECT ...) */
    size_t offset;
    bool busy;
};

struct sql_select {
    struct sql_with *with;
    size_t with_count;
    bool distinct;
    struct sql_node **columns;
    size_t columns_count;
    struct sql_table *tables; /* room for SQL_TABLES_MAX */
    size_t tables_count;
    bool from_resolved, has_window;
    struct sql_node *where, *having, *qualify;
    struct sql_window *windows; /* of the WINDOW clause */
    size_t windows_count;
    struct sql_node **group;
    size_t group_count;
    bool group_by, group_all;
    enum { SQL_GROUP_ONCE, SQL_GROUP_ROLLUP, SQL_GROUP_CUBE, SQL_GROUP_SETS } grouping;
    uint64_t *sets; /* not ONCE: rows are grouped for each of these, by the keys of its bits */
    size_t sets_count;
    bool totals; /* WITH TOTALS */
    struct sql_order *order;
    size_t order_count;
    bool order_all;
    struct sql_fill *filled; /* of the ORDER BY: rows are put in, and LIMIT counts, after SQLite; NULL: none are */
    struct sql_node *limit, *offset;
    bool ties; /* LIMIT ... WITH TIES */
    struct sql_node *limit_by_limit, *limit_by_offset;
    struct sql_node **limit_by;
    size_t limit_by_count;
    struct sql_select *outer;  /* for WITH of enclosing statements */
    struct sql_node **aliases; /* every node with an alias */
    size_t aliases_count;

    struct sql_node **outputs; /* columns with stars expanded */
    struct str *output_names;
    size_t outputs_count;
    bool aggregated;
};

enum sql_set_operation {
    SQL_UNION_ALL,
    SQL_UNION_DISTINCT,
    SQL_EXCEPT_ALL,
    SQL_EXCEPT_DISTINCT,
    SQL_INTERSECT_ALL,
    SQL_INTERSECT_DISTINCT
};

/* One or more SELECTs under UNION, EXCEPT or INTERSECT, from the left to the right. */
struct sql_query {
    struct sql_select **selects;
    enum sql_set_operation *operations; /* by which selects[i] joins those before it; that of the first means nothing */
    size_t selects_count;
    struct sql_column *columns; /* of the result */
    size_t columns_count;
    bool resolved;
    size_t offset;
};

enum sql_statement_kind {
    SQL_SELECT,
    SQL_EXPLAIN,
    SQL_SHOW_CREATE,
    SQL_DESCRIBE,
    SQL_EXISTS,
    SQL_CHECK,
    SQL_USE,
    SQL_SET
};

struct sql_statement {
    enum sql_statement_kind kind;
    struct sql_query *query;
    struct str database, name; /* of the object; database empty: the current one; of a SELECT: has to exist */
    bool estimate;             /* EXPLAIN ESTIMATE */
    bool is_database;          /* EXISTS, SHOW CREATE: about a database */
    bool is_temporary;         /* EXISTS, SHOW CREATE: about a temporary table */
    bool is_other;             /* EXISTS: about what there is none of: a view, a dictionary */
    struct str format;
    struct insert_setting *settings;
    size_t settings_count;
};

/* Parses one statement. Strings live in arena or borrow from text. Errors: SYNTAX_ERROR, TOO_DEEP_RECURSION,
 * UNKNOWN_QUERY_PARAMETER, NOT_IMPLEMENTED. */
must_use bool sql_parse(struct str text, const struct insert_param *params, size_t params_count, struct arena *arena,
                        struct sql_statement *statement, struct err *err);
/* The whole of text is one SELECT. */
must_use bool sql_parse_query(struct str text, struct arena *arena, struct sql_query **query, struct err *err);
/* The whole of text is one expression. */
must_use bool sql_parse_expression(struct str text, struct arena *arena, struct sql_node **node, struct err *err);

bool sql_node_is_lambda(const struct sql_node *node);
/* The name of a column that is this expression, as ClickHouse gives it: "plus(a, 1)". */
void sql_node_print(const struct sql_node *node, struct strbuf *out);
#endif
